/*
 * Positive controls: each defect of paxos/mutant.h must be found by the
 * simulator within SEEDS seeds, by an invariant, an assertion of the machine
 * or missing progress. And without a defect the same build finds nothing.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "paxos/mutant.h"
#include "tests/sim/sim.h"
#include "tests/support/test.h"

#define SEEDS 300u

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
        alarm(20);
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        qn_mutant = m;
        sim_run(seed, "test_paxos_mutants");
        _exit(0);
    }
    int status = 0;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The rare ones begin where one is near. */
static const uint64_t first[QN_MUTANT_COUNT] = {
    [QN_MUTANT_NO_SEAL] = 400,
    [QN_MUTANT_TAKE_BEHIND] = 400,
};

Test(paxos_mutants, every_defect_is_found, .timeout = 300)
{
    for (int m = QN_MUTANT_NONE + 1; m < QN_MUTANT_COUNT; m++) {
        if ((m >= QN_MUTANT_U_SILENT && m <= QN_MUTANT_U_AMNESIA) ||
            m >= QN_MUTANT_RING_LATE) {
            continue; /* found by test_utility_sim and test_ring_explore */
        }
        uint64_t seed = first[m] + 1;
        while (seed <= first[m] + SEEDS && !finds((enum qn_mutant)m, seed)) {
            seed++;
        }
        cr_expect_leq(seed, first[m] + SEEDS, "defect %d was not found", m);
    }
}

Test(paxos_mutants, nothing_is_found_without_a_defect, .timeout = 300)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        cr_assert(!finds(QN_MUTANT_NONE, seed));
    }
}
