/*
 * Has the group halted, and how does it go on by force? The decisions are those
 * of halt.h; here is what they are made of: words in shared memory, loaded in
 * an order that makes them mean something.
 *
 * At the end of each turn. A group that goes on pays a compare: with a process
 * acceptor nothing is read while the epoch's leader serves; with the memory
 * acceptor nothing while the owner of the accept register is known to live (a
 * look at the register takes its line from the leader, which writes it once per
 * slot), but for a look each second: that leader may have overwritten it.
 *
 * Memory acceptor: what a peer hears is loaded before what that peer has
 * learned, for a peer that says that it has heard of an end has learned before
 * what came before that end. An incarnation that comes after the owner's end is
 * late from the beginning on, and not only when it has begun and says so: else
 * the verdict would be withdrawn for the moment in between. (A node that hears
 * of both in the wrong order, for the end is seen in the commons and the
 * incarnation is announced, corrects itself when that one has learned more.)
 *
 * Recovery (qn_driver_recover) is an operator's order to the one node that is
 * left. Its own words are all that is left of the old group: the read index,
 * which may lie above its log, is set back before any other incarnation begins.
 */
#include "core/base/assert.h"
#include "paxos/driver/driver_internal.h"

static const struct qn_outbox_state *state_of(const struct qn_driver *d,
                                              qn_node_t i)
{
    return i == d->o.self ? d->o.state : d->peer[i].state;
}

/* ---- process acceptor ---------------------------------------------------- */

static bool leads(const struct qn_driver *d)
{
    return d->roles.cfg.leader == d->o.self &&
           d->roles.cfg.leader_inc == d->peer[d->o.self].incarnation.inc;
}

/* A living node is about to lead by force, so the two that were lost do not
 * matter. Only its outbox says so, and it did before any other incarnation
 * began. */
static bool goes_on_by_force(const struct qn_driver *d)
{
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        const struct qn_outbox_state *s = state_of(d, i);
        /* acquire <- release in recover_process. */
        if (s != NULL && qn_driver_lives(d, i) &&
            qn_load(&s->stopped, QN_ACQUIRE) == QN_HALT_BY_FORCE) {
            return true;
        }
    }
    return false;
}

/* All that lies in this node's log has been applied, so a snapshot that was
 * whole would have been installed. */
static bool lacks_what_no_peer_has(const struct qn_driver *d)
{
    qn_slot_t learned = qn_onepaxos_learned(d->machine);
    return d->positions.applied == learned && qn_driver_all_at(d, learned);
}

static struct qn_halt_facts facts_of(struct qn_driver *d)
{
    /* relaxed: only this thread writes it. */
    uint64_t word = qn_load(&d->o.state->stopped, QN_RELAXED);
    struct qn_halt_facts v = {.word = word,
                              .served = qn_onepaxos_served(d->machine),
                              .epoch = d->roles.cfg.index,
                              .learned = qn_onepaxos_learned(d->machine)};
    if (v.served) {
        return v;
    }
    v.leads = leads(d);
    v.lost = v.leads && qn_onepaxos_lost(d->machine);
    bool lacks = v.leads && qn_onepaxos_lacks(d->machine);
    /* After the ends of the lost ones were heard of. */
    bool asked = qn_driver_state_asked(d, v.lost || lacks);
    v.lacks = lacks && lacks_what_no_peer_has(d);
    v.by_force = goes_on_by_force(d);
    v.no_later_vote = asked && qn_driver_newest_epoch(d);
    return v;
}

static void look_process(struct qn_driver *d)
{
    const struct qn_halt_facts v = facts_of(d);
    uint64_t word = qn_halt_word(&d->halt, &v, d->now);
    if (word == v.word) {
        return;
    }
    QN_ASSERT(word != QN_HALT_BY_FORCE);
    if (word != 0) {
        QN_ASSERT(v.leads);
        qn_driver_note(d, QN_EVENT_STOPPED, d->roles.cfg.acceptor,
                       d->positions.applied, qn_driver_highest_announced(d));
    }
    /* release -> acquire in reason_of. */
    qn_store(&d->o.state->stopped, word, QN_RELEASE);
}

/* What the leader of the epoch says. */
static enum qn_halt_reason reason_of(const struct qn_driver *d)
{
    if (d->memory || qn_onepaxos_served(d->machine)) {
        return QN_HALT_REASON_NONE;
    }
    qn_node_t leader = d->roles.cfg.leader;
    const struct qn_outbox_state *s = state_of(d, leader);
    bool lives = qn_driver_lives(d, leader) &&
                 d->peer[leader].incarnation.inc == d->roles.cfg.leader_inc;
    if (!lives || s == NULL) {
        return QN_HALT_REASON_NONE;
    }
    /* acquire <- release in look_process. */
    return qn_halt_read(qn_load(&s->stopped, QN_ACQUIRE), d->roles.cfg.index);
}

/* ---- memory acceptor ----------------------------------------------------- */

void qn_driver_hears(struct qn_driver *d, qn_node_t peer, uint64_t inc)
{
    d->serves = 0;
    QN_ASSERT(peer < d->o.nodes);
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

/* The owner of the accept register, if it is known and has ended. */
static bool ended_owner(const struct qn_driver *d, struct qn_accept_register w,
                        qn_node_t *owner, uint64_t *inc)
{
    return qn_driver_owner(d, w, owner, inc) &&
           qn_halt_has_ended(*inc, d->peer[*owner].incarnation.inc,
                             qn_driver_lives(d, *owner));
}

uint64_t qn_driver_bereft(const struct qn_driver *d)
{
    qn_node_t owner;
    uint64_t inc;
    if (!d->memory) {
        return 0;
    }
    struct qn_accept_register w = qn_memory_acceptor_load(&d->shared);
    return ended_owner(d, w, &owner, &inc) ? w.epoch + 1 : 0;
}

static bool has_heard(const struct qn_driver *d, qn_node_t i,
                      const struct qn_outbox_state *s)
{
    uint64_t hears[QN_NODES_MAX];
    uint64_t newest[QN_NODES_MAX];
    for (qn_node_t k = 0; k < d->o.nodes; k++) {
        /* acquire <- release in qn_driver_hears. */
        hears[k] = qn_load(&s->hears[k], QN_ACQUIRE);
        newest[k] = d->peer[k].incarnation.inc;
    }
    return qn_halt_has_heard(&d->halt, i, hears, newest, qn_driver_living(d));
}

static struct qn_verdict_member member_of(const struct qn_driver *d,
                                          qn_node_t i, uint64_t epoch)
{
    const struct qn_outbox_state *s = state_of(d, i);
    struct qn_verdict_member m = {.lives = qn_driver_lives(d, i) && s != NULL};
    if (m.lives) {
        m.votes =
            (qn_utility_voters(qn_onepaxos_utility(d->machine)) >> i & 1) != 0;
        m.heard = has_heard(d, i, s);
        /* acquire <- release in late_tell. */
        m.late =
            qn_halt_is_late(&d->halt, i, qn_load(&s->late, QN_ACQUIRE), epoch);
        /* acquire <- release in qn_driver_coming. */
        m.coming = qn_load(&s->coming, QN_ACQUIRE);
        /* acquire <- release in qn_driver_learned; after the others. */
        m.learned = qn_load(&s->learned, QN_ACQUIRE);
    }
    return m;
}

/* This incarnation has never received from the owner. */
static void late_tell(struct qn_driver *d, uint64_t epoch, qn_node_t owner,
                      uint64_t inc)
{
    if (qn_halt_born_late(&d->halt, owner, inc) &&
        qn_load(&d->o.state->late, QN_RELAXED) != epoch + 1) {
        /* release -> acquire in member_of. */
        qn_store(&d->o.state->late, epoch + 1, QN_RELEASE);
    }
}

/* The leader of the newest epoch lives. */
static bool leader_lives(const struct qn_driver *d)
{
    const struct qn_ul_entry *e = &d->roles.cfg;
    return qn_driver_lives(d, e->leader) &&
           d->peer[e->leader].incarnation.inc == e->leader_inc;
}

/* The register was seen in the newest epoch, and no incarnation has ended or
 * begun since. Its owner lives if it still is in that epoch. If not, another
 * leader has moved it on after that look; no verdict falls before that one's
 * end, which makes this node look again. */
static bool owner_is_known_to_live(const struct qn_driver *d)
{
    return d->serves == d->roles.cfg.index + 1 && leader_lives(d) &&
           d->now < d->register_at;
}

static struct qn_verdict verdict_find(struct qn_driver *d)
{
    if (owner_is_known_to_live(d)) {
        return (struct qn_verdict){0};
    }
    struct qn_accept_register w = qn_memory_acceptor_load(&d->shared);
    if (qn_onepaxos_damaged(d->machine, w)) {
        return (struct qn_verdict){.kind = QN_VERDICT_DAMAGED};
    }
    d->serves = w.epoch == d->roles.cfg.index ? w.epoch + 1 : 0;
    d->register_at = d->now + QN_DRIVER_REGISTER;
    struct qn_verdict_in in = {.hi = w.hi, .nodes = d->o.nodes};
    qn_node_t owner;
    uint64_t inc;
    if (!ended_owner(d, w, &owner, &inc)) {
        return (struct qn_verdict){0};
    }
    const struct qn_ring *ring = qn_driver_ring(d, owner, inc);
    late_tell(d, w.epoch, owner, inc);
    if (ring == NULL) {
        return (struct qn_verdict){0}; /* a node that has mapped it says it */
    }
    in.ended = true;
    in.lo = qn_ring_lo(ring);
    for (qn_node_t i = 0; i < d->o.nodes; i++) {
        in.member[i] = member_of(d, i, w.epoch);
    }
    QN_ASSERT(in.member[d->o.self].lives);
    return qn_verdict_find(&in);
}

static void look_memory(struct qn_driver *d)
{
    const struct qn_verdict v = verdict_find(d);
    if (qn_halt_take(&d->halt, &v, d->now)) {
        qn_driver_note(d, QN_EVENT_STOPPED, d->roles.cfg.acceptor,
                       d->positions.applied, qn_driver_highest_announced(d));
    }
}

uint64_t qn_driver_waiting(const struct qn_driver *d)
{
    return d->memory ? qn_halt_waits_for(&d->halt, d->now) : 0;
}

/* ---- both ---------------------------------------------------------------- */

void qn_driver_halt_look(struct qn_driver *d)
{
    if (d->memory) {
        look_memory(d);
    } else {
        look_process(d);
    }
}

bool qn_driver_halted(const struct qn_driver *d)
{
    return d->memory ? qn_halt_verdict_halts(&d->halt.verdict)
                     : reason_of(d) != QN_HALT_REASON_NONE;
}

bool qn_driver_log_incomplete(const struct qn_driver *d)
{
    return reason_of(d) == QN_HALT_REASON_GAP;
}

bool qn_driver_register_damaged(const struct qn_driver *d)
{
    return d->halt.verdict.kind == QN_VERDICT_DAMAGED;
}

void qn_driver_halt_note(struct qn_driver *d, qn_node_t peer)
{
    const struct qn_outbox_state *s = d->peer[peer].state;
    if (!d->memory && s != NULL) {
        /* acquire <- release in qn_driver_learned. */
        qn_halt_note(&d->halt, qn_load(&s->learned, QN_ACQUIRE));
    }
}

qn_slot_t qn_driver_highest_announced(const struct qn_driver *d)
{
    struct qn_onepaxos_status st;
    qn_onepaxos_status(d->machine, &st);
    return qn_halt_highest(&d->halt, st.decided_hi,
                           qn_load(d->o.read_index, QN_SEQ_CST),
                           qn_driver_halted(d));
}

/* ---- recovery ------------------------------------------------------------ */

/* Memory acceptor: not inside a slot, and all that is learned is applied. */
static bool is_whole(const struct qn_driver *d)
{
    struct qn_resume r;
    return qn_onepaxos_resume(d->machine, &r) &&
           r.position == qn_onepaxos_learned(d->machine);
}

int qn_driver_recoverable(const struct qn_driver *d)
{
    bool can = d->memory ? is_whole(d) : qn_onepaxos_needs_force(d->machine);
    return qn_driver_halted(d) && !qn_driver_register_damaged(d) && can
               ? QN_OK
               : QN_EBUSY;
}

/* The read index begins anew. */
static void recover_process(struct qn_driver *d)
{
    /* seq_cst: no other node lives; one that begins later loads this, or
     * more. */
    qn_store(d->o.read_index, d->positions.visible_slot, QN_SEQ_CST);
    qn_store(&d->o.state->stopped, QN_HALT_BY_FORCE, QN_RELEASE);
}

/* Positions that were lost stay void: the service goes on behind them. */
static void recover_memory(struct qn_driver *d)
{
    qn_positions_jump(&d->positions, qn_onepaxos_learned(d->machine));
    d->need_snapshot = false;
}

int qn_driver_recover(struct qn_driver *d, qn_time_t now)
{
    const struct qn_input in = {.kind = QN_IN_RECOVER};
    qn_driver_time(d, now);
    if (d->memory) {
        look_memory(d);
        if (qn_driver_recoverable(d) != QN_OK) {
            return QN_EBUSY;
        }
    }
    qn_slot_t had = d->positions.applied;
    qn_slot_t highest = qn_driver_highest_announced(d);
    int err = qn_driver_step(d, &in);
    if (err != QN_OK) {
        return err;
    }
    qn_driver_note(d, QN_EVENT_RECOVERED, d->o.self, had, highest);
    qn_halt_recovered(&d->halt);
    if (d->memory) {
        recover_memory(d);
    } else {
        recover_process(d);
    }
    qn_driver_publish(d);
    return QN_OK;
}
