#include "kvs/frontend/intake.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/atomic.h"
#include "core/base/bits.h"

struct qn_intake_chunk {
    struct qn_intake_chunk *next; /* spare */
    uint32_t users;               /* reads in it that were not given back */
    uint32_t used;                /* bytes from its start, header included */
};

enum { HEAD = QN_CACHELINE };

static_assert(sizeof(struct qn_intake_chunk) <= HEAD, "the header has room");

/* An empty one, spare or new. */
static struct qn_intake_chunk *begin(struct qn_intake *i)
{
    struct qn_intake_chunk *c = i->spare;
    if (c != NULL) {
        i->spare = c->next;
        i->spares--;
    } else {
        c = malloc(QN_INTAKE_CHUNK_BYTES);
    }
    if (c != NULL) {
        *c = (struct qn_intake_chunk){.used = HEAD};
    }
    return c;
}

uint8_t *qn_intake_room(struct qn_intake *i, size_t *n)
{
    struct qn_intake_chunk *c = i->now;
    if (c == NULL || QN_INTAKE_CHUNK_BYTES - c->used < QN_INTAKE_LEAST) {
        /* The full one goes when the last of its users does. */
        c = i->now = begin(i);
    }
    if (c == NULL) {
        return NULL;
    }
    *n = QN_INTAKE_CHUNK_BYTES - c->used;
    return (uint8_t *)c + c->used;
}

struct qn_intake_chunk *qn_intake_take(struct qn_intake *i, size_t n)
{
    struct qn_intake_chunk *c = i->now;
    QN_ASSERT(c != NULL && n <= QN_INTAKE_CHUNK_BYTES - c->used);
    c->used = (uint32_t)QN_MIN(qn_align_up(c->used + n, QN_CACHELINE),
                               (uint64_t)QN_INTAKE_CHUNK_BYTES);
    c->users++;
    return c;
}

void qn_intake_give(struct qn_intake *i, struct qn_intake_chunk *c)
{
    QN_ASSERT(c->users > 0);
    if (--c->users > 0) {
        return;
    }
    if (c == i->now) {
        c->used = HEAD;
    } else if (i->spares == QN_INTAKE_SPARES) {
        free(c);
    } else {
        c->next = i->spare;
        i->spare = c;
        i->spares++;
    }
}

void qn_intake_fini(struct qn_intake *i)
{
    QN_ASSERT(i->now == NULL || i->now->users == 0);
    free(i->now);
    while (i->spare != NULL) {
        struct qn_intake_chunk *c = i->spare;
        i->spare = c->next;
        free(c);
    }
    *i = (struct qn_intake){0};
}
