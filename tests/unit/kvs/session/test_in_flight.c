#include "kvs/session/in_flight.h"

#include <stdlib.h>

#include "kvs/session/session.h"
#include "tests/support/test.h"

static struct qn_in_flight f;
static struct qn_client_session session[3];

static void setup(void)
{
    f = (struct qn_in_flight){0};
    f.ring = calloc(QN_IN_FLIGHT_MAX, sizeof *f.ring);
    cr_assert(f.ring != NULL);
}

static void teardown(void)
{
    free(f.ring);
}

#define CASE(name, ...)                                                        \
    Test(in_flight, name, .init = setup, .fini = teardown, ##__VA_ARGS__)

static void push(int i)
{
    qn_in_flight_push(&f, &(struct qn_submission){.session = &session[i % 3],
                                                  .is_muted = i % 2 != 0});
}

CASE(an_empty_one_has_nothing)
{
    struct qn_submission s = {0};
    cr_expect(!qn_in_flight_pop(&f, &s));
    cr_expect(qn_in_flight_count(&f) == 0);
}

CASE(completions_find_their_sessions_in_order)
{
    struct qn_submission s = {0};
    for (int i = 0; i < 7; i++) {
        push(i);
    }
    cr_expect(qn_in_flight_count(&f) == 7);
    for (int i = 0; i < 7; i++) {
        cr_assert(qn_in_flight_pop(&f, &s));
        cr_expect(s.session == &session[i % 3]);
        cr_expect(s.is_muted == (i % 2 != 0));
    }
    cr_expect(!qn_in_flight_pop(&f, &s));
}

CASE(positions_wrap)
{
    struct qn_submission s = {0};
    f.head = f.tail = UINT32_MAX - 2;
    for (int i = 0; i < 7; i++) {
        push(i);
    }
    cr_expect(qn_in_flight_count(&f) == 7);
    for (int i = 0; i < 7; i++) {
        cr_assert(qn_in_flight_pop(&f, &s));
        cr_expect(s.session == &session[i % 3]);
    }
    cr_expect(!qn_in_flight_pop(&f, &s));
}

CASE(a_full_one_takes_as_many_as_the_ring)
{
    for (uint32_t i = 0; i < QN_IN_FLIGHT_MAX; i++) {
        push(0);
    }
    cr_expect(qn_in_flight_count(&f) == QN_IN_FLIGHT_MAX);
}

CASE(one_more_than_the_ring_holds_is_a_bug, .signal = SIGABRT)
{
    for (uint32_t i = 0; i <= QN_IN_FLIGHT_MAX; i++) {
        push(0);
    }
}
