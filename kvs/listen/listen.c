/*
 * The sockets of a server, and the lock on their address.
 *
 * The lock is a file in the run-time folder (kvs/config/rundir.h), named by the
 * address. It is held as long as any process of the server runs, however the
 * process ends; replicas hold it too, because they may outlive their
 * supervisor. A Unix socket's address is named by its directory's identity, so
 * that two spellings of a path get the same name.
 */
#include "kvs/listen/listen.h"

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
#include "core/base/log.h"
#include "kvs/config/rundir.h"
#include "kvs/listen/fd_passing.h"
#include "kvs/listen/listen_internal.h"

int qn_listen_fail(const struct qn_error_line *why, int err, const char *fmt,
                   ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(why->text, why->cap, fmt, args);
    va_end(args);
    return err;
}

int qn_listen_error(int e)
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

void qn_listen_close_one(int *fd)
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

int qn_listen_lock(struct qn_listen *l, const char *name, const char *shown,
                   const struct qn_error_line *why)
{
    char path[QN_RUNDIR_PATH_MAX];
    int fd = qn_rundir_path(l->config, name, "server", path);
    if (fd != QN_OK) {
        qn_log(QN_LOG_WARN,
               "there is no run-time folder (%s): a later quoind cannot adopt "
               "this server; give --run-dir",
               qn_strerror(fd));
        return QN_OK; /* bind finds another server */
    }
    fd = qn_rundir_lock(path);
    if (fd >= 0) {
        l->lock = fd;
        return QN_OK;
    }
    return qn_listen_fail(
        why, fd,
        fd == QN_EADDRINUSE
            ? "a quoind serves %s already; stop it, or choose another "
              "address"
            : "cannot lock %s",
        shown);
}

/* ---- the public face ----------------------------------------------------- */

const char *qn_listen_shown(const struct qn_config *c, uint32_t port,
                            char *text)
{
    if (c->unixsocket[0] != '\0') {
        snprintf(text, QN_LISTEN_SHOWN_MAX, "%s", c->unixsocket);
    } else {
        snprintf(text, QN_LISTEN_SHOWN_MAX,
                 strchr(c->bind, ':') != NULL ? "[%s]:%u" : "%s:%u", c->bind,
                 port);
    }
    return text;
}

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
    const struct qn_error_line line = {why, cap};
    int err = is_unix(l) ? qn_listen_open_unix(l, &line)
                         : qn_listen_open_tcp(l, &line);
    if (err != QN_OK) {
        qn_listen_close(l);
    }
    return err;
}

int qn_listen_shared(const struct qn_listen *l, qn_node_t node)
{
    return l->shared[is_unix(l) ? 0 : node];
}

/* A TCP socket is recognized by its port, a Unix socket by its path. */
static bool is_shared(const struct qn_listen *l, int fd)
{
    struct sockaddr_un at = {0};
    socklen_t bytes = sizeof at;
    if (!is_unix(l)) {
        return qn_listen_port_of(fd) == l->config->port;
    }
    return getsockname(fd, (struct sockaddr *)&at, &bytes) == 0 &&
           strcmp(at.sun_path, l->config->unixsocket) == 0;
}

int qn_listen_pass(struct qn_listen *l)
{
    int err = QN_OK;
    for (qn_node_t i = 0; err == QN_OK && i < qn_config_seats(l->config); i++) {
        if (is_unix(l) && (l->pass_from[i] < 0 || l->pass_to[i] < 0)) {
            qn_listen_close_one(&l->pass_from[i]);
            qn_listen_close_one(&l->pass_to[i]);
            err = qn_fd_passing_open(&l->pass_from[i], &l->pass_to[i]);
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
        l->own_port[node] = qn_listen_port_of(fd);
    }
}

int qn_listen_own(struct qn_listen *l, qn_node_t node, char *why, size_t cap)
{
    const struct qn_error_line line = {why, cap};
    if (l->own[node] >= 0 ||
        l->config->replica_ports == QN_REPLICA_PORTS_NONE) {
        return QN_OK;
    }
    if (is_unix(l)) {
        return qn_listen_own_unix(l, node, &line);
    }
    return qn_listen_own_tcp(l, node, &line);
}

void qn_listen_keep_only(struct qn_listen *l, qn_node_t node)
{
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        if (i != node) {
            qn_listen_close_one(&l->own[i]);
        }
    }
}

static void close_own(struct qn_listen *l, qn_node_t node)
{
    if (is_unix(l) && l->own[node] >= 0) {
        qn_listen_unlink(l->config, true, node);
    }
    qn_listen_close_one(&l->own[node]);
}

void qn_listen_close_node(struct qn_listen *l, qn_node_t node)
{
    close_own(l, node);
}

void qn_listen_close(struct qn_listen *l)
{
    if (is_unix(l) && l->shared[0] >= 0) {
        qn_listen_unlink(l->config, false, 0);
    }
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        close_own(l, i);
        qn_listen_close_one(&l->shared[i]);
        qn_listen_close_one(&l->pass_from[i]);
        qn_listen_close_one(&l->pass_to[i]);
    }
    qn_listen_close_one(&l->lock);
}
