/*
 * A driver begins and ends.
 */
#include <stdlib.h>

#include "core/base/log.h"
#include "paxos/driver_internal.h"

/* ---- the machine --------------------------------------------------------- */

static void shared_make(struct qn_driver *d)
{
    d->shared = (struct qn_shared){.word = d->o.memory.word,
                                   .own = d->o.memory.ring,
                                   .ring = qn_driver_ring,
                                   .ctx = d};
    qn_ring_begin(&d->shared.own, 1);
}

static int machine_make(struct qn_driver *d)
{
    const struct qn_onepaxos_opts o = {
        .self = d->o.self,
        .nodes = d->o.nodes,
        .incarnation = d->o.incarnation,
        .parent = d->o.self,
        .alloc = &d->pool.alloc,
        .params = qn_params_default(d->o.own_cores),
        .seed = d->o.seed,
        .shared = d->memory ? &d->shared : NULL,
        .fixed = d->o.fixed,
    };
    size_t bytes = qn_onepaxos_size(&o);
    if (bytes == 0) {
        return QN_EINVAL;
    }
    void *mem = calloc(1, bytes);
    if (mem == NULL) {
        return QN_ENOMEM;
    }
    d->machine = qn_onepaxos_init(mem, &o);
    return QN_OK;
}

/* ---- the peers ----------------------------------------------------------- */

static void peers_take(struct qn_driver *d)
{
    const struct qn_driver_opts *o = &d->o;
    for (qn_node_t i = 0; i < o->nodes; i++) {
        struct qn_driver_peer *p = &d->peer[i];
        p->life = (struct qn_driver_life){.node = i, .inc = o->incarnation[i]};
        if (i == o->self || o->nodes == 1) {
            continue;
        }
        p->qp = o->direct[i];
        p->state = o->peer_state[i];
        d->tree[i] = o->tree[i];
        if (d->memory && o->memory.peer_ring[i] != NULL) {
            p->life.has_ring = true;
            p->life.ring = *o->memory.peer_ring[i];
        }
    }
}

/* Who is dead from the beginning is so for the machine, too. */
static void dead_tell(struct qn_driver *d)
{
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        const struct qn_input in = {.kind = QN_IN_DOWN, .down = {i}};
        if (!qn_driver_lives(d, i)) {
            qn_driver_step(d, &in);
        }
    }
}

/* ---- life ---------------------------------------------------------------- */

static int begin(struct qn_driver *d)
{
    peers_take(d);
    if (d->memory) {
        shared_make(d);
    }
    int err = machine_make(d);
    if (err != QN_OK) {
        return err;
    }
    qn_driver_roles(d);
    err = qn_driver_tree_make(d);
    if (err == QN_OK) {
        dead_tell(d);
    }
    return err;
}

int qn_driver_create(struct qn_driver **out, const struct qn_driver_opts *o)
{
    if (o->nodes == 0 || o->nodes > QN_NODES_MAX || o->self >= o->nodes) {
        return QN_EINVAL;
    }
    if (!o->fixed) {
        return QN_ENOSYS;
    }
    struct qn_driver *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return QN_ENOMEM;
    }
    qn_pool_init(&d->pool);
    d->o = *o;
    d->memory = !o->fixed && o->memory.word != NULL;
    d->now = o->now;
    d->machine_deadline = QN_TIME_NEVER;
    d->beat_at = QN_TIME_NEVER;
    int err = begin(d);
    if (err != QN_OK) {
        qn_driver_destroy(d);
        return err;
    }
    *out = d;
    return QN_OK;
}

void qn_driver_destroy(struct qn_driver *d)
{
    if (d == NULL) {
        return;
    }
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        qn_sendq_free(&d->peer[i].control);
        qn_sendq_free(&d->peer[i].bulk);
        qn_joiner_reset(&d->peer[i].joiner);
    }
    qn_sendq_free(&d->bcast);
    qn_joiner_reset(&d->learn_joiner);
    qn_context_destroy(d->context);
    if (d->machine != NULL) {
        qn_onepaxos_fini(d->machine);
        free(d->machine);
    }
    qn_pool_fini(&d->pool);
    free(d);
}
