/*
 * Which seats are to have a process, and what becomes of a process that is to
 * be none.
 *
 * The utility log says which replicas vote, and each replica says what it has
 * read there, with the number of entries: more entries are later. Here the
 * newest counts, of what voters say. All follows from it, whichever supervisor
 * ordered a change, or died before it could go on:
 *
 *     a voter                         has a process, which is started again
 *     the newcomer of a member added  has one, until it votes or is given up
 *     any other                       LEAVES: it drains and ends, and its seat
 *                                     is vacant; one that was not complete is
 *                                     ended
 *
 * So a removal is an entry, and nothing else that could be half done; and a
 * supervisor that adopts a newcomer without a vote ends it: an add that was not
 * done has not begun. If its entry comes all the same, it is a voter, and is
 * started again.
 *
 * A replica that was adopted and has not yet said what it knows is left alone:
 * it may have a vote of which the others have not heard. One that is complete
 * stays, also after it has drained, until a voter is: it may be the only one
 * that has the data.
 */
#include "core/base/assert.h"
#include "core/base/bits.h"
#include "kvs/supervision/supervision_internal.h"

enum { GRACE_S = 5 /* beyond shutdown-timeout, as in drain.c */ };

bool qn_sv_votes(const struct qn_supervision *s, qn_node_t i)
{
    return (s->voters & qn_sv_bit(i)) != 0;
}

bool qn_sv_taken(const struct qn_supervision *s, qn_node_t i)
{
    const struct qn_replica_slot *r = &s->replica[i];
    return qn_sv_votes(s, i) || r->state != QN_REPLICA_ENDED || r->spawning ||
           qn_sv_is_newcomer(s, i);
}

uint64_t qn_supervision_taken(const struct qn_supervision *s)
{
    uint64_t mask = 0;
    for (qn_node_t i = 0; i < s->opts.replicas; i++) {
        mask |= qn_sv_taken(s, i) ? qn_sv_bit(i) : 0;
    }
    return mask;
}

uint32_t qn_sv_members(const struct qn_supervision *s)
{
    return (uint32_t)__builtin_popcountll(qn_supervision_taken(s));
}

void qn_sv_voters_begin(struct qn_supervision *s)
{
    const uint64_t seats = qn_low_bits(s->opts.replicas);
    s->voters =
        (s->voters_entries != 0 ? s->voters : s->orphans.voters) & seats;
    if (s->voters == 0) {
        s->voters = s->opts.taken != 0 ? s->opts.taken & seats : seats;
    }
}

/* One that was told to drain ends all the same, and is started again. */
static void gained(const struct qn_sv_step *x, qn_node_t i)
{
    struct qn_supervision *s = x->s;
    struct qn_replica_slot *r = &s->replica[i];
    if (r->state == QN_REPLICA_ENDED && !r->spawning && s->opts.restart &&
        !s->draining && r->restart_at == QN_TIME_NEVER) {
        r->restart_at = x->now;
    }
}

static void leaves_by(const struct qn_sv_step *x, struct qn_replica_slot *r)
{
    r->leaves = true;
    r->let_go = false;
    r->leave_until =
        x->now + ((qn_time_t)x->s->opts.shutdown_timeout_s + GRACE_S) * QN_S;
}

static void lost(const struct qn_sv_step *x, qn_node_t i)
{
    struct qn_replica_slot *r = &x->s->replica[i];
    if (r->state == QN_REPLICA_ENDED) {
        r->restart_at = QN_TIME_NEVER;
        qn_supervision_do(x->out, &(struct qn_supervision_action){
                                      .kind = QN_DO_CLOSE_LISTENER, .node = i});
    }
}

void qn_sv_voters_learn(const struct qn_sv_step *x, uint32_t entries,
                        uint64_t voters)
{
    struct qn_supervision *s = x->s;
    const uint64_t before = s->voters;
    if (voters == 0 || entries <= s->voters_entries) {
        return; /* as a replica says that knows no entry, or fewer */
    }
    s->voters_entries = entries;
    s->voters = voters;
    for (qn_node_t i = 0; s->served && i < s->opts.replicas; i++) {
        if ((voters & ~before & qn_sv_bit(i)) != 0) {
            gained(x, i);
        } else if ((before & ~voters & qn_sv_bit(i)) != 0) {
            lost(x, i);
        }
    }
}

/* One that was removed may be the only one that knows it, and drains now. Until
 * a voter has learned it, its vote may be needed, and it is started again as
 * after any end (PROTOCOL.md 4.4, the end of a seat). So only the word of a
 * voter counts. If none speaks to an adopter, one without a vote counts as a
 * voter beside those that it names. */
static void without_vote(const struct qn_sv_step *x, qn_node_t from,
                         const struct qn_ctl_voters *m)
{
    struct qn_supervision *s = x->s;
    struct qn_replica_slot *r = &s->replica[from];
    if (m->voters == 0) {
        return; /* it knows no entry */
    }
    s->orphans.voters |= m->voters | qn_sv_bit(from);
    if (s->served && qn_sv_votes(s, from) && !r->leaves &&
        m->entries > s->voters_entries) {
        leaves_by(x, r);
    }
}

void qn_sv_on_voters(const struct qn_sv_step *x, qn_node_t from,
                     const struct qn_ctl_voters *m)
{
    if ((m->voters & qn_sv_bit(from)) != 0) {
        qn_sv_voters_learn(x, m->entries, m->voters);
    } else {
        without_vote(x, from, m);
    }
}

/* ---- those that leave ---------------------------------------------------- */

/* What ends, and when, is decided by another part. */
static bool waits(const struct qn_supervision *s)
{
    return s->draining || qn_sv_recovery_holds(s);
}

/* It may be the only one that has the data. */
static bool is_spared(const struct qn_supervision *s, qn_node_t i)
{
    return s->replica[i].state != QN_REPLICA_STARTING && qn_sv_serving(s) == 0;
}

/* Its place is not to have a process, and that is certain. */
static bool must_leave(const struct qn_supervision *s, qn_node_t i)
{
    const struct qn_replica_slot *r = &s->replica[i];
    const bool known = r->informed || !r->adopted || qn_sv_member_leaves(s, i);
    return r->state != QN_REPLICA_ENDED && !qn_sv_votes(s, i) &&
           !qn_sv_is_newcomer(s, i) && known && !is_spared(s, i);
}

static bool leaves(const struct qn_supervision *s, qn_node_t i)
{
    const struct qn_replica_slot *r = &s->replica[i];
    return r->leaves && r->state != QN_REPLICA_ENDED && !is_spared(s, i);
}

static void end_now(const struct qn_sv_step *x, qn_node_t i)
{
    struct qn_replica_slot *r = &x->s->replica[i];
    r->killed = true;
    r->leave_until = QN_TIME_NEVER; /* SIGKILL needs no second one */
    qn_sv_kill(x, i);
}

static void begin_to_leave(const struct qn_sv_step *x, qn_node_t i)
{
    struct qn_replica_slot *r = &x->s->replica[i];
    leaves_by(x, r);
    if (r->state == QN_REPLICA_STARTING || !r->reachable) {
        end_now(x, i);
    } else {
        qn_supervision_log(x->out, QN_LOG_INFO,
                           "replica %u (process %d) has no vote; it drains and "
                           "ends",
                           i, (int)r->pid);
        qn_sv_say(x, i, QN_CTL_DRAIN);
    }
}

/* It drains until `leave_until`. */
static void leaving(const struct qn_sv_step *x, qn_node_t i)
{
    struct qn_replica_slot *r = &x->s->replica[i];
    if (r->state == QN_REPLICA_DRAINED && !r->let_go) {
        r->let_go = true;
        qn_sv_say(x, i, QN_CTL_STOP);
    } else if (x->now >= r->leave_until) {
        qn_supervision_log(x->out, QN_LOG_WARN,
                           "replica %u does not drain; it is killed", i);
        end_now(x, i);
    }
}

void qn_sv_leave_turn(const struct qn_sv_step *x)
{
    struct qn_supervision *s = x->s;
    for (qn_node_t i = 0; i < s->opts.replicas && !waits(s); i++) {
        struct qn_replica_slot *r = &s->replica[i];
        if (must_leave(s, i) && !r->leaves) {
            begin_to_leave(x, i);
        } else if (leaves(s, i)) {
            leaving(x, i);
        }
    }
}

qn_time_t qn_sv_leave_deadline(const struct qn_supervision *s, qn_time_t now)
{
    qn_time_t at = QN_TIME_NEVER;
    for (qn_node_t i = 0; i < s->opts.replicas && !waits(s); i++) {
        const struct qn_replica_slot *r = &s->replica[i];
        if (leaves(s, i)) {
            at = QN_MIN(at, QN_MAX(r->leave_until, now));
        }
    }
    return at;
}
