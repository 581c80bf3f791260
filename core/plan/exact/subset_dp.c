/*
 * Let B(v, M) be the least time in which an informed v can have the set M
 * completed and its own tail done:
 *
 *     B(v, {}) = tail(v)
 *     B(v, M)  = min over non-empty A in M, c in A of
 *                s(v,c) + max(r(v,c) + B(c, A - c), B(v, M - A))
 *
 * A is what the first child takes over. Sets are bit masks; a subset is a
 * smaller number, so ascending order has every value ready. With a given root
 * no set contains it. The tree is read off at the end by looking once more for
 * the pairs (A, c) that attain the values, which saves a table of choices.
 *
 * Most pairs need not be looked at. A handed over costs at least what it costs
 * alone, s + r + B(c, A - c) for the best c; and the rest costs at least itself
 * and the cheapest send before it. Both are known per set, and two comparisons
 * per A leave few for which children are tried: 4 times faster.
 */
#include "core/plan/exact/subset_dp.h"

#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

struct choice {
    double cost;
    uint32_t set;   /* A */
    uint32_t child; /* c */
};

static void fill_ways(struct qn_subset_dp *x)
{
    uint32_t n = x->m->n;
    for (uint32_t i = 0; i < n * n; i++) {
        x->way[i] = x->m->send[i] + x->m->receive[i];
    }
    for (uint32_t k = 0; k < n; k++) {
        for (uint32_t i = 0; i < n * n; i++) {
            double there = x->way[i / n * n + k] + x->way[k * n + i % n];
            x->way[i] = QN_MIN(x->way[i], there);
        }
    }
}

int qn_subset_dp_init(struct qn_subset_dp *x, const struct qn_machine *m)
{
    *x = (struct qn_subset_dp){.m = m};
    if (m->n > QN_SUBSETS_MAX) {
        return QN_EMSGSIZE;
    }
    size_t count = (size_t)m->n << m->n;
    x->way = calloc((size_t)m->n * m->n, sizeof *x->way);
    x->best = calloc(count, sizeof *x->best);
    x->alone = calloc(count, sizeof *x->alone);
    x->nearest = calloc(count, sizeof *x->nearest);
    if (x->way == NULL || x->best == NULL || x->alone == NULL ||
        x->nearest == NULL) {
        return QN_ENOMEM;
    }
    fill_ways(x);
    return QN_OK;
}

void qn_subset_dp_fini(struct qn_subset_dp *x)
{
    free(x->way);
    free(x->best);
    free(x->alone);
    free(x->nearest);
    *x = (struct qn_subset_dp){0};
}

static size_t at(const struct qn_subset_dp *x, uint32_t v, uint32_t set)
{
    return ((size_t)v << x->m->n) + set;
}

/* From handing A to c until A has completed. */
static double below(const struct qn_subset_dp *x, uint32_t v, uint32_t c,
                    uint32_t a)
{
    return qn_receive_cost(x->m, v, c) + x->best[at(x, c, a & ~(1U << c))];
}

/* The best pair that costs less than `limit`; the cost is QN_SUBSETS_NEVER if
 * there is none. */
static struct choice choose(const struct qn_subset_dp *x, uint32_t v,
                            uint32_t set, double limit)
{
    struct choice best = {.cost = limit};
    for (uint32_t a = set; a != 0; a = (a - 1) & set) {
        double rest = x->best[at(x, v, set & ~a)];
        if (x->alone[at(x, v, a)] >= best.cost ||
            rest + x->nearest[at(x, v, a)] >= best.cost) {
            continue;
        }
        for (uint32_t left = a; left != 0; left &= left - 1) {
            uint32_t c = (uint32_t)__builtin_ctz(left);
            double cost =
                qn_send_cost(x->m, v, c) + QN_MAX(below(x, v, c, a), rest);
            if (cost < best.cost) {
                best = (struct choice){cost, a, c};
            }
        }
    }
    best.cost = best.set == 0 ? QN_SUBSETS_NEVER : best.cost;
    return best;
}

/* What every choice is compared with. */
static void fill_bounds(struct qn_subset_dp *x, uint32_t v, uint32_t set)
{
    double alone = QN_SUBSETS_NEVER, nearest = QN_SUBSETS_NEVER;
    for (uint32_t left = set; left != 0; left &= left - 1) {
        uint32_t c = (uint32_t)__builtin_ctz(left);
        double send = qn_send_cost(x->m, v, c);
        alone = QN_MIN(alone, send + below(x, v, c, set));
        nearest = QN_MIN(nearest, send);
    }
    x->alone[at(x, v, set)] = alone;
    x->nearest[at(x, v, set)] = nearest;
}

/* The cores that v cannot inform in time, in any order. */
static uint32_t out_of_reach(const struct qn_subset_dp *x, uint32_t v,
                             const double *tail, const double *limit)
{
    uint32_t set = 0, n = x->m->n;
    for (uint32_t u = 0; u < n && limit != NULL; u++) {
        double t = x->way[v * n + u] + (tail == NULL ? 0 : tail[u]);
        set |= (uint32_t)(u != v && t >= limit[v]) << u;
    }
    return set;
}

static void fill_one(struct qn_subset_dp *x, uint32_t v, uint32_t set,
                     double limit)
{
    fill_bounds(x, v, set);
    x->best[at(x, v, set)] = choose(x, v, set, limit).cost;
}

static void fill_never(struct qn_subset_dp *x, uint32_t v, uint32_t set)
{
    x->best[at(x, v, set)] = QN_SUBSETS_NEVER;
    x->alone[at(x, v, set)] = QN_SUBSETS_NEVER;
    x->nearest[at(x, v, set)] = QN_SUBSETS_NEVER;
}

void qn_subset_dp_fill(struct qn_subset_dp *x, uint32_t root,
                       const double *tail, const double *limit)
{
    uint32_t n = x->m->n, never[QN_SUBSETS_MAX];
    for (uint32_t v = 0; v < n; v++) {
        x->best[at(x, v, 0)] = tail == NULL ? 0 : tail[v];
        never[v] = out_of_reach(x, v, tail, limit);
    }
    for (uint32_t set = 1; set < 1U << n; set++) {
        bool with_root = root != QN_ROOT_FREE && (set >> root & 1) != 0;
        for (uint32_t v = 0; v < n && !with_root; v++) {
            if ((set >> v & 1) != 0) {
                continue;
            }
            if ((set & never[v]) != 0) {
                fill_never(x, v, set);
            } else {
                fill_one(x, v, set,
                         limit == NULL ? QN_SUBSETS_NEVER : limit[v]);
            }
        }
    }
}

/* All cores but v. */
static uint32_t others(const struct qn_subset_dp *x, uint32_t v)
{
    return ((1U << x->m->n) - 1) & ~(1U << v);
}

double qn_subset_dp_value(const struct qn_subset_dp *x, uint32_t root)
{
    return x->best[at(x, root, others(x, root))];
}

/* Sets still to be handed out; at most one per core. */
void qn_subset_dp_tree(const struct qn_subset_dp *x, uint32_t root,
                       struct qn_shape *s)
{
    uint32_t set[QN_SUBSETS_MAX] = {0}, core[QN_SUBSETS_MAX], count = 1;
    struct qn_edges e;
    qn_edges_init(&e, x->m->n);
    core[0] = root;
    set[0] = others(x, root);
    for (uint32_t i = 0; i < count; i++) {
        while (set[i] != 0) {
            struct choice c = choose(x, core[i], set[i], QN_SUBSETS_NEVER);
            QN_ASSERT(c.set != 0);
            qn_edges_add(&e, core[i], c.child);
            set[i] &= ~c.set;
            core[count] = c.child;
            set[count++] = c.set & ~(1U << c.child);
        }
    }
    int err = qn_shape_from_edges(s, &e, root);
    QN_ASSERT(err == QN_OK);
}
