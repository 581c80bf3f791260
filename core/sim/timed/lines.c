#include "core/sim/timed/lines.h"

#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/err.h"

#define SLOTS_FIRST 4096u /* a power of two */
#define CHUNK_LINES 1024u

struct chunk {
    struct chunk *before;
    alignas(16) uint8_t bytes[];
};

struct qn_lines {
    struct qn_prices *prices;
    struct qn_line **slot; /* [slots], open addressing */
    uint32_t slots;        /* a power of two, at least twice `count` */
    uint32_t count;
    size_t entry_bytes;
    struct chunk *chunk; /* the newest */
    uint32_t used;       /* entries of it */
};

static uint32_t home(uintptr_t base, uint32_t slots)
{
    return (uint32_t)(((uint64_t)base * UINT64_C(0x9e3779b97f4a7c15)) >> 32) &
           (slots - 1);
}

int qn_lines_create(struct qn_lines **out, struct qn_prices *prices)
{
    struct qn_lines *l = calloc(1, sizeof *l);
    struct qn_line **slot = calloc(SLOTS_FIRST, sizeof(struct qn_line *));
    if (l == NULL || slot == NULL) {
        free(slot);
        free(l);
        return QN_ENOMEM;
    }
    l->prices = prices;
    l->slot = slot;
    l->slots = SLOTS_FIRST;
    l->entry_bytes =
        (sizeof(struct qn_line) + prices->line_bytes + 15) / 16 * 16;
    l->used = CHUNK_LINES;
    *out = l;
    return QN_OK;
}

void qn_lines_destroy(struct qn_lines *l)
{
    if (l == NULL) {
        return;
    }
    while (l->chunk != NULL) {
        struct chunk *c = l->chunk;
        l->chunk = c->before;
        free(c);
    }
    free(l->slot);
    free(l);
}

static void grow(struct qn_lines *l)
{
    uint32_t slots = l->slots * 2;
    struct qn_line **slot = calloc(slots, sizeof(struct qn_line *));
    QN_ASSERT(slot != NULL);
    for (uint32_t i = 0; i < l->slots; i++) {
        if (l->slot[i] != NULL) {
            uint32_t at = home(l->slot[i]->base, slots);
            while (slot[at] != NULL) {
                at = (at + 1) & (slots - 1);
            }
            slot[at] = l->slot[i];
        }
    }
    free(l->slot);
    l->slot = slot;
    l->slots = slots;
}

static struct qn_line *make(struct qn_lines *l, uintptr_t base)
{
    if (l->used == CHUNK_LINES) {
        struct chunk *c = malloc(sizeof *c + CHUNK_LINES * l->entry_bytes);
        QN_ASSERT(c != NULL);
        c->before = l->chunk;
        l->chunk = c;
        l->used = 0;
    }
    void *at = l->chunk->bytes + l->used++ * l->entry_bytes;
    struct qn_line *line = at;
    line->base = base;
    line->number = l->count++;
    line->version = 0;
    line->changed = 0;
    line->watchers = NULL;
    l->prices->line_init(l->prices, line->state, base);
    return line;
}

struct qn_line *qn_lines_at(struct qn_lines *l, uintptr_t base)
{
    uint32_t at = home(base, l->slots);
    while (l->slot[at] != NULL) {
        if (l->slot[at]->base == base) {
            return l->slot[at];
        }
        at = (at + 1) & (l->slots - 1);
    }
    if (2 * (l->count + 1) > l->slots) {
        grow(l);
        return qn_lines_at(l, base);
    }
    l->slot[at] = make(l, base);
    return l->slot[at];
}

uint32_t qn_lines_count(const struct qn_lines *l)
{
    return l->count;
}
