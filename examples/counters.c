/*
 * A replicated service in a program of one's own: counters by name, in three
 * processes that meet at a name.
 *
 *     counters [NAME]
 *
 * The parent starts three processes. Each adds to counters, and all have the
 * same values. Then one is killed and started again: it gets the state from
 * another one, and goes on. Nothing here is special about any of the three:
 * they could be three programs on a terminal each.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "paxos/group/group.h"
#include "transports/registry.h"

enum { PROCESSES = 3, COUNTERS = 8, ADDS = 2000 };

#define TIMEOUT ((uint64_t)5 * 1000000000) /* ns */

/* A command: add `by` to a counter. */
struct add {
    uint32_t counter, by;
};

/* The state, and the one that comes with a snapshot. It is small, so a snapshot
 * is one part. */
struct counters {
    uint64_t value[COUNTERS];
};

static struct counters now, cut, coming;
static int cut_given;
static struct qn_group *group;
static unsigned left, failed; /* own commands without an end */

/* ---- the service --------------------------------------------------------- */

static int apply(void *ctx, const struct qn_group_command *c, uint64_t *result)
{
    struct add a = {0, 0};
    (void)ctx;
    if (c->len == sizeof a) {
        memcpy(&a, c->bytes, sizeof a);
    }
    *result = now.value[a.counter % COUNTERS] += a.by;
    return QN_OK;
}

static int begin(void *ctx)
{
    (void)ctx;
    cut = now;
    cut_given = 0;
    return QN_OK;
}

static int next(void *ctx, void *bytes, size_t cap, size_t *len)
{
    (void)ctx;
    (void)cap; /* at least QN_GROUP_CUT_BYTES */
    if (cut_given++) {
        return QN_ENOENT;
    }
    memcpy(bytes, &cut, sizeof cut);
    *len = sizeof cut;
    return QN_OK;
}

static void nothing(void *ctx)
{
    (void)ctx;
}

static int take(void *ctx, const void *bytes, size_t len)
{
    (void)ctx;
    if (len != sizeof coming) {
        return QN_ECORRUPT;
    }
    memcpy(&coming, bytes, len);
    return QN_OK;
}

static int whole(void *ctx)
{
    (void)ctx;
    return QN_OK;
}

static void install(void *ctx)
{
    (void)ctx;
    now = coming;
}

/* ---- the program --------------------------------------------------------- */

static void on_end(void *ctx, int err, uint64_t result)
{
    (void)ctx;
    (void)result; /* the counter's new value, if err is QN_OK */
    left--;
    failed += err != QN_OK;
}

/* Wait until a turn is due, and turn until none is. A program with a loop of
 * its own watches the descriptor there. */
static void turn(void)
{
    struct pollfd p = {.fd = qn_group_fd(group), .events = POLLIN};
    int said;
    poll(&p, 1, -1);
    do {
        said = qn_group_turn(group);
    } while (said == QN_GROUP_AGAIN);
    if (said < 0) {
        fprintf(stderr, "counters: %s\n", qn_group_why(group));
        exit(1);
    }
}

static void add_some(unsigned n)
{
    for (unsigned i = 0; i < n;) {
        const struct add a = {.counter = i, .by = 1};
        if (qn_group_propose(group, &a, sizeof a, TIMEOUT, on_end, NULL) ==
            QN_OK) {
            left++;
            i++;
        } else {
            turn(); /* it is full, or this process joins */
        }
    }
    while (left > 0) {
        turn();
    }
}

static uint64_t sum(void)
{
    uint64_t s = 0;
    for (int i = 0; i < COUNTERS; i++) {
        s += now.value[i];
    }
    return s;
}

/* It adds, says so, and stays until the parent ends it. */
static void member(const char *name, unsigned adds, int said)
{
    const struct qn_group_opts o = {.name = name,
                                    .application = "counters",
                                    .version = 1,
                                    .transport = qn_transport_find("ump"),
                                    .members = PROCESSES,
                                    .service = {.apply = apply,
                                                .begin = begin,
                                                .next = next,
                                                .end = nothing,
                                                .keeps_cut = true,
                                                .read = take,
                                                .finish = whole,
                                                .install = install,
                                                .abandon = nothing}};
    int err = qn_group_join(&group, &o);
    if (err != QN_OK) {
        fprintf(stderr, "counters: %s: %s\n", name, qn_strerror(err));
        exit(1);
    }
    add_some(adds);
    while (qn_group_barrier(group, TIMEOUT, on_end, NULL) != QN_OK) {
        turn();
    }
    left++;
    while (left > 0) {
        turn();
    }
    const uint64_t facts[2] = {sum(), failed};
    if (write(said, facts, sizeof facts) != sizeof facts) {
        exit(1);
    }
    for (;;) {
        turn();
    }
}

/* ---- the parent ---------------------------------------------------------- */

static pid_t start(const char *name, unsigned adds, int said)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        member(name, adds, said);
    }
    return pid;
}

/* @return the sum that one process has said. */
static uint64_t hear(int said)
{
    uint64_t facts[2] = {0, 1};
    if (read(said, facts, sizeof facts) != sizeof facts || facts[1] != 0) {
        fprintf(stderr, "counters: a process has failed\n");
        exit(1);
    }
    return facts[0];
}

int main(int argc, char **argv)
{
    char name[64];
    int said[2];
    pid_t pid[PROCESSES];
    uint64_t last = 0;
    snprintf(name, sizeof name, "/tmp/counters-%d", (int)getpid());
    const char *meet = argc > 1 ? argv[1] : name;
    if (pipe(said) != 0) {
        return 1;
    }
    for (int i = 0; i < PROCESSES; i++) {
        pid[i] = start(meet, ADDS, said[1]);
    }
    for (int i = 0; i < PROCESSES; i++) {
        uint64_t s = hear(said[0]);
        last = s > last ? s : last;
    }
    printf("three processes have added: the sum is %llu\n",
           (unsigned long long)last);
    kill(pid[0], SIGKILL);
    waitpid(pid[0], NULL, 0);
    pid[0] = start(meet, ADDS, said[1]);
    last = hear(said[0]);
    printf("one was killed and is back: the sum is %llu\n",
           (unsigned long long)last);
    for (int i = 0; i < PROCESSES; i++) {
        kill(pid[i], SIGKILL);
        waitpid(pid[i], NULL, 0);
    }
    unlink(meet); /* with its last member the group has ended */
    return 0;
}
