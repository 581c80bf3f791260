/* Bytes in: segmentation of the stream, errors, its end, draining. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"
#include "tests/unit/kvs/session/session_world.h"

#define CASE(name, ...)                                                        \
    Test(session_input, name, .init = world_setup, .fini = world_teardown,     \
         ##__VA_ARGS__)

#define A (&world.client[0])

/* ---- segmentation -------------------------------------------------------- */

/* Requests of all kinds; their replies depend on each other. */
static const char script[] = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\n10\r\n"
                             "*2\r\n$3\r\nGET\r\n$1\r\na\r\n"
                             "PING\r\n"
                             "INCR a\r\n"
                             "NOSUCH\r\n"
                             "CLIENT REPLY SKIP\r\n"
                             "GET a\r\n"
                             "*3\r\n$6\r\nAPPEND\r\n$1\r\na\r\n$4\r\nx\r\ny\r\n"
                             "*3\r\n$4\r\nMGET\r\n$1\r\na\r\n$1\r\nb\r\n"
                             "CLIENT REPLY OFF\r\n"
                             "SET b 5\r\n"
                             "GET b\r\n"
                             "CLIENT REPLY ON\r\n"
                             "GET b\r\n"
                             "QUIT\r\n";

static const char script_replies[] =
    "+OK\r\n$2\r\n10\r\n+PONG\r\n:11\r\n"
    "-ERR unknown command 'NOSUCH', with args beginning with: \r\n"
    ":6\r\n*2\r\n$6\r\n11x\r\ny\r\n$-1\r\n+OK\r\n$1\r\n5\r\n+OK\r\n";

/* Nothing is left to do for anything that came so far. */
static void finish(void)
{
    do {
        world_settle();
        while (qn_in_flight_count(&world.turn.env.in_flight) > 0) {
            world_apply(1);
            world_turn();
        }
    } while (world.turn.again || A->session.state == QN_SESSION_BLOCKED ||
             (qn_session_wants_input(&A->session) && client_unread(A) > 0));
}

static void new_world(void)
{
    world_teardown();
    world_setup();
}

CASE(a_script_in_one_piece)
{
    client_send(A, script);
    finish();
    expect_replies(A, script_replies);
    expect_closed(A);
}

CASE(every_split_in_two_gives_the_same_replies)
{
    for (size_t cut = 1; cut < sizeof script - 1; cut++) {
        new_world();
        client_send_bytes(A, script, cut);
        finish();
        client_send_bytes(A, script + cut, sizeof script - 1 - cut);
        finish();
        expect_replies(A, script_replies);
        expect_closed(A);
    }
}

/* As above, for a stream that breaks the protocol. */
CASE(every_split_of_a_broken_stream_gives_the_same_replies)
{
    static const char broken[] = "SET a 1\r\nGET a\r\nPING\r\n"
                                 "*2\r\n$3\r\nGET\r\n$-5\r\nPING\r\n";
    for (size_t cut = 1; cut < sizeof broken - 1; cut++) {
        new_world();
        client_send_bytes(A, broken, cut);
        finish();
        client_send_bytes(A, broken + cut, sizeof broken - 1 - cut);
        finish();
        expect_replies(A, "+OK\r\n$1\r\n1\r\n+PONG\r\n"
                          "-ERR Protocol error: invalid bulk length\r\n");
        expect_closed(A);
    }
}

/* The first part is run, and its writes are still pending when the second part
 * comes. */
CASE(every_split_gives_the_same_replies_while_writes_are_pending)
{
    for (size_t cut = 1; cut < sizeof script - 1; cut++) {
        new_world();
        client_send_bytes(A, script, cut);
        world_turn();
        client_send_bytes(A, script + cut, sizeof script - 1 - cut);
        world_turn();
        finish();
        expect_replies(A, script_replies);
    }
}

CASE(every_size_of_reads_gives_the_same_replies)
{
    for (size_t chunk = 1; chunk < 64; chunk++) {
        new_world();
        A->chunk = chunk;
        client_send(A, script);
        finish();
        expect_replies(A, script_replies);
    }
}

CASE(random_splits_give_the_same_replies)
{
    srand(11);
    for (int round = 0; round < 500; round++) {
        new_world();
        size_t at = 0;
        while (at < sizeof script - 1) {
            size_t n = 1 + (size_t)rand() % 40;
            n = QN_MIN(n, sizeof script - 1 - at);
            client_send_bytes(A, script + at, n);
            at += n;
            world_turn();
            if (rand() % 3 == 0 &&
                qn_in_flight_count(&world.turn.env.in_flight) > 0) {
                world_apply(1);
            }
        }
        finish();
        expect_replies(A, script_replies);
    }
}

CASE(a_partial_request_is_kept_and_measured)
{
    client_send(A, "*2\r\n$3\r\nGET\r\n$5\r\nab");
    world_turn();
    cr_expect(A->session.in.held.len == 19);
    cr_expect(world.part.input_most == 19);
    expect_running(A);
    client_send(A, "cde\r\n");
    world_turn();
    expect_replies(A, "$-1\r\n");
    cr_expect(A->session.in.held.data == NULL);
}

/* ---- errors and ends ----------------------------------------------------- */

CASE(a_protocol_error_is_answered_behind_the_replies_and_closes)
{
    client_send(A, "SET a 1\r\nGET a\r\n*1\r\n$x\r\nPING\r\n");
    world_settle();
    expect_blocked(A, QN_BLOCKED_PENDING);
    expect_replies(A, "");
    world_apply(2);
    world_settle();
    expect_replies(A, "+OK\r\n$1\r\n1\r\n"
                      "-ERR Protocol error: invalid bulk length\r\n");
    expect_closed(A);
    cr_expect(A->error == QN_OK);
}

CASE(a_protocol_error_with_nothing_pending_closes_at_once)
{
    client_send(A, "PING\r\n*x\r\n");
    world_turn();
    expect_replies(A, "+PONG\r\n"
                      "-ERR Protocol error: invalid multibulk length\r\n");
    expect_closed(A);
}

CASE(a_browser_gets_no_answer)
{
    client_send(A, "POST / HTTP/1.1\r\nHost: x\r\n\r\n");
    world_turn();
    expect_replies(A, "");
    expect_closed(A);
    cr_expect(A->error == QN_EPERM);
}

CASE(no_request_behind_quit_is_run)
{
    client_send(A, "QUIT\r\nSET a 1\r\nPING\r\n");
    world_settle();
    expect_replies(A, "+OK\r\n");
    expect_closed(A);
    cr_expect(world.replica.submissions == 0);
}

CASE(a_client_that_closes_its_half_is_answered)
{
    client_send(A, "SET a 1\r\nGET a\r\n");
    client_eof(A);
    world_settle();
    expect_state(A, QN_SESSION_CLOSING, QN_NOT_BLOCKED);
    expect_replies(A, "");
    world_apply(1);
    world_turn();
    expect_replies(A, "+OK\r\n");
    expect_state(A, QN_SESSION_CLOSING, QN_NOT_BLOCKED);
    world_apply(1);
    world_turn();
    expect_replies(A, "$1\r\n1\r\n");
    expect_closed(A);
}

CASE(a_half_that_closes_in_a_request_closes)
{
    client_send(A, "*2\r\n$3\r\nGET\r\n$5\r\nab");
    client_eof(A);
    world_settle();
    expect_replies(A, "");
    expect_closed(A);
}

CASE(a_half_that_closes_while_requests_wait_is_answered)
{
    client_send(A, "SET a 1\r\nPING\r\n");
    world_settle();
    expect_blocked(A, QN_BLOCKED_PENDING);
    qn_session_eof(&A->session);
    qn_turn_run_later(&world.turn, &A->session);
    world_settle();
    expect_blocked(A, QN_BLOCKED_PENDING);
    world_apply(1);
    world_settle();
    expect_replies(A, "+OK\r\n+PONG\r\n");
    expect_closed(A);
}

/* ---- draining ------------------------------------------------------------ */

static void drain(void)
{
    qn_session_drain(&A->session, client_unread(A));
    qn_turn_run_later(&world.turn, &A->session);
}

CASE(only_what_has_come_by_now_is_still_read)
{
    client_send(A, "SET a 1\r\nGET a\r\n");
    drain();
    A->chunk = 4;
    for (int i = 0; i < 3; i++) {
        world_turn();
    }
    client_send(A, "SET a 2\r\n");
    world_settle();
    world_apply(2);
    world_settle();
    expect_replies(A, "+OK\r\n$1\r\n1\r\n");
    expect_closed(A);
    cr_expect(client_unread(A) == 9);
}

CASE(a_session_of_which_nothing_has_come_is_closed)
{
    drain();
    world_turn();
    expect_closed(A);
}

CASE(a_drained_session_answers_what_it_holds)
{
    client_send(A, "SET a 1\r\nPING\r\nINFO\r\nPING\r\n");
    world_settle();
    drain();
    world_settle();
    expect_blocked(A, QN_BLOCKED_PENDING);
    world_apply(1);
    world_settle();
    world_answer(A, "facts");
    world_settle();
    expect_replies(A, "+OK\r\n+PONG\r\n+facts\r\n+PONG\r\n");
    expect_closed(A);
}

CASE(a_session_without_further_bytes_needs_none_to_drain)
{
    qn_session_eof(&A->session);
    qn_session_drain(&A->session, 100);
    cr_expect(A->session.drain_left == 0);
    cr_expect(!qn_session_wants_input(&A->session));
}

CASE(the_end_of_the_stream_ends_the_draining)
{
    client_send(A, "PING\r\n");
    qn_session_drain(&A->session, 100);
    world_turn();
    expect_running(A);
    client_eof(A);
    world_settle();
    expect_replies(A, "+PONG\r\n");
    expect_closed(A);
}

CASE(bytes_behind_the_end_of_the_stream_are_a_bug, .signal = SIGABRT)
{
    qn_session_eof(&A->session);
    qn_session_feed(&A->session, (const uint8_t *)"PING\r\n", 6);
}

/* ---- what is owed -------------------------------------------------------- */

CASE(unanswered_requests_are_counted)
{
    client_send(A, "SET a 1\r\nPING\r\nGET a\r\nPI");
    world_settle();
    cr_expect(qn_session_unanswered(&A->session) == 2);
}

CASE(unsent_replies_count_as_one)
{
    A->accepts = 0;
    client_send(A, "PING\r\nPING\r\nINFO\r\nPING\r\n");
    world_settle();
    expect_blocked(A, QN_BLOCKED_REMOTE);
    cr_expect(qn_session_unanswered(&A->session) == 3);
}

CASE(nothing_behind_quit_is_owed)
{
    A->accepts = 0;
    client_send(A, "QUIT\r\nPING\r\n");
    world_settle();
    cr_expect(qn_session_unanswered(&A->session) == 1);
}
