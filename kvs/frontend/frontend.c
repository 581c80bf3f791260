/*
 * The front end's turn, its lists and completions, and accepting: see
 * frontend.h. A connection by itself is in conn.c, its requests in request.c.
 *
 * Lists. A connection is `ready` when it may have a request to run, `dirty`
 * when it may have something to write or to close; each turn takes both lists
 * as they are and looks again at what is put there meanwhile in the next one.
 * What a turn may do is bounded (QN_TURN_*): the rest of a list stays in front.
 *
 * Completions. The replica completes in the order of submission, so a ring of
 * connections says whose each one is.
 *
 * Linearizability. The index is loaded once per turn after the turn's last
 * byte was received.
 */
#include "kvs/frontend/frontend.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "kvs/frontend/admit.h"
#include "kvs/frontend/frontend_internal.h"
#include "kvs/resp/reply.h"

enum {
    FIFO_MAX = 16384, /* submissions in flight, a power of two; as many as the
                         replica's ring */
    SCRATCH_KEEP = 65536, /* bytes */
};

struct qn_fifo_entry {
    struct qn_conn *conn;
    const struct qn_cmd *cmd;
    bool mute; /* CLIENT REPLY OFF or SKIP */
};

/* ---- this turn's lists --------------------------------------------------- */

void qn_frontend_ready(struct qn_conn *c)
{
    struct qn_frontend *fe = c->fe;
    if (!c->in_ready && !c->closed) {
        c->in_ready = true;
        c->ready_next = NULL;
        *fe->ready_end = c;
        fe->ready_end = &c->ready_next;
    }
}

void qn_frontend_dirty(struct qn_conn *c)
{
    if (!c->in_dirty && !c->closed) {
        c->in_dirty = true;
        c->dirty_next = NULL;
        *c->fe->dirty_end = c;
        c->fe->dirty_end = &c->dirty_next;
    }
}

/* ---- completions --------------------------------------------------------- */

void qn_frontend_expect(struct qn_conn *c, const struct qn_cmd *cmd)
{
    struct qn_frontend *fe = c->fe;
    QN_ASSERT(fe->fifo_tail - fe->fifo_head < FIFO_MAX);
    fe->fifo[fe->fifo_tail++ & (FIFO_MAX - 1)] = (struct qn_fifo_entry){
        .conn = c,
        .cmd = cmd,
        .mute = c->reply_off || c->reply_skip,
    };
    c->pending++;
    c->marks += cmd->where == QN_CMD_READ;
}

/* False: there is none. The founder's own first command belongs to no
 * connection. */
static bool fifo_pop(struct qn_frontend *fe, struct qn_fifo_entry *e)
{
    if (fe->fifo_head == fe->fifo_tail) {
        return false;
    }
    *e = fe->fifo[fe->fifo_head++ & (FIFO_MAX - 1)];
    return true;
}

/* Its reply is among those of the connection. */
static void complete(struct qn_frontend *fe, const struct qn_fifo_entry *e)
{
    struct qn_conn *c = e->conn;
    c->pending--;
    c->marks -= e->cmd->where == QN_CMD_READ;
    if (c->closed) {
        qn_conn_free_if_done(c);
        return;
    }
    if (e->cmd->where == QN_CMD_WRITE) {
        c->last_write = qn_replica_last_own(fe->o.replica);
    }
    qn_frontend_dirty(c);
    if (c->pending == 0 && c->hold == QN_HOLD_BEHIND) {
        qn_frontend_ready(c);
    }
}

void qn_frontend_completions(struct qn_frontend *fe)
{
    struct qn_slice reply;
    struct qn_fifo_entry e;
    while (qn_replica_next_completion(fe->o.replica, &reply)) {
        if (!fifo_pop(fe, &e)) {
            continue;
        }
        qn_request_note(fe, e.cmd, reply);
        if (reply.len == 0) {
            qn_conn_drop(e.conn, "no memory for a reply");
        } else if (!e.conn->closed && !e.mute) {
            qn_buf_append(&e.conn->out, reply.data, reply.len);
        }
        complete(fe, &e);
    }
}

void qn_frontend_mark(struct qn_frontend *fe, struct qn_store *store,
                      struct qn_cmd_call *call)
{
    struct qn_fifo_entry e;
    qn_frontend_completions(fe);
    bool found = fifo_pop(fe, &e);
    QN_ASSERT(found && e.cmd == call->cmd);
    call->reply =
        e.conn->closed || e.mute ? qn_frontend_scratch(fe) : &e.conn->out;
    size_t start = call->reply->len;
    (void)qn_cmd_run(store, call); /* a read: only the reply needs memory */
    qn_request_note(fe, e.cmd, qn_request_reply(call->reply, start));
    complete(fe, &e);
}

struct qn_buf *qn_frontend_scratch(struct qn_frontend *fe)
{
    struct qn_buf *b = &fe->scratch;
    if (b->cap > SCRATCH_KEEP) {
        qn_buf_free(b);
    }
    b->max = qn_replica_config(fe->o.replica)->client_output_limit;
    b->len = 0;
    b->oom = b->full = false;
    return b;
}

/* ---- a turn -------------------------------------------------------------- */

static void inputs_run(struct qn_frontend *fe, qn_slot_t index)
{
    struct qn_conn *list = fe->ready;
    struct qn_conn **list_end = list != NULL ? fe->ready_end : &list;
    fe->ready = NULL;
    fe->ready_end = &fe->ready;
    while (list != NULL && fe->requests_left > 0) {
        struct qn_conn *c = list;
        list = c->ready_next;
        c->in_ready = false;
        if (c->closed) {
            qn_conn_free_if_done(c);
            continue;
        }
        if (c->hold == QN_HOLD_INDEX) {
            /* A later index will do as well; the former may have been garbage
             * that nobody could tell (qn_driver_read_index). */
            c->index = QN_MIN(c->index, index);
        }
        if (qn_conn_hold_over(c)) {
            c->active_ms = uv_now(fe->o.loop);
            qn_request_run_all(c, index);
        }
        if (c->hold == QN_HOLD_INDEX || c->hold == QN_HOLD_ROOM ||
            c->hold == QN_HOLD_TURN) {
            qn_frontend_ready(c); /* look again next turn */
        }
    }
    if (list != NULL) {
        *list_end = fe->ready;
        fe->ready_end = fe->ready != NULL ? fe->ready_end : list_end;
        fe->ready = list;
    }
}

static void outputs_flush(struct qn_frontend *fe)
{
    struct qn_conn *list = fe->dirty;
    struct qn_conn **list_end = list != NULL ? fe->dirty_end : &list;
    fe->dirty = NULL;
    fe->dirty_end = &fe->dirty;
    while (list != NULL && fe->writes_left > 0) {
        struct qn_conn *c = list;
        list = c->dirty_next;
        c->in_dirty = false;
        if (c->closed) {
            qn_conn_free_if_done(c);
        } else {
            fe->writes_left -= 1 + (int64_t)(c->out.len / QN_TURN_BYTES);
            qn_conn_flush(c);
        }
    }
    if (list != NULL) {
        *list_end = fe->dirty;
        fe->dirty_end = fe->dirty != NULL ? fe->dirty_end : list_end;
        fe->dirty = list;
        fe->again = true;
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
    if (!qn_meter_runs(&fe->meter)) {
        qn_meter_begin(&fe->meter, qn_clock_now());
    }
}

void qn_frontend_run(struct qn_frontend *fe, qn_time_t now, uint64_t wall_ms)
{
    fe->turns++;
    fe->requests_left = QN_TURN_REQUESTS;
    fe->writes_left = QN_TURN_WRITES;
    qn_frontend_rates(fe, now);
    /* After the turn's last byte was received: whatever was acknowledged or
     * read before a request of this turn was sent lies at or below it. */
    qn_slot_t index =
        fe->o.linearizable
            ? qn_driver_read_index(qn_replica_driver(fe->o.replica))
            : 0;
    qn_meter_part(&fe->meter, QN_METER_SOCKETS, now);
    fe->again = qn_replica_turn(fe->o.replica, now, wall_ms);
    qn_meter_part(&fe->meter, QN_METER_APPLY, qn_clock_now());
    qn_frontend_completions(fe);
    inputs_run(fe, index);
    qn_driver_flush(qn_replica_driver(fe->o.replica), now);
    qn_frontend_completions(fe); /* a group of one decides in the flush */
    outputs_flush(fe);
    /* The flush may have made room, or completed what a request stands behind;
     * nobody rings for that. */
    for (struct qn_conn *c = fe->ready; c != NULL && !fe->again;
         c = c->ready_next) {
        fe->again = qn_conn_hold_over(c);
    }
    fe->reads_left = QN_TURN_READS; /* of the next one */
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

/* Not open yet. NULL: no memory. */
static struct qn_conn *conn_new(struct qn_frontend *fe, bool is_unix)
{
    struct qn_conn *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return NULL;
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
    qn_conn_bound(c);
    conn_link(fe, c);
    return c;
}

/* It is open, or cannot be. */
static void conn_begin(struct qn_conn *c, bool is_open, bool is_unix)
{
    struct qn_frontend *fe = c->fe;
    if (!is_open) {
        qn_conn_close(c);
        return;
    }
    fe->part.connections_received++;
    const char *refusal = qn_admit(c, is_unix);
    if (refusal != NULL) {
        fe->part.rejected_connections++;
        qn_reply_error(&c->out, "%s", refusal);
        qn_conn_close_after_reply(c);
        return;
    }
    if (!is_unix) {
        uv_tcp_nodelay(&c->uv.tcp, 1);
        uint32_t keep = qn_replica_config(fe->o.replica)->tcp_keepalive;
        uv_tcp_keepalive(&c->uv.tcp, keep != 0, keep);
    }
    conn_names(c, is_unix);
    qn_conn_reading(c, true);
}

void qn_frontend_accept(struct qn_frontend *fe, uv_stream_t *listener,
                        bool is_unix)
{
    struct qn_conn *c = conn_new(fe, is_unix);
    if (c != NULL) { /* else libuv keeps the connection until the next call */
        conn_begin(c, uv_accept(listener, &c->uv.stream) == 0, is_unix);
    }
}

void qn_frontend_take(struct qn_frontend *fe, int fd, bool is_unix)
{
    struct qn_conn *c = conn_new(fe, is_unix);
    if (c == NULL) {
        close(fd);
        return;
    }
    bool is_open = is_unix ? uv_pipe_open(&c->uv.pipe, fd) == 0
                           : uv_tcp_open(&c->uv.tcp, fd) == 0;
    if (!is_open) {
        close(fd);
    }
    conn_begin(c, is_open, is_unix);
}

/* ---- life ---------------------------------------------------------------- */

struct qn_conn *qn_frontend_find(struct qn_frontend *fe, uint64_t id)
{
    for (struct qn_conn *c = fe->all; c != NULL; c = c->next) {
        if (c->id == id && !c->closed) {
            return c;
        }
    }
    return NULL;
}

void qn_frontend_drain(struct qn_frontend *fe)
{
    fe->draining = true;
    for (struct qn_conn *c = fe->all; c != NULL; c = c->next) {
        if (!c->closed) {
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
    for (struct qn_conn *c = fe->all; c != NULL; c = c->next) {
        qn_conn_bound(c);
    }
}

int qn_frontend_init(struct qn_frontend *fe, const struct qn_frontend_opts *o)
{
    *fe = (struct qn_frontend){.o = *o, .next_id = 1};
    fe->ready_end = &fe->ready;
    fe->dirty_end = &fe->dirty;
    fe->reads_left = QN_TURN_READS;
    fe->rates.since = qn_clock_now();
    fe->random = fe->rates.since ^ o->self;
    qn_meter_init(&fe->meter, NULL);
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
        qn_conn_free_if_done(c);
    }
    for (struct qn_conn *c = fe->dirty, *next; c != NULL; c = next) {
        next = c->dirty_next;
        c->in_dirty = false;
        qn_conn_free_if_done(c);
    }
    for (; fe->fifo_head != fe->fifo_tail; fe->fifo_head++) {
        struct qn_conn *c = fe->fifo[fe->fifo_head & (FIFO_MAX - 1)].conn;
        c->pending--;
        qn_conn_free_if_done(c);
    }
}

void qn_frontend_close_all(struct qn_frontend *fe)
{
    for (struct qn_conn *c = fe->all; c != NULL; c = c->next) {
        qn_conn_close(c); /* it leaves the list later, in on_closed */
    }
}

/* Counts the replies owed to a connection, without those of its submissions:
 * one for all replies that are made and not sent, and one for each whole
 * request that was not run. Uses up what the reader holds. */
static uint64_t unanswered(struct qn_conn *c)
{
    struct qn_resp_req req;
    uint64_t n = c->hold == QN_HOLD_ANSWER;
    n += qn_conn_unsent(c) > 0;
    while (!c->closing && qn_resp_next(&c->in, &req) == QN_OK) {
        n++;
    }
    return n;
}

uint64_t qn_frontend_give_up(struct qn_frontend *fe)
{
    uint64_t n = fe->fifo_tail - fe->fifo_head;
    for (struct qn_conn *c = fe->all; c != NULL; c = c->next) {
        n += c->closed ? 0 : unanswered(c);
    }
    qn_frontend_close_all(fe);
    return n;
}

void qn_frontend_fini(struct qn_frontend *fe)
{
    QN_ASSERT(fe->all == NULL);
    conns_release(fe);
    qn_intake_fini(&fe->intake);
    free(fe->fifo);
    qn_buf_free(&fe->scratch);
    qn_buf_free(&fe->error);
    *fe = (struct qn_frontend){0};
}
