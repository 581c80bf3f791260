/* Each reason to block, and when exactly it is over; the states. */
#include <string.h>

#include "kvs/session/session_internal.h"
#include "tests/support/test.h"
#include "tests/unit/kvs/session/session_world.h"

#define CASE(name, ...)                                                        \
    Test(session_blocked, name, .init = world_setup, .fini = world_teardown,   \
         ##__VA_ARGS__)

#define A (&world.client[0])
#define B (&world.client[1])

/* ---- reasons ------------------------------------------------------------- */

CASE(pending_is_over_with_the_last_completion)
{
    client_send(A, "SET a 1\r\nSET b 2\r\nPING\r\n");
    world_settle();
    world_apply(1);
    cr_expect(qn_work_list_is_empty(&world.turn.run_list));
    cr_expect(!qn_session_can_resume(&world.turn.env, &A->session));
    world_settle();
    expect_blocked(A, QN_BLOCKED_PENDING);
    expect_replies(A, "+OK\r\n");
    world_apply(1);
    cr_expect(qn_session_can_resume(&world.turn.env, &A->session));
    world_settle();
    expect_running(A);
    expect_replies(A, "+OK\r\n+PONG\r\n");
}

CASE(a_session_that_waits_for_completions_is_not_looked_at)
{
    client_send(A, "SET a 1\r\nPING\r\n");
    world_settle();
    uint64_t runs = A->runs;
    for (int i = 0; i < 5; i++) {
        world_turn();
        cr_expect(!world.turn.again);
    }
    cr_expect(A->runs == runs);
    cr_expect(qn_work_list_is_empty(&world.turn.run_list));
}

CASE(a_read_waits_until_its_index_is_applied)
{
    world.replica.read_index = 5;
    world.replica.applied = 4;
    client_send(A, "GET a\r\nGET b\r\n");
    world_turn();
    expect_blocked(A, QN_BLOCKED_READ_INDEX);
    world_turn();
    expect_replies(A, "");
    expect_blocked(A, QN_BLOCKED_READ_INDEX);
    world.replica.applied = 5;
    world_turn();
    expect_replies(A, "$-1\r\n$-1\r\n");
    expect_running(A);
}

/* Of each read that waits the replica hears once, with its index: by message it
 * asks for it. */
CASE(a_read_that_waits_says_for_which_index)
{
    world.replica.read_index = 5;
    world.replica.applied = 5;
    client_send(A, "GET a\r\n");
    world_turn();
    cr_expect(world.replica.index_waits == 0, "it need not wait");
    expect_replies(A, "$-1\r\n");
    world.replica.read_index = 6;
    client_send(A, "GET a\r\nGET b\r\n");
    world_turn();
    world.replica.read_index = 9;
    world_turn();
    cr_expect(world.replica.index_waits == 1);
    cr_expect(world.replica.index_wanted == 6);
    world.replica.applied = 6;
    world_turn();
    expect_replies(A, "$-1\r\n$-1\r\n");
    cr_expect(world.replica.index_waits == 1);
}

/* All bytes of the session came before the index was loaded. */
CASE(a_higher_index_of_a_later_turn_is_not_waited_for)
{
    world.replica.read_index = 5;
    world.replica.applied = 4;
    client_send(A, "GET a\r\nGET b\r\n");
    world_turn();
    world.replica.read_index = 9;
    world.replica.applied = 5;
    world_turn();
    expect_replies(A, "$-1\r\n$-1\r\n");
}

/* The earlier one may have been garbage that could not be recognized. */
CASE(a_lower_index_of_a_later_turn_is_enough)
{
    world.replica.read_index = UINT64_MAX;
    world.replica.applied = 4;
    client_send(A, "GET a\r\n");
    world_turn();
    world.replica.read_index = 6;
    world_turn();
    expect_blocked(A, QN_BLOCKED_READ_INDEX);
    world.replica.read_index = 4;
    world_turn();
    expect_replies(A, "$-1\r\n");
}

CASE(new_bytes_take_the_index_of_their_turn)
{
    world.replica.read_index = 5;
    world.replica.applied = 5;
    client_send(A, "GET a\r\n");
    world_turn();
    expect_replies(A, "$-1\r\n");
    world.replica.read_index = 6;
    client_send(A, "GET a\r\n");
    world_turn();
    expect_blocked(A, QN_BLOCKED_READ_INDEX);
}

CASE(a_write_waits_for_room_and_nothing_else_does)
{
    world.replica.room = 0;
    client_send(A, "SET a 1\r\nPING\r\n");
    client_send(B, "GET a\r\nPING\r\n");
    world_turn();
    expect_blocked(A, QN_BLOCKED_BACKPRESSURE);
    expect_replies(B, "$-1\r\n+PONG\r\n");
    world_turn();
    expect_blocked(A, QN_BLOCKED_BACKPRESSURE);
    cr_expect(!world.turn.again);
    world.replica.room = 1;
    world_turn();
    cr_expect(world.replica.submissions == 1);
    expect_blocked(A, QN_BLOCKED_PENDING);
    world_apply(1);
    world_settle();
    expect_replies(A, "+OK\r\n+PONG\r\n");
}

CASE(a_write_that_waits_for_room_is_refused_when_the_group_is_gone)
{
    world.replica.room = 0;
    client_send(A, "SET a 1\r\nPING\r\n");
    world_turn();
    world.replica.unavailable = true;
    world_turn();
    expect_replies(A, "-CLUSTERDOWN no quorum\r\n+PONG\r\n");
    expect_running(A);
}

CASE(a_refusal_waits_behind_pending_writes)
{
    client_send(A, "SET a 1\r\nSET b 2\r\n");
    world_turn();
    world.replica.unavailable = true;
    client_send(A, "SET c 3\r\nGET a\r\n");
    world_settle();
    expect_blocked(A, QN_BLOCKED_PENDING);
    world_apply(2);
    world_settle();
    expect_replies(A, "+OK\r\n+OK\r\n-CLUSTERDOWN no quorum\r\n$1\r\n1\r\n");
}

CASE(the_budget_of_a_turn_ends_and_the_next_one_goes_on)
{
    client_call(A, "PING", QN_TURN_REQUESTS + 3);
    world_turn();
    expect_blocked(A, QN_BLOCKED_BUDGET);
    cr_expect(A->received.len == QN_TURN_REQUESTS * 7);
    cr_expect(world.turn.again);
    world_turn();
    expect_running(A);
    cr_expect(A->received.len == (QN_TURN_REQUESTS + 3) * 7);
    cr_expect(!world.turn.again);
}

CASE(many_arguments_are_more_work)
{
    char words[1024] = "EXISTS";
    for (int i = 1; i < 20; i++) {
        strcat(words, " k");
    }
    client_call(A, words, 200); /* 20 arguments: as 6 small requests */
    world_turn();
    expect_blocked(A, QN_BLOCKED_BUDGET);
    cr_expect(world.replica.reads == (QN_TURN_REQUESTS + 5) / 6);
}

CASE(long_replies_are_more_work)
{
    char value[8200] = "";
    memset(value, 'x', 8192);
    client_send(A, "*3\r\n$3\r\nSET\r\n$1\r\nv\r\n$8192\r\n");
    client_send(A, value);
    client_send(A, "\r\n");
    world_settle();
    world_apply(1);
    world.turn.env.output_pause = 1 << 24;
    world.turn.env.output_limit = 1 << 24;
    qn_session_set_sending(&world.turn.env, &A->session, 0);
    client_call(A, "GET v", 400); /* 8 KiB: as 3 small requests */
    world_turn();
    expect_blocked(A, QN_BLOCKED_BUDGET);
    cr_expect(world.replica.reads == (QN_TURN_REQUESTS + 2) / 3);
}

CASE(output_is_over_when_the_client_has_read_half_of_the_pause)
{
    world.turn.env.output_pause = 70; /* ten replies */
    A->accepts = 0;
    client_call(A, "PING", 30);
    world_turn();
    expect_blocked(A, QN_BLOCKED_OUTPUT);
    cr_expect(qn_session_unsent(&A->session) == 77);
    world_turn();
    cr_expect(A->session.commands == 11);
    client_reads(A, 70); /* the write of the socket is not done */
    world_turn();
    expect_blocked(A, QN_BLOCKED_OUTPUT);
    A->accepts = SIZE_MAX;
    client_reads(A, 7);
    cr_expect(world.turn.again);
    world_settle();
    expect_running(A);
    cr_expect(A->session.commands == 30);
    cr_expect(A->received.len == 30 * 7);
}

CASE(exactly_the_pause_does_not_block)
{
    world.turn.env.output_pause = 70;
    A->accepts = 0;
    client_call(A, "PING", 10);
    world_turn();
    expect_running(A);
    client_call(A, "PING", 2);
    world_turn();
    expect_blocked(A, QN_BLOCKED_OUTPUT);
    cr_expect(A->session.commands == 11);
}

CASE(half_of_the_pause_resumes_and_one_byte_more_does_not)
{
    struct qn_client_session *s = &A->session;
    world.turn.env.output_pause = 100;
    qn_session_block(s, QN_BLOCKED_OUTPUT);
    qn_session_set_sending(&world.turn.env, s, 51);
    cr_expect(!qn_session_can_resume(&world.turn.env, s));
    qn_session_set_sending(&world.turn.env, s, 50);
    cr_expect(qn_session_can_resume(&world.turn.env, s));
    qn_session_set_sending(&world.turn.env, s, 0);
}

CASE(a_late_reply_blocks_until_it_is_written)
{
    client_send(A, "INFO\r\nPING\r\n");
    world_settle();
    expect_blocked(A, QN_BLOCKED_REMOTE);
    for (int i = 0; i < 3; i++) {
        world_turn();
        cr_expect(!world.turn.again);
    }
    expect_replies(A, "");
    world_answer(A, "facts");
    cr_expect(world.turn.again);
    world_turn();
    expect_replies(A, "+facts\r\n+PONG\r\n");
    expect_running(A);
}

/* ---- a blocked session is not read --------------------------------------- */

static void expect_not_read(const char *before, enum qn_blocked reason)
{
    client_send(A, before);
    world_settle();
    expect_blocked(A, reason);
    client_send(A, "PING\r\n");
    world_turn();
    world_turn();
    cr_expect(client_unread(A) == 6, "it was read");
}

CASE(nothing_is_read_behind_pending_writes)
{
    expect_not_read("SET a 1\r\nPING\r\n", QN_BLOCKED_PENDING);
}

CASE(nothing_is_read_behind_a_read_that_waits_for_its_index)
{
    world.replica.read_index = 1;
    expect_not_read("GET a\r\n", QN_BLOCKED_READ_INDEX);
}

CASE(nothing_is_read_behind_a_write_that_waits_for_room)
{
    world.replica.room = 0;
    expect_not_read("SET a 1\r\n", QN_BLOCKED_BACKPRESSURE);
}

CASE(nothing_is_read_of_a_client_that_does_not_read)
{
    world.turn.env.output_pause = 3;
    A->accepts = 0;
    expect_not_read("PING\r\nPING\r\n", QN_BLOCKED_OUTPUT);
}

CASE(nothing_is_read_behind_a_late_reply)
{
    expect_not_read("INFO\r\n", QN_BLOCKED_REMOTE);
}

CASE(nothing_is_read_when_the_budget_is_spent)
{
    client_call(A, "PING", QN_TURN_REQUESTS + 1);
    world_turn();
    expect_blocked(A, QN_BLOCKED_BUDGET);
    cr_expect(!qn_session_wants_input(&A->session));
}

CASE(pending_writes_alone_do_not_stop_the_reading)
{
    client_send(A, "SET a 1\r\n");
    world_turn();
    cr_expect(qn_session_wants_input(&A->session));
    client_send(A, "SET b 1\r\n");
    world_turn();
    cr_expect(world.replica.submissions == 2);
}

/* ---- transitions --------------------------------------------------------- */

CASE(every_state_can_be_closed)
{
    client_send(B, "SET a 1\r\nPING\r\n");
    client_send(&world.client[2], "QUIT\r\n");
    world.client[2].accepts = 0;
    world_settle();
    expect_blocked(B, QN_BLOCKED_PENDING);
    expect_state(&world.client[2], QN_SESSION_CLOSING, QN_NOT_BLOCKED);
    for (int i = 0; i < 3; i++) {
        qn_session_close(&world.client[i].session);
        expect_closed(&world.client[i]);
    }
}

CASE(a_closed_session_cannot_close_again, .signal = SIGABRT)
{
    qn_session_close(&A->session);
    qn_session_close(&A->session);
}

CASE(a_blocked_session_cannot_block_again, .signal = SIGABRT)
{
    qn_session_block(&A->session, QN_BLOCKED_OUTPUT);
    qn_session_block(&A->session, QN_BLOCKED_BUDGET);
}

CASE(a_session_blocks_for_a_reason, .signal = SIGABRT)
{
    qn_session_block(&A->session, QN_NOT_BLOCKED);
}

CASE(a_running_session_cannot_be_unblocked, .signal = SIGABRT)
{
    qn_session_unblock(&A->session);
}

CASE(a_blocked_session_cannot_begin_to_close, .signal = SIGABRT)
{
    qn_session_block(&A->session, QN_BLOCKED_OUTPUT);
    qn_session_close_after_replies(&A->session);
}

CASE(a_late_reply_behind_pending_writes_is_a_bug, .signal = SIGABRT)
{
    client_send(A, "SET a 1\r\n");
    world_turn();
    qn_session_block_remote(&A->session);
}

CASE(only_a_closed_session_is_freed, .signal = SIGABRT)
{
    qn_session_fini(&A->session);
}
