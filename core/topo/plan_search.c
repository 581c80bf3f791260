/*
 * A search explores from the best few candidates with a falling temperature,
 * then polishes the best of what it found. Exploring from several starts costs
 * little and makes the result depend less on luck: roots in different parts of
 * a machine are far apart for single moves.
 *
 * Temperatures are parts of the cost. From 10 % even trees that cross the
 * machine are rebuilt; with 2 % as the first one results were up to 15 % worse
 * where a start had its root in the wrong place.
 *
 * Two trees: a barrier's share only the root. Each direction proposes one, and
 * with the better of the two both are searched again. An acknowledged broadcast
 * is searched as one tree; then the tree of the answers, each core ready when
 * the broadcast lets it; then the tree of the broadcast, each core followed by
 * what its answer needs (answered.c); and again.
 *
 * Not here: the earliest completing edge as one more candidate. Alone it beats
 * all rules (broadcast by 12 %, two-phase commit by 15 % in the mean), but
 * after the search nothing is left of it: -0.2 to +0.4 %, 14 machines, 3 seeds.
 */
#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/topo/adaptive.h"
#include "core/topo/planner_internal.h"
#include "core/topo/seek.h"

#define HOT         0.1   /* first temperature */
#define LUKEWARM    0.02  /* first one for a tree that was searched before */
#define WARM        0.001 /* last one of exploring */
#define MILD        0.004 /* first one of polishing */
#define COLD        3e-5  /* last one */
#define EXPLORE     0.6   /* part of the moves */
/* Of an answered broadcast's two trees: how often each is searched again, with
 * which part of the moves. */
#define PAIR_ROUNDS 3u
#define PAIR_SHARE  8u
#define ROOT_SHARE  5u /* part of a barrier's moves that seeks each root */
/* Default budgets at MOVES_CORES cores, where they take about 30 ms, and 40
 * with costs without any structure; fewer cores get up to twice as many, which
 * cost about the same. A free root takes a second search, with AGAIN as many.
 */
#define MOVES_CORES 256u
#define MOVES_DOWN  130000u
#define MOVES_UP    50000u
#define MOVES_RATE  35000u
#define AGAIN       0.5

struct task {
    struct qn_seek_opts o;
    const struct qn_shape *start; /* [starts] */
    uint32_t starts;
    uint64_t moves;
    double hot; /* first temperature */
};

/* The best tree found goes to *best; all that are finished are offered by the
 * caller. */
static int run(struct qn_planner *p, const struct task *t,
               struct qn_shape *best)
{
    struct qn_seek *x = NULL;
    double least = 0;
    QN_ASSERT(t->starts > 0);
    int err = qn_seek_create(&x, p->m, &t->o);
    if (err != QN_OK) {
        return err;
    }
    uint64_t each = (uint64_t)((double)t->moves * EXPLORE) / t->starts;
    for (uint32_t i = 0; i < t->starts; i++) {
        qn_seek_load(x, &t->start[i]);
        qn_seek_run(x, each, t->hot, WARM);
        if (i == 0 || qn_seek_cost(x) < least) {
            least = qn_seek_cost(x);
            qn_seek_store(x, best);
        }
    }
    uint64_t rest = t->moves - each * t->starts;
    qn_seek_load(x, best);
    qn_seek_run(x, rest, MILD, COLD);
    qn_seek_store(x, best);
    qn_seek_destroy(x);
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
        .start = p->start,
        .starts = p->starts,
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
                           uint64_t moves)
{
    struct qn_shape s;
    struct task t = p->o.goal == QN_GOAL_REDUCE
                        ? upward(p, p->start_cost[0])
                        : task_of(p, fold, p->start_cost[0]);
    t.moves = moves;
    int err = run(p, &t, &s);
    if (err == QN_OK) {
        qn_planner_offer(p, "search", &s, &s);
    }
    return err;
}

/* One direction with this root, from the candidates. */
static int search_rooted(struct qn_planner *p, bool up, uint32_t root,
                         uint64_t moves, struct qn_shape *out)
{
    struct qn_shape start[QN_PLAN_STARTS];
    double scale = p->start_cost[0] / 2;
    struct task t = up ? upward(p, scale) : task_of(p, QN_FOLD_DOWN, scale);
    for (uint32_t i = 0; i < p->starts; i++) {
        start[i] = p->start[i];
        reroot(&start[i], root);
    }
    t.o.root_free = false;
    t.start = start;
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
        double scale = p->start_cost[0] / 2;
        struct task t =
            up != 0 ? upward(p, scale) : task_of(p, QN_FOLD_DOWN, scale);
        t.o.root_free = false;
        t.start = &s[up];
        t.starts = 1;
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
    double scale = p->start_cost[0] / 2;
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
    if (p->o.one_tree) {
        return search_one_tree(p, QN_FOLD_BOTH, moves);
    }
    if (p->o.root != QN_ROOT_FREE) {
        return search_pair(p, p->o.root, moves);
    }
    uint64_t each = moves / ROOT_SHARE;
    int err = search_roots(p, false, each);
    err = err == QN_OK ? search_roots(p, true, each) : err;
    return err == QN_OK ? improve_pair(p, moves - 2 * each) : err;
}

/* Another tree for the answers, from the one that there is. */
static int search_answers(struct qn_planner *p, uint64_t moves)
{
    double idle[QN_CORES_MAX];
    struct qn_shape down = p->best.down, up;
    (void)qn_predict_broadcast(p->m, &down, NULL, idle);
    struct task t = upward(p, p->best.cost);
    t.o.root_free = false;
    t.o.start = idle;
    t.start = &p->best.up;
    t.starts = 1;
    t.hot = LUKEWARM;
    t.moves = moves;
    int err = run(p, &t, &up);
    if (err == QN_OK) {
        qn_planner_offer(p, "search", &down, &up);
    }
    return err;
}

/* Children whose answer is visible last come first. */
static void latest_first(const struct qn_machine *m, const double *done,
                         const struct qn_shape *up, uint32_t v, uint16_t *list)
{
    for (uint32_t i = 0; i < up->count[v]; i++) {
        uint16_t c = qn_shape_children(up, v)[i];
        double visible = done[c] + qn_send_cost(m, c, v);
        uint32_t k = i;
        for (; k > 0 &&
               done[list[k - 1]] + qn_send_cost(m, list[k - 1], v) < visible;
             k--) {
            list[k] = list[k - 1];
        }
        list[k] = c;
    }
}

/* How long before the end each core must have sent its last message, when
 * answers are taken in the order of the present plan. */
static void tails(const struct qn_planner *p, double *tail)
{
    double idle[QN_CORES_MAX], done[QN_CORES_MAX];
    uint16_t order[QN_CORES_MAX] = {0}, list[QN_CORES_MAX] = {0};
    const struct qn_shape *up = &p->best.up;
    (void)qn_predict_broadcast(p->m, &p->best.down, NULL, idle);
    (void)qn_predict_reduce(p->m, up, 1, idle, done);
    uint32_t n = qn_shape_order(up, order);
    tail[up->root] = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = order[i];
        latest_first(p->m, done, up, v, list);
        for (uint32_t k = 0; k < up->count[v]; k++) {
            uint32_t c = list[k];
            tail[v] += qn_receive_cost(p->m, c, v);
            tail[c] = tail[v] + qn_send_cost(p->m, c, v);
        }
    }
}

/* Another tree down, for these answers; a commit goes down it, too. */
static int search_questions(struct qn_planner *p, uint64_t moves)
{
    double tail[QN_CORES_MAX];
    struct qn_shape down, up = p->best.up;
    bool commit = p->o.goal == QN_GOAL_2PC;
    tails(p, tail);
    struct task t =
        task_of(p, commit ? QN_FOLD_TWICE : QN_FOLD_DOWN, p->best.cost);
    t.o.root_free = false;
    t.o.start = tail;
    t.start = &p->best.down;
    t.starts = 1;
    t.hot = LUKEWARM;
    t.moves = moves;
    int err = run(p, &t, &down);
    if (err == QN_OK) {
        qn_planner_offer(p, "search", &down, &up);
    }
    return err;
}

/* One tree, then each direction for the other one. With q < 1 nothing is back
 * in time, so only the answers are searched again. */
static int search_acked(struct qn_planner *p, enum qn_fold fold, uint64_t moves)
{
    if (p->o.one_tree) {
        return search_one_tree(p, fold, moves);
    }
    if (p->o.q < 1) {
        int err = search_one_tree(p, fold, moves - moves / 4);
        return err == QN_OK ? search_answers(p, moves / 4) : err;
    }
    uint64_t each = moves / PAIR_SHARE;
    int err = search_one_tree(p, fold, moves - 2 * PAIR_ROUNDS * each);
    for (uint32_t i = 0; err == QN_OK && i < PAIR_ROUNDS; i++) {
        err = search_answers(p, each);
        err = err == QN_OK ? search_questions(p, each) : err;
    }
    return err;
}

/* The fold of what the busiest core spends on an operation. */
static struct task occupancy_task(const struct qn_planner *p)
{
    enum qn_goal goal = p->o.goal;
    bool one_way = goal == QN_GOAL_BROADCAST || goal == QN_GOAL_REDUCE ||
                   goal == QN_GOAL_STREAM;
    struct task t =
        task_of(p, one_way ? QN_FOLD_STREAM : QN_FOLD_RATE, p->start_cost[0]);
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
    struct task t = task_of(p, fold, p->start_cost[0]);
    easy.moves = moves / 3;
    int err = run(p, &easy, &p->start[0]);
    if (err != QN_OK) {
        return err;
    }
    qn_planner_offer(p, "search", &p->start[0], &p->start[0]);
    if (qn_plan_occupancy(p->m, &p->start[0], &p->start[0], p->o.goal) >
        p->o.max_occupancy) {
        return QN_OK;
    }
    if (p->o.goal == QN_GOAL_REDUCE) {
        t.o.fold = QN_FOLD_DOWN;
        t.o.reversed = true;
    }
    t.o.cap = p->o.max_occupancy;
    t.o.cap_acks = easy.o.fold == QN_FOLD_RATE;
    t.starts = 1;
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
        [QN_GOAL_BARRIER] = MOVES_DOWN,   [QN_GOAL_ACK] = MOVES_UP,
        [QN_GOAL_2PC] = MOVES_UP,         [QN_GOAL_THROUGHPUT] = MOVES_RATE,
        [QN_GOAL_STREAM] = MOVES_RATE,
    };
    enum qn_goal goal = p->o.goal;
    uint64_t moves = p->o.moves;
    if (moves == 0) {
        bool both = goal == QN_GOAL_BARRIER && p->o.one_tree;
        uint32_t n = QN_MIN(p->m->n, MOVES_CORES);
        moves = both ? MOVES_UP : defaults[goal];
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
    return search_one_tree(p, fold_of(goal), moves);
}
