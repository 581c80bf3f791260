/*
 * The alarm on a loop of its own. Time is that of the loop: what is due rings
 * in the next run without blocking, what is far away does not, however slow the
 * machine.
 */
#include "kvs/frontend/loop_deadline.h"

#include "tests/support/test.h"

enum { FAR = 3600 }; /* seconds: longer than any test */

static uv_loop_t loop;
static struct qn_loop_deadline alarm_;

static void begin(void)
{
    cr_assert_eq(uv_loop_init(&loop), 0);
    qn_loop_deadline_init(&alarm_, &loop);
}

static void end(void)
{
    uv_close((uv_handle_t *)&alarm_.timer, NULL);
    uv_run(&loop, UV_RUN_NOWAIT);
    cr_assert_eq(uv_loop_close(&loop), 0);
}

/* The loop may block for ever only if nothing is set. */
static bool may_sleep_for_ever(void)
{
    return !qn_loop_deadline_rang(&alarm_) && uv_backend_timeout(&loop) <= 0 &&
           uv_loop_alive(&loop) == 0;
}

Test(alarm, one_that_went_off_is_remembered_until_it_is_set_again)
{
    begin();
    const qn_time_t now = qn_clock_now();
    qn_loop_deadline_set(&alarm_, now, now);
    cr_assert(!qn_loop_deadline_rang(&alarm_), "not before the loop has run");
    uv_run(&loop, UV_RUN_NOWAIT);
    cr_assert(qn_loop_deadline_rang(&alarm_), "slept through");
    uv_run(&loop, UV_RUN_NOWAIT);
    cr_assert(qn_loop_deadline_rang(&alarm_), "forgotten");
    qn_loop_deadline_set(&alarm_, QN_TIME_NEVER, now);
    cr_assert(may_sleep_for_ever());
    end();
}

Test(alarm, the_same_time_can_be_set_again_after_it_went_off)
{
    begin();
    const qn_time_t now = qn_clock_now();
    for (int i = 0; i < 2; i++) {
        qn_loop_deadline_set(&alarm_, now, now);
        uv_run(&loop, UV_RUN_NOWAIT);
        cr_assert(qn_loop_deadline_rang(&alarm_), "time %d", i);
    }
    end();
}

Test(alarm, never_takes_back_what_was_set)
{
    begin();
    const qn_time_t now = qn_clock_now();
    qn_loop_deadline_set(&alarm_, now, now);
    qn_loop_deadline_set(&alarm_, QN_TIME_NEVER, now);
    uv_run(&loop, UV_RUN_NOWAIT);
    cr_assert(may_sleep_for_ever());
    end();
}

Test(alarm, a_later_time_replaces_an_earlier_one_and_back)
{
    begin();
    const qn_time_t now = qn_clock_now();
    qn_loop_deadline_set(&alarm_, now, now);
    qn_loop_deadline_set(&alarm_, now + FAR * QN_S, now);
    uv_run(&loop, UV_RUN_NOWAIT);
    cr_assert(!qn_loop_deadline_rang(&alarm_), "the earlier one went off");
    cr_assert_gt(uv_backend_timeout(&loop), 0);
    qn_loop_deadline_set(&alarm_, now, now);
    uv_run(&loop, UV_RUN_NOWAIT);
    cr_assert(qn_loop_deadline_rang(&alarm_));
    end();
}

/* A timer that fires early would make a turn for nothing, and another one. */
Test(alarm, a_part_of_a_millisecond_counts_as_a_whole_one)
{
    begin();
    const qn_time_t now = qn_clock_now();
    qn_loop_deadline_set(&alarm_, now + 1, now);
    cr_assert_eq(uv_timer_get_due_in(&alarm_.timer), 1);
    qn_loop_deadline_set(&alarm_, now + 2 * QN_MS, now);
    cr_assert_eq(uv_timer_get_due_in(&alarm_.timer), 2);
    end();
}
