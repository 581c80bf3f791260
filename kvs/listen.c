/*
 * Listening sockets.
 *
 * Order for TCP: lock the address, bind once without SO_REUSEPORT (which fails
 * if anybody listens there, ours or not, also on an overlapping address such
 * as 0.0.0.0), close that, bind for real. The lock closes the gap between the
 * two binds against servers of our kind on the same address. It is an abstract
 * Unix socket named by the address: it needs no file, and lives exactly as long
 * as somebody holds it, whatever way he ends; the replicas hold it too, since
 * they may outlive their supervisor.
 *
 * Order for Unix sockets: lock (named by the directory's identity, so that two
 * spellings of a path meet), then bind. A path that exists and does not answer
 * is what a killed server left; it is removed. A path that is no socket is not
 * touched.
 */
#include "kvs/listen.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "kvs/pass.h"

enum {
    PORT_MAX = 65535,
    PORT_TRIES = 64, /* for free ports in a row */
};

struct address {
    struct sockaddr_storage at;
    socklen_t bytes;
};

/* The caller's line; shared by all functions below. */
struct line {
    char *text;
    size_t cap;
};

static int fail(const struct line *why, int err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int fail(const struct line *why, int err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(why->text, why->cap, fmt, args);
    va_end(args);
    return err;
}

static int error_of(int e)
{
    switch (e) {
    case EADDRINUSE:
        return QN_EADDRINUSE;
    case EACCES:
    case EPERM:
        return QN_EPERM;
    case EMFILE:
    case ENFILE:
        return QN_EMFILE;
    default:
        return QN_EIO;
    }
}

static void close_one(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

/* ---- lock ---------------------------------------------------------------- */

static int unix_name(const char *path, char *name, size_t cap)
{
    const char *slash = strrchr(path, '/');
    struct stat st;
    char dir[QN_CONFIG_TEXT_MAX] = ".";
    if (slash != NULL) {
        snprintf(dir, sizeof dir, "%.*s", (int)QN_MAX(slash - path, 1), path);
    }
    if (stat(dir, &st) != 0) {
        return QN_ENOENT;
    }
    snprintf(name, cap, "unix %llx:%llx %.64s", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino, slash == NULL ? path : slash + 1);
    return QN_OK;
}

int qn_listen_name(const struct qn_config *c, char *name, size_t cap)
{
    if (c->unixsocket[0] != '\0') {
        return unix_name(c->unixsocket, name, cap);
    }
    if (c->port == 0) {
        return QN_ENOENT;
    }
    snprintf(name, cap, "%.64s %u", c->bind, c->port);
    return QN_OK;
}

static int lock_address(struct qn_listen *l, const char *name,
                        const char *shown, const struct line *why)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    /* A leading NUL makes the name abstract. */
    int n =
        snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "quoind %s", name);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return fail(why, error_of(errno), "cannot make a socket: %s",
                    strerror(errno));
    }
    socklen_t bytes =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    QN_ASSERT(bytes <= sizeof at);
    if (bind(fd, (struct sockaddr *)&at, bytes) == 0) {
        l->lock = fd;
        return QN_OK;
    }
    int err = error_of(errno);
    close(fd);
    return fail(why, err,
                err == QN_EADDRINUSE
                    ? "a quoind serves %s already; stop it, or choose another "
                      "address"
                    : "cannot lock %s",
                shown);
}

/* ---- TCP ----------------------------------------------------------------- */

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

static uint32_t port_of(int fd)
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
                    const struct line *why)
{
    struct address a = tcp_address(c, port);
    int fd =
        socket(a.at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return fail(why, error_of(errno), "cannot make a TCP socket: %s",
                    strerror(errno));
    }
    set(fd, SOL_SOCKET, SO_REUSEADDR, 1); /* old connections in TIME_WAIT */
    set(fd, SOL_SOCKET, SO_REUSEPORT, reuse_port);
    if (a.at.ss_family == AF_INET6) {
        set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    }
    if (bind(fd, (struct sockaddr *)&a.at, a.bytes) == 0) {
        return fd;
    }
    int err = error_of(errno);
    fail(why, err, "cannot listen on %s port %u: %s; %s", c->bind, port,
         strerror(errno),
         err == QN_EADDRINUSE ? "stop who does, or choose another port"
                              : "choose another --bind address or port");
    close(fd);
    return err;
}

/* Listen; what accepted connections inherit is set here. */
static int tcp_listen(const struct qn_config *c, int fd, const struct line *why)
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
    return fail(why, error_of(errno),
                "cannot listen on %s port %u: %s; choose another port", c->bind,
                port_of(fd), strerror(errno));
}

static int tcp_open(const struct qn_config *c, uint32_t port, bool reuse_port,
                    int *out, const struct line *why)
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

static int tcp_claim(struct qn_listen *l, const struct line *why)
{
    char name[QN_CONFIG_TEXT_MAX];
    const struct qn_config *c = l->config;
    if (qn_listen_name(c, name, sizeof name) != QN_OK) {
        return QN_OK; /* the kernel gives out no port that is in use, and the
                         address has a name once it has */
    }
    int err = lock_address(l, name, name, why);
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

static int open_shared(struct qn_listen *l, const struct line *why)
{
    const struct qn_config *c = l->config;
    int err = QN_OK;
    l->port = c->port;
    for (qn_node_t i = 0; err == QN_OK && i < c->replicas; i++) {
        err = tcp_open(c, l->port, true, &l->shared[i], why);
        if (err == QN_OK) {
            l->port = port_of(l->shared[i]);
        }
    }
    return err;
}

/* From `first` on; 0: any. */
static int open_own(struct qn_listen *l, uint32_t first, const struct line *why)
{
    const struct qn_config *c = l->config;
    int err = QN_OK;
    for (qn_node_t i = 0; err == QN_OK && i < c->replicas; i++) {
        uint32_t port = first == 0 ? 0 : first + i;
        err = port > PORT_MAX ? QN_EADDRINUSE
                              : tcp_open(c, port, false, &l->own[i], why);
        if (err == QN_OK) {
            l->own_port[i] = port_of(l->own[i]);
        }
    }
    return err;
}

static void close_all(struct qn_listen *l)
{
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        close_one(&l->shared[i]);
        close_one(&l->own[i]);
    }
}

/* Any free port with free ones behind it, so that what the replicas' own ports
 * are follows from the shared one, as always. Where closed connections hold
 * most ports there may be none in a row: then any. */
static int open_anywhere(struct qn_listen *l, const struct line *why)
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
        why->text[0] = '\0'; /* of a try before */
    }
    return err;
}

static int open_ports(struct qn_listen *l, const struct line *why)
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

static int open_tcp(struct qn_listen *l, const struct line *why)
{
    char name[QN_CONFIG_TEXT_MAX];
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
    return lock_address(l, name, name, why);
}

/* ---- Unix ---------------------------------------------------------------- */

/* PATH, or PATH.node. */
static struct sockaddr_un unix_address(const struct qn_config *c, bool own,
                                       qn_node_t node)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int n =
        own ? snprintf(at.sun_path, sizeof at.sun_path, "%.100s.%u",
                       c->unixsocket, node)
            : snprintf(at.sun_path, sizeof at.sun_path, "%s", c->unixsocket);
    QN_ASSERT((size_t)n < sizeof at.sun_path);
    return at;
}

/* Remove what a killed server left at the path. QN_OK: the path is free. */
static int unix_clear(const struct sockaddr_un *at, const struct line *why)
{
    struct stat st;
    if (lstat(at->sun_path, &st) != 0) {
        return QN_OK; /* bind will say what is wrong, if anything */
    }
    if (!S_ISSOCK(st.st_mode)) {
        return fail(why, QN_EADDRINUSE,
                    "%s exists and is no socket; choose another path",
                    at->sun_path);
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return fail(why, error_of(errno), "cannot make a socket: %s",
                    strerror(errno));
    }
    bool dead = connect(fd, (const struct sockaddr *)at, sizeof *at) != 0 &&
                errno == ECONNREFUSED;
    close(fd);
    if (!dead || unlink(at->sun_path) != 0) {
        return fail(why, QN_EADDRINUSE,
                    "somebody listens on %s; stop him, or choose another path",
                    at->sun_path);
    }
    return QN_OK;
}

static int unix_open(const struct qn_config *c, bool own, qn_node_t node,
                     int *out, const struct line *why)
{
    struct sockaddr_un at = unix_address(c, own, node);
    int err = unix_clear(&at, why);
    if (err != QN_OK) {
        return err;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return fail(why, error_of(errno), "cannot make a socket: %s",
                    strerror(errno));
    }
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        err = fail(why, error_of(errno),
                   "cannot make socket %s: %s; choose another path",
                   at.sun_path, strerror(errno));
        close(fd);
        return err;
    }
    *out = fd; /* from here on removed by close */
    if (listen(fd, (int)c->tcp_backlog) != 0) {
        return fail(why, error_of(errno), "cannot listen on %s: %s",
                    at.sun_path, strerror(errno));
    }
    return QN_OK;
}

static int unix_claim(struct qn_listen *l, const struct line *why)
{
    char name[QN_CONFIG_TEXT_MAX];
    const char *path = l->config->unixsocket;
    if (qn_listen_name(l->config, name, sizeof name) != QN_OK) {
        return fail(why, error_of(errno),
                    "cannot make socket %s: %s; choose another path", path,
                    strerror(errno));
    }
    return lock_address(l, name, path, why);
}

static int open_unix(struct qn_listen *l, const struct line *why)
{
    const struct qn_config *c = l->config;
    int err = unix_claim(l, why);
    if (err == QN_OK) {
        err = unix_open(c, false, 0, &l->shared[0], why);
    }
    if (c->replica_ports == QN_REPLICA_PORTS_NONE) {
        return err;
    }
    for (qn_node_t i = 0; err == QN_OK && i < c->replicas; i++) {
        err = unix_open(c, true, i, &l->own[i], why);
    }
    return err;
}

/* ---- the public face ----------------------------------------------------- */

static bool is_unix(const struct qn_listen *l)
{
    return l->config->unixsocket[0] != '\0';
}

void qn_listen_init(struct qn_listen *l, const struct qn_config *c)
{
    *l = (struct qn_listen){.config = c, .lock = -1};
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        l->shared[i] = -1;
        l->own[i] = -1;
        l->pass_from[i] = l->pass_to[i] = -1;
    }
}

int qn_listen_open(struct qn_listen *l, char *why, size_t cap)
{
    const struct line line = {why, cap};
    int err = is_unix(l) ? open_unix(l, &line) : open_tcp(l, &line);
    if (err != QN_OK) {
        qn_listen_close(l);
    }
    return err;
}

int qn_listen_shared(const struct qn_listen *l, qn_node_t node)
{
    return l->shared[is_unix(l) ? 0 : node];
}

/* TCP tells by its port, a Unix socket by its path. */
static bool is_shared(const struct qn_listen *l, int fd)
{
    struct sockaddr_un at = {0};
    socklen_t bytes = sizeof at;
    if (!is_unix(l)) {
        return port_of(fd) == l->config->port;
    }
    return getsockname(fd, (struct sockaddr *)&at, &bytes) == 0 &&
           strcmp(at.sun_path, l->config->unixsocket) == 0;
}

int qn_listen_pass(struct qn_listen *l)
{
    int err = QN_OK;
    for (qn_node_t i = 0; err == QN_OK && i < l->config->replicas; i++) {
        if (is_unix(l) && (l->pass_from[i] < 0 || l->pass_to[i] < 0)) {
            close_one(&l->pass_from[i]);
            close_one(&l->pass_to[i]);
            err = qn_pass_open(&l->pass_from[i], &l->pass_to[i]);
        }
    }
    return err;
}

void qn_listen_adopt(struct qn_listen *l, qn_node_t node,
                     enum qn_listen_kind kind, int fd)
{
    bool shared = kind == QN_LISTEN_SOCKET && is_shared(l, fd);
    int *at = kind == QN_LISTEN_PASS_FROM ? &l->pass_from[node]
              : kind == QN_LISTEN_PASS_TO ? &l->pass_to[node]
              : shared                    ? &l->shared[is_unix(l) ? 0 : node]
                                          : &l->own[node];
    if (*at >= 0) {
        close(fd);
        return;
    }
    *at = fd;
    if (kind == QN_LISTEN_SOCKET && !shared && !is_unix(l)) {
        l->own_port[node] = port_of(fd);
    }
}

int qn_listen_own(struct qn_listen *l, qn_node_t node, char *why, size_t cap)
{
    const struct line line = {why, cap};
    const struct qn_config *c = l->config;
    if (l->own[node] >= 0 || c->replica_ports == QN_REPLICA_PORTS_NONE) {
        return QN_OK;
    }
    if (is_unix(l)) {
        return unix_open(c, true, node, &l->own[node], &line);
    }
    int err = tcp_open(c, own_port(c, node), false, &l->own[node], &line);
    if (err == QN_OK) {
        l->own_port[node] = port_of(l->own[node]);
    }
    return err;
}

void qn_listen_keep_only(struct qn_listen *l, qn_node_t node)
{
    for (qn_node_t i = 0; i < l->config->replicas; i++) {
        if (i != node) {
            close_one(&l->own[i]);
        }
    }
}

static void close_own(struct qn_listen *l, qn_node_t node)
{
    if (is_unix(l) && l->own[node] >= 0) {
        struct sockaddr_un at = unix_address(l->config, true, node);
        unlink(at.sun_path);
    }
    close_one(&l->own[node]);
}

void qn_listen_close_node(struct qn_listen *l, qn_node_t node)
{
    close_own(l, node);
}

void qn_listen_close(struct qn_listen *l)
{
    if (is_unix(l) && l->shared[0] >= 0) {
        struct sockaddr_un at = unix_address(l->config, false, 0);
        unlink(at.sun_path);
    }
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        close_own(l, i);
        close_one(&l->shared[i]);
        close_one(&l->pass_from[i]);
        close_one(&l->pass_to[i]);
    }
    close_one(&l->lock);
}
