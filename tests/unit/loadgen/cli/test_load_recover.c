/** Plans of `quoin recover` from INFO (loadgen/cli/recover.h). */
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "loadgen/cli/recover.h"
#include "tests/support/test.h"

#define BEGIN(kind, group, supervisor)                                         \
    "# Quoin\r\nepoch:7\r\nleader:0\r\nacceptor_kind:" kind "\r\ngroup:" group \
    "\r\nsupervisor:" supervisor "\r\nreplicas:3\r\n"
#define GROUP(kind, group, supervisor)                                         \
    BEGIN(kind, group, supervisor) "replicas_missing:\r\n"

#define STOPPED GROUP("process", "stopped", "up")

static struct qn_recover_plan plan;
static char why[160];

static int make(const char *info)
{
    why[0] = '\0';
    return qn_recover_make(&plan, info, why, sizeof why);
}

static void says(const char *words)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    cr_assert(qn_recover_print(&plan, f));
    fclose(f);
    cr_assert(strstr(text, words) != NULL, "no '%s' in:\n%s", words, text);
    free(text);
}

Test(recover, takes_the_longest_log_of_those_that_are_complete)
{
    cr_assert_eq(
        make(STOPPED
             "replica0:state=loading,pid=1,commit=30,applied=25,learned=25,"
             "lag=0,clients=9\r\n"
             "replica1:state=online,pid=2,commit=21,applied=18,learned=20,"
             "lag=0,clients=1\r\n"
             "replica2:state=online,pid=3,commit=20,applied=19,learned=19,"
             "lag=1,clients=5\r\n"),
        QN_OK, "%s", why);
    cr_assert_eq(plan.from, 1);
    cr_assert_eq(plan.epoch, 7);
    cr_assert_eq(plan.complete, 2);
    cr_assert_eq(plan.decided, 30);
    says("replica 1  has all positions up to 20  <- from here");
    says("Positions 21 to 30 may be lost");
    says("replica 0  loading");
}

Test(recover, of_equal_logs_takes_the_one_with_most_clients)
{
    cr_assert_eq(
        make(
            BEGIN("process", "stopped",
                  "up") "replicas_missing:1,7\r\n"
                        "replica0:state=online,commit=20,applied=20,learned=20,"
                        "clients=1\r\n"
                        "replica2:state=online,commit=20,applied=20,learned=20,"
                        "clients=4\r\n"),
        QN_OK);
    cr_assert_eq(plan.from, 2);
    says("replica 1  does not answer");
    says("replica 7  does not answer");
    cr_expect_not(plan.part[3].member, "a vacant seat");
    says("No higher position is known to have been decided");
}

static void refuses(const char *info, const char *words)
{
    cr_assert_eq(make(info), QN_EBUSY);
    cr_assert(strstr(why, words) != NULL, "%s", why);
}

#define ONE "replica0:state=online,commit=1,applied=1,learned=1,clients=0\r\n"

Test(recover, refuses_a_group_that_needs_no_recovery)
{
    refuses(GROUP("process", "serving", "up") ONE, "nothing to recover");
    refuses(GROUP("process", "changing", "up") ONE, "has not stopped");
    refuses(GROUP("memory", "changing", "up") ONE, "has not stopped");
    refuses(GROUP("memory", "waiting", "up") ONE, "stalled replica");
    refuses(GROUP("process", "stopped", "down") ONE, "start quoind again");
    refuses(STOPPED "group_reason:overwritten\r\n" ONE, "overwritten");
    refuses(STOPPED
            "replica0:state=loading,commit=1,applied=1,learned=1,clients=0\r\n",
            "no replica is complete");
}

/* Its log has a gap that no replica fills: its last slot is known. */
Test(recover, an_incomplete_group_is_one_that_has_stopped)
{
    cr_assert_eq(
        make(GROUP("process", "incomplete",
                   "up") "replica0:state=online,commit=9,applied=4,learned=4,"
                         "clients=0\r\n"),
        QN_OK, "%s", why);
    cr_assert(plan.incomplete);
    says("no replica that answers has the rest");
    says("Positions 5 to 9 may be lost");
}

/* What the ring has overwritten. */
Test(recover, with_the_memory_acceptor_the_leader_alone_was_lost)
{
    cr_assert_eq(
        make(GROUP("memory", "stopped",
                   "up") "replica1:state=online,commit=9,applied=4,learned=4,"
                         "clients=0\r\n"),
        QN_OK, "%s", why);
    says("in epoch 7: the leader was lost, and no replica");
    says("replica 1, position 4");
    says("Positions 5 to 9 may be lost");
}

Test(recover, invalid_info_gives_no_plan)
{
    static const char *const not_it[] = {
        "",
        "# Server\r\nredis_version:7.0.15\r\n",
        "epoch:1\r\nreplicas:0\r\ngroup:stopped\r\n",
        "epoch:1\r\nreplicas:65\r\ngroup:stopped\r\n",
        "epoch:x\r\nreplicas:3\r\ngroup:stopped\r\n",
        "epoch:1\r\nreplicas:3\r\n",
        STOPPED "replica0:state=online,commit=1\r\n",
        STOPPED "replica0:",
    };
    for (size_t i = 0; i < sizeof not_it / sizeof *not_it; i++) {
        cr_assert_eq(make(not_it[i]), QN_ECORRUPT, "%zu", i);
        cr_assert_neq(why[0], '\0');
    }
}
