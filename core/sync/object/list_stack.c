/*
 * A list of values and a list of free nodes. All words are relaxed: the
 * delegate orders its operations.
 */
#include "core/sync/object/list_stack.h"

#include "core/base/atomic.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sync/object/collection_internal.h"
#include "core/sync/object/mutant.h"

enum { PUSH, POP };

struct list_node {
    qn_a64 value;
    qn_a32 next; /* number; 0: none */
};

/* Shared. The first line is written by format only. */
struct list_stack {
    alignas(QN_CACHELINE) uint32_t nodes;
    alignas(QN_CACHELINE) qn_a32 top;
    qn_a32 free;
};

static struct list_node *nodes_of(struct list_stack *s)
{
    return (struct list_node *)(s + 1) - 1; /* from 1 */
}

static size_t nodes_bytes(uint32_t nodes)
{
    return qn_align_up(nodes * sizeof(struct list_node), QN_CACHELINE);
}

static void *delegate_of(struct list_stack *s)
{
    return (char *)(s + 1) + nodes_bytes(s->nodes);
}

static size_t list_bytes(const struct qn_collection_opts *o)
{
    struct qn_delegate_opts d = qn_collection_delegate(o);
    size_t each = qn_delegate_bytes(&d);
    return each == 0
               ? 0
               : sizeof(struct list_stack) + nodes_bytes(o->capacity) + each;
}

static void push(struct list_stack *s, qn_a32 *top, uint32_t number)
{
    qn_store(&nodes_of(s)[number].next, qn_load(top, QN_RELAXED), QN_RELAXED);
    qn_store(top, number, QN_RELAXED);
}

/* @return its number; 0: the list is empty. */
static uint32_t pop(struct list_stack *s, qn_a32 *top)
{
    uint32_t number = qn_load(top, QN_RELAXED);
    if (number != 0) {
        qn_store(top, qn_load(&nodes_of(s)[number].next, QN_RELAXED),
                 QN_RELAXED);
    }
    return number;
}

static int list_format(void *memory, const struct qn_collection_opts *o)
{
    struct list_stack *s = memory;
    s->nodes = o->capacity;
    for (uint32_t i = s->nodes; i > 0; i--) {
        push(s, &s->free, i);
    }
    return qn_collection_delegates_format(delegate_of(s), 1, o);
}

static uint64_t push_value(struct list_stack *s, uint64_t value)
{
    uint32_t number = pop(s, &s->free);
    if (number == 0) {
        return QN_NOTHING;
    }
    qn_store(&nodes_of(s)[number].value, value, QN_RELAXED);
    if (QN_OBJECT_MUTANT(LIST_BELOW) && qn_load(&s->top, QN_RELAXED) != 0) {
        uint32_t top = qn_load(&s->top, QN_RELAXED);
        push(s, &nodes_of(s)[top].next, number);
    } else {
        push(s, &s->top, number);
    }
    return 0;
}

static uint64_t pop_value(struct list_stack *s)
{
    uint32_t number = QN_OBJECT_MUTANT(LIST_PEEK) ? qn_load(&s->top, QN_RELAXED)
                                                  : pop(s, &s->top);
    if (number == 0) {
        return QN_NOTHING;
    }
    if (!QN_OBJECT_MUTANT(LIST_KEPT) && !QN_OBJECT_MUTANT(LIST_PEEK)) {
        push(s, &s->free, number);
    }
    return qn_load(&nodes_of(s)[number].value, QN_RELAXED);
}

static uint64_t run(void *ctx, uint32_t op, uint64_t arg)
{
    return op == PUSH ? push_value(ctx, arg) : pop_value(ctx);
}

static int list_open(struct qn_collection *c)
{
    return qn_collection_delegates_open(c, delegate_of(c->memory), 0, 1, run,
                                        c->memory);
}

static int list_join(struct qn_collection_client *c,
                     const struct qn_collection_join_opts *o)
{
    return qn_collection_delegates_join(c, 1, o);
}

static void list_leave(struct qn_collection_client *c)
{
    qn_collection_delegates_leave(c, 1);
}

static int list_put(struct qn_collection_client *c, uint64_t value)
{
    uint64_t result;
    return qn_collection_call(c, 0, PUSH, value, &result);
}

static int list_take(struct qn_collection_client *c, uint64_t *value)
{
    uint64_t result;
    int err = qn_collection_call(c, 0, POP, 0, &result);
    if (err == QN_OK) {
        *value = result;
    }
    return err;
}

const struct qn_collection_type qn_list_stack = {
    .name = "list",
    .order = QN_LIFO,
    .value_max = QN_VALUE_MAX,
    .delegates = 1,
    .bytes = list_bytes,
    .format = list_format,
    .open = list_open,
    .join = list_join,
    .leave = list_leave,
    .put = list_put,
    .take = list_take,
};
