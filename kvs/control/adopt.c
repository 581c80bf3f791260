/*
 * The sockets of an adoption, and the options that go through them.
 *
 * The sockets are in the run-time folder, which only this user can write to. A
 * socket that accepts a connection belongs to a running replica, and the kernel
 * names the process. A socket that a killed process has left refuses, and the
 * next process of the same role removes it. One process holds each role: the
 * supervisor by the lock beside its socket, a replica by its node
 * (core/place/hold.h) in a server that holds its address.
 *
 * Options travel as the text of a configuration file, so that versions with
 * different options can tell which they do not know.
 */
#include "kvs/control/adopt.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "kvs/config/rundir.h"
#include "kvs/control/control_channel.h"
#include "kvs/control/formats.h"
#include "kvs/listen/listen.h"

#define CONFIG_BYTES_MAX 16384u

/* ---- sockets ------------------------------------------------------------- */

static int error_of(int e)
{
    return e == EADDRINUSE                   ? QN_EADDRINUSE
           : e == EMFILE || e == ENFILE      ? QN_EMFILE
           : e == EAGAIN || e == EWOULDBLOCK ? QN_EAGAIN
                                             : QN_EIO;
}

/* @return QN_OK; QN_ENOENT: it has no name, or there is no run-time folder. */
static int address_of(const struct qn_config *c, const char *role,
                      struct sockaddr_un *at)
{
    char name[QN_CONFIG_TEXT_MAX];
    static_assert(sizeof at->sun_path >= QN_RUNDIR_PATH_MAX, "it fits");
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    return qn_listen_name(c, name, sizeof name) == QN_OK &&
                   qn_rundir_path(c, name, role, at->sun_path) == QN_OK
               ? QN_OK
               : QN_ENOENT;
}

/* An existing socket belonged to a dead process: the caller holds the role. */
static int listening(const struct qn_config *c, const char *role)
{
    struct sockaddr_un at;
    int err = address_of(c, role, &at);
    if (err != QN_OK) {
        return err;
    }
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return error_of(errno);
    }
    (void)unlink(at.sun_path);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(fd, 4) != 0) {
        err = error_of(errno);
        close(fd);
        return err;
    }
    return fd;
}

static void role_of(qn_node_t node, char *role, size_t cap)
{
    QN_ASSERT(node < QN_NODES_MAX);
    snprintf(role, cap, "r%u", node);
}

static int locked(const struct qn_config *c)
{
    struct sockaddr_un at;
    int err = address_of(c, "s.lock", &at);
    return err == QN_OK ? qn_rundir_lock(at.sun_path) : err;
}

int qn_adopt_lock(const struct qn_config *c, int *lock)
{
    int held = locked(c);
    int fd = held < 0 ? held : listening(c, "s");
    if (fd >= 0) {
        *lock = held;
    } else if (held >= 0) {
        close(held);
    }
    return fd;
}

int qn_adopt_listen(const struct qn_config *c, qn_node_t self)
{
    char role[16];
    role_of(self, role, sizeof role);
    return listening(c, role);
}

static void forget(const struct qn_config *c, const char *role)
{
    struct sockaddr_un at;
    if (address_of(c, role, &at) == QN_OK) {
        (void)unlink(at.sun_path);
    }
}

void qn_adopt_forget(const struct qn_config *c)
{
    char role[16];
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        role_of(i, role, sizeof role);
        forget(c, role);
    }
    forget(c, "s");
}

/* True if the process at the other end belongs to this user. */
static bool is_ours(int fd, pid_t *pid)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 ||
        peer.uid != geteuid()) {
        return false;
    }
    *pid = peer.pid;
    return true;
}

int qn_adopt_accept(int listener, pid_t *pid)
{
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) {
            return QN_EAGAIN;
        }
        if (is_ours(fd, pid)) {
            return fd;
        }
        close(fd);
    }
}

static int connected(const struct qn_config *c, const char *role, pid_t *pid)
{
    struct sockaddr_un at;
    if (address_of(c, role, &at) != QN_OK) {
        return QN_ENOENT;
    }
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return error_of(errno);
    }
    int err = connect(fd, (struct sockaddr *)&at, sizeof at) == 0 ? QN_OK
              : errno == EAGAIN                                   ? QN_EBUSY
                                                                  : QN_ENOENT;
    if (err == QN_OK && is_ours(fd, pid)) {
        return fd;
    }
    close(fd);
    return err == QN_OK ? QN_ENOENT : err;
}

int qn_adopt_pidfd(int fd, pid_t pid)
{
    struct pollfd end = {.fd = fd, .events = POLLIN};
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd >= 0 && poll(&end, 1, 0) == 1 && (end.revents & POLLHUP) != 0) {
        close(pidfd); /* it had ended: another process may have its id */
        pidfd = -1;
    }
    return pidfd >= 0 ? pidfd : QN_ENOENT;
}

int qn_adopt_connect(const struct qn_config *c, qn_node_t node, pid_t *pid)
{
    char role[16];
    role_of(node, role, sizeof role);
    return connected(c, role, pid);
}

int qn_adopt_succeed(const struct qn_config *c, pid_t *pid)
{
    int fd = connected(c, "s", pid);
    if (fd != QN_ENOENT) {
        return fd;
    }
    int own = locked(c); /* is it free? */
    if (own >= 0) {
        close(own);
        return QN_ENOENT;
    }
    return own;
}

/* ---- versions ------------------------------------------------------------ */

uint32_t qn_adopt_version(uint64_t oldest, uint64_t newest)
{
    uint64_t v = QN_MIN(newest, QN_ADOPT_VERSION);
    static_assert(QN_ADOPT_OLDEST <= QN_ADOPT_VERSION, "a range");
    return v >= oldest && v >= QN_ADOPT_OLDEST ? (uint32_t)v : 0;
}

int qn_adopt_give_formats(int control)
{
    int err = QN_OK;
    for (uint32_t i = 0; err == QN_OK && i < QN_FORMATS; i++) {
        const struct qn_control_msg m = {
            .kind = QN_CTL_FORMAT,
            .u.format = {.format = i, .version = qn_format_at(i)->newest}};
        err = qn_control_send(control, &m, -1);
    }
    return err;
}

/* ---- options ------------------------------------------------------------- */

int qn_adopt_config_write(const struct qn_config *from)
{
    struct qn_config copy = *from;
    const struct qn_config *c = &copy;
    char text[CONFIG_BYTES_MAX];
    char room[QN_CONFIG_NUMBER_MAX];
    struct qn_config_option o;
    size_t n = 0;
    if (copy.min_replicas_auto) {
        copy.min_replicas_to_write = QN_MIN_AUTO;
    }
    for (uint32_t i = 0; qn_config_at(i, &o); i++) {
        if (!o.fixed) {
            n += (size_t)snprintf(text + n, sizeof text - n, "%s %s\n", o.name,
                                  qn_config_value(c, i, room));
            QN_ASSERT(n < sizeof text);
        }
    }
    int fd = memfd_create("quoin-config", MFD_CLOEXEC);
    if (fd < 0) {
        return QN_EMFILE;
    }
    if (write(fd, text, n) != (ssize_t)n) {
        close(fd);
        return QN_ENOMEM;
    }
    return fd;
}

/* One line "name value", NUL instead of its newline. */
static int read_line(struct qn_config *c, char *line, char *why, size_t cap)
{
    char *value = strchr(line, ' ');
    if (value == NULL) {
        return QN_EINVAL;
    }
    *value++ = '\0';
    return qn_config_start(c, line, value, why, cap);
}

int qn_adopt_config_read(struct qn_config *c, int fd, char *why, size_t cap)
{
    char text[CONFIG_BYTES_MAX];
    char reason[QN_CONFIG_WHY_MAX] = "it is damaged";
    struct qn_config got;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    int err = n > 0 && text[n - 1] == '\n' ? QN_OK : QN_EINVAL;
    qn_config_init(&got);
    for (char *line = text; err == QN_OK && line < text + n;) {
        char *end = memchr(line, '\n', (size_t)(text + n - line));
        *end = '\0';
        err = read_line(&got, line, reason, sizeof reason);
        line = end + 1;
    }
    if (err != QN_OK) {
        snprintf(why, cap,
                 "the running group's configuration cannot be read (%.120s); "
                 "start the quoind that it is of",
                 reason);
        return QN_ECORRUPT;
    }
    qn_config_min_resolve(&got);
    *c = got;
    return QN_OK;
}

/* Options of the supervisor alone, or of each process for itself. The last
 * one is lowered to what the machine allows. */
static bool is_free(const char *name)
{
    static const char *const names[] = {"log-level",  "restart",
                                        "events-dir", "upgrade-timeout",
                                        "maxclients", "run-dir"};
    for (size_t i = 0; i < QN_ARRAY_COUNT(names); i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* With a Unix socket there is no TCP. */
static bool means_nothing(const struct qn_config *group, const char *name)
{
    return group->unixsocket[0] != '\0' &&
           (strcmp(name, "port") == 0 || strcmp(name, "bind") == 0);
}

int qn_adopt_config_merge(struct qn_config *group, const struct qn_config *own,
                          char *why, size_t cap)
{
    char theirs[QN_CONFIG_NUMBER_MAX];
    char ours[QN_CONFIG_NUMBER_MAX];
    struct qn_config_option o;
    for (uint32_t i = 0; qn_config_at(i, &o); i++) {
        const char *a = qn_config_value(group, i, theirs);
        const char *b = qn_config_value(own, i, ours);
        if (o.fixed || o.when != QN_CONFIG_AT_START || is_free(o.name) ||
            means_nothing(group, o.name) || strcmp(a, b) == 0 ||
            strcmp(b, "auto") == 0) {
            continue;
        }
        snprintf(why, cap,
                 "--%s %.48s contradicts the running replicas, which use %.48s;"
                 " give --%s %.48s, or end them",
                 o.name, b, a, o.name, a);
        return QN_EINVAL;
    }
    group->log_level = own->log_level;
    group->restart = own->restart;
    group->upgrade_timeout = own->upgrade_timeout;
    memcpy(group->events_dir, own->events_dir, sizeof group->events_dir);
    return QN_OK;
}
