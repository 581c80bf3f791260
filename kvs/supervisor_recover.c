/*
 * A group that has stopped goes on from one of its replicas (PROTOCOL.md 9,
 * Forced recovery; `quoin recover`).
 *
 *     RECOVER, from any   all others are killed; nobody is started meanwhile
 *     their ends          the chosen one hears of each, then RECOVER
 *     RECOVERED           all others are started: new lives, which vote with
 *                         their records and take its snapshot
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
#include "kvs/supervisor_internal.h"

enum { PATIENCE_S = 5 }; /* with a replica that does not answer */

bool qn_supervisor_recovers(const struct qn_supervisor *s)
{
    return s->recovery.step != QN_RECOVERY_NONE;
}

static const char *objection(const struct qn_supervisor *s, qn_node_t node)
{
    if (qn_supervisor_recovers(s)) {
        return "it is being recovered already";
    }
    if (s->upgrade.step != QN_UPGRADE_NONE) {
        return "an upgrade is going on";
    }
    if (!s->served || s->draining) {
        return "the server is starting or ending";
    }
    bool there = node < s->config.replicas &&
                 s->replica[node].state == QN_SUPERVISED_SERVING &&
                 s->replica[node].control >= 0;
    return there ? NULL : "that replica is not complete";
}

void qn_supervisor_recover(struct qn_supervisor *s,
                           const struct qn_boot_event *e)
{
    const char *why = objection(s, e->node);
    if (why != NULL || s->config.memory_acceptor) {
        qn_log(QN_LOG_WARN, "not recovered from replica %u: %s", e->node,
               why != NULL ? why : "the memory acceptor needs it not");
        return;
    }
    qn_log(QN_LOG_WARN,
           "recovering from replica %u by order; all others are ended and "
           "started again",
           e->node);
    s->recovery =
        (struct qn_recovery){.step = QN_RECOVERY_ENDS, .node = e->node};
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        struct qn_supervised *r = &s->replica[i];
        if (i != e->node && r->state != QN_SUPERVISED_ENDED) {
            r->killed = true;
            qn_supervisor_kill(r, SIGKILL);
        }
    }
}

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
                             const struct qn_boot_event *e)
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

void qn_supervisor_recover_turn(struct qn_supervisor *s)
{
    struct qn_recovery *r = &s->recovery;
    if (r->step == QN_RECOVERY_NONE || s->over) {
        return;
    }
    if (s->draining) {
        r->step = QN_RECOVERY_NONE;
    } else if (r->step == QN_RECOVERY_ENDS && others_ended(s)) {
        r->step = QN_RECOVERY_GOES;
        r->until = qn_clock_now() + PATIENCE_S * QN_S;
        qn_supervisor_say(s, r->node, QN_BOOT_RECOVER);
    } else if (r->step == QN_RECOVERY_GOES && qn_clock_now() >= r->until) {
        qn_log(QN_LOG_ERROR,
               "replica %u does not answer; the others are "
               "started again",
               r->node);
        start_others(s);
    }
}
