/*
 * OC-Bcast, synchronous and asynchronous, on strict chips of 100 seeds; and the
 * synchronous one between threads.
 */
#include <pthread.h>
#include <sched.h>

#include "tests/support/test.h"
#include "tests/unit/transports/mpb/mpb_world.h"
#include "tests/unit/transports/mpb/ocbcast/oc_world.h"
#include "transports/mpb/ocbcast/oc_async_internal.h"
#include "transports/mpb/ocbcast/ocbcast.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SEEDS 25u
#else
#define SEEDS 100u
#endif

Test(ocbcast, all_nodes_get_all_of_it, .timeout = 60)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const char *wrong = oc_sync_traffic(seed);
        cr_assert_null(wrong, "seed %u: %s", (uint32_t)seed, wrong);
    }
}

Test(ocbcast, a_root_may_change_while_a_node_is_late, .timeout = 60)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const char *wrong = oc_root_change(seed);
        cr_assert_null(wrong, "seed %u: %s", (uint32_t)seed, wrong);
    }
}

Test(ocbcast, flags_older_than_half_of_all_numbers_do_not_count, .timeout = 60)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const char *wrong = oc_old_lines(seed);
        cr_assert_null(wrong, "seed %u: %s", (uint32_t)seed, wrong);
    }
}

Test(ocbcast, says_what_it_cannot_do)
{
    static struct mpb_world w;
    struct qn_oc oc;
    uint8_t byte = 0;
    mpb_open_world(&w, 3, false, 1);
    struct qn_oc_opts o = {
        .chip = mpb_core(&w, 0), .first = 200, .lines = 7, .k = 2};
    cr_assert_eq(qn_oc_init(&oc, &o), QN_OK);
    cr_assert_eq(oc.chunk_lines, 1);
    cr_assert_eq(qn_oc_begin(&oc, 0, &byte, 65535 * 32 + 1), QN_EMSGSIZE);
    cr_assert_eq(qn_oc_begin(&oc, 3, &byte, 1), QN_EINVAL);
    cr_assert_eq(qn_oc_begin(&oc, 0, &byte, 1), QN_OK);
    cr_assert_eq(qn_oc_begin(&oc, 0, &byte, 1), QN_EAGAIN);
    cr_assert_eq(qn_oc_step(&oc), QN_EAGAIN);
    qn_oc_down(&oc);
    cr_assert_eq(qn_oc_step(&oc), QN_EPEERDEAD);
    cr_assert_eq(qn_oc_begin(&oc, 0, &byte, 1), QN_EPEERDEAD);
    o.lines = 6;
    cr_assert_eq(qn_oc_init(&oc, &o), QN_EINVAL);
    o.lines = 60;
    cr_assert_eq(qn_oc_init(&oc, &o), QN_EINVAL, "behind the buffer");
    o.lines = 20;
    o.k = 3;
    cr_assert_eq(qn_oc_init(&oc, &o), QN_EINVAL);
    mpb_close_world(&w);
}

/* The published layout: 1 + k + 2 * 96 lines, and the barrier. */
Test(ocbcast, chunks_of_48_nodes_with_any_fan_out_have_96_lines)
{
    for (uint32_t k = 1; k < 48; k++) {
        cr_assert_eq(qn_oc_chunk_lines(48, QN_MPB_LINES, k), 96);
    }
}

Test(oc_async, all_nodes_get_all_messages, .timeout = 60)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const char *wrong = oc_async_traffic(seed, 0);
        cr_assert_null(wrong, "seed %u: %s", (uint32_t)seed, wrong);
    }
}

Test(oc_async, deaths_tear_double_and_stop_nothing, .timeout = 60)
{
    for (uint64_t seed = 0; seed < 3 * SEEDS; seed++) {
        const char *wrong = oc_async_traffic(seed, 1 + seed % 4);
        cr_assert_null(wrong, "seed %u: %s", (uint32_t)seed, wrong);
    }
}

Test(oc_async, a_head_that_is_torn_says_and_claims_nothing)
{
    for (uint64_t seed = 0; seed < 8; seed++) {
        const char *wrong = oc_async_torn_head(seed);
        cr_assert_null(wrong, "seed %u: %s", (uint32_t)seed, wrong);
    }
}

Test(oc_async, what_was_a_leaf_for_half_of_all_versions_passes_on_again)
{
    const char *wrong = oc_async_old_leaf(1);
    cr_assert_null(wrong, "%s", wrong);
}

static void run(const char *(*world)(uint64_t))
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        const char *wrong = world(seed);
        cr_assert_null(wrong, "seed %u: %s", (uint32_t)seed, wrong);
    }
}

Test(oc_async, a_position_of_long_ago_does_not_count)
{
    run(oc_async_old_position);
}

Test(oc_async, a_view_that_changes_in_another_life_is_noticed)
{
    run(oc_async_same_count);
}

Test(oc_async, behind_a_jump_no_half_of_a_message_is_completed)
{
    run(oc_async_jump);
}

Test(oc_async, a_straggler_takes_no_place_of_a_newer_chunk)
{
    run(oc_async_straggler);
}

Test(oc_async, a_source_does_not_run_ahead_of_a_member_that_stalls,
     .timeout = 60)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const char *wrong = oc_async_stall(seed);
        cr_assert_null(wrong, "seed %u: %s", (uint32_t)seed, wrong);
    }
}

/* The bound is reached: of all sources but the member itself a window waits. */
Test(oc_async, ends_open_no_window_beside_a_member_that_stalls, .timeout = 60)
{
    uint32_t longest = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        uint32_t most;
        const char *wrong = oc_async_stall_and_deaths(seed, &most);
        cr_assert_null(wrong, "seed %u: %s", (uint32_t)seed, wrong);
        longest = most > longest ? most : longest;
    }
    cr_assert_eq(longest, 4 * QN_OC_WINDOW, "%u", longest);
}

/* ---- places of chunks that wait ---- */

static struct mpb_world three;
static struct qn_oc_async *relay;

static void open_relay(void)
{
    struct qn_device_bcast *b = NULL;
    mpb_open_world(&three, 3, false, 1);
    cr_assert_eq(
        qn_oc_async_create(
            &b, &(struct qn_oc_async_opts){.device = three.node[0], .k = 1}),
        QN_OK);
    relay = (struct qn_oc_async *)(void *)b;
}

static void close_relay(void)
{
    qn_device_bcast_destroy(&relay->bcast);
    mpb_close_world(&three);
}

/* @return false: it is not to be passed on. */
static bool comes(uint32_t number, uint16_t version)
{
    const struct qn_oc_about about = {.source = 1,
                                      .number = number,
                                      .version = version,
                                      .members = 7,
                                      .bytes = 1,
                                      .place = 1,
                                      .places = 1};
    struct qn_oc_chunk *c = qn_oc_claim(relay, &about);
    if (c != NULL) {
        qn_oc_head_write(&c->head, &about);
        qn_oc_enqueue(relay, 1, number);
    }
    return c != NULL;
}

/* What a source sends again goes by another tree. What comes late by the older
 * one must not go out in its place: other children wait for it. */
Test(oc_relay, a_straggler_of_an_older_version_goes_no_further)
{
    open_relay();
    cr_assert(comes(UINT32_MAX, 0xffff));
    cr_assert(comes(0, 0xffff));
    cr_assert_eq(relay->queued, 2);
    cr_assert(comes(UINT32_MAX, 0), "the version has wrapped");
    cr_assert_eq(relay->queued, 1, "of the older one nothing waits any more");
    cr_assert(!comes(0, 0xffff));
    cr_assert(comes(0, 0));
    cr_assert_eq(relay->queued, 2);
    close_relay();
}

/* All members have what is a window behind the newest. */
Test(oc_relay, a_place_is_of_the_newest_chunk)
{
    open_relay();
    for (uint32_t n = UINT32_MAX - 1; n != 5; n++) {
        cr_assert(comes(n, 3));
        cr_assert_leq(relay->queued, QN_OC_WINDOW);
    }
    cr_assert_eq(relay->queued, QN_OC_WINDOW);
    cr_assert(!comes(0, 3));
    cr_assert(comes(8, 3), "it skips what all have");
    cr_assert_eq(relay->queued, 1);
    close_relay();
}

/* ---- threads ---- */

#define THREADS 4u
#define ROUNDS  400u

static struct mpb_world shared;

static void *take_part(void *arg)
{
    const qn_node_t self = *(const qn_node_t *)arg;
    uint8_t bytes[500];
    struct qn_oc oc;
    if (qn_oc_init(&oc, &(struct qn_oc_opts){.chip = mpb_core(&shared, self),
                                             .first = 200,
                                             .lines = 14,
                                             .k = 2,
                                             .session = 7}) != QN_OK) {
        return arg;
    }
    for (uint32_t b = 0; b < ROUNDS; b++) {
        qn_node_t root = b / 3 % THREADS;
        uint32_t len = b * 37 % sizeof bytes;
        memset(bytes, self == root ? (int)(b % 256) : -1, sizeof bytes);
        (void)qn_oc_begin(&oc, root, bytes, len);
        int rc;
        while ((rc = qn_oc_step(&oc)) == QN_EAGAIN) {
            sched_yield();
        }
        for (uint32_t i = 0; i < len && rc == QN_OK; i++) {
            rc = bytes[i] == (uint8_t)b ? QN_OK : QN_ECORRUPT;
        }
        if (rc != QN_OK) {
            return arg;
        }
    }
    return NULL;
}

Test(ocbcast_threads, all_get_all_of_it, .timeout = 120)
{
    for (int strict = 0; strict < 2; strict++) {
        pthread_t thread[THREADS];
        static qn_node_t self[THREADS] = {0, 1, 2, 3};
        mpb_open_world(&shared, THREADS, strict, 5);
        for (uint32_t i = 0; i < THREADS; i++) {
            cr_assert_eq(pthread_create(&thread[i], NULL, take_part, &self[i]),
                         0);
        }
        for (uint32_t i = 0; i < THREADS; i++) {
            void *failed;
            cr_assert_eq(pthread_join(thread[i], &failed), 0);
            cr_assert_null(failed);
        }
        mpb_close_world(&shared);
    }
}
