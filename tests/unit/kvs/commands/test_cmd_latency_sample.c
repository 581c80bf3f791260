#include "kvs/commands/cmd_latency_sample.h"

#include <stdlib.h>

#include "tests/support/test.h"

enum { ROUNDS = 200 };

static const struct qn_cmd *command(const char *name)
{
    const struct qn_slice s = {(const uint8_t *)name, 3};
    return qn_cmd_find(s);
}

static void run(struct qn_cmd_latency_sample *c, const struct qn_cmd *cmd)
{
    qn_cmd_latency_sample_stop(c, cmd, qn_cmd_latency_sample_start(c));
}

Test(cmd_latency_sample, one_in_so_many_is_timed)
{
    struct qn_cmd_latency_sample c = {0};
    uint32_t timed = 0;
    for (uint32_t i = 0; i < ROUNDS * QN_CMD_CLOCK_OF; i++) {
        timed += qn_cmd_latency_sample_start(&c) != 0;
    }
    cr_assert_eq(timed, ROUNDS);
}

Test(cmd_latency_sample, what_was_not_timed_costs_nothing_and_counts_nothing)
{
    struct qn_cmd_latency_sample c = {0};
    const struct qn_cmd *get = command("get");
    for (uint32_t i = 0; i + 1 < QN_CMD_CLOCK_OF; i++) {
        run(&c, get);
    }
    cr_assert_eq(c.ns[qn_cmd_index(get)], 0);
}

/* Pipelines of 2, 16 and 64 that repeat themselves. */
Test(cmd_latency_sample, every_command_of_a_pipeline_is_seen)
{
    for (uint32_t period = 2; period <= 64; period *= 2) {
        struct qn_cmd_latency_sample c = {0};
        const struct qn_cmd *get = command("get");
        const struct qn_cmd *set = command("set");
        for (uint32_t i = 0; i < ROUNDS * 64 * QN_CMD_CLOCK_OF; i++) {
            run(&c, i % period == 0 ? set : get);
        }
        cr_assert_gt(c.ns[qn_cmd_index(set)], 0, "period %u", period);
        cr_assert_gt(c.ns[qn_cmd_index(get)], 0, "period %u", period);
    }
}

/* It counts for the others, too: ten times 61 waits of some length are about
 * 610 times as long as one, and certainly no less than those that were seen. */
Test(cmd_latency_sample, the_timed_one_counts_for_all)
{
    struct qn_cmd_latency_sample c = {.untimed = QN_CMD_CLOCK_OF - 1};
    const struct qn_cmd *get = command("get");
    qn_time_t start = qn_cmd_latency_sample_start(&c);
    cr_assert_neq(start, 0);
    while (qn_clock_now() - start < 10 * QN_US) {
    }
    qn_cmd_latency_sample_stop(&c, get, start);
    cr_assert_geq(c.ns[qn_cmd_index(get)], 10 * QN_US * QN_CMD_CLOCK_OF);
}
