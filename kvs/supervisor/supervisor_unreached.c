/*
 * Replicas that live and cannot be connected to (kvs/supervision/vacancy.h):
 * their queues are full, or those that come to them are turned away. They are
 * no reason to begin anything in their place.
 *
 * Before the group is ours: while no replica has been met, nothing is known but
 * that a process is there, and it is asked again until it answers or has ended.
 * As soon as one replica has said all, its group's memory says of each of the
 * others whether it lives. One that does is unreached: it counts as serving,
 * its end is seen by pidfd, and it is asked again ASK_MS apart, since the queue
 * empties when it resumes; also while the server drains, since the replica has
 * clients to answer. From then on it is treated like any replica that answered
 * late (kvs/supervision/adoption.c).
 *
 * A pidfd is opened by an id that the kernel named a moment ago, so it is asked
 * once more: named again, that process had not ended in between.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/log.h"
#include "core/place/hold.h"
#include "core/place/liveness.h"
#include "kvs/supervisor/supervisor_adopt_internal.h"

enum { ASK_MS = 100 };

/* ---- before the group is ours -------------------------------------------- */

static bool some_busy(const struct qn_supervisor *s)
{
    const struct qn_adoption *a = s->adoption;
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        if (a->reach[i] == QN_REACH_BUSY) {
            return true;
        }
    }
    return false;
}

int qn_supervisor_ask_wait_ms(const struct qn_supervisor *s)
{
    return some_busy(s) ? qn_supervisor_ms_until(s->adoption->ask_at) : -1;
}

void qn_supervisor_ask_again(struct qn_supervisor *s)
{
    struct qn_adoption *a = s->adoption;
    qn_time_t now = qn_clock_now();
    if (now < a->ask_at) {
        return;
    }
    a->ask_at = now + ASK_MS * QN_MS;
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        if (a->reach[i] == QN_REACH_BUSY) {
            qn_supervisor_connect(s, i);
        }
    }
}

bool qn_supervisor_all_busy(struct qn_supervisor *s)
{
    const struct qn_vacancy unknown = {0};
    struct qn_adoption *a = s->adoption;
    bool wait = false;
    if (s->machine.orphans.connected != 0) {
        return false;
    }
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        bool waits = qn_vacancy_step(a->reach[i], &unknown) == QN_VACANCY_WAIT;
        if (waits && !wait && !a->said) {
            a->said = true;
            qn_log(QN_LOG_WARN,
                   "replica %u runs there and takes no connection: its queue "
                   "is full, as if it were stalled; waiting for it (kill -CONT "
                   "the processes quoind-N there, or kill -9 to end them)",
                   i);
        }
        wait = wait || waits;
    }
    return wait;
}

/* ---- the group is ours --------------------------------------------------- */

/* Which process holds `i`, or lives there by its liveness word. *pid: 0:
 * unknown.
 */
static struct qn_vacancy look(const struct qn_supervisor *s, qn_node_t i,
                              uint64_t *inc, pid_t *pid)
{
    struct qn_vacancy v = {.known = true};
    v.word = qn_liveness_incarnation(s->commons, i, inc, pid);
    v.held = qn_hold_look(s->commons_fd, i, pid);
    v.runs = v.held || v.word == QN_LIVENESS_ALIVE;
    return v;
}

/* Likewise. *pidfd: of that process; -1: it has ended, or cannot be seen. */
static struct qn_vacancy inspect(const struct qn_supervisor *s, qn_node_t i,
                                 uint64_t *inc, pid_t *pid, int *pidfd)
{
    pid_t again = 0;
    struct qn_vacancy v = look(s, i, inc, pid);
    *pidfd = *pid > 0 ? (int)syscall(SYS_pidfd_open, *pid, 0) : -1;
    if (*pid > 0 && !v.held) {
        v.runs = *pidfd >= 0;
    }
    if (*pidfd >= 0) {
        const struct qn_vacancy now = look(s, i, inc, &again);
        if (again != *pid || now.held != v.held || now.word != v.word) {
            close(*pidfd);
            *pidfd = -1;
            v = now; /* as it is; its process will be asked for again */
        }
    }
    return v;
}

static void watch(struct qn_supervisor *s, qn_node_t i, uint64_t inc, pid_t pid,
                  int pidfd)
{
    struct qn_child *c = &s->child[i];
    QN_ASSERT(c->control < 0);
    qn_supervisor_close(c->pidfd);
    c->pid = pid;
    c->pidfd = pidfd;
    c->runs = true;
    qn_supervisor_event(s,
                        (struct qn_supervision_event){.kind = QN_ON_UNREACHED,
                                                      .node = i,
                                                      .incarnation = inc,
                                                      .pid = pid});
}

void qn_supervisor_account_for(struct qn_supervisor *s, qn_node_t i)
{
    struct qn_adoption *a = s->adoption;
    uint64_t inc;
    pid_t pid;
    int pidfd;
    const struct qn_vacancy v = inspect(s, i, &inc, &pid, &pidfd);
    if (qn_vacancy_step(a->reach[i], &v) == QN_VACANCY_START) {
        const uint64_t last = s->machine.orphans.newest[i];
        qn_supervisor_close(pidfd);
        qn_supervisor_event(
            s, (struct qn_supervision_event){
                   .kind = QN_ON_VACANT,
                   .node = i,
                   .shut_down = qn_liveness_left(s->commons, i, last)});
        return;
    }
    a->ask_at = 0;
    watch(s, i, inc, pid, pidfd);
}

/* ---- asked again --------------------------------------------------------- */

static void ask(struct qn_supervisor *s, qn_node_t i)
{
    uint64_t inc;
    pid_t pid;
    int pidfd;
    qn_supervisor_connect(s, i);
    if (s->adoption->reach[i] == QN_REACH_MET) {
        return;
    }
    const struct qn_vacancy v = inspect(s, i, &inc, &pid, &pidfd);
    if (qn_vacancy_step(s->adoption->reach[i], &v) == QN_VACANCY_START) {
        const uint64_t last = s->machine.replica[i].incarnation;
        qn_supervisor_close(pidfd);
        s->child[i].runs = false;
        qn_supervisor_event(
            s, (struct qn_supervision_event){
                   .kind = QN_ON_EXIT,
                   .node = i,
                   .shut_down = qn_liveness_left(s->commons, i, last)});
        return;
    }
    watch(s, i, inc, pid, pidfd);
}

int qn_supervisor_unreached_wait_ms(const struct qn_supervisor *s)
{
    return s->machine.orphans.unreached != 0
               ? qn_supervisor_ms_until(s->adoption->ask_at)
               : -1;
}

void qn_supervisor_unreached_turn(struct qn_supervisor *s)
{
    struct qn_adoption *a = s->adoption;
    const qn_time_t now = qn_clock_now();
    if (s->machine.orphans.unreached == 0 || now < a->ask_at) {
        return;
    }
    a->ask_at = now + ASK_MS * QN_MS;
    for (qn_node_t i = 0; !s->over && i < qn_config_seats(&s->config); i++) {
        if ((s->machine.orphans.unreached >> i & 1) != 0) {
            ask(s, i);
        }
    }
}
