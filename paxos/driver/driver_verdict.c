/*
 * The verdict on a group with the memory acceptor (paxos/machine/verdict.h;
 * PROTOCOL.md 5.7): what it is made of, and how the group goes on by force.
 *
 * Everybody finds it for himself, at the end of each turn, from what all say in
 * their outboxes; while the word's owner lives that is a compare. Each loads
 * what a peer hears before what that one has learned: who says that an end was
 * heard has learned what had come before it.
 *
 * A life that comes after the owner's end is late from the beginning on, and
 * not only when it has begun and says so: else the verdict would be withdrawn
 * for the moment in between. (Who hears of both in the wrong order, for the end
 * is seen in the commons and the life is told, finds it out when that life has
 * learned more.)
 */
#include "paxos/driver/driver_internal.h"

void qn_driver_hears(struct qn_driver *d, qn_node_t peer, uint64_t inc)
{
    /* release -> acquire in has_heard: `learned` was stored before. */
    qn_store(&d->o.state->hears[peer], inc, QN_RELEASE);
}

void qn_driver_coming(struct qn_driver *d, qn_slot_t position)
{
    /* relaxed: only this thread writes it. */
    if (qn_load(&d->o.state->coming, QN_RELAXED) != position) {
        /* release -> acquire in member_of: what was installed is learned
         * before. */
        qn_store(&d->o.state->coming, position, QN_RELEASE);
    }
}

/* That life has ended for certain. */
static bool is_over(const struct qn_driver *d, qn_node_t node, uint64_t inc)
{
    uint64_t newest = d->peer[node].life.inc;
    return newest > inc || (newest == inc && !qn_driver_lives(d, node));
}

/* The owner of the accept word, if it is known and has ended. */
static bool ended_owner(const struct qn_driver *d, struct qn_word w,
                        qn_node_t *owner, uint64_t *inc)
{
    return qn_driver_owner(d, w, owner, inc) && is_over(d, *owner, *inc);
}

uint64_t qn_driver_bereft(const struct qn_driver *d)
{
    qn_node_t owner;
    uint64_t inc;
    if (!d->memory) {
        return 0;
    }
    struct qn_word w = qn_shared_word(&d->shared);
    return ended_owner(d, w, &owner, &inc) ? w.epoch + 1 : 0;
}

/* It receives from nobody who is not known to live here. */
static bool has_heard(const struct qn_driver *d, qn_node_t i,
                      const struct qn_outbox_state *s)
{
    for (qn_node_t k = 0; k < d->o.nodes; k++) {
        /* acquire <- release in qn_driver_hears. */
        uint64_t life = k == i ? 0 : qn_load(&s->hears[k], QN_ACQUIRE);
        if (life != 0 &&
            (life != d->peer[k].life.inc || !qn_driver_lives(d, k))) {
            return false;
        }
    }
    return true;
}

static struct qn_verdict_member member_of(const struct qn_driver *d,
                                          qn_node_t i, uint64_t epoch)
{
    const struct qn_outbox_state *s =
        i == d->o.self ? d->o.state : d->peer[i].state;
    struct qn_verdict_member m = {.lives = qn_driver_lives(d, i) && s != NULL};
    if (m.lives) {
        m.heard = has_heard(d, i, s);
        /* acquire <- release in late_tell. */
        m.late = qn_load(&s->late, QN_ACQUIRE) == epoch + 1 ||
                 (i != d->o.self && d->peer[i].late == epoch + 1);
        /* acquire <- release in qn_driver_coming. */
        m.coming = qn_load(&s->coming, QN_ACQUIRE);
        /* acquire <- release in qn_driver_learned; after the others. */
        m.learned = qn_load(&s->learned, QN_ACQUIRE);
    }
    return m;
}

/* This life has never received from the owner. */
static void late_tell(struct qn_driver *d, uint64_t epoch, qn_node_t owner,
                      uint64_t inc)
{
    if (inc < d->born[owner] &&
        qn_load(&d->o.state->late, QN_RELAXED) != epoch + 1) {
        /* release -> acquire in member_of. */
        qn_store(&d->o.state->late, epoch + 1, QN_RELEASE);
    }
}

static struct qn_verdict verdict_find(struct qn_driver *d)
{
    struct qn_word w = qn_shared_word(&d->shared);
    struct qn_verdict_in in = {.hi = w.hi, .nodes = d->o.nodes};
    qn_node_t owner;
    uint64_t inc;
    if (!ended_owner(d, w, &owner, &inc)) {
        return (struct qn_verdict){0};
    }
    const struct qn_ring *ring = qn_driver_ring(d, owner, inc);
    late_tell(d, w.epoch, owner, inc);
    if (ring == NULL) {
        return (struct qn_verdict){0}; /* who has mapped it says it */
    }
    in.ended = true;
    in.lo = qn_ring_lo(ring);
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        in.member[i] = member_of(d, i, w.epoch);
    }
    return qn_verdict_find(&in);
}

void qn_driver_verdict_look(struct qn_driver *d)
{
    bool stopped = d->verdict.kind == QN_VERDICT_STOPPED;
    d->verdict = verdict_find(d);
    if (d->verdict.kind != QN_VERDICT_WAITING) {
        d->lacks_since = 0;
    } else if (d->lacks_since == 0) {
        d->lacks_since = d->now;
    }
    if (!stopped && d->verdict.kind == QN_VERDICT_STOPPED) {
        qn_driver_note(d, QN_EVENT_STOPPED, d->cfg.acceptor, d->applied,
                       qn_driver_said(d));
    }
}

/* A take-over looks like that for a moment. */
uint64_t qn_driver_waiting(const struct qn_driver *d)
{
    bool long_enough =
        d->lacks_since != 0 && d->now - d->lacks_since >= QN_DRIVER_LACKS;
    return long_enough ? d->verdict.awaited : 0;
}

/* ---- recovery ------------------------------------------------------------ */

int qn_driver_verdict_recoverable(const struct qn_driver *d)
{
    struct qn_resume r;
    bool whole = qn_onepaxos_resume(d->machine, &r) &&
                 r.position == qn_onepaxos_learned(d->machine);
    return qn_driver_stopped(d) && whole ? QN_OK : QN_EBUSY;
}

int qn_driver_verdict_recover(struct qn_driver *d)
{
    const struct qn_input in = {.kind = QN_IN_RECOVER};
    qn_driver_verdict_look(d);
    if (qn_driver_verdict_recoverable(d) != QN_OK) {
        return QN_EBUSY;
    }
    qn_slot_t had = d->applied;
    qn_slot_t said = qn_driver_said(d);
    int err = qn_driver_step(d, &in);
    if (err != QN_OK) {
        return err;
    }
    qn_driver_note(d, QN_EVENT_RECOVERED, d->o.self, had, said);
    d->verdict = (struct qn_verdict){0};
    d->applied = d->exposed = qn_onepaxos_learned(d->machine);
    d->need_snapshot = false;
    qn_driver_publish(d);
    return QN_OK;
}
