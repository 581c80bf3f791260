/*
 * Processes of replicas: forked, signalled, awaited.
 *
 * A replica's process keeps its own descriptors and closes all others, above
 * all the supervisor's ends of the control channels: otherwise no replica would
 * see the end of the supervisor. It does keep the lock of the address.
 *
 * An adopted process is no child: it is signalled and awaited through its
 * pidfd, which never means a later process with the same id.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/log.h"
#include "core/place/area.h"
#include "core/wait/spin.h"
#include "kvs/supervisor/supervisor_internal.h"

/* So many replicas have a core each. */
static uint32_t cores_of(const struct qn_supervisor *s)
{
    struct qn_spin_opts o = {.cores = s->places.count,
                             .quota_milli = s->places.quota_milli};
    do {
        o.nodes++;
    } while (o.nodes <= QN_NODES_MAX && qn_doorbell_spin_budget(&o) != 0);
    return o.nodes - 1;
}

static struct qn_replica_spec spec_of(const struct qn_supervisor *s,
                                      qn_node_t self, uint64_t incarnation,
                                      int control)
{
    struct qn_replica_spec b = {.config = &s->config,
                                .self = self,
                                .nodes = qn_config_seats(&s->config),
                                .seats = qn_supervision_taken(&s->machine),
                                .incarnation = incarnation,
                                .first = !s->machine.served,
                                .control = control,
                                .listen_own = s->listen.own[self],
                                .lock = s->listen.lock,
                                .commons_fd = s->commons_fd,
                                .record_fd = s->record_fd[self],
                                .place = s->child[self].place,
                                .placement = s->placement,
                                .topology = &s->topology,
                                .cores = cores_of(s),
                                .tcp_port = s->listen.port,
                                .own_port = s->listen.own_port[self]};
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        bool home = i < b.nodes && s->places.numa_calls;
        b.doorbell_fd[i] = s->doorbell_fd[i];
        b.listen_shared[i] = qn_listen_shared(&s->listen, i);
        b.pass_from[i] = s->listen.pass_from[i];
        b.pass_to[i] = s->listen.pass_to[i];
        b.numa_node[i] = home ? s->child[i].place.numa_node : -1;
    }
    return b;
}

/* In the child: nothing of the supervisor's and of the others' stays open. */
static void keep_own(struct qn_supervisor *s, qn_node_t self)
{
    for (qn_node_t i = 0; i < qn_config_seats(&s->config); i++) {
        qn_supervisor_close(s->child[i].control);
        qn_supervisor_close(s->child[i].pidfd);
        qn_control_backlog_free(&s->child[i].backlog);
        if (i != self) {
            qn_supervisor_close(s->record_fd[i]);
        }
    }
    qn_outboxes_close(&s->outboxes);
    qn_supervisor_close(s->lock);
    qn_supervisor_close(s->lock_file);
    qn_supervisor_close(s->successor);
    close(s->signal_fd);
    qn_commons_destroy(s->commons);
    qn_listen_keep_only(&s->listen, self);
}

/* The child's side of fork: keep what is its own, and run. */
static _Noreturn void become_replica(struct qn_supervisor *s, qn_node_t self,
                                     uint64_t incarnation, int control)
{
    char name[16];
    snprintf(name, sizeof name, "quoind-%u", self);
    prctl(PR_SET_NAME, name);
    signal(SIGINT, SIG_IGN); /* of the terminal: the supervisor answers them */
    signal(SIGHUP, SIG_IGN);
    keep_own(s, self);
    sigprocmask(SIG_SETMASK, &s->signals_before, NULL);
    if (qn_place_pin(&s->places, &s->child[self].place) != QN_OK) {
        char text[QN_PLACE_TEXT_MAX];
        qn_log(QN_LOG_WARN, "replica %u cannot be pinned to %s; going on", self,
               qn_place_describe(&s->child[self].place, text));
    }
    struct qn_replica_spec spec = spec_of(s, self, incarnation, control);
    exit(s->opts->replica_main(&spec));
}

/* Its own port is lost if both its process and its supervisor had died. */
static void reopen_own_port(struct qn_supervisor *s, qn_node_t i)
{
    char why[QN_CONFIG_WHY_MAX];
    if (s->machine.served &&
        qn_listen_own(&s->listen, i, why, sizeof why) != QN_OK) {
        qn_log(QN_LOG_WARN, "replica %u has no port of its own: %s", i, why);
    }
}

/* Without shared state each voter's record is memory that only its process and
 * this one have; this one keeps it for the next incarnation. What died with its
 * process while there was no supervisor is made anew, as void: that incarnation
 * does not vote until the others have agreed that it begins anew. */
static int hold_record(struct qn_supervisor *s, qn_node_t i)
{
    struct qn_area record;
    if (s->config.shared_state || s->record_fd[i] >= 0) {
        return QN_OK;
    }
    int err =
        qn_area_create(&record, "quoin-record", QN_COMMONS_RECORD_BYTES, true);
    if (err == QN_OK) {
        s->record_fd[i] = record.fd;
        record.fd = -1; /* kept; only the mapping goes */
        qn_area_destroy(&record);
    }
    return err;
}

int qn_supervisor_spawn(struct qn_supervisor *s, qn_node_t i,
                        uint64_t *incarnation)
{
    struct qn_child *c = &s->child[i];
    int pair[2];
    QN_ASSERT(!c->runs);
    QN_ASSERT(c->control < 0);
    reopen_own_port(s, i);
    const int held = hold_record(s, i);
    if (held != QN_OK) {
        return held == QN_ENOMEM ? QN_ENOMEM : QN_EMFILE;
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return QN_EMFILE;
    }
    /* The commons' count can have been overwritten; the machine's is not. */
    const uint64_t counted = qn_commons_next_incarnation(s->commons);
    if (counted < QN_COMMONS_LIVES_MAX / 2) {
        *incarnation = QN_MAX(*incarnation, counted);
    }
    c->control = pair[0];
    const pid_t pid = fork();
    if (pid == 0) {
        become_replica(s, i, *incarnation, pair[1]);
    }
    const int err = errno;
    close(pair[1]);
    if (pid < 0) {
        close(c->control);
        c->control = -1;
        return err == ENOMEM ? QN_ENOMEM : QN_EAGAIN;
    }
    c->pid = pid;
    c->runs = true;
    return QN_OK;
}

void qn_supervisor_kill(const struct qn_child *c, int signum)
{
    if (c->pidfd >= 0) {
        (void)syscall(SYS_pidfd_send_signal, c->pidfd, signum, NULL, 0);
    } else if (c->runs && c->pid > 0) {
        kill(c->pid, signum);
    }
}

void qn_supervisor_kill_and_wait(struct qn_child *c)
{
    struct pollfd end = {.fd = c->pidfd, .events = POLLIN};
    int done;
    QN_ASSERT(c->runs);
    qn_supervisor_kill(c, SIGKILL);
    do {
        done = c->pidfd >= 0 ? poll(&end, 1, -1) : waitpid(c->pid, NULL, 0);
    } while (done < 0 && errno == EINTR);
    c->runs = false;
}

/* It lives, and was stopped: `PID (name) T ...`. */
bool qn_supervisor_is_stopped(const struct qn_child *c)
{
    char path[32];
    char text[128];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)c->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    qn_supervisor_close(fd);
    text[QN_MAX(got, 0)] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end != NULL && (strncmp(name_end, ") T", 3) == 0 ||
                                strncmp(name_end, ") t", 3) == 0);
}

bool qn_supervisor_same_program(pid_t pid)
{
    char path[48];
    struct stat own;
    struct stat its;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    return stat("/proc/self/exe", &own) == 0 && stat(path, &its) == 0 &&
           own.st_dev == its.st_dev && own.st_ino == its.st_ino;
}
