#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/workload/mix.h"
#include "tests/support/test.h"

#include <string.h>

static struct qn_mix mix;
static char error[160];

static int parse(const char *text)
{
    error[0] = '\0';
    return qn_mix_parse(&mix, text, error, sizeof error);
}

Test(mix, weights_go_to_the_named_operations)
{
    cr_assert_eq(parse("set:20,get:80"), QN_OK);
    cr_assert_eq(qn_mix_weight(&mix, QN_OP_GET), 80);
    cr_assert_eq(qn_mix_weight(&mix, QN_OP_SET), 20);
    cr_assert_eq(qn_mix_weight(&mix, QN_OP_INCR), 0);
}

Test(mix, a_weight_left_out_is_one)
{
    cr_assert_eq(parse("ping"), QN_OK);
    cr_assert_eq(qn_mix_weight(&mix, QN_OP_PING), 1);
    cr_assert_eq(parse("mset,incr:3"), QN_OK);
    cr_assert_eq(qn_mix_weight(&mix, QN_OP_MSET), 1);
    cr_assert_eq(qn_mix_weight(&mix, QN_OP_INCR), 3);
}

Test(mix, weights_of_the_same_name_add_up)
{
    cr_assert_eq(parse("get:1,get:2"), QN_OK);
    cr_assert_eq(qn_mix_weight(&mix, QN_OP_GET), 3);
}

Test(mix, picks_each_operation_as_often_as_its_weight)
{
    unsigned picked[QN_OP_COUNT] = {0};
    cr_assert_eq(parse("get:5,set:0,mset:2,ping:1"), QN_OK);
    for (uint64_t r = 0; r < mix.upto[QN_OP_COUNT - 1]; r++) {
        picked[qn_mix_pick(&mix, r)]++;
    }
    for (int op = 0; op < QN_OP_COUNT; op++) {
        cr_assert_eq(picked[op], qn_mix_weight(&mix, (enum qn_op)op));
    }
}

static const struct {
    const char *text;
    const char *error; /* a part of the message */
} bad[] = {
    {"", "unknown operation ''"},
    {",get", "unknown operation ''"},
    {"get,", "unknown operation ''"},
    {"gte", "did you mean 'get'?"},
    {"incr:1,mest:2", "did you mean 'mset'?"},
    {"frobnicate", "use get set incr mset ping"},
    {"GET", "unknown operation 'GET'"},
    {"get:", "'' is not a weight"},
    {"get:-1", "'-1' is not a weight"},
    {"get:1:2", "'1:2' is not a weight"},
    {"get:1000001", "is not a weight from 0 to 1000000"},
    {"get:99999999999999999999", "is not a weight"},
    {"get:0", "add up to 0"},
    {"get:0,set:0", "add up to 0"},
    {"getgetgetgetgetgetgetgetgetgetgetgetgetgetgetgetgetgetgetgetgetgetget:1",
     "too long"},
};

Test(mix, reports_the_error_and_changes_nothing)
{
    for (size_t i = 0; i < QN_ARRAY_COUNT(bad); i++) {
        cr_assert_eq(parse(bad[i].text), QN_EINVAL, "'%s'", bad[i].text);
        cr_assert(strstr(error, bad[i].error) != NULL, "'%s': %s", bad[i].text,
                  error);
        cr_assert_eq(mix.upto[QN_OP_COUNT - 1], 0);
    }
}

Test(mix, its_two_parts_are_the_whole_mix)
{
    cr_assert_eq(parse("get:5,set:3,scan:2,ping:1,rmw:4"), QN_OK);
    struct qn_mix reads = qn_mix_part(&mix, true);
    struct qn_mix rest = qn_mix_part(&mix, false);
    cr_assert_eq(qn_mix_sum(&reads), 7);
    cr_assert_eq(qn_mix_sum(&rest), 8);
    for (int op = 0; op < QN_OP_COUNT; op++) {
        cr_assert_eq(qn_mix_weight(&reads, (enum qn_op)op) +
                         qn_mix_weight(&rest, (enum qn_op)op),
                     qn_mix_weight(&mix, (enum qn_op)op));
    }
    for (uint64_t r = 0; r < 7; r++) {
        cr_assert(qn_op_is_read(qn_mix_pick(&reads, r)));
        cr_assert(!qn_op_is_read(qn_mix_pick(&rest, r)));
    }
    cr_assert_eq(parse("set"), QN_OK);
    reads = qn_mix_part(&mix, true);
    cr_assert_eq(qn_mix_sum(&reads), 0);
}

Test(mix, the_largest_weight_is_accepted)
{
    cr_assert_eq(parse("get:1000000"), QN_OK);
}

Test(mix, weights_that_do_not_fit_are_refused)
{
    enum { ITEMS = 5000 };
    static const char item[] = "get:1000000,";
    static char text[ITEMS * (sizeof item - 1) + sizeof item];
    for (int i = 0; i < ITEMS; i++) {
        memcpy(text + (size_t)i * (sizeof item - 1), item, sizeof item - 1);
    }
    memcpy(text + ITEMS * (sizeof item - 1), "set", 4);
    cr_assert_eq(parse(text), QN_EINVAL);
    cr_assert(strstr(error, "add up to 5000000001") != NULL, "%s", error);
}
