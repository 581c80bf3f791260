#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/client/request_generator.h"
#include "loadgen/workload/workload_spec.h"
#include "tests/support/test.h"

#include <math.h>
#include <string.h>

static char error[QN_WORKLOAD_SPEC_ERROR_MAX];

static struct qn_workload_opts opts;

static int parse(struct qn_workload_spec *r)
{
    opts = (struct qn_workload_opts){.keys = 1000000, .mset_keys = 10};
    error[0] = '\0';
    return qn_workload_spec_parse(r, &opts, error, sizeof error);
}

Test(spec, no_options_give_the_default)
{
    struct qn_workload_spec r = {0};
    cr_assert_eq(parse(&r), QN_OK);
    cr_assert_str_eq(r.mix, "get:80,set:20");
    cr_assert_str_eq(r.dist, "uniform");
    cr_assert_str_eq(r.key_size, "16");
    cr_assert_str_eq(r.value_size, "16");
    cr_assert_eq(opts.value_size.max, 16);
    cr_assert_eq(opts.dist.kind, QN_DIST_UNIFORM);
}

/* The operations of each YCSB workload, in 10^5 operations of one client. */
Test(spec, ycsb_workloads_have_their_proportions)
{
    static const struct {
        const char *name;
        enum qn_dist_kind dist;
        double part[QN_OP_COUNT];
    } cases[] = {
        {"ycsb-a", QN_DIST_ZIPF, {[QN_OP_GET] = .5, [QN_OP_SET] = .5}},
        {"ycsb-b", QN_DIST_ZIPF, {[QN_OP_GET] = .95, [QN_OP_SET] = .05}},
        {"ycsb-c", QN_DIST_ZIPF, {[QN_OP_GET] = 1}},
        {"ycsb-d", QN_DIST_LATEST, {[QN_OP_GET] = .95, [QN_OP_INSERT] = .05}},
        {"ycsb-f", QN_DIST_ZIPF, {[QN_OP_GET] = .5, [QN_OP_RMW] = .5}},
    };
    enum { N = 100000 };
    for (size_t i = 0; i < QN_ARRAY_COUNT(cases); i++) {
        struct qn_workload_spec r = {.workload = cases[i].name};
        struct qn_workload w;
        struct qn_request_generator a;
        unsigned counts[QN_OP_COUNT] = {0};
        cr_assert_eq(parse(&r), QN_OK);
        cr_assert_eq(opts.dist.kind, cases[i].dist);
        cr_assert(fabs(opts.dist.theta - 0.99) < 1e-12);
        cr_assert_eq(opts.key_size.max, 23);
        cr_assert_eq(opts.value_size.max, 1000);
        cr_assert_eq(qn_workload_init(&w, &opts), QN_OK);
        const struct qn_request_generator_opts ao = {
            .workload = &w, .clients = 1, .seed = 1, .open_max = 1};
        cr_assert_eq(qn_request_generator_init(&a, &ao), QN_OK);
        for (int k = 0; k < N; k++) {
            struct qn_request request;
            qn_request_generator_next(&a, &request);
            counts[request.op]++;
        }
        for (int op = 0; op < QN_OP_COUNT; op++) {
            double p = cases[i].part[op];
            cr_assert(fabs(counts[op] - N * p) <= 5 * sqrt(N * p * (1 - p)),
                      "%s, %s: %u", cases[i].name,
                      qn_mix_op_name((enum qn_op)op), counts[op]);
        }
        qn_request_generator_fini(&a);
        qn_workload_fini(&w);
    }
}

Test(spec, options_override_the_named_workload)
{
    struct qn_workload_spec r = {
        .workload = "ycsb-a", .dist = "uniform", .value_size = "etc"};
    cr_assert_eq(parse(&r), QN_OK);
    cr_assert_str_eq(r.mix, "get:50,set:50");
    cr_assert_eq(opts.dist.kind, QN_DIST_UNIFORM);
    cr_assert_eq(opts.value_size.kind, QN_SIZES_ETC_VALUE);
    cr_assert_eq(opts.key_size.max, 23);
}

static const struct {
    struct qn_workload_spec spec;
    const char *error; /* a part of the message */
} bad[] = {
    {{.workload = "ycsb-e"},
     "--workload: unknown workload 'ycsb-e'; use ycsb-a"},
    {{.workload = "ysb-a"},
     "--workload: unknown workload 'ysb-a'; did you mean 'ycsb-a'?"},
    {{.workload = "tpcc"}, "use ycsb-a"},
    {{.mix = "gte"}, "--mix: unknown operation 'gte'; did you mean 'get'?"},
    {{.dist = "zip:1"},
     "--dist: unknown distribution 'zip'; did you mean 'zipf'?"},
    {{.key_size = "x"}, "--key-size: 'x' is not a size up to 1024"},
    {{.value_size = "1g"}, "--value-size: '1g' is not a size up to 536870912"},
    {{.key_size = "6"}, "--keys 1000000 needs --key-size 7 or more"},
    {{.key_size = "2..6"}, "needs --key-size 7 or more"},
    {{.key_size = "12", .mix = "insert"},
     "--keys 1000000 with insert needs --key-size 13 or more"},
};

Test(spec, reports_the_wrong_option_and_valid_values)
{
    for (size_t i = 0; i < QN_ARRAY_COUNT(bad); i++) {
        struct qn_workload_spec r = bad[i].spec;
        cr_assert_eq(parse(&r), QN_EINVAL, "%s", bad[i].error);
        cr_assert(strstr(error, bad[i].error) != NULL, "%s", error);
        cr_assert_eq(strchr(error, '\n'), NULL);
    }
}
