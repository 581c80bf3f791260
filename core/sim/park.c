/*
 * core/wait/park.h on the simulated machine: sleep and wake-up.
 *
 * Each call is a system call: a point, and a full barrier. When no node can
 * run, the scheduler lets time pass, and a sleeper with a deadline times out.
 */
#include "core/wait/park.h"

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/sim/machine.h"

static void enter_kernel(enum qn_sim_kind kind, const volatile void *word,
                         int fd, bool gives)
{
    if (qn_sim.self != QN_SIM_NO_NODE) {
        qn_sim.scheduler->point(&(struct qn_sim_access){
            .kind = kind,
            .at = word,
            .bytes = word != NULL ? sizeof(uint32_t) : 0,
            .order = memory_order_seq_cst});
        qn_sim.memory->sync(word, fd, gives);
    }
}

static int sleep_on(const volatile void *word, int fd, qn_time_t deadline)
{
    QN_ASSERT(qn_sim.self != QN_SIM_NO_NODE);
    struct qn_sim_node *n = &qn_sim.node[qn_sim.self];
    n->state = QN_SIM_SLEEPS;
    n->word = word;
    n->fd = fd;
    n->deadline = deadline;
    n->timed_out = false;
    n->sleep = ++qn_sim.sleeps;
    qn_sim.scheduler->leave();
    if (n->timed_out) {
        return QN_ETIMEDOUT;
    }
    qn_sim.memory->sync(word, fd, false); /* of the call that woke it */
    return QN_OK;
}

static bool sleeps_on(const struct qn_sim_node *n, const volatile void *word,
                      int fd)
{
    return n->state == QN_SIM_SLEEPS && n->word == word && n->fd == fd;
}

static void wake_node(uint32_t i)
{
    qn_sim.node[i].state = QN_SIM_READY;
    if (qn_sim.self != QN_SIM_NO_NODE) {
        qn_sim.scheduler->woken(i);
    }
}

static void wake(const volatile void *word, int fd)
{
    for (uint32_t i = 0; i < qn_sim.nodes; i++) {
        if (sleeps_on(&qn_sim.node[i], word, fd)) {
            wake_node(i);
        }
    }
}

/* The one that has slept longest, as futex(2) has it. */
static void wake_one(const volatile void *word)
{
    uint32_t first = QN_SIM_NO_NODE;
    for (uint32_t i = 0; i < qn_sim.nodes; i++) {
        if (sleeps_on(&qn_sim.node[i], word, -1) &&
            (first == QN_SIM_NO_NODE ||
             qn_sim.node[i].sleep < qn_sim.node[first].sleep)) {
            first = i;
        }
    }
    if (first != QN_SIM_NO_NODE) {
        wake_node(first);
    }
}

int qn_park_word(qn_a32 *word, uint32_t seen, qn_time_t deadline)
{
    uint32_t now;
    if (qn_sim.self == QN_SIM_NO_NODE) { /* outside of a run none wakes it */
        qn_sim_direct.load(&now, word, sizeof now, memory_order_seq_cst);
        QN_ASSERT(now != seen || deadline != QN_TIME_NEVER);
        return now != seen ? QN_OK : QN_ETIMEDOUT;
    }
    enter_kernel(QN_SIM_PARK, word, -1, false);
    qn_sim.memory->latest(&now, word, sizeof now, memory_order_seq_cst);
    return now != seen ? QN_OK : sleep_on(word, -1, deadline);
}

void qn_unpark_word(qn_a32 *word)
{
    enter_kernel(QN_SIM_WAKE, word, -1, true);
    wake(word, -1);
}

void qn_unpark_one(qn_a32 *word)
{
    enter_kernel(QN_SIM_WAKE, word, -1, true);
    wake_one(word);
}

int qn_park_fd(int fd, qn_time_t deadline)
{
    QN_ASSERT(fd >= 0 && fd < (int)QN_SIM_FDS);
    enter_kernel(QN_SIM_PARK, NULL, fd, false);
    return qn_sim.fd_count[fd] > 0 ? QN_OK : sleep_on(NULL, fd, deadline);
}

void qn_unpark_fd(int fd)
{
    QN_ASSERT(fd >= 0 && fd < (int)QN_SIM_FDS);
    enter_kernel(QN_SIM_WAKE, NULL, fd, true);
    qn_sim.fd_count[fd]++;
    wake(NULL, fd);
}

void qn_park_drain(int fd)
{
    QN_ASSERT(fd >= 0 && fd < (int)QN_SIM_FDS);
    enter_kernel(QN_SIM_WAKE, NULL, fd, false);
    qn_sim.fd_count[fd] = 0;
}

/* On a core of its own no other thread waits. */
void qn_park_yield(void)
{
}

/* Each node has a core of its own. */
uint32_t qn_park_cores(void)
{
    return UINT32_MAX;
}
