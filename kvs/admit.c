#include "kvs/admit.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "core/base/log.h"
#include "core/place/life.h"
#include "kvs/frontend.h"
#include "kvs/server.h"

static const char full[] = "ERR max number of clients reached";

static const char denied[] =
    "DENIED quoind is in protected mode: it has no password, so it serves only "
    "clients on its own machine, at a loopback address or a Unix socket. If "
    "nobody can reach its address but whom you trust, say CONFIG SET "
    "protected-mode no from there, or start it with --protected-mode no; "
    "otherwise start it with --bind 127.0.0.1.";

bool qn_admit_is_local(const struct sockaddr *sa)
{
    if (sa->sa_family == AF_INET) {
        const struct sockaddr_in *in4 = (const void *)sa;
        return ntohl(in4->sin_addr.s_addr) >> 24 == 127;
    }
    if (sa->sa_family != AF_INET6) {
        return false;
    }
    const struct in6_addr *a =
        &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(a) ||
           (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
}

void qn_admit_log(const struct qn_config *c)
{
    struct sockaddr_in in4 = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    const struct sockaddr *sa = (const void *)&in6;
    if (inet_pton(AF_INET, c->bind, &in4.sin_addr) == 1) {
        sa = (const void *)&in4;
    } else {
        (void)inet_pton(AF_INET6, c->bind, &in6.sin6_addr);
    }
    if (c->unixsocket[0] != '\0' || qn_admit_is_local(sa)) {
        return;
    }
    if (c->protected_mode) {
        qn_log(QN_LOG_INFO,
               "bind %s: there is no password, so clients on other machines "
               "are refused, until CONFIG SET protected-mode no",
               c->bind);
    } else {
        qn_log(QN_LOG_WARN,
               "bind %s, protected-mode no, and there is no password: whoever "
               "reaches this address can read and write everything",
               c->bind);
    }
}

static bool is_remote(const struct qn_conn *c)
{
    struct sockaddr_storage sa = {0};
    int len = sizeof sa;
    return uv_tcp_getpeername(&c->uv.tcp, (struct sockaddr *)&sa, &len) != 0 ||
           !qn_admit_is_local((const struct sockaddr *)&sa);
}

/* Of the other replicas that live. The kernel marks a life as ended before its
 * connections break. One that ran wild may have overwritten that mark and its
 * count: more than there may be is nothing. */
static uint64_t clients_of_others(const struct qn_server *s, uint64_t most)
{
    uint64_t sum = 0;
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        const struct qn_server_life *l = s->peer[i];
        if (l != NULL && qn_life_look(s->commons, i, l->inc) != QN_LIFE_DEAD) {
            /* relaxed: a figure; nothing is read through it. */
            uint64_t n = qn_load(
                &qn_outbox_state(l->outbox)->counters[QN_COUNTER_CLIENTS],
                QN_RELAXED);
            sum += n <= most ? n : 0;
        }
    }
    return sum;
}

static void publish(struct qn_frontend *fe)
{
    struct qn_outbox_state *st = qn_outbox_state(fe->o.server->outbox);
    /* relaxed: a figure, stored by this thread only. */
    qn_store(&st->counters[QN_COUNTER_CLIENTS], fe->admitted, QN_RELAXED);
}

const char *qn_admit(struct qn_conn *c, bool is_unix)
{
    struct qn_frontend *fe = c->fe;
    const struct qn_config *config = qn_replica_config(fe->o.replica);
    if (config->protected_mode && !is_unix && is_remote(c)) {
        return denied;
    }
    uint64_t most = config->maxclients;
    if (fe->admitted + clients_of_others(fe->o.server, most) >= most) {
        return full;
    }
    c->admitted = true;
    fe->admitted++;
    publish(fe);
    return NULL;
}

void qn_admit_gone(struct qn_conn *c)
{
    if (c->admitted) {
        c->admitted = false;
        c->fe->admitted--;
        publish(c->fe);
    }
}
