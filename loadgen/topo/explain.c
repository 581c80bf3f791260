/*
 * One paragraph per core and pass, in the order of time. For a broadcast the
 * order of the children is explained by tails: the time from the end of a send
 * until that child's whole subtree has the message, r(v,c) + T(c). Largest tail
 * first is the best order a sender can choose (core/topo/README.md); for a tree
 * with another order the text says what that order costs its own subtree.
 */
#include "loadgen/topo/explain.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"

struct story {
    const struct qn_topology_spec *c;
    const struct qn_machine *m;
    const struct qn_timeline *t;
    const struct qn_shape *s;     /* of the pass; NULL: a ring */
    double subtree[QN_CORES_MAX]; /* T(v) of the broadcast */
    FILE *to;
};

static uint32_t os(const struct story *x, uint32_t v)
{
    return x->m->core[v].os;
}

/* ---- tails ---- */

static double tail(const struct story *x, uint32_t v, uint32_t c)
{
    return qn_receive_cost(x->m, v, c) + x->subtree[c];
}

/* T(v) if v sends to its children in this order. */
static double in_order(const struct story *x, uint32_t v, const uint16_t *child,
                       uint32_t count)
{
    double sent = 0, last = 0;
    for (uint32_t k = 0; k < count; k++) {
        sent += qn_send_cost(x->m, v, child[k]);
        last = QN_MAX(last, sent + tail(x, v, child[k]));
    }
    return last;
}

static void find_subtrees(struct story *x)
{
    uint16_t order[QN_CORES_MAX];
    for (uint32_t i = qn_shape_order(x->s, order); i-- > 0;) {
        uint32_t v = order[i];
        x->subtree[v] =
            in_order(x, v, qn_shape_children(x->s, v), x->s->count[v]);
    }
}

/* Children by tail, largest first, stable. */
static void by_tail(const struct story *x, uint32_t v, uint16_t *child)
{
    for (uint32_t k = 0; k < x->s->count[v]; k++) {
        uint16_t c = qn_shape_children(x->s, v)[k];
        uint32_t at = k;
        for (; at > 0 && tail(x, v, child[at - 1]) < tail(x, v, c); at--) {
            child[at] = child[at - 1];
        }
        child[at] = c;
    }
}

static void say_why(const struct story *x, uint32_t v)
{
    uint16_t best[QN_CORES_MAX] = {0};
    uint32_t count = x->s->count[v];
    if (count < 2) {
        return;
    }
    by_tail(x, v, best);
    double least = in_order(x, v, best, count), loss = x->subtree[v] - least;
    bool same = true;
    for (uint32_t k = 0; k < count; k++) {
        same = same && best[k] == qn_shape_children(x->s, v)[k];
    }
    if (same) {
        fputs("        why: largest remaining time first; no other order is "
              "faster\n",
              x->to);
        return;
    }
    fputs("        why: the topology fixes this order; largest remaining time "
          "first, ",
          x->to);
    for (uint32_t k = 0; k < count; k++) {
        fprintf(x->to, "%s%u", k > 0 ? " " : "", os(x, best[k]));
    }
    fprintf(x->to,
            loss > 0 ? ", would finish this subtree %.1f earlier\n"
                     : ", would change nothing\n",
            loss);
}

/* ---- one core ---- */

struct event {
    double at;
    uint16_t core;
};

static int by_time(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    if (x->at != y->at) {
        return x->at < y->at ? -1 : 1;
    }
    return (x->core > y->core) - (x->core < y->core);
}

static void say_span(const struct story *x, const struct qn_span *b)
{
    if (!b->send) {
        fprintf(x->to, "        receives from %u: %.1f to %.1f\n",
                os(x, b->peer), b->begin, b->end);
        return;
    }
    fprintf(x->to, "        sends to %u: %.1f to %.1f", os(x, b->peer),
            b->begin, b->end);
    if (x->s != NULL && x->s->parent[b->peer] == b->core) {
        fprintf(x->to, "; it has the message at %.1f",
                b->end + qn_receive_cost(x->m, b->core, b->peer));
        if (x->s->count[b->peer] > 0) {
            fprintf(x->to, ", its whole subtree at %.1f",
                    b->end + tail(x, b->core, b->peer));
        }
    }
    fputs("\n", x->to);
}

/* Why a core that collects messages has all of them only at this time: it
 * receives messages in the order of arrival, so either the last one came late,
 * or they queued. A core of a ring that has received no message yet is the
 * root, which sends first. */
static void say_why_then(const struct story *x, uint32_t phase, uint32_t v)
{
    const struct qn_span *last = NULL;
    double idle = 0, before = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < x->t->count; i++) {
        const struct qn_span *b = &x->t->span[i];
        if (b->phase == phase && b->core == v && !b->send) {
            idle = b->begin - before; /* before the last one */
            last = b;
            count++;
        }
        before = b->phase == phase && b->core == v ? b->end : before;
    }
    const char *until = x->s == NULL      ? "forwards when it has all messages"
                        : v == x->s->root ? "is done when it has all messages"
                                          : "answers when it has all messages";
    if (x->s == NULL && v == x->c->root) {
        until =
            "the root sends to all its rings, and is done when all are back";
    }
    if (count == 0) {
        fputs("        why then: no core answers to it, so it does not wait\n",
              x->to);
    } else if (count == 1) {
        fprintf(x->to, "        why then: %s; it waits for %u only\n", until,
                os(x, last->peer));
    } else if (idle > 0) {
        fprintf(x->to,
                "        why then: %s; it waited %.1f for %u, the last of %u\n",
                until, idle, os(x, last->peer), count);
    } else {
        fprintf(x->to,
                "        why then: %s; %u messages queued, the last one from "
                "%u\n",
                until, count, os(x, last->peer));
    }
}

static void say_core(const struct story *x, uint32_t phase, uint32_t v,
                     double at, bool down)
{
    const struct qn_machine_core *c = &x->m->core[v];
    bool quiet = true;
    fprintf(x->to, "%10.1f  core %u (socket %u, node %u, cache %u)", at, c->os,
            c->socket, c->node, c->cache);
    if (down && v == x->s->root) {
        fputs(", the root, begins\n", x->to);
    } else if (down) {
        fprintf(x->to, " receives from %u\n", os(x, x->s->parent[v]));
    } else {
        fputs("\n", x->to);
    }
    for (uint32_t i = 0; i < x->t->count; i++) {
        const struct qn_span *b = &x->t->span[i];
        if (b->phase == phase && b->core == v && !(down && !b->send)) {
            say_span(x, b);
            quiet = false;
        }
    }
    if (quiet) {
        fputs("        sends to no core\n", x->to);
    } else if (down) {
        say_why(x, v);
    } else {
        say_why_then(x, phase, v);
    }
}

/* The time by which a core is sorted: when it has received its message; for
 * cores that only send, when they begin to send. */
static double event_time(const struct story *x, uint32_t phase, uint32_t v,
                         bool down)
{
    double first = x->t->phase[phase].begin;
    bool any = false;
    for (uint32_t i = 0; i < x->t->count; i++) {
        const struct qn_span *b = &x->t->span[i];
        if (b->phase != phase || b->core != v) {
            continue;
        }
        if (down && !b->send) {
            return b->end;
        }
        first = any ? QN_MIN(first, b->begin) : b->begin;
        any = true;
    }
    return first;
}

static void say_phase(const struct story *x, uint32_t phase, bool down)
{
    struct event event[QN_CORES_MAX];
    const struct qn_phase *p = &x->t->phase[phase];
    for (uint32_t v = 0; v < x->m->n; v++) {
        event[v] = (struct event){event_time(x, phase, v, down), (uint16_t)v};
    }
    qsort(event, x->m->n, sizeof *event, by_time);
    fprintf(x->to, "\n%s, cycles %.1f to %.1f\n", p->name, p->begin, p->end);
    for (uint32_t i = 0; i < x->m->n; i++) {
        say_core(x, phase, event[i].core, event[i].at, down);
    }
    if (!down) {
        fputs("  Messages are received in the order in which they become "
              "visible; "
              "the order of\n  children does not matter on the way up.\n",
              x->to);
    }
}

static bool goes_down(const struct qn_timeline *t, uint32_t phase,
                      enum qn_goal goal)
{
    return goal == QN_GOAL_BARRIER ? phase == 1
           : goal == QN_GOAL_2PC
               ? phase != 1
               : goal != QN_GOAL_REDUCE && phase == 0 && t->phases > 0;
}

int qn_tree_explain(const struct qn_topology_spec *c,
                    const struct qn_machine *m, enum qn_goal goal, double q,
                    FILE *to)
{
    struct qn_timeline *t;
    int err = qn_topology_spec_timeline(&t, c, m, goal, q);
    struct story *x = err == QN_OK ? calloc(1, sizeof *x) : NULL;
    if (err != QN_OK || x == NULL) {
        if (err == QN_OK) {
            free(t);
        }
        return err != QN_OK ? err : QN_ENOMEM;
    }
    *x = (struct story){.c = c, .m = m, .t = t, .to = to};
    for (uint32_t i = 0; i < t->phases; i++) {
        bool down = c->ring == NULL && goes_down(t, i, goal);
        x->s = c->ring != NULL ? NULL : down ? &c->down : &c->up;
        if (down) {
            find_subtrees(x);
        }
        say_phase(x, i, down);
    }
    if (goal == QN_GOAL_THROUGHPUT || goal == QN_GOAL_STREAM) {
        fprintf(to,
                "\n%s on %s: %.1f cycles of the busiest core per operation; a "
                "single one takes %.1f\n",
                qn_goal_name(goal), c->name,
                qn_topology_spec_cost(c, m, goal, q), t->end);
    } else {
        fprintf(to, "\n%s on %s: %.1f cycles\n", qn_goal_name(goal), c->name,
                t->end);
    }
    free(x);
    free(t);
    return QN_OK;
}
