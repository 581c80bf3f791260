/*
 * What a driver notes in the flight recorder.
 */
#include "tests/support/test.h"
#include "tests/unit/paxos/driver/driver_group.h"

static struct qn_flight_event noted[QN_FLIGHT_ENTRIES];

/* What node i has noted, in `noted`; @return how many. */
static uint32_t read_events(uint32_t i)
{
    return qn_flight_recorder_read(flight[i], QN_FLIGHT_ENTRIES, noted);
}

/* The first event of a kind from `from` on; there must be one. */
static const struct qn_flight_event *find_event(uint32_t i, uint32_t from,
                                                enum qn_event_kind kind)
{
    uint32_t n = read_events(i);
    for (uint32_t k = from; k < n; k++) {
        if (noted[k].kind == kind) {
            return &noted[k];
        }
    }
    cr_assert_fail("node %u has not noted kind %u", i, kind);
    return NULL;
}

/* Who leads is noted at the beginning, and then nothing, whatever is written:
 * a recorder that commands fill remembers nothing. */
Test(driver_events, commands_leave_no_trace_in_the_flight_recorder)
{
    group_start(3);
    uint32_t before = read_events(0);
    const struct qn_flight_event *e = find_event(0, 0, QN_EVENT_EPOCH);
    cr_assert_eq(e->node, 0);
    cr_assert_eq(e->b, 1);
    cr_assert_eq(e->a, 100);
    submit_number(0, 0);
    rounds(1);
    cr_assert_eq(find_event(0, 0, QN_EVENT_ROLE)->b, QN_ACTIVE);
    for (uint64_t x = 0; x < 999; x++) {
        submit_number((uint32_t)(x % 3), x);
        rounds(1);
    }
    rounds(50);
    check_equal_logs(1000);
    cr_assert_eq(read_events(0), before + 1);
    cr_assert_eq(read_events(1), 1);
    cr_assert_eq(read_events(2), 1);
    group_stop();
}

Test(driver_events, a_death_is_noted_when_and_with_what_was_applied)
{
    group_start(3);
    submit_number(0, 1);
    rounds(20);
    qn_driver_down(node[0].driver, 2, now);
    qn_driver_down(node[0].driver, 2, now); /* twice is once */
    uint32_t n = read_events(0);
    const struct qn_flight_event *e = find_event(0, 0, QN_EVENT_DOWN);
    cr_assert_eq(e, &noted[n - 1]);
    cr_assert_eq(e->time, now);
    cr_assert_eq(e->node, 2);
    cr_assert_eq(e->a, 102);
    cr_assert_eq(e->slot, 1);
    group_stop();
}

/* A learner stands still: the acceptor leaves it behind; when it goes on it
 * fetches, from whoever notes that too. */
Test(driver_events, who_is_left_behind_and_what_it_fetches_is_noted)
{
    group_start(3);
    node[2].stopped = true;
    for (uint64_t x = 0; x < 3000; x++) {
        submit_number((uint32_t)(x % 2), x);
        rounds(1);
    }
    cr_assert_eq(find_event(1, 0, QN_EVENT_BEHIND)->node, 2);
    node[2].stopped = false;
    rounds(3000);
    submit_number(0, 1);
    rounds(20);
    check_equal_logs(3001);
    cr_assert_eq(find_event(1, 0, QN_EVENT_BACK)->node, 2);
    const struct qn_flight_event *e = find_event(2, 0, QN_EVENT_SENT);
    cr_assert_eq(e->b, QN_MSG_FETCH);
    cr_assert_eq(find_event(e->node, 0, QN_EVENT_GOT)->b, QN_MSG_FETCH);
    cr_assert_lt(read_events(2), 100, "a flood");
    group_stop();
}

/* Nothing is decided for a while: how long is noted when it is over, by who
 * waited and by nobody else. */
Test(driver_events, a_pause_is_noted_by_who_waited)
{
    group_start(3);
    submit_number(2, 1);
    rounds(20);
    node[1].stopped = true;
    submit_number(2, 2);
    rounds(300); /* 30 ms */
    uint32_t before = read_events(2);
    node[1].stopped = false;
    rounds(20);
    check_equal_logs(2);
    const struct qn_flight_event *e = find_event(2, before, QN_EVENT_PAUSE);
    cr_assert_geq(e->a, 29000, "%u us", (unsigned)e->a);
    cr_assert_leq(e->a, 32000, "%u us", (unsigned)e->a);
    for (uint32_t k = read_events(0); k-- > 0;) {
        cr_assert_neq(noted[k].kind, QN_EVENT_PAUSE);
    }
    group_stop();
}

Test(driver_events, what_is_malformed_is_noted)
{
    group_start(3);
    void *cell = NULL;
    cr_assert_eq(qn_qp_try_reserve(node[2].direct[0], 16, &cell), QN_OK);
    memset(cell, 0xff, 16);
    qn_qp_commit(node[2].direct[0], 16);
    qn_qp_flush(node[2].direct[0]);
    rounds(2);
    cr_assert_eq(find_event(0, 0, QN_EVENT_CORRUPT)->node, 2);
    group_stop();
}
