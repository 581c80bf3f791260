/*
 * Replicas that live and cannot be connected to (kvs/supervisor/vacancy.h):
 * their queues are full, or who comes to them is turned away. They are no
 * reason to begin anything in their place.
 *
 * Before the group is ours: while nobody at all has been met, nothing is known
 * but that somebody is there, and he is asked again until he answers or has
 * ended. As soon as one has said all, his group's memory says of each of the
 * others whether he lives; who does is late: he counts as serving, his end is
 * seen by pidfd, and he is asked again ASK_MS apart, since the queue empties
 * when he goes on; also while the server drains, since the
 * replica has clients to answer. From then on the supervisor treats it like any
 * replica that answered late (supervisor_adopt.c).
 *
 * A pidfd is opened by an id that the kernel named a moment ago, so it is asked
 * once more: named again, that process had not ended in between.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/base/log.h"
#include "core/place/hold.h"
#include "kvs/supervisor/supervisor_adopt_internal.h"

enum { ASK_MS = 100 };

/* ---- before the group is ours -------------------------------------------- */

static int ms_until(qn_time_t at)
{
    qn_time_t now = qn_clock_now();
    return (int)((at - QN_MIN(now, at) + QN_MS - 1) / QN_MS);
}

static bool somebody_is_busy(const struct qn_supervisor *s)
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
    return somebody_is_busy(s) ? ms_until(s->adoption->ask_at) : -1;
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
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        if (a->connected[i]) {
            return false;
        }
        bool waits = qn_vacancy_step(a->reach[i], &unknown) == QN_VACANCY_WAIT;
        if (waits && !wait && !a->said) {
            a->said = true;
            qn_log(QN_LOG_WARN,
                   "replica %u runs there and takes no connection: its queue "
                   "is full, as if it stood still; waiting for it (kill -CONT "
                   "the processes quoind-N there, or kill -9 to end them)",
                   i);
        }
        wait = wait || waits;
    }
    return wait;
}

/* ---- the group is ours --------------------------------------------------- */

/* Who holds `i`, or lives there according to its word. *pid: 0: unknown. */
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
static struct qn_vacancy look_at(const struct qn_supervisor *s, qn_node_t i,
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

static void watch(struct qn_supervisor *s, qn_node_t i, pid_t pid, int pidfd)
{
    struct qn_supervised *r = &s->replica[i];
    qn_supervisor_close(r->pidfd);
    r->pid = pid;
    r->pidfd = pidfd;
}

bool qn_supervisor_unmet(struct qn_supervisor *s, qn_node_t i)
{
    struct qn_adoption *a = s->adoption;
    struct qn_supervised *r = &s->replica[i];
    uint64_t inc;
    pid_t pid;
    int pidfd;
    const struct qn_vacancy v = look_at(s, i, &inc, &pid, &pidfd);
    if (qn_vacancy_step(a->reach[i], &v) == QN_VACANCY_START) {
        qn_supervisor_close(pidfd);
        return false;
    }
    watch(s, i, pid, pidfd);
    a->unmet[i] = true;
    a->ask_at = 0;
    r->incarnation = QN_MAX(a->inc[i], inc);
    s->lives = QN_MAX(s->lives, r->incarnation);
    if (r->incarnation == a->inc[i]) {
        r->outbox_fd = a->outbox[i];
        a->outbox[i] = -1;
    }
    r->state = QN_SUPERVISED_SERVING;
    r->hears = false; /* it is told when it is met */
    r->born = qn_clock_now();
    s->adopted++;
    qn_log(QN_LOG_WARN,
           "replica %u (process %d) lives and takes no connection; it is asked "
           "again until it does (if it stands still: kill -CONT %d, or kill -9 "
           "%d for a new one)",
           i, (int)pid, (int)pid, (int)pid);
    return true;
}

/* @return true: it is not unmet any more. */
static bool ask(struct qn_supervisor *s, qn_node_t i)
{
    struct qn_supervised *r = &s->replica[i];
    uint64_t inc;
    pid_t pid;
    int pidfd;
    qn_supervisor_connect(s, i);
    if (s->adoption->reach[i] == QN_REACH_MET) {
        r->hears = true;
        if (s->draining) { /* the other replicas were told before */
            qn_supervisor_say(s, i, QN_CTL_DRAIN);
        }
        return true;
    }
    const struct qn_vacancy v = look_at(s, i, &inc, &pid, &pidfd);
    if (qn_vacancy_step(s->adoption->reach[i], &v) == QN_VACANCY_START) {
        qn_supervisor_close(pidfd);
        qn_supervisor_ended(s, i, 0);
        if (s->draining) {
            qn_supervisor_drain_check(s);
        }
        return true;
    }
    watch(s, i, pid, pidfd);
    return false;
}

static bool some_unmet(const struct qn_supervisor *s)
{
    for (qn_node_t i = 0; s->adoption != NULL && i < QN_NODES_MAX; i++) {
        if (s->adoption->unmet[i]) {
            return true;
        }
    }
    return false;
}

int qn_supervisor_late_wait_ms(const struct qn_supervisor *s)
{
    return some_unmet(s) ? ms_until(s->adoption->ask_at) : -1;
}

void qn_supervisor_late_turn(struct qn_supervisor *s)
{
    struct qn_adoption *a = s->adoption;
    qn_time_t now = qn_clock_now();
    for (qn_node_t i = 0; a != NULL && i < s->config.replicas; i++) {
        /* Before its next life is started, which is nobody's to adopt. */
        a->unmet[i] = a->unmet[i] && s->replica[i].state != QN_SUPERVISED_ENDED;
    }
    if (!some_unmet(s) || now < a->ask_at) {
        return;
    }
    a->ask_at = now + ASK_MS * QN_MS;
    for (qn_node_t i = 0; i < s->config.replicas; i++) {
        if (a->unmet[i] && ask(s, i)) {
            a->unmet[i] = false;
        }
    }
}
