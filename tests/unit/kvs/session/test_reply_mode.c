#include "kvs/session/reply_mode.h"

#include "tests/support/test.h"

static struct qn_reply_mode m;

static void setup(void)
{
    m = (struct qn_reply_mode){0};
}

#define CASE(name, ...) Test(reply_mode, name, .init = setup, ##__VA_ARGS__)

CASE(replies_are_sent_at_first)
{
    cr_expect(!qn_reply_mode_is_muted(&m));
    cr_expect(!qn_reply_mode_is_late(&m));
}

CASE(off_mutes_every_reply_until_on)
{
    qn_reply_mode_off(&m);
    for (int i = 0; i < 3; i++) {
        cr_expect(qn_reply_mode_is_muted(&m));
        qn_reply_mode_request_done(&m);
    }
    qn_reply_mode_on(&m);
    cr_expect(!qn_reply_mode_is_muted(&m));
    qn_reply_mode_request_done(&m);
    cr_expect(!qn_reply_mode_is_muted(&m));
}

CASE(skip_mutes_the_next_reply_only)
{
    qn_reply_mode_skip(&m);
    cr_expect(!qn_reply_mode_is_muted(&m), "SKIP itself is not the next one");
    qn_reply_mode_request_done(&m);
    cr_expect(qn_reply_mode_is_muted(&m));
    qn_reply_mode_request_done(&m);
    cr_expect(!qn_reply_mode_is_muted(&m));
}

CASE(skip_behind_skip_mutes_one_more)
{
    qn_reply_mode_skip(&m);
    qn_reply_mode_request_done(&m);
    qn_reply_mode_skip(&m);
    qn_reply_mode_request_done(&m);
    cr_expect(qn_reply_mode_is_muted(&m));
    qn_reply_mode_request_done(&m);
    cr_expect(!qn_reply_mode_is_muted(&m));
}

CASE(skip_is_ignored_while_replies_are_off)
{
    qn_reply_mode_off(&m);
    qn_reply_mode_request_done(&m);
    qn_reply_mode_skip(&m);
    qn_reply_mode_request_done(&m);
    qn_reply_mode_on(&m);
    cr_expect(!qn_reply_mode_is_muted(&m));
    qn_reply_mode_request_done(&m);
    cr_expect(!qn_reply_mode_is_muted(&m));
}

CASE(on_ends_a_skip_too)
{
    qn_reply_mode_skip(&m);
    qn_reply_mode_request_done(&m);
    qn_reply_mode_on(&m);
    cr_expect(!qn_reply_mode_is_muted(&m));
}

CASE(reset_forgets_off_and_skip)
{
    qn_reply_mode_skip(&m);
    qn_reply_mode_reset(&m);
    qn_reply_mode_request_done(&m);
    cr_expect(!qn_reply_mode_is_muted(&m));
    qn_reply_mode_off(&m);
    qn_reply_mode_reset(&m);
    cr_expect(!qn_reply_mode_is_muted(&m));
}

CASE(a_late_reply_keeps_the_mode_in_which_its_request_began)
{
    qn_reply_mode_skip(&m);
    qn_reply_mode_request_done(&m);
    qn_reply_mode_local_begins(&m);
    qn_reply_mode_request_done(&m); /* it replies late */
    cr_expect(!qn_reply_mode_is_muted(&m));
    cr_expect(m.late_muted);
    qn_reply_mode_local_begins(&m);
    cr_expect(!m.late_muted);
}

CASE(a_late_reply_begins_where_it_is_told)
{
    qn_reply_mode_local_begins(&m);
    cr_expect(!qn_reply_mode_is_late(&m));
    qn_reply_mode_late_begins(&m, 17);
    cr_expect(qn_reply_mode_is_late(&m));
    cr_expect(m.late_start == 17);
    qn_reply_mode_local_begins(&m);
    cr_expect(!qn_reply_mode_is_late(&m));
}

CASE(a_second_late_reply_of_one_command_is_a_bug, .signal = SIGABRT)
{
    qn_reply_mode_local_begins(&m);
    qn_reply_mode_late_begins(&m, 0);
    qn_reply_mode_late_begins(&m, 0);
}
