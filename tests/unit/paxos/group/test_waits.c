#include "paxos/group/waits.h"

#include "core/base/err.h"
#include "tests/support/test.h"

static struct qn_waits w;
static struct {
    int id, err;
    uint64_t result;
} told[64];
static int count, ids[64];
static bool asks_again;

static void done(void *ctx, int err, uint64_t result)
{
    const int *id = ctx;
    told[count].id = *id;
    told[count].err = err;
    told[count++].result = result;
    if (asks_again) {
        asks_again = false;
        const struct qn_wait x = {.number = 100,
                                  .deadline = QN_TIME_NEVER,
                                  .done = done,
                                  .ctx = &ids[63]};
        qn_waits_add(&w, &x);
    }
}

static void init(void)
{
    count = 0;
    asks_again = false;
    for (int i = 0; i < 64; i++) {
        ids[i] = i;
    }
    cr_assert_eq(qn_waits_init(&w, 4, 100, QN_ETIMEDOUT, NULL), QN_OK);
}

static void fini(void)
{
    qn_waits_fini(&w);
}

#define CASE(name) Test(waits, name, .init = init, .fini = fini, .timeout = 60)

static void add(int id, uint64_t number, size_t bytes, qn_time_t deadline)
{
    const struct qn_wait x = {.number = number,
                              .deadline = deadline,
                              .bytes = bytes,
                              .done = done,
                              .ctx = &ids[id]};
    qn_waits_add(&w, &x);
}

static void expect_told(int i, int id, int err, uint64_t result)
{
    cr_assert_gt(count, i);
    cr_expect_eq(told[i].id, id);
    cr_expect_eq(told[i].err, err);
    cr_expect_eq(told[i].result, result);
}

CASE(results_are_told_in_order_and_not_before_deliver)
{
    add(1, 1, 10, QN_TIME_NEVER);
    add(2, 2, 10, QN_TIME_NEVER);
    add(3, 3, 10, QN_TIME_NEVER);
    cr_expect_eq(qn_waits_next(&w), QN_TIME_NEVER);
    cr_expect_not(qn_waits_ended(&w));
    qn_waits_result(&w, 1, 11);
    qn_waits_result(&w, 2, 22);
    cr_expect_eq(count, 0);
    cr_expect(qn_waits_ended(&w));
    qn_waits_deliver(&w, 5);
    cr_expect_not(qn_waits_ended(&w));
    cr_expect_eq(count, 2);
    expect_told(0, 1, QN_OK, 11);
    expect_told(1, 2, QN_OK, 22);
    cr_expect_eq(qn_waits_open(&w), 1);
}

CASE(at_the_deadline_one_is_given_up_and_keeps_its_place)
{
    add(1, 1, 60, 50);
    add(2, 2, 30, 20);
    cr_expect_eq(qn_waits_next(&w), 20);
    qn_waits_deliver(&w, 19);
    cr_expect_eq(count, 0);
    qn_waits_deliver(&w, 20);
    expect_told(0, 2, QN_ETIMEDOUT, 0);
    cr_expect_not(qn_waits_given_up(&w), "the oldest waits");
    cr_expect_eq(qn_waits_next(&w), 50);
    qn_waits_deliver(&w, 60);
    expect_told(1, 1, QN_ETIMEDOUT, 0);
    cr_expect(qn_waits_given_up(&w));
    cr_expect_not(qn_waits_room(&w, 11), "90 bytes of 100 wait");
    qn_waits_result(&w, 1, 0);
    qn_waits_result(&w, 2, 0);
    qn_waits_deliver(&w, 70);
    cr_expect_eq(count, 2, "each is told once");
    cr_expect_not(qn_waits_given_up(&w));
}

CASE(there_is_room_for_so_many_and_so_many_bytes)
{
    cr_expect(qn_waits_room(&w, 1000), "nothing waits");
    add(1, 1, 40, QN_TIME_NEVER);
    cr_expect(qn_waits_room(&w, 60));
    cr_expect_not(qn_waits_room(&w, 61));
    cr_expect_not(qn_waits_room(&w, SIZE_MAX));
    for (int i = 2; i <= 4; i++) {
        cr_expect(qn_waits_room(&w, 0));
        add(i, (uint64_t)i, 0, QN_TIME_NEVER);
    }
    cr_expect_not(qn_waits_room(&w, 0), "four");
    qn_waits_result(&w, 1, 0);
    cr_expect_not(qn_waits_room(&w, 0), "its end is not told");
    qn_waits_deliver(&w, 0);
    cr_expect(qn_waits_room(&w, 100));
}

CASE(all_up_to_a_number_end_alike)
{
    add(1, 5, 0, QN_TIME_NEVER);
    add(2, UINT64_MAX, 0, QN_TIME_NEVER);
    add(3, UINT64_MAX, 0, QN_TIME_NEVER);
    qn_waits_number(&w, 2, 7);
    qn_waits_upto(&w, 6, QN_EUNKNOWN);
    qn_waits_deliver(&w, 0);
    cr_expect_eq(count, 1);
    qn_waits_upto(&w, 7, QN_OK);
    qn_waits_deliver(&w, 0);
    cr_expect_eq(count, 3);
    expect_told(0, 1, QN_EUNKNOWN, 0);
    expect_told(2, 3, QN_OK, 0);
}

CASE(a_callback_may_ask_again)
{
    for (int i = 1; i <= 4; i++) {
        add(i, (uint64_t)i, 0, i == 2 ? 1 : QN_TIME_NEVER);
    }
    qn_waits_result(&w, 1, 0);
    asks_again = true;
    qn_waits_deliver(&w, 2);
    cr_expect_eq(count, 2);
    expect_told(1, 2, QN_ETIMEDOUT, 0);
    cr_expect_eq(qn_waits_open(&w), 4);
    qn_waits_upto(&w, 100, QN_OK);
    qn_waits_deliver(&w, 2);
    expect_told(4, 63, QN_OK, 0);
}

/* A host that proposes where it is told of the last end: the queue is empty
 * then, and what is added begins at its first place again. */
CASE(one_that_is_added_where_the_last_is_told_waits_for_its_own_end)
{
    for (uint64_t n = 1; n <= 20; n++) {
        add(1, n, 10, QN_TIME_NEVER);
        asks_again = true;
        qn_waits_result(&w, n, n);
        cr_assert(qn_waits_deliver(&w, 0));
        cr_assert_eq(count, 1);
        expect_told(0, 1, QN_OK, n);
        cr_assert_eq(qn_waits_open(&w), 1);
        cr_assert_not(qn_waits_deliver(&w, 0));
        qn_waits_upto(&w, 100, QN_EUNKNOWN);
        cr_assert(qn_waits_deliver(&w, 0));
        cr_assert_eq(count, 2);
        expect_told(1, 63, QN_EUNKNOWN, 0);
        count = 0;
    }
}
