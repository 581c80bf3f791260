/*
 * A group that has stopped goes on from one of its replicas (PROTOCOL.md 9,
 * Forced recovery; `quoin recover`).
 *
 *     RECOVER, from any   the chosen replica is asked whether it could; nothing
 *                         else has happened yet
 *     RECOVERABLE         all others are killed; no replica is started
 *                         meanwhile
 *     their ends          the chosen one hears of each, then RECOVER
 *     RECOVERED           all others are started: new incarnations, which vote
 *                         with their records and take its snapshot
 *
 * The question comes first because it is the only step that can be taken back.
 * If the chosen replica refuses, dies or is silent then, all is as it was, and
 * the client that wanted it is told why. An answer counts for the question that
 * was asked last, and for the incarnation that was asked.
 *
 * Fencing is the kernel's: when the chosen replica is told to go on, no other
 * process of the group exists, so nothing of what it is about to forget can
 * come back. The others are ended even if they have copies: they may have
 * learned slots beyond a gap, which are decided anew now.
 *
 * From the first kill to the first snapshot the chosen replica has the only
 * copy. Should it end in that time, all is lost, as after any end of the last
 * replica. Should the supervisor end, its successor adopts what is there: the
 * group has still stopped, or goes on.
 */
#include "core/base/assert.h"
#include "core/base/err.h"
#include "kvs/control/recovery_error.h"
#include "kvs/supervision/supervision_internal.h"

/* How long an answer is waited for, before the replica is chosen and after. The
 * first is less than a client waits (loadgen/net/oneshot_request.c). */
enum { ASKED_S = 3, CHOSEN_S = 5 };

bool qn_sv_recovers(const struct qn_supervision *s)
{
    return s->recovery.step != QN_RECOVERY_NONE;
}

bool qn_sv_recovery_holds(const struct qn_supervision *s)
{
    return s->recovery.step > QN_RECOVERY_ASKS;
}

static enum qn_recovery_error objection(const struct qn_supervision *s,
                                        qn_node_t node)
{
    if (qn_sv_recovers(s)) {
        return QN_RECOVERY_ERROR_TWICE;
    }
    if (s->upgrade.step != QN_UPGRADE_NONE) {
        return QN_RECOVERY_ERROR_UPGRADE;
    }
    if (qn_sv_member_changes(s)) {
        return QN_RECOVERY_ERROR_MEMBERS;
    }
    if (!s->served || s->draining) {
        return QN_RECOVERY_ERROR_LEAVES;
    }
    const bool there = node < s->opts.replicas &&
                       s->replica[node].state == QN_REPLICA_SERVING &&
                       s->replica[node].reachable && qn_sv_votes(s, node);
    return there ? QN_RECOVERY_ERROR_NONE : QN_RECOVERY_ERROR_ABSENT;
}

/* The incarnation that was asked still lives. */
static bool chosen_lives(const struct qn_supervision *s)
{
    const struct qn_recovery *r = &s->recovery;
    const struct qn_replica_slot *c = &s->replica[r->node];
    return c->state == QN_REPLICA_SERVING && c->reachable &&
           c->incarnation == r->incarnation;
}

/* ---- the question -------------------------------------------------------- */

/* `asker` may be another incarnation by now, which has no such client. */
static void refuse(const struct qn_sv_step *x, qn_node_t asker, qn_node_t node,
                   uint64_t client, uint32_t why)
{
    qn_supervision_log(x->out, QN_LOG_WARN, "not recovered from replica %u: %s",
                       node, qn_recovery_error_text(why));
    qn_sv_say_refused(x, asker, node, client, why);
}

static void refuse_asker(const struct qn_sv_step *x, uint32_t why)
{
    struct qn_recovery *r = &x->s->recovery;
    QN_ASSERT(r->step == QN_RECOVERY_ASKS);
    refuse(x, r->asker, r->node, r->client, why);
    r->step = QN_RECOVERY_NONE;
}

void qn_sv_on_recover(const struct qn_sv_step *x, qn_node_t from,
                      const struct qn_ctl_recover *m)
{
    struct qn_recovery *r = &x->s->recovery;
    const enum qn_recovery_error why = objection(x->s, m->node);
    if (why != QN_RECOVERY_ERROR_NONE) {
        refuse(x, from, m->node, m->client, why);
        return;
    }
    r->step = QN_RECOVERY_ASKS;
    r->agreed = false;
    r->node = m->node;
    r->incarnation = x->s->replica[m->node].incarnation;
    r->asker = from;
    r->client = m->client;
    r->asked++;
    r->until = x->now + ASKED_S * QN_S;
    qn_sv_ask_recoverable(x, m->node, m);
}

static void kill_others(const struct qn_sv_step *x)
{
    for (qn_node_t i = 0; i < x->s->opts.replicas; i++) {
        struct qn_replica_slot *r = &x->s->replica[i];
        if (i != x->s->recovery.node && r->state != QN_REPLICA_ENDED) {
            r->killed = true;
            qn_sv_kill(x, i);
        }
    }
}

void qn_sv_on_recoverable(const struct qn_sv_step *x, qn_node_t from,
                          const struct qn_ctl_recoverable *m)
{
    struct qn_recovery *r = &x->s->recovery;
    if (r->step != QN_RECOVERY_ASKS || from != r->node || !chosen_lives(x->s) ||
        m->question != r->asked) {
        return;
    }
    if (m->refusal != QN_RECOVERY_ERROR_NONE) {
        refuse_asker(x, m->refusal);
        return;
    }
    /* These may be its last words: the others are ended when it is certain
     * that it lives. */
    r->agreed = true;
    r->position = m->position;
}

/* ---- what cannot be taken back ------------------------------------------- */

/* Also those that were not to be: without a majority nothing is decided. */
static void start_others(const struct qn_sv_step *x)
{
    x->s->recovery.step = QN_RECOVERY_NONE;
    for (qn_node_t i = 0; i < x->s->opts.replicas; i++) {
        struct qn_replica_slot *r = &x->s->replica[i];
        if (r->state == QN_REPLICA_ENDED && !r->spawning && !x->s->draining &&
            qn_sv_votes(x->s, i)) {
            r->backoff_ms = 0;
            r->restart_at = x->now;
        }
    }
}

void qn_sv_on_recovered(const struct qn_sv_step *x, qn_node_t from, int err)
{
    const struct qn_recovery *r = &x->s->recovery;
    if (r->step != QN_RECOVERY_GOES || from != r->node) {
        return;
    }
    if (err != QN_OK) {
        qn_supervision_log(x->out, QN_LOG_ERROR,
                           "replica %u cannot go on alone: %s", from,
                           qn_strerror(err));
    }
    start_others(x);
}

static bool others_ended(const struct qn_supervision *s)
{
    for (qn_node_t i = 0; i < s->opts.replicas; i++) {
        if (i != s->recovery.node && s->replica[i].state != QN_REPLICA_ENDED) {
            return false;
        }
    }
    return true;
}

static void give_up(const struct qn_sv_step *x, const char *why)
{
    qn_supervision_log(x->out, QN_LOG_ERROR,
                       "replica %u %s; the others are started again",
                       x->s->recovery.node, why);
    start_others(x);
}

static void end_others(const struct qn_sv_step *x)
{
    struct qn_recovery *r = &x->s->recovery;
    qn_supervision_log(x->out, QN_LOG_WARN,
                       "recovering from replica %u by order, position %llu; "
                       "all others are ended and started again",
                       r->node, (unsigned long long)r->position);
    r->step = QN_RECOVERY_ENDS;
    kill_others(x);
}

static void proceed(const struct qn_sv_step *x)
{
    struct qn_recovery *r = &x->s->recovery;
    const bool late = x->now >= r->until;
    if (r->step == QN_RECOVERY_ASKS && !chosen_lives(x->s)) {
        refuse_asker(x, QN_RECOVERY_ERROR_ENDED);
    } else if (r->step == QN_RECOVERY_ASKS && r->agreed) {
        end_others(x);
    } else if (r->step == QN_RECOVERY_ASKS && late) {
        refuse_asker(x, QN_RECOVERY_ERROR_SILENT);
    } else if (r->step > QN_RECOVERY_ASKS && !chosen_lives(x->s)) {
        give_up(x, "has ended while it was to go on alone");
    } else if (r->step == QN_RECOVERY_ENDS && others_ended(x->s)) {
        r->step = QN_RECOVERY_GOES;
        r->until = x->now + CHOSEN_S * QN_S;
        qn_sv_say(x, r->node, QN_CTL_RECOVER_ORDER);
    } else if (r->step == QN_RECOVERY_GOES && late) {
        give_up(x, "does not answer");
    }
}

void qn_sv_recovery_turn(const struct qn_sv_step *x)
{
    struct qn_supervision *s = x->s;
    if (s->recovery.step == QN_RECOVERY_NONE) {
        return;
    }
    if (s->draining && s->recovery.step == QN_RECOVERY_ASKS) {
        refuse_asker(x, QN_RECOVERY_ERROR_LEAVES);
    } else if (s->draining) {
        s->recovery.step = QN_RECOVERY_NONE;
    } else {
        proceed(x);
    }
}
