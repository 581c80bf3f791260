/*
 * One heap of messages, ordered by visibility, then sender, then operation.
 * A service begins at max(visible, free), and all it triggers is visible
 * later, because sends take time; so taking messages from the heap in order
 * serves every core's queue in order, and no core needs a queue of its own.
 */
#include "core/topo/pipeline_sim.h"

#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

struct message {
    double visible;
    uint32_t op;
    uint16_t from, to; /* from == to: the root issues an operation */
    bool answer;       /* a core may answer another core than the one that
                          asked, so the sender does not say it */
};

struct sim {
    const struct qn_machine *m;
    const struct qn_shape *s;  /* NULL: a ring */
    const struct qn_shape *up; /* the tree of answers */
    const struct qn_diamond_ring *r;
    struct qn_pipeline_sim_opts o;
    bool acks;
    bool out_of_memory;
    double free[QN_CORES_MAX];    /* by core */
    uint32_t needs[QN_CORES_MAX]; /* by core: messages per operation */
    uint16_t id[QN_CORES_MAX];    /* by core, of a ring */
    uint16_t *got;                /* [ops * n] messages received */
    struct message *heap;
    size_t count, cap;
    double last;
};

static bool before(const struct message *a, const struct message *b)
{
    if (a->visible != b->visible) {
        return a->visible < b->visible;
    }
    if (a->from != b->from) {
        return a->from < b->from;
    }
    return a->op != b->op ? a->op < b->op : a->to < b->to;
}

static void push(struct sim *x, struct message e)
{
    if (x->count == x->cap) {
        size_t cap = x->cap * 2 + 64;
        struct message *more = realloc(x->heap, cap * sizeof *more);
        if (more == NULL) {
            x->out_of_memory = true;
            return;
        }
        x->heap = more;
        x->cap = cap;
    }
    size_t i = x->count++;
    for (; i > 0 && before(&e, &x->heap[(i - 1) / 2]); i = (i - 1) / 2) {
        x->heap[i] = x->heap[(i - 1) / 2];
    }
    x->heap[i] = e;
}

static struct message pop(struct sim *x)
{
    struct message top = x->heap[0], e = x->heap[--x->count];
    size_t i = 0;
    for (size_t c = 1; c < x->count; c = 2 * i + 1) {
        c += c + 1 < x->count && before(&x->heap[c + 1], &x->heap[c]);
        if (!before(&x->heap[c], &e)) {
            break;
        }
        x->heap[i] = x->heap[c];
        i = c;
    }
    x->heap[i] = e;
    return top;
}

static double send(struct sim *x, uint32_t op, uint32_t u, uint32_t v, double t)
{
    t += qn_send_cost(x->m, u, v);
    push(x, (struct message){t, op, (uint16_t)u, (uint16_t)v, false});
    return t;
}

static double answer(struct sim *x, uint32_t op, uint32_t v, double t)
{
    uint16_t to = x->up->parent[v];
    t += qn_send_cost(x->m, v, to);
    push(x, (struct message){t, op, (uint16_t)v, to, true});
    return t;
}

/* Messages to all children, or to all successors. */
static double forward(struct sim *x, uint32_t op, uint32_t v, double t)
{
    if (x->s != NULL) {
        for (uint32_t k = 0; k < x->s->count[v]; k++) {
            t = send(x, op, v, qn_shape_children(x->s, v)[k], t);
        }
        return t;
    }
    const struct qn_diamond_ring *r = x->r;
    uint32_t id = x->id[v];
    for (uint32_t i = r->first[id]; i < r->first[id + 1]; i++) {
        t = send(x, op, v, r->core[r->next[i]], t);
    }
    return t;
}

static uint32_t root_of(const struct sim *x)
{
    return x->s != NULL ? x->s->root : x->r->core[0];
}

static void complete(struct sim *x, double t)
{
    x->last = QN_MAX(x->last, t);
}

/* The root: send, then work, then issue the next one. */
static double issue(struct sim *x, uint32_t op, uint32_t v, double t)
{
    t = forward(x, op, v, t) + x->o.work;
    if (x->needs[v] == 0) {
        complete(x, t);
    }
    if (op + 1 < x->o.ops) {
        push(x, (struct message){t, op + 1, (uint16_t)v, (uint16_t)v, false});
    }
    return t;
}

/* A tree: the message from the parent, or the acknowledgement of a child. */
static double serve_tree(struct sim *x, const struct message *e, double t)
{
    uint32_t v = e->to;
    if (!e->answer) {
        t = forward(x, e->op, v, t) + x->o.work;
    }
    uint32_t got = ++x->got[(size_t)e->op * x->m->n + v];
    if (!x->acks || (got == x->needs[v] && v == x->s->root)) {
        complete(x, t);
    } else if (got == x->needs[v]) {
        t = answer(x, e->op, v, t);
    }
    return t;
}

/* A ring: work on the first message, forward on the last. */
static double serve_ring(struct sim *x, const struct message *e, double t)
{
    uint32_t v = e->to;
    bool root = v == root_of(x);
    uint32_t got = ++x->got[(size_t)e->op * x->m->n + v];
    t += got == 1 && !root ? x->o.work : 0;
    if (got < x->needs[v]) {
        return t;
    }
    if (root) {
        complete(x, t);
        return t;
    }
    return forward(x, e->op, v, t);
}

static void serve(struct sim *x, const struct message *e)
{
    uint32_t v = e->to;
    double start = QN_MAX(e->visible, x->free[v]);
    if (e->from == v) {
        x->free[v] = issue(x, e->op, v, start);
        return;
    }
    double r = qn_receive_cost(x->m, e->from, v);
    double t = start + (e->visible < start ? x->o.q * r : r);
    x->free[v] = x->s != NULL ? serve_tree(x, e, t) : serve_ring(x, e, t);
}

static int run(struct sim *x, double *cycles)
{
    if (x->o.ops == 0 || x->o.ops > QN_PIPELINE_SIM_MAX || !(x->o.work >= 0) ||
        !(x->o.q >= 0 && x->o.q <= 1)) {
        return QN_EINVAL;
    }
    x->got = calloc((size_t)x->o.ops * x->m->n, sizeof *x->got);
    x->out_of_memory = x->got == NULL;
    uint16_t root = (uint16_t)root_of(x);
    if (!x->out_of_memory) {
        push(x, (struct message){0, 0, root, root, false});
    }
    while (x->count > 0 && !x->out_of_memory) {
        struct message e = pop(x);
        serve(x, &e);
    }
    free(x->heap);
    free(x->got);
    if (x->out_of_memory) {
        return QN_ENOMEM;
    }
    *cycles = x->last;
    return QN_OK;
}

int qn_pipeline_sim_tree(const struct qn_machine *m, const struct qn_shape *s,
                         bool acks, const struct qn_pipeline_sim_opts *o,
                         double *cycles)
{
    if (acks) {
        return qn_pipeline_sim_trees(m, s, s, o, cycles);
    }
    QN_ASSERT(s->n == m->n);
    struct sim x = {.m = m, .s = s, .o = *o};
    for (uint32_t v = 0; v < m->n; v++) {
        x.needs[v] = v != s->root ? 1 : 0;
    }
    return run(&x, cycles);
}

int qn_pipeline_sim_trees(const struct qn_machine *m,
                          const struct qn_shape *down,
                          const struct qn_shape *up,
                          const struct qn_pipeline_sim_opts *o, double *cycles)
{
    QN_ASSERT(down->n == m->n && up->n == m->n && down->root == up->root);
    struct sim x = {.m = m, .s = down, .up = up, .o = *o, .acks = true};
    for (uint32_t v = 0; v < m->n; v++) {
        x.needs[v] = up->count[v] + (v != up->root ? 1u : 0u);
    }
    return run(&x, cycles);
}

int qn_pipeline_sim_ring(const struct qn_machine *m,
                         const struct qn_diamond_ring *r,
                         const struct qn_pipeline_sim_opts *o, double *cycles)
{
    QN_ASSERT(r->o.n == m->n);
    struct sim x = {.m = m, .r = r, .o = *o};
    for (uint32_t id = 0; id < m->n; id++) {
        x.needs[r->core[id]] = r->preds[id];
        x.id[r->core[id]] = (uint16_t)id;
    }
    return run(&x, cycles);
}
