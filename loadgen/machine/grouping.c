/*
 * Sorting compares labels. Only equality of labels has a meaning; their order
 * just makes the order of groups deterministic.
 */
#include "loadgen/machine/grouping.h"

#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"

const char *qn_distance_name(uint32_t distance)
{
    static const char *const names[QN_DISTANCES] = {
        "same core", "same cache", "same node", "same socket", "other socket"};
    return distance < QN_DISTANCES ? names[distance] : NULL;
}

enum qn_distance qn_distance_of(const struct qn_machine *m, uint32_t u,
                                uint32_t v)
{
    const struct qn_machine_core *a = &m->core[u], *b = &m->core[v];
    if (a->socket != b->socket) {
        return QN_OTHER_SOCKET;
    }
    return a->phys == b->phys     ? QN_SAME_CORE
           : a->cache == b->cache ? QN_SAME_CACHE
           : a->node == b->node   ? QN_SAME_NODE
                                  : QN_SAME_SOCKET;
}

static int compare(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int by_place(const void *left, const void *right, void *arg)
{
    const struct qn_machine *m = arg;
    const struct qn_machine_core *a = &m->core[*(const uint32_t *)left];
    const struct qn_machine_core *b = &m->core[*(const uint32_t *)right];
    int d = compare(a->socket, b->socket);
    d = d != 0 ? d : compare(a->node, b->node);
    d = d != 0 ? d : compare(a->cache, b->cache);
    d = d != 0 ? d : compare(a->phys, b->phys);
    return d != 0 ? d : compare(a->os, b->os);
}

void qn_grouping_order(const struct qn_machine *m, uint32_t *order)
{
    for (uint32_t i = 0; i < m->n; i++) {
        order[i] = i;
    }
    /* The comparison only reads m. */
    qsort_r(order, m->n, sizeof *order, by_place, (void *)(uintptr_t)m);
}

void qn_grouping_count(const struct qn_machine *m, struct qn_grouping_counts *c)
{
    *c = (struct qn_grouping_counts){0};
    for (uint32_t i = 0; i < m->n; i++) {
        bool socket = true, node = true, cache = true, phys = true;
        for (uint32_t j = 0; j < i; j++) {
            socket = socket && m->core[i].socket != m->core[j].socket;
            node = node && m->core[i].node != m->core[j].node;
            cache = cache && m->core[i].cache != m->core[j].cache;
            phys = phys && m->core[i].phys != m->core[j].phys;
        }
        c->sockets += socket;
        c->nodes += node;
        c->caches += cache;
        c->phys += phys;
    }
}

static int by_value(const void *left, const void *right)
{
    return (*(const double *)left > *(const double *)right) -
           (*(const double *)left < *(const double *)right);
}

/* Range of the entries of a matrix at one distance. x [n*n] is overwritten;
 * @return the number of entries. */
static uint32_t range_of(const struct qn_machine *m, const double *cost,
                         enum qn_distance distance, double *x,
                         struct qn_range *to)
{
    uint32_t count = 0;
    for (uint32_t u = 0; u < m->n; u++) {
        for (uint32_t v = 0; v < m->n; v++) {
            if (u != v && qn_distance_of(m, u, v) == distance) {
                x[count++] = cost[(size_t)u * m->n + v];
            }
        }
    }
    if (count > 0) {
        qsort(x, count, sizeof *x, by_value);
        *to = (struct qn_range){x[0], x[count / 2], x[count - 1]};
    }
    return count;
}

int qn_grouping_costs(const struct qn_machine *m,
                      struct qn_distance_costs *costs)
{
    double *x = malloc((size_t)m->n * m->n * sizeof *x);
    if (x == NULL) {
        return QN_ENOMEM;
    }
    for (uint32_t d = 0; d < QN_DISTANCES; d++) {
        struct qn_distance_costs *c = &costs[d];
        *c = (struct qn_distance_costs){0};
        c->pairs = range_of(m, m->send, d, x, &c->send);
        (void)range_of(m, m->receive, d, x, &c->receive);
        if (m->facts.round_trip != NULL) {
            (void)range_of(m, m->facts.round_trip, d, x, &c->round_trip);
        }
    }
    for (uint32_t u = 0; u < m->n; u++) {
        for (uint32_t v = 0; v < m->n; v++) {
            if (u != v && qn_machine_unstable(m, u, v)) {
                costs[qn_distance_of(m, u, v)].unstable++;
            }
        }
    }
    free(x);
    return QN_OK;
}
