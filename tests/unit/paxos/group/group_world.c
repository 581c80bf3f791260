/*
 * The test's side: it starts and ends processes, sends orders, and asks for
 * reports until they say what is waited for. group_process.c has what runs in
 * the processes.
 */
#include "tests/unit/paxos/group/group_world.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/group/group_process.h"
#include "transports/registry.h"

static char folder[64];
static char name[96];

void group_world_begin(struct group_world *w, uint32_t members)
{
    snprintf(folder, sizeof folder, "/tmp/quoin-group-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(name, sizeof name, "%s/group", folder);
    *w = (struct group_world){.opts = {.name = name,
                                       .application = "test",
                                       .version = 1,
                                       .transport = qn_transport_find("ump"),
                                       .members = members,
                                       .cells = 256,
                                       .log_bytes = 1 << 20}};
    cr_assert_not_null(w->opts.transport);
}

void group_world_robust(struct group_world *w)
{
    pthread_mutexattr_t a;
    w->robust = mmap(NULL, GROUP_WORLD_MAX * sizeof *w->robust,
                     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(w->robust, MAP_FAILED);
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
    for (uint32_t i = 0; i < GROUP_WORLD_MAX; i++) {
        pthread_mutex_init(&w->robust[i], &a);
    }
}

void group_world_follow(struct group_world *w, const struct qn_feed_opts *o)
{
    w->opts.feed = o;
    w->shared = mmap(NULL, sizeof *w->shared, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(w->shared, MAP_FAILED);
}

void group_world_faults(struct group_world *w)
{
    const size_t bytes = GROUP_WORLD_MAX * sizeof *w->faults;
    w->faults = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(w->faults, MAP_FAILED);
}

void group_world_end(struct group_world *w)
{
    for (uint32_t i = 0; i < GROUP_WORLD_MAX; i++) {
        if (w->process[i].pid != 0) {
            group_world_kill(w, i);
        }
        if (w->process[i].child != 0) {
            kill(w->process[i].child, SIGKILL);
        }
    }
    if (w->shared != NULL) {
        munmap(w->shared, sizeof *w->shared);
    }
    if (w->faults != NULL) {
        munmap(w->faults, GROUP_WORLD_MAX * sizeof *w->faults);
    }
    unlink(name);
    rmdir(folder);
}

void group_world_start(struct group_world *w, uint32_t i)
{
    struct group_world_process *p = &w->process[i];
    int ends[2];
    cr_assert_eq(p->pid, 0);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends),
                 0);
    p->pid = fork();
    cr_assert_geq(p->pid, 0);
    if (p->pid == 0) {
        for (uint32_t k = 0; k < GROUP_WORLD_MAX; k++) {
            if (k != i && w->process[k].pid != 0) {
                close(w->process[k].control);
            }
        }
        close(ends[0]);
        group_process_run(w, i, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    p->control = ends[0];
}

/* @return how it has ended, as waitpid says it. */
static int gone(struct group_world_process *p)
{
    int how;
    cr_assert_eq(waitpid(p->pid, &how, 0), p->pid);
    close(p->control);
    p->pid = 0;
    return how;
}

void group_world_kill(struct group_world *w, uint32_t i)
{
    kill(w->process[i].pid, SIGKILL);
    (void)gone(&w->process[i]);
}

static void order(struct group_world *w, uint32_t i,
                  const struct group_order *o)
{
    cr_assert_eq(send(w->process[i].control, o, sizeof *o, MSG_NOSIGNAL),
                 sizeof *o, "process %u has ended", i);
}

void group_world_leave(struct group_world *w, uint32_t i)
{
    order(w, i, &(struct group_order){.kind = ORDER_LEAVE});
    cr_expect_eq(gone(&w->process[i]), 0);
}

void group_world_part(struct group_world *w, uint32_t i)
{
    order(w, i, &(struct group_order){.kind = ORDER_PART});
}

void group_world_exec(struct group_world *w, uint32_t i)
{
    order(w, i, &(struct group_order){.kind = ORDER_EXEC});
}

void group_world_stop(struct group_world *w, uint32_t i, bool stop)
{
    cr_assert_eq(kill(w->process[i].pid, stop ? SIGSTOP : SIGCONT), 0);
}

void group_world_propose(struct group_world *w, uint32_t i, uint64_t n,
                         uint64_t timeout)
{
    order(w, i,
          &(struct group_order){
              .kind = ORDER_PROPOSE, .n = n, .timeout = timeout});
}

void group_world_propose_once(struct group_world *w, uint32_t i, size_t bytes,
                              uint64_t timeout)
{
    order(w, i,
          &(struct group_order){
              .kind = ORDER_PROPOSE_ONCE, .n = bytes, .timeout = timeout});
}

void group_world_barrier(struct group_world *w, uint32_t i, uint64_t n)
{
    order(w, i, &(struct group_order){.kind = ORDER_BARRIER, .n = n});
}

void group_world_propose_at_barrier(struct group_world *w, uint32_t i,
                                    size_t bytes)
{
    order(w, i,
          &(struct group_order){.kind = ORDER_BARRIER, .n = 1, .bytes = bytes});
}

void group_world_fail(struct group_world *w, uint32_t i, int err, uint64_t n)
{
    const struct group_order o = {
        .kind = ORDER_FAIL, .n = (uint64_t)(int64_t)err, .timeout = n};
    order(w, i, &o);
    (void)group_world_report(w, i); /* it knows */
}

void group_world_hold(struct group_world *w, uint32_t i, bool hold)
{
    order(w, i, &(struct group_order){.kind = ORDER_HOLD, .n = hold});
    (void)group_world_report(w, i); /* it knows */
}

void group_world_ask(struct group_world *w, uint32_t i,
                     const struct qn_group_change *c, uint64_t timeout)
{
    const struct group_order o = {
        .kind = ORDER_CHANGE, .timeout = timeout, .change = *c};
    order(w, i, &o);
}

static bool has_changes(const struct group_world_report *r, uint64_t n)
{
    return r->changes == n;
}

int group_world_change(struct group_world *w, uint32_t i,
                       const struct qn_group_change *c, uint64_t timeout)
{
    const uint64_t before = group_world_report(w, i).changes;
    group_world_ask(w, i, c, timeout);
    group_world_wait(w, i, has_changes, before + 1);
    return group_world_report(w, i).change;
}

int group_world_fork(struct group_world *w, uint32_t i)
{
    int said[2] = {0, 1};
    order(w, i, &(struct group_order){.kind = ORDER_FORK});
    cr_assert_eq(read(w->process[i].control, said, sizeof said), sizeof said);
    w->process[i].child = said[0];
    return said[1];
}

void group_world_limit(const struct group_world *w, uint32_t i, uint32_t spare)
{
    group_process_limit(w->process[i].pid, spare);
}

void group_world_unlimit(const struct group_world *w, uint32_t i)
{
    struct rlimit limit;
    QN_ASSERT(prlimit(w->process[i].pid, RLIMIT_NOFILE, NULL, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    QN_ASSERT(prlimit(w->process[i].pid, RLIMIT_NOFILE, &limit, NULL) == 0);
}

int group_world_descriptors(const struct group_world *w, uint32_t i)
{
    char path[64];
    int count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)w->process[i].pid);
    DIR *d = opendir(path);
    while (readdir(d) != NULL) {
        count++;
    }
    closedir(d);
    return count;
}

struct group_world_report group_world_report(struct group_world *w, uint32_t i)
{
    struct group_world_report r;
    order(w, i, &(struct group_order){.kind = ORDER_REPORT});
    cr_assert_eq(read(w->process[i].control, &r, sizeof r), sizeof r,
                 "process %u has ended", i);
    return r;
}

void group_world_wait(struct group_world *w, uint32_t i,
                      bool (*is)(const struct group_world_report *r,
                                 uint64_t arg),
                      uint64_t arg)
{
    struct group_world_report r = group_world_report(w, i);
    while (!is(&r, arg)) {
        sched_yield();
        r = group_world_report(w, i);
    }
}

static bool founds(const struct group_world_report *r, uint64_t arg)
{
    (void)arg;
    return r->founds;
}

void group_world_found(struct group_world *w, uint32_t i)
{
    group_world_start(w, i);
    group_world_wait(w, i, founds, 0);
}
