/*
 * A member is added or removed by order of a client (`quoin member`).
 *
 *     ADD      COMES   a process in a vacant seat makes its outbox
 *              MEETS   all members map it, and have lanes for it, but for those
 *                      that a signal has stopped (membership.c): it may start
 *              LOADS   until it is complete
 *              VOTES   a member orders that it votes (VOTER_CHANGE)
 *
 *     REMOVE   VOTES   a member orders that it votes no more
 *              LEAVES  it drains and ends (voters.c)
 *
 * An add that fails LEAVES, too, and the client is told the reason when its
 * process has ended: nothing has changed then. A removed member is drained as
 * in an upgrade. If it was ended or is stalled, nothing waits for its help.
 *
 * The order is repeatable. A member that ends, or says nothing for SILENT_S,
 * is replaced by another one, and so is an answer that may pass (no leader yet,
 * the newcomer lags a little). What was ordered may come later than its last
 * answer: whichever way, the newest voters say what the group has become.
 *
 * A newcomer that ends before it votes is not started again. If it ends while
 * its vote is ordered, the order goes on: it is a voter then, or was none.
 *
 * If the supervisor ends, nothing of this is kept; its successor finds voters,
 * and processes that are none (voters.c).
 */
#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "kvs/supervision/supervision_internal.h"

enum {
    MEETS_S = 5,
    SILENT_S = 8, /* an order takes 5 s at most (qn_driver_change) */
    VOTES_S = 30,
    AGAIN_MS = 200,
    STOPPED_LOOK_MS = 50,
};

static bool is_under_way(const struct qn_member_change *c)
{
    return c->step != QN_MEMBER_NONE;
}

bool qn_sv_member_changes(const struct qn_supervision *s)
{
    return is_under_way(&s->change);
}

bool qn_sv_is_newcomer(const struct qn_supervision *s, qn_node_t i)
{
    const struct qn_member_change *c = &s->change;
    return c->votes && c->node == i && is_under_way(c) &&
           c->step != QN_MEMBER_LEAVES;
}

bool qn_sv_member_leaves(const struct qn_supervision *s, qn_node_t i)
{
    return s->change.step == QN_MEMBER_LEAVES && s->change.node == i;
}

bool qn_sv_member_holds(const struct qn_supervision *s, qn_node_t i)
{
    return s->change.step == QN_MEMBER_VOTES && s->change.node == i;
}

static void enter(const struct qn_sv_step *x, enum qn_member_step to,
                  qn_time_t limit_s)
{
    struct qn_member_change *c = &x->s->change;
    c->step = to;
    c->until = x->now + limit_s * QN_S;
    c->again_at = x->now;
}

/* ---- answers ------------------------------------------------------------- */

/* `asker` may be another incarnation by now, which has no such client. */
static void tell(const struct qn_sv_step *x)
{
    struct qn_member_change *c = &x->s->change;
    const struct qn_replica_slot *r = &x->s->replica[c->asker];
    if (!c->answered && r->incarnation == c->asker_incarnation) {
        qn_sv_say_member_answer(x, c->asker, &c->answer);
    }
    c->answered = true;
}

static void end(const struct qn_sv_step *x)
{
    struct qn_member_change *c = &x->s->change;
    struct qn_replica_slot *r = &x->s->replica[c->node];
    char why[QN_MEMBER_WHY_MAX];
    if (c->answer.why != QN_MEMBER_ERROR_NONE) {
        qn_supervision_log(x->out, QN_LOG_WARN, "replica %u is not %s: %s",
                           c->node, c->votes ? "added" : "removed",
                           qn_member_answer_text(&c->answer, why));
    } else {
        qn_supervision_log(x->out, QN_LOG_INFO, "replica %u is %s: %u voters",
                           c->node, c->votes ? "a member" : "a member no more",
                           (unsigned)__builtin_popcountll(x->s->voters));
    }
    tell(x);
    c->step = QN_MEMBER_NONE;
    r->restart_at = QN_MAX(r->restart_at, x->now); /* it was held */
}

static void because(struct qn_member_change *c, enum qn_member_error why,
                    qn_node_t peer, int64_t error)
{
    c->answer.why = why;
    c->answer.peer = peer;
    c->answer.error = error;
}

/* A process without a vote ends first, if there is one. */
static void fail(const struct qn_sv_step *x, enum qn_member_error why,
                 qn_node_t peer, int64_t error)
{
    struct qn_member_change *c = &x->s->change;
    because(c, why, peer, error);
    if (c->votes && x->s->replica[c->node].state != QN_REPLICA_ENDED &&
        !qn_sv_votes(x->s, c->node)) {
        enter(x, QN_MEMBER_LEAVES, 0);
    } else {
        end(x);
    }
}

static void refuse(const struct qn_sv_step *x, qn_node_t to, qn_node_t node,
                   uint64_t client, enum qn_member_error why)
{
    const struct qn_ctl_member_answer a = {
        .node = node,
        .why = why,
        .fits = why == QN_MEMBER_ERROR_MEMORY ? x->e->fits : 0,
        .client = client};
    qn_sv_say_member_answer(x, to, &a);
}

/* ---- orders of clients --------------------------------------------------- */

static enum qn_member_error objection(const struct qn_supervision *s)
{
    if (!s->opts.memory_acceptor) {
        return QN_MEMBER_ERROR_PROCESS;
    }
    if (qn_sv_member_changes(s)) {
        return QN_MEMBER_ERROR_TWICE;
    }
    if (s->upgrade.step != QN_UPGRADE_NONE) {
        return QN_MEMBER_ERROR_UPGRADE;
    }
    if (qn_sv_recovers(s)) {
        return QN_MEMBER_ERROR_RECOVERY;
    }
    return !s->served || s->draining ? QN_MEMBER_ERROR_LEAVES
                                     : QN_MEMBER_ERROR_NONE;
}

/* One that was spawned before has no lanes for a newcomer, and nothing says
 * when it has met it. */
static bool is_being_introduced(const struct qn_supervision *s)
{
    for (qn_node_t i = 0; i < s->opts.replicas; i++) {
        const struct qn_replica_slot *r = &s->replica[i];
        if (r->spawning ||
            (r->state == QN_REPLICA_STARTING && !r->has_outbox)) {
            return true;
        }
    }
    return false;
}

static qn_node_t vacant_seat(const struct qn_supervision *s)
{
    qn_node_t i = 0;
    while (i < s->opts.replicas && qn_sv_taken(s, i)) {
        i++;
    }
    return i;
}

static void begin(const struct qn_sv_step *x, qn_node_t asker,
                  const struct qn_member_change *wish)
{
    struct qn_member_change *c = &x->s->change;
    const uint32_t number = c->number; /* of orders, never reused */
    QN_ASSERT(!is_under_way(c));
    *c = *wish;
    c->number = number;
    c->asker = c->by = asker;
    c->asker_incarnation = x->s->replica[asker].incarnation;
    c->answer.node = c->node;
}

void qn_sv_on_member_add(const struct qn_sv_step *x, qn_node_t from,
                         const struct qn_ctl_member_add *m)
{
    const struct qn_supervision *s = x->s;
    enum qn_member_error why = objection(s);
    const qn_node_t seat = vacant_seat(s);
    if (why == QN_MEMBER_ERROR_NONE && seat == s->opts.replicas) {
        why = QN_MEMBER_ERROR_FULL;
    }
    if (why == QN_MEMBER_ERROR_NONE && x->e->unfit) {
        why = QN_MEMBER_ERROR_MEMORY;
    }
    if (why == QN_MEMBER_ERROR_NONE && is_being_introduced(s)) {
        why = QN_MEMBER_ERROR_ALL;
    }
    if (why != QN_MEMBER_ERROR_NONE) {
        refuse(x, from, 0, m->client, why);
        return;
    }
    const struct qn_member_change wish = {.node = seat,
                                          .votes = true,
                                          .forced = m->forced,
                                          .answer.client = m->client};
    begin(x, from, &wish);
    enter(x, QN_MEMBER_COMES, s->opts.upgrade_timeout_s);
    qn_sv_spawn(x, seat);
}

void qn_sv_on_member_remove(const struct qn_sv_step *x, qn_node_t from,
                            const struct qn_ctl_member_remove *m)
{
    enum qn_member_error why = objection(x->s);
    if (why == QN_MEMBER_ERROR_NONE && !qn_sv_votes(x->s, m->node)) {
        why = QN_MEMBER_ERROR_ABSENT;
    }
    if (why == QN_MEMBER_ERROR_NONE && x->s->voters == qn_sv_bit(m->node)) {
        why = QN_MEMBER_ERROR_LAST;
    }
    if (why != QN_MEMBER_ERROR_NONE) {
        refuse(x, from, m->node, m->client, why);
        return;
    }
    const struct qn_member_change wish = {
        .node = m->node, .forced = m->forced, .answer.client = m->client};
    begin(x, from, &wish);
    enter(x, QN_MEMBER_VOTES, VOTES_S);
}

/* The states of supervision and of the message are the same, in order. */
void qn_sv_on_member_list(const struct qn_sv_step *x, qn_node_t from,
                          const struct qn_ctl_member_list *m)
{
    const struct qn_supervision *s = x->s;
    for (qn_node_t i = 0; i < s->opts.replicas; i++) {
        const struct qn_replica_slot *r = &s->replica[i];
        const bool lives = r->state != QN_REPLICA_ENDED;
        const struct qn_ctl_member_seat seat = {
            .node = i,
            .state = (enum qn_member_seat_state)r->state,
            .votes = qn_sv_votes(s, i),
            .client = m->client,
            .incarnation = r->incarnation,
            .pid = lives && r->pid > 0 ? (uint32_t)r->pid : 0};
        if (qn_sv_taken(s, i)) {
            qn_sv_say_member_seat(x, from, &seat);
        }
    }
    refuse(x, from, 0, m->client, QN_MEMBER_ERROR_NONE);
}

/* ---- COMES, MEETS, LOADS ------------------------------------------------- */

void qn_sv_member_spawn_failed(const struct qn_sv_step *x)
{
    QN_ASSERT(x->s->change.step == QN_MEMBER_COMES);
    fail(x, QN_MEMBER_ERROR_SPAWN, 0, x->e->number);
}

static void start(const struct qn_sv_step *x)
{
    struct qn_member_change *c = &x->s->change;
    QN_ASSERT(c->step == QN_MEMBER_MEETS);
    enter(x, QN_MEMBER_LOADS, x->s->opts.upgrade_timeout_s);
    qn_sv_say(x, c->node, QN_CTL_START);
}

static void start_if_met(const struct qn_sv_step *x)
{
    if (x->s->change.step == QN_MEMBER_MEETS && x->s->change.unmet == 0) {
        start(x);
    }
}

void qn_sv_member_introduced(const struct qn_sv_step *x)
{
    const struct qn_supervision *s = x->s;
    struct qn_member_change *c = &x->s->change;
    QN_ASSERT(c->step == QN_MEMBER_COMES);
    c->incarnation = s->replica[c->node].incarnation;
    c->unmet = 0;
    for (qn_node_t i = 0; i < s->opts.replicas; i++) {
        const struct qn_replica_slot *r = &s->replica[i];
        const bool there =
            r->state != QN_REPLICA_ENDED && (r->has_outbox || r->adopted);
        c->unmet |= i != c->node && there ? qn_sv_bit(i) : 0;
    }
    enter(x, QN_MEMBER_MEETS, MEETS_S);
    start_if_met(x);
}

void qn_sv_member_met(const struct qn_sv_step *x, qn_node_t from,
                      const struct qn_ctl_peer_met *m)
{
    struct qn_member_change *c = &x->s->change;
    if (c->step != QN_MEMBER_MEETS || m->node != c->node ||
        m->incarnation != c->incarnation || (c->unmet & qn_sv_bit(from)) == 0) {
        return;
    }
    if (m->error != QN_OK) {
        fail(x, QN_MEMBER_ERROR_UNMET, from, m->error);
        return;
    }
    c->unmet &= ~qn_sv_bit(from);
    start_if_met(x);
}

/* ---- VOTES --------------------------------------------------------------- */

/* The last incarnation that others have heard of; 0: none yet, it is coming. */
static uint64_t incarnation_of(const struct qn_supervision *s, qn_node_t i)
{
    const struct qn_replica_slot *r = &s->replica[i];
    return r->state == QN_REPLICA_ENDED ? r->ended
           : r->has_outbox              ? r->incarnation
                                        : 0;
}

static bool can_order(const struct qn_supervision *s, qn_node_t i)
{
    const struct qn_replica_slot *r = &s->replica[i];
    return r->state == QN_REPLICA_SERVING && r->reachable && r->informed &&
           qn_sv_votes(s, i);
}

/* The next voter behind the one that was asked last; the one that is to go only
 * if there is no other. QN_NODES_MAX: none. */
static qn_node_t next_to_order(const struct qn_supervision *s)
{
    const struct qn_member_change *c = &s->change;
    const uint32_t n = s->opts.replicas;
    for (qn_node_t k = 0; k < n; k++) {
        const qn_node_t i = (c->by + (c->ordered ? 1 : 0) + k) % n;
        if (i != c->node && can_order(s, i)) {
            return i;
        }
    }
    return can_order(s, c->node) ? c->node : QN_NODES_MAX;
}

static void order(const struct qn_sv_step *x)
{
    struct qn_member_change *c = &x->s->change;
    const qn_node_t by = next_to_order(x->s);
    const uint64_t incarnation =
        c->votes ? c->incarnation : incarnation_of(x->s, c->node);
    c->again_at = x->now + AGAIN_MS * QN_MS;
    if (by == QN_NODES_MAX || incarnation == 0) {
        return;
    }
    c->by = by;
    c->by_incarnation = x->s->replica[by].incarnation;
    c->ordered = c->asked = true;
    c->number++;
    c->silent_at = x->now + SILENT_S * QN_S;
    qn_sv_say_voter_change(
        x, by,
        &(struct qn_ctl_voter_change){.node = c->node,
                                      .votes = c->votes,
                                      .forced = c->forced,
                                      .number = c->number,
                                      .incarnation = incarnation});
}

static void voted(const struct qn_sv_step *x)
{
    struct qn_member_change *c = &x->s->change;
    because(c, QN_MEMBER_ERROR_NONE, 0, QN_OK);
    if (c->votes) {
        end(x);
        return;
    }
    if (c->asker == c->node) { /* it leaves when it owes no answer */
        tell(x);
    }
    enter(x, QN_MEMBER_LEAVES, 0);
}

/* What may pass is asked again; the rest is the answer. */
static bool is_final(const struct qn_member_change *c, int64_t error)
{
    switch (error) {
    case QN_EAGAIN:
    case QN_EBUSY:
    case QN_EREMOVED:
    case QN_ENOTLEADER:
    case QN_ETIMEDOUT:
        return false;
    case QN_ESTALE: /* it was started again meanwhile */
        return c->votes;
    default:
        return true;
    }
}

static enum qn_member_error reason_of(int64_t error)
{
    return error == QN_ENOQUORUM ? QN_MEMBER_ERROR_QUORUM
           : error == QN_EPERM   ? QN_MEMBER_ERROR_LEAST
                                 : QN_MEMBER_ERROR_REFUSED;
}

/* What another member was asked may still be done. */
static void refused(const struct qn_sv_step *x)
{
    const struct qn_member_change *c = &x->s->change;
    if (c->asked || c->unknown) {
        fail(x, QN_MEMBER_ERROR_UNKNOWN, 0, QN_OK);
    } else {
        fail(x, c->answer.why, 0, c->answer.error);
    }
}

void qn_sv_on_voter_changed(const struct qn_sv_step *x, qn_node_t from,
                            const struct qn_ctl_voter_changed *m)
{
    struct qn_member_change *c = &x->s->change;
    const struct qn_ctl_voters said = {.entries = m->entries,
                                       .voters = m->voters};
    qn_sv_on_voters(x, from, &said);
    if (c->step != QN_MEMBER_VOTES || !c->asked || from != c->by ||
        m->number != c->number) {
        return;
    }
    c->asked = false;
    c->again_at = x->now + AGAIN_MS * QN_MS;
    c->unknown = c->unknown || m->outcome == QN_VOTER_UNKNOWN;
    because(c, reason_of(m->error), 0,
            reason_of(m->error) == QN_MEMBER_ERROR_REFUSED ? m->error : QN_OK);
    if (m->outcome == QN_VOTER_OK && qn_sv_votes(x->s, c->node) == c->votes) {
        voted(x);
    } else if (m->outcome == QN_VOTER_REFUSED && is_final(c, m->error)) {
        refused(x);
    }
}

/* The one that was asked has ended, or says nothing. What it was asked may
 * still be done. */
static void look_after_order(const struct qn_sv_step *x)
{
    struct qn_member_change *c = &x->s->change;
    const struct qn_replica_slot *r = &x->s->replica[c->by];
    const bool lives = r->state == QN_REPLICA_SERVING &&
                       r->incarnation == c->by_incarnation && r->reachable;
    if (c->asked && (!lives || x->now >= c->silent_at)) {
        c->asked = false;
        c->unknown = true;
        c->again_at = x->now;
    }
}

static void votes_late(const struct qn_sv_step *x)
{
    struct qn_member_change *c = &x->s->change;
    if (!c->ordered) {
        fail(x, QN_MEMBER_ERROR_NONE_COMPLETE, 0, QN_OK);
    } else {
        refused(x);
    }
}

static void votes(const struct qn_sv_step *x)
{
    struct qn_member_change *c = &x->s->change;
    look_after_order(x);
    if (x->s->voters_entries != 0 && qn_sv_votes(x->s, c->node) == c->votes) {
        voted(x); /* heard of another one */
    } else if (x->now >= c->until) {
        votes_late(x);
    } else if (!c->asked && x->now >= c->again_at) {
        order(x);
    }
}

/* ---- turns --------------------------------------------------------------- */

static void coming(const struct qn_sv_step *x)
{
    const struct qn_supervision *s = x->s;
    const struct qn_member_change *c = &x->s->change;
    const struct qn_replica_slot *r = &s->replica[c->node];
    const bool late = x->now >= c->until;
    if (r->state == QN_REPLICA_ENDED && !r->spawning) {
        fail(x, QN_MEMBER_ERROR_ENDED, 0, r->error);
    } else if (c->step == QN_MEMBER_LOADS && r->state == QN_REPLICA_SERVING) {
        enter(x, QN_MEMBER_VOTES, VOTES_S);
    } else if (c->step == QN_MEMBER_MEETS && late) {
        fail(x, QN_MEMBER_ERROR_SILENT, qn_sv_lowest(c->unmet), QN_OK);
    } else if (late) {
        fail(x, QN_MEMBER_ERROR_LATE, 0, QN_OK);
    }
}

bool qn_sv_member_meets(const struct qn_supervision *s)
{
    return s->change.step == QN_MEMBER_MEETS && s->change.unmet != 0;
}

/* Those that have ended need not meet it: a next incarnation has lanes for it
 * from the beginning. Nor those that a signal has stopped. */
static void forget_absent(const struct qn_sv_step *x)
{
    struct qn_member_change *c = &x->s->change;
    for (qn_node_t i = 0; i < x->s->opts.replicas; i++) {
        if (x->s->replica[i].state == QN_REPLICA_ENDED) {
            c->unmet &= ~qn_sv_bit(i);
        }
    }
    c->unmet &= ~x->e->facts.stopped;
    start_if_met(x);
}

static void leaving(const struct qn_sv_step *x)
{
    struct qn_member_change *c = &x->s->change;
    const struct qn_replica_slot *r = &x->s->replica[c->node];
    if (c->votes && qn_sv_votes(x->s, c->node)) { /* its entry has come late */
        because(c, QN_MEMBER_ERROR_NONE, 0, QN_OK);
        end(x);
    } else if (r->state == QN_REPLICA_ENDED && !r->spawning) {
        end(x);
    }
}

void qn_sv_member_turn(const struct qn_sv_step *x)
{
    struct qn_supervision *s = x->s;
    struct qn_member_change *c = &s->change;
    if (is_under_way(c) && s->draining) {
        because(c, QN_MEMBER_ERROR_LEAVES, 0, QN_OK);
        tell(x);
        c->step = QN_MEMBER_NONE;
        return;
    }
    if (c->step == QN_MEMBER_MEETS) {
        forget_absent(x);
    }
    if (c->step >= QN_MEMBER_COMES && c->step <= QN_MEMBER_LOADS) {
        coming(x);
    }
    if (c->step == QN_MEMBER_VOTES) {
        votes(x);
    }
    if (c->step == QN_MEMBER_LEAVES) {
        leaving(x);
    }
}

qn_time_t qn_sv_member_deadline(const struct qn_supervision *s, qn_time_t now)
{
    const struct qn_member_change *c = &s->change;
    switch (c->step) {
    case QN_MEMBER_NONE:
    case QN_MEMBER_LEAVES:
        return QN_TIME_NEVER;
    case QN_MEMBER_VOTES:
        return QN_MIN(c->until, c->asked ? c->silent_at : c->again_at);
    case QN_MEMBER_MEETS:
        return QN_MIN(c->until, now + STOPPED_LOOK_MS * QN_MS);
    default:
        return c->until;
    }
}
