/* What a turn does: its order, its budgets, and whether the next is due. */
#include <string.h>

#include "kvs/session/session_internal.h"
#include "tests/support/test.h"
#include "tests/unit/kvs/session/session_world.h"

#define CASE(name, ...)                                                        \
    Test(turn, name, .init = world_setup, .fini = world_teardown, ##__VA_ARGS__)

#define A (&world.client[0])
#define B (&world.client[1])
#define C (&world.client[2])
#define T (&world.turn)

/* A value of n bytes under "v". */
static void value_put(size_t n)
{
    char head[64];
    struct qn_buf value = {0};
    memset(qn_buf_reserve(&value, n), 'x', n);
    snprintf(head, sizeof head, "*3\r\n$3\r\nSET\r\n$1\r\nv\r\n$%zu\r\n", n);
    client_send(&world.client[3], head);
    client_send_bytes(&world.client[3], value.data, n);
    client_send(&world.client[3], "\r\n");
    qn_buf_free(&value);
    world_settle();
    world_apply(1);
    world_settle();
}

CASE(a_session_that_the_budget_does_not_reach_is_first_in_the_next_turn)
{
    client_call(A, "PING", QN_TURN_REQUESTS + 1);
    client_send(B, "PING\r\n");
    world_turn();
    expect_replies(B, "");
    cr_expect(B->runs == 0 && T->again);
    cr_expect(T->run_list.first == &B->session.run_link);
    world_turn();
    expect_replies(B, "+PONG\r\n");
    cr_expect(A->received.len == (QN_TURN_REQUESTS + 1) * 7);
}

/* B waits for its index. A and C spend two budgets and close, so that B is the
 * only one left, behind A, when the third is spent. */
CASE(the_next_turn_is_due_if_only_a_blocked_session_was_not_reached)
{
    client_call(A, "PING", 2 * QN_TURN_REQUESTS - 1);
    client_send(A, "QUIT\r\n");
    client_send(B, "GET a\r\n");
    client_call(C, "PING", QN_TURN_REQUESTS - 2); /* B tries once */
    client_send(C, "QUIT\r\n");
    world.replica.read_index = 5;
    world_turn();
    world_turn();
    expect_blocked(B, QN_BLOCKED_READ_INDEX);
    expect_closed(C);
    world_turn();
    expect_closed(A);
    cr_expect(T->again);
    world_turn();
    cr_expect(!T->again);
}

CASE(muted_replies_cost_as_much_as_others)
{
    value_put(40 * QN_TURN_BYTES);
    T->env.output_pause = 1 << 24;
    client_send(A, "CLIENT REPLY OFF\r\n");
    client_call(A, "GET v", 20);
    uint64_t reads = world.replica.reads;
    world_turn();
    cr_expect(world.replica.reads - reads < 20, "all in one turn");
    cr_expect(T->again);
}

CASE(floods_of_several_clients_take_turns)
{
    client_call(A, "PING", 3 * QN_TURN_REQUESTS);
    client_call(B, "PING", 3 * QN_TURN_REQUESTS);
    for (int i = 0; i < 2; i++) {
        world_turn();
    }
    cr_expect(A->session.commands == QN_TURN_REQUESTS);
    cr_expect(B->session.commands == QN_TURN_REQUESTS);
}

CASE(a_turn_writes_so_much_and_the_next_one_the_rest)
{
    value_put(40 * QN_TURN_BYTES);
    T->env.output_pause = 1 << 24;
    for (int i = 0; i < 3; i++) {
        client_send(&world.client[i], "GET v\r\n");
    }
    world_turn();
    cr_expect(A->received.len > 0 && B->received.len > 0);
    cr_expect(C->received.len == 0, "41 + 41 of 64 are spent");
    cr_expect(T->again);
    world_turn();
    cr_expect(C->received.len > 0);
    cr_expect(!T->again);
}

CASE(sockets_are_read_until_the_turn_has_read_enough)
{
    for (uint32_t i = 0; i + 1 < QN_TURN_READS; i++) {
        qn_turn_count_read(T, 1);
    }
    cr_expect(qn_turn_may_read(T));
    qn_turn_count_read(T, 1);
    cr_expect(!qn_turn_may_read(T));
    world_turn();
    cr_expect(qn_turn_may_read(T));
    qn_turn_count_read(T, (QN_TURN_READS - 1) * QN_TURN_BYTES - 1);
    cr_expect(qn_turn_may_read(T));
    qn_turn_count_read(T, QN_TURN_BYTES);
    cr_expect(!qn_turn_may_read(T));
}

CASE(a_turn_with_nothing_to_do_wants_no_other)
{
    world_turn();
    cr_expect(!T->again);
    client_send(A, "PING\r\nSET a 1\r\n");
    world_turn();
    cr_expect(!T->again);
}

/* The flush of the replica makes room, and no event follows. */
CASE(room_that_was_made_in_the_turn_wants_another_one)
{
    world.replica.room = 0;
    client_send(A, "SET a 1\r\n");
    world_turn();
    cr_expect(!T->again);
    T->again = false;
    qn_turn_begin_inputs(T, 0, 0, true);
    cr_expect(qn_turn_next_input(T) == NULL);
    world.replica.room = 1;
    qn_turn_begin_outputs(T);
    cr_expect(qn_turn_next_output(T) == NULL);
    qn_turn_end(T, 0);
    cr_expect(T->again);
    expect_blocked(A, QN_BLOCKED_BACKPRESSURE);
}

/* A group of one decides in the flush. */
CASE(an_index_that_was_reached_in_the_turn_wants_another_one)
{
    world.replica.read_index = 1;
    client_send(A, "GET a\r\n");
    world_turn();
    qn_turn_begin_inputs(T, 1, 0, true);
    cr_expect(qn_turn_next_input(T) == NULL);
    qn_turn_begin_outputs(T);
    qn_turn_end(T, 1);
    cr_expect(T->again);
}

CASE(completions_behind_the_inputs_want_another_turn)
{
    client_send(A, "SET a 1\r\nPING\r\n");
    world_turn();
    qn_turn_begin_inputs(T, 0, 0, true);
    cr_expect(qn_turn_next_input(T) == NULL);
    world_apply(1);
    qn_turn_begin_outputs(T);
    cr_expect(qn_turn_next_output(T) == &A->session);
    cr_expect(qn_turn_next_output(T) == NULL);
    qn_turn_end(T, 1);
    cr_expect(T->again);
}

CASE(a_session_is_run_once_in_a_turn)
{
    client_send(A, "PING\r\n");
    world_turn();
    qn_turn_run_later(T, &A->session);
    qn_turn_run_later(T, &A->session);
    qn_turn_begin_inputs(T, 0, 0, true);
    cr_expect(qn_turn_next_input(T) == &A->session);
    qn_turn_run_later(T, &A->session);
    cr_expect(qn_turn_next_input(T) == NULL);
    qn_turn_begin_outputs(T);
    qn_turn_end(T, 0);
    cr_expect(T->again, "it is looked at in the next turn");
}

CASE(a_closed_session_is_given_out_to_be_freed)
{
    qn_turn_run_later(T, &A->session);
    qn_turn_flush_later(T, &A->session);
    qn_session_close(&A->session);
    qn_turn_begin_inputs(T, 0, 0, true);
    cr_expect(qn_turn_next_input(T) == &A->session);
    cr_expect(qn_session_is_referenced(&A->session));
    cr_expect(qn_turn_next_input(T) == NULL);
    qn_turn_begin_outputs(T);
    cr_expect(qn_turn_next_output(T) == &A->session);
    cr_expect(!qn_session_is_referenced(&A->session));
    cr_expect(qn_turn_next_output(T) == NULL);
    qn_turn_end(T, 0);
}

CASE(a_closed_session_is_not_listed_any_more)
{
    qn_session_close(&A->session);
    qn_turn_run_later(T, &A->session);
    qn_turn_flush_later(T, &A->session);
    cr_expect(!qn_session_is_referenced(&A->session));
}

CASE(a_session_without_output_is_not_flushed)
{
    client_send(A, "CLIENT REPLY OFF\r\nPING\r\nSET a 1\r\n");
    world_turn();
    qn_turn_run_later(T, &A->session);
    qn_turn_begin_inputs(T, 0, 0, true);
    cr_expect(qn_turn_next_input(T) == &A->session);
    qn_turn_ran(T, &A->session);
    qn_turn_begin_outputs(T);
    cr_expect(qn_turn_next_output(T) == NULL);
    qn_turn_end(T, 0);
}

CASE(releasing_lets_go_of_every_reference)
{
    client_send(A, "SET a 1\r\nGET a\r\n");
    world_turn();
    qn_turn_run_later(T, &A->session);
    qn_turn_flush_later(T, &A->session);
    qn_session_close(&A->session);
    for (int i = 0; i < 4; i++) {
        cr_expect(qn_session_is_referenced(&A->session));
        cr_expect(qn_turn_release(T) == &A->session);
    }
    cr_expect(!qn_session_is_referenced(&A->session));
    cr_expect(qn_turn_release(T) == NULL);
}

CASE(inputs_begin_once_in_a_turn, .signal = SIGABRT)
{
    qn_turn_begin_inputs(T, 0, 0, true);
    qn_turn_begin_inputs(T, 0, 0, true);
}

CASE(outputs_come_behind_the_inputs, .signal = SIGABRT)
{
    qn_turn_begin_outputs(T);
}

CASE(a_turn_ends_behind_its_outputs, .signal = SIGABRT)
{
    qn_turn_begin_inputs(T, 0, 0, true);
    qn_turn_end(T, 0);
}

CASE(what_is_applied_never_goes_back, .signal = SIGABRT)
{
    qn_turn_begin_inputs(T, 0, 7, true);
    qn_turn_begin_outputs(T);
    qn_turn_end(T, 6);
}

/* ---- looking ahead ------------------------------------------------------- */

CASE(the_keys_of_several_sessions_are_asked_for_before_the_first_one_runs)
{
    client_send(A, "GET a\r\n");
    client_send(B, "PING\r\nGET b\r\n"); /* its next one reads nothing */
    client_send(C, "GET c\r\n");
    client_send(&world.client[3], "*2\r\n$3\r\nGET\r\n$1\r\n");
    world_turn();
    cr_expect_eq(world.replica.aheads, 1);
    cr_expect_str_eq(world.replica.ahead, "ac");
    cr_expect_eq(world.replica.ahead_reads, 0);
    cr_expect_eq(world.replica.reads, 3);
    expect_replies(A, "$-1\r\n");
    expect_replies(B, "+PONG\r\n$-1\r\n");
}

CASE(of_one_session_alone_nothing_is_asked_for)
{
    client_call(A, "GET a", 3);
    world_turn();
    client_send(A, "GET a\r\n");
    client_send(B, "GET\r\n"); /* has no key */
    client_send(C, "SET c 1\r\n");
    world_turn();
    cr_expect_eq(world.replica.aheads, 0);
    expect_replies(A, "$-1\r\n$-1\r\n$-1\r\n$-1\r\n");
}

CASE(without_a_store_nothing_is_asked_for)
{
    world.replica.has_store = false;
    client_send(A, "GET a\r\n");
    client_send(B, "GET b\r\n");
    world_turn();
    cr_expect_eq(world.replica.aheads, 0);
}

CASE(keys_are_asked_for_in_parts)
{
    for (int i = 0; i < WORLD_CLIENTS; i++) {
        client_send(&world.client[i],
                    i < WORLD_CLIENTS - 2 ? "GET a\r\n" : "GET b\r\n");
    }
    world_turn();
    cr_expect_eq(world.replica.aheads, 2);
    cr_expect_str_eq(world.replica.ahead, "bb");
    cr_expect_eq(world.replica.ahead_reads, QN_SESSION_AHEAD);
    cr_expect_eq(world.replica.reads, WORLD_CLIENTS);
}
