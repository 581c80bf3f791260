/*
 * A group with the process acceptor that has stopped (PROTOCOL.md 6.5; 9,
 * Forced recovery): its leader and its acceptor were lost together. (That with
 * the memory acceptor: driver_verdict.c.)
 *
 * A wrong verdict would be worse than a late one. The machine says when the
 * leader of the newest epoch that it knows, itself, can never begin it: the
 * acceptor's life has ended, and so has that of the last leader who may have
 * the log (qn_onepaxos_lost). Is there a later epoch, whose leader has had an
 * answer of one of the two before it ended? Then a majority had voted for its
 * entry before that end; each of them said so in its outbox before its vote
 * left, and its later lives say so from the beginning. So if a majority says
 * now, after the ends were heard of, that it has never voted for an entry later
 * than those known here, there is none that could have had an answer; and
 * leaders of entries chosen from now on find both dead.
 *
 * Only that leader can know it. It says so in its outbox, with the epoch, and
 * the others look there, but only while the epoch's leader does not serve: a
 * group that goes on pays a compare. Should that leader end, another one takes
 * its place, and finds the same.
 *
 * There is a second way to stop. The acceptor had answered the new leader, and
 * ended: how far it had decided is known, but the leader had lagged behind what
 * the acceptor kept, and lacks a part. Others who have learned more give it, or
 * a snapshot; so it goes on unless all who live have learned as much as the
 * leader, no more. (Who has learned less may have the part behind a gap of his
 * own, and is waited for.) This is said when it has been so for a second, and
 * withdrawn when it is not so any more: one that stands still may not have read
 * what the acceptor had sent him.
 *
 * `said` is for people: the highest position of which it is known that somebody
 * had learned it. An acceptor says how far it has accepted before anybody else
 * can know of it, so if its outbox was mapped here when it ended, nothing above
 * has ever been acknowledged. It decides nothing: who says it may have run
 * wild.
 *
 * Recovery (qn_driver_recover) is an order to the one that is left. Its own
 * words are all that is left of the old group: the read index, which may lie
 * above its log, is set back before anybody else is born.
 */
#include "paxos/driver/driver_internal.h"

/* With the epoch in `stopped`: its leader's log has a gap. */
#define INCOMPLETE ((uint64_t)1 << 63)

/* In `stopped`, of a node that goes on by force, until somebody leads. No epoch
 * is as great. */
#define BY_FORCE UINT64_MAX

/* ---- the verdict --------------------------------------------------------- */

static uint64_t epoch_mark(const struct qn_driver *d)
{
    return (uint64_t)d->cfg.index + 1;
}

static bool leads(const struct qn_driver *d)
{
    return d->cfg.leader == d->o.self &&
           d->cfg.leader_inc == d->peer[d->o.self].life.inc;
}

/* A living node is about to lead by force: the two that were lost do not
 * matter. Only its outbox says so, and it did before any other life began. */
static bool goes_on_by_force(const struct qn_driver *d)
{
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        const struct qn_outbox_state *s =
            i == d->o.self ? d->o.state : d->peer[i].state;
        /* acquire <- release in qn_driver_recover. */
        if (s != NULL && (i == d->o.self || qn_driver_lives(d, i)) &&
            qn_load(&s->stopped, QN_ACQUIRE) == BY_FORCE) {
            return true;
        }
    }
    return false;
}

static void force_end(struct qn_driver *d)
{
    if (qn_load(&d->o.state->stopped, QN_RELAXED) == BY_FORCE) {
        qn_store(&d->o.state->stopped, 0, QN_RELEASE);
    }
}

/* What lies in this node's log has been applied, so a snapshot that was whole
 * would have been installed. */
static bool lacks_for_long(struct qn_driver *d)
{
    qn_slot_t learned = qn_onepaxos_learned(d->machine);
    bool lacks = qn_onepaxos_lacks(d->machine) && d->applied == learned &&
                 qn_driver_all_at(d, learned);
    if (!lacks || d->lacks_at != learned) {
        d->lacks_since = 0;
    }
    if (lacks && d->lacks_since == 0) {
        d->lacks_since = d->now;
        d->lacks_at = learned;
    }
    return lacks && d->now - d->lacks_since >= QN_DRIVER_LACKS;
}

static void withdraw(struct qn_driver *d)
{
    uint64_t said = qn_load(&d->o.state->stopped, QN_RELAXED);
    if (said != BY_FORCE && (said & INCOMPLETE) != 0) {
        qn_store(&d->o.state->stopped, 0, QN_RELEASE);
    }
}

void qn_driver_stop_look(struct qn_driver *d)
{
    if (d->memory) {
        qn_driver_verdict_look(d);
        return;
    }
    if (qn_onepaxos_served(d->machine)) {
        force_end(d);
        return;
    }
    bool lacks = leads(d) && lacks_for_long(d);
    if (!lacks) {
        withdraw(d);
    }
    if (!leads(d) || (!lacks && !qn_onepaxos_lost(d->machine)) ||
        goes_on_by_force(d)) {
        return;
    }
    uint64_t mark = qn_onepaxos_lost(d->machine) ? epoch_mark(d)
                                                 : epoch_mark(d) | INCOMPLETE;
    /* relaxed: only this thread writes it. The ends were heard of before. */
    if (qn_load(&d->o.state->stopped, QN_RELAXED) != mark &&
        qn_driver_newest_epoch(d)) {
        qn_driver_note(d, QN_EVENT_STOPPED, d->cfg.acceptor, d->applied,
                       qn_driver_said(d));
        /* release -> acquire in stopped_with. */
        qn_store(&d->o.state->stopped, mark, QN_RELEASE);
    }
}

/* The leader of this epoch says so, for any of these reasons (mask). */
static bool stopped_with(const struct qn_driver *d, uint64_t reasons)
{
    if (d->memory || qn_onepaxos_served(d->machine)) {
        return false;
    }
    const struct qn_driver_peer *p = &d->peer[d->cfg.leader];
    const struct qn_outbox_state *s = leads(d) ? d->o.state : p->state;
    bool lives =
        qn_driver_lives(d, d->cfg.leader) && p->life.inc == d->cfg.leader_inc;
    if (!lives || s == NULL) {
        return false;
    }
    /* acquire <- release in qn_driver_stop_look. */
    uint64_t said = qn_load(&s->stopped, QN_ACQUIRE);
    return said == epoch_mark(d) || said == (epoch_mark(d) | reasons);
}

bool qn_driver_stopped(const struct qn_driver *d)
{
    return d->memory ? d->verdict.kind == QN_VERDICT_STOPPED
                     : stopped_with(d, INCOMPLETE);
}

bool qn_driver_incomplete(const struct qn_driver *d)
{
    return stopped_with(d, INCOMPLETE) && !stopped_with(d, 0);
}

/* ---- what is known of the lost ------------------------------------------- */

static void note(struct qn_driver *d, qn_slot_t position)
{
    if (position <= QN_SLOT_MAX) {
        d->said = QN_MAX(d->said, position);
    }
}

void qn_driver_stop_note(struct qn_driver *d, qn_node_t peer)
{
    const struct qn_outbox_state *s = d->peer[peer].state;
    if (!d->memory && s != NULL) {
        /* acquire <- release in qn_driver_learned. */
        note(d, qn_load(&s->learned, QN_ACQUIRE));
    }
}

qn_slot_t qn_driver_said(const struct qn_driver *d)
{
    struct qn_onepaxos_status st;
    qn_onepaxos_status(d->machine, &st);
    qn_slot_t shown = qn_load(d->o.read_index, QN_SEQ_CST);
    qn_slot_t said = QN_MAX(d->said, st.decided_hi);
    said = shown <= QN_SLOT_MAX ? QN_MAX(said, shown) : said;
    return qn_driver_stopped(d) ? QN_MAX(said, d->verdict.hi) : said;
}

/* ---- recovery ------------------------------------------------------------ */

int qn_driver_recoverable(const struct qn_driver *d)
{
    if (d->memory) {
        return qn_driver_verdict_recoverable(d);
    }
    return qn_driver_stopped(d) && qn_onepaxos_needs_force(d->machine)
               ? QN_OK
               : QN_EBUSY;
}

int qn_driver_recover(struct qn_driver *d, qn_time_t now)
{
    const struct qn_input in = {.kind = QN_IN_RECOVER};
    d->now = now;
    if (d->memory) {
        return qn_driver_verdict_recover(d);
    }
    qn_slot_t said = qn_driver_said(d);
    int err = qn_driver_step(d, &in);
    if (err != QN_OK) {
        return err;
    }
    qn_driver_note(d, QN_EVENT_RECOVERED, d->o.self, d->applied, said);
    d->said = 0;
    /* seq_cst: nobody else lives; who begins later loads this, or more. */
    qn_store(d->o.read_index, d->exposed, QN_SEQ_CST);
    qn_store(&d->o.state->stopped, BY_FORCE, QN_RELEASE);
    qn_driver_publish(d);
    return QN_OK;
}
