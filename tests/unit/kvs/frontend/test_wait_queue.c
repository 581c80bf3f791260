/* WAIT with two peers in virtual time. */
#include "kvs/frontend/wait_queue.h"

#include "tests/support/test.h"

static struct qn_wait_queue q;
static struct qn_waiter w[3];
static qn_slot_t applied[2];
static struct qn_wait_view v;
static qn_time_t now;

static void setup(void)
{
    q = (struct qn_wait_queue){0};
    for (int i = 0; i < 3; i++) {
        w[i] = (struct qn_waiter){0};
    }
    applied[0] = 100;
    applied[1] = 50;
    v = (struct qn_wait_view){.applied = applied, .peers = 2};
    now = 1000 * QN_S;
}

#define CASE(name) Test(wait_queue, name, .init = setup)

static struct qn_waiter *step(void)
{
    return qn_wait_queue_step(&q, &v, now);
}

CASE(an_empty_queue_returns_none)
{
    cr_assert_not(qn_wait_queue_active(&q));
    cr_assert_null(step());
}

CASE(a_connection_is_answered_once_when_enough_peers_have_applied_its_write)
{
    qn_wait_queue_add(&q, &w[0], 70, 2, 0, now);
    cr_assert_null(step());
    applied[1] = 69;
    cr_assert_null(step());
    applied[1] = 70;
    cr_assert_eq(step(), &w[0]);
    cr_assert_eq(w[0].have, 2);
    cr_assert_not(w[0].queued);
    cr_assert_not(qn_wait_queue_active(&q));
    cr_assert_null(step());
}

CASE(it_is_answered_with_all_that_have_applied_not_with_what_it_wants)
{
    qn_wait_queue_add(&q, &w[0], 50, 1, 0, now);
    cr_assert_eq(step(), &w[0]);
    cr_assert_eq(w[0].have, 2);
}

CASE(after_its_time_it_is_answered_with_what_there_is)
{
    qn_wait_queue_add(&q, &w[0], 70, 2, 10, now);
    now += 10 * QN_MS - 1;
    cr_assert_null(step());
    now += 1;
    cr_assert_eq(step(), &w[0]);
    cr_assert_eq(w[0].have, 1);
}

CASE(without_a_time_it_waits_for_ever)
{
    qn_wait_queue_add(&q, &w[0], 70, 2, 0, now);
    now += 1000000 * QN_S;
    cr_assert_null(step());
}

CASE(a_time_that_no_clock_can_say_is_for_ever)
{
    qn_wait_queue_add(&q, &w[0], 70, 2, INT64_MAX, now);
    cr_assert_eq(w[0].until, QN_TIME_NEVER);
    cr_assert_null(step());
}

CASE(with_no_replica_wanted_it_is_answered_at_once)
{
    qn_wait_queue_add(&q, &w[0], 1000, 0, 0, now);
    cr_assert_eq(step(), &w[0]);
    cr_assert_eq(w[0].have, 0);
}

CASE(more_replicas_than_there_are_never_come)
{
    qn_wait_queue_add(&q, &w[0], 1, 3, 0, now);
    cr_assert_null(step());
    v.peers = 1; /* one has died */
    cr_assert_null(step());
    cr_assert_eq(w[0].have, 1);
}

CASE(a_draining_replica_answers_all)
{
    qn_wait_queue_add(&q, &w[0], 70, 2, 0, now);
    qn_wait_queue_add(&q, &w[1], 200, 1, 0, now);
    v.draining = true;
    struct qn_waiter *first = step();
    cr_assert_eq(first, &w[1]);
    cr_assert_eq(first->have, 0);
    cr_assert_eq(first->next, &w[0]);
    cr_assert_eq(first->next->have, 1);
    cr_assert_null(first->next->next);
}

CASE(a_connection_that_closed_comes_back_at_the_next_step)
{
    qn_wait_queue_add(&q, &w[0], 70, 2, 0, now);
    qn_waiter_cancel(&w[0]);
    cr_assert(w[0].queued, "its memory is needed until then");
    cr_assert_eq(step(), &w[0]);
    cr_assert(w[0].cancelled);
    cr_assert_not(w[0].queued);
}

/* First, middle and last of three: the rest stays. */
CASE(any_entry_can_leave_and_the_others_stay)
{
    for (int leaves = 0; leaves < 3; leaves++) {
        setup();
        for (int i = 0; i < 3; i++) {
            qn_wait_queue_add(&q, &w[i], i == leaves ? 60 : 200, 1, 0, now);
        }
        cr_assert_eq(step(), &w[leaves]);
        cr_assert_null(w[leaves].next);
        cr_assert_eq(q.count, 2);
        applied[0] = 200;
        struct qn_waiter *rest = step();
        cr_assert_not_null(rest);
        cr_assert_not_null(rest->next);
        cr_assert_null(rest->next->next);
    }
}

CASE(an_answered_connection_may_wait_again)
{
    qn_wait_queue_add(&q, &w[0], 60, 1, 0, now);
    cr_assert_eq(step(), &w[0]);
    qn_wait_queue_add(&q, &w[0], 200, 1, 0, now);
    cr_assert_null(step());
    cr_assert_eq(q.count, 1);
}

CASE(clearing_lets_all_go)
{
    qn_wait_queue_add(&q, &w[0], 70, 2, 0, now);
    qn_wait_queue_add(&q, &w[1], 70, 2, 0, now);
    qn_waiter_cancel(&w[1]);
    qn_wait_queue_clear(&q);
    cr_assert_not(qn_wait_queue_active(&q));
    cr_assert_not(w[0].queued);
    cr_assert_not(w[1].queued);
    cr_assert(w[1].cancelled);
}

Test(wait_queue, a_connection_is_in_the_queue_once, .init = setup,
     .signal = SIGABRT)
{
    qn_wait_queue_add(&q, &w[0], 70, 2, 0, now);
    qn_wait_queue_add(&q, &w[0], 70, 2, 0, now);
}

Test(wait_queue, a_closed_connection_cannot_wait, .init = setup,
     .signal = SIGABRT)
{
    qn_waiter_cancel(&w[0]);
    qn_wait_queue_add(&q, &w[0], 70, 2, 0, now);
}

CASE(a_check_of_the_clients_is_due_once_per_interval)
{
    cr_assert_not(qn_wait_queue_check(&q, now));
    qn_wait_queue_add(&q, &w[0], 70, 2, 0, now);
    cr_assert_not(qn_wait_queue_check(&q, now + QN_WAIT_CHECK_INTERVAL - 1));
    cr_assert(qn_wait_queue_check(&q, now + QN_WAIT_CHECK_INTERVAL));
    cr_assert_not(qn_wait_queue_check(&q, now + QN_WAIT_CHECK_INTERVAL));
    qn_wait_queue_add(&q, &w[1], 70, 2, 0, now + QN_WAIT_CHECK_INTERVAL + 1);
    cr_assert(qn_wait_queue_check(&q, now + 2 * QN_WAIT_CHECK_INTERVAL));
}

CASE(an_entry_whose_client_has_ended_is_answered_with_what_there_is)
{
    qn_wait_queue_add(&q, &w[0], 70, 2, 0, now);
    qn_wait_queue_add(&q, &w[1], 70, 2, 0, now);
    cr_assert_null(step());
    w[0].ended = true;
    cr_assert_eq(step(), &w[0]);
    cr_assert_null(w[0].next);
    cr_assert_eq(w[0].have, 1);
    cr_assert(qn_wait_queue_active(&q));
}
