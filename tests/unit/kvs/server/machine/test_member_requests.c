#include "kvs/server/machine/member_requests.h"

#include "tests/support/test.h"

static struct qn_member_requests r;
static struct qn_member_request out;

static void setup(void)
{
    r = (struct qn_member_requests){0};
    out = (struct qn_member_request){0};
}

#define CASE(name) Test(member_requests, name, .init = setup)

static bool hold(enum qn_member_request_kind kind, uint64_t client,
                 qn_node_t node)
{
    const struct qn_member_request q = {
        .kind = kind, .client = client, .node = node};
    return qn_member_requests_hold(&r, &q);
}

CASE(each_client_is_answered_once)
{
    cr_assert(hold(QN_MEMBER_REQUEST_ADD, 5, 0));
    cr_assert(hold(QN_MEMBER_REQUEST_LIST, 9, 0));
    cr_assert(qn_member_requests_end(&r, 9, &out));
    cr_expect_eq(out.kind, QN_MEMBER_REQUEST_LIST);
    cr_expect_not(qn_member_requests_end(&r, 9, &out));
    cr_assert(qn_member_requests_end(&r, 5, &out));
    cr_expect_eq(out.kind, QN_MEMBER_REQUEST_ADD);
    cr_expect_not(qn_member_requests_any(&r, &out));
}

/* Its connection has closed, or the number came from another supervisor. */
CASE(an_answer_for_another_client_answers_none)
{
    cr_assert(hold(QN_MEMBER_REQUEST_ADD, 5, 0));
    cr_expect_not(qn_member_requests_end(&r, 6, &out));
    cr_expect_not(qn_member_requests_end(&r, 0, &out));
}

CASE(eight_wait_and_a_further_one_is_refused)
{
    for (uint64_t c = 1; c <= QN_MEMBER_REQUESTS; c++) {
        cr_assert(hold(QN_MEMBER_REQUEST_LIST, c, 0));
    }
    cr_expect_not(hold(QN_MEMBER_REQUEST_LIST, 100, 0));
    cr_assert(qn_member_requests_end(&r, 3, &out));
    cr_expect(hold(QN_MEMBER_REQUEST_LIST, 100, 0));
}

CASE(when_the_supervisor_has_ended_all_are_answered)
{
    uint32_t ended = 0;
    cr_assert(hold(QN_MEMBER_REQUEST_ADD, 5, 0));
    cr_assert(hold(QN_MEMBER_REQUEST_REMOVE, 6, 2));
    for (; qn_member_requests_any(&r, &out); ended++) {
        cr_assert(qn_member_requests_end(&r, out.client, &out));
    }
    cr_expect_eq(ended, 2);
}

CASE(the_removal_of_one_member_is_found)
{
    cr_assert(hold(QN_MEMBER_REQUEST_ADD, 4, 2));
    cr_assert(hold(QN_MEMBER_REQUEST_REMOVE, 5, 1));
    cr_expect_not(qn_member_requests_of(&r, 2, &out));
    cr_assert(hold(QN_MEMBER_REQUEST_REMOVE, 6, 2));
    cr_assert(qn_member_requests_of(&r, 2, &out));
    cr_expect_eq(out.client, 6);
}

Test(member_requests, a_client_waits_for_one_thing, .init = setup,
     .signal = SIGABRT)
{
    (void)hold(QN_MEMBER_REQUEST_LIST, 5, 0);
    (void)hold(QN_MEMBER_REQUEST_LIST, 5, 0);
}
