/*
 * Positive controls: each defect of paxos/mutant.h that is the simulator's must
 * be found by it within the budget of CI, by an invariant, an assertion of the
 * machine or missing progress. And without a defect the same build finds
 * nothing. QN_MUTANT=NAME tries one of them only, from seed 1 on.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "paxos/mutant.h"
#include "tests/sim/paxos/sim.h"
#include "tests/support/test.h"

#define BUDGET 10000u /* the first so many seeds, as test_paxos_sim in CI */
#define TRIES  2000u  /* of them, from where one is near */

enum qn_mutant qn_mutant;

/* Runs in a child, which dies of what it finds; of a signal, and not in a
 * handler that the test runner has left. A run that never ends is a find. */
static bool finds(enum qn_mutant m, uint64_t seed)
{
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        signal(SIGSEGV, SIG_DFL);
        signal(SIGALRM, SIG_DFL);
        alarm(60);
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        qn_mutant = m;
        sim_run(seed, "test_paxos_mutants", NULL);
        _exit(0);
    }
    int status = 0;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static const struct {
    const char *by, *name;
} mutants[QN_MUTANT_COUNT] = {
#define X(name, by, text) [QN_MUTANT_##name] = {#by, #name},
    QN_MUTANT_MAP(X)
#undef X
};

/* Each begins where it was found the last time. Runs that find nothing are most
 * of the cost, and prove nothing; one that moves is found behind it. */
static const uint64_t near[QN_MUTANT_COUNT] = {
    [QN_MUTANT_NO_ADOPT] = 8,         [QN_MUTANT_NO_PROMISE] = 10,
    [QN_MUTANT_NO_HANDOFF] = 8,       [QN_MUTANT_NO_FREEZE] = 5,
    [QN_MUTANT_UNADOPTED] = 5,        [QN_MUTANT_AMNESIA] = 5,
    [QN_MUTANT_EPOCH_CHECK] = 8,      [QN_MUTANT_NO_SEAL] = 5,
    [QN_MUTANT_NO_EPOCH] = 1246,      [QN_MUTANT_TAKE_BEHIND] = 130,
    [QN_MUTANT_OWNER_DROPS] = 141,    [QN_MUTANT_LAG_UNHEARD] = 4385,
    [QN_MUTANT_VERDICT_UNREAD] = 130, [QN_MUTANT_VERDICT_BEHIND] = 141,
    [QN_MUTANT_EARLY_DECIDE] = 5,     [QN_MUTANT_SERVE_EARLY] = 58,
    [QN_MUTANT_ACK_EARLY] = 8,        [QN_MUTANT_SEAL_LIES] = 53,
    [QN_MUTANT_TRUNCATE] = 139,       [QN_MUTANT_NO_SESSIONS_KEPT] = 8,
    [QN_MUTANT_READ_ALONE] = 5,
};

static bool by(enum qn_mutant m, const char *who)
{
    return strcmp(mutants[m].by, who) == 0;
}

static bool wanted(enum qn_mutant m, uint64_t seed)
{
    return by(m, "BOTH") || by(m, "MEMORY") == sim_in_memory(seed);
}

/** @return the seed that finds it, or 0. */
static uint64_t search(enum qn_mutant m, uint64_t from, uint64_t tries)
{
    for (uint64_t seed = from; seed < from + tries; seed++) {
        if (wanted(m, seed) && finds(m, seed)) {
            return seed;
        }
    }
    return 0;
}

static void look_for(enum qn_mutant m, bool all)
{
    uint64_t seed = all ? search(m, 1, BUDGET) : search(m, near[m] + 1, TRIES);
    printf("%-16s seed %" PRIu64 "\n", mutants[m].name, seed);
    fflush(stdout);
    cr_expect(seed != 0 && seed <= BUDGET, "%s was not found", mutants[m].name);
}

Test(paxos_mutants, every_defect_is_found, .timeout = 3600)
{
    const char *one = getenv("QN_MUTANT");
    for (int i = QN_MUTANT_NONE + 1; i < QN_MUTANT_COUNT; i++) {
        enum qn_mutant m = (enum qn_mutant)i;
        bool mine = by(m, "BOTH") || by(m, "PROCESS") || by(m, "MEMORY");
        if (mine && (one == NULL || strcmp(one, mutants[m].name) == 0)) {
            look_for(m, one != NULL);
        }
    }
}

Test(paxos_mutants, nothing_is_found_without_a_defect, .timeout = 300)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        cr_assert(!finds(QN_MUTANT_NONE, seed));
    }
}
