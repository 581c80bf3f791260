/*
 * No replica has the data any more.
 *
 * When no complete replica is left, those that are loading would wait for a
 * snapshot for ever. With the memory acceptor they can rebuild the state
 * without one if the ring of the last leader reaches back to the first slot.
 * That shows at once, or never: they have LOADING_GRACE. Otherwise the data is
 * lost, and the server ends.
 *
 * The verdict is given in the TIMER step after an EXIT, so that whatever
 * replicas had said before is heard first.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "kvs/supervision/supervision_internal.h"

#define LOADING_GRACE ((qn_time_t)2 * QN_S)

void qn_sv_describe_end(char *text, size_t cap, const struct qn_replica_slot *r,
                        int status)
{
    if (r->error != QN_OK) {
        snprintf(text, cap, "cannot start: %s", qn_strerror(r->error));
    } else if (r->adopted) { /* only its parent is told how */
        snprintf(text, cap, "has ended");
    } else if (WIFSIGNALED(status)) {
        snprintf(text, cap, "was ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    } else {
        snprintf(text, cap, "has ended with status %d", WEXITSTATUS(status));
    }
}

/* Loading replicas may still become complete by themselves. */
static bool may_rebuild(const struct qn_sv_step *x)
{
    struct qn_supervision *s = x->s;
    const bool loading =
        s->opts.memory_acceptor && !s->draining &&
        qn_sv_count(s, QN_REPLICA_STARTING, QN_REPLICA_STARTING) != 0;
    if (loading && s->lost_at == QN_TIME_NEVER) {
        s->lost_at = x->now + LOADING_GRACE;
        qn_supervision_log(x->out, QN_LOG_WARN,
                           "no replica holds the full state; loading replicas "
                           "have %u s to rebuild it from the log",
                           (unsigned)(LOADING_GRACE / QN_S));
    }
    return loading && x->now < s->lost_at;
}

static void lose(const struct qn_sv_step *x)
{
    QN_ASSERT(!x->s->lost);
    QN_ASSERT(!x->s->draining);
    x->s->lost = true;
    x->s->lost_upto = x->e->facts.decided_upto;
}

void qn_sv_verdict(const struct qn_sv_step *x)
{
    struct qn_supervision *s = x->s;
    const enum qn_replica_state least =
        s->draining ? QN_REPLICA_STARTING : QN_REPLICA_SERVING;
    s->verdict_due = false;
    if (qn_sv_count(s, least, QN_REPLICA_DRAINED) != 0) {
        s->lost_at = QN_TIME_NEVER;
        return;
    }
    if (may_rebuild(x)) {
        return;
    }
    if (s->draining) {
        qn_sv_finish(x, qn_sv_drain_status(x));
    } else {
        lose(x);
        qn_sv_finish(x, QN_SUPERVISOR_LOST);
    }
}

bool qn_supervision_last_words(const struct qn_supervision *s, char *text,
                               size_t cap)
{
    const bool any = s->last_end[0] != '\0';
    if (!s->lost) {
        return false;
    }
    char upto[80] = ""; /* 0: not known, where replicas share no state */
    if (s->lost_upto != 0) {
        snprintf(upto, sizeof upto,
                 " All positions up to %llu had been decided.",
                 (unsigned long long)s->lost_upto);
    }
    snprintf(text, cap,
             "all data is lost: %s%s, and no complete replica is left.%s Start "
             "quoind again: it begins empty",
             any ? s->last_end : "none that was found is complete",
             any ? ", the last one that had it" : "", upto);
    return true;
}
