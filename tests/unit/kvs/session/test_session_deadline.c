/* Reads whose deadline has passed: what is refused with them, and until when.
 */
#include "tests/support/test.h"
#include "tests/unit/kvs/session/session_world.h"

#define CASE(name)                                                             \
    Test(session_deadline, name, .init = setup, .fini = world_teardown)

#define A (&world.client[0])

#define REFUSED "-CLUSTERDOWN no quorum\r\n"

/* The replica lacks a slot, and commit-timeout is 3 ticks. */
static void setup(void)
{
    world_setup();
    world.replica.read_index = 5;
    world.replica.applied = 4;
    world.turn.env.output_pause = 1 << 20;
}

CASE(at_the_deadline_a_read_still_waits)
{
    client_send(A, "GET a\r\n");
    world_turn();
    world.replica.tick += world.replica.tick_limit;
    world_turn();
    expect_blocked(A, QN_BLOCKED_READ_INDEX);
    world.replica.tick++;
    world_turn();
    expect_replies(A, REFUSED);
    expect_running(A);
}

CASE(reads_that_came_with_it_are_refused_too_and_ping_is_answered)
{
    client_send(A, "GET a\r\nPING\r\nGET b\r\n");
    world_turn();
    world.replica.tick += 4;
    world_turn();
    expect_replies(A, REFUSED "+PONG\r\n" REFUSED);
    cr_expect(world.replica.reads == 0);
}

CASE(new_bytes_have_a_deadline_of_their_own)
{
    client_send(A, "GET a\r\n");
    world_turn();
    world.replica.tick += 4;
    world_turn();
    expect_replies(A, REFUSED);
    client_send(A, "GET a\r\n");
    world_turn();
    expect_blocked(A, QN_BLOCKED_READ_INDEX);
    world.replica.tick += 3;
    world_turn();
    expect_replies(A, "");
    world.replica.tick += 1;
    world_turn();
    expect_replies(A, REFUSED);
}

CASE(an_index_that_is_reached_in_time_leaves_no_deadline)
{
    client_send(A, "GET a\r\n");
    world_turn();
    world.replica.tick += 4;
    world.replica.applied = 5;
    world_turn();
    expect_replies(A, "$-1\r\n");
    cr_expect(!A->session.deadline_passed);
}

/* The budget cuts a pipeline of reads that came together. */
CASE(the_deadline_of_a_pipeline_passes_once)
{
    client_call(A, "GET a", QN_TURN_REQUESTS + 8);
    world_turn();
    expect_blocked(A, QN_BLOCKED_READ_INDEX);
    world.replica.tick += 4;
    world_turn();
    expect_blocked(A, QN_BLOCKED_BUDGET);
    cr_expect(A->session.deadline_passed);
    world_turn();
    expect_running(A);
    cr_expect(A->received.len == (QN_TURN_REQUESTS + 8) * (sizeof REFUSED - 1));
    cr_expect(!A->session.deadline_passed);
}

CASE(when_the_index_is_reached_the_rest_of_a_pipeline_is_served)
{
    client_call(A, "GET a", QN_TURN_REQUESTS + 8);
    world_turn();
    world.replica.tick += 4;
    world_turn();
    expect_blocked(A, QN_BLOCKED_BUDGET);
    A->received.len = 0;
    world.replica.applied = 5;
    world.replica.read_index = 5;
    world_turn();
    cr_expect(world.replica.reads == 8);
    cr_expect(!A->session.deadline_passed);
}

/* From then on it is the client that was slow. */
CASE(a_client_that_does_not_read_gets_a_new_deadline)
{
    world.turn.env.output_pause = 10;
    A->accepts = 0;
    client_send(A, "GET a\r\nGET b\r\n");
    world_turn();
    world.replica.tick += 4;
    world_turn();
    expect_blocked(A, QN_BLOCKED_OUTPUT);
    A->accepts = SIZE_MAX;
    client_reads(A, 100);
    world_turn();
    expect_replies(A, REFUSED);
    expect_blocked(A, QN_BLOCKED_READ_INDEX);
}

CASE(a_late_reply_between_does_not_renew_the_deadline)
{
    client_send(A, "GET a\r\nINFO\r\nGET b\r\n");
    world_turn();
    world.replica.tick += 4;
    world_turn();
    expect_replies(A, REFUSED);
    expect_blocked(A, QN_BLOCKED_REMOTE);
    world_answer(A, "facts");
    world_turn();
    expect_replies(A, "+facts\r\n" REFUSED);
}

CASE(the_time_is_asked_for_while_a_read_waits_and_not_otherwise)
{
    client_send(A, "PING\r\nSET a 1\r\n");
    world_turn();
    world_turn();
    cr_expect(world.replica.ticks_asked == 0);
    client_send(&world.client[1], "GET a\r\n");
    world_turn();
    uint32_t asked = world.replica.ticks_asked;
    cr_expect(asked > 0);
    world_turn();
    world_turn();
    cr_expect(world.replica.ticks_asked == asked + 2);
}

CASE(a_read_behind_pending_writes_is_not_refused_here)
{
    client_send(A, "SET a 1\r\nGET a\r\n");
    world_turn();
    world.replica.tick += 100;
    world_turn();
    expect_replies(A, "");
    world_apply(2);
    world_turn();
    expect_replies(A, "+OK\r\n$1\r\n1\r\n");
}
