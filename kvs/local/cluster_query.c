/*
 * A question is the id of the connection that asks and the arguments of its
 * request: {struct cluster_query_head, uint32_t length[argc], bytes}. Each
 * replica parses the arguments again, with the same filters
 * (kvs/introspect/clientinfo.h), so no command needs its own encoding. The
 * asker parses them once more when the answers have arrived: the request's
 * memory is freed by then. The connection may be closed by then, too, so it is
 * found by its id.
 *
 * A question comes from memory that a faulty process can overwrite. A malformed
 * question gets no answer, and a malformed answer counts as missing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "kvs/local/cluster_query_internal.h"
#include "kvs/resp/reply.h"

/* ---- questions ----------------------------------------------------------- */

static void question_encode(struct qn_buf *to, uint64_t asker,
                            const struct qn_slice *argv, uint32_t argc)
{
    const struct cluster_query_head h = {.asker = asker, .argc = argc};
    qn_buf_append(to, &h, sizeof h);
    for (uint32_t i = 0; i < argc; i++) {
        uint32_t len = (uint32_t)argv[i].len;
        qn_buf_append(to, &len, sizeof len);
    }
    for (uint32_t i = 0; i < argc; i++) {
        qn_buf_append(to, argv[i].data, argv[i].len);
    }
}

/* Parse a question. *argv is filled, borrows from `q`, and must be freed.
 * False: malformed, or no memory. */
static bool question_decode(struct qn_slice q, struct cluster_query_head *h,
                            struct qn_slice **argv)
{
    if (q.len < sizeof *h) {
        return false;
    }
    memcpy(h, q.data, sizeof *h);
    size_t left = q.len - sizeof *h;
    if (h->argc == 0 || h->argc > left / sizeof(uint32_t)) {
        return false;
    }
    const uint8_t *lengths = q.data + sizeof *h;
    const uint8_t *at = lengths + h->argc * sizeof(uint32_t);
    left -= h->argc * sizeof(uint32_t);
    struct qn_slice *v = malloc(h->argc * sizeof *v);
    for (uint32_t i = 0; v != NULL && i < h->argc; i++) {
        uint32_t len;
        memcpy(&len, lengths + i * sizeof len, sizeof len);
        if (len > left) {
            free(v);
            return false;
        }
        v[i] = (struct qn_slice){at, len};
        at += len;
        left -= len;
    }
    QN_ASSERT(v == NULL || at + left == q.data + q.len);
    *argv = v;
    return v != NULL;
}

void qn_cluster_query_ask(struct qn_conn *c, struct qn_cmd_call *call,
                          uint8_t what)
{
    struct qn_server *s = c->fe->o.ctx;
    struct qn_slice q = {0};
    QN_ASSERT(c->question.len == 0); /* one question at a time */
    c->session.last_cmd =
        call->cmd; /* what CLIENT LIST shows for this connection */
    question_encode(&c->question, c->id, call->argv, call->argc);
    int err = c->question.oom ? QN_ENOMEM : QN_OK;
    if (err == QN_OK) {
        q = (struct qn_slice){c->question.data, c->question.len};
        qn_session_block_remote(&c->session);
        err = qn_fanout_start(s->ask, what, q, c->id, qn_clock_now());
        if (err != QN_OK) {
            qn_session_unblock_remote(&c->session);
        }
    }
    if (err != QN_OK) {
        qn_buf_free(&c->question);
        qn_reply_error(call->reply, "ERR cannot ask the other replicas: %s",
                       qn_strerror(err));
        return;
    }
    s->turn_wanted = true; /* the next turn knows the question's deadline */
}

static void on_answer(void *ctx, uint8_t what, struct qn_slice question,
                      struct qn_buf *out)
{
    struct qn_server *s = ctx;
    struct cluster_query_head h;
    struct qn_slice *argv = NULL;
    if (!question_decode(question, &h, &argv)) {
        return;
    }
    if (what == ASK_INFO) {
        qn_cluster_query_info_answer(s, &h, out);
    } else if (what == ASK_LIST) {
        qn_cluster_query_list_answer(s, &h, argv, out);
    } else if (what == ASK_KILL) {
        qn_cluster_query_kill_answer(s, &h, argv, out);
    } else if (what == ASK_RESETSTAT) {
        qn_cluster_query_resetstat_answer(s);
    }
    free(argv);
}

static void on_finish(void *ctx, struct qn_fanout_result *a)
{
    struct qn_server *s = ctx;
    struct qn_conn *c = qn_frontend_find(&s->frontend, a->tag);
    struct cluster_query_head h;
    struct qn_slice *argv = NULL;
    bool close = false;
    if (c == NULL) {
        return; /* it waits no longer */
    }
    QN_ASSERT(c->session.reason == QN_BLOCKED_REMOTE);
    QN_ASSERT(!c->waiter.queued);
    struct qn_slice question = {c->question.data, c->question.len};
    if (!question_decode(question, &h, &argv)) {
        qn_reply_error(qn_conn_answer(c), "ERR out of memory");
    } else if (a->what == ASK_INFO) {
        qn_cluster_query_info_finish(s, c, a, argv, h.argc);
    } else if (a->what == ASK_LIST) {
        qn_cluster_query_list_finish(s, c, a);
    } else if (a->what == ASK_RESETSTAT) {
        qn_cluster_query_resetstat_finish(c, a);
    } else {
        close = qn_cluster_query_kill_finish(s, c, a, argv, h.argc);
    }
    free(argv);
    qn_buf_free(&c->question);
    qn_conn_answered(c);
    if (close) {
        qn_conn_close_after_reply(c);
    }
}

/* ---- init ---------------------------------------------------------------- */

static int on_tell(void *ctx, qn_node_t to, struct qn_slice bytes)
{
    struct qn_server *s = ctx;
    return qn_replica_send_peer_message(s->replica, to, bytes);
}

/* All replicas have the same commons, and no other start of a server has
 * commons with that inode and time of birth. The id is not secret. */
static void run_id_make(struct qn_server *s)
{
    struct stat st = {0};
    (void)fstat(s->boot->commons_fd, &st); /* at worst the id is not unique */
    uint64_t x = (uint64_t)st.st_ino ^ (uint64_t)st.st_ctim.tv_nsec << 32 ^
                 (uint64_t)st.st_ctim.tv_sec * 0x9e3779b97f4a7c15u;
    for (int i = 0; i < 5; i++) {
        x += 0x9e3779b97f4a7c15u; /* splitmix64 */
        uint64_t z = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        snprintf(s->run_id + i * 8, 9, "%08x", (unsigned)(z >> 32));
    }
}

int qn_cluster_query_init(struct qn_server *s)
{
    const struct qn_fanout_opts o = {
        .self = s->boot->self,
        .nodes = s->boot->nodes,
        .vacant = ~qn_server_members(s),
        .tell = on_tell,
        .answer = on_answer,
        .finish = on_finish,
        .ctx = s,
    };
    run_id_make(s);
    return qn_fanout_create(&s->ask, &o);
}
