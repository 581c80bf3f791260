/*
 * Requests: what a connection has read, run one by one until it is held or
 * needs more bytes.
 *
 * Order. Replies of a connection leave in the order of its requests. While a
 * connection has submissions pending, its reads are submitted too (marks), and
 * whatever cannot be submitted - local commands, errors - holds the connection
 * until the last completion has come. So there is no queue of replies per
 * connection: a reply is always appended to `out`.
 *
 * Room. Only what is to be submitted waits for room at the replica: a write
 * does, and holds its connection; a read with nothing pending, PING or INFO is
 * answered whatever the others' writes wait for. A read behind writes of its
 * own connection waits for those.
 *
 * Linearizability. A held connection is not read, so all bytes it holds were
 * received before the index that its request waits for was loaded, and the
 * same index serves them. They are as old as that request, too: when it is
 * overdue, so are they, until the index is reached or bytes are read again.
 */
#include "core/base/assert.h"
#include "core/base/log.h"
#include "kvs/frontend/frontend_internal.h"
#include "kvs/resp/reply.h"

enum {
    ARGS_OF_WORK = 4,     /* as much work as a small request */
    BYTES_OF_WORK = 4096, /* likewise, of a reply */
    MARKS_OF_ONE = 128,   /* of one connection: all are answered in one turn */
};

/* ---- replies ------------------------------------------------------------- */

static struct qn_buf *conn_reply(struct qn_conn *c)
{
    qn_frontend_dirty(c); /* also when muted: CLIENT REPLY ON answers itself */
    if (c->reply_off || c->reply_skip) {
        return qn_frontend_scratch(c->fe);
    }
    return &c->out;
}

static bool is_null(struct qn_slice reply)
{
    return reply.data[0] == '_' ||
           (reply.len >= 3 && reply.data[0] == '$' && reply.data[1] == '-');
}

/* Count what a reply says: errors; hits and misses of reads of one key. `cmd`
 * is NULL for a request that is no command. */
void qn_request_note(struct qn_frontend *fe, const struct qn_cmd *cmd,
                     struct qn_slice reply)
{
    if (reply.len == 0) {
        return;
    }
    if (reply.data[0] == '-') {
        qn_info_count_error(&fe->part, reply.data, reply.len);
        if (cmd != NULL) {
            fe->part.cmd[qn_cmd_index(cmd)].failed++;
        }
    } else if (cmd != NULL && cmd->where == QN_CMD_READ &&
               cmd->key_first == 1 && cmd->key_last == 1) {
        if (is_null(reply)) {
            fe->part.keyspace_misses++;
        } else {
            fe->part.keyspace_hits++;
        }
    }
}

/* ---- one request --------------------------------------------------------- */

/* It cannot be run yet: it is the next one again, when what it waits for has
 * come. */
static void put_back(struct qn_conn *c, enum qn_hold why, qn_slot_t index)
{
    qn_resp_put_back(&c->in);
    qn_conn_hold(c, why, index);
}

/* What is not executed: `error` is the reply. Counted as Redis does, for the
 * command that was named, and not among its calls. */
static void reject(struct qn_conn *c, const struct qn_slice *argv,
                   uint32_t argc, struct qn_slice error)
{
    if (c->pending > 0) {
        put_back(c, QN_HOLD_BEHIND, 0);
        return;
    }
    const struct qn_cmd *named = qn_cmd_named(argv, argc);
    if (named != NULL) {
        c->fe->part.cmd[qn_cmd_index(named)].rejected++;
    }
    qn_buf_append(conn_reply(c), error.data, error.len);
    qn_request_note(c->fe, NULL, error);
}

/* The group decides nothing, or nothing that is heard here: nothing is started.
 */
static void run_refused(struct qn_conn *c, const struct qn_cmd_call *call)
{
    struct qn_buf *error = &c->fe->error;
    error->len = 0;
    qn_reply_error(error, "%s",
                   qn_replica_unavailable_reason(c->fe->o.replica));
    reject(c, call->argv, call->argc,
           (struct qn_slice){error->data, error->len});
}

static void run_write(struct qn_conn *c, struct qn_cmd_call *call)
{
    if (qn_replica_unavailable(c->fe->o.replica) ||
        qn_replica_writes_blocked(c->fe->o.replica)) {
        run_refused(c, call);
        return;
    }
    if (!qn_replica_can_submit(c->fe->o.replica)) {
        put_back(c, QN_HOLD_ROOM, 0);
        return;
    }
    int err = qn_replica_submit_write(c->fe->o.replica, call);
    if (err == QN_OK) {
        qn_frontend_expect(c, call->cmd);
    } else {
        /* Only lack of memory is left: nothing was started. */
        qn_log(QN_LOG_WARN, "a write was not taken: %s", qn_strerror(err));
        qn_conn_close(c);
    }
}

static void run_read(struct qn_conn *c, struct qn_cmd_call *call,
                     qn_slot_t index)
{
    struct qn_frontend *fe = c->fe;
    if (c->pending > 0 &&
        (qn_replica_unavailable(fe->o.replica) || c->marks == MARKS_OF_ONE ||
         !qn_replica_can_submit(fe->o.replica))) {
        put_back(c, QN_HOLD_BEHIND, 0);
        return;
    }
    if (c->pending > 0) {
        if (qn_replica_submit_read(fe->o.replica, call, index) == QN_OK) {
            qn_frontend_expect(c, call->cmd);
        } else {
            qn_conn_close(c);
        }
        return;
    }
    if (qn_replica_applied(fe->o.replica) < index && c->overdue) {
        run_refused(c, call);
        return;
    }
    if (qn_replica_applied(fe->o.replica) < index) {
        put_back(c, QN_HOLD_INDEX, index);
        return;
    }
    c->overdue = false;
    call->reply = conn_reply(c);
    size_t start = call->reply->len;
    call->stamp_ms = qn_replica_stamp_ms(fe->o.replica);
    call->random = fe->random += 0x9e3779b97f4a7c15u;
    /* A read needs no memory but the reply's, whose lack is in the buffer. */
    (void)qn_cmd_run(qn_replica_store(fe->o.replica), call);
    qn_request_note(fe, call->cmd, qn_request_reply(call->reply, start));
}

/* What answers without the log and the store: in order behind what is
 * pending, so the connection is held while anything is. */
static void run_here(struct qn_conn *c, struct qn_cmd_call *call)
{
    if (c->pending > 0) {
        put_back(c, QN_HOLD_BEHIND, 0);
        return;
    }
    call->reply = conn_reply(c);
    size_t start = call->reply->len;
    c->answer_at = SIZE_MAX;
    c->answer_mute = c->reply_off || c->reply_skip;
    c->fe->o.ops.run_local(c, call);
    if (c->answer_at == SIZE_MAX && call->reply->len > start) {
        qn_request_note(c->fe, call->cmd, qn_request_reply(call->reply, start));
    }
}

static void execute(struct qn_conn *c, struct qn_cmd_call *call, bool here,
                    qn_slot_t index)
{
    struct qn_cmd_latency_sample *clock = &c->fe->clock;
    qn_time_t start = qn_cmd_latency_sample_start(clock);
    if (here) {
        run_here(c, call);
    } else if (call->cmd->where == QN_CMD_WRITE) {
        run_write(c, call);
    } else {
        run_read(c, call, index);
    }
    qn_cmd_latency_sample_stop(clock, call->cmd, start);
}

static void request_done(struct qn_conn *c, const struct qn_cmd *cmd)
{
    if (c->hold != QN_HOLD_NONE && c->hold != QN_HOLD_ANSWER) {
        return; /* it was put back */
    }
    c->commands++;
    if (cmd != NULL) {
        c->last_cmd = cmd;
        c->fe->part.commands_processed++;
        c->fe->part.cmd[qn_cmd_index(cmd)].calls++;
    }
    c->reply_skip = c->reply_skip_next;
    c->reply_skip_next = false;
}

static void request_run(struct qn_conn *c, const struct qn_slice *argv,
                        uint32_t argc, qn_slot_t index)
{
    struct qn_frontend *fe = c->fe;
    const struct qn_config *config = qn_replica_config(fe->o.replica);
    fe->error.len = 0;
    struct qn_cmd_call call = {
        .cmd = qn_cmd_resolve(argv, argc, &fe->error),
        .argv = argv,
        .argc = argc,
        .db = c->db,
        .proto = c->proto,
        .value_max = config->proto_max_bulk_len,
        .key_max = config->max_key_len,
    };
    bool here = call.cmd != NULL && fe->o.ops.takes(&call);
    if (call.cmd != NULL && !here && qn_replica_store(fe->o.replica) == NULL) {
        qn_reply_error(&fe->error,
                       "LOADING Redis is loading the dataset in memory");
        call.cmd = NULL;
    }
    if (call.cmd == NULL) {
        reject(c, argv, argc, (struct qn_slice){fe->error.data, fe->error.len});
    } else {
        execute(c, &call, here, index);
    }
    request_done(c, call.cmd);
}

/* ---- all that a connection has ------------------------------------------- */

static void input_error(struct qn_conn *c, int err)
{
    if (err == QN_EINVAL) {
        if (c->pending > 0) {
            /* The error comes behind the replies; the reader's is sticky. */
            qn_conn_hold(c, QN_HOLD_BEHIND, 0);
            return;
        }
        qn_reply_error(conn_reply(c), "%s", qn_resp_error(&c->in));
        qn_conn_close_after_reply(c);
        return;
    }
    if (err == QN_EPERM) {
        qn_log(QN_LOG_WARN,
               "possible cross-protocol attack: POST or Host: from %s",
               c->addr);
    } else if (err != QN_EAGAIN) {
        qn_log(QN_LOG_WARN, "client %llu: %s", (unsigned long long)c->id,
               qn_strerror(err));
    }
    if (err != QN_EAGAIN) {
        qn_conn_close(c);
    }
}

/* In units of a small request. */
static int64_t work_of(uint32_t argc, size_t reply_bytes)
{
    return 1 + argc / ARGS_OF_WORK + (int64_t)(reply_bytes / BYTES_OF_WORK);
}

/* Run the requests of one connection until it holds or needs more bytes. */
void qn_request_run_all(struct qn_conn *c, qn_slot_t index)
{
    struct qn_frontend *fe = c->fe;
    const struct qn_config *config = qn_replica_config(fe->o.replica);
    if (c->hold != QN_HOLD_NONE) {
        index = c->hold == QN_HOLD_INDEX ? c->index : index;
        c->hold = QN_HOLD_NONE;
    }
    while (c->hold == QN_HOLD_NONE && !c->closing && !c->closed) {
        if (fe->requests_left <= 0) {
            qn_conn_hold(c, QN_HOLD_TURN, 0);
            break;
        }
        if (qn_conn_unsent(c) > config->client_output_pause) {
            c->overdue = false; /* from here on it is the peer's time */
            qn_conn_hold(c, QN_HOLD_OUTPUT, 0);
            break;
        }
        struct qn_resp_req req;
        int err = qn_resp_next(&c->in, &req);
        if (err != QN_OK) {
            c->overdue = false;
            input_error(c, err);
            break;
        }
        size_t before = c->out.len;
        request_run(c, req.argv, req.argc, index);
        fe->requests_left -= work_of(req.argc, c->out.len - before);
    }
    if (c->closed) {
        return;
    }
    if (qn_conn_settle(c) != QN_OK) {
        qn_conn_close(c);
        return;
    }
    if (c->eof && c->hold == QN_HOLD_NONE) {
        qn_conn_close_after_reply(c);
    }
    qn_conn_reading(c, c->hold == QN_HOLD_NONE && !c->closing && !c->eof);
}

/* ---- late replies -------------------------------------------------------- */

struct qn_buf *qn_conn_answer(struct qn_conn *c)
{
    struct qn_buf *b = &c->out;
    if (c->answer_mute) {
        b = qn_frontend_scratch(c->fe);
    }
    c->answer_at = b->len;
    return b;
}

void qn_conn_answered(struct qn_conn *c)
{
    if (c->closed) {
        qn_conn_free_if_done(c);
        return;
    }
    QN_ASSERT(c->hold == QN_HOLD_ANSWER);
    struct qn_frontend *fe = c->fe;
    const struct qn_buf *b = c->answer_mute ? &fe->scratch : &c->out;
    qn_request_note(fe, c->last_cmd, qn_request_reply(b, c->answer_at));
    c->hold = QN_HOLD_NONE;
    fe->again = true;
    qn_frontend_dirty(c);
    qn_frontend_ready(c);
}
