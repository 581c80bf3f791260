/*
 * CLIENT LIST, KILL and INFO.
 *
 * A replica answers LIST with the lines of its connections, and KILL with the
 * number of connections that it has closed, a uint64_t. The asking connection
 * is counted by its own replica, and closed after its reply.
 */
#include <string.h>

#include "core/base/assert.h"
#include "kvs/introspect/clientinfo.h"
#include "kvs/local/cluster_query_internal.h"
#include "kvs/resp/reply.h"

bool qn_cluster_query_is_blocked(const struct qn_conn *c, uint64_t asker)
{
    return c->session.reason == QN_BLOCKED_REMOTE && c->id != asker;
}

static struct qn_client_info client_info(const struct qn_conn *c,
                                         uint64_t asker)
{
    uint64_t now_ms = uv_now(c->fe->o.loop);
    QN_ASSERT(c->since_ms <= c->active_ms);
    QN_ASSERT(c->active_ms <= now_ms);
    uv_os_fd_t fd = -1;
    (void)uv_fileno((const uv_handle_t *)&c->uv, &fd); /* -1 if closing */
    const struct qn_client_session *session = &c->session;
    const struct qn_buf *held = &session->in.held;
    size_t output = session->out.cap + c->sending.cap;
    return (struct qn_client_info){
        .id = c->id,
        .addr = c->addr,
        .laddr = c->laddr,
        .fd = fd,
        .name = c->name,
        .age_s = (now_ms - c->since_ms) / 1000,
        .idle_s = (now_ms - c->active_ms) / 1000,
        .db = session->db,
        .blocked = qn_cluster_query_is_blocked(c, asker),
        .closing = session->state == QN_SESSION_CLOSING,
        .is_unix = c->uv.stream.type == UV_NAMED_PIPE,
        .no_evict = c->no_evict,
        .no_touch = c->no_touch,
        .writing = c->writing,
        .qbuf = held->len + c->input_len,
        .qbuf_free = held->cap - held->len,
        .argv_mem = c->question.len,
        .out_buffer = session->out.cap,
        .out_used = session->out.len,
        .out_queued = c->sending.len,
        .total_mem = sizeof *c + held->cap + output + c->question.cap,
        .cmd = session->last_cmd != NULL ? session->last_cmd->name : NULL,
        .user = "default",
        .proto = session->proto,
        .lib_name = c->lib_name,
        .lib_ver = c->lib_ver,
    };
}

/* The list of connections begins with the newest; the reply begins with the
 * oldest, as in Redis. */
static struct qn_conn *oldest(const struct qn_frontend *fe)
{
    struct qn_conn *c = fe->all;
    while (c != NULL && c->next != NULL) {
        c = c->next;
    }
    return c;
}

void qn_cluster_query_list_answer(struct qn_server *s,
                                  const struct cluster_query_head *h,
                                  const struct qn_slice *argv,
                                  struct qn_buf *out)
{
    struct qn_client_list f;
    struct qn_buf refused = {0};
    if (qn_client_list_parse(argv, h->argc, &f, &refused)) {
        for (struct qn_conn *c = oldest(&s->frontend); c != NULL; c = c->prev) {
            struct qn_client_info i = client_info(c, h->asker);
            if (!qn_conn_is_closed(c) && qn_client_list_matches(&f, &i)) {
                qn_client_info_line(out, &i);
            }
        }
    }
    qn_buf_free(&refused);
}

/* The asker itself is counted here, and closed when it has its reply. */
void qn_cluster_query_kill_answer(struct qn_server *s,
                                  const struct cluster_query_head *h,
                                  const struct qn_slice *argv,
                                  struct qn_buf *out)
{
    struct qn_client_kill f;
    struct qn_buf refused = {0};
    uint64_t killed = 0;
    if (qn_client_kill_parse(argv, h->argc, &f, &refused)) {
        for (struct qn_conn *c = s->frontend.all; c != NULL; c = c->next) {
            struct qn_client_info i = client_info(c, h->asker);
            bool me = c->id == h->asker;
            if (!qn_conn_is_closed(c) && qn_client_kill_matches(&f, &i, me)) {
                killed++;
                if (!me) {
                    qn_conn_close(c);
                }
            }
        }
    }
    QN_ASSERT(killed <= s->frontend.clients);
    qn_buf_free(&refused);
    qn_buf_append(out, &killed, sizeof killed);
}

/* ---- replies ------------------------------------------------------------- */

void qn_cluster_query_list_finish(struct qn_server *s, struct qn_conn *c,
                                  const struct qn_fanout_result *a)
{
    struct qn_buf all = {0};
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        if ((a->missing >> i & 1) == 0) {
            qn_buf_append(&all, a->answer[i].data, a->answer[i].len);
        }
    }
    struct qn_buf *reply = qn_conn_answer(c);
    if (all.oom) {
        qn_reply_error(reply, "ERR out of memory");
    } else {
        qn_reply_text(reply, c->session.proto, (const char *)all.data, all.len);
    }
    qn_buf_free(&all);
}

bool qn_cluster_query_kill_finish(struct qn_server *s, struct qn_conn *c,
                                  const struct qn_fanout_result *a,
                                  const struct qn_slice *argv, uint32_t argc)
{
    struct qn_client_kill f;
    struct qn_buf *reply = qn_conn_answer(c);
    uint64_t killed = 0;
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        uint64_t n = 0;
        if (a->answer[i].len == sizeof n) {
            memcpy(&n, a->answer[i].data, sizeof n);
        }
        killed += n;
    }
    if (!qn_client_kill_parse(argv, argc, &f, reply)) {
        return false; /* it was checked before: out of memory at most */
    }
    qn_client_kill_reply(&f, killed, reply);
    struct qn_client_info i = client_info(c, c->id);
    return qn_client_kill_matches(&f, &i, true);
}

/* ---- the commands -------------------------------------------------------- */

void qn_cluster_query_client_info(struct qn_conn *c, struct qn_cmd_call *call)
{
    struct qn_buf line = {0};
    c->session.last_cmd = call->cmd;
    struct qn_client_info i = client_info(c, c->id);
    qn_client_info_line(&line, &i);
    if (line.oom) {
        qn_reply_error(call->reply, "ERR out of memory");
    } else {
        qn_reply_text(call->reply, call->proto, (const char *)line.data,
                      line.len);
    }
    qn_buf_free(&line);
}

void qn_cluster_query_client_list(struct qn_conn *c, struct qn_cmd_call *call)
{
    struct qn_client_list f;
    if (qn_client_list_parse(call->argv, call->argc, &f, call->reply)) {
        qn_cluster_query_ask(c, call, ASK_LIST);
    }
}

void qn_cluster_query_client_kill(struct qn_conn *c, struct qn_cmd_call *call)
{
    struct qn_client_kill f;
    if (qn_client_kill_parse(call->argv, call->argc, &f, call->reply)) {
        qn_cluster_query_ask(c, call, ASK_KILL);
    }
}
