/*
 * The stall detector in virtual time: checks come QN_STALL_CHECK_INTERVAL
 * apart, as in kvs/server/server_accept.c, and each node of a world makes turns
 * or not.
 */
#include "kvs/detector/stall_detector.h"

#include <string.h>

#include "tests/support/test.h"

#define NODES 5u

static struct qn_stall_detector detector;
static struct qn_stall_view view[NODES];
static qn_time_t now;

static void begin(qn_node_t self)
{
    qn_stall_detector_init(&detector, self, NODES);
    now = 1000 * QN_MS;
    for (qn_node_t i = 0; i < NODES; i++) {
        view[i] = (struct qn_stall_view){.serves = true, .turns = 7 + i};
    }
    /* It has checked before, long ago. */
    cr_assert_eq(qn_stall_detector_check(&detector, view, 0, now), 0);
    now += 1000 * QN_MS;
}

static uint64_t check(uint64_t pending)
{
    uint64_t serve = qn_stall_detector_check(&detector, view, pending, now);
    now += QN_STALL_CHECK_INTERVAL;
    return serve;
}

/* Time until a queue is served, from the first check on. */
static qn_time_t time_to_serve(uint64_t pending)
{
    qn_time_t from = now;
    while (check(pending) == 0) {
        cr_assert_lt(now - from, QN_S);
    }
    return now - QN_STALL_CHECK_INTERVAL - from;
}

Test(stall_detector, the_queue_of_a_peer_that_makes_turns_is_not_served)
{
    begin(1);
    for (int i = 0; i < 100; i++) {
        view[0].turns++;
        cr_assert_eq(check(1u << 0), 0, "check %d", i);
    }
    cr_assert_eq(qn_stall_detector_available(&detector, view), 0x1f);
}

/* The counter of an idle peer need not move. */
Test(stall_detector, an_idle_peer_has_its_time_from_the_first_connection_on)
{
    begin(1);
    cr_assert_eq(check(1u << 0), 0);
    view[0].turns++;
    cr_assert_eq(check(0), 0, "it has accepted");
    now += QN_S;
    cr_assert_eq(check(1u << 0), 0);
    cr_assert_eq(time_to_serve(1u << 0),
                 QN_STALL_TIMEOUT - QN_STALL_CHECK_INTERVAL);
}

Test(stall_detector,
     the_queue_of_a_stalled_peer_is_served_and_at_once_from_then_on)
{
    begin(1);
    cr_assert_eq(time_to_serve(1u << 0), QN_STALL_TIMEOUT);
    cr_assert_eq(qn_stall_detector_available(&detector, view), 0x1e);
    cr_assert_eq(check(0), 0);
    cr_assert_eq(check(1u << 0), 1u << 0, "it has not turned since");
    view[0].turns++;
    cr_assert_eq(check(1u << 0), 0, "it turns again");
    cr_assert_eq(qn_stall_detector_available(&detector, view), 0x1f);
}

Test(stall_detector, the_queue_of_an_absent_peer_is_served_at_once)
{
    begin(1);
    view[0].serves = false;
    cr_assert_eq(check(1u << 0), 1u << 0);
    cr_assert_eq(qn_stall_detector_available(&detector, view), 0x1e);
    view[0].serves = true; /* its next incarnation */
    view[0].turns = 1;
    cr_assert_eq(check(1u << 0), 0);
    cr_assert_eq(qn_stall_detector_available(&detector, view), 0x1f);
}

/* The next one in the order of ids is first; any of them serves soon. */
Test(stall_detector, all_others_check_one_after_the_other)
{
    qn_time_t before = 0;
    for (qn_node_t k = 1; k < NODES; k++) {
        begin((3 + k) % NODES);
        qn_time_t t = time_to_serve(1u << 3);
        cr_assert_geq(t, before);
        cr_assert_leq(t, 75 * QN_MS);
        before = t;
    }
    cr_assert_gt(before, QN_STALL_TIMEOUT);
}

/* Nodes 1 and 2 should have served the queue of 0, and have not turned either.
 */
Test(stall_detector, a_peer_that_did_not_serve_in_time_is_stalled_too)
{
    begin(3);
    view[4].turns++;
    cr_assert_leq(time_to_serve(1u << 0), 60 * QN_MS);
    cr_assert_eq(qn_stall_detector_available(&detector, view), 0x18);
    cr_assert_eq(check(0), 0);
    cr_assert_eq(check(1u << 1), 1u << 1, "known to be stalled");
    view[2].turns++;
    check(0);
    cr_assert_eq(qn_stall_detector_available(&detector, view), 0x1c);
}

Test(stall_detector,
     a_peer_that_makes_turns_is_not_stalled_if_it_does_not_serve)
{
    begin(2);
    qn_time_t from = now;
    uint64_t serve = 0;
    while (serve == 0 && now - from < QN_S) {
        view[1].turns++; /* it turns, yet does not serve */
        serve = check(1u << 0);
    }
    cr_assert_eq(serve, 1u << 0);
    cr_assert_eq(qn_stall_detector_available(&detector, view), 0x1e);
}

/* Any phase of the checks, any of the others stalled: never later than said. */
Test(stall_detector, no_connection_waits_longer_than_75_ms)
{
    for (uint32_t stalled = 0; stalled < 1u << (NODES - 1); stalled++) {
        for (qn_time_t phase = 0; phase < QN_STALL_CHECK_INTERVAL;
             phase += QN_MS) {
            begin(NODES - 1);
            /* Node 0 served one that came just before; it stops then. */
            cr_assert_eq(check(1u << 0), 0);
            view[0].turns++;
            qn_time_t arrived = now - QN_STALL_CHECK_INTERVAL + phase;
            qn_time_t t = 0;
            do {
                for (qn_node_t i = 1; i < NODES - 1; i++) {
                    view[i].turns += (stalled >> i & 1) == 0;
                }
                t = now;
            } while (check(1u << 0) == 0 && now - arrived < QN_S);
            cr_assert_leq(t - arrived, 75 * QN_MS, "%u %u", stalled,
                          (unsigned)(phase / QN_MS));
        }
    }
}
