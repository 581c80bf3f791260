/*
 * The watch over others' doors, in virtual time: looks come QN_WATCH_LOOK
 * apart, as in kvs/server/doors.c, and a world of nodes turns or does not.
 */
#include "kvs/listen/watch.h"

#include <string.h>

#include "tests/support/test.h"

#define NODES 5u

static struct qn_watch watch;
static struct qn_watch_seen seen[NODES];
static qn_time_t now;

static void begin(qn_node_t self)
{
    qn_watch_init(&watch, self, NODES);
    now = 1000 * QN_MS;
    for (qn_node_t i = 0; i < NODES; i++) {
        seen[i] = (struct qn_watch_seen){.serves = true, .turns = 7 + i};
    }
    /* It has looked before, long ago. */
    cr_assert_eq(qn_watch_look(&watch, seen, 0, now), 0);
    now += 1000 * QN_MS;
}

static uint64_t look(uint64_t waiting)
{
    uint64_t take = qn_watch_look(&watch, seen, waiting, now);
    now += QN_WATCH_LOOK;
    return take;
}

/* Time until something is taken, from the first look on. */
static qn_time_t time_to_take(uint64_t waiting)
{
    qn_time_t from = now;
    while (look(waiting) == 0) {
        cr_assert_lt(now - from, QN_S);
    }
    return now - QN_WATCH_LOOK - from;
}

Test(watch, one_that_turns_is_left_alone)
{
    begin(1);
    for (int i = 0; i < 100; i++) {
        seen[0].turns++;
        cr_assert_eq(look(1u << 0), 0, "look %d", i);
    }
    cr_assert_eq(qn_watch_open(&watch, seen), 0x1f);
}

/* Idle, its counter stands still by right. */
Test(watch, an_idle_one_has_its_time_from_the_first_connection_on)
{
    begin(1);
    cr_assert_eq(look(1u << 0), 0);
    seen[0].turns++;
    cr_assert_eq(look(0), 0, "it has accepted");
    now += QN_S;
    cr_assert_eq(look(1u << 0), 0);
    cr_assert_eq(time_to_take(1u << 0), QN_WATCH_STILL - QN_WATCH_LOOK);
}

Test(watch, one_that_stands_still_is_helped_and_at_once_from_then_on)
{
    begin(1);
    cr_assert_eq(time_to_take(1u << 0), QN_WATCH_STILL);
    cr_assert_eq(qn_watch_open(&watch, seen), 0x1e);
    cr_assert_eq(look(0), 0);
    cr_assert_eq(look(1u << 0), 1u << 0, "it has not turned since");
    seen[0].turns++;
    cr_assert_eq(look(1u << 0), 0, "it turns again");
    cr_assert_eq(qn_watch_open(&watch, seen), 0x1f);
}

Test(watch, the_queue_of_one_that_is_gone_is_taken_at_once)
{
    begin(1);
    seen[0].serves = false;
    cr_assert_eq(look(1u << 0), 1u << 0);
    cr_assert_eq(qn_watch_open(&watch, seen), 0x1e);
    seen[0].serves = true; /* its next life */
    seen[0].turns = 1;
    cr_assert_eq(look(1u << 0), 0);
    cr_assert_eq(qn_watch_open(&watch, seen), 0x1f);
}

/* The next one in the order of ids is first; whoever he is, it is soon. */
Test(watch, all_others_watch_one_after_the_other)
{
    qn_time_t before = 0;
    for (qn_node_t k = 1; k < NODES; k++) {
        begin((3 + k) % NODES);
        qn_time_t t = time_to_take(1u << 3);
        cr_assert_geq(t, before);
        cr_assert_leq(t, 75 * QN_MS);
        before = t;
    }
    cr_assert_gt(before, QN_WATCH_STILL);
}

/* Nodes 1 and 2 should have helped node 0, and have not turned either. */
Test(watch, who_did_not_help_in_time_is_still_too)
{
    begin(3);
    seen[4].turns++;
    cr_assert_leq(time_to_take(1u << 0), 60 * QN_MS);
    cr_assert_eq(qn_watch_open(&watch, seen), 0x18);
    cr_assert_eq(look(0), 0);
    cr_assert_eq(look(1u << 1), 1u << 1, "known to be still");
    seen[2].turns++;
    look(0);
    cr_assert_eq(qn_watch_open(&watch, seen), 0x1c);
}

Test(watch, one_that_helps_others_is_not_still)
{
    begin(2);
    qn_time_t from = now;
    uint64_t take = 0;
    while (take == 0 && now - from < QN_S) {
        seen[1].turns++; /* it turns, yet does not help */
        take = look(1u << 0);
    }
    cr_assert_eq(take, 1u << 0);
    cr_assert_eq(qn_watch_open(&watch, seen), 0x1e);
}

/* Any phase of the looks, any of the others still: never later than said. */
Test(watch, nobody_waits_longer_than_75_ms)
{
    for (uint32_t still = 0; still < 1u << (NODES - 1); still++) {
        for (qn_time_t phase = 0; phase < QN_WATCH_LOOK; phase += QN_MS) {
            begin(NODES - 1);
            /* Node 0 served one that came just before; it stops then. */
            cr_assert_eq(look(1u << 0), 0);
            seen[0].turns++;
            qn_time_t arrived = now - QN_WATCH_LOOK + phase;
            qn_time_t t = 0;
            do {
                for (qn_node_t i = 1; i < NODES - 1; i++) {
                    seen[i].turns += (still >> i & 1) == 0;
                }
                t = now;
            } while (look(1u << 0) == 0 && now - arrived < QN_S);
            cr_assert_leq(t - arrived, 75 * QN_MS, "%u %u", still,
                          (unsigned)(phase / QN_MS));
        }
    }
}
