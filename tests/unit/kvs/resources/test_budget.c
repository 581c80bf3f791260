#include "kvs/resources/budget.h"

#include <stdio.h>

#include "core/base/err.h"
#include "tests/support/test.h"

#define LANE ((size_t)262144)
#define MIB  ((uint64_t)1 << 20)
#define GIB  ((uint64_t)1 << 30)

static const struct qn_transport_bytes channels = {.lane = LANE};
static struct qn_budget budget;

static struct qn_config config(uint32_t replicas)
{
    struct qn_config c;
    qn_config_init(&c);
    c.replicas = replicas;
    return c;
}

static struct qn_resource_limits limits(uint64_t memory, uint64_t group,
                                        uint64_t address)
{
    return (struct qn_resource_limits){
        .memory = memory, .group = group, .address = address};
}

static int make(struct qn_config *c, uint64_t memory, uint64_t group,
                uint64_t address)
{
    const struct qn_resource_limits l = limits(memory, group, address);
    return qn_budget_make(&l, c, &channels, &budget);
}

#define NONE QN_LIMITS_NONE

/* However large: every store twice, logs, rings and values on their way. */
Test(budget, all_replicas_fit_into_what_there_is)
{
    static const uint64_t memory[] = {GIB / 2, GIB, 2 * GIB, 24 * GIB,
                                      1024 * GIB};
    static const uint32_t replicas[] = {1, 3, 5, 16};
    for (size_t m = 0; m < QN_ARRAY_COUNT(memory); m++) {
        for (size_t r = 0; r < QN_ARRAY_COUNT(replicas); r++) {
            struct qn_config c = config(replicas[r]);
            if (make(&c, memory[m], NONE, NONE) != QN_OK) {
                cr_assert_lt(memory[m] / replicas[r], 256 * MIB);
                continue;
            }
            uint64_t stores =
                replicas[r] > 1 ? c.maxmemory * 11 / 4 : c.maxmemory * 5 / 4;
            uint64_t logs = replicas[r] > 1 ? c.repl_backlog_size : 0;
            cr_assert_geq(c.maxmemory, MIB);
            cr_assert_leq(replicas[r] * (stores + logs), memory[m]);
            cr_assert_not(budget.beyond);
            cr_assert(strstr(budget.said, "are free on this machine") != NULL);
        }
    }
}

Test(budget, the_backlog_is_256_mib_or_less_if_memory_is_short)
{
    struct qn_config c = config(3);
    cr_assert_eq(make(&c, 24 * GIB, NONE, NONE), QN_OK);
    cr_assert_eq(c.repl_backlog_size, 256 * MIB);
    c = config(3);
    cr_assert_eq(make(&c, 2 * GIB, NONE, NONE), QN_OK);
    cr_assert_eq(c.repl_backlog_size, 42 * MIB);
    c = config(3);
    c.repl_backlog_size = 7 * MIB;
    cr_assert_eq(make(&c, 2 * GIB, NONE, NONE), QN_OK);
    cr_assert_eq(c.repl_backlog_size, 7 * MIB, "as told");
}

Test(budget, the_control_group_counts_if_it_leaves_less)
{
    struct qn_config c = config(3), d = config(3);
    cr_assert_eq(make(&c, 24 * GIB, 2 * GIB, NONE), QN_OK);
    cr_assert(strstr(budget.said, "2048 MiB are left by the control group") !=
              NULL);
    cr_assert_eq(make(&d, 2 * GIB, NONE, NONE), QN_OK);
    cr_assert_eq(c.maxmemory, d.maxmemory);
    c = config(3);
    cr_assert_eq(make(&c, 2 * GIB, 24 * GIB, NONE), QN_OK);
    cr_assert_eq(c.maxmemory, d.maxmemory);
    c = config(3);
    cr_assert_eq(make(&c, 0, 2 * GIB, NONE), QN_OK, "all that is known");
    cr_assert_eq(c.maxmemory, d.maxmemory);
}

/* Five outboxes with a ring of 1 GiB each: three, and two that have ended; a
 * quarter less each with a short backlog. */
Test(budget, address_space_must_hold_all_rings)
{
    struct qn_config c = config(3);
    cr_assert_eq(make(&c, 24 * GIB, NONE, 3 * GIB), QN_ENOMEM);
    cr_assert(strstr(budget.said, "3072 MiB are allowed by ulimit -v") != NULL);
    cr_assert(strstr(budget.said, "or --acceptor process") != NULL);
    c = config(3);
    cr_assert_eq(make(&c, 24 * GIB, NONE, 4 * GIB), QN_OK);
    cr_assert_eq(c.repl_backlog_size, 4 * MIB);
    c = config(3);
    cr_assert_eq(make(&c, 24 * GIB, NONE, 7 * GIB), QN_OK);
    cr_assert_eq(c.repl_backlog_size, 256 * MIB);
    cr_assert_leq(c.maxmemory, 2 * GIB * 4 / 11);
    cr_assert(strstr(budget.said, "allowed by ulimit -v") != NULL);
    c = config(3);
    c.memory_acceptor = false;
    cr_assert_eq(make(&c, 24 * GIB, NONE, 2 * GIB), QN_OK, "no rings");
    c = config(3);
    c.maxmemory = MIB;
    cr_assert_eq(make(&c, 24 * GIB, NONE, 3 * GIB), QN_ENOMEM,
                 "whatever the limit");
}

Test(budget, what_is_told_is_kept)
{
    struct qn_config c = config(3);
    c.maxmemory = 100 * MIB;
    cr_assert_eq(make(&c, 24 * GIB, NONE, NONE), QN_OK);
    cr_assert_eq(c.maxmemory, 100 * MIB);
    cr_assert_str_eq(budget.said, "");
    c.maxmemory = 24 * GIB;
    cr_assert_eq(make(&c, 24 * GIB, NONE, NONE), QN_OK);
    cr_assert_eq(c.maxmemory, 24 * GIB);
    cr_assert(budget.beyond);
    cr_assert(strstr(budget.said, "24576 MiB as told, but only") != NULL);
    c.maxmemory = 0;
    cr_assert_eq(make(&c, 24 * GIB, NONE, NONE), QN_OK);
    cr_assert_eq(c.maxmemory, 0);
}

Test(budget, without_any_knowledge_there_is_no_limit)
{
    struct qn_config c = config(3);
    cr_assert_eq(make(&c, 0, NONE, NONE), QN_OK);
    cr_assert_eq(c.maxmemory, 0);
    cr_assert_eq(c.repl_backlog_size, 256 * MIB);
}

Test(budget, too_little_is_refused_in_a_line_that_says_what_to_do)
{
    struct qn_config c = config(3);
    cr_assert_eq(make(&c, 24 * GIB, 80 * MIB, NONE), QN_ENOMEM);
    cr_assert(strstr(budget.said, "80 MiB are left by the control group, 26 "
                                  "MiB for each replica") != NULL);
    cr_assert(strstr(budget.said, "use fewer --replicas") != NULL);
    c = config(3);
    c.maxmemory = MIB;
    cr_assert_eq(make(&c, 24 * GIB, 80 * MIB, NONE), QN_OK, "as told");
    cr_assert(budget.beyond);
}

/* An operator who says how many there may be has memory left for them. */
Test(budget, memory_is_for_the_replicas_that_begin_or_were_asked_for)
{
    struct qn_config c = config(3), told = config(3), begins = config(3);
    c.replicas_max_auto = true;
    c.replicas_max = told.replicas_max = 8;
    begins.replicas_max = 3;
    cr_assert_eq(make(&c, 24 * GIB, NONE, NONE), QN_OK);
    cr_assert_eq(make(&told, 24 * GIB, NONE, NONE), QN_OK);
    cr_assert_eq(make(&begins, 24 * GIB, NONE, NONE), QN_OK);
    cr_expect_leq(c.maxmemory, begins.maxmemory);
    cr_expect_geq(c.maxmemory, begins.maxmemory / 100 * 99);
    cr_expect_lt(told.maxmemory, c.maxmemory * 3 / 8);
}

static struct qn_budget_group group(const struct qn_config *c, uint32_t members)
{
    return (struct qn_budget_group){.members = members,
                                    .maxmemory = c->maxmemory};
}

static bool one_more(const struct qn_config *c, const struct qn_budget_group *g,
                     uint64_t memory, uint64_t left, uint64_t *fits)
{
    const struct qn_resource_limits l = limits(memory, left, NONE);
    *fits = 1;
    return qn_budget_one_more(&l, c, &channels, g, fits);
}

Test(budget, a_group_whose_limit_is_automatic_can_grow_from_three_to_four)
{
    struct qn_config c = config(3);
    uint64_t fits;
    c.replicas_max_auto = true;
    c.replicas_max = 8;
    cr_assert_eq(make(&c, 24 * GIB, NONE, NONE), QN_OK);
    for (uint32_t n = 3; n < 8; n++) {
        const struct qn_budget_group g = group(&c, n);
        cr_expect_eq(one_more(&c, &g, 24 * GIB, NONE, &fits), n < 4, "%u", n);
    }
}

/* What is told is what fits: with a little more it does not. */
Test(budget, a_single_replica_lowers_its_limit_before_one_more_comes)
{
    struct qn_config c = config(1);
    uint64_t fits;
    c.replicas_max_auto = true;
    c.replicas_max = 8;
    cr_assert_eq(make(&c, 24 * GIB, NONE, NONE), QN_OK);
    struct qn_budget_group g = group(&c, 1);
    cr_assert_not(one_more(&c, &g, 24 * GIB, NONE, &fits));
    cr_assert_gt(fits, 4 * GIB);
    cr_assert_lt(fits, 6 * GIB);
    g.maxmemory = fits;
    cr_expect(one_more(&c, &g, 24 * GIB, NONE, &fits));
    g.maxmemory += MIB;
    cr_expect_not(one_more(&c, &g, 24 * GIB, NONE, &fits));
}

/* Of 24 GiB, 3 are taken: the same as if they were free. A store that has
 * taken more than its limit allows takes no more. */
Test(budget, what_stores_have_taken_counts_once)
{
    struct qn_config c = config(3);
    uint64_t fits;
    c.replicas_max = 8;
    cr_assert_eq(make(&c, 24 * GIB, NONE, NONE), QN_OK);
    struct qn_budget_group none = group(&c, 3), some = none, more = none;
    some.used[0] = some.used[1] = some.used[2] = GIB;
    more.used[0] = 3 * GIB;
    none.maxmemory = some.maxmemory = more.maxmemory = 3 * GIB;
    uint64_t least = GIB; /* of free memory, in which one more fits */
    while (!one_more(&c, &none, least, NONE, &fits)) {
        least += 64 * MIB;
    }
    cr_expect_not(
        one_more(&c, &some, least - 3 * GIB - 128 * MIB, NONE, &fits));
    cr_expect(one_more(&c, &some, least - 3 * GIB + 128 * MIB, NONE, &fits));
    cr_expect(one_more(&c, &more, least - 3 * GIB + 128 * MIB, NONE, &fits));
    more.used[0] = 30 * GIB;
    cr_expect_not(one_more(&c, &more, GIB, NONE, &fits));
    cr_expect_not(one_more(&c, &none, 2 * least, GIB, &fits), "control group");
    cr_expect(one_more(&c, &none, 0, NONE, &fits), "nothing is known");
    none.maxmemory = 0; /* no limit: only what comes before the first key */
    cr_expect(one_more(&c, &none, GIB, NONE, &fits));
}

/* A process maps the rings of all seats. */
Test(budget, automatic_seats_are_fewer_if_address_space_is_short)
{
    struct qn_config c = config(3);
    c.replicas_max = 8;
    const struct qn_resource_limits l = limits(24 * GIB, NONE, 32 * GIB);
    qn_budget_seats(&l, &c, &channels);
    cr_expect_eq(c.replicas_max, 8);
    uint32_t before = 8;
    for (uint64_t gib = 20; gib > 1; gib--) {
        const struct qn_resource_limits less =
            limits(24 * GIB, NONE, gib * GIB);
        qn_budget_seats(&less, &c, &channels);
        cr_expect_leq(c.replicas_max, before);
        cr_expect_geq(c.replicas_max, 3);
        before = c.replicas_max;
    }
    cr_expect_eq(before, 3);
}

Test(budget, a_group_that_keeps_its_size_has_all_memory)
{
    struct qn_config c = config(3), d = config(3);
    c.memory_acceptor = d.memory_acceptor = false;
    c.replicas_max = 5;
    cr_assert_eq(make(&c, 24 * GIB, NONE, NONE), QN_OK);
    cr_assert_eq(make(&d, 24 * GIB, NONE, NONE), QN_OK);
    cr_expect_gt(c.maxmemory, d.maxmemory / 10 * 9);
}
