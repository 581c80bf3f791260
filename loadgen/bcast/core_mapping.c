/*
 * Two cases: a part of the machine (or all of it), which keeps its core
 * numbers, and a machine that is repeated until there is a core for each node.
 */
#include "loadgen/bcast/core_mapping.h"

#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/topo/model/cores.h"

#define NO_COST                                                                \
    100.0 /* cycles where the cost is unknown, since trees need a cost */

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int take_part(struct qn_core_mapping *s, const struct qn_machine *m)
{
    uint32_t index[QN_CORES_MAX];
    qn_cores_deal(index, m);
    qsort(index, s->nodes, sizeof index[0], by_value);
    int err = qn_machine_restrict(&s->m, m, index, s->nodes);
    for (uint32_t i = 0; i < s->nodes && err == QN_OK; i++) {
        s->home[i] = s->m->core[i].os;
    }
    return err;
}

static double mean_of(const double *cost, uint32_t n)
{
    double sum = 0;
    for (size_t i = 0; i < (size_t)n * n; i++) {
        sum += cost[i]; /* the diagonal is 0 */
    }
    return n > 1 ? sum / ((double)n * (n - 1)) : NO_COST;
}

static int repeat(struct qn_core_mapping *s, const struct qn_machine *m)
{
    QN_ASSERT(m->n > 0);
    const double send = mean_of(m->send, m->n);
    const double receive = mean_of(m->receive, m->n);
    int err = qn_machine_create(&s->m, s->nodes);
    if (err != QN_OK) {
        return err;
    }
    s->m->facts.clock_ghz = m->facts.clock_ghz;
    for (uint32_t i = 0; i < s->nodes; i++) {
        uint32_t u = i % m->n;
        s->m->core[i] = m->core[u];
        s->m->core[i].os = i;
        s->home[i] = m->core[u].os;
        for (uint32_t j = 0; j < s->nodes; j++) {
            uint32_t v = j % m->n;
            size_t at = (size_t)i * s->nodes + j;
            if (i != j) {
                s->m->send[at] = u == v ? send : qn_send_cost(m, u, v);
                s->m->receive[at] = u == v ? receive : qn_receive_cost(m, u, v);
            }
        }
    }
    return QN_OK;
}

int qn_core_mapping_make(struct qn_core_mapping *s, const struct qn_machine *m,
                         uint32_t nodes)
{
    if (nodes < 1 || nodes > QN_NODES_MAX) {
        return QN_EINVAL;
    }
    *s = (struct qn_core_mapping){.nodes = nodes, .costs_known = m->n > 1};
    return nodes <= m->n ? take_part(s, m) : repeat(s, m);
}

static bool among(const uint32_t *v, uint32_t n, uint32_t x)
{
    for (uint32_t i = 0; i < n; i++) {
        if (v[i] == x) {
            return true;
        }
    }
    return false;
}

void qn_core_mapping_assign(struct qn_core_mapping *s, const uint32_t *usable,
                            uint32_t count)
{
    QN_ASSERT(count > 0);
    s->cores = 0;
    for (uint32_t i = 0; i < s->nodes; i++) {
        s->core[i] =
            among(usable, count, s->home[i]) ? s->home[i] : usable[i % count];
        s->cores += !among(s->core, i, s->core[i]);
    }
}

void qn_core_mapping_fini(struct qn_core_mapping *s)
{
    qn_machine_destroy(s->m);
    s->m = NULL;
}
