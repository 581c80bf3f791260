/*
 * A better plan for a proof that takes long: annealing over pairs of ordered
 * trees. A proof goes through all that may be cheaper than what is known; where
 * costs have little structure to meet a good pair is easier.
 *
 * A tree is places and who has them, so that two cores trade places in one
 * step. A move changes one tree: two cores trade, a place moves with all below
 * it, or takes another turn with its parent. Or two cores trade in both trees,
 * which is how a free root changes. Nearly all moves begin with somebody whom
 * the latest core waits for. A trial is two passes over some ten places, 0.1
 * us, in integers: a 2^26th of the cost to begin with.
 *
 * What is made small is the cost and a little of the mean over all cores, which
 * orders the many pairs whose latest cores are equally late.
 *
 * Each run ends with the best tree up for the tree down, and the best tree down
 * for that, by the recursion over subsets.
 */
#include <assert.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/topo/anneal.h"
#include "core/topo/answered_internal.h"

#define UNIT     67108864u /* 2^26: the cost to begin with */
#define HOT      0.02      /* first temperature, part of the cost */
#define COLD     0.0005    /* last one */
#define LATEST   232u      /* of 256 moves, about the latest core */
#define MEAN_BIT 5u        /* the sum over all cores counts 1/32 */
#define RUNS     2u
#define SHARE    2u /* part of the moves left */
#define TRIALS   3u /* take as long as a move */
#define NOBODY   UINT8_MAX

enum { DOWN, UP, TREES };

/* No cost counts for more than UNIT, so that sums fit in 32 bits. */
static_assert(4 * (QN_ANSWERED_MAX - 1) < UINT32_MAX / UNIT, "two paths");

struct places {
    uint8_t parent[QN_ANSWERED_MAX];
    uint8_t first[QN_ANSWERED_MAX]; /* child */
    uint8_t next[QN_ANSWERED_MAX];  /* of the same parent */
    uint8_t core[QN_ANSWERED_MAX];  /* place 0 is the root's */
};

struct pair {
    struct places tree[TREES];
    uint32_t idle[TREES][QN_ANSWERED_MAX]; /* of each core */
    uint64_t cost, merit;
};

struct seek {
    struct qn_answering *p;
    uint32_t n;
    struct qn_anneal anneal;
    uint32_t send[TREES][QN_ANSWERED_MAX * QN_ANSWERED_MAX];
    uint32_t receive[TREES][QN_ANSWERED_MAX * QN_ANSWERED_MAX];
    struct pair now, best;
};

/* ---- what a pair costs ---- */

static void pass(const struct seek *k, const struct places *t, uint32_t way,
                 uint32_t *idle)
{
    const uint32_t *send = k->send[way], *receive = k->receive[way];
    uint32_t when[QN_ANSWERED_MAX], open = 1;
    uint8_t stack[QN_ANSWERED_MAX] = {0};
    when[0] = 0;
    while (open > 0) {
        uint8_t v = stack[--open];
        uint32_t sent = when[v], row = t->core[v] * k->n;
        for (uint8_t c = t->first[v]; c != NOBODY; c = t->next[c]) {
            sent += send[row + t->core[c]];
            when[c] = sent + receive[row + t->core[c]];
            stack[open++] = c;
        }
        idle[t->core[v]] = sent;
    }
}

/* @return Merit. */
static uint64_t judge(const struct seek *k, const uint32_t *down,
                      const uint32_t *up, uint64_t *cost)
{
    uint32_t worst = 0, latency = 0;
    uint64_t sum = 0;
    for (uint32_t v = 0; v < k->n; v++) {
        uint32_t done = down[v] + up[v];
        sum += done;
        worst = QN_MAX(worst, done);
        latency = QN_MAX(latency, down[v]);
    }
    *cost = (uint64_t)worst + (k->p->o->commit ? latency : 0);
    return *cost + (sum >> MEAN_BIT);
}

/* ---- places ---- */

static void take_out(struct places *t, uint8_t v)
{
    uint8_t *link = &t->first[t->parent[v]];
    while (*link != v) {
        link = &t->next[*link];
    }
    *link = t->next[v];
}

/* As the child of u that has `turn` others before it, or the last. */
static void put(struct places *t, uint8_t v, uint8_t u, uint32_t turn)
{
    uint8_t *link = &t->first[u];
    for (; turn > 0 && *link != NOBODY; turn--) {
        link = &t->next[*link];
    }
    t->parent[v] = u;
    t->next[v] = *link;
    *link = v;
}

static bool below(const struct places *t, uint8_t v, uint8_t u)
{
    while (u != v && u != 0) {
        u = t->parent[u];
    }
    return u == v;
}

static uint8_t place_of(const struct places *t, uint32_t core)
{
    uint8_t v = 0;
    while (t->core[v] != core) {
        v++;
    }
    return v;
}

static void trade(struct places *t, uint8_t u, uint8_t v)
{
    uint8_t core = t->core[u];
    t->core[u] = t->core[v];
    t->core[v] = core;
}

static void to_places(struct places *t, const struct qn_shape *s)
{
    uint16_t order[QN_CORES_MAX];
    uint8_t place[QN_ANSWERED_MAX];
    uint32_t n = qn_shape_order(s, order);
    memset(t, NOBODY, sizeof *t);
    for (uint32_t i = 0; i < n; i++) {
        place[order[i]] = (uint8_t)i;
        t->core[i] = (uint8_t)order[i];
        if (i > 0) {
            put(t, (uint8_t)i, place[s->parent[order[i]]], QN_ANSWERED_MAX);
        }
    }
}

static void to_shape(const struct places *t, uint32_t n, struct qn_shape *s)
{
    struct qn_edges e;
    qn_edges_init(&e, n);
    for (uint32_t v = 0; v < n; v++) {
        for (uint8_t c = t->first[v]; c != NOBODY; c = t->next[c]) {
            qn_edges_add(&e, t->core[v], t->core[c]);
        }
    }
    int err = qn_shape_from_edges(s, &e, t->core[0]);
    QN_ASSERT(err == QN_OK);
}

/* ---- moves ---- */

/* The last one to be done; of a commit's tree down sometimes to be told. */
static uint32_t latest(const struct seek *k, uint32_t way, bool told)
{
    const uint32_t *down = k->now.idle[DOWN], *up = k->now.idle[UP];
    uint32_t worst = 0, which = 0;
    for (uint32_t v = 0; v < k->n; v++) {
        uint32_t done = told && way == DOWN ? down[v] : down[v] + up[v];
        which = done > worst ? v : which;
        worst = QN_MAX(worst, done);
    }
    return which;
}

/* A place that makes this one late: itself, those above, or one that any of
 * them serves before. */
static uint8_t culprit(struct seek *k, const struct places *t, uint8_t v)
{
    uint8_t list[2 * QN_ANSWERED_MAX];
    uint32_t count = 0;
    for (uint8_t c = t->first[v]; c != NOBODY; c = t->next[c]) {
        list[count++] = c;
    }
    for (; v != 0; v = t->parent[v]) {
        list[count++] = v;
        for (uint8_t c = t->first[t->parent[v]]; c != v; c = t->next[c]) {
            list[count++] = c;
        }
    }
    return count == 0 ? 0 : list[qn_anneal_below(&k->anneal, count)];
}

/* @return Whether anything has changed. */
static bool change(struct seek *k, struct places *t, uint8_t v, uint32_t kind)
{
    uint8_t u = (uint8_t)qn_anneal_below(&k->anneal, k->n);
    if (v == 0 || (kind < 5 && (u == 0 || u == v))) {
        return false;
    }
    if (kind < 5) {
        trade(t, u, v);
        return true;
    }
    u = kind < 7 ? t->parent[v] : u;
    if (below(t, v, u)) {
        return false;
    }
    take_out(t, v);
    put(t, v, u, qn_anneal_below(&k->anneal, k->n) / 2);
    return true;
}

static bool accept(struct seek *k, const uint32_t *down, const uint32_t *up,
                   uint64_t limit)
{
    uint64_t cost, merit = judge(k, down, up, &cost);
    if (merit > limit) {
        return false;
    }
    k->now.cost = cost;
    k->now.merit = merit;
    return true;
}

static void try_one(struct seek *k, uint32_t dice, uint64_t limit)
{
    uint32_t way = dice & 1, *idle = k->now.idle[way], other[QN_ANSWERED_MAX];
    struct places *t = &k->now.tree[way], before = *t;
    uint8_t v = (uint8_t)qn_anneal_below(&k->anneal, k->n);
    if ((dice >> 8 & 255) < LATEST) {
        bool told = k->p->o->commit && (dice >> 16 & 3) == 0;
        v = culprit(k, t, place_of(t, latest(k, way, told)));
    }
    if (!change(k, t, v, (dice >> 1) % 16)) {
        return;
    }
    pass(k, t, way, other);
    if (accept(k, way == DOWN ? other : k->now.idle[DOWN],
               way == DOWN ? k->now.idle[UP] : other, limit)) {
        memcpy(idle, other, k->n * sizeof *idle);
    } else {
        *t = before;
    }
}

/* Two cores trade in both trees. */
static void try_both(struct seek *k, uint64_t limit)
{
    struct pair before = k->now;
    uint32_t u = qn_anneal_below(&k->anneal, k->n);
    uint32_t v = qn_anneal_below(&k->anneal, k->n);
    uint32_t root = k->now.tree[DOWN].core[0];
    if (u == v || (k->p->o->root != QN_ROOT_FREE && (u == root || v == root))) {
        return;
    }
    for (uint32_t way = 0; way < TREES; way++) {
        struct places *t = &k->now.tree[way];
        trade(t, place_of(t, u), place_of(t, v));
        pass(k, t, way, k->now.idle[way]);
    }
    if (!accept(k, k->now.idle[DOWN], k->now.idle[UP], limit)) {
        k->now = before;
    }
}

/* ---- runs ---- */

static uint32_t scaled(const struct seek *k, double cost)
{
    return (uint32_t)QN_MIN(cost / k->p->out->cost * UNIT, (double)UNIT);
}

static void begin(struct seek *k)
{
    const struct qn_machine *way[TREES] = {k->p->m, k->p->back.m};
    for (uint32_t d = 0; d < TREES; d++) {
        for (uint32_t i = 0; i < k->n * k->n; i++) {
            k->send[d][i] = scaled(k, way[d]->send[i]);
            k->receive[d][i] = scaled(k, way[d]->receive[i]);
        }
    }
    to_places(&k->now.tree[DOWN], &k->p->out->down);
    to_places(&k->now.tree[UP], &k->p->out->up);
    for (uint32_t d = 0; d < TREES; d++) {
        pass(k, &k->now.tree[d], d, k->now.idle[d]);
    }
    (void)accept(k, k->now.idle[DOWN], k->now.idle[UP], UINT64_MAX);
    k->best = k->now;
}

static void run(struct seek *k, uint64_t trials)
{
    begin(k);
    qn_anneal_begin(&k->anneal, trials, HOT * UNIT, COLD * UNIT);
    for (uint64_t i = 0; i < trials; i++) {
        uint32_t dice = (uint32_t)(qn_anneal_random(&k->anneal) >> 40);
        uint64_t limit = k->now.merit + qn_anneal_slack(&k->anneal);
        if ((dice >> 1) % 16 == 15) {
            try_both(k, limit);
        } else {
            try_one(k, dice, limit);
        }
        if (k->now.cost < k->best.cost) {
            k->best = k->now;
        }
    }
}

void qn_answering_seek(struct qn_answering *p)
{
    struct seek k = {.p = p, .n = p->m->n, .anneal = {.random = 1}};
    struct qn_shape down, up;
    uint64_t moves = p->left / SHARE / RUNS;
    for (uint32_t i = 0; i < RUNS; i++) {
        qn_answering_spend(p, moves);
        run(&k, moves * TRIALS);
        to_shape(&k.best.tree[DOWN], k.n, &down);
        to_shape(&k.best.tree[UP], k.n, &up);
        (void)qn_answering_offer(p, &down, &up);
        qn_answering_answer(p, &down, &up);
        qn_answering_tell(p, &up, &down);
    }
}
