/* CLIENT REPLY, late replies, replies of closed sessions, bounds. */
#include <string.h>

#include "tests/support/test.h"
#include "tests/unit/kvs/session/session_world.h"

#define CASE(name, ...)                                                        \
    Test(session_replies, name, .init = world_setup, .fini = world_teardown,   \
         ##__VA_ARGS__)

#define A (&world.client[0])
#define B (&world.client[1])

/* ---- CLIENT REPLY -------------------------------------------------------- */

CASE(off_mutes_local_commands_reads_writes_and_errors)
{
    client_send(A, "CLIENT REPLY OFF\r\nPING\r\nGET a\r\nNOSUCH\r\nSET a 1\r\n"
                   "GET a\r\n");
    world_turn();
    world_apply(2);
    world_settle();
    expect_replies(A, "");
    client_send(A, "CLIENT REPLY ON\r\nGET a\r\n");
    world_turn();
    expect_replies(A, "+OK\r\n$1\r\n1\r\n");
}

/* A reply is muted as its request begins, whenever it is completed. */
CASE(a_write_that_was_pending_before_off_is_answered)
{
    client_send(A, "SET a 1\r\nCLIENT REPLY OFF\r\nSET b 1\r\n");
    world_settle();
    expect_blocked(A, QN_BLOCKED_PENDING);
    world_apply(1);
    world_settle();
    expect_replies(A, "+OK\r\n");
    world_apply(1);
    world_turn();
    expect_replies(A, "");
}

CASE(skip_mutes_one_reply)
{
    client_send(A, "CLIENT REPLY SKIP\r\nPING\r\nPING\r\n");
    world_turn();
    expect_replies(A, "+PONG\r\n");
}

CASE(skip_mutes_a_write)
{
    client_send(A, "CLIENT REPLY SKIP\r\nSET a 1\r\nGET a\r\n");
    world_turn();
    world_apply(2);
    world_turn();
    expect_replies(A, "$1\r\n1\r\n");
}

CASE(skip_mutes_an_error)
{
    client_send(A, "CLIENT REPLY SKIP\r\nGET\r\nPING\r\n");
    world_turn();
    expect_replies(A, "+PONG\r\n");
}

CASE(skip_outlives_a_request_that_is_put_back)
{
    world.replica.read_index = 1;
    client_send(A, "CLIENT REPLY SKIP\r\nGET a\r\nGET a\r\n");
    for (int i = 0; i < 4; i++) {
        world_turn();
        expect_blocked(A, QN_BLOCKED_READ_INDEX);
    }
    world.replica.applied = 1;
    world_turn();
    expect_replies(A, "$-1\r\n");
}

CASE(skip_mutes_a_late_reply)
{
    client_send(A, "CLIENT REPLY SKIP\r\nINFO\r\nPING\r\n");
    world_turn();
    expect_blocked(A, QN_BLOCKED_REMOTE);
    world_answer(A, "facts");
    world_turn();
    expect_replies(A, "+PONG\r\n");
}

CASE(off_mutes_a_late_reply)
{
    client_send(A, "CLIENT REPLY OFF\r\nINFO\r\nCLIENT REPLY ON\r\n");
    world_turn();
    world_answer(A, "facts");
    world_turn();
    expect_replies(A, "+OK\r\n");
}

CASE(reset_sends_replies_again)
{
    client_send(A, "CLIENT REPLY OFF\r\nRESET\r\nPING\r\n");
    world_turn();
    expect_replies(A, "+PONG\r\n"); /* that of RESET was muted as it began */
}

CASE(a_muted_protocol_error_still_closes)
{
    client_send(A, "CLIENT REPLY OFF\r\n*x\r\n");
    world_turn();
    expect_replies(A, "");
    expect_closed(A);
}

CASE(muted_replies_are_counted)
{
    client_send(A, "CLIENT REPLY OFF\r\nGET a\r\nNOSUCH\r\n");
    world_turn();
    cr_expect(world.part.keyspace_misses == 1);
    cr_expect(world.part.error[0].count == 1);
}

/* ---- late replies -------------------------------------------------------- */

CASE(a_late_reply_before_its_command_returns)
{
    world.replica.late_now = true;
    client_send(A, "INFO\r\nPING\r\n");
    world_turn();
    expect_replies(A, "-ERR now\r\n+PONG\r\n");
    expect_running(A);
    cr_expect(world.part.error[0].count == 1, "counted once");
}

CASE(a_command_that_cannot_reply_late_replies_at_once)
{
    world.replica.late_fails = true;
    client_send(A, "INFO\r\nPING\r\n");
    world_turn();
    expect_replies(A, "-ERR cannot ask\r\n+PONG\r\n");
    expect_running(A);
    cr_expect(world.part.error[0].count == 1);
}

CASE(an_error_in_a_late_reply_is_counted_once)
{
    client_send(A, "PING\r\nINFO\r\n");
    world_turn();
    struct qn_buf *b = qn_session_late_reply(&world.turn.env, &A->session);
    qn_buf_append(b, "-ERR late\r\n", 11);
    qn_session_late_reply_done(&world.turn.env, &A->session);
    cr_expect(world.part.error[0].count == 1);
    cr_expect(strcmp(world.part.error[0].code, "ERR") == 0);
}

CASE(a_closed_session_gets_no_late_reply, .signal = SIGABRT)
{
    client_send(A, "INFO\r\n");
    world_turn();
    qn_session_close(&A->session);
    (void)qn_session_late_reply(&world.turn.env, &A->session);
}

CASE(a_late_reply_that_was_not_written_is_a_bug, .signal = SIGABRT)
{
    client_send(A, "INFO\r\n");
    world_turn();
    qn_session_late_reply_done(&world.turn.env, &A->session);
}

/* ---- closed sessions ----------------------------------------------------- */

CASE(completions_of_a_closed_session_are_dropped)
{
    client_send(A, "SET a 1\r\nGET a\r\nSET b 1\r\n");
    client_send(B, "INCR n\r\n");
    world_turn();
    qn_session_close(&A->session);
    cr_expect(qn_session_is_referenced(&A->session));
    world_apply(3);
    world_turn();
    cr_expect(A->session.out.len == 0);
    cr_expect(A->session.last_write == 0);
    cr_expect(!qn_session_is_referenced(&A->session));
    world_apply(1);
    world_turn();
    expect_replies(B, ":1\r\n");
}

CASE(a_session_that_another_one_closes_runs_no_further)
{
    world.replica.kills = B;
    client_send(A, "INFO\r\n");
    client_send(B, "SET a 1\r\n");
    world_turn();
    expect_closed(B);
    cr_expect(B->runs == 0 && world.replica.submissions == 0);
    cr_expect(!qn_session_is_referenced(&B->session));
}

CASE(a_session_can_be_closed_by_its_own_command)
{
    world.replica.kills = A;
    client_send(A, "INFO\r\nSET a 1\r\n");
    world_turn();
    expect_closed(A);
    cr_expect(world.replica.submissions == 0);
}

/* ---- bounds -------------------------------------------------------------- */

CASE(replies_beyond_the_limit_close_the_session)
{
    world.turn.env.output_limit = 69;
    qn_session_set_sending(&world.turn.env, &A->session, 0);
    client_call(A, "PING", 10);
    world_turn();
    expect_closed(A);
    cr_expect(A->dropped && A->session.out.full);
    expect_replies(A, "");
}

CASE(a_first_reply_beyond_the_limit_closes_too)
{
    world.turn.env.output_limit = 3;
    qn_session_set_sending(&world.turn.env, &A->session, 0);
    client_send(A, "PING\r\n");
    world_turn();
    expect_closed(A);
    cr_expect(A->dropped);
}

CASE(what_is_being_sent_counts_for_the_limit)
{
    world.turn.env.output_limit = 100;
    qn_session_set_sending(&world.turn.env, &A->session, 0);
    cr_expect(A->session.out.max == 100);
    qn_session_set_sending(&world.turn.env, &A->session, 60);
    cr_expect(A->session.out.max == 40);
    qn_session_set_sending(&world.turn.env, &A->session, 200);
    cr_expect(A->session.out.max == 1, "0 would be no limit");
    world.turn.env.output_limit = 0;
    qn_session_set_sending(&world.turn.env, &A->session, 200);
    cr_expect(A->session.out.max == 0);
    qn_session_set_sending(&world.turn.env, &A->session, 0);
}

CASE(a_completion_without_memory_closes_the_session)
{
    client_send(A, "SET a 1\r\nSET b 1\r\n");
    world_turn();
    world_apply(1);
    world_complete_without_memory();
    world_turn();
    expect_closed(A);
    cr_expect(A->dropped && !A->session.out.full);
    cr_expect(!qn_session_is_referenced(&A->session));
}

CASE(a_session_that_is_about_to_close_runs_nothing_more)
{
    client_send(A, "SET a 1\r\nPING\r\nSET b 1\r\n");
    world_turn();
    world_complete_without_memory();
    uint64_t before = world.replica.submissions;
    client_send(A, "SET c 1\r\n");
    world_turn();
    cr_expect(world.replica.submissions == before);
    expect_closed(A);
}

CASE(a_refused_command_is_no_call)
{
    const struct qn_cmd *set =
        qn_cmd_find((struct qn_slice){(const uint8_t *)"set", 3});
    world.replica.unavailable = true;
    client_send(A, "SET a 1\r\n");
    world_turn();
    cr_expect(world.part.cmd[qn_cmd_index(set)].calls == 0);
    cr_expect(world.part.cmd[qn_cmd_index(set)].rejected == 1);
    cr_expect(world.part.commands_processed == 0);
}

CASE(a_submission_without_memory_closes_the_session)
{
    client_send(A, "SET a 1\r\n");
    client_send(B, "SET b 1\r\nGET b\r\n");
    B->chunk = 9;
    world_turn();
    world.replica.no_memory = true;
    world_turn();
    expect_running(A);
    expect_closed(B);
    cr_expect(B->error == QN_ENOMEM);
    client_send(A, "SET a 2\r\n");
    world_turn();
    expect_closed(A);
    cr_expect(A->error == QN_ENOMEM);
    world_apply(2);
}

CASE(a_muted_reply_is_bounded_by_the_limit_too)
{
    world.turn.env.output_limit = 10;
    qn_session_set_sending(&world.turn.env, &A->session, 0);
    client_send(A, "CLIENT REPLY OFF\r\nNOSUCH\r\nPING\r\n");
    world_turn();
    expect_running(A);
    cr_expect(world.turn.env.scratch.cap <= 10);
}
