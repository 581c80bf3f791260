/*
 * TCP: lock the address; bind once without SO_REUSEPORT, which fails if any
 * process listens there, even on an overlapping address such as 0.0.0.0; close
 * that socket; bind the real ones. The lock keeps other quoinds on the same
 * address out of the gap between the two binds.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "kvs/listen/listen_internal.h"

enum {
    PORT_MAX = 65535,
    PORT_TRIES = 64, /* for free ports in a row */
};

struct address {
    struct sockaddr_storage at;
    socklen_t bytes;
};

static struct address tcp_address(const struct qn_config *c, uint32_t port)
{
    struct address a = {.bytes = sizeof(struct sockaddr_in)};
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&a.at;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)&a.at;
    if (inet_pton(AF_INET, c->bind, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
    } else {
        int ok = inet_pton(AF_INET6, c->bind, &v6->sin6_addr);
        QN_ASSERT(ok == 1); /* qn_config_check has looked */
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        a.bytes = sizeof *v6;
    }
    return a;
}

uint32_t qn_listen_port_of(int fd)
{
    struct address a = {.bytes = sizeof a.at};
    int err = getsockname(fd, (struct sockaddr *)&a.at, &a.bytes);
    QN_ASSERT(err == 0);
    return ntohs(a.at.ss_family == AF_INET
                     ? ((struct sockaddr_in *)(void *)&a.at)->sin_port
                     : ((struct sockaddr_in6 *)(void *)&a.at)->sin6_port);
}

static void set(int fd, int level, int option, int value)
{
    (void)setsockopt(fd, level, option, &value, sizeof value);
}

/* A bound socket; not yet listening. @return it, or an error. */
static int tcp_bind(const struct qn_config *c, uint32_t port, bool reuse_port,
                    const struct qn_error_line *why)
{
    struct address a = tcp_address(c, port);
    int fd =
        socket(a.at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return qn_listen_fail(why, qn_listen_error(errno),
                              "cannot make a TCP socket: %s", strerror(errno));
    }
    set(fd, SOL_SOCKET, SO_REUSEADDR, 1); /* despite old connections in
                                             TIME_WAIT */
    set(fd, SOL_SOCKET, SO_REUSEPORT, reuse_port);
    if (a.at.ss_family == AF_INET6) {
        set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    }
    if (bind(fd, (struct sockaddr *)&a.at, a.bytes) == 0) {
        return fd;
    }
    int err = qn_listen_error(errno);
    qn_listen_fail(
        why, err, "cannot listen on %s port %u: %s; %s", c->bind, port,
        strerror(errno),
        err == QN_EADDRINUSE
            ? "stop the process that listens there, or choose another port"
            : "choose another --bind address or port");
    close(fd);
    return err;
}

/* Listen; what accepted connections inherit is set here. */
static int tcp_listen(const struct qn_config *c, int fd,
                      const struct qn_error_line *why)
{
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (c->tcp_keepalive != 0) {
        set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
        set(fd, IPPROTO_TCP, TCP_KEEPIDLE, (int)c->tcp_keepalive);
        set(fd, IPPROTO_TCP, TCP_KEEPINTVL, (int)(c->tcp_keepalive / 3) + 1);
        set(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
    }
    if (listen(fd, (int)c->tcp_backlog) == 0) {
        return QN_OK;
    }
    return qn_listen_fail(
        why, qn_listen_error(errno),
        "cannot listen on %s port %u: %s; choose another port", c->bind,
        qn_listen_port_of(fd), strerror(errno));
}

static int tcp_open(const struct qn_config *c, uint32_t port, bool reuse_port,
                    int *out, const struct qn_error_line *why)
{
    int fd = tcp_bind(c, port, reuse_port, why);
    if (fd < 0) {
        return fd;
    }
    int err = tcp_listen(c, fd, why);
    if (err != QN_OK) {
        close(fd);
        return err;
    }
    *out = fd;
    return QN_OK;
}

static int tcp_claim(struct qn_listen *l, const struct qn_error_line *why)
{
    char name[QN_CONFIG_TEXT_MAX];
    char shown[QN_LISTEN_SHOWN_MAX];
    const struct qn_config *c = l->config;
    if (qn_listen_name(c, name, sizeof name) != QN_OK) {
        return QN_OK; /* the kernel chooses an unused port, and the address
                         has a name only when it has a port */
    }
    int err = qn_listen_lock(l, name, qn_listen_shown(c, c->port, shown), why);
    if (err != QN_OK) {
        return err;
    }
    int probe = tcp_bind(c, c->port, false, why);
    if (probe < 0) {
        return probe;
    }
    close(probe);
    return QN_OK;
}

static uint32_t own_port(const struct qn_config *c, qn_node_t node)
{
    if (c->replica_ports != QN_REPLICA_PORTS_NEXT) {
        return c->replica_ports + node;
    }
    return c->port == 0 ? 0 : c->port + 1 + node;
}

static int open_shared(struct qn_listen *l, const struct qn_error_line *why)
{
    const struct qn_config *c = l->config;
    int err = QN_OK;
    l->port = c->port;
    for (qn_node_t i = 0; err == QN_OK && i < qn_config_seats(c); i++) {
        err = tcp_open(c, l->port, true, &l->shared[i], why);
        if (err == QN_OK) {
            l->port = qn_listen_port_of(l->shared[i]);
        }
    }
    return err;
}

int qn_listen_own_tcp(struct qn_listen *l, qn_node_t node,
                      const struct qn_error_line *why)
{
    const struct qn_config *c = l->config;
    int err = tcp_open(c, own_port(c, node), false, &l->own[node], why);
    if (err == QN_OK) {
        l->own_port[node] = qn_listen_port_of(l->own[node]);
    }
    return err;
}

/* From `first` on; 0: any. */
static int open_own(struct qn_listen *l, uint32_t first,
                    const struct qn_error_line *why)
{
    const struct qn_config *c = l->config;
    int err = QN_OK;
    for (qn_node_t i = 0; err == QN_OK && i < c->replicas; i++) {
        uint32_t port = first == 0 ? 0 : first + i;
        err = port > PORT_MAX ? QN_EADDRINUSE
                              : tcp_open(c, port, false, &l->own[i], why);
        if (err == QN_OK) {
            l->own_port[i] = qn_listen_port_of(l->own[i]);
        }
    }
    return err;
}

static void close_all(struct qn_listen *l)
{
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        qn_listen_close_one(&l->shared[i]);
        qn_listen_close_one(&l->own[i]);
    }
}

/* Any free port with free ports behind it, so that the replicas' own ports
 * follow the shared one as usual. Where closed connections hold most ports
 * there may be no such row; then any free ports. */
static int open_anywhere(struct qn_listen *l, const struct qn_error_line *why)
{
    int err = QN_EADDRINUSE;
    for (int i = 0; i < 2 * PORT_TRIES && err == QN_EADDRINUSE; i++) {
        close_all(l);
        err = open_shared(l, why);
        if (err == QN_OK) {
            err = open_own(l, i < PORT_TRIES ? l->port + 1 : 0, why);
        }
    }
    if (err == QN_OK) {
        why->text[0] = '\0'; /* of an earlier attempt */
    }
    return err;
}

static int open_ports(struct qn_listen *l, const struct qn_error_line *why)
{
    const struct qn_config *c = l->config;
    if (c->replica_ports == QN_REPLICA_PORTS_NEXT && c->port == 0) {
        return open_anywhere(l, why);
    }
    int err = open_shared(l, why);
    if (err != QN_OK || c->replica_ports == QN_REPLICA_PORTS_NONE) {
        return err;
    }
    return open_own(l, own_port(c, 0), why);
}

int qn_listen_open_tcp(struct qn_listen *l, const struct qn_error_line *why)
{
    char name[QN_CONFIG_TEXT_MAX];
    char shown[QN_LISTEN_SHOWN_MAX];
    struct qn_config found = *l->config;
    int err = tcp_claim(l, why);
    if (err == QN_OK) {
        err = open_ports(l, why);
    }
    if (err != QN_OK || l->lock >= 0) {
        return err;
    }
    found.port = l->port;
    err = qn_listen_name(&found, name, sizeof name);
    QN_ASSERT(err == QN_OK);
    return qn_listen_lock(l, name, qn_listen_shown(&found, found.port, shown),
                          why);
}
