/*
 * Costs of a machine's cores become costs of replicas: index i of the result is
 * replica i, on the core where it is pinned, or on the first core of the NUMA
 * node where it is.
 *
 * Without a measured machine the costs are the medians of fifteen measured
 * machines, by the closest thing that two cores share. Only their proportions
 * matter for the tree, so nothing is predicted from them. Measured costs are
 * kept beside any tree, for INFO's prediction.
 */
#include "kvs/config/topology.h"

#include <stdio.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/discover/topology.h"
#include "core/plan/plan_file.h"
#include "core/plan/ring_or_tree.h"
#include "core/topo/adaptive.h"
#include "core/topo/diamond_ring.h"
#include "core/topo/static_trees.h"

#define AUTO "auto"

/* Made once, by costs. */
static const char *const planned[] = {"adaptive", "cluster", "mst", "mst2"};

/* Cycles. */
static const struct usual {
    double send, receive;
} usual_phys = {6, 20}, usual_cache = {26, 93}, usual_node = {91, 320},
  usual_socket = {116, 410}, usual_far = {131, 466};

const char *qn_topology_name_at(uint32_t i)
{
    static const char *const first[] = {AUTO, "ring:k=N", "tree:k=N"};
    if (i < QN_ARRAY_COUNT(first)) {
        return first[i];
    }
    i -= (uint32_t)QN_ARRAY_COUNT(first);
    if (i < QN_STATIC_TREES_PLAIN) {
        return qn_static_name_at(i);
    }
    i -= QN_STATIC_TREES_PLAIN;
    return i < QN_ARRAY_COUNT(planned) ? planned[i] : NULL;
}

/* Of a ring that a server can have; 0: it is no such name. */
static uint32_t ring_arity(const char *text)
{
    uint32_t k = qn_diamond_ring_arity(text);
    return k <= QN_TOPOLOGY_RING_MAX ? k : 0;
}

bool qn_topology_known(const char *text)
{
    bool known = qn_static_arity(text) > 0 || ring_arity(text) > 0;
    for (uint32_t i = 0; !known && qn_topology_name_at(i) != NULL; i++) {
        known = strcmp(text, qn_topology_name_at(i)) == 0;
    }
    return known && strstr(text, ":k=N") == NULL;
}

bool qn_topology_is_machine(const char *text)
{
    return !qn_topology_known(text) && !qn_plan_file_like(text);
}

/* The machine as measured, or NULL. */
static const char *measured_file(const struct qn_config *c)
{
    return qn_topology_is_machine(c->topology) ? c->topology
           : strcmp(c->machine, AUTO) != 0     ? c->machine
                                               : NULL;
}

static bool is_planned(const char *text)
{
    bool found = false;
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(planned); i++) {
        found = found || strcmp(text, planned[i]) == 0;
    }
    return found;
}

/* ---- costs --------------------------------------------------------------- */

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

/* The core of m on which a replica is: where it is pinned, or the first core
 * of its NUMA node that is not in `taken` [count]. m->n: there is none. */
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
    uint32_t core[QN_NODES_MAX] = {0};
    for (uint32_t i = 0; i < qn_config_seats(c); i++) {
        char text[QN_PLACE_TEXT_MAX];
        core[i] = core_of(m, &place[i], core, i);
        if (core[i] == m->n) {
            snprintf(why, cap, "machine '%s': it has no %s; measure again",
                     measured_file(c), qn_place_describe(&place[i], text));
            return QN_EINVAL;
        }
    }
    int err = qn_machine_create(costs, qn_config_seats(c));
    if (err != QN_OK) {
        snprintf(why, cap, "topology: %s", qn_strerror(err));
        return err;
    }
    for (uint32_t i = 0; i < qn_config_seats(c); i++) {
        (*costs)->core[i] = m->core[core[i]];
        (*costs)->core[i].os = i; /* a replica's number */
        for (uint32_t j = 0; j < qn_config_seats(c); j++) {
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
    for (uint32_t i = 0; i < qn_config_seats(c); i++) {
        if (place[i].cpu < 0 && place[i].numa_node < 0) {
            return false;
        }
    }
    return true;
}

/* Costs as measured, or none. */
static int machine_find(struct qn_machine **m, const struct qn_config *c,
                        char *why, size_t cap)
{
    const char *path = measured_file(c);
    struct qn_parse_error fault;
    int err = path != NULL ? qn_machine_load(m, path, &fault)
                           : qn_machine_discover(m, &fault);
    if (err != QN_OK) {
        snprintf(why, cap, "machine: %s", fault.text);
    }
    return err;
}

/* ---- trees that are made once -------------------------------------------- */

/* Assign replicas to the cores of the tree, from the root down. */
static int fix_shape(struct qn_topology *t, const struct qn_shape *s,
                     uint16_t *order)
{
    qn_node_t node[QN_NODES_MAX];
    for (uint32_t i = 0, n = qn_shape_order(s, order); i < n; i++) {
        node[order[i]] = i;
    }
    int err = qn_tree_place(&t->plan, s, node);
    t->made = err == QN_OK;
    return err;
}

int qn_topology_fix(struct qn_topology *t, const char *name,
                    const struct qn_machine *costs, struct qn_place *place)
{
    struct qn_shape s;
    uint16_t order[QN_CORES_MAX];
    struct qn_place before[QN_NODES_MAX];
    int err = strcmp(name, "adaptive") == 0
                  ? qn_adaptive_build(&s, costs, 0, QN_LEVEL_NODE)
                  : qn_static_build(&s, costs, name, 0, QN_LEVEL_NODE);
    err = err == QN_OK ? fix_shape(t, &s, order) : err;
    if (err == QN_OK) {
        memcpy(before, place, costs->n * sizeof *place);
        for (uint32_t i = 0; i < costs->n; i++) {
            place[i] = before[order[i]];
        }
    }
    return err;
}

/* Each core of the tree is a place. */
static int sit_down(const struct qn_machine *m, const uint16_t *order,
                    const struct qn_topology_opts *o, char *why, size_t cap)
{
    struct qn_place found[QN_NODES_MAX];
    const struct qn_places *places = o->places;
    for (uint32_t i = 0; i < m->n; i++) {
        uint32_t os = m->core[order[i]].os, at = 0;
        while (at < places->count && places->place[at].cpu != (int)os) {
            at++;
        }
        if (at == places->count) {
            snprintf(why, cap,
                     "topology '%s': quoind may not use core %u; plan "
                     "with --cores",
                     o->config->topology, os);
            return QN_EINVAL;
        }
        found[i] = qn_places_of(places, at, (enum qn_bind)o->config->pin);
    }
    memcpy(o->place, found, m->n * sizeof found[0]);
    return QN_OK;
}

static int fix_file(struct qn_topology *t, const struct qn_topology_opts *o,
                    char *why, size_t cap)
{
    const struct qn_config *c = o->config;
    struct qn_plan_file f;
    struct qn_parse_error fault = {""};
    uint16_t order[QN_CORES_MAX];
    int err = qn_plan_file_load(&f, c->topology, NULL, &fault);
    if (err != QN_OK) {
        snprintf(why, cap, "topology: %s", fault.text);
        return err;
    }
    if (f.down.n != qn_config_seats(c)) {
        snprintf(why, cap,
                 "topology '%s': a tree over %u cores, for %u replicas; give "
                 "--replicas %u, or plan with --cores",
                 c->topology, f.down.n, qn_config_seats(c), f.down.n);
        err = QN_EINVAL;
    }
    err = err == QN_OK ? fix_shape(t, &f.down, order) : err;
    if (err == QN_OK) {
        err = sit_down(f.m, order, o, why, cap);
    }
    qn_plan_file_fini(&f);
    return err;
}

uint32_t qn_topology_replicas(const struct qn_config *c)
{
    struct qn_plan_file f;
    uint32_t n = 0;
    if (!qn_topology_known(c->topology) && qn_plan_file_like(c->topology) &&
        qn_plan_file_load(&f, c->topology, NULL, NULL) == QN_OK) {
        n = f.down.n;
        qn_plan_file_fini(&f);
    }
    return n;
}

bool qn_topology_grows(const struct qn_config *c)
{
    return qn_topology_known(c->topology) && !is_planned(c->topology) &&
           ring_arity(c->topology) == 0 && measured_file(c) == NULL;
}

/* The replicas are at other places. */
static int weigh_again(struct qn_topology *t, const struct qn_topology_opts *o,
                       const struct qn_machine *m, char *why, size_t cap)
{
    qn_machine_destroy(t->costs);
    t->costs = NULL;
    return qn_topology_costs_on(&t->costs, m, o->config, o->place, why, cap);
}

/* ---- rings --------------------------------------------------------------- */

static int ring_given(struct qn_topology *t, const struct qn_config *c,
                      char *why, size_t cap)
{
    uint32_t k = ring_arity(c->topology);
    if (qn_config_seats(c) < 3 || k > qn_config_seats(c) - 1) {
        snprintf(why, cap,
                 "topology '%s': a ring of arity %u needs %u replicas; there "
                 "are %u",
                 c->topology, k, QN_MAX(k + 1, 3u), qn_config_seats(c));
        return QN_EINVAL;
    }
    t->ring = k;
    t->ring_from = 1;
    return QN_OK;
}

/* Where a file of costs says that it is faster. */
static int ring_chosen(struct qn_topology *t, char *why, size_t cap)
{
    struct qn_ring_or_tree r;
    int err = qn_ring_or_tree_choose(&r, t->costs);
    if (err != QN_OK) {
        snprintf(why, cap, "topology: %s", qn_strerror(err));
        return err;
    }
    t->ring = r.ring;
    t->ring_from = r.from;
    t->no_ring = r.ring == 0 ? "a ring is predicted to be no faster" : NULL;
    return QN_OK;
}

/* Replica i is the i-th on the ring: at the place that the map has for it. */
static int ring_place(struct qn_topology *t, const struct qn_topology_opts *o,
                      const struct qn_machine *m, char *why, size_t cap)
{
    qn_node_t order[QN_NODES_MAX];
    struct qn_place before[QN_NODES_MAX];
    uint32_t n = qn_config_seats(o->config);
    int err = qn_ring_order(order, &t->ring_part, t->costs, t->ring);
    if (err != QN_OK) {
        snprintf(why, cap, "topology: %s", qn_strerror(err));
        return err;
    }
    memcpy(before, o->place, n * sizeof *before);
    for (uint32_t i = 0; i < n; i++) {
        o->place[i] = before[order[i]];
    }
    return weigh_again(t, o, m, why, cap);
}

/* @param m  What t->costs come from; not needed if there are none. */
static int make_ring(struct qn_topology *t, const struct qn_topology_opts *o,
                     const struct qn_machine *m, char *why, size_t cap)
{
    const char *name = o->config->topology;
    int err = QN_OK;
    if (ring_arity(name) > 0) {
        err = ring_given(t, o->config, why, cap);
    } else if (t->anew && t->measured) {
        err = ring_chosen(t, why, cap);
    } else if (strcmp(name, AUTO) == 0) {
        t->no_ring = "without measured costs of cores a ring is not looked at";
    }
    bool placed = err == QN_OK && t->ring != 0 && t->anew;
    return placed ? ring_place(t, o, m, why, cap) : err;
}

/* ---- all ----------------------------------------------------------------- */

/* t->costs, between replicas at their final places. */
static int weigh(struct qn_topology *t, const struct qn_topology_opts *o,
                 const struct qn_machine *m, char *why, size_t cap)
{
    const struct qn_config *c = o->config;
    int err = qn_topology_costs_on(&t->costs, m, c, o->place, why, cap);
    if (err == QN_OK && is_planned(c->topology)) {
        err = qn_topology_fix(t, c->topology, t->costs, o->place);
        err = err == QN_OK ? weigh_again(t, o, m, why, cap) : err;
    }
    return err;
}

static int make(struct qn_topology *t, const struct qn_topology_opts *o,
                char *why, size_t cap)
{
    const struct qn_config *c = o->config;
    bool file = qn_topology_is_machine(c->topology);
    bool ring = ring_arity(c->topology) > 0;
    bool anew = file || ring || strcmp(c->topology, AUTO) == 0;
    bool needs = file || is_planned(c->topology);
    bool tree = !file && !qn_topology_known(c->topology);
    int err = tree ? fix_file(t, o, why, cap) : QN_OK;
    bool can = !o->shared && pinned(c, o->place);
    if (err == QN_OK && needs && !can) {
        snprintf(why, cap,
                 "topology '%s': a plan needs a core for each replica, pinned; "
                 "use auto",
                 c->topology);
        err = QN_EINVAL;
    }
    bool given = measured_file(c) != NULL;
    t->measured = can && given;
    t->anew = can && anew;
    bool weighed = t->measured || t->anew || needs; /* else by a rule, or as the
                                                       file says */
    struct qn_machine *m = NULL;
    if (err == QN_OK && (weighed || given)) { /* also a machine that the
                                                 topology does not use */
        err = machine_find(&m, c, why, cap);
    }
    err = err == QN_OK && weighed ? weigh(t, o, m, why, cap) : err;
    err = err == QN_OK ? make_ring(t, o, m, why, cap) : err;
    qn_machine_destroy(m);
    return err;
}

int qn_topology_make(struct qn_topology *t, const struct qn_topology_opts *o,
                     char *why, size_t cap)
{
    const struct qn_config *c = o->config;
    bool rule = false;
    for (uint32_t i = 0; i < QN_STATIC_TREES_PLAIN; i++) {
        rule = rule || strcmp(c->topology, qn_static_name_at(i)) == 0;
    }
    rule = rule || qn_static_arity(c->topology) > 0;
    *t = (struct qn_topology){.name = rule ? c->topology : "sequential"};
    int err = make(t, o, why, cap);
    if (err != QN_OK) {
        qn_topology_fini(t);
        *t = (struct qn_topology){.name = "sequential"};
    }
    return err;
}

void qn_topology_fini(struct qn_topology *t)
{
    qn_machine_destroy(t->costs);
    t->costs = NULL;
}
