/* The rule of `auto`: which trials it makes, what it keeps, and how soon. */
#include "core/base/bits.h"
#include "core/sync/delegate/auto_rule.h"
#include "tests/support/test.h"

/* A machine: what an operation costs in each backend, in ns, and what executors
 * see there. Each window is 64 operations. */
struct load {
    uint32_t parts;
    uint64_t ns[QN_AUTO_PARTS];
    uint64_t failed; /* attempts per 64 operations under the lock */
    uint64_t batch;  /* operations per batch in cc_synch and h_synch, 1..64 */
};

struct run {
    struct qn_auto_state s;
    uint64_t time;
    uint32_t now;
    uint64_t operations;
    uint64_t in[QN_AUTO_PARTS]; /* operations */
};

static void window(struct run *r, const struct load *l)
{
    const bool lock = r->now == QN_AUTO_LOCK;
    const struct qn_auto_window w = {.operations = 64,
                                     .batches = lock ? 64 : 64 / l->batch,
                                     .failed = lock ? l->failed : 0};
    r->in[r->now] += 64;
    r->operations += 64;
    r->time += 64 * l->ns[r->now];
    r->now = qn_auto_rule(l->parts, r->now, &w, r->time, &r->s);
}

static void operate(struct run *r, const struct load *l, uint64_t operations)
{
    for (uint64_t i = 0; i < operations; i += 64) {
        window(r, l);
    }
}

/* The share of the last `operations` that were run in `part`, in %. */
static uint64_t share(struct run *r, const struct load *l, uint32_t part,
                      uint64_t operations)
{
    const uint64_t before = r->in[part];
    operate(r, l, operations);
    return 100 * (r->in[part] - before) / operations;
}

Test(auto_rule, the_cheapest_is_in_use_after_10000_operations)
{
    static const struct {
        struct load load;
        uint32_t best;
    } row[] = {
        {{2, {50, 70, 0}, 0, 1}, QN_AUTO_LOCK},
        {{2, {90, 120, 0}, 20, 1}, QN_AUTO_LOCK},
        {{2, {120, 90, 0}, 20, 2}, QN_AUTO_CC_SYNCH},
        {{2, {2000, 90, 0}, 400, 64}, QN_AUTO_CC_SYNCH},
        {{3, {120, 90, 100}, 20, 8}, QN_AUTO_CC_SYNCH},
        {{3, {3000, 200, 100}, 600, 64}, QN_AUTO_H_SYNCH},
        {{3, {90, 120, 150}, 20, 1}, QN_AUTO_LOCK},
    };
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(row); i++) {
        struct run r = {.time = 1};
        operate(&r, &row[i].load, 10000);
        uint64_t s = share(&r, &row[i].load, row[i].best, 1000000);
        cr_expect_geq(s, 97, "row %u: %lu %% in the best", i, s);
    }
}

Test(auto_rule, without_failed_attempts_the_lock_is_never_left)
{
    const struct load alone = {3, {500, 1, 1}, 0, 64};
    struct run r = {.time = 1};
    cr_expect_eq(share(&r, &alone, QN_AUTO_LOCK, 100000), 100);
}

Test(auto_rule, a_crowd_tries_no_lock)
{
    const struct load crowd = {2, {9000, 100, 0}, 600, 64};
    struct run r = {.time = 1};
    operate(&r, &crowd, 10000);
    cr_expect_eq(r.now, QN_AUTO_CC_SYNCH);
    cr_expect_eq(share(&r, &crowd, QN_AUTO_CC_SYNCH, 1000000), 100);
}

/* As 20 threads in 8 domains; cc_synch, which came first, had longer ones. */
Test(auto_rule, combiners_of_domains_with_batches_of_two_try_no_lock)
{
    const struct load before = {3, {4000, 430, 390}, 600, 64};
    const struct load l = {3, {4000, 430, 390}, 600, 2};
    struct run r = {.time = 1};
    while (r.s.home != QN_AUTO_H_SYNCH && r.operations < 10000) {
        window(&r, &before);
    }
    cr_assert_eq(r.now, QN_AUTO_H_SYNCH);
    const uint64_t in_lock = r.in[QN_AUTO_LOCK];
    cr_expect_geq(share(&r, &l, QN_AUTO_H_SYNCH, 1000000), 90);
    cr_expect_eq(r.in[QN_AUTO_LOCK], in_lock);
}

/* Without the early end it would last as long as an epoch at home, beside the
 * operations that do not count. */
Test(auto_rule, a_bad_trial_is_short)
{
    const struct load l = {2, {100, 200, 0}, 64, 1};
    struct run r = {.time = 1};
    while (r.now == QN_AUTO_LOCK) {
        window(&r, &l);
    }
    operate(&r, &l, 3 * QN_AUTO_EPOCH / 4 + 64);
    cr_expect_eq(r.now, QN_AUTO_LOCK);
}

Test(auto_rule, clients_tell_often_in_a_trial_and_seldom_where_none_fails)
{
    const struct load contended = {2, {100, 200, 0}, 64, 1};
    const struct load alone = {2, {100, 200, 0}, 0, 1};
    struct run r = {.time = 1};
    window(&r, &contended);
    cr_expect_eq(r.s.window, QN_AUTO_WINDOW);
    while (r.now == QN_AUTO_LOCK) {
        window(&r, &contended);
    }
    cr_expect_eq(r.s.window, QN_AUTO_WINDOW, "a trial begins");
    operate(&r, &contended, 4 * QN_AUTO_EPOCH);
    cr_expect_eq(r.now, QN_AUTO_LOCK);
    cr_expect_eq(r.s.window, 2 * QN_AUTO_HOME, "one fails for each operation");
    operate(&r, &alone, 4 * QN_AUTO_EPOCH);
    cr_expect_eq(r.s.window, QN_AUTO_CALM);
    operate(&r, &contended, 2 * QN_AUTO_EPOCH);
    cr_expect_neq(r.s.window, QN_AUTO_CALM);
}

/* With 6 threads of a TILE-Gx twelve fail for each operation: windows of 64 are
 * of five operations, and took 5 % of the lock's rate. */
Test(auto_rule, attempts_that_fail_do_not_make_clients_tell_more_often)
{
    const struct load several = {2, {100, 200, 0}, 12 * 64, 1};
    const struct load crowd = {2, {100, 200, 0}, 20 * 64, 1};
    struct run r = {.time = 1};
    operate(&r, &several, QN_AUTO_EPOCH / 2);
    cr_expect_eq(r.now, QN_AUTO_LOCK);
    cr_expect_eq(r.s.window, 13 * QN_AUTO_WINDOW, "as at the end of a trial");
    operate(&r, &several, 4 * QN_AUTO_EPOCH);
    cr_expect_eq(r.now, QN_AUTO_LOCK);
    cr_expect_eq(r.s.window, QN_AUTO_CALM);
    operate(&r, &crowd, 4 * QN_AUTO_EPOCH);
    cr_expect_eq(r.now, QN_AUTO_LOCK);
    cr_expect_eq(r.s.window, QN_AUTO_HOME);
}

/* Also the first trials, and with two other backends. */
Test(auto_rule, failed_trials_cost_a_few_percent)
{
    const struct load l = {3, {3000, 300, 100}, 600, 64};
    struct run r = {.time = 1};
    operate(&r, &l, 10000);
    const uint64_t before = r.time;
    operate(&r, &l, 20000);
    cr_expect_leq((r.time - before) * 100, 20000 * l.ns[2] * 104, "%lu ns",
                  r.time - before);
}

/* Where each operation takes many attempts it takes none of an epoch. */
Test(auto_rule, a_crowd_leaves_the_lock_at_once)
{
    const struct load crowd = {2, {9000, 100, 0}, 2000, 64};
    struct run r = {.time = 1};
    while (r.now == QN_AUTO_LOCK && r.operations < QN_AUTO_EPOCH) {
        window(&r, &crowd);
    }
    cr_expect_eq(r.now, QN_AUTO_CC_SYNCH);
    cr_expect_leq(r.operations, 128);
}

/* A preemption: one epoch is no other load. */
Test(auto_rule, one_slow_epoch_changes_nothing)
{
    const struct load l = {2, {100, 200, 0}, 10, 1};
    struct run r = {.time = 1};
    operate(&r, &l, 100000);
    const uint64_t cost = r.s.cost;
    for (uint32_t i = 0; i < 4; i++) {
        r.time += 4000000;
        operate(&r, &l, 3 * QN_AUTO_EPOCH);
        cr_expect_eq(r.now, QN_AUTO_LOCK);
        cr_expect_eq(r.s.cost, cost);
    }
}

Test(auto_rule, it_follows_a_load_that_changes)
{
    const struct load few = {2, {100, 150, 0}, 10, 2};
    const struct load many = {2, {1000, 80, 0}, 300, 64};
    struct run r = {.time = 1};
    for (uint32_t i = 0; i < 6; i++) {
        const struct load *l = i % 2 == 0 ? &few : &many;
        const uint32_t best = i % 2 == 0 ? QN_AUTO_LOCK : QN_AUTO_CC_SYNCH;
        operate(&r, l, 10000);
        uint64_t s = share(&r, l, best, 100000);
        cr_expect_geq(s, 90, "load %u: %lu %%", i, s);
    }
}

/* As where another process takes a core for some time, again and again: once
 * trials have failed under both loads, a change between them is no reason for
 * another one. */
Test(auto_rule, a_load_that_comes_back_is_not_tried_anew)
{
    const struct load load[] = {{2, {100, 150, 0}, 10, 1},
                                {2, {250, 400, 0}, 10, 1}};
    struct run r = {.time = 1};
    for (uint32_t i = 0; i < 20; i++) {
        operate(&r, &load[i % 2], 20 * QN_AUTO_EPOCH);
    }
    const uint64_t before = r.in[QN_AUTO_CC_SYNCH];
    for (uint32_t i = 0; i < 20; i++) {
        operate(&r, &load[i % 2], 20 * QN_AUTO_EPOCH);
    }
    cr_expect_leq((r.in[QN_AUTO_CC_SYNCH] - before) * 100, 400 * QN_AUTO_EPOCH,
                  "%lu of %u", r.in[QN_AUTO_CC_SYNCH] - before,
                  400 * QN_AUTO_EPOCH);
}

/* However often trials have failed under the one before. */
Test(auto_rule, a_load_of_another_cost_is_tried_at_once)
{
    const struct load before = {2, {100, 150, 0}, 10, 1};
    const struct load l = {2, {250, 120, 0}, 10, 1};
    struct run r = {.time = 1};
    operate(&r, &before, 300 * QN_AUTO_EPOCH);
    operate(&r, &l, 4 * QN_AUTO_EPOCH);
    cr_expect_eq(r.s.home, QN_AUTO_CC_SYNCH);
}

/* What was put off at a high cost is long for a low one. */
Test(auto_rule, a_far_cheaper_load_is_tried_at_once)
{
    for (uint64_t k = 2; k <= 1024; k *= 2) {
        const struct load before = {2, {100 * k, 150 * k, 0}, 20, 1},
                          after = {2, {100, 60, 0}, 20, 1};
        struct run r = {.time = 1};
        operate(&r, &before, 1000000);
        operate(&r, &after, 10000);
        cr_expect_eq(r.now, QN_AUTO_CC_SYNCH, "a cost of 1/%lu", k);
    }
}

/* A counter of few threads, in cc_synch, to which many come. */
static const struct load few_come = {3, {500, 200, 300}, 10, 5};
static const struct load many_come = {3, {9000, 150, 100}, 600, 32};

/* Where batches are more than four times as long it is another load, at
 * whatever cost. Whenever in an epoch that happens, it takes two of 256
 * operations to see. */
Test(auto_rule, much_longer_batches_are_another_load)
{
    for (uint32_t i = 0; i < QN_AUTO_EPOCH / 64; i++) {
        struct run r = {.time = 1};
        operate(&r, &few_come, 300 * QN_AUTO_EPOCH);
        while (r.now != QN_AUTO_CC_SYNCH || !r.s.warm) {
            window(&r, &few_come);
        }
        operate(&r, &few_come, (uint64_t)64 * i);
        cr_assert_eq(r.s.home, QN_AUTO_CC_SYNCH);
        const uint64_t before = r.operations;
        while (r.now == QN_AUTO_CC_SYNCH && r.operations < 2 * before) {
            window(&r, &many_come);
        }
        cr_expect_eq(r.now, QN_AUTO_H_SYNCH);
        cr_expect_leq(r.operations - before, QN_AUTO_EPOCH / 2 + 64,
                      "%u windows into an epoch: %lu", i,
                      r.operations - before);
    }
}

/* A client adds to one sum after the other: a look in between finds batches
 * without their operations, and the next look these. */
Test(auto_rule, sums_of_which_one_comes_later_are_no_other_load)
{
    struct run r = {.time = 1};
    operate(&r, &few_come, 300 * QN_AUTO_EPOCH);
    while (r.now != QN_AUTO_CC_SYNCH || !r.s.warm) {
        window(&r, &few_come);
    }
    operate(&r, &few_come, 2 * QN_AUTO_EPOCH);
    cr_assert_eq(r.now, QN_AUTO_CC_SYNCH);
    cr_assert_eq(r.s.odd, 0);
    const uint64_t n = QN_AUTO_EPOCH / 4;
    const struct qn_auto_window torn[2] = {{.batches = n / few_come.batch},
                                           {.operations = n}};
    for (uint32_t i = 0; i < 8; i++) {
        r.time += i % 2 * n * few_come.ns[QN_AUTO_CC_SYNCH];
        r.now = qn_auto_rule(few_come.parts, r.now, &torn[i % 2], r.time, &r.s);
        cr_expect_eq(r.s.odd, 0, "look %u", i);
    }
}

/* That epoch has many batches still, so a lock would make sense, of which an
 * operation takes 60 times as long by now. */
Test(auto_rule, an_epoch_in_which_the_load_changes_begins_no_trial)
{
    uint32_t changes = 0;
    for (uint32_t i = 0; i < 1024; i++) {
        struct run r = {.time = 1};
        operate(&r, &few_come, 20 * QN_AUTO_EPOCH + (uint64_t)64 * i);
        if (r.now != QN_AUTO_CC_SYNCH || r.s.home != QN_AUTO_CC_SYNCH) {
            continue; /* a trial is under way */
        }
        changes++;
        const uint64_t in_lock = r.in[QN_AUTO_LOCK];
        operate(&r, &many_come, 4 * QN_AUTO_EPOCH);
        cr_expect_eq(r.in[QN_AUTO_LOCK], in_lock, "%u windows: %lu operations",
                     i, r.in[QN_AUTO_LOCK] - in_lock);
        cr_expect_eq(r.now, QN_AUTO_H_SYNCH);
    }
    cr_expect_gt(changes, 900);
}

/* Many come just when few try cc_synch. It wins against their h_synch, which
 * is better for many. */
Test(auto_rule, a_trial_that_another_load_has_won_puts_nothing_off)
{
    const struct load few = {3, {9000, 500, 490}, 600, 1};
    struct run r = {.time = 1};
    while (r.s.home != QN_AUTO_H_SYNCH && r.operations < 10000) {
        window(&r, &many_come);
    }
    operate(&r, &few, 3 * QN_AUTO_EPOCH);
    while (r.now != QN_AUTO_CC_SYNCH && r.operations < 1000000) {
        window(&r, &few);
    }
    cr_assert_eq(r.s.home, QN_AUTO_H_SYNCH);
    operate(&r, &many_come, 4 * QN_AUTO_EPOCH);
    cr_expect_eq(r.s.home, QN_AUTO_H_SYNCH);
}

/* Nothing happens for an hour while a trial lasts: that is no loss of it. */
Test(auto_rule, a_trial_of_an_hour_is_repeated_soon)
{
    const struct load l = {2, {100, 200, 0}, 64, 1};
    struct run r = {.time = 1};
    while (r.now == QN_AUTO_LOCK) {
        window(&r, &l);
    }
    r.time += UINT64_C(3600) * 1000000000;
    operate(&r, &l, 3 * QN_AUTO_EPOCH);
    cr_assert_eq(r.now, QN_AUTO_LOCK);
    const uint64_t before = r.in[QN_AUTO_CC_SYNCH];
    operate(&r, &l, 500 * QN_AUTO_EPOCH);
    cr_expect_gt(r.in[QN_AUTO_CC_SYNCH], before);
}
