/*
 * A search begins at the best candidate, and the temperature falls once.
 * Temperatures are parts of the cost. Exploring from two candidates at 10 % and
 * polishing the better result costs a little more at the same moves (broadcast
 * and acknowledged broadcast; nothing seen for reductions).
 *
 * Two trees: a barrier's share only the root. Each direction proposes one, and
 * with the better of the two both are searched again. An acknowledged broadcast
 * is searched as one tree, and from there as two (plan_pair.c). A plan of one
 * tree is the same search without the second half: so it is never better.
 *
 * Not here: the earliest completing edge as one more candidate. Alone it beats
 * all rules (broadcast by 12 %, two-phase commit by 15 % in the mean), but
 * after the search nothing is left of it: -0.2 to +0.4 %, 14 machines, 3 seeds.
 */
#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/plan/planner_internal.h"
#include "core/plan/search/tree_search.h"
#include "core/topo/adaptive.h"

#define HOT         0.03 /* first temperature */
#define LUKEWARM    0.02 /* first one for a tree that was searched before */
#define COLD        3e-5 /* last one */
#define PAIR_MOVES  2u   /* of two trees, for each move of the one before */
#define ROOT_SHARE  5u   /* part of a barrier's moves that seeks each root */
/* Default budgets at MOVES_CORES cores, where they take about 30 ms, and 40
 * with costs without any structure; fewer cores get up to twice as many, which
 * cost about the same. A free root takes a second search, with AGAIN as many.
 */
#define MOVES_CORES 256u
#define MOVES_DOWN  140000u
#define MOVES_BOTH  50000u
#define MOVES_ACKED 20000u /* and PAIR_MOVES times as many */
#define MOVES_RATE  35000u
#define AGAIN       0.5

struct task {
    struct qn_tree_search_opts o;
    const struct qn_shape *start;
    uint64_t moves;
    double hot; /* first temperature */
};

/* The best tree found goes to *best; the caller offers it. */
static int run(struct qn_planner *p, const struct task *t,
               struct qn_shape *best)
{
    struct qn_tree_search *x = NULL;
    int err = qn_tree_search_create(&x, p->m, &t->o);
    if (err != QN_OK) {
        return err;
    }
    qn_tree_search_load(x, t->start);
    qn_tree_search_run(x, t->moves, t->hot, COLD);
    qn_tree_search_store(x, best);
    qn_tree_search_destroy(x);
    p->best.moves += t->moves;
    return QN_OK;
}

static struct task task_of(const struct qn_planner *p, enum qn_fold fold,
                           double scale)
{
    return (struct task){
        .o = {.fold = fold,
              .root_free = p->o.root == QN_ROOT_FREE,
              .q = p->o.q,
              .scale = scale,
              .seed = p->o.seed},
        .start = &p->start,
        .hot = HOT,
    };
}

/* A reduction: with q = 1 a broadcast back in time. */
static struct task upward(const struct qn_planner *p, double scale)
{
    struct task t = task_of(p, p->o.q < 1 ? QN_FOLD_UP : QN_FOLD_DOWN, scale);
    t.o.reversed = t.o.fold == QN_FOLD_DOWN;
    return t;
}

/* Make v the root: it and the root change places. */
static void reroot(struct qn_shape *s, uint32_t v)
{
    struct qn_edges e;
    uint32_t old = s->root;
    qn_edges_init(&e, s->n);
    for (uint32_t u = 0; u < s->n; u++) {
        uint32_t a = u == old ? v : u == v ? old : u;
        for (uint32_t k = 0; k < s->count[u]; k++) {
            uint32_t c = qn_shape_children(s, u)[k];
            qn_edges_add(&e, a, c == old ? v : c == v ? old : c);
        }
    }
    (void)qn_shape_from_edges(s, &e, v);
}

static int search_one_tree(struct qn_planner *p, enum qn_fold fold,
                           uint64_t moves, struct qn_shape *out)
{
    struct task t = p->o.goal == QN_GOAL_REDUCE
                        ? upward(p, p->start_cost)
                        : task_of(p, fold, p->start_cost);
    t.moves = moves;
    int err = run(p, &t, out);
    if (err == QN_OK) {
        qn_planner_offer(p, "search", out, out);
    }
    return err;
}

/* One direction with this root, from the candidates. */
static int search_rooted(struct qn_planner *p, bool up, uint32_t root,
                         uint64_t moves, struct qn_shape *out)
{
    struct qn_shape start = p->start;
    double scale = p->start_cost / 2;
    struct task t = up ? upward(p, scale) : task_of(p, QN_FOLD_DOWN, scale);
    reroot(&start, root);
    t.o.root_free = false;
    t.start = &start;
    t.moves = moves;
    return run(p, &t, out);
}

/* Both directions with this root. */
static int search_pair(struct qn_planner *p, uint32_t root, uint64_t moves)
{
    struct qn_shape down, up;
    int err = search_rooted(p, false, root, moves / 2, &down);
    err = err == QN_OK ? search_rooted(p, true, root, moves / 2, &up) : err;
    if (err == QN_OK) {
        qn_planner_offer(p, "search", &down, &up);
    }
    return err;
}

/* Go on with the best pair. */
static int improve_pair(struct qn_planner *p, uint64_t moves)
{
    struct qn_shape s[2] = {p->best.down, p->best.up};
    for (uint32_t up = 0; up < 2; up++) {
        double scale = p->start_cost / 2;
        struct task t =
            up != 0 ? upward(p, scale) : task_of(p, QN_FOLD_DOWN, scale);
        t.o.root_free = false;
        t.start = &s[up];
        t.moves = moves / 2;
        t.hot = LUKEWARM;
        int err = run(p, &t, &s[up]);
        if (err != QN_OK) {
            return err;
        }
    }
    qn_planner_offer(p, "search", &s[0], &s[1]);
    return QN_OK;
}

/* Both directions, one of them with a free root, the other with what it
 * chose. */
static int search_roots(struct qn_planner *p, bool up_first, uint64_t moves)
{
    struct qn_shape first, second;
    double scale = p->start_cost / 2;
    struct task t =
        up_first ? upward(p, scale) : task_of(p, QN_FOLD_DOWN, scale);
    t.moves = moves / 2;
    int err = run(p, &t, &first);
    if (err == QN_OK) {
        err = search_rooted(p, !up_first, first.root, moves / 2, &second);
    }
    if (err == QN_OK) {
        qn_planner_offer(p, "search", up_first ? &second : &first,
                         up_first ? &first : &second);
    }
    return err;
}

static int search_barrier(struct qn_planner *p, uint64_t moves)
{
    struct qn_shape s;
    if (p->o.one_tree) {
        return search_one_tree(p, QN_FOLD_BOTH, moves, &s);
    }
    if (p->o.root != QN_ROOT_FREE) {
        return search_pair(p, p->o.root, moves);
    }
    uint64_t each = moves / ROOT_SHARE;
    int err = search_roots(p, false, each);
    err = err == QN_OK ? search_roots(p, true, each) : err;
    return err == QN_OK ? improve_pair(p, moves - 2 * each) : err;
}

static int search_acked(struct qn_planner *p, enum qn_fold fold, uint64_t moves)
{
    struct qn_shape s;
    int err = search_one_tree(p, fold, moves, &s);
    return err == QN_OK && !p->o.one_tree
               ? qn_planner_pair(p, &s, PAIR_MOVES * moves)
               : err;
}

/* The fold of what the busiest core spends on an operation. */
static struct task occupancy_task(const struct qn_planner *p)
{
    enum qn_goal goal = p->o.goal;
    bool one_way = goal == QN_GOAL_BROADCAST || goal == QN_GOAL_REDUCE ||
                   goal == QN_GOAL_STREAM;
    struct task t =
        task_of(p, one_way ? QN_FOLD_STREAM : QN_FOLD_RATE, p->start_cost);
    t.o.reversed = goal == QN_GOAL_REDUCE;
    return t;
}

/* First a tree within the bound of occupancy, then the best one within it,
 * never leaving it. A reduction's work is counted back in time, so it is
 * searched with q = 1. */
static int search_capped(struct qn_planner *p, enum qn_fold fold,
                         uint64_t moves)
{
    struct task easy = occupancy_task(p);
    struct task t = task_of(p, fold, p->start_cost);
    easy.moves = moves / 3;
    int err = run(p, &easy, &p->start);
    if (err != QN_OK) {
        return err;
    }
    qn_planner_offer(p, "search", &p->start, &p->start);
    if (qn_plan_occupancy(p->m, &p->start, &p->start, p->o.goal) >
        p->o.max_occupancy) {
        return QN_OK;
    }
    if (p->o.goal == QN_GOAL_REDUCE) {
        t.o.fold = QN_FOLD_DOWN;
        t.o.reversed = true;
    }
    t.o.cap = p->o.max_occupancy;
    t.o.cap_acks = easy.o.fold == QN_FOLD_RATE;
    t.moves = moves - easy.moves;
    struct qn_shape s;
    err = run(p, &t, &s);
    if (err == QN_OK) {
        qn_planner_offer(p, "search", &s, &s);
    }
    return err;
}

static enum qn_fold fold_of(enum qn_goal goal)
{
    static const enum qn_fold folds[QN_GOALS] = {
        [QN_GOAL_BROADCAST] = QN_FOLD_DOWN, [QN_GOAL_REDUCE] = QN_FOLD_UP,
        [QN_GOAL_BARRIER] = QN_FOLD_BOTH,   [QN_GOAL_ACK] = QN_FOLD_ACK,
        [QN_GOAL_2PC] = QN_FOLD_COMMIT,     [QN_GOAL_THROUGHPUT] = QN_FOLD_RATE,
        [QN_GOAL_STREAM] = QN_FOLD_STREAM,
    };
    return folds[goal];
}

int qn_planner_search(struct qn_planner *p)
{
    static const uint64_t defaults[QN_GOALS] = {
        [QN_GOAL_BROADCAST] = MOVES_DOWN, [QN_GOAL_REDUCE] = MOVES_DOWN,
        [QN_GOAL_BARRIER] = MOVES_DOWN,   [QN_GOAL_ACK] = MOVES_ACKED,
        [QN_GOAL_2PC] = MOVES_ACKED,      [QN_GOAL_THROUGHPUT] = MOVES_RATE,
        [QN_GOAL_STREAM] = MOVES_RATE,
    };
    enum qn_goal goal = p->o.goal;
    uint64_t moves = p->o.moves;
    if (moves == 0) {
        bool both = goal == QN_GOAL_BARRIER && p->o.one_tree;
        uint32_t n = QN_MIN(p->m->n, MOVES_CORES);
        moves = both ? MOVES_BOTH : defaults[goal];
        moves = moves * (2 * MOVES_CORES - n) / MOVES_CORES;
        moves = p->o.root == QN_ROOT_FREE ? (uint64_t)((double)moves * AGAIN)
                                          : moves;
    }
    if (p->o.max_occupancy > 0) {
        return search_capped(p, fold_of(goal), moves);
    }
    if (goal == QN_GOAL_BARRIER) {
        return search_barrier(p, moves);
    }
    if (goal == QN_GOAL_ACK || goal == QN_GOAL_2PC) {
        return search_acked(p, fold_of(goal), moves);
    }
    struct qn_shape s;
    return search_one_tree(p, fold_of(goal), moves, &s);
}
