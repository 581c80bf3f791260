/*
 * The driver: bytes and time between the machine and the channels. This is its
 * turn; bytes out are in driver_send.c, bytes in in driver_recv.c.
 *
 * Order of effects. Outputs are executed in the machine's order, so at the
 * acceptor a LEARN is in every child's lane before the slot is applied here.
 * After applying, and before the caller can answer anything from the new
 * state, the read index is raised (PROTOCOL.md 6.2, publish before expose).
 */
#include "paxos/driver.h"

#include <stdlib.h>

#include "core/base/log.h"
#include "paxos/driver_internal.h"

enum {
    FRAMES_MAX = 4096, /* frames of the tree in one turn ... */
    FRAMES = 16,       /* ... so many at a time, while there is work left */
    FILLS_MAX = 64,    /* slots sent to each laggard in one turn */
    ALLOW = 64,        /* commands of a step, before work is counted again */
};

/* ---- executing outputs --------------------------------------------------- */

static void out_apply(struct qn_driver *d, const struct qn_apply *a)
{
    const struct qn_service *s = &d->o.service;
    struct qn_slice list = a->group.commands;
    struct qn_slice next[QN_AHEAD];
    struct qn_applied one = {
        .slot = a->slot,
        .stamp_ms = a->stamp_ms,
        .origin = a->group.origin,
        .origin_inc = a->group.inc,
        .seq = a->group.first,
        .mine = a->mine,
    };
    d->exposed = a->slot;
    uint32_t n;
    do {
        for (n = 0; n < QN_AHEAD && qn_commands_next(&list, &next[n]); n++) {
        }
        if (s->ahead != NULL && n > 1) {
            s->ahead(s->ctx, next, n);
        }
        for (uint32_t i = 0; i < n; i++, one.seq++) {
            one.bytes = next[i];
            d->left -= s->apply(s->ctx, &one);
        }
        d->commands += n;
    } while (n == QN_AHEAD);
    if (a->last) {
        d->applied = a->slot;
        d->batches++;
        s->applied(s->ctx, a->slot, a->stamp_ms);
    }
}

static void out_execute(struct qn_driver *d, const struct qn_out *o)
{
    switch (o->kind) {
    case QN_OUT_SEND:
        qn_driver_send(d, o->to, &o->msg);
        break;
    case QN_OUT_SEND_ALL:
        for (qn_node_t n = 0; n < d->o.nodes; n++) {
            if (n != d->o.self) {
                qn_driver_send(d, n, &o->msg);
            }
        }
        break;
    case QN_OUT_BCAST:
        qn_driver_bcast(d, &o->msg);
        break;
    case QN_OUT_PERSIST:
        break; /* roles are fixed: nobody votes */
    case QN_OUT_APPLY:
        out_apply(d, &o->apply);
        break;
    case QN_OUT_NEED_SNAPSHOT:
        if (!d->need_snapshot) {
            qn_log(QN_LOG_ERROR,
                   "replica %u: fell behind further than the log reaches",
                   d->o.self);
        }
        d->need_snapshot = true;
        break;
    }
}

int qn_driver_step(struct qn_driver *d, const struct qn_input *in)
{
    qn_onepaxos_allow(d->machine, d->left > 0 ? ALLOW : 0);
    int err = qn_onepaxos_step(d->machine, in, d->now, d->wall_ms, &d->out);
    d->held = d->out.held;
    if (err != QN_OK) {
        return err;
    }
    for (uint32_t i = 0; i < d->out.count; i++) {
        out_execute(d, &d->out.out[i]);
    }
    d->did |= d->out.count != 0;
    d->steps += d->out.count != 0;
    d->again |= d->out.again || (d->held && d->left > 0);
    d->transfers = d->out.transfers;
    d->machine_deadline = d->out.deadline;
    qn_step_out_release(&d->out);
    return QN_OK;
}

/* Publish before expose: a slot counts as exposed with its first command, for
 * a step may end in the middle of a slot, and reads may come then. Then tell
 * the peers. The index is looked at in each turn, not only after applying:
 * should a wild store have lowered it, what was exposed here is published
 * again. */
static void publish(struct qn_driver *d)
{
    if (qn_load(d->o.read_index, QN_SEQ_CST) < d->exposed) {
        qn_fetch_max(d->o.read_index, d->exposed);
    }
    /* relaxed: only this thread writes its own lines. */
    if (qn_load(&d->o.state->applied, QN_RELAXED) != d->applied) {
        /* release -> acquire in qn_driver_beats_read of the peers: what is
         * applied here was published in the read index before. */
        qn_store(&d->o.state->applied, d->applied, QN_RELEASE);
    }
    struct qn_onepaxos_status st;
    qn_onepaxos_status(d->machine, &st);
    if (qn_load(&d->o.state->learned, QN_RELAXED) < st.learned_hi) {
        qn_store(&d->o.state->learned, st.learned_hi, QN_RELEASE);
    }
}

/* ---- a turn -------------------------------------------------------------- */

/* What the last turn has left. */
static void held_apply(struct qn_driver *d)
{
    const struct qn_input go = {.kind = QN_IN_GO};
    while (d->held && d->left > 0) {
        qn_driver_step(d, &go);
    }
}

/* Receive and apply; what there is no work left for stays in the channel. */
static void tree_receive(struct qn_driver *d)
{
    uint32_t frames = 0;
    uint32_t got = FRAMES;
    while (frames < FRAMES_MAX && got == FRAMES && d->left > 0) {
        got = qn_context_poll(d->context, FRAMES);
        frames += got;
        held_apply(d);
    }
}

bool qn_driver_turn(struct qn_driver *d, qn_time_t now, uint64_t wall_ms)
{
    d->now = now;
    d->wall_ms = wall_ms;
    d->did = false;
    d->left = QN_TURN_WORK;
    held_apply(d);
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        if (d->peer[i].qp != NULL) {
            qn_driver_receive(d, i);
        }
    }
    if (!d->hold_learns && d->o.nodes > 1) {
        if (d->context != NULL) {
            tree_receive(d);
        }
        if (now >= d->beat_at) {
            d->beat_at = QN_TIME_NEVER;
            qn_driver_beats_read(d);
        }
    }
    publish(d);
    return d->did;
}

bool qn_driver_flush(struct qn_driver *d, qn_time_t now)
{
    d->now = now;
    const struct qn_input tick = {.kind = QN_IN_TICK};
    do {
        d->again = false;
        qn_driver_step(d, &tick);
    } while (d->again);
    for (uint32_t i = 0; i < FILLS_MAX && qn_driver_queues_send(d); i++) {
    }
    qn_driver_bcast_send(d);
    publish(d);
    uint64_t waits = 0; /* they are flushed again when there is room */
    for (uint64_t m = d->touched; m != 0; m &= m - 1) {
        qn_node_t i = (qn_node_t)__builtin_ctzll(m);
        struct qn_driver_peer *p = &d->peer[i];
        if (p->qp != NULL &&
            (qn_qp_flush(p->qp) || (d->transfers & qn_driver_bit(i)) != 0 ||
             !qn_sendq_empty(&p->control) || !qn_sendq_empty(&p->bulk))) {
            waits |= qn_driver_bit(i);
        }
    }
    d->touched = waits;
    if (d->context != NULL) {
        d->tree_waits = qn_driver_tree_flush(d);
    }
    if (d->did && d->beat_at == QN_TIME_NEVER && d->o.nodes > 1) {
        d->beat_at = now + QN_BEAT_EVERY;
    }
    return waits != 0 || d->tree_waits;
}

bool qn_driver_pending(struct qn_driver *d)
{
    const void *bytes = NULL;
    size_t len = 0;
    if (d->held) {
        return true;
    }
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        struct qn_driver_peer *p = &d->peer[i];
        if (p->qp == NULL || p->corrupt) {
            continue;
        }
        /* What was refused may be taken once the machine has moved, perhaps
         * later in the same turn; until then, asking again is no use. */
        if (p->refused ? p->refused_step != d->steps
                       : qn_qp_peek(p->qp, &bytes, &len) == QN_OK) {
            return true;
        }
    }
    if (d->context != NULL && !d->hold_learns &&
        qn_context_pending(d->context)) {
        return true;
    }
    return (d->touched != 0 || d->tree_waits) && qn_driver_room_came(d);
}

qn_time_t qn_driver_deadline(const struct qn_driver *d)
{
    qn_time_t at = QN_MIN(d->machine_deadline, d->beat_at);
    if (d->stalled_since != 0) {
        at = QN_MIN(at, d->stalled_since + QN_STALL);
    }
    return at;
}

/* ---- public -------------------------------------------------------------- */

int qn_driver_submit(struct qn_driver *d, const struct qn_slice *parts,
                     uint32_t count, uint64_t *seq)
{
    const struct qn_input in = {.kind = QN_IN_SUBMIT,
                                .submit = {.parts = parts, .count = count}};
    qn_slot_t before = d->exposed;
    int err = qn_driver_step(d, &in);
    if (err == QN_OK) {
        *seq = d->out.seq;
    }
    if (d->exposed != before) {
        publish(d); /* a node that catches up has applied something */
    }
    return err;
}

bool qn_driver_room(const struct qn_driver *d)
{
    return qn_onepaxos_room(d->machine);
}

qn_slot_t qn_driver_read_index(const struct qn_driver *d)
{
    /* seq_cst: partner is the fetch_max of the replica that publishes. A true
     * index p was stored after slot p was learned, hence after the acceptor
     * said that it had accepted p: the bound never cuts a true index. */
    qn_slot_t index = qn_load(d->o.read_index, QN_SEQ_CST);
    qn_slot_t bound = qn_driver_accepted(d);
    return QN_MIN(index, bound);
}

qn_slot_t qn_driver_applied(const struct qn_driver *d)
{
    return d->applied;
}

void qn_driver_status(const struct qn_driver *d, struct qn_driver_status *out)
{
    struct qn_onepaxos_status st;
    qn_onepaxos_status(d->machine, &st);
    *out = (struct qn_driver_status){
        .epoch = st.epoch,
        .leader = st.leader,
        .acceptor = st.acceptor,
        .applied = d->applied,
        .learned = st.learned_hi,
        .decided_hi = st.decided_hi,
        .batches = d->batches,
        .commands = d->commands,
        .unapplied = st.unapplied,
        .fetches = st.fetches,
        .log_bytes = st.log_bytes,
    };
}

void qn_driver_hold_learns(struct qn_driver *d, bool hold)
{
    d->hold_learns = hold;
    d->beat_at = 0;
}

void qn_driver_down(struct qn_driver *d, qn_node_t peer, qn_time_t now)
{
    struct qn_driver_peer *p = &d->peer[peer];
    if (peer >= d->o.nodes || p->qp == NULL) {
        return;
    }
    d->now = now;
    const struct qn_input in = {.kind = QN_IN_DOWN, .down = {peer}};
    qn_driver_step(d, &in);
    p->qp = NULL; /* the caller closes it */
    qn_sendq_free(&p->control);
    qn_sendq_free(&p->bulk);
    qn_joiner_reset(&p->joiner);
    if (d->context != NULL) {
        qn_context_down(d->context, peer);
    }
    d->children &= ~qn_driver_bit(peer);
    d->touched &= ~qn_driver_bit(peer);
}

/* ---- life ---------------------------------------------------------------- */

/* The tree of all but the leader, who has the batches and is told on the direct
 * lane that they are accepted. The acceptor is the root. */
static int context_make(struct qn_driver *d, struct qn_tree *tree)
{
    struct qn_onepaxos_status st;
    qn_onepaxos_status(d->machine, &st);
    qn_node_t order[QN_NODES_MAX];
    uint32_t n = 0;
    order[n++] = st.acceptor;
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        if (i != st.acceptor && i != st.leader) {
            order[n++] = i;
        }
    }
    if (d->o.self == st.leader || n == 1) {
        return QN_OK; /* no part in it, or nobody to tell */
    }
    int err = qn_tree_build(tree, d->o.topology, order, n);
    if (err != QN_OK) {
        return err;
    }
    const struct qn_context_opts o = {.self = d->o.self,
                                      .tree = tree,
                                      .qp = d->tree,
                                      .deliver = qn_driver_deliver,
                                      .ctx = d};
    if (tree->root == d->o.self) {
        for (uint32_t i = 0; i < tree->child_count[d->o.self]; i++) {
            d->children |=
                qn_driver_bit(tree->child[tree->child_at[d->o.self] + i]);
        }
    }
    return qn_context_create(&d->context, &o);
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
        .fixed = true,
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
    struct qn_onepaxos_status st;
    qn_onepaxos_status(d->machine, &st);
    d->acceptor = st.acceptor;
    return QN_OK;
}

int qn_driver_create(struct qn_driver **out, const struct qn_driver_opts *o)
{
    if (o->nodes == 0 || o->nodes > QN_NODES_MAX || o->self >= o->nodes) {
        return QN_EINVAL;
    }
    struct qn_driver *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return QN_ENOMEM;
    }
    qn_pool_init(&d->pool);
    d->o = *o;
    d->now = o->now;
    d->machine_deadline = QN_TIME_NEVER;
    d->beat_at = QN_TIME_NEVER;
    for (qn_node_t i = 0; i < o->nodes && o->nodes > 1; i++) {
        if (i != o->self) {
            d->peer[i].qp = o->direct[i];
            d->tree[i] = o->tree[i];
            d->peer_state[i] = o->peer_state[i];
        }
    }
    int err = machine_make(d);
    struct qn_tree *tree = calloc(1, sizeof *tree);
    if (err == QN_OK && tree == NULL) {
        err = QN_ENOMEM;
    }
    if (err == QN_OK && o->nodes > 1) {
        err = context_make(d, tree);
    }
    free(tree);
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
