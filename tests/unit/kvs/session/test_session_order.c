/* The order of replies: behind pending writes, and among deferred reads. */
#include <stdio.h>
#include <string.h>

#include "tests/support/test.h"
#include "tests/unit/kvs/session/session_world.h"

#define CASE(name)                                                             \
    Test(session_order, name, .init = world_setup, .fini = world_teardown)

#define A (&world.client[0])
#define B (&world.client[1])

static const struct qn_info_cmd *counts(const char *name)
{
    const struct qn_cmd *cmd =
        qn_cmd_find((struct qn_slice){(const uint8_t *)name, strlen(name)});
    cr_assert(cmd != NULL);
    return &world.part.cmd[qn_cmd_index(cmd)];
}

CASE(a_local_command_is_answered_at_once)
{
    client_send(A, "PING\r\n");
    world_turn();
    expect_replies(A, "+PONG\r\n");
    expect_running(A);
}

CASE(a_write_is_answered_when_it_is_applied)
{
    client_call(A, "SET a 1", 1);
    world_settle();
    expect_replies(A, "");
    expect_running(A);
    world_apply(1);
    world_turn();
    expect_replies(A, "+OK\r\n");
}

CASE(a_local_command_waits_behind_pending_writes)
{
    client_send(A, "SET a 1\r\nPING\r\nSET b 2\r\n");
    world_settle();
    expect_replies(A, "");
    expect_blocked(A, QN_BLOCKED_PENDING);
    cr_expect(world.replica.submissions == 1);
    world_apply(1);
    world_settle();
    expect_replies(A, "+OK\r\n+PONG\r\n");
    cr_expect(world.replica.submissions == 2);
    world_apply(1);
    world_turn();
    expect_replies(A, "+OK\r\n");
}

CASE(an_error_waits_behind_pending_writes)
{
    client_send(A, "SET a 1\r\nNOSUCH\r\nGET\r\n");
    world_settle();
    expect_blocked(A, QN_BLOCKED_PENDING);
    world_apply(1);
    world_settle();
    expect_replies(
        A, "+OK\r\n-ERR unknown command 'NOSUCH', with args beginning with: "
           "\r\n-ERR wrong number of arguments for 'get' command\r\n");
}

CASE(a_read_with_nothing_pending_is_run_at_once)
{
    client_send(A, "GET a\r\n");
    world_turn();
    expect_replies(A, "$-1\r\n");
    cr_expect(world.replica.reads == 1 && world.replica.submissions == 0);
}

CASE(a_read_behind_own_writes_is_deferred)
{
    client_send(A, "SET a 1\r\nGET a\r\nSET a 2\r\nGET a\r\n");
    world_turn();
    cr_expect(world.replica.submissions == 4 && world.replica.reads == 0);
    cr_expect(A->session.pending == 4 && A->session.deferred_reads == 2);
    world_apply(4);
    world_turn();
    expect_replies(A, "+OK\r\n$1\r\n1\r\n+OK\r\n$1\r\n2\r\n");
    cr_expect(A->session.pending == 0 && A->session.deferred_reads == 0);
}

CASE(a_read_behind_writes_of_another_session_is_not_deferred)
{
    client_send(A, "SET a 1\r\n");
    client_send(B, "GET a\r\n");
    world_turn();
    expect_replies(B, "$-1\r\n");
    cr_expect(world.replica.submissions == 1);
    world_apply(1);
    client_send(B, "GET a\r\n");
    world_turn();
    expect_replies(B, "$1\r\n1\r\n");
}

CASE(a_deferred_read_takes_the_read_index_of_its_turn)
{
    world.replica.read_index = 41;
    client_send(A, "SET a 1\r\nGET a\r\n");
    world_turn();
    cr_expect(world.replica.last_index == 41);
    world.replica.read_index = 43;
    client_send(A, "GET a\r\n");
    world_turn();
    cr_expect(world.replica.last_index == 43);
}

CASE(one_deferred_read_more_than_the_bound_blocks)
{
    client_call(A, "SET a 1", 1);
    client_call(A, "GET a", QN_DEFERRED_READS_MAX + 2);
    world_settle();
    expect_blocked(A, QN_BLOCKED_PENDING);
    cr_expect(A->session.deferred_reads == QN_DEFERRED_READS_MAX);
    cr_expect(world.replica.submissions == QN_DEFERRED_READS_MAX + 1);
    world_apply(QN_DEFERRED_READS_MAX);
    world_settle();
    expect_blocked(A, QN_BLOCKED_PENDING);
    world_apply(1);
    world_settle();
    expect_running(A);
    cr_expect(world.replica.reads == 2);
    cr_expect(A->received.len == 5 + (QN_DEFERRED_READS_MAX + 2) * 7);
}

/* MGET with one key, whose length is `key` bytes. */
static void get_long(size_t key)
{
    static char text[QN_DEFERRED_READ_BYTES_MAX + 64];
    char name[QN_DEFERRED_READ_BYTES_MAX + 1];
    memset(name, 'k', sizeof name);
    int n = snprintf(text, sizeof text, "*2\r\n$4\r\nMGET\r\n$%zu\r\n%.*s\r\n",
                     key, (int)key, name);
    cr_assert(n > 0 && (size_t)n < sizeof text);
    client_send(A, text);
}

CASE(a_read_with_more_bytes_than_the_bound_is_not_deferred)
{
    const size_t max = QN_DEFERRED_READ_BYTES_MAX - 2 * 16 - 4; /* "MGET" */
    client_send(A, "SET a 1\r\n");
    get_long(max);
    world_turn();
    cr_expect(A->session.deferred_reads == 1);
    get_long(max + 1);
    world_settle();
    expect_blocked(A, QN_BLOCKED_PENDING);
    cr_expect(A->session.deferred_reads == 1);
    world_apply(2);
    world_settle();
    expect_running(A);
    expect_replies(A, "+OK\r\n*1\r\n$-1\r\n*1\r\n$-1\r\n");
    cr_expect(world.replica.reads == 1);
}

CASE(a_deferred_read_without_room_waits_for_the_writes)
{
    world.replica.room = 1;
    client_send(A, "SET a 1\r\nGET a\r\n");
    world_settle();
    expect_blocked(A, QN_BLOCKED_PENDING);
    world_apply(1);
    world_settle();
    expect_replies(A, "+OK\r\n$1\r\n1\r\n");
    cr_expect(world.replica.reads == 1);
}

CASE(completions_go_to_the_sessions_that_submitted)
{
    client_send(A, "INCR n\r\nINCR n\r\n");
    client_send(B, "INCR n\r\n");
    world_turn();
    client_send(A, "INCR n\r\n");
    world_turn();
    world_apply(4);
    world_turn();
    expect_replies(A, ":1\r\n:2\r\n:4\r\n");
    expect_replies(B, ":3\r\n");
    cr_expect(A->session.last_write == 4 && B->session.last_write == 3);
}

CASE(a_deferred_read_that_is_given_up_is_no_write)
{
    client_send(A, "SET a 1\r\nGET a\r\n");
    world_turn();
    world_apply(1);
    world_give_up();
    world_turn();
    expect_replies(A, "+OK\r\n-ERR given up\r\n");
    cr_expect(A->session.last_write == 1);
    cr_expect(A->session.deferred_reads == 0);
}

CASE(a_completion_without_a_submission_belongs_to_no_session)
{
    struct qn_slice ok = {(const uint8_t *)"+OK\r\n", 5};
    cr_expect(qn_turn_complete(&world.turn, ok, 1) == NULL);
    world_turn();
    expect_replies(A, "");
}

/* Also when it was put back several times. */
CASE(a_request_counts_once)
{
    client_send(A, "SET a 1\r\nPING\r\nSET\r\n");
    for (int i = 0; i < 5; i++) {
        world_turn();
    }
    world_apply(1);
    world_settle();
    cr_expect(A->session.commands == 3);
    cr_expect(world.part.commands_processed == 2);
    cr_expect(counts("ping")->calls == 1 && counts("set")->calls == 1);
    cr_expect(counts("set")->rejected == 1);
    cr_expect(strcmp(A->session.last_cmd->name, "ping") == 0);
}

CASE(a_replica_without_a_store_answers_local_commands_only)
{
    world.replica.has_store = false;
    client_send(A, "GET a\r\nSET a 1\r\nPING\r\n");
    world_settle();
    expect_replies(A, "-LOADING Redis is loading the dataset in memory\r\n"
                      "-LOADING Redis is loading the dataset in memory\r\n"
                      "+PONG\r\n");
    cr_expect(world.replica.submissions == 0 && world.replica.reads == 0);
    cr_expect(counts("get")->calls == 0 && counts("get")->rejected == 1);
}

CASE(a_write_beside_the_log_is_run_here)
{
    client_send(A, "CONFIG SET lag-timeout 5\r\n");
    world_turn();
    expect_replies(A, "+BESIDE\r\n");
    cr_expect(world.replica.submissions == 0);
    client_send(A, "FLUSHALL\r\n");
    world_turn();
    cr_expect(world.replica.submissions == 1);
}
