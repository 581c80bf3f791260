/*
 * Costs of a machine's cores become costs of replicas: index i of the result is
 * replica i, on the core where it is pinned, or on the first core of the NUMA
 * node where it is.
 *
 * Without a measured file the costs are the medians of fifteen measured
 * machines, by the closest thing that two cores share. Only their proportions
 * matter for the tree.
 */
#include "kvs/topology.h"

#include <stdio.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/machine/topology.h"
#include "core/topo/tree.h"

#define AUTO "auto"

/* Cycles. */
static const struct usual {
    double send, receive;
} usual_phys = {6, 20}, usual_cache = {26, 93}, usual_node = {91, 320},
  usual_socket = {116, 410}, usual_far = {131, 466};

const char *qn_topology_name(const struct qn_config *c)
{
    return strcmp(c->topology, AUTO) == 0 ? "sequential" : c->topology;
}

bool qn_topology_known(const char *text)
{
    bool known = strcmp(text, AUTO) == 0;
    for (uint32_t i = 0; !known && qn_tree_name_at(i) != NULL; i++) {
        known = strcmp(text, qn_tree_name_at(i)) == 0;
    }
    return known;
}

static struct usual usual_of(const struct qn_machine_core *a,
                             const struct qn_machine_core *b)
{
    bool socket = a->socket == b->socket;
    return socket && a->phys == b->phys     ? usual_phys
           : socket && a->cache == b->cache ? usual_cache
           : a->node == b->node             ? usual_node
           : socket                         ? usual_socket
                                            : usual_far;
}

/* The core of m on which a replica is: where it is pinned, or the first one of
 * its NUMA node that none of `taken` [count] sits on. m->n: there is none. */
static uint32_t core_of(const struct qn_machine *m, const struct qn_place *p,
                        const uint32_t *taken, uint32_t count)
{
    if (p->cpu >= 0) {
        return qn_machine_find(m, (uint32_t)p->cpu);
    }
    for (uint32_t v = 0; v < m->n; v++) {
        bool is_free = m->core[v].node == (uint32_t)p->numa_node;
        for (uint32_t i = 0; i < count && is_free; i++) {
            is_free = taken[i] != v;
        }
        if (is_free) {
            return v;
        }
    }
    return m->n;
}

static void cost_set(struct qn_machine *to, uint32_t i, uint32_t j,
                     const struct qn_machine *m, uint32_t u, uint32_t v)
{
    struct usual c = usual_of(&m->core[u], &m->core[v]);
    if (qn_machine_has_costs(m)) {
        c = (struct usual){qn_send_cost(m, u, v), qn_receive_cost(m, u, v)};
    }
    to->send[(size_t)i * to->n + j] = c.send;
    to->receive[(size_t)i * to->n + j] = c.receive;
}

int qn_topology_costs_on(struct qn_machine **costs, const struct qn_machine *m,
                         const struct qn_config *c,
                         const struct qn_place *place, char *why, size_t cap)
{
    uint32_t core[QN_NODES_MAX];
    for (uint32_t i = 0; i < c->replicas; i++) {
        char text[QN_PLACE_TEXT_MAX];
        core[i] = core_of(m, &place[i], core, i);
        if (core[i] == m->n) {
            snprintf(why, cap, "topology '%s': it has no %s; measure again",
                     c->topology, qn_place_describe(&place[i], text));
            return QN_EINVAL;
        }
    }
    int err = qn_machine_create(costs, c->replicas);
    if (err != QN_OK) {
        snprintf(why, cap, "topology: %s", qn_strerror(err));
        return err;
    }
    for (uint32_t i = 0; i < c->replicas; i++) {
        for (uint32_t j = 0; j < c->replicas; j++) {
            if (i != j) {
                cost_set(*costs, i, j, m, core[i], core[j]);
            }
        }
    }
    (*costs)->facts.clock_ghz =
        qn_machine_has_costs(m) ? m->facts.clock_ghz : 0;
    return QN_OK;
}

static bool pinned(const struct qn_config *c, const struct qn_place *place)
{
    for (uint32_t i = 0; i < c->replicas; i++) {
        if (place[i].cpu < 0 && place[i].numa_node < 0) {
            return false;
        }
    }
    return true;
}

int qn_topology_costs(struct qn_machine **costs, const struct qn_config *c,
                      const struct qn_place *place, bool shared, char *why,
                      size_t cap)
{
    bool file = !qn_topology_known(c->topology);
    bool can = !shared && pinned(c, place);
    *costs = NULL;
    if (file && !can) {
        snprintf(why, cap,
                 "topology '%s': a plan needs a core for each replica, pinned; "
                 "use auto",
                 c->topology);
        return QN_EINVAL;
    }
    if (!can || (!file && strcmp(c->topology, AUTO) != 0)) {
        return QN_OK;
    }
    struct qn_machine *m = NULL;
    struct qn_fault fault;
    int err = file ? qn_machine_load(&m, c->topology, &fault)
                   : qn_machine_discover(&m, &fault);
    if (err != QN_OK) {
        snprintf(why, cap, "topology: %s", fault.text);
        return err;
    }
    if (file && !qn_machine_has_costs(m)) {
        snprintf(why, cap, "topology '%s': it has no costs; measure them",
                 c->topology);
        err = QN_EINVAL;
    } else {
        err = qn_topology_costs_on(costs, m, c, place, why, cap);
    }
    qn_machine_destroy(m);
    return err;
}
