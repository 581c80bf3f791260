#include "kvs/session/turn.h"

#include <stdlib.h>

int qn_turn_init(struct qn_turn *t, const struct qn_session_ops *ops, void *ctx,
                 struct qn_info_part *part)
{
    t->env = (struct qn_session_env){.ops = ops, .ctx = ctx, .part = part};
    t->reads_left = QN_TURN_READS;
    t->env.in_flight.ring =
        calloc(QN_IN_FLIGHT_MAX, sizeof *t->env.in_flight.ring);
    return t->env.in_flight.ring != NULL ? QN_OK : QN_ENOMEM;
}

void qn_turn_fini(struct qn_turn *t)
{
    QN_ASSERT(qn_work_list_is_empty(&t->batch));
    QN_ASSERT(qn_work_list_is_empty(&t->run_list));
    QN_ASSERT(qn_work_list_is_empty(&t->flush_list));
    QN_ASSERT(qn_in_flight_count(&t->env.in_flight) == 0);
    free(t->env.in_flight.ring);
    qn_buf_free(&t->env.scratch);
    qn_buf_free(&t->env.error);
    *t = (struct qn_turn){0};
}

static struct qn_client_session *of_run(struct qn_work_link *link)
{
    return QN_CONTAINER_OF(link, struct qn_client_session, run_link);
}

static struct qn_client_session *of_flush(struct qn_work_link *link)
{
    return QN_CONTAINER_OF(link, struct qn_client_session, flush_link);
}

struct qn_client_session *qn_turn_release(struct qn_turn *t)
{
    QN_ASSERT(t->phase == QN_TURN_PHASE_SOCKETS);
    struct qn_submission submission;
    struct qn_work_link *link = qn_work_list_pop(&t->run_list);
    if (link != NULL) {
        return of_run(link);
    }
    link = qn_work_list_pop(&t->flush_list);
    if (link != NULL) {
        return of_flush(link);
    }
    if (!qn_in_flight_pop(&t->env.in_flight, &submission)) {
        return NULL;
    }
    QN_ASSERT(submission.session->pending > 0);
    submission.session->pending--;
    submission.session->deferred_reads -= submission.cmd->where == QN_CMD_READ;
    return submission.session;
}

/* ---- events -------------------------------------------------------------- */

void qn_turn_sent(struct qn_turn *t, struct qn_client_session *s)
{
    if (s->reason == QN_BLOCKED_OUTPUT) {
        qn_turn_run_later(t, s);
        t->again = true;
    }
}

void qn_turn_late_reply_done(struct qn_turn *t, struct qn_client_session *s)
{
    QN_ASSERT(s->state == QN_SESSION_RUN);
    t->again = true;
    qn_turn_flush_later(t, s);
    qn_turn_run_later(t, s);
}

/* Its reply is among those to be sent; and it may be what a request waited
 * for. */
static struct qn_client_session *completed(struct qn_turn *t,
                                           struct qn_client_session *s)
{
    if (s != NULL && !qn_session_is_closed(s)) {
        qn_turn_flush_later(t, s);
        if (s->pending == 0 && s->reason == QN_BLOCKED_PENDING) {
            qn_turn_run_later(t, s);
        }
    }
    return s;
}

struct qn_client_session *qn_turn_complete(struct qn_turn *t,
                                           struct qn_slice reply,
                                           qn_slot_t last_slot)
{
    return completed(t, qn_session_complete(&t->env, reply, last_slot));
}

struct qn_client_session *qn_turn_run_deferred(struct qn_turn *t,
                                               struct qn_store *store,
                                               struct qn_cmd_call *call)
{
    return completed(t, qn_session_run_deferred(&t->env, store, call));
}

/* ---- the turn ------------------------------------------------------------ */

static void phase_go(struct qn_turn *t, enum qn_turn_phase from,
                     enum qn_turn_phase to)
{
    QN_ASSERT(t->phase == from);
    QN_ASSERT(qn_work_list_is_empty(&t->batch));
    t->phase = to;
}

/* Remove the first one of the batch. What the budget does not reach goes back
 * in front of its list. */
static struct qn_work_link *batch_next(struct qn_turn *t,
                                       struct qn_work_list *list,
                                       bool may_go_on)
{
    struct qn_work_link *link = may_go_on ? qn_work_list_pop(&t->batch) : NULL;
    if (link == NULL) {
        qn_work_list_put_front(list, &t->batch);
    }
    return link;
}

void qn_turn_begin_inputs(struct qn_turn *t, qn_slot_t read_index,
                          qn_slot_t applied, bool has_store)
{
    phase_go(t, QN_TURN_PHASE_SOCKETS, QN_TURN_PHASE_INPUTS);
    t->env.budget = QN_TURN_REQUESTS;
    t->env.read_index = read_index;
    t->env.applied = applied;
    t->env.has_store = has_store;
    t->ahead = 0;
    t->batch = qn_work_list_take(&t->run_list);
}

/* Of one session alone there is nothing to overlap. */
static void look_ahead(struct qn_turn *t)
{
    struct qn_session_key key[QN_SESSION_AHEAD];
    const struct qn_session_env *env = &t->env;
    struct qn_work_link *l = t->batch.first;
    uint32_t n = 0;
    if (l == NULL || l->next == NULL) {
        return;
    }
    for (; l != NULL && t->ahead < QN_SESSION_AHEAD; l = l->next) {
        n += qn_session_next_key(of_run(l), &key[n]);
        t->ahead++;
    }
    if (n > 1) {
        env->ops->prefetch(env->ctx, key, n);
    }
}

struct qn_client_session *qn_turn_next_input(struct qn_turn *t)
{
    QN_DASSERT(t->phase == QN_TURN_PHASE_INPUTS);
    struct qn_work_link *link = NULL;
    t->again |= t->env.budget <= 0 && !qn_work_list_is_empty(&t->batch);
    if (t->ahead == 0 && t->env.has_store) {
        look_ahead(t);
    }
    while ((link = batch_next(t, &t->run_list, t->env.budget > 0)) != NULL) {
        struct qn_client_session *s = of_run(link);
        t->ahead -= t->ahead > 0;
        if (qn_session_resume(&t->env, s) || s->state != QN_SESSION_BLOCKED) {
            return s;
        }
        if (qn_session_polls(s)) {
            qn_turn_run_later(t, s);
        }
    }
    return NULL;
}

void qn_turn_begin_outputs(struct qn_turn *t)
{
    phase_go(t, QN_TURN_PHASE_INPUTS, QN_TURN_PHASE_OUTPUTS);
    t->writes_left = QN_TURN_WRITES;
    t->batch = qn_work_list_take(&t->flush_list);
}

struct qn_client_session *qn_turn_next_output(struct qn_turn *t)
{
    QN_DASSERT(t->phase == QN_TURN_PHASE_OUTPUTS);
    bool may_go_on = t->writes_left > 0;
    t->again |= !may_go_on && !qn_work_list_is_empty(&t->batch);
    struct qn_work_link *link = batch_next(t, &t->flush_list, may_go_on);
    if (link == NULL) {
        return NULL;
    }
    struct qn_client_session *s = of_flush(link);
    if (!qn_session_is_closed(s)) {
        t->writes_left -= 1 + (int64_t)(s->out.len / QN_TURN_BYTES);
    }
    return s;
}

void qn_turn_end(struct qn_turn *t, qn_slot_t applied)
{
    phase_go(t, QN_TURN_PHASE_OUTPUTS, QN_TURN_PHASE_SOCKETS);
    QN_ASSERT(applied >= t->env.applied);
    t->env.applied = applied;
    t->reads_left = QN_TURN_READS;
    for (struct qn_work_link *l = t->run_list.first; l != NULL && !t->again;
         l = l->next) {
        t->again = qn_session_can_resume(&t->env, of_run(l));
    }
}
