/*
 * Two trees of an answered broadcast: answers start when their core has sent
 * all, so each tree has its price only with the other. Given the tree down, the
 * best answers are a reduction in which each core is ready at its moment; given
 * the answers, the best tree down is a broadcast in which each core has that
 * much to do once it has sent all. Both are folds with bounds (seek.h), several
 * times as fast as one that prices the two at once.
 *
 * So the trees are annealed in turn, and the temperature falls over all turns:
 * while it is high, neither has settled on what the other is only for the time
 * being. Searching each to its end before the other, three times, costs 2.5 %
 * more at the same number of moves (nine machines of 48 to 192 cores).
 *
 * The price of the tree down is an upper bound: answers are taken in the order
 * of the present plan. With q < 1 not even that, a queued answer costs less
 * than what is waited for, so only the answers are searched.
 */
#include "core/base/err.h"
#include "core/plan/planner_internal.h"
#include "core/plan/search/tree_search.h"

/* The tree at the beginning is a good one. With 1 to 3 parts in a thousand
 * results are the same, with ten worse. */
#define WARM  0.002
#define COOL  0.877 /* per turn: to 3e-5 */
#define TURNS 32u   /* of each tree; half or twice as many: about the same */

struct pair {
    struct qn_planner *p;
    struct qn_shape down, up;
    struct qn_tree_search *ask, *answer;
    uint64_t moves; /* per turn */
};

static int begin(struct pair *x, const struct qn_planner *p)
{
    struct qn_tree_search_opts o = {
        .fold = p->o.goal == QN_GOAL_2PC ? QN_FOLD_TWICE : QN_FOLD_DOWN,
        .q = p->o.q,
        .scale = p->start_cost,
        .stay = true,
        .seed = p->o.seed};
    int err = qn_tree_search_create(&x->ask, p->m, &o);
    o.fold = p->o.q < 1 ? QN_FOLD_UP : QN_FOLD_DOWN;
    o.reversed = o.fold == QN_FOLD_DOWN;
    return err == QN_OK ? qn_tree_search_create(&x->answer, p->m, &o) : err;
}

/* One turn of a tree, each core ready at `start`. */
static void turn(struct pair *x, struct qn_tree_search *seek,
                 const double *start, struct qn_shape *tree, double hot,
                 double cold)
{
    qn_tree_search_ready(seek, start);
    qn_tree_search_load(seek, tree);
    qn_tree_search_run(seek, x->moves, hot, cold);
    qn_tree_search_store(seek, tree);
    x->p->best.moves += x->moves;
    qn_planner_offer(x->p, "search", &x->down, &x->up);
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
static void tails(const struct pair *x, const double *idle, double *tail)
{
    double done[QN_CORES_MAX];
    uint16_t order[QN_CORES_MAX] = {0}, list[QN_CORES_MAX] = {0};
    const struct qn_machine *m = x->p->m;
    const struct qn_shape *up = &x->up;
    (void)qn_predict_reduce(m, up, 1, idle, done);
    uint32_t n = qn_shape_order(up, order);
    tail[up->root] = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = order[i];
        latest_first(m, done, up, v, list);
        for (uint32_t k = 0; k < up->count[v]; k++) {
            uint32_t c = list[k];
            tail[v] += qn_receive_cost(m, c, v);
            tail[c] = tail[v] + qn_send_cost(m, c, v);
        }
    }
}

static void anneal(struct pair *x)
{
    double idle[QN_CORES_MAX], tail[QN_CORES_MAX], hot = WARM;
    for (uint32_t i = 0; i < TURNS; i++, hot *= COOL) {
        (void)qn_predict_broadcast(x->p->m, &x->down, NULL, idle);
        turn(x, x->answer, idle, &x->up, hot, hot * COOL);
        if (!(x->p->o.q < 1)) {
            tails(x, idle, tail);
            turn(x, x->ask, tail, &x->down, hot, hot * COOL);
        }
    }
}

int qn_planner_pair(struct qn_planner *p, const struct qn_shape *s,
                    uint64_t moves)
{
    struct pair x = {.p = p, .down = *s, .up = *s};
    x.moves = moves / TURNS / (p->o.q < 1 ? 1 : 2);
    int err = begin(&x, p);
    if (err == QN_OK) {
        anneal(&x);
    }
    qn_tree_search_destroy(x.ask);
    qn_tree_search_destroy(x.answer);
    return err;
}
