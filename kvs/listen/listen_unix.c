/*
 * Unix sockets: lock, then bind. A socket that exists and does not answer was
 * left by a killed server, and is removed. A path that is not a socket is not
 * touched.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "kvs/listen/listen_internal.h"

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

/* Remove the socket that a killed server left at the path. QN_OK: the path is
 * free. */
static int unix_clear(const struct sockaddr_un *at,
                      const struct qn_error_line *why)
{
    struct stat st;
    if (lstat(at->sun_path, &st) != 0) {
        return QN_OK; /* bind reports the error, if any */
    }
    if (!S_ISSOCK(st.st_mode)) {
        return qn_listen_fail(why, QN_EADDRINUSE,
                              "%s exists and is no socket; choose another path",
                              at->sun_path);
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return qn_listen_fail(why, qn_listen_error(errno),
                              "cannot make a socket: %s", strerror(errno));
    }
    bool dead = connect(fd, (const struct sockaddr *)at, sizeof *at) != 0 &&
                errno == ECONNREFUSED;
    close(fd);
    if (!dead || unlink(at->sun_path) != 0) {
        return qn_listen_fail(
            why, QN_EADDRINUSE,
            "a process listens on %s; stop it, or choose another path",
            at->sun_path);
    }
    return QN_OK;
}

static int unix_open(const struct qn_config *c, bool own, qn_node_t node,
                     int *out, const struct qn_error_line *why)
{
    struct sockaddr_un at = unix_address(c, own, node);
    int err = unix_clear(&at, why);
    if (err != QN_OK) {
        return err;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return qn_listen_fail(why, qn_listen_error(errno),
                              "cannot make a socket: %s", strerror(errno));
    }
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        err = qn_listen_fail(why, qn_listen_error(errno),
                             "cannot make socket %s: %s; choose another path",
                             at.sun_path, strerror(errno));
        close(fd);
        return err;
    }
    *out = fd; /* from here on removed by close */
    if (listen(fd, (int)c->tcp_backlog) != 0) {
        return qn_listen_fail(why, qn_listen_error(errno),
                              "cannot listen on %s: %s", at.sun_path,
                              strerror(errno));
    }
    return QN_OK;
}

static int unix_claim(struct qn_listen *l, const struct qn_error_line *why)
{
    char name[QN_CONFIG_TEXT_MAX];
    const char *path = l->config->unixsocket;
    if (qn_listen_name(l->config, name, sizeof name) != QN_OK) {
        return qn_listen_fail(why, qn_listen_error(errno),
                              "cannot make socket %s: %s; choose another path",
                              path, strerror(errno));
    }
    return qn_listen_lock(l, name, path, why);
}

int qn_listen_open_unix(struct qn_listen *l, const struct qn_error_line *why)
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

int qn_listen_own_unix(struct qn_listen *l, qn_node_t node,
                       const struct qn_error_line *why)
{
    return unix_open(l->config, true, node, &l->own[node], why);
}

void qn_listen_unlink(const struct qn_config *c, bool own, qn_node_t node)
{
    struct sockaddr_un at = unix_address(c, own, node);
    unlink(at.sun_path);
}
