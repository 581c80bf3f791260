/*
 * Members that an operator adds and removes: a replica's part, between its
 * client and the supervisor. The shell of kvs/server/machine/member_requests.h.
 *
 *     client            replica                    supervisor
 *       |--QUOIN MEMBER-->|--MEMBER_LIST, ADD, REMOVE-->|
 *       |  (blocked)      |<-MEMBER_SEAT, per seat------|
 *       |<--reply---------|<-MEMBER_ANSWER--------------|
 *
 * The supervisor decides (kvs/supervision), and answers each request once. What
 * it orders of this replica comes as any other message does
 * (server_members.c).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "kvs/base/number.h"
#include "kvs/control/member_error.h"
#include "kvs/resp/reply.h"
#include "kvs/server/server.h"

static bool is(struct qn_slice s, const char *word)
{
    return s.len == strlen(word) &&
           strncasecmp((const char *)s.data, word, s.len) == 0;
}

/* ---- replies ------------------------------------------------------------- */

static void say_no(struct qn_buf *reply, const struct qn_member_request *q,
                   const struct qn_ctl_member_answer *a)
{
    char why[QN_MEMBER_WHY_MAX];
    qn_member_answer_text(a, why);
    if (q->kind == QN_MEMBER_REQUEST_REMOVE) {
        qn_reply_error(reply, "ERR replica %u is not removed: %s", q->node,
                       why);
    } else if (q->kind == QN_MEMBER_REQUEST_ADD) {
        qn_reply_error(reply, "ERR no replica is added: %s", why);
    } else {
        qn_reply_error(reply, "ERR the members are not known: %s", why);
    }
}

static void say_yes(struct qn_server *s, struct qn_conn *c,
                    const struct qn_member_request *q,
                    const struct qn_ctl_member_answer *a)
{
    struct qn_buf *reply = qn_conn_answer(c);
    struct qn_buf *seats = &s->seats_text;
    if (q->kind == QN_MEMBER_REQUEST_REMOVE) {
        qn_reply_ok(reply);
    } else if (q->kind == QN_MEMBER_REQUEST_ADD) {
        qn_reply_int(reply, (int64_t)a->node);
    } else if (seats->oom) {
        qn_reply_error(reply, "ERR out of memory");
    } else {
        qn_reply_text(reply, c->session.proto, (const char *)seats->data,
                      seats->len);
    }
}

/* To the client that waits, if it is still connected. */
static void end(struct qn_server *s, uint64_t client,
                const struct qn_ctl_member_answer *a)
{
    struct qn_member_request q;
    if (!qn_member_requests_end(&s->requests, client, &q)) {
        return;
    }
    struct qn_conn *c = qn_frontend_find(&s->frontend, client);
    if (c == NULL) {
        return;
    }
    if (a->why == QN_MEMBER_ERROR_NONE) {
        say_yes(s, c, &q, a);
    } else {
        say_no(qn_conn_answer(c), &q, a);
    }
    qn_conn_answered(c);
}

/* ---- what the supervisor says -------------------------------------------- */

/* The seats of one list come together. */
void qn_server_member_seat(struct qn_server *s,
                           const struct qn_ctl_member_seat *e)
{
    static const char *const states[] = {
        [QN_SEAT_STARTING] = "loading",
        [QN_SEAT_SERVING] = "online",
        [QN_SEAT_DRAINED] = "draining",
        [QN_SEAT_ENDED] = "ended",
    };
    char line[128];
    int n = snprintf(line, sizeof line,
                     "replica%u:state=%s,votes=%s,pid=%" PRIu32
                     ",incarnation=%" PRIu64 "\r\n",
                     e->node, states[e->state], e->votes ? "yes" : "no", e->pid,
                     e->incarnation);
    if (s->seats_client != e->client) {
        s->seats_client = e->client;
        qn_buf_free(&s->seats_text);
    }
    qn_buf_append(&s->seats_text, line, (size_t)n);
}

void qn_server_member_answer(struct qn_server *s,
                             const struct qn_ctl_member_answer *e)
{
    end(s, e->client, e);
    if (s->seats_client == e->client) {
        s->seats_client = 0;
        qn_buf_free(&s->seats_text);
    }
}

void qn_server_member_alone(struct qn_server *s)
{
    struct qn_member_request q;
    while (qn_member_requests_any(&s->requests, &q)) {
        const bool list = q.kind == QN_MEMBER_REQUEST_LIST;
        const struct qn_ctl_member_answer a = {
            .client = q.client,
            .why = list ? QN_MEMBER_ERROR_ALONE : QN_MEMBER_ERROR_UNKNOWN};
        qn_server_member_answer(s, &a);
    }
}

void qn_server_member_left(struct qn_server *s)
{
    struct qn_member_request q;
    while (qn_member_requests_of(&s->requests, s->boot->self, &q)) {
        const struct qn_ctl_member_answer a = {.client = q.client,
                                               .node = q.node};
        end(s, q.client, &a);
    }
}

/* ---- what a client wants ------------------------------------------------- */

/* LIST | ADD [FORCE] | REMOVE replica [FORCE].
 * @return false: refused, and it was said why. */
static bool parse(const struct qn_server *s, const struct qn_cmd_call *call,
                  uint64_t client, struct qn_control_msg *e,
                  struct qn_member_request *q)
{
    const struct qn_slice *arg = call->argv + 3;
    uint32_t left = call->argc - 3;
    int64_t node = 0;
    *q = (struct qn_member_request){.client = client};
    if (is(call->argv[2], "LIST")) {
        q->kind = QN_MEMBER_REQUEST_LIST;
    } else if (is(call->argv[2], "ADD")) {
        q->kind = QN_MEMBER_REQUEST_ADD;
    } else if (is(call->argv[2], "REMOVE") && left > 0) {
        q->kind = QN_MEMBER_REQUEST_REMOVE;
        if (!qn_number_parse(*arg++, &node) || node < 0 ||
            node >= s->boot->nodes) {
            qn_reply_error(call->reply,
                           "ERR no such replica: there are 0 to %u",
                           s->boot->nodes - 1);
            return false;
        }
        q->node = (qn_node_t)node;
        left--;
    }
    const bool forced =
        q->kind != QN_MEMBER_REQUEST_LIST && left == 1 && is(*arg, "FORCE");
    if (q->kind == QN_MEMBER_REQUEST_NONE || left != (forced ? 1u : 0u)) {
        qn_reply_error(call->reply, "ERR syntax error");
        return false;
    }
    switch (q->kind) {
    case QN_MEMBER_REQUEST_LIST:
        e->kind = QN_CTL_MEMBER_LIST;
        e->u.member_list = (struct qn_ctl_member_list){.client = client};
        break;
    case QN_MEMBER_REQUEST_ADD:
        e->kind = QN_CTL_MEMBER_ADD;
        e->u.member_add = (struct qn_ctl_member_add){
            .forced = forced,
            .client = client,
            .maxmemory = qn_replica_config(s->replica)->maxmemory};
        break;
    default:
        e->kind = QN_CTL_MEMBER_REMOVE;
        e->u.member_remove = (struct qn_ctl_member_remove){
            .node = q->node, .forced = forced, .client = client};
        break;
    }
    return true;
}

/* A client that waits no longer leaves its place to another. */
static void forget_closed(struct qn_server *s)
{
    struct qn_member_requests open = s->requests;
    struct qn_member_request q;
    while (qn_member_requests_any(&open, &q)) {
        (void)qn_member_requests_end(&open, q.client, &q);
        if (qn_frontend_find(&s->frontend, q.client) == NULL) {
            (void)qn_member_requests_end(&s->requests, q.client, &q);
        }
    }
}

void qn_quoin_member(struct qn_conn *c, struct qn_cmd_call *call)
{
    struct qn_server *s = c->fe->o.ctx;
    struct qn_control_msg e = {0};
    struct qn_member_request q;
    QN_ASSERT(c->session.state == QN_SESSION_RUN);
    if (!parse(s, call, c->id, &e, &q)) {
        return;
    }
    if (s->adoptee.alone) {
        const struct qn_ctl_member_answer no = {.why = QN_MEMBER_ERROR_ALONE};
        say_no(call->reply, &q, &no);
        return;
    }
    forget_closed(s);
    if (!qn_member_requests_hold(&s->requests, &q)) {
        qn_reply_error(call->reply,
                       "ERR %u clients wait for an answer here; "
                       "try again, or ask another replica",
                       QN_MEMBER_REQUESTS);
        return;
    }
    int err = qn_control_send(s->boot->control, &e, -1);
    if (err == QN_OK) {
        qn_session_block_remote(&c->session);
    } else {
        (void)qn_member_requests_end(&s->requests, c->id, &q);
        qn_reply_error(call->reply, "ERR cannot tell the supervisor: %s",
                       qn_strerror(err));
    }
}
