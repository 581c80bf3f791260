/*
 * A group that has stopped goes on from one of its replicas (PROTOCOL.md 9,
 * Forced recovery; `quoin recover`).
 *
 *     RECOVER, from any   the chosen one is asked whether it could; nothing
 *                         else has happened yet
 *     RECOVERABLE         all others are killed; nobody is started meanwhile
 *     their ends          the chosen one hears of each, then RECOVER
 *     RECOVERED           all others are started: new lives, which vote with
 *                         their records and take its snapshot
 *
 * The question comes first because it is the only step that can be taken back:
 * if the chosen one refuses, dies or is silent then, all is as it was, and who
 * wanted it is told why. An answer counts for the question that was asked last,
 * and for the life that was asked.
 *
 * Fencing is the kernel's: when the chosen one is told to go on, no other
 * process of the group exists, so nothing of what it is about to forget can
 * come back. The others are ended even if they have copies: they may have
 * learned slots beyond a gap, which are decided anew now.
 *
 * From the first kill to the first snapshot the chosen one has the only copy.
 * Should it end in that time, all is lost, as after any end of the last one.
 * Should this process end, its successor adopts what is there: the group has
 * still stopped, or goes on.
 */
#include <signal.h>

#include "core/base/err.h"
#include "core/base/log.h"
#include "kvs/control/recovery_error.h"
#include "kvs/supervisor/supervisor_internal.h"

/* With a replica that does not answer, before it is chosen and after. The first
 * is less than a client waits (loadgen/net/inquiry.c). */
enum { ASKED_S = 3, PATIENCE_S = 5 };

bool qn_supervisor_recovers(const struct qn_supervisor *s)
{
    return s->recovery.step != QN_RECOVERY_NONE;
}

bool qn_supervisor_recover_holds(const struct qn_supervisor *s)
{
    return s->recovery.step > QN_RECOVERY_ASKS;
}

static enum qn_recovery_error objection(const struct qn_supervisor *s,
                                        qn_node_t node)
{
    if (qn_supervisor_recovers(s)) {
        return QN_RECOVERY_ERROR_TWICE;
    }
    if (s->upgrade.step != QN_UPGRADE_NONE) {
        return QN_RECOVERY_ERROR_UPGRADE;
    }
    if (!s->served || s->draining) {
        return QN_RECOVERY_ERROR_LEAVES;
    }
    bool there = node < s->config.replicas &&
                 s->replica[node].state == QN_SUPERVISED_SERVING &&
                 s->replica[node].control >= 0;
    return there ? QN_RECOVERY_ERROR_NONE : QN_RECOVERY_ERROR_ABSENT;
}

/* The life that was asked still lives. */
static bool chosen_lives(const struct qn_supervisor *s)
{
    const struct qn_recovery *r = &s->recovery;
    const struct qn_supervised *x = &s->replica[r->node];
    return x->state == QN_SUPERVISED_SERVING && x->control >= 0 &&
           x->incarnation == r->incarnation;
}

/* ---- the question -------------------------------------------------------- */

/* `asker` may be another life by now, which has no such client. */
static void refuse(struct qn_supervisor *s, qn_node_t asker, qn_node_t node,
                   uint64_t client, uint32_t why)
{
    const struct qn_control_msg e = {
        .kind = QN_CTL_RECOVER_REFUSED,
        .u.recover_refused = {.node = node, .client = client, .refusal = why}};
    qn_log(QN_LOG_WARN, "not recovered from replica %u: %s", node,
           qn_recovery_error_text(why));
    qn_supervisor_send(s, asker, &e, -1);
}

static void refused(struct qn_supervisor *s, uint32_t why)
{
    const struct qn_recovery *r = &s->recovery;
    refuse(s, r->asker, r->node, r->client, why);
    s->recovery.step = QN_RECOVERY_NONE;
}

void qn_supervisor_recover(struct qn_supervisor *s, qn_node_t from,
                           const struct qn_ctl_recover *e)
{
    struct qn_recovery *r = &s->recovery;
    enum qn_recovery_error why = objection(s, e->node);
    if (why != QN_RECOVERY_ERROR_NONE) {
        refuse(s, from, e->node, e->client, why);
        return;
    }
    r->step = QN_RECOVERY_ASKS;
    r->node = e->node;
    r->incarnation = s->replica[e->node].incarnation;
    r->asker = from;
    r->client = e->client;
    r->asked++;
    r->until = qn_clock_now() + ASKED_S * QN_S;
    const struct qn_control_msg q = {
        .kind = QN_CTL_RECOVER_QUERY,
        .u.recover_query = {
            .epoch = e->epoch, .question = r->asked, .position = e->position}};
    qn_supervisor_send(s, e->node, &q, -1);
}

static void end_others(struct qn_supervisor *s)
{
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        struct qn_supervised *r = &s->replica[i];
        if (i != s->recovery.node && r->state != QN_SUPERVISED_ENDED) {
            r->killed = true;
            qn_supervisor_kill(r, SIGKILL);
        }
    }
}

void qn_supervisor_recoverable(struct qn_supervisor *s, qn_node_t from,
                               const struct qn_ctl_recoverable *e)
{
    struct qn_recovery *r = &s->recovery;
    if (r->step != QN_RECOVERY_ASKS || from != r->node || !chosen_lives(s) ||
        e->question != r->asked) {
        return;
    }
    if (e->refusal != QN_RECOVERY_ERROR_NONE) {
        refused(s, e->refusal);
        return;
    }
    qn_log(QN_LOG_WARN,
           "recovering from replica %u by order, position %llu; all others are "
           "ended and started again",
           from, (unsigned long long)e->position);
    r->step = QN_RECOVERY_ENDS;
    end_others(s);
}

/* ---- what cannot be taken back ------------------------------------------- */

/* Also who was not to be: without a majority nothing is decided. */
static void start_others(struct qn_supervisor *s)
{
    s->recovery.step = QN_RECOVERY_NONE;
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        struct qn_supervised *r = &s->replica[i];
        if (r->state == QN_SUPERVISED_ENDED && !s->draining) {
            r->pause_ms = 0;
            r->restart_at = qn_clock_now();
        }
    }
}

void qn_supervisor_recovered(struct qn_supervisor *s, qn_node_t from,
                             const struct qn_ctl_recovered *e)
{
    const struct qn_recovery *r = &s->recovery;
    if (r->step != QN_RECOVERY_GOES || from != r->node) {
        return;
    }
    if (e->error != QN_OK) {
        qn_log(QN_LOG_ERROR, "replica %u cannot go on alone: %s", from,
               qn_strerror((int)e->error));
    }
    start_others(s);
}

static bool others_ended(const struct qn_supervisor *s)
{
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        if (i != s->recovery.node &&
            s->replica[i].state != QN_SUPERVISED_ENDED) {
            return false;
        }
    }
    return true;
}

static void give_up(struct qn_supervisor *s, const char *why)
{
    qn_log(QN_LOG_ERROR, "replica %u %s; the others are started again",
           s->recovery.node, why);
    start_others(s);
}

static void go_on(struct qn_supervisor *s)
{
    struct qn_recovery *r = &s->recovery;
    bool late = qn_clock_now() >= r->until;
    if (r->step == QN_RECOVERY_ASKS && !chosen_lives(s)) {
        refused(s, QN_RECOVERY_ERROR_ENDED);
    } else if (r->step == QN_RECOVERY_ASKS && late) {
        refused(s, QN_RECOVERY_ERROR_SILENT);
    } else if (r->step > QN_RECOVERY_ASKS && !chosen_lives(s)) {
        give_up(s, "has ended while it was to go on alone");
    } else if (r->step == QN_RECOVERY_ENDS && others_ended(s)) {
        r->step = QN_RECOVERY_GOES;
        r->until = qn_clock_now() + PATIENCE_S * QN_S;
        qn_supervisor_say(s, r->node, QN_CTL_RECOVER_ORDER);
    } else if (r->step == QN_RECOVERY_GOES && late) {
        give_up(s, "does not answer");
    }
}

void qn_supervisor_recover_turn(struct qn_supervisor *s)
{
    if (s->recovery.step == QN_RECOVERY_NONE || s->over) {
        return;
    }
    if (s->draining && s->recovery.step == QN_RECOVERY_ASKS) {
        refused(s, QN_RECOVERY_ERROR_LEAVES);
    } else if (s->draining) {
        s->recovery.step = QN_RECOVERY_NONE;
    } else {
        go_on(s);
    }
}
