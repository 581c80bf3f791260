/*
 * The C11 memory of the explorer, beside its litmus tests: plain copies and
 * races, checked copies, system calls, progress, and the choices it prints.
 */
#include "core/base/mark.h"
#include "core/sim/explore/explore.h"
#include "core/wait/park.h"
#include "tests/support/test.h"

struct memory {
    qn_a32 x, y;
    uint64_t bytes[32];
    uint32_t found[2];
    memory_order store, load; /* of the orders under test */
    bool late;
};

static struct memory s;

static void reset(void *ctx)
{
    (void)ctx;
    qn_store(&s.x, 0, QN_SEQ_CST);
    qn_store(&s.y, 0, QN_SEQ_CST);
    memset(s.bytes, 0, sizeof s.bytes);
    memset(s.found, 0, sizeof s.found);
}

static const char *nothing_wrong(void *ctx)
{
    (void)ctx;
    return NULL;
}

static struct qn_explore_opts two(void (*first)(void *), void (*second)(void *))
{
    return (struct qn_explore_opts){.nodes = 2,
                                    .node = {first, second},
                                    .setup = reset,
                                    .check = nothing_wrong,
                                    .memory = QN_EXPLORE_C11,
                                    .deviations = 3};
}

static void expect_clean(const struct qn_explore_opts *o)
{
    struct qn_explored out;
    cr_assert(qn_explore(o, &out), "%s at %s", out.fault, out.choices);
    cr_assert(out.complete);
}

/* The fault is found, and found again by its choices. */
static void expect_fault(const struct qn_explore_opts *o, const char *fault)
{
    struct qn_explored out, again;
    cr_assert(!qn_explore(o, &out), "%s was not found", fault);
    cr_assert_str_eq(out.fault, fault);
    cr_assert(!qn_explore_replay(o, out.choices, &again));
    cr_assert_str_eq(again.fault, fault);
    cr_assert_str_eq(again.choices, out.choices);
}

/* ---- plain bytes ---- */

static void publishes(void *ctx)
{
    (void)ctx;
    qn_copy_out(s.bytes, "sixteen of them.", 16);
    qn_store(&s.x, 1, s.store);
}

static void finds(void *ctx)
{
    char own[16];
    (void)ctx;
    if (qn_load(&s.x, s.load) == 1) {
        qn_copy_in(own, s.bytes, 16);
        if (memcmp(own, "sixteen of them.", 16) != 0) {
            qn_sim_fail("torn");
        }
    }
}

Test(c11, bytes_that_a_release_publishes_are_no_race)
{
    const struct qn_explore_opts o = two(publishes, finds);
    s.store = QN_RELEASE;
    s.load = QN_ACQUIRE;
    expect_clean(&o);
}

Test(c11, bytes_that_no_release_or_no_acquire_orders_are_a_race)
{
    const struct qn_explore_opts o = two(publishes, finds);
    s.store = QN_RELAXED;
    s.load = QN_ACQUIRE;
    expect_fault(&o, "a data race with a write");
    s.store = QN_RELEASE;
    s.load = QN_RELAXED;
    expect_fault(&o, "a data race with a write");
}

static void reads_in_place(void *ctx)
{
    (void)ctx;
    if (qn_load(&s.x, QN_ACQUIRE) == 1) {
        qn_touch_in(s.bytes, 16);
        qn_store(&s.y, 1, s.store);
    }
}

static void writes_again(void *ctx)
{
    publishes(ctx);
    if (qn_load(&s.y, s.load) == 1) {
        qn_touch_out(s.bytes, 16);
    }
}

/* The reverse edge: the reads are over before the next write. */
Test(c11, a_write_that_no_acquire_orders_behind_a_read_is_a_race)
{
    const struct qn_explore_opts o = two(writes_again, reads_in_place);
    s.store = QN_RELEASE;
    s.load = QN_ACQUIRE;
    expect_clean(&o);
    s.load = QN_RELAXED;
    expect_fault(&o, "a data race with a read");
}

static void first_half(void *ctx)
{
    (void)ctx;
    qn_copy_out(s.bytes, "four", 4);
}

static void second_half(void *ctx)
{
    (void)ctx;
    qn_copy_out((char *)s.bytes + (s.late ? 3 : 4), "more", 4);
}

Test(c11, neighbours_are_no_race_and_an_overlap_is_one)
{
    const struct qn_explore_opts o = two(first_half, second_half);
    s.late = false;
    expect_clean(&o);
    s.late = true;
    expect_fault(&o, "a data race with a write");
}

static void stores_there(void *ctx)
{
    (void)ctx;
    qn_store(&s.x, 7, QN_SEQ_CST);
}

static void copies_there(void *ctx)
{
    (void)ctx;
    qn_copy_out(&s.x, "four", 4);
}

Test(c11, an_atomic_store_and_a_plain_copy_of_the_same_bytes_are_a_race)
{
    const struct qn_explore_opts o = two(stores_there, copies_there);
    expect_fault(&o, "a data race with a write");
}

/* ---- checked copies: a sequence lock ---- */

static void locks_and_writes(void *ctx)
{
    uint64_t next[16];
    (void)ctx;
    memset(next, 1, sizeof next);
    qn_store(&s.x, 1, QN_RELAXED);
    qn_fence(s.store);
    qn_copy_out(s.bytes, next, sizeof next);
}

static void looks_twice(void *ctx)
{
    uint64_t own[16];
    (void)ctx;
    qn_copy_in_checked(own, s.bytes, sizeof own);
    qn_fence(s.load);
    if (qn_load(&s.x, QN_RELAXED) != 0) {
        return;
    }
    for (int i = 0; i < 16; i++) {
        if (own[i] != 0) {
            qn_sim_fail("a new byte, and the lock not seen");
        }
    }
}

Test(c11, a_checked_copy_is_as_good_as_its_fences)
{
    const struct qn_explore_opts o = two(locks_and_writes, looks_twice);
    s.store = QN_RELEASE;
    s.load = QN_ACQUIRE;
    expect_clean(&o);
    s.load = QN_RELAXED;
    expect_fault(&o, "a new byte, and the lock not seen");
    s.store = QN_RELAXED;
    s.load = QN_ACQUIRE;
    expect_fault(&o, "a new byte, and the lock not seen");
}

static bool mixed[4]; /* by which half was new */

static void writes(void *ctx)
{
    (void)ctx;
    const uint64_t two_words[2] = {1, 1};
    qn_copy_out(s.bytes, two_words, sizeof two_words);
}

static void copies(void *ctx)
{
    uint64_t own[2];
    (void)ctx;
    qn_copy_in_checked(own, s.bytes, sizeof own);
    mixed[own[0] * 2 + own[1]] = true;
}

Test(c11, a_checked_copy_may_be_any_mix)
{
    const struct qn_explore_opts o = two(writes, copies);
    expect_clean(&o);
    for (int i = 0; i < 4; i++) {
        cr_assert(mixed[i], "mix %d", i);
    }
}

static void finds_checked(void *ctx)
{
    char own[16];
    (void)ctx;
    if (qn_load(&s.x, s.load) == 1) {
        qn_copy_in_checked(own, s.bytes, 16);
        if (memcmp(own, "sixteen of them.", 16) != 0) {
            qn_sim_fail("older than what was acquired");
        }
    }
}

Test(c11, a_checked_copy_is_not_older_than_what_was_acquired)
{
    const struct qn_explore_opts o = two(publishes, finds_checked);
    s.store = QN_RELEASE;
    s.load = QN_ACQUIRE;
    expect_clean(&o);
    s.load = QN_RELAXED;
    expect_fault(&o, "older than what was acquired");
}

/* A long copy is several points: a death may leave half of it. */
static void writes_long(void *ctx)
{
    uint64_t ones[32];
    (void)ctx;
    memset(ones, 1, sizeof ones);
    qn_copy_out(s.bytes, ones, sizeof ones);
}

static bool half_seen;

static const char *note_half(void *ctx)
{
    (void)ctx;
    half_seen = half_seen || (s.bytes[0] != 0 && s.bytes[31] == 0);
    return NULL;
}

Test(c11, a_death_leaves_half_of_a_long_copy)
{
    struct qn_explore_opts o = two(writes_long, first_half);
    o.nodes = 1;
    o.kills = 1;
    o.check = note_half;
    half_seen = false;
    expect_clean(&o);
    cr_assert(half_seen);
}

/* ---- system calls and progress ---- */

static void sleeps_once(void *ctx)
{
    (void)ctx;
    (void)qn_park_fd(3, QN_TIME_NEVER);
    if (qn_load(&s.x, QN_RELAXED) != 1) {
        qn_sim_fail("woken, and what came before is not seen");
    }
}

static void wakes_it(void *ctx)
{
    (void)ctx;
    qn_store(&s.x, 1, QN_RELAXED);
    qn_unpark_fd(3);
}

Test(c11, what_came_before_a_ring_is_seen_behind_the_sleep)
{
    const struct qn_explore_opts o = two(sleeps_once, wakes_it);
    expect_clean(&o);
}

/* Both orders of the look and of the announcement are wrong without fences. */
static void announces_sleep(void *ctx)
{
    (void)ctx;
    qn_store(&s.y, 1, QN_RELAXED);
    qn_fence(s.store);
    if (qn_load(&s.x, QN_RELAXED) == 0) {
        (void)qn_park_fd(3, QN_TIME_NEVER);
    }
    s.found[0] = 1;
}

static void gives_work(void *ctx)
{
    (void)ctx;
    qn_store(&s.x, 1, QN_RELAXED);
    qn_fence(s.store);
    if (qn_load(&s.y, QN_RELAXED) == 1) {
        qn_unpark_fd(3);
    }
}

static bool work_waits(void *ctx, uint32_t node)
{
    (void)ctx;
    return node == 0 && qn_load(&s.x, QN_RELAXED) == 1 && s.found[0] == 0;
}

Test(c11, a_sleeper_with_work_pending_is_a_fault)
{
    struct qn_explore_opts o = two(announces_sleep, gives_work);
    o.pending = work_waits;
    s.store = QN_SEQ_CST;
    expect_clean(&o);
    s.store = QN_ACQ_REL;
    expect_fault(&o, "a node sleeps while work waits for it");
}

/* ---- limits ---- */

static void stores_often(void *ctx)
{
    (void)ctx;
    for (uint32_t i = 1; i <= 20; i++) {
        qn_store(&s.x, i, QN_RELAXED);
    }
}

static void finds_an_old_one(void *ctx)
{
    (void)ctx;
    uint32_t x = qn_load(&s.x, QN_RELAXED);
    if (x == 13) {
        qn_sim_fail("the eighth store from the end");
    }
}

Test(c11, a_load_takes_any_of_the_last_eight_stores)
{
    struct qn_explore_opts o = two(stores_often, finds_an_old_one);
    struct qn_explored out;
    o.deviations = 1;
    cr_assert(!qn_explore(&o, &out));
    cr_assert_not_null(strstr(out.choices, ":o7"), "%s", out.choices);
}

static void fails_to_swap(void *ctx)
{
    uint32_t expected = 5;
    char own[16];
    (void)ctx;
    if (!qn_cas(&s.x, &expected, 6, QN_RELEASE) && expected == 1) {
        qn_copy_in(own, s.bytes, 16); /* found by the failure */
    }
}

Test(c11, a_compare_and_swap_that_fails_acquires)
{
    const struct qn_explore_opts o = two(publishes, fails_to_swap);
    s.store = QN_RELEASE;
    expect_clean(&o);
}
