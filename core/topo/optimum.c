/*
 * Subset recursion. Let B(v, M) be the least time in which an informed v can
 * have the set M completed:
 *
 *     B(v, {}) = 0
 *     B(v, M)  = min over non-empty A in M, c in A of
 *                s(v,c) + max(r(v,c) + B(c, A - c), B(v, M - A))
 *
 * A is what the first child takes over. Sets are bit masks; a subset is a
 * smaller number, so ascending order has every value ready. With a given root
 * no set contains it. The tree is read off at the end by looking once more for
 * the pairs (A, c) that attain the values, which saves a table of choices.
 */
#include "core/topo/optimum.h"

#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

struct table {
    const struct qn_machine *m;
    double *best; /* [n << n] row v, column M */
};

struct choice {
    double cost;
    uint32_t set;   /* A */
    uint32_t child; /* c */
};

static double best_of(const struct table *t, uint32_t v, uint32_t set)
{
    return t->best[((size_t)v << t->m->n) + set];
}

static struct choice choose(const struct table *t, uint32_t v, uint32_t set)
{
    struct choice best = {.cost = 1e300};
    for (uint32_t a = set; a != 0; a = (a - 1) & set) {
        double rest = best_of(t, v, set & ~a);
        if (rest >= best.cost) {
            continue;
        }
        for (uint32_t left = a; left != 0; left &= left - 1) {
            uint32_t c = (uint32_t)__builtin_ctz(left);
            double below =
                qn_receive_cost(t->m, v, c) + best_of(t, c, a & ~(1U << c));
            double cost = qn_send_cost(t->m, v, c) + QN_MAX(below, rest);
            if (cost < best.cost) {
                best = (struct choice){cost, a, c};
            }
        }
    }
    return best;
}

static void fill(struct table *t, uint32_t root)
{
    uint32_t n = t->m->n;
    for (uint32_t set = 0; set < 1U << n; set++) {
        bool with_root = root != QN_ROOT_FREE && (set >> root & 1) != 0;
        for (uint32_t v = 0; v < n && !with_root; v++) {
            if ((set >> v & 1) == 0) {
                t->best[((size_t)v << n) + set] =
                    set == 0 ? 0 : choose(t, v, set).cost;
            }
        }
    }
}

static uint32_t best_root(const struct table *t)
{
    uint32_t all = (1U << t->m->n) - 1, root = 0;
    for (uint32_t v = 1; v < t->m->n; v++) {
        if (best_of(t, v, all & ~(1U << v)) <
            best_of(t, root, all & ~(1U << root))) {
            root = v;
        }
    }
    return root;
}

/* Sets still to be handed out; at most one per core. */
static void read_off(const struct table *t, uint32_t root, struct qn_edges *e)
{
    uint32_t set[QN_OPTIMUM_MAX] = {0}, core[QN_OPTIMUM_MAX], todo = 1;
    core[0] = root;
    set[0] = ((1U << t->m->n) - 1) & ~(1U << root);
    for (uint32_t i = 0; i < todo; i++) {
        while (set[i] != 0) {
            struct choice x = choose(t, core[i], set[i]);
            qn_edges_add(e, core[i], x.child);
            set[i] &= ~x.set;
            core[todo] = x.child;
            set[todo++] = x.set & ~(1U << x.child);
        }
    }
}

int qn_optimum_build(struct qn_shape *s, const struct qn_machine *m,
                     uint32_t root, double *latency)
{
    if (m->n > QN_OPTIMUM_MAX) {
        return QN_EMSGSIZE;
    }
    if (root >= m->n && root != QN_ROOT_FREE) {
        return QN_EINVAL;
    }
    struct table t = {m, calloc((size_t)m->n << m->n, sizeof(double))};
    if (t.best == NULL) {
        return QN_ENOMEM;
    }
    fill(&t, root);
    uint32_t top = root == QN_ROOT_FREE ? best_root(&t) : root;
    struct qn_edges e;
    qn_edges_init(&e, m->n);
    read_off(&t, top, &e);
    if (latency != NULL) {
        *latency = best_of(&t, top, ((1U << m->n) - 1) & ~(1U << top));
    }
    free(t.best);
    int err = qn_shape_from_edges(s, &e, top);
    QN_ASSERT(err == QN_OK);
    return err;
}

int qn_optimum_roots(const struct qn_machine *m, double *latency)
{
    if (m->n > QN_OPTIMUM_MAX) {
        return QN_EMSGSIZE;
    }
    struct table t = {m, calloc((size_t)m->n << m->n, sizeof(double))};
    if (t.best == NULL) {
        return QN_ENOMEM;
    }
    fill(&t, QN_ROOT_FREE);
    for (uint32_t v = 0; v < m->n; v++) {
        latency[v] = best_of(&t, v, ((1U << m->n) - 1) & ~(1U << v));
    }
    free(t.best);
    return QN_OK;
}
