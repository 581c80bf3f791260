/*
 * Incarnations of the other nodes: they end, and the next ones begin.
 *
 * What an incarnation had sent whole before it ended is received first. It may
 * be the only LEARN of a slot, or what elects the next leader at once.
 *
 * Memory acceptor: the ring of an incarnation that has ended is kept while the
 * accept register names that incarnation, and not while the newest entry of the
 * utility log does (M4): its successor may end before it has copied the ring.
 * The word never goes back, and an incarnation that has ended does not move it
 * any more. So one that the word does not name now, it never names again. If
 * this node has not heard of the word's epoch it keeps all rings.
 */
#include <string.h>

#include "core/base/assert.h"
#include "core/base/log.h"
#include "paxos/driver/driver_internal.h"
#include "paxos/feed/feed.h"
#include "paxos/mutant.h"

enum {
    DRAIN_TURNS = 64, /* what a lane holds is less */
};

/* ---- rings --------------------------------------------------------------- */

static bool is(const struct qn_driver_incarnation *l, qn_node_t node,
               uint64_t inc)
{
    return l->node == node && l->inc == inc;
}

const struct qn_ring *qn_driver_ring(void *ctx, qn_node_t node, uint64_t inc)
{
    const struct qn_driver *d = ctx;
    const struct qn_driver_incarnation *l = &d->peer[node].incarnation;
    if (node == d->o.self && l->inc == inc) {
        return &d->shared.own;
    }
    if (l->inc == inc) {
        return l->has_ring ? &l->ring : NULL;
    }
    for (uint32_t i = 0; i < d->gone_count; i++) {
        if (is(&d->gone[i], node, inc)) {
            return &d->gone[i].ring;
        }
    }
    return NULL;
}

const struct qn_arena *qn_driver_arena(void *ctx, qn_node_t node, uint64_t inc)
{
    const struct qn_driver *d = ctx;
    const struct qn_driver_peer *p = &d->peer[node];
    if (!qn_driver_lives(d, node) || p->incarnation.inc != inc) {
        return NULL;
    }
    return node == d->o.self ? d->o.arena : p->has_arena ? &p->arena : NULL;
}

bool qn_driver_owner(const struct qn_driver *d, struct qn_accept_register w,
                     qn_node_t *node, uint64_t *inc)
{
    return qn_memory_acceptor_owner(&d->shared, qn_onepaxos_utility(d->machine),
                                    w.epoch, node, inc);
}

/** The word names that incarnation, or one that is not known here. */
static bool named(const struct qn_driver *d, qn_node_t node, uint64_t inc)
{
    qn_node_t owner;
    uint64_t incarnation;
    if (QN_MUTANT(FREED_BY_UL)) { /* M4 */
        return d->roles.cfg.leader == node && d->roles.cfg.leader_inc == inc;
    }
    return !qn_driver_owner(d, qn_memory_acceptor_load(&d->shared), &owner,
                            &incarnation) ||
           (owner == node && incarnation == inc);
}

void qn_driver_mapped(struct qn_driver *d)
{
    if (!d->memory) {
        return;
    }
    struct qn_accept_register w = qn_memory_acceptor_load(&d->shared);
    qn_node_t owner;
    uint64_t inc;
    if (qn_driver_owner(d, w, &owner, &inc) &&
        (qn_driver_ring(d, owner, inc) != NULL || QN_MUTANT(UNMAPPED)) &&
        qn_load(&d->o.state->mapped, QN_RELAXED) != w.epoch) {
        /* release -> acquire in in_sync (driver_roles.c). */
        qn_store(&d->o.state->mapped, w.epoch, QN_RELEASE);
    }
}

static void gone_sweep(struct qn_driver *d)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->gone_count; i++) {
        if (named(d, d->gone[i].node, d->gone[i].inc)) {
            d->gone[n++] = d->gone[i];
        }
    }
    QN_ASSERT(n <= d->gone_count);
    d->gone_count = n;
}

static int gone_add(struct qn_driver *d, const struct qn_driver_incarnation *l)
{
    gone_sweep(d);
    QN_ASSERT(l->has_ring);
    QN_ASSERT(d->gone_count <= QN_DRIVER_GONE);
    if (d->gone_count == QN_DRIVER_GONE) {
        return QN_ENOMEM;
    }
    d->gone[d->gone_count++] = *l;
    return QN_OK;
}

int qn_driver_remember(struct qn_driver *d, qn_node_t node, uint64_t inc,
                       const struct qn_ring *ring)
{
    if (!d->memory || node >= d->o.nodes || inc == 0 || ring == NULL) {
        return QN_EINVAL;
    }
    struct qn_driver_peer *p = &d->peer[node];
    if (qn_driver_ring(d, node, inc) != NULL) {
        return QN_OK;
    }
    int err = QN_OK;
    if (is(&p->incarnation, node, inc)) {
        p->incarnation.ring = *ring;
        p->incarnation.has_ring = true;
    } else {
        err = gone_add(
            d, &(struct qn_driver_incarnation){
                   .node = node, .inc = inc, .has_ring = true, .ring = *ring});
    }
    qn_driver_mapped(d);
    return err;
}

bool qn_driver_keeps(struct qn_driver *d, qn_node_t node, uint64_t inc)
{
    if (!d->memory || node >= d->o.nodes) {
        return false;
    }
    struct qn_driver_peer *p = &d->peer[node];
    bool lives = qn_driver_lives(d, node) && p->incarnation.inc == inc;
    if (lives || named(d, node, inc)) {
        return true;
    }
    gone_sweep(d);
    if (is(&p->incarnation, node, inc)) {
        p->incarnation.has_ring = false;
    }
    return false;
}

/* ---- down ---------------------------------------------------------------- */

/* Receive all that is there whole. */
static void drain(struct qn_driver *d, qn_node_t peer)
{
    uint32_t turns = DRAIN_TURNS;
    while (turns-- > 0 && qn_driver_receive(d, peer)) {
    }
    qn_driver_tree_drain(d);
}

/* The end of the node that lost its role may be heard of after the new roles.
 */
static void reason_refine(struct qn_driver *d, qn_node_t peer)
{
    bool soon = d->now - d->roles.changed_at < QN_DRIVER_SOON;
    if (d->roles.reason == QN_REASON_SUSPECTED && d->roles.lost == peer &&
        soon && d->roles.lost_inc == d->peer[peer].incarnation.inc) {
        d->roles.reason = QN_REASON_DEATH;
    }
}

static void forget_channels(struct qn_driver *d, qn_node_t peer)
{
    struct qn_driver_peer *p = &d->peer[peer];
    QN_ASSERT(peer != d->o.self);
    p->qp = NULL; /* the caller closes it */
    d->living &= ~qn_driver_bit(peer);
    qn_sendq_free(&p->control);
    qn_sendq_free(&p->bulk);
    qn_joiner_reset(&p->joiner);
    QN_ASSERT(qn_sendq_empty(&p->control));
    QN_ASSERT(qn_sendq_empty(&p->bulk));
    if (d->context != NULL) {
        qn_context_down(d->context, peer);
    }
    d->tree[peer] = NULL;
    qn_dissemination_peer_down(&d->dissemination, peer);
    d->touched &= ~qn_driver_bit(peer);
    d->suspected &= ~qn_driver_bit(peer);
    qn_positions_peer_down(&d->positions, peer);
}

void qn_driver_down(struct qn_driver *d, qn_node_t peer, qn_time_t now)
{
    if (peer >= d->o.nodes || d->peer[peer].qp == NULL) {
        return;
    }
    qn_driver_time(d, now);
    qn_driver_note(d, QN_EVENT_DOWN, peer, d->positions.applied,
                   d->peer[peer].incarnation.inc);
    drain(d, peer);
    reason_refine(d, peer);
    qn_driver_halt_note(d, peer);
    d->talk.round = 0; /* the others are asked again */
    const struct qn_input in = {.kind = QN_IN_DOWN, .down = {peer}};
    qn_driver_step(d, &in);
    forget_channels(d, peer);
    qn_positions_look_by(&d->positions, d->now); /* what of it was learned
                                                    elsewhere */
    qn_driver_tree(d, qn_driver_living(d) & ~d->positions.lagging);
    qn_driver_publish(d); /* what was received last may be applied */
    qn_driver_hears(d, peer, 0);
    QN_ASSERT(!qn_driver_lives(d, peer));
}

/* ---- up ------------------------------------------------------------------ */

static bool peer_ok(const struct qn_driver *d,
                    const struct qn_driver_peer_opts *p)
{
    return p->node < d->o.nodes && p->node != d->o.self && p->inc != 0 &&
           p->direct != NULL && p->tree != NULL &&
           (p->state != NULL || d->told != NULL);
}

static void peer_begin(struct qn_driver *d, const struct qn_driver_peer_opts *p)
{
    struct qn_driver_peer *x = &d->peer[p->node];
    QN_ASSERT(x->qp == NULL);
    QN_ASSERT(x->incarnation.inc < p->inc);
    QN_ASSERT((d->dissemination.children & qn_driver_bit(p->node)) == 0);
    *x = (struct qn_driver_peer){
        .qp = p->direct,
        .state = p->state,
        .incarnation = {.node = p->node,
                        .inc = p->inc,
                        .has_ring = d->memory && p->ring != NULL},
    };
    d->living |= qn_driver_bit(p->node);
    if (x->incarnation.has_ring) {
        x->incarnation.ring = *p->ring;
    }
    x->has_arena = p->arena != NULL;
    if (x->has_arena) {
        x->arena = *p->arena;
    }
    d->tree[p->node] = p->tree;
    qn_driver_state_forget(d, p->node);
    qn_positions_peer_up(&d->positions, p->node, d->now);
    qn_halt_peer_up(&d->halt, p->node, qn_driver_bereft(d));
}

int qn_driver_up(struct qn_driver *d, const struct qn_driver_peer_opts *p,
                 qn_time_t now)
{
    if (!peer_ok(d, p)) {
        return QN_EINVAL;
    }
    const struct qn_driver_incarnation *old = &d->peer[p->node].incarnation;
    if (p->inc <= old->inc) {
        return QN_ESTALE;
    }
    qn_driver_down(d, p->node, now);
    qn_driver_time(d, now);
    if (d->memory && old->has_ring && named(d, p->node, old->inc) &&
        gone_add(d, old) != QN_OK) {
        return QN_ENOMEM;
    }
    peer_begin(d, p);
    qn_driver_hears(d, p->node, p->inc);
    qn_driver_note(d, QN_EVENT_UP, p->node, d->positions.applied, p->inc);
    const struct qn_input in = {.kind = QN_IN_UP, .up = {p->node, p->inc}};
    qn_driver_step(d, &in);
    if (d->context != NULL) {
        qn_context_up(d->context, p->node);
    }
    qn_positions_look_by(&d->positions, d->now);
    qn_driver_ring_expect(d);
    qn_driver_mapped(d);
    qn_driver_tree(d, qn_driver_living(d) & ~d->positions.lagging);
    qn_driver_publish(d);
    return QN_OK;
}

/* ---- snapshots ----------------------------------------------------------- */

bool qn_driver_cut(const struct qn_driver *d, struct qn_resume *r)
{
    bool whole = qn_onepaxos_resume(d->machine, r) && !qn_driver_apply_waits(d);
    QN_ASSERT(!whole || r->position == d->positions.applied);
    QN_ASSERT(!whole || d->positions.visible_slot == d->positions.applied);
    return whole;
}

bool qn_driver_needs_snapshot(const struct qn_driver *d)
{
    struct qn_onepaxos_status st;
    qn_onepaxos_status(d->machine, &st);
    return st.need_snapshot;
}

uint32_t qn_driver_ul(const struct qn_driver *d, struct qn_ul_entry *entries,
                      uint32_t cap)
{
    const struct qn_utility *u = qn_onepaxos_utility(d->machine);
    uint32_t len = qn_utility_len(u);
    uint32_t n = 0;
    for (uint32_t i = len - QN_MIN(len, cap); i < len; i++) {
        const struct qn_ul_entry *e = qn_utility_entry(u, i);
        if (e != NULL) {
            entries[n++] = *e;
        }
    }
    QN_ASSERT(n <= cap);
    return n;
}

int qn_driver_install(struct qn_driver *d, const struct qn_resume *r,
                      const struct qn_ul_entry *ul, uint32_t count,
                      qn_time_t now)
{
    struct qn_resume before;
    const bool lost = !qn_apply_failure_whole(&d->apply.failure);
    bool between = qn_onepaxos_resume(d->machine, &before);
    if (d->apply.failure.phase == QN_APPLY_ENDED) {
        return QN_EAPPLY;
    }
    if (!lost && (!between || d->apply.count != 0)) {
        return QN_EAGAIN;
    }
    if (lost ? r->position < qn_onepaxos_lose_state(d->machine)
             : r->position <= before.position) {
        qn_onepaxos_discard(d->machine, r);
        return QN_ESTALE;
    }
    if (count != 0 && qn_onepaxos_adopt(d->machine, ul, count) != QN_OK) {
        return QN_EINVAL;
    }
    qn_driver_time(d, now);
    qn_onepaxos_install(d->machine, r, now);
    if (lost) {
        qn_positions_replace(&d->positions, r->position);
        qn_driver_apply_installed(d);
    } else {
        qn_positions_jump(&d->positions, r->position);
    }
    QN_ASSERT(qn_onepaxos_learned(d->machine) >= r->position);
    if (d->o.feed != NULL) {
        qn_feed_snapshot(d->o.feed, r->position);
    }
    qn_driver_roles(d); /* the entries may be new: the tree, before a step */
    qn_driver_note(d, QN_EVENT_INSTALLED, d->o.self, r->position, 0);
    d->need_snapshot = false;
    qn_positions_look_by(&d->positions, d->now);
    qn_driver_publish(d);
    return QN_OK;
}
