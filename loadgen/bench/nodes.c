#include "loadgen/bench/nodes.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Threads begin when all of them are there. */
struct start {
    pthread_mutex_t lock; /* held until then */
    bool missing;         /* one could not be started: none begins */
};

struct job {
    const struct qn_nodes_opts *o;
    qn_node_t node;
    qn_nodes_fn *fn;
    void *arg;
    struct start *start;
    int result;
};

static void pin(const struct job *j)
{
    if (j->o->core != NULL) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(j->o->core[j->node], &set);
        /* Some containers refuse this; then the node is not pinned. */
        (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    }
}

static void *run_node(void *arg)
{
    struct job *j = arg;
    pin(j);
    j->result = j->fn(j->node, j->arg);
    return NULL;
}

static void *run_thread(void *arg)
{
    struct job *j = arg;
    pthread_mutex_lock(&j->start->lock);
    const bool missing = j->start->missing;
    pthread_mutex_unlock(&j->start->lock);
    if (missing) {
        j->result = 1;
        return NULL;
    }
    return run_node(j);
}

static uint32_t run_threads(struct job *job, uint32_t n)
{
    pthread_t thread[QN_NODES_MAX];
    struct start start = {.lock = PTHREAD_MUTEX_INITIALIZER};
    uint32_t started = 0;
    uint32_t failed = 0;
    pthread_mutex_lock(&start.lock);
    for (; started < n; started++) {
        job[started].start = &start;
        if (pthread_create(&thread[started], NULL, run_thread, &job[started]) !=
            0) {
            break;
        }
    }
    start.missing = started < n;
    pthread_mutex_unlock(&start.lock);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(thread[i], NULL);
        failed += job[i].result != 0;
    }
    return failed + (n - started);
}

/* The others may wait for ever for one that is missing. */
static void kill_all(const pid_t *pid, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (pid[i] > 0) {
            (void)kill(pid[i], SIGKILL);
        }
    }
}

/* @param pid  [n] each is set to 0 when it has ended.
 * @return how many did not return 0. */
static uint32_t wait_all(pid_t *pid, uint32_t n, bool survive)
{
    uint32_t failed = 0;
    for (uint32_t left = n; left > 0;) {
        int status = 0;
        const pid_t ended = waitpid(-1, &status, 0);
        if (ended < 0 && errno != EINTR) {
            return failed + left;
        }
        for (uint32_t i = 0; i < n && ended > 0; i++) {
            if (pid[i] == ended) {
                pid[i] = 0;
                left--;
                failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
                if (!WIFEXITED(status) && !survive) {
                    kill_all(pid, n);
                }
            }
        }
    }
    return failed;
}

static uint32_t run_processes(struct job *job, uint32_t n, bool survive)
{
    pid_t pid[QN_NODES_MAX];
    uint32_t started = 0;
    fflush(NULL);
    for (; started < n; started++) {
        pid[started] = fork();
        if (pid[started] == 0) {
            /* A run that is killed leaves no process that waits for a peer. */
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            (void)run_node(&job[started]);
            fflush(NULL);
            _exit(job[started].result == 0 ? 0 : 1);
        }
        if (pid[started] < 0) {
            kill_all(pid, started);
            break;
        }
    }
    return wait_all(pid, started, started == n && survive) + (n - started);
}

uint32_t qn_nodes_run(const struct qn_nodes_opts *o, qn_nodes_fn *fn, void *arg)
{
    struct job job[QN_NODES_MAX];
    for (qn_node_t i = 0; i < o->nodes; i++) {
        job[i] = (struct job){.o = o, .node = i, .fn = fn, .arg = arg};
    }
    return o->processes ? run_processes(job, o->nodes, o->survive)
                        : run_threads(job, o->nodes);
}
