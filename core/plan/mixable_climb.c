/*
 * Hill climbing. A move changes T of two chains only, from the old and from the
 * new parent up to the root; what it was is kept, for most moves are taken
 * back.
 *
 * Annealing, as the planner has it, finds better trees and takes a hundred
 * times as many moves. A group plans a tree whenever a member ends, while its
 * clients wait.
 */
#include "core/plan/mixable_climb.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"

#define LESS (1 - 1e-9) /* else equal trees are taken for faster ones */

struct climb {
    const struct qn_machine *costs;
    const qn_node_t *order;
    uint32_t n;
    uint32_t moves; /* that are left */
    uint32_t parent[QN_NODES_MAX];
    uint64_t children[QN_NODES_MAX]; /* masks */
    double below[QN_NODES_MAX];      /* T */
};

struct child {
    uint32_t rank;
    double send, key; /* key: r + T */
};

/* The children of a rank in the best order. @return how many. */
static uint32_t sorted(const struct climb *c, uint32_t v, struct child *out)
{
    uint32_t count = 0;
    for (uint64_t m = c->children[v]; m != 0; m &= m - 1) {
        uint32_t u = (uint32_t)__builtin_ctzll(m);
        struct child x = {
            .rank = u,
            .send = qn_send_cost(c->costs, c->order[v], c->order[u]),
            .key = qn_receive_cost(c->costs, c->order[v], c->order[u]) +
                   c->below[u]};
        uint32_t at = count++;
        for (; at > 0 && out[at - 1].key < x.key; at--) {
            out[at] = out[at - 1];
        }
        out[at] = x;
    }
    return count;
}

static double time_below(const struct climb *c, uint32_t v)
{
    struct child child[QN_NODES_MAX];
    uint32_t count = sorted(c, v, child);
    double sent = 0, last = 0;
    for (uint32_t i = 0; i < count; i++) {
        sent += child[i].send;
        last = QN_MAX(last, sent + child[i].key);
    }
    return last;
}

static void update_up(struct climb *c, uint32_t v)
{
    for (;; v = c->parent[v]) {
        double was = c->below[v];
        c->below[v] = time_below(c, v);
        if (v == 0 || c->below[v] == was) {
            return;
        }
    }
}

static void hang(struct climb *c, uint32_t v, uint32_t to)
{
    uint32_t from = c->parent[v];
    c->children[from] &= ~((uint64_t)1 << v);
    c->children[to] |= (uint64_t)1 << v;
    c->parent[v] = to;
    update_up(c, from);
    update_up(c, to);
}

/* @return whether v hangs better now. */
static bool move(struct climb *c, uint32_t v)
{
    double before[QN_NODES_MAX], best = c->below[0];
    uint32_t from = c->parent[v], to = from;
    memcpy(before, c->below, sizeof before);
    for (uint32_t u = 0; u < v && c->moves > 0; u++) {
        if (u == from) {
            continue;
        }
        c->moves--;
        hang(c, v, u);
        if (c->below[0] < best * LESS) {
            best = c->below[0];
            to = u;
        }
        c->children[u] &= ~((uint64_t)1 << v);
        c->children[from] |= (uint64_t)1 << v;
        c->parent[v] = from;
        memcpy(c->below, before, sizeof before);
    }
    if (to != from) {
        hang(c, v, to);
    }
    return to != from;
}

static void take(struct climb *c, const struct qn_edges *e)
{
    QN_ASSERT(e->n <= QN_NODES_MAX);
    QN_ASSERT(e->count == e->n - 1);
    for (uint32_t i = 0; i < e->count; i++) {
        QN_ASSERT(e->parent[i] < e->child[i]);
        c->parent[e->child[i]] = e->parent[i];
        c->children[e->parent[i]] |= (uint64_t)1 << e->child[i];
    }
    for (uint32_t v = c->n; v-- > 0;) { /* children come later */
        c->below[v] = time_below(c, v);
    }
}

static void give(const struct climb *c, struct qn_edges *e)
{
    qn_edges_init(e, c->n);
    for (uint32_t v = 0; v < c->n; v++) {
        struct child child[QN_NODES_MAX];
        uint32_t count = sorted(c, v, child);
        for (uint32_t i = 0; i < count; i++) {
            qn_edges_add(e, v, child[i].rank);
        }
    }
}

uint32_t qn_mixable_climb(struct qn_edges *e, const struct qn_machine *costs,
                          const qn_node_t *order, uint32_t moves)
{
    struct climb c = {
        .costs = costs, .order = order, .n = e->n, .moves = moves};
    bool better = true;
    take(&c, e);
    while (better && c.moves > 0) {
        better = false;
        for (uint32_t v = 1; v < c.n; v++) {
            better |= move(&c, v);
        }
    }
    give(&c, e);
    return moves - c.moves;
}
