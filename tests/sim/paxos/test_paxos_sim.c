/*
 * The simulator over a range of seeds, on all cores that it may use: each
 * worker is a process that takes the next seed, and counts what it reached.
 * With one core, or under a sanitizer, there is no worker and no fork.
 *
 *     QN_SIM_SEED=n                    that one only
 *     QN_SIM_FROM=n QN_SIM_SEEDS=m     m of them, from n (1) on
 *     QN_SIM_JOBS=n                    workers
 *     QN_SIM_SEATS=1                   those in which members come and go: one
 *                                      of ten; the table is printed only
 *
 * From BUDGET seeds on, all that coverage.h lists must have been reached.
 */
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/atomic.h"
#include "tests/sim/paxos/sim.h"
#include "tests/support/test.h"

#define BUDGET   10000u
#define JOBS_MAX 64u

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS   40 /* each takes twenty times longer */
#define WORKERS 1u
#else
#define SEEDS   400
#define WORKERS JOBS_MAX
#endif

struct shared {
    qn_a64 next;
    uint64_t last;
    bool seats; /* these only */
    struct {
        uint64_t seed; /* that it runs */
        struct coverage cover;
    } worker[JOBS_MAX];
};

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static uint32_t workers(void)
{
    cpu_set_t cores;
    uint32_t n = sched_getaffinity(0, sizeof cores, &cores) == 0
                     ? (uint32_t)CPU_COUNT(&cores)
                     : 1;
    uint32_t jobs = (uint32_t)number("QN_SIM_JOBS", QN_MIN(n, WORKERS));
    return QN_MIN(QN_MAX(jobs, 1u), JOBS_MAX);
}

static void work(struct shared *all, uint32_t me)
{
    for (;;) {
        uint64_t seed =
            qn_fetch_add(&all->next, 1, QN_RELAXED); /* no partner */
        if (seed > all->last) {
            return;
        }
        all->worker[me].seed = seed;
        if (!all->seats || sim_has_seats(seed)) {
            sim_run(seed, "test_paxos_sim", &all->worker[me].cover);
        }
    }
}

/** A worker dies of what it finds, and not in a handler of the test runner. */
static pid_t start(struct shared *all, uint32_t me)
{
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        signal(SIGSEGV, SIG_DFL);
        work(all, me);
        fflush(NULL);
        _exit(0);
    }
    return pid;
}

static void work_together(struct shared *all, uint32_t jobs)
{
    pid_t pid[JOBS_MAX];
    for (uint32_t i = 0; i < jobs; i++) {
        pid[i] = start(all, i);
    }
    for (uint32_t i = 0; i < jobs; i++) {
        int status = 0;
        cr_assert_eq(waitpid(pid[i], &status, 0), pid[i]);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                  "QN_SIM_SEED=%" PRIu64 " test_paxos_sim",
                  all->worker[i].seed);
    }
}

Test(paxos_sim, invariants_hold_and_progress_comes_after_healing,
     .timeout = 3600)
{
    struct shared *all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(all != MAP_FAILED);
    uint64_t one = number("QN_SIM_SEED", 0);
    uint64_t from = one != 0 ? one : number("QN_SIM_FROM", 1);
    uint64_t count = one != 0 ? 1 : number("QN_SIM_SEEDS", SEEDS);
    uint32_t jobs = one != 0 ? 1 : workers();
    qn_store(&all->next, from, QN_RELAXED); /* before any worker */
    all->last = from + count - 1;
    all->seats = number("QN_SIM_SEATS", 0) != 0;
    if (jobs == 1) {
        work(all, 0);
    } else {
        work_together(all, jobs);
    }
    struct coverage sum = {0};
    for (uint32_t i = 0; i < jobs; i++) {
        coverage_add(&sum, &all->worker[i].cover);
    }
    if (count >= BUDGET) {
        uint32_t zero = coverage_print(&sum, stdout);
        cr_expect(all->seats || zero == 0, "not reached: see `!`");
    }
    munmap(all, sizeof *all);
}

Test(paxos_sim, a_seed_gives_the_same_run_byte_for_byte, .timeout = 600)
{
    uint64_t before = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t trace = sim_run(seed, "test_paxos_sim", NULL);
        cr_expect_eq(sim_run(seed, "test_paxos_sim", NULL), trace,
                     "seed %" PRIu64, seed);
        cr_expect_neq(trace, before, "another seed, another run");
        before = trace;
    }
}
