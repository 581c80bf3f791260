/*
 * What a program has without this library: a mutex of the system around a
 * counter, a ring and an array.
 */
#include <pthread.h>

#include "core/base/err.h"
#include "loadgen/sync/subject.h"

struct guarded {
    pthread_mutex_t mutex;
    uint64_t first, end; /* of the ring; a stack has no first */
    uint64_t value[];    /* [capacity] */
};

static const char *name(uint32_t i)
{
    return i == 0 ? "mutex" : NULL;
}

static int create(struct qn_subject *s)
{
    struct guarded *g =
        qn_subject_memory(sizeof *g + s->o.capacity * sizeof(uint64_t));
    s->memory = g;
    return g != NULL && pthread_mutex_init(&g->mutex, NULL) == 0 ? QN_OK
                                                                 : QN_ENOMEM;
}

static void destroy(struct qn_subject *s)
{
    struct guarded *g = s->memory;
    (void)pthread_mutex_destroy(&g->mutex);
}

static int join(struct qn_subject *s, struct qn_subject_client *c)
{
    (void)s;
    (void)c;
    return QN_OK;
}

static void leave(struct qn_subject *s, struct qn_subject_client *c)
{
    (void)s;
    (void)c;
}

static uint64_t put(struct qn_subject *s, struct guarded *g, uint64_t value)
{
    if (g->end - g->first == s->o.capacity) {
        return QN_SUBJECT_FULL;
    }
    g->value[g->end++ % s->o.capacity] = value;
    return QN_SUBJECT_DONE;
}

static uint64_t take(struct qn_subject *s, struct guarded *g)
{
    if (g->end == g->first) {
        return QN_SUBJECT_NOTHING;
    }
    return g
        ->value[(s->type->kind == QN_SUBJECT_QUEUE ? g->first++ : --g->end) %
                s->o.capacity];
}

static uint64_t operate(struct qn_subject *s, struct qn_subject_client *c,
                        enum qn_subject_op op, uint64_t value)
{
    struct guarded *g = s->memory;
    (void)c;
    (void)pthread_mutex_lock(&g->mutex);
    const uint64_t result = op == QN_SUBJECT_ADD   ? qn_subject_work(s)
                            : op == QN_SUBJECT_PUT ? put(s, g, value)
                                                   : take(s, g);
    (void)pthread_mutex_unlock(&g->mutex);
    return result;
}

#define MUTEX(of)                                                              \
    {                                                                          \
        .family = "mutex", .kind = (of), .plain = (of) == QN_SUBJECT_COUNTER,  \
        .name = name, .create = create, .destroy = destroy, .join = join,      \
        .leave = leave, .operate = operate,                                    \
    }

const struct qn_subject_type qn_subject_mutex_count = MUTEX(QN_SUBJECT_COUNTER);
const struct qn_subject_type qn_subject_mutex_queue = MUTEX(QN_SUBJECT_QUEUE);
const struct qn_subject_type qn_subject_mutex_stack = MUTEX(QN_SUBJECT_STACK);
