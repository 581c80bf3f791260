/*
 * Broadcasts are the recursion over subsets (subset_dp.c) without tails. With a
 * free root it is solved for all cores at once.
 */
#include "core/plan/exact/optimum.h"

#include "core/base/err.h"

static uint32_t best_root(const struct qn_subset_dp *x)
{
    uint32_t root = 0;
    for (uint32_t v = 1; v < x->m->n; v++) {
        root =
            qn_subset_dp_value(x, v) < qn_subset_dp_value(x, root) ? v : root;
    }
    return root;
}

int qn_optimum_build(struct qn_shape *s, const struct qn_machine *m,
                     uint32_t root, double *latency)
{
    struct qn_subset_dp x;
    if (m->n > QN_OPTIMUM_MAX) {
        return QN_EMSGSIZE;
    }
    if (root >= m->n && root != QN_ROOT_FREE) {
        return QN_EINVAL;
    }
    int err = qn_subset_dp_init(&x, m);
    if (err == QN_OK) {
        qn_subset_dp_fill(&x, root, NULL, NULL);
        uint32_t top = root == QN_ROOT_FREE ? best_root(&x) : root;
        qn_subset_dp_tree(&x, top, s);
        if (latency != NULL) {
            *latency = qn_subset_dp_value(&x, top);
        }
    }
    qn_subset_dp_fini(&x);
    return err;
}

int qn_optimum_roots(const struct qn_machine *m, double *latency)
{
    struct qn_subset_dp x;
    int err = qn_subset_dp_init(&x, m);
    if (err == QN_OK) {
        qn_subset_dp_fill(&x, QN_ROOT_FREE, NULL, NULL);
    }
    for (uint32_t v = 0; err == QN_OK && v < m->n; v++) {
        latency[v] = qn_subset_dp_value(&x, v);
    }
    qn_subset_dp_fini(&x);
    return err;
}
