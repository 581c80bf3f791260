/*
 * What a run in processes leaves behind when it is killed, or one of its nodes:
 * nothing. Its nodes hold the write end of a pipe, which ends with the last of
 * them. A run in threads ends, too, if not all of them can be started.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loadgen/bench/nodes.h"
#include "tests/support/test.h"

enum { NODES = 3 };

/* Waits for a peer that never comes. */
static int waits(qn_node_t node, void *arg)
{
    const int *end = arg;
    const uint8_t byte = (uint8_t)node;
    if (write(end[1], &byte, 1) == 1) {
        (void)pause();
    }
    return 1;
}

Test(nodes, processes_end_with_the_one_that_runs_them, .timeout = 60)
{
    int end[2];
    uint8_t byte;
    cr_assert_eq(pipe(end), 0);
    const pid_t runs = fork();
    if (runs == 0) {
        const struct qn_nodes_opts o = {.nodes = NODES, .processes = true};
        _exit(qn_nodes_run(&o, waits, end) == 0 ? 0 : 1);
    }
    close(end[1]);
    for (uint32_t i = 0; i < NODES; i++) {
        cr_assert_eq(read(end[0], &byte, 1), 1);
    }
    cr_assert_eq(kill(runs, SIGKILL), 0);
    cr_assert_eq(waitpid(runs, NULL, 0), runs);
    cr_assert_eq(read(end[0], &byte, 1), 0);
    close(end[0]);
}

static int one_is_killed(qn_node_t node, void *arg)
{
    if (node == 1) {
        (void)raise(SIGKILL);
    }
    return waits(node, arg);
}

Test(nodes, the_others_end_with_a_process_that_is_killed, .timeout = 60)
{
    int end[2];
    const struct qn_nodes_opts o = {.nodes = NODES, .processes = true};
    cr_assert_eq(pipe(end), 0);
    cr_expect_eq(qn_nodes_run(&o, one_is_killed, end), NODES);
    close(end[0]);
    close(end[1]);
}

/* A sanitizer's memory is more than the limit of this test. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

/* Waits for all others. */
static int meets(qn_node_t node, void *arg)
{
    (void)node;
    return pthread_barrier_wait(arg) > 0;
}

Test(nodes, no_thread_begins_if_one_cannot_be_started, .timeout = 60)
{
    enum { THREADS = 64, ROOM = 32 << 20 }; /* a stack has 2 MiB or more */
    const struct qn_nodes_opts o = {.nodes = THREADS};
    struct rlimit room = {0};
    unsigned long pages = 0;
    pthread_barrier_t all;
    FILE *f = fopen("/proc/self/statm", "r");
    cr_assert(f != NULL && fscanf(f, "%lu", &pages) == 1);
    fclose(f);
    room.rlim_cur = room.rlim_max =
        pages * (rlim_t)sysconf(_SC_PAGESIZE) + ROOM;
    cr_assert_eq(pthread_barrier_init(&all, NULL, THREADS), 0);
    cr_assert_eq(setrlimit(RLIMIT_AS, &room), 0);
    cr_expect_eq(qn_nodes_run(&o, meets, &all), THREADS);
}

#endif
