/* Teams of `quoin bench barrier`: all subjects are barriers, and one that is
 * none is found out. */
#include <string.h>

#include "core/base/err.h"
#include "loadgen/barrier/barrier_team.h"
#include "tests/support/test.h"

#define EPISODES 5u

static void no_barrier(void *arg)
{
    (void)arg;
}

Test(barrier_control, a_member_that_has_not_come_is_found)
{
    static struct qn_barrier_control c = {.members = 2};
    qn_barrier_check(&c, 0, 1, no_barrier, NULL);
    cr_assert(qn_load(&c.wrong, QN_SEQ_CST) == 1, "member 1 was not missed");
    qn_store(&c.seen[1].episode, 2, QN_SEQ_CST);
    qn_barrier_check(&c, 0, 2, no_barrier, NULL);
    cr_assert(qn_load(&c.wrong, QN_SEQ_CST) == 1, "member 1 had come");
}

static void all_are_barriers(bool processes)
{
    static struct qn_barrier_subject subject[QN_BARRIER_SUBJECTS_MAX];
    static struct qn_barrier_team t;
    const uint32_t n = qn_barrier_subjects(subject, 2, 2);
    cr_assert(n >= 6 && strcmp(subject[0].name, "quoin") == 0);
    cr_assert(qn_barrier_team_start(&t, subject, n, 2, 2, processes) == QN_OK);
    for (uint32_t i = 0; i < n; i++) {
        double ns = 0;
        cr_assert(t.refused[i] == QN_OK, "%s is refused", subject[i].name);
        cr_expect(qn_barrier_team_round(&t, i, EPISODES, true, &ns) == QN_OK &&
                      ns > 0,
                  "%s is no barrier", subject[i].name);
    }
    qn_barrier_team_end(&t);
}

Test(barrier_team, all_subjects_are_barriers_of_threads, .timeout = 60)
{
    all_are_barriers(false);
}

Test(barrier_team, all_subjects_are_barriers_of_processes, .timeout = 60)
{
    all_are_barriers(true);
}

Test(barrier_team, a_program_that_is_not_there_is_no_team, .timeout = 60)
{
    static struct qn_barrier_team t;
    char *argv[] = {"/nonexistent/barrier", NULL, NULL, NULL};
    cr_assert(qn_barrier_team_of_program(&t, 2, argv) == QN_EIO);
}
