/*
 * What a session asks of the replica (kvs/replica) and of the server around the
 * front end (struct qn_frontend_ops).
 *
 * A read needs no memory but that of its reply, whose lack is in the buffer. So
 * the results of qn_cmd_run are not looked at here.
 */
#include "kvs/frontend/frontend_internal.h"

static bool is_local_write(void *ctx, const struct qn_cmd_call *call)
{
    const struct qn_frontend *fe = ctx;
    return fe->o.ops.takes(call);
}

static void run_local(void *ctx, struct qn_client_session *s,
                      struct qn_cmd_call *call)
{
    struct qn_frontend *fe = ctx;
    qn_time_t start = qn_cmd_latency_sample_start(&fe->clock);
    fe->o.ops.run_local(qn_conn_of(s), call);
    qn_cmd_latency_sample_stop(&fe->clock, call->cmd, start);
}

/* First the buckets, then the entries in them. */
static void prefetch(void *ctx, const struct qn_session_key *keys, uint32_t n)
{
    const struct qn_frontend *fe = ctx;
    const struct qn_store *store = qn_replica_store(fe->o.replica);
    uint64_t hash[QN_SESSION_AHEAD];
    for (uint32_t i = 0; i < n; i++) {
        hash[i] = qn_store_prefetch(store, keys[i].db, keys[i].key);
    }
    for (uint32_t i = 0; i < n; i++) {
        qn_store_prefetch_entry(store, hash[i]);
    }
}

static void run_read(void *ctx, struct qn_cmd_call *call)
{
    struct qn_frontend *fe = ctx;
    qn_time_t start = qn_cmd_latency_sample_start(&fe->clock);
    call->stamp_ms = qn_replica_stamp_ms(fe->o.replica);
    call->random = fe->random += 0x9e3779b97f4a7c15u;
    (void)qn_cmd_run(qn_replica_store(fe->o.replica), call);
    qn_cmd_latency_sample_stop(&fe->clock, call->cmd, start);
}

/* After the checks only lack of memory is left. */
static enum qn_submit outcome_of(int err)
{
    return err == QN_OK ? QN_SUBMIT_TAKEN : QN_SUBMIT_NO_MEMORY;
}

static enum qn_submit submit_write(void *ctx, const struct qn_cmd_call *call)
{
    struct qn_frontend *fe = ctx;
    struct qn_replica *r = fe->o.replica;
    if (qn_replica_unavailable(r) || qn_replica_writes_blocked(r)) {
        return QN_SUBMIT_UNAVAILABLE;
    }
    if (!qn_replica_can_submit(r)) {
        return QN_SUBMIT_NO_ROOM;
    }
    qn_time_t start = qn_cmd_latency_sample_start(&fe->clock);
    int err = qn_replica_submit_write(r, call);
    qn_cmd_latency_sample_stop(&fe->clock, call->cmd, start);
    return outcome_of(err);
}

/* By message no slot is known that a read must see, and apply cannot wait for
 * one (PROTOCOL.md 8.3): the session waits for its writes, and then asks. */
static enum qn_submit submit_read(void *ctx, const struct qn_cmd_call *call,
                                  qn_slot_t index)
{
    struct qn_frontend *fe = ctx;
    struct qn_replica *r = fe->o.replica;
    if (qn_driver_by_message(qn_replica_driver(r)) ||
        qn_replica_unavailable(r) || !qn_replica_can_submit(r)) {
        return QN_SUBMIT_NO_ROOM;
    }
    qn_time_t start = qn_cmd_latency_sample_start(&fe->clock);
    int err = qn_replica_submit_read(r, call, index);
    qn_cmd_latency_sample_stop(&fe->clock, call->cmd, start);
    return outcome_of(err);
}

static void wait_index(void *ctx, qn_slot_t index)
{
    const struct qn_frontend *fe = ctx;
    qn_driver_read_wanted(qn_replica_driver(fe->o.replica), index);
}

static bool can_submit(void *ctx)
{
    const struct qn_frontend *fe = ctx;
    return qn_replica_can_submit(fe->o.replica) ||
           qn_replica_unavailable(fe->o.replica) ||
           qn_replica_writes_blocked(fe->o.replica);
}

static const char *unavailable_reason(void *ctx)
{
    const struct qn_frontend *fe = ctx;
    return qn_replica_unavailable_reason(fe->o.replica);
}

static uint32_t tick(void *ctx)
{
    const struct qn_frontend *fe = ctx;
    return qn_replica_tick(fe->o.replica);
}

static bool timed_out(void *ctx, uint32_t since)
{
    const struct qn_frontend *fe = ctx;
    return qn_replica_timed_out(fe->o.replica, since);
}

const struct qn_session_ops qn_frontend_session_ops = {
    .is_local_write = is_local_write,
    .run_local = run_local,
    .prefetch = prefetch,
    .run_read = run_read,
    .submit_write = submit_write,
    .submit_read = submit_read,
    .wait_index = wait_index,
    .can_submit = can_submit,
    .unavailable_reason = unavailable_reason,
    .tick = tick,
    .timed_out = timed_out,
};
