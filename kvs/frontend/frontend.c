/*
 * The front end's turn, completions, and the list of all connections: see
 * frontend.h. Which sessions run and flush, and how much, is decided by struct
 * qn_turn (kvs/session/turn.h); here the decisions meet the replica and the
 * sockets.
 */
#include "kvs/frontend/frontend.h"

#include "core/base/assert.h"
#include "kvs/frontend/frontend_internal.h"

/* ---- completions --------------------------------------------------------- */

/* A session has a reply more, or none if it is closed. NULL: the first command
 * of the group belongs to no session. */
static void completed(struct qn_client_session *s)
{
    if (s != NULL && qn_session_is_closed(s)) {
        qn_conn_free_if_done(qn_conn_of(s));
    }
}

void qn_frontend_completions(struct qn_frontend *fe)
{
    struct qn_slice reply;
    while (qn_replica_next_completion(fe->o.replica, &reply)) {
        completed(qn_turn_complete(&fe->turn, reply,
                                   qn_replica_last_own(fe->o.replica)));
    }
}

void qn_frontend_deferred_read(struct qn_frontend *fe, struct qn_store *store,
                               struct qn_cmd_call *call)
{
    qn_frontend_completions(fe);
    completed(qn_turn_run_deferred(&fe->turn, store, call));
}

/* ---- a turn -------------------------------------------------------------- */

/* Reads that wait for it, or less, may go on. */
static qn_slot_t reached(const struct qn_frontend *fe)
{
    struct qn_driver *driver = qn_replica_driver(fe->o.replica);
    return fe->o.linearizable && qn_driver_by_message(driver)
               ? qn_driver_read_view(driver).reached
               : qn_replica_applied(fe->o.replica);
}

static void inputs_run(struct qn_frontend *fe, qn_slot_t index)
{
    struct qn_turn *t = &fe->turn;
    struct qn_client_session *s = NULL;
    qn_turn_begin_inputs(t, index, reached(fe),
                         qn_replica_store(fe->o.replica) != NULL);
    while ((s = qn_turn_next_input(t)) != NULL) {
        if (qn_session_is_closed(s)) {
            qn_conn_free_if_done(qn_conn_of(s));
        } else {
            qn_conn_run(qn_conn_of(s));
        }
    }
}

static void outputs_flush(struct qn_frontend *fe)
{
    struct qn_client_session *s = NULL;
    qn_turn_begin_outputs(&fe->turn);
    while ((s = qn_turn_next_output(&fe->turn)) != NULL) {
        if (qn_session_is_closed(s)) {
            qn_conn_free_if_done(qn_conn_of(s));
        } else {
            qn_conn_flush(qn_conn_of(s));
        }
    }
}

void qn_frontend_rates(struct qn_frontend *fe, qn_time_t now)
{
    struct qn_rates *r = &fe->rates;
    struct qn_info_part *p = &fe->part;
    if (now - r->since < QN_S) {
        return;
    }
    uint64_t ms = (now - r->since) / QN_MS;
    p->ops_per_sec = (p->commands_processed - r->commands) * 1000 / ms;
    p->input_bytes_per_sec = (p->net_input_bytes - r->bytes_in) * 1000 / ms;
    p->output_bytes_per_sec = (p->net_output_bytes - r->bytes_out) * 1000 / ms;
    *r = (struct qn_rates){.since = now,
                           .commands = p->commands_processed,
                           .bytes_in = p->net_input_bytes,
                           .bytes_out = p->net_output_bytes};
}

void qn_frontend_wake(struct qn_frontend *fe)
{
    if (!qn_loop_stats_runs(&fe->loop_stats)) {
        qn_loop_stats_begin(&fe->loop_stats, qn_clock_now());
    }
}

void qn_frontend_run(struct qn_frontend *fe, qn_time_t now, uint64_t wall_ms)
{
    struct qn_driver *driver = qn_replica_driver(fe->o.replica);
    fe->turns++;
    qn_frontend_rates(fe, now);
    /* After the turn's last byte was received: whatever was acknowledged or
     * read before a request of this turn was sent lies at or below it. */
    qn_slot_t index =
        fe->o.linearizable ? qn_driver_read_view(driver).index : 0;
    qn_loop_stats_part(&fe->loop_stats, QN_LOOP_STATS_SOCKETS, now);
    fe->turn.again = qn_replica_turn(fe->o.replica, now, wall_ms);
    qn_loop_stats_part(&fe->loop_stats, QN_LOOP_STATS_APPLY, qn_clock_now());
    qn_frontend_completions(fe);
    inputs_run(fe, index);
    qn_driver_flush(driver, now);
    qn_frontend_completions(fe); /* a group of one decides in the flush */
    outputs_flush(fe);
    qn_turn_end(&fe->turn, reached(fe));
}

bool qn_frontend_again(const struct qn_frontend *fe)
{
    return fe->turn.again;
}

/* ---- open and close ------------------------------------------------------ */

struct qn_conn *qn_frontend_find(struct qn_frontend *fe, uint64_t id)
{
    for (struct qn_conn *c = fe->all; c != NULL; c = c->next) {
        if (c->id == id && !qn_conn_is_closed(c)) {
            return c;
        }
    }
    return NULL;
}

void qn_frontend_drain(struct qn_frontend *fe)
{
    QN_ASSERT(!fe->draining);
    fe->draining = true;
    for (struct qn_conn *c = fe->all; c != NULL; c = c->next) {
        if (!qn_conn_is_closed(c)) {
            qn_conn_drain(c);
        }
    }
}

bool qn_frontend_drained(const struct qn_frontend *fe)
{
    return fe->all == NULL;
}

void qn_frontend_configured(struct qn_frontend *fe)
{
    const struct qn_config *config = qn_replica_config(fe->o.replica);
    fe->limits.bulk_max = config->proto_max_bulk_len;
    fe->limits.args_max = config->max_args;
    fe->limits.buffer_max = config->client_query_buffer_limit;
    struct qn_session_env *env = &fe->turn.env;
    env->output_pause = config->client_output_pause;
    env->output_limit = config->client_output_limit;
    env->value_max = config->proto_max_bulk_len;
    env->key_max = config->max_key_len;
    for (struct qn_conn *c = fe->all; c != NULL; c = c->next) {
        qn_session_set_sending(env, &c->session, c->sending.len);
    }
}

int qn_frontend_init(struct qn_frontend *fe, const struct qn_frontend_opts *o)
{
    *fe = (struct qn_frontend){.o = *o, .next_id = 1};
    fe->rates.since = qn_clock_now();
    fe->random = fe->rates.since ^ o->self;
    qn_loop_stats_init(&fe->loop_stats, NULL);
    int err = qn_turn_init(&fe->turn, &qn_frontend_session_ops, fe, &fe->part);
    qn_frontend_configured(fe);
    return err;
}

/* What holds a connection that is closed: this turn's lists, and submissions
 * that are not complete. */
static void conns_release(struct qn_frontend *fe)
{
    struct qn_client_session *s = NULL;
    while ((s = qn_turn_release(&fe->turn)) != NULL) {
        qn_conn_free_if_done(qn_conn_of(s));
    }
}

void qn_frontend_close_all(struct qn_frontend *fe)
{
    for (struct qn_conn *c = fe->all; c != NULL; c = c->next) {
        qn_conn_close(c); /* it leaves the list later, in on_closed */
    }
}

uint64_t qn_frontend_give_up(struct qn_frontend *fe)
{
    uint64_t n = qn_in_flight_count(&fe->turn.env.in_flight);
    for (struct qn_conn *c = fe->all; c != NULL; c = c->next) {
        n += qn_conn_is_closed(c) ? 0 : qn_session_unanswered(&c->session);
    }
    qn_frontend_close_all(fe);
    return n;
}

void qn_frontend_fini(struct qn_frontend *fe)
{
    QN_ASSERT(fe->all == NULL);
    conns_release(fe);
    qn_turn_fini(&fe->turn);
    qn_intake_fini(&fe->intake);
    *fe = (struct qn_frontend){0};
}
