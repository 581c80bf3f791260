/*
 * A level that groups cores as an earlier one did gives the same trees, so it
 * is left out.
 *
 * Chains are what keeps every core equally busy, at the price of latency. A
 * core of a chain receives and sends each message once on each side, so its
 * next neighbour is the one with the least sum of all four.
 */
#include "core/topo/candidates.h"

#include <stdio.h>

#include "core/base/err.h"
#include "core/topo/adaptive.h"
#include "core/topo/static_trees.h"

static bool same_groups(const struct qn_machine *m, enum qn_level a,
                        enum qn_level b)
{
    for (uint32_t u = 0; u < m->n; u++) {
        for (uint32_t v = 0; v < u; v++) {
            if ((qn_machine_group(m, a, u) == qn_machine_group(m, a, v)) !=
                (qn_machine_group(m, b, u) == qn_machine_group(m, b, v))) {
                return false;
            }
        }
    }
    return true;
}

static bool known_level(const struct qn_machine *m, uint32_t level)
{
    for (uint32_t l = 0; l < level; l++) {
        if (same_groups(m, (enum qn_level)l, (enum qn_level)level)) {
            return true;
        }
    }
    return false;
}

static int of_level(const struct qn_machine *m, uint32_t root, uint32_t level,
                    qn_candidate_fn *fn, void *arg)
{
    struct qn_shape s;
    char name[32];
    int err = qn_adaptive_build(&s, m, root, (enum qn_level)level);
    if (err != QN_OK) {
        return err;
    }
    snprintf(name, sizeof name, "adaptive:%s", qn_level_name(level));
    fn(arg, name, &s);
    err = qn_static_build(&s, m, "cluster", root, (enum qn_level)level);
    if (err == QN_OK) {
        snprintf(name, sizeof name, "cluster:%s", qn_level_name(level));
        fn(arg, name, &s);
    }
    return err;
}

static double both_ways(const struct qn_machine *m, uint32_t u, uint32_t v)
{
    return qn_send_cost(m, u, v) + qn_receive_cost(m, u, v) +
           qn_send_cost(m, v, u) + qn_receive_cost(m, v, u);
}

/* Each core serves the nearest of those that are left. */
static int chain(const struct qn_machine *m, uint32_t root, qn_candidate_fn *fn,
                 void *arg)
{
    struct qn_shape s;
    struct qn_edges e;
    bool in[QN_CORES_MAX] = {false};
    uint32_t at = root;
    in[root] = true;
    qn_edges_init(&e, m->n);
    for (uint32_t i = 1; i < m->n; i++) {
        uint32_t next = m->n;
        for (uint32_t v = 0; v < m->n; v++) {
            if (!in[v] && (next == m->n ||
                           both_ways(m, at, v) < both_ways(m, at, next))) {
                next = v;
            }
        }
        qn_edges_add(&e, at, next);
        in[next] = true;
        at = next;
    }
    int err = qn_shape_from_edges(&s, &e, root);
    if (err == QN_OK) {
        fn(arg, "nearest chain", &s);
    }
    return err;
}

static int balanced(const struct qn_machine *m, uint32_t root,
                    qn_candidate_fn *fn, void *arg)
{
    struct qn_shape s;
    int err = QN_OK;
    for (uint32_t k = 1; err == QN_OK && k <= QN_CANDIDATE_ARITY; k++) {
        char name[32];
        snprintf(name, sizeof name, "tree:k=%u", k);
        err = qn_static_build(&s, m, name, root, QN_LEVEL_NODE);
        if (err == QN_OK && k != 2) { /* binary */
            fn(arg, name, &s);
        }
    }
    return err;
}

int qn_candidates(const struct qn_machine *m, uint32_t root,
                  qn_candidate_fn *fn, void *arg)
{
    struct qn_shape s;
    int err = QN_OK;
    for (uint32_t i = 0; err == QN_OK && qn_static_name_at(i) != NULL; i++) {
        err = qn_static_build(&s, m, qn_static_name_at(i), root, QN_LEVEL_NODE);
        if (err == QN_OK) {
            fn(arg, qn_static_name_at(i), &s);
        }
    }
    err = err == QN_OK ? balanced(m, root, fn, arg) : err;
    err = err == QN_OK ? chain(m, root, fn, arg) : err;
    for (uint32_t l = 0; err == QN_OK && l < QN_LEVELS; l++) {
        if (!known_level(m, l)) {
            err = of_level(m, root, l, fn, arg);
        }
    }
    return err;
}
