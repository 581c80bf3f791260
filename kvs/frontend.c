/*
 * The front end: see frontend.h for the turn and the states.
 *
 * Input. A readable connection borrows a buffer from a pool for the turn; the
 * reader parses it in place, and only an unfinished request is kept. So ten
 * thousand idle connections hold no input memory.
 *
 * Order. Replies of a connection leave in the order of its requests. While a
 * connection has submissions pending, its reads are submitted too (marks), and
 * whatever cannot be submitted - local commands, errors - holds the connection
 * until the last completion has come. So there is no queue of replies per
 * connection: a reply is always appended to `out`.
 *
 * Linearizability. The index is loaded once per turn after the turn's last
 * byte was received. A held connection is not read, so all bytes it holds were
 * received before its index was loaded, and the same index serves them.
 *
 * Back-pressure. No room at the replica, or a peer that does not read its
 * replies: the connection is held and its socket not read; TCP does the rest.
 */
#include "kvs/frontend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/log.h"
#include "kvs/local.h"
#include "kvs/reply.h"

enum {
    INPUT_BYTES = 16384,   /* a pooled input buffer */
    OUT_KEEP_BYTES = 4096, /* an idle connection's output buffer */
    TIMED_OF = 64,         /* one request of so many is timed */
    FIFO_MAX = 16384,      /* submissions in flight, a power of two; as many
                              as the replica's ring */
};

struct qn_fifo_entry {
    struct qn_conn *conn;
    const struct qn_cmd *cmd;
    bool mute; /* CLIENT REPLY OFF or SKIP */
};

/* ---- this turn's lists --------------------------------------------------- */

static void ready_add(struct qn_conn *c)
{
    struct qn_frontend *fe = c->fe;
    if (!c->in_ready && !c->closed) {
        c->in_ready = true;
        c->ready_next = NULL;
        *fe->ready_end = c;
        fe->ready_end = &c->ready_next;
    }
}

static void dirty_add(struct qn_conn *c)
{
    if (!c->in_dirty && !c->closed) {
        c->in_dirty = true;
        c->dirty_next = c->fe->dirty;
        c->fe->dirty = c;
    }
}

/* ---- input buffers ------------------------------------------------------- */

static uint8_t *pool_get(struct qn_frontend *fe)
{
    if (fe->pool_count > 0) {
        return fe->pool[--fe->pool_count];
    }
    return malloc(INPUT_BYTES);
}

static void pool_put(struct qn_frontend *fe, uint8_t *buf)
{
    if (fe->pool_count == fe->pool_cap) {
        uint32_t cap = fe->pool_cap == 0 ? 64 : fe->pool_cap * 2;
        uint8_t **pool = realloc(fe->pool, cap * sizeof *pool);
        if (pool == NULL) {
            free(buf);
            return;
        }
        fe->pool = pool;
        fe->pool_cap = cap;
    }
    fe->pool[fe->pool_count++] = buf;
}

/* The turn's bytes become the reader's own; the pooled buffer goes back. */
static int input_settle(struct qn_conn *c)
{
    int err = qn_resp_settle(&c->in);
    if (c->input != NULL) {
        pool_put(c->fe, c->input);
        c->input = NULL;
        c->input_len = 0;
    }
    return err;
}

/* ---- life of a connection ------------------------------------------------ */

static void conn_free(struct qn_conn *c)
{
    qn_resp_free(&c->in);
    qn_buf_free(&c->out);
    qn_buf_free(&c->sending);
    qn_buf_free(&c->question);
    free(c->held_argv);
    free(c->name);
    free(c->lib_name);
    free(c->lib_ver);
    free(c);
}

static void conn_free_if_done(struct qn_conn *c)
{
    if (c->closed && c->pending == 0 && !c->in_ready && !c->in_dirty &&
        !c->waiting && c->fe == NULL) {
        conn_free(c);
    }
}

static void on_closed(uv_handle_t *h)
{
    struct qn_conn *c = h->data;
    struct qn_frontend *fe = c->fe;
    if (c->prev != NULL) {
        c->prev->next = c->next;
    } else {
        fe->all = c->next;
    }
    if (c->next != NULL) {
        c->next->prev = c->prev;
    }
    fe->clients--;
    fe->again |= fe->draining;
    c->fe = NULL;
    conn_free_if_done(c);
}

void qn_conn_close(struct qn_conn *c)
{
    if (c->closed) {
        return;
    }
    c->closed = true;
    c->hold = QN_HOLD_NONE;
    if (c->input != NULL) {
        pool_put(c->fe, c->input);
        c->input = NULL;
    }
    uv_close((uv_handle_t *)&c->uv, on_closed);
}

void qn_conn_close_after_reply(struct qn_conn *c)
{
    c->closing = true;
    dirty_add(c);
}

struct qn_conn *qn_frontend_find(struct qn_frontend *fe, uint64_t id)
{
    for (struct qn_conn *c = fe->all; c != NULL; c = c->next) {
        if (c->id == id && !c->closed) {
            return c;
        }
    }
    return NULL;
}

/* ---- writing ------------------------------------------------------------- */

static size_t conn_unsent(const struct qn_conn *c)
{
    return c->out.len + c->sending.len;
}

static void on_written(uv_write_t *req, int status)
{
    struct qn_conn *c = req->data;
    c->writing = false;
    qn_buf_free(&c->sending);
    if (c->closed) {
        return;
    }
    if (status < 0) {
        qn_conn_close(c);
        return;
    }
    dirty_add(c);
    c->fe->again = true;
    if (c->hold == QN_HOLD_OUTPUT) {
        ready_add(c);
    }
}

/* Hand what the socket did not take to libuv. */
static void conn_write_rest(struct qn_conn *c, size_t done)
{
    c->sending = c->out;
    c->out = (struct qn_buf){0};
    uv_buf_t b = uv_buf_init((char *)c->sending.data + done,
                             (unsigned)(c->sending.len - done));
    c->write_req.data = c;
    c->writing = true;
    if (uv_write(&c->write_req, &c->uv.stream, &b, 1, on_written) != 0) {
        c->writing = false;
        qn_conn_close(c);
    }
}

static void conn_flush(struct qn_conn *c)
{
    if (c->closed) {
        return;
    }
    if (c->out.oom) {
        qn_log(QN_LOG_WARN, "no memory for a reply: closing client %llu",
               (unsigned long long)c->id);
        qn_conn_close(c);
        return;
    }
    if (c->out.len > 0 && !c->writing) {
        uv_buf_t b = uv_buf_init((char *)c->out.data, (unsigned)c->out.len);
        int n = uv_try_write(&c->uv.stream, &b, 1);
        c->bytes_out += c->out.len;
        c->fe->part.net_output_bytes += c->out.len;
        if (n < 0 && n != UV_EAGAIN) {
            qn_conn_close(c);
            return;
        }
        if (n == (int)c->out.len) {
            c->out.len = 0;
            if (c->out.cap > OUT_KEEP_BYTES) {
                qn_buf_free(&c->out);
            }
            if (c->hold == QN_HOLD_OUTPUT) {
                ready_add(c);
                c->fe->again = true;
            }
        } else {
            conn_write_rest(c, n < 0 ? 0 : (size_t)n);
        }
    }
    if (c->closing && c->out.len == 0 && !c->writing && c->pending == 0 &&
        c->question.len == 0) {
        qn_conn_close(c);
    }
}

/* ---- reading ------------------------------------------------------------- */

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    struct qn_conn *c = h->data;
    *buf = uv_buf_init(NULL, 0);
    if (c->input != NULL) {
        /* A second read in one turn: keep the first one. */
        qn_resp_feed(&c->in, c->input, c->input_len);
        if (input_settle(c) != QN_OK) {
            return;
        }
    }
    if (qn_resp_holds(&c->in)) {
        size_t n = 0;
        uint8_t *room = qn_resp_room(&c->in, &n);
        if (room != NULL) {
            *buf = uv_buf_init((char *)room, (unsigned)QN_MIN(n, 1u << 30));
        }
        return;
    }
    c->input = pool_get(c->fe);
    c->input_len = 0;
    if (c->input != NULL) {
        *buf = uv_buf_init((char *)c->input, INPUT_BYTES);
    }
}

static void reading_set(struct qn_conn *c, bool on);

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    (void)buf;
    struct qn_conn *c = stream->data;
    struct qn_frontend *fe = c->fe;
    if (n > 0) {
        c->bytes_in += (uint64_t)n;
        fe->part.net_input_bytes += (uint64_t)n;
        if (c->input != NULL) {
            c->input_len = (size_t)n;
        } else {
            qn_resp_fed(&c->in, (size_t)n);
        }
        ready_add(c);
        return;
    }
    if (c->input != NULL && c->input_len == 0) {
        pool_put(fe, c->input);
        c->input = NULL;
    }
    if (n == 0) {
        return;
    }
    if (n == UV_ENOBUFS) {
        qn_log(QN_LOG_WARN,
               "client %llu: query buffer limit reached or out of memory",
               (unsigned long long)c->id);
    }
    if (n == UV_EOF) {
        /* The peer may still read: answer what it has sent, then close. */
        c->eof = true;
        reading_set(c, false);
        ready_add(c);
        return;
    }
    qn_conn_close(c);
}

static void reading_set(struct qn_conn *c, bool on)
{
    if (c->reading == on || c->closed) {
        return;
    }
    c->reading = on;
    if (on) {
        if (uv_read_start(&c->uv.stream, on_alloc, on_read) != 0) {
            qn_conn_close(c);
        }
    } else {
        uv_read_stop(&c->uv.stream);
    }
}

/* ---- requests ------------------------------------------------------------ */

/* Keep the request until what it waits for has come. */
static void conn_hold(struct qn_conn *c, enum qn_hold why, qn_slot_t index,
                      const struct qn_slice *argv, uint32_t argc)
{
    c->hold = why;
    c->index = index;
    c->held_argc = 0;
    if (argc == 0) {
        return;
    }
    size_t bytes = argc * sizeof *argv;
    for (uint32_t i = 0; i < argc; i++) {
        bytes += argv[i].len;
    }
    c->held_argv = malloc(bytes);
    if (c->held_argv == NULL) {
        c->out.oom = true;
        dirty_add(c);
        return;
    }
    uint8_t *to = (uint8_t *)(c->held_argv + argc);
    for (uint32_t i = 0; i < argc; i++) {
        if (argv[i].len != 0) {
            memcpy(to, argv[i].data, argv[i].len);
        }
        c->held_argv[i] = (struct qn_slice){to, argv[i].len};
        to += argv[i].len;
    }
    c->held_argc = argc;
}

static void fifo_push(struct qn_conn *c, const struct qn_cmd *cmd)
{
    struct qn_frontend *fe = c->fe;
    QN_ASSERT(fe->fifo_tail - fe->fifo_head < FIFO_MAX);
    fe->fifo[fe->fifo_tail++ & (FIFO_MAX - 1)] = (struct qn_fifo_entry){
        .conn = c,
        .cmd = cmd,
        .mute = c->reply_off || c->reply_skip,
    };
    c->pending++;
}

static struct qn_buf *conn_reply(struct qn_conn *c)
{
    dirty_add(c); /* also when muted: CLIENT REPLY ON answers itself */
    if (c->reply_off || c->reply_skip) {
        c->fe->scratch.len = 0;
        return &c->fe->scratch;
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
static void reply_note(struct qn_frontend *fe, const struct qn_cmd *cmd,
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

static struct qn_slice reply_from(const struct qn_buf *b, size_t start)
{
    return b->oom ? (struct qn_slice){0}
                  : (struct qn_slice){b->data + start, b->len - start};
}

static void run_write(struct qn_conn *c, struct qn_cmd_call *call)
{
    int err = qn_replica_write(c->fe->o.replica, call);
    if (err == QN_OK) {
        fifo_push(c, call->cmd);
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
    if (c->pending > 0) {
        if (qn_replica_mark(fe->o.replica, call, index) == QN_OK) {
            fifo_push(c, call->cmd);
        } else {
            qn_conn_close(c);
        }
        return;
    }
    if (qn_replica_applied(fe->o.replica) < index) {
        conn_hold(c, QN_HOLD_INDEX, index, call->argv, call->argc);
        return;
    }
    call->reply = conn_reply(c);
    size_t start = call->reply->len;
    call->stamp_ms = qn_replica_stamp_ms(fe->o.replica);
    call->random = fe->random += 0x9e3779b97f4a7c15u;
    /* A read needs no memory but the reply's, whose lack is in the buffer. */
    (void)qn_cmd_run(qn_replica_store(fe->o.replica), call);
    reply_note(fe, call->cmd, reply_from(call->reply, start));
}

/* What answers without the log and the store: in order behind what is
 * pending, so the connection is held while anything is. `error` is the reply
 * to a request that is no command. */
static void run_here(struct qn_conn *c, struct qn_cmd_call *call,
                     struct qn_slice error)
{
    if (c->pending > 0) {
        conn_hold(c, QN_HOLD_BEHIND, 0, call->argv, call->argc);
        return;
    }
    call->reply = conn_reply(c);
    size_t start = call->reply->len;
    c->answer_at = SIZE_MAX;
    c->answer_mute = c->reply_off || c->reply_skip;
    if (call->cmd == NULL) {
        qn_buf_append(call->reply, error.data, error.len);
    } else if (call->cmd->where == QN_CMD_WRITE ||
               call->cmd->where == QN_CMD_READ) {
        qn_reply_error(call->reply,
                       "LOADING Redis is loading the dataset in memory");
    } else {
        qn_local_run(c, call);
    }
    if (c->answer_at == SIZE_MAX && call->reply->len > start) {
        reply_note(c->fe, call->cmd, reply_from(call->reply, start));
    }
}

static void request_done(struct qn_conn *c, const struct qn_cmd *cmd)
{
    if (c->hold != QN_HOLD_NONE && c->hold != QN_HOLD_ANSWER) {
        return; /* it will be run again */
    }
    c->commands++;
    c->fe->part.commands_processed++;
    if (cmd != NULL) {
        c->last_cmd = cmd;
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
    bool loaded = qn_replica_store(fe->o.replica) != NULL;
    bool timed = fe->part.commands_processed % TIMED_OF == TIMED_OF - 1;
    qn_time_t start = timed ? qn_clock_now() : 0;
    if (call.cmd != NULL && call.cmd->where == QN_CMD_WRITE && loaded) {
        run_write(c, &call);
    } else if (call.cmd != NULL && call.cmd->where == QN_CMD_READ && loaded) {
        run_read(c, &call, index);
    } else {
        run_here(c, &call, (struct qn_slice){fe->error.data, fe->error.len});
    }
    if (timed && call.cmd != NULL) {
        fe->part.cmd[qn_cmd_index(call.cmd)].usec +=
            (qn_clock_now() - start) * TIMED_OF / QN_US;
    }
    request_done(c, call.cmd);
}

/* Is what the connection waited for there? */
static bool hold_over(struct qn_conn *c)
{
    struct qn_frontend *fe = c->fe;
    switch (c->hold) {
    case QN_HOLD_NONE:
        return true;
    case QN_HOLD_BEHIND:
        return c->pending == 0;
    case QN_HOLD_INDEX:
        return qn_replica_applied(fe->o.replica) >= c->index;
    case QN_HOLD_ROOM:
        return qn_replica_room(fe->o.replica);
    case QN_HOLD_OUTPUT:
        return conn_unsent(c) <=
               qn_replica_config(fe->o.replica)->client_output_pause / 2;
    case QN_HOLD_ANSWER:
        return false;
    }
    return false;
}

static void input_error(struct qn_conn *c, int err)
{
    if (err == QN_EINVAL) {
        if (c->pending > 0) {
            /* The error comes behind the replies; the reader's is sticky. */
            conn_hold(c, QN_HOLD_BEHIND, 0, NULL, 0);
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

/* Run the requests of one connection until it holds or needs more bytes. */
static void input_run(struct qn_conn *c, qn_slot_t index)
{
    struct qn_frontend *fe = c->fe;
    const struct qn_config *config = qn_replica_config(fe->o.replica);
    if (c->hold != QN_HOLD_NONE) {
        bool same_index = c->hold == QN_HOLD_INDEX;
        c->hold = QN_HOLD_NONE;
        index = same_index ? c->index : index;
        if (c->held_argc > 0) {
            struct qn_slice *argv = c->held_argv;
            c->held_argv = NULL;
            uint32_t argc = c->held_argc;
            c->held_argc = 0;
            request_run(c, argv, argc, index);
            free(argv);
        }
    }
    if (c->input != NULL) {
        qn_resp_feed(&c->in, c->input, c->input_len);
    }
    while (c->hold == QN_HOLD_NONE && !c->closing && !c->closed) {
        if (!qn_replica_room(fe->o.replica)) {
            conn_hold(c, QN_HOLD_ROOM, 0, NULL, 0);
            break;
        }
        if (conn_unsent(c) > config->client_output_pause) {
            conn_hold(c, QN_HOLD_OUTPUT, 0, NULL, 0);
            break;
        }
        struct qn_resp_req req;
        int err = qn_resp_next(&c->in, &req);
        if (err != QN_OK) {
            input_error(c, err);
            break;
        }
        request_run(c, req.argv, req.argc, index);
    }
    if (c->closed) {
        return;
    }
    if (input_settle(c) != QN_OK) {
        qn_conn_close(c);
        return;
    }
    if (c->eof && c->hold == QN_HOLD_NONE) {
        qn_conn_close_after_reply(c);
    }
    reading_set(c, c->hold == QN_HOLD_NONE && !c->closing && !c->eof);
}

/* ---- a turn -------------------------------------------------------------- */

static void completions_take(struct qn_frontend *fe)
{
    struct qn_slice reply;
    qn_slot_t applied = qn_replica_applied(fe->o.replica);
    while (qn_replica_take(fe->o.replica, &reply)) {
        /* The founder's own first command belongs to no connection. */
        if (fe->fifo_head == fe->fifo_tail) {
            continue;
        }
        struct qn_fifo_entry *e = &fe->fifo[fe->fifo_head & (FIFO_MAX - 1)];
        fe->fifo_head++;
        struct qn_conn *c = e->conn;
        c->pending--;
        reply_note(fe, e->cmd, reply);
        if (c->closed) {
            conn_free_if_done(c);
            continue;
        }
        if (!e->mute) {
            qn_buf_append(&c->out, reply.data, reply.len);
        }
        if (e->cmd->where == QN_CMD_WRITE) {
            c->last_write = applied;
        }
        dirty_add(c);
        if (c->pending == 0 && c->hold == QN_HOLD_BEHIND) {
            ready_add(c);
        }
    }
}

static void inputs_run(struct qn_frontend *fe, qn_slot_t index)
{
    struct qn_conn *list = fe->ready;
    fe->ready = NULL;
    fe->ready_end = &fe->ready;
    while (list != NULL) {
        struct qn_conn *c = list;
        list = c->ready_next;
        c->in_ready = false;
        if (c->closed) {
            conn_free_if_done(c);
            continue;
        }
        if (hold_over(c)) {
            c->active_ms = uv_now(fe->o.loop);
            input_run(c, index);
        }
        if (c->hold == QN_HOLD_INDEX || c->hold == QN_HOLD_ROOM) {
            ready_add(c); /* look again next turn */
        }
    }
}

static void outputs_flush(struct qn_frontend *fe)
{
    struct qn_conn *list = fe->dirty;
    fe->dirty = NULL;
    while (list != NULL) {
        struct qn_conn *c = list;
        list = c->dirty_next;
        c->in_dirty = false;
        if (c->closed) {
            conn_free_if_done(c);
        } else {
            conn_flush(c);
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

void qn_frontend_run(struct qn_frontend *fe, qn_time_t now, uint64_t wall_ms)
{
    fe->turns++;
    fe->again = false;
    qn_frontend_rates(fe, now);
    /* After the turn's last byte was received: whatever was acknowledged or
     * read before a request of this turn was sent lies at or below it. */
    qn_slot_t index =
        fe->o.linearizable
            ? qn_driver_read_index(qn_replica_driver(fe->o.replica))
            : 0;
    qn_replica_turn(fe->o.replica, now, wall_ms);
    completions_take(fe);
    inputs_run(fe, index);
    qn_driver_flush(qn_replica_driver(fe->o.replica), now);
    completions_take(fe); /* a group of one decides in the flush */
    outputs_flush(fe);
    /* The flush may have made room, or completed what a request stands behind;
     * nobody rings for that. */
    for (struct qn_conn *c = fe->ready; c != NULL && !fe->again;
         c = c->ready_next) {
        fe->again = hold_over(c);
    }
}

bool qn_frontend_again(const struct qn_frontend *fe)
{
    return fe->again;
}

/* ---- accepting ----------------------------------------------------------- */

static void name_of(const struct sockaddr *sa, char *out, size_t size)
{
    char ip[48] = "?";
    unsigned port = 0;
    bool v6 = sa->sa_family == AF_INET6;
    if (v6) {
        const struct sockaddr_in6 *in6 = (const void *)sa;
        uv_ip6_name(in6, ip, sizeof ip);
        port = ntohs(in6->sin6_port);
    } else if (sa->sa_family == AF_INET) {
        const struct sockaddr_in *in4 = (const void *)sa;
        uv_ip4_name(in4, ip, sizeof ip);
        port = ntohs(in4->sin_port);
    }
    snprintf(out, size, v6 ? "[%s]:%u" : "%s:%u", ip, port);
}

static void conn_names(struct qn_conn *c, bool is_unix)
{
    if (is_unix) {
        snprintf(c->addr, sizeof c->addr, "unix:0");
        snprintf(c->laddr, sizeof c->laddr, "unix:0");
        return;
    }
    struct sockaddr_storage sa;
    int len = sizeof sa;
    if (uv_tcp_getpeername(&c->uv.tcp, (struct sockaddr *)&sa, &len) == 0) {
        name_of((struct sockaddr *)&sa, c->addr, sizeof c->addr);
    }
    len = sizeof sa;
    if (uv_tcp_getsockname(&c->uv.tcp, (struct sockaddr *)&sa, &len) == 0) {
        name_of((struct sockaddr *)&sa, c->laddr, sizeof c->laddr);
    }
}

static void conn_link(struct qn_frontend *fe, struct qn_conn *c)
{
    c->next = fe->all;
    if (fe->all != NULL) {
        fe->all->prev = c;
    }
    fe->all = c;
    fe->clients++;
}

void qn_frontend_accept(struct qn_frontend *fe, uv_stream_t *listener,
                        bool is_unix)
{
    struct qn_conn *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return; /* libuv keeps the connection until the next call */
    }
    c->fe = fe;
    c->proto = 2;
    c->uv.stream.data = c;
    if (is_unix) {
        uv_pipe_init(fe->o.loop, &c->uv.pipe, 0);
    } else {
        uv_tcp_init(fe->o.loop, &c->uv.tcp);
    }
    c->id = fe->next_id++ * QN_NODES_MAX + fe->o.self;
    c->since_ms = c->active_ms = uv_now(fe->o.loop);
    qn_resp_init(&c->in, &fe->limits);
    conn_link(fe, c);
    if (uv_accept(listener, &c->uv.stream) != 0) {
        qn_conn_close(c);
        return;
    }
    fe->part.connections_received++;
    if (fe->clients > fe->clients_max) {
        fe->part.rejected_connections++;
        qn_reply_error(&c->out, "ERR max number of clients reached");
        qn_conn_close_after_reply(c);
        return;
    }
    if (!is_unix) {
        uv_tcp_nodelay(&c->uv.tcp, 1);
        uint32_t keep = qn_replica_config(fe->o.replica)->tcp_keepalive;
        uv_tcp_keepalive(&c->uv.tcp, keep != 0, keep);
    }
    conn_names(c, is_unix);
    reading_set(c, true);
}

struct qn_buf *qn_conn_answer(struct qn_conn *c)
{
    struct qn_buf *b = &c->out;
    if (c->answer_mute) {
        b = &c->fe->scratch;
        b->len = 0;
    }
    c->answer_at = b->len;
    return b;
}

void qn_conn_answered(struct qn_conn *c)
{
    if (c->closed) {
        conn_free_if_done(c);
        return;
    }
    QN_ASSERT(c->hold == QN_HOLD_ANSWER);
    struct qn_frontend *fe = c->fe;
    const struct qn_buf *b = c->answer_mute ? &fe->scratch : &c->out;
    reply_note(fe, c->last_cmd, reply_from(b, c->answer_at));
    c->hold = QN_HOLD_NONE;
    fe->again = true;
    dirty_add(c);
    ready_add(c);
}

void qn_frontend_drain(struct qn_frontend *fe)
{
    fe->draining = true;
    for (struct qn_conn *c = fe->all; c != NULL; c = c->next) {
        if (!c->closed) {
            reading_set(c, false);
            qn_conn_close_after_reply(c);
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
    fe->clients_max = (config->maxclients + fe->o.nodes - 1) / fe->o.nodes;
    fe->limits.bulk_max = config->proto_max_bulk_len;
    fe->limits.args_max = config->max_args;
    fe->limits.buffer_max = config->client_query_buffer_limit;
}

int qn_frontend_init(struct qn_frontend *fe, const struct qn_frontend_opts *o)
{
    *fe = (struct qn_frontend){.o = *o, .next_id = 1};
    fe->ready_end = &fe->ready;
    fe->rates.since = qn_clock_now();
    fe->random = fe->rates.since ^ o->self;
    qn_frontend_configured(fe);
    fe->fifo = calloc(FIFO_MAX, sizeof *fe->fifo);
    return fe->fifo != NULL ? QN_OK : QN_ENOMEM;
}

/* What holds a connection that is closed: this turn's lists, and submissions
 * that are not complete. */
static void conns_release(struct qn_frontend *fe)
{
    for (struct qn_conn *c = fe->ready, *next; c != NULL; c = next) {
        next = c->ready_next;
        c->in_ready = false;
        conn_free_if_done(c);
    }
    for (struct qn_conn *c = fe->dirty, *next; c != NULL; c = next) {
        next = c->dirty_next;
        c->in_dirty = false;
        conn_free_if_done(c);
    }
    for (; fe->fifo_head != fe->fifo_tail; fe->fifo_head++) {
        struct qn_conn *c = fe->fifo[fe->fifo_head & (FIFO_MAX - 1)].conn;
        c->pending--;
        conn_free_if_done(c);
    }
}

void qn_frontend_close_all(struct qn_frontend *fe)
{
    for (struct qn_conn *c = fe->all; c != NULL; c = c->next) {
        qn_conn_close(c); /* it leaves the list later, in on_closed */
    }
}

void qn_frontend_fini(struct qn_frontend *fe)
{
    QN_ASSERT(fe->all == NULL);
    conns_release(fe);
    for (uint32_t i = 0; i < fe->pool_count; i++) {
        free(fe->pool[i]);
    }
    free(fe->pool);
    free(fe->fifo);
    qn_buf_free(&fe->scratch);
    qn_buf_free(&fe->error);
    *fe = (struct qn_frontend){0};
}
