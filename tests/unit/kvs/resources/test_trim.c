#include "kvs/resources/trim.h"

#include "tests/support/test.h"

#define MIB ((uint64_t)1 << 20)

static struct qn_trim trim;

static void setup(void)
{
    qn_trim_init(&trim, 0);
}

#define TRIM(name) Test(trim, name, .init = setup)

TRIM(an_idle_replica_looks_once_after_its_last_work)
{
    qn_time_t now = QN_S;
    cr_assert_eq(qn_trim_turn(&trim, 0, now), QN_TIME_NEVER, "nothing done");
    cr_assert_eq(qn_trim_turn(&trim, 1 * QN_TRIM_FEW, now), now + QN_TRIM_IDLE);
    cr_assert_eq(qn_trim_turn(&trim, 1 * QN_TRIM_FEW, now + QN_MS),
                 now + QN_TRIM_IDLE);
    cr_assert_eq(qn_trim_turn(&trim, 2 * QN_TRIM_FEW, now + QN_S),
                 now + QN_S + QN_TRIM_IDLE);
    now += QN_S + QN_TRIM_IDLE;
    cr_assert_leq(qn_trim_turn(&trim, 2 * QN_TRIM_FEW, now), now);
    cr_assert_not(qn_trim_look(&trim, 0, 0));
    cr_assert_eq(qn_trim_turn(&trim, 2 * QN_TRIM_FEW, now), QN_TIME_NEVER);
}

TRIM(a_few_commands_do_not_put_it_off)
{
    qn_time_t at = qn_trim_turn(&trim, 5 * QN_TRIM_FEW, QN_S);
    cr_assert_eq(qn_trim_turn(&trim, 6 * QN_TRIM_FEW - 1, 2 * QN_S), at);
    cr_assert_gt(qn_trim_turn(&trim, 6 * QN_TRIM_FEW, 2 * QN_S), at);
}

TRIM(replicas_do_not_pause_at_a_time)
{
    struct qn_trim other;
    qn_trim_init(&other, 1);
    qn_time_t mine = qn_trim_turn(&trim, 1 * QN_TRIM_FEW, QN_S);
    cr_assert_geq(qn_trim_turn(&other, 1 * QN_TRIM_FEW, QN_S), mine + QN_S);
}

TRIM(only_much_is_given_back)
{
    uint64_t used = 1000 * MIB, usual = 1250 * MIB;
    cr_assert_not(qn_trim_look(&trim, 900 * MIB, used));
    cr_assert_not(qn_trim_look(&trim, usual + QN_TRIM_LEAST, used));
    cr_assert(qn_trim_look(&trim, usual + QN_TRIM_LEAST + 1, used));
}

/* Holes among small entries: one attempt, not one for each idle time. */
TRIM(what_could_not_be_given_back_is_not_tried_again)
{
    uint64_t used = 100 * MIB, after = 900 * MIB;
    cr_assert(qn_trim_look(&trim, 1000 * MIB, used));
    qn_trim_done(&trim, after, used);
    cr_assert_not(qn_trim_look(&trim, after, used));
    cr_assert_not(qn_trim_look(&trim, after + QN_TRIM_LEAST, used));
    cr_assert(qn_trim_look(&trim, after + QN_TRIM_LEAST + 1, used));
    qn_trim_done(&trim, used, used);
    cr_assert(qn_trim_look(&trim, 300 * MIB, used), "it was all given back");
}
