/*
 * The explorer itself: what it must find, what it must not invent, and that a
 * fault can be replayed.
 */
#include "core/base/atomic.h"
#include "core/base/err.h"
#include "core/sim/explore/explore.h"
#include "core/wait/park.h"
#include "tests/support/test.h"

/* Shared and private state of the little programs; reset by setup. */
struct litmus {
    qn_a32 x, y;
    uint8_t line[64];
    uint32_t r[QN_EXPLORE_NODES];
    int order; /* of the stores under test: an enum is not a constant there */
    bool fence;
};

static void reset(void *ctx)
{
    struct litmus *l = ctx;
    qn_store(&l->x, 0, QN_SEQ_CST);
    qn_store(&l->y, 0, QN_SEQ_CST);
    memset(l->line, 0, sizeof l->line);
    memset(l->r, 0, sizeof l->r);
}

static const char *nothing_wrong(void *ctx)
{
    (void)ctx;
    return NULL;
}

/* ---- store buffering: each stores its own and loads the other's ---- */

static void store_ordered(qn_a32 *p, const struct litmus *l)
{
    if (l->order == QN_SEQ_CST) {
        qn_store(p, 1, QN_SEQ_CST);
    } else {
        qn_store(p, 1, QN_RELEASE);
    }
    if (l->fence) {
        qn_fence(QN_SEQ_CST);
    }
}

static void sb_0(void *ctx)
{
    struct litmus *l = ctx;
    store_ordered(&l->x, l);
    l->r[0] = qn_load(&l->y, QN_ACQUIRE);
}

static void sb_1(void *ctx)
{
    struct litmus *l = ctx;
    store_ordered(&l->y, l);
    l->r[1] = qn_load(&l->x, QN_ACQUIRE);
}

static const char *both_missed(void *ctx)
{
    const struct litmus *l = ctx;
    return l->r[0] == 0 && l->r[1] == 0 ? "both missed" : NULL;
}

static struct qn_explore_opts store_buffering(struct litmus *l)
{
    return (struct qn_explore_opts){.nodes = 2,
                                    .node = {sb_0, sb_1},
                                    .setup = reset,
                                    .check = both_missed,
                                    .ctx = l,
                                    .deviations = 4};
}

Test(explore, finds_that_both_loads_pass_release_stores)
{
    struct litmus l = {.order = QN_RELEASE};
    struct qn_explored out;
    const struct qn_explore_opts o = store_buffering(&l);
    cr_assert(!qn_explore(&o, &out));
    cr_assert_str_eq(out.fault, "both missed");
    cr_assert(!out.complete);
}

Test(explore, seq_cst_stores_forbid_it)
{
    struct litmus l = {.order = QN_SEQ_CST};
    struct qn_explored out;
    const struct qn_explore_opts o = store_buffering(&l);
    cr_assert(qn_explore(&o, &out), "%s", out.choices);
    cr_assert(out.complete);
    cr_assert_gt(out.runs, 6);
}

Test(explore, fences_forbid_it)
{
    struct litmus l = {.order = QN_RELEASE, .fence = true};
    struct qn_explored out;
    const struct qn_explore_opts o = store_buffering(&l);
    cr_assert(qn_explore(&o, &out), "%s", out.choices);
    cr_assert(out.complete);
}

Test(explore, a_fault_is_found_again_by_the_choices_it_printed)
{
    struct litmus l = {.order = QN_RELEASE};
    struct qn_explored out;
    struct qn_explore_opts o = store_buffering(&l);
    cr_assert(!qn_explore(&o, &out));
    char choices[QN_SIM_CHOICES_MAX];
    memcpy(choices, out.choices, sizeof choices);
    cr_assert(!qn_explore_replay(&o, choices, &out));
    cr_assert_str_eq(out.fault, "both missed");
    cr_assert_str_eq(out.choices, choices);
    l.fence = true;
    cr_assert(qn_explore_replay(&o, choices, &out));
}

/* ---- message passing: stores are seen in order ---- */

static void mp_0(void *ctx)
{
    struct litmus *l = ctx;
    qn_store(&l->x, 1, QN_RELAXED);
    qn_store(&l->y, 1, QN_RELAXED);
}

static void mp_1(void *ctx)
{
    struct litmus *l = ctx;
    l->r[0] = qn_load(&l->y, QN_RELAXED);
    l->r[1] = qn_load(&l->x, QN_RELAXED);
}

static const char *later_without_earlier(void *ctx)
{
    const struct litmus *l = ctx;
    return l->r[0] == 1 && l->r[1] == 0 ? "out of order" : NULL;
}

Test(explore, stores_are_never_seen_out_of_order)
{
    struct litmus l;
    struct qn_explored out;
    const struct qn_explore_opts o = {.nodes = 2,
                                      .node = {mp_0, mp_1},
                                      .setup = reset,
                                      .check = later_without_earlier,
                                      .ctx = &l,
                                      .deviations = 6};
    cr_assert(qn_explore(&o, &out), "%s", out.choices);
    cr_assert(out.complete);
}

static const char *half(void *ctx)
{
    const struct litmus *l = ctx;
    return l->r[0] == 1 && l->r[1] == 1 ? "seen" : NULL;
}

/* The drain choices are real: the second is seen only if both have drained. */
Test(explore, buffers_drain_while_their_node_runs)
{
    struct litmus l;
    struct qn_explored out;
    const struct qn_explore_opts o = {.nodes = 2,
                                      .node = {mp_0, mp_1},
                                      .setup = reset,
                                      .check = half,
                                      .ctx = &l,
                                      .deviations = 2};
    cr_assert(!qn_explore(&o, &out));
    cr_assert_not_null(strchr(out.choices, 'd'), "%s", out.choices);
}

/* ---- a node and its own stores ---- */

static void reads_own(void *ctx)
{
    struct litmus *l = ctx;
    uint8_t three[3];
    qn_store(&l->x, 7, QN_RELAXED);
    if (qn_load(&l->x, QN_RELAXED) != 7) {
        qn_sim_fail("own store not seen");
    }
    qn_copy_out(l->line + 8, "abcdefgh", 8);
    qn_copy_out(l->line + 10, "XY", 2);
    qn_copy_in(three, l->line + 9, 3);
    if (memcmp(three, "bXY", 3) != 0) {
        qn_sim_fail("own copies not seen");
    }
    if (qn_fetch_add(&l->x, 1, QN_SEQ_CST) != 7 ||
        qn_fetch_or(&l->x, 16, QN_SEQ_CST) != 8 ||
        qn_exchange(&l->x, 3, QN_SEQ_CST) != 24) {
        qn_sim_fail("read-modify-write");
    }
    uint32_t expected = 4;
    if (qn_cas(&l->x, &expected, 5, QN_SEQ_CST) || expected != 3 ||
        !qn_cas(&l->x, &expected, 5, QN_SEQ_CST)) {
        qn_sim_fail("compare and swap");
    }
}

static const char *left_five(void *ctx)
{
    struct litmus *l = ctx;
    return qn_load(&l->x, QN_RELAXED) == 5 && l->line[10] == 'X' ? NULL
                                                                 : "memory";
}

Test(explore, a_node_sees_its_own_stores_at_once)
{
    struct litmus l;
    struct qn_explored out;
    const struct qn_explore_opts o = {.nodes = 2,
                                      .node = {reads_own, mp_1},
                                      .setup = reset,
                                      .check = left_five,
                                      .ctx = &l,
                                      .deviations = 2};
    cr_assert(qn_explore(&o, &out), "%s at %s", out.fault, out.choices);
}

/* ---- kills ---- */

static void three_stores(void *ctx)
{
    struct litmus *l = ctx;
    for (uint32_t i = 1; i <= 3; i++) {
        qn_store(&l->x, i, QN_SEQ_CST);
    }
}

static uint32_t seen_ends; /* bit v: some run ended with x == v */

static const char *note_end(void *ctx)
{
    struct litmus *l = ctx;
    uint32_t x = qn_load(&l->x, QN_RELAXED);
    seen_ends |= 1u << x;
    bool killed = qn_sim_end_of(0) == QN_SIM_KILLED;
    return killed == (x < 3) ? NULL : "killed and complete";
}

Test(explore, kills_in_front_of_every_operation)
{
    struct litmus l;
    struct qn_explored out;
    const struct qn_explore_opts o = {.nodes = 1,
                                      .node = {three_stores},
                                      .setup = reset,
                                      .check = note_end,
                                      .ctx = &l,
                                      .kills = 1};
    seen_ends = 0;
    cr_assert(qn_explore(&o, &out), "%s", out.fault);
    cr_assert_eq(seen_ends, 0xfu, "0, 1, 2 and 3 stores");
    cr_assert_eq(out.runs, 4);
}

/* ---- sleep ---- */

static void sleeps(void *ctx)
{
    struct litmus *l = ctx;
    while (qn_load(&l->x, QN_ACQUIRE) == 0) {
        l->r[0]++;
        if (qn_park_word(&l->x, 0, QN_TIME_NEVER) != QN_OK) {
            qn_sim_fail("timed out");
        }
    }
}

static void wakes(void *ctx)
{
    struct litmus *l = ctx;
    qn_store(&l->x, 1, QN_RELEASE);
    qn_unpark_word(&l->x);
}

static const char *all_done(void *ctx)
{
    (void)ctx;
    return qn_sim_end_of(0) == QN_SIM_DONE && qn_sim_end_of(1) == QN_SIM_DONE
               ? NULL
               : "asleep for ever";
}

Test(explore, a_futex_compares_under_its_lock)
{
    struct litmus l;
    struct qn_explored out;
    const struct qn_explore_opts o = {.nodes = 2,
                                      .node = {sleeps, wakes},
                                      .setup = reset,
                                      .check = all_done,
                                      .ctx = &l,
                                      .deviations = 5};
    cr_assert(qn_explore(&o, &out), "%s at %s", out.fault, out.choices);
    cr_assert(out.complete);
}

static void forgets_to_wake(void *ctx)
{
    struct litmus *l = ctx;
    qn_store(&l->x, 1, QN_RELEASE);
}

Test(explore, a_sleeper_that_nobody_wakes_is_seen)
{
    struct litmus l;
    struct qn_explored out;
    const struct qn_explore_opts o = {.nodes = 2,
                                      .node = {sleeps, forgets_to_wake},
                                      .setup = reset,
                                      .check = all_done,
                                      .ctx = &l};
    cr_assert(!qn_explore(&o, &out));
    cr_assert_str_eq(out.fault, "asleep for ever");
}

static void sleeps_with_deadline(void *ctx)
{
    struct litmus *l = ctx;
    l->r[0] = qn_park_word(&l->x, 0, 1) == QN_ETIMEDOUT;
    l->r[1] = qn_park_fd(3, 1) == QN_ETIMEDOUT;
}

static const char *timed_out_twice(void *ctx)
{
    const struct litmus *l = ctx;
    return l->r[0] == 1 && l->r[1] == 1 ? NULL : "no time passed";
}

Test(explore, time_passes_when_nobody_can_run)
{
    struct litmus l;
    struct qn_explored out;
    const struct qn_explore_opts o = {.nodes = 1,
                                      .node = {sleeps_with_deadline},
                                      .setup = reset,
                                      .check = timed_out_twice,
                                      .ctx = &l};
    cr_assert(qn_explore(&o, &out), "%s", out.fault);
}

static void waits_politely(void *ctx)
{
    struct litmus *l = ctx;
    while (qn_load(&l->x, QN_ACQUIRE) == 0) {
        qn_pause();
    }
}

Test(explore, who_pauses_lets_others_run)
{
    struct litmus l;
    struct qn_explored out;
    const struct qn_explore_opts o = {.nodes = 2,
                                      .node = {waits_politely, mp_0},
                                      .setup = reset,
                                      .check = all_done,
                                      .ctx = &l,
                                      .steps_max = 100};
    cr_assert(qn_explore(&o, &out), "%s at %s", out.fault, out.choices);
}

Test(explore, two_nodes_in_pauses_do_not_starve_a_third)
{
    struct litmus l;
    struct qn_explored out;
    const struct qn_explore_opts o = {
        .nodes = 3,
        .node = {waits_politely, waits_politely, mp_0},
        .setup = reset,
        .check = nothing_wrong,
        .ctx = &l,
        .deviations = 2,
        .steps_max = 100};
    cr_assert(qn_explore(&o, &out), "%s at %s", out.fault, out.choices);
    cr_assert(out.complete);
}

static void never_ends(void *ctx)
{
    struct litmus *l = ctx;
    while (qn_load(&l->x, QN_ACQUIRE) == 0) {
    }
}

Test(explore, a_run_without_end_is_a_fault)
{
    struct litmus l;
    struct qn_explored out;
    const struct qn_explore_opts o = {.nodes = 1,
                                      .node = {never_ends},
                                      .setup = reset,
                                      .check = nothing_wrong,
                                      .ctx = &l,
                                      .steps_max = 100};
    cr_assert(!qn_explore(&o, &out));
    cr_assert_str_eq(out.fault, "more steps than allowed");
}

Test(explore, a_limit_of_runs_ends_it_incomplete)
{
    struct litmus l = {.order = QN_SEQ_CST};
    struct qn_explored out;
    struct qn_explore_opts o = store_buffering(&l);
    o.runs_max = 3;
    cr_assert(qn_explore(&o, &out));
    cr_assert_eq(out.runs, 3);
    cr_assert(!out.complete);
}
