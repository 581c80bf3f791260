/*
 * New connections: accepted from a listening socket, or taken over as a
 * descriptor; admitted, or refused with a reply.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "kvs/frontend/admit.h"
#include "kvs/frontend/frontend_internal.h"
#include "kvs/resp/reply.h"

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
    QN_ASSERT(c->prev == NULL);
    QN_ASSERT(c->next == NULL);
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
    c->uv.stream.data = c;
    if (is_unix) {
        uv_pipe_init(fe->o.loop, &c->uv.pipe, 0);
    } else {
        uv_tcp_init(fe->o.loop, &c->uv.tcp);
    }
    c->id = fe->next_id++ * QN_NODES_MAX + fe->o.self;
    c->since_ms = c->active_ms = uv_now(fe->o.loop);
    qn_session_init(&c->session, &fe->limits);
    qn_session_set_sending(&fe->turn.env, &c->session, 0);
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
        qn_reply_error(&c->session.out, "%s", refusal);
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
    if (fe->draining && !qn_conn_is_closed(c)) {
        qn_conn_drain(c);
    }
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
