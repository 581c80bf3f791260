/*
 * The dispatcher of a step.
 *
 * Each event has one handler in the file of its part. Parts that wait for time
 * have a turn, which TIMER runs in a fixed order: the verdict about a process
 * that ended first, restarts last. So a replica that ended is judged before
 * its next incarnation exists, and what an operation ordered in this turn is
 * seen by the restarts.
 *
 * The retained outbox is reviewed before every event: no handler then sees an
 * outbox of an owner that has lost the register.
 */
#include "kvs/supervision/supervision_internal.h"

#include <assert.h>
#include <signal.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/earlier.h"

static_assert(QN_NODES_MAX <= 64, "sets of nodes are masks of 64 bits");

void qn_supervision_init(struct qn_supervision *s,
                         const struct qn_supervision_opts *opts)
{
    *s = (struct qn_supervision){.opts = *opts,
                                 .drain_until = QN_TIME_NEVER,
                                 .lost_at = QN_TIME_NEVER,
                                 .orphans.until = QN_TIME_NEVER};
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        s->replica[i].state = QN_REPLICA_ENDED;
        s->replica[i].restart_at = QN_TIME_NEVER;
    }
    qn_sv_voters_begin(s);
}

uint32_t qn_sv_count(const struct qn_supervision *s,
                     enum qn_replica_state first, enum qn_replica_state last)
{
    uint32_t n = 0;
    for (qn_node_t i = 0; i < s->opts.replicas; i++) {
        n += s->replica[i].state >= first && s->replica[i].state <= last;
    }
    return n;
}

void qn_sv_kill(const struct qn_sv_step *x, qn_node_t i)
{
    QN_ASSERT(x->s->replica[i].state != QN_REPLICA_ENDED);
    qn_supervision_do(x->out,
                      &(struct qn_supervision_action){
                          .kind = QN_DO_KILL, .node = i, .number = SIGKILL});
}

/* FINISH is appended at the end of the step, so that it is the last action. */
void qn_sv_finish(const struct qn_sv_step *x, int status)
{
    struct qn_supervision *s = x->s;
    QN_ASSERT(status >= 0);
    if (!s->over) {
        s->over = true;
        s->status = status;
    }
}

void qn_sv_drop_outbox(const struct qn_sv_step *x, qn_node_t node,
                       uint64_t incarnation)
{
    QN_ASSERT(incarnation != 0);
    const struct qn_supervision_action a = {
        .kind = QN_DO_DROP_OUTBOX,
        .node = node,
        .outbox = {.node = node, .incarnation = incarnation}};
    qn_supervision_do(x->out, &a);
}

static void on_ready(const struct qn_sv_step *x, qn_node_t from)
{
    struct qn_supervision *s = x->s;
    struct qn_replica_slot *r = &s->replica[from];
    r->state = QN_MAX(r->state, QN_REPLICA_SERVING);
    if (!s->served && qn_sv_count(s, QN_REPLICA_SERVING, QN_REPLICA_SERVING) ==
                          qn_sv_members(s)) {
        s->served = true;
        qn_supervision_do(
            x->out, &(struct qn_supervision_action){.kind = QN_DO_ANNOUNCE});
        qn_sv_say_all(x, QN_CTL_READY); /* accept connections */
    }
}

static void blame(const struct qn_sv_step *x, qn_node_t node, int err)
{
    qn_supervision_do(x->out,
                      &(struct qn_supervision_action){
                          .kind = QN_DO_BLAME, .node = node, .number = err});
}

static void on_failed(const struct qn_sv_step *x, qn_node_t from, int err)
{
    if (x->s->served) {
        x->s->replica[from].error = err; /* logged with its end */
    } else {
        blame(x, from, err);
    }
}

static void on_message(const struct qn_sv_step *x)
{
    const struct qn_control_msg *m = x->e->message;
    const qn_node_t from = x->e->node;
    if (qn_sv_on_orphan_message(x, from, m) ||
        x->s->replica[from].state == QN_REPLICA_ENDED) {
        return;
    }
    switch (m->kind) {
    case QN_CTL_HELLO:
        qn_sv_on_hello(x, from);
        break;
    case QN_CTL_READY:
        on_ready(x, from);
        break;
    case QN_CTL_DRAINING:
        qn_sv_on_draining(x, m->u.draining.timeout_s);
        break;
    case QN_CTL_DRAINED:
        qn_sv_on_drained(x, from, m->u.drained.unsent_replies,
                         m->u.drained.group_stopped);
        break;
    case QN_CTL_ROLES:
        qn_sv_on_roles(x, from, &m->u.roles);
        break;
    case QN_CTL_RECOVER:
        qn_sv_on_recover(x, from, &m->u.recover);
        break;
    case QN_CTL_RECOVERABLE:
        qn_sv_on_recoverable(x, from, &m->u.recoverable);
        break;
    case QN_CTL_RECOVERED:
        qn_sv_on_recovered(x, from, (int)m->u.recovered.error);
        break;
    case QN_CTL_MEMBER_LIST:
        qn_sv_on_member_list(x, from, &m->u.member_list);
        break;
    case QN_CTL_MEMBER_ADD:
        qn_sv_on_member_add(x, from, &m->u.member_add);
        break;
    case QN_CTL_MEMBER_REMOVE:
        qn_sv_on_member_remove(x, from, &m->u.member_remove);
        break;
    case QN_CTL_PEER_MET:
        qn_sv_on_peer_met(x, from, &m->u.peer_met);
        break;
    case QN_CTL_VOTERS:
        qn_sv_on_voters(x, from, &m->u.voters);
        break;
    case QN_CTL_VOTER_CHANGED:
        qn_sv_on_voter_changed(x, from, &m->u.voter_changed);
        break;
    case QN_CTL_FAILED:
        on_failed(x, from, (int)m->u.failed.error);
        break;
    default:
        qn_supervision_log(x->out, QN_LOG_ERROR,
                           "replica %u: unexpected control message %s", from,
                           qn_control_name((uint32_t)m->kind));
    }
}

/* Without memory or descriptors for a message the replica would miss what
 * became of its peers. A new incarnation hears all of it. */
static void on_send_failed(const struct qn_sv_step *x)
{
    struct qn_supervision *s = x->s;
    const qn_node_t to = x->e->node;
    const int err = x->e->number;
    if (s->replica[to].state == QN_REPLICA_ENDED) {
        return;
    }
    qn_supervision_log(x->out, QN_LOG_ERROR,
                       "cannot send control message to replica %u: %s", to,
                       qn_strerror(err));
    /* An initial member would wait for its peers for ever. */
    if (!s->served && !s->orphans.taken_over) {
        blame(x, to, err);
        qn_sv_finish(x, QN_SUPERVISOR_NOT_BEGUN);
    } else {
        qn_sv_kill(x, to);
    }
}

/* An initial member that cannot live ends the start of the server. */
static void on_exit_or_start_failed(const struct qn_sv_step *x)
{
    struct qn_supervision *s = x->s;
    const qn_node_t i = x->e->node;
    if (s->replica[i].state == QN_REPLICA_ENDED) {
        return;
    }
    if (!s->served && !s->draining) {
        qn_sv_reap(x, i);
        blame(x, i, QN_EPEERDEAD);
        qn_sv_finish(x, QN_SUPERVISOR_NOT_BEGUN);
        return;
    }
    qn_sv_on_exit(x);
    if (s->draining) {
        qn_sv_drain_check(x);
    }
    s->verdict_due = true;
}

static void on_timer(const struct qn_sv_step *x)
{
    struct qn_supervision *s = x->s;
    if (s->verdict_due) {
        qn_sv_verdict(x);
    }
    if (!s->over) {
        qn_sv_drain_turn(x);
        qn_sv_upgrade_turn(x);
        qn_sv_recovery_turn(x);
        qn_sv_member_turn(x);
        qn_sv_leave_turn(x);
        qn_sv_meet_turn(x);
        qn_sv_restart_turn(x);
    }
    if (!s->over && s->lost_at != QN_TIME_NEVER) {
        qn_sv_verdict(x);
    }
}

static void dispatch(const struct qn_sv_step *x)
{
    switch (x->e->kind) {
    case QN_ON_TIMER:
        on_timer(x);
        break;
    case QN_ON_START:
        qn_sv_on_start(x);
        break;
    case QN_ON_MESSAGE:
        on_message(x);
        break;
    case QN_ON_HANGUP:
        x->s->replica[x->e->node].reachable = false;
        break;
    case QN_ON_EXIT:
        on_exit_or_start_failed(x);
        break;
    case QN_ON_SIGNAL:
        qn_sv_on_signal(x);
        break;
    case QN_ON_SPAWNED:
        qn_sv_on_spawned(x);
        break;
    case QN_ON_SPAWN_FAILED:
        qn_sv_on_spawn_failed(x);
        break;
    case QN_ON_SEND_FAILED:
        on_send_failed(x);
        break;
    case QN_ON_ORPHAN_MET:
        qn_sv_on_orphan_met(x);
        break;
    case QN_ON_ORPHAN_ENDED:
        qn_sv_on_orphan_ended(x);
        break;
    case QN_ON_TAKE_OVER:
        qn_sv_on_take_over(x);
        break;
    case QN_ON_UNREACHED:
        qn_sv_on_unreached(x);
        break;
    case QN_ON_VACANT:
        qn_sv_on_vacant(x);
        break;
    case QN_ON_CATCH_UP:
        qn_sv_on_catch_up(x);
        break;
    case QN_ON_TAKEN_OVER:
        qn_sv_on_taken_over(x);
        break;
    case QN_ON_UPGRADE:
        qn_sv_on_upgrade(x);
        break;
    case QN_ON_SUCCESSOR_ASKS:
        qn_sv_on_successor_asks(x);
        break;
    case QN_ON_SUCCESSOR_TAKES:
        qn_sv_on_successor_takes(x);
        break;
    }
}

static qn_time_t deadline_of(const struct qn_supervision *s, qn_time_t now)
{
    qn_time_t drain = s->draining ? s->drain_until : QN_TIME_NEVER;
    qn_time_t lost =
        s->lost_at == QN_TIME_NEVER ? QN_TIME_NEVER : now + QN_SV_LOST_LOOK;
    qn_time_t at = QN_MIN(drain, lost);
    at = qn_time_earlier(at, qn_sv_upgrade_deadline(s, now));
    at = qn_time_earlier(at, qn_sv_member_deadline(s, now));
    at = qn_time_earlier(at, qn_sv_leave_deadline(s, now));
    at = qn_time_earlier(at, qn_sv_meet_deadline(s));
    at = qn_time_earlier(at, qn_sv_restart_deadline(s, now));
    return s->verdict_due ? now : at;
}

void qn_supervision_step(struct qn_supervision *s,
                         const struct qn_supervision_event *e, qn_time_t now,
                         struct qn_supervision_actions *out)
{
    const struct qn_sv_step x = {.s = s, .e = e, .now = now, .out = out};
    QN_ASSERT(!s->over);
    QN_ASSERT(e->node < QN_NODES_MAX);
    QN_ASSERT(now >= s->last_step);
    s->last_step = now;
    qn_supervision_actions_clear(out);
    qn_sv_retained_review(&x);
    dispatch(&x);
    if (s->over) {
        const struct qn_supervision_action end = {.kind = QN_DO_FINISH,
                                                  .number = s->status};
        qn_supervision_do(out, &end);
    } else {
        out->deadline = deadline_of(s, now);
    }
    qn_sv_invariants(s);
}

bool qn_supervision_needs_stopped(const struct qn_supervision *s,
                                  enum qn_supervision_on kind, qn_time_t now)
{
    switch (kind) {
    case QN_ON_EXIT:
    case QN_ON_SPAWN_FAILED:
        return true;
    case QN_ON_TIMER:
        return qn_sv_long_backoff(s, now) || qn_sv_member_meets(s);
    default:
        return false;
    }
}
