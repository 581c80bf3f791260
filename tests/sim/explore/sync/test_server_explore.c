/*
 * shm_server under every schedule: calls, submissions, a server that sleeps,
 * one that leaves while another comes, streaming replies; and the defects of
 * server_mutant.h, each found by a program here.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "tests/sim/explore/sync/server_world.h"
#include "tests/support/test.h"

/* Stores wait for the explorer in TSO, so there it counts deviations by the
 * dozen: one less. */
static void is_clean(const struct program *p, uint32_t deviations)
{
    const char *more = getenv("QN_EXPLORE_MORE");
#ifdef __SANITIZE_ADDRESS__ /* which takes four times as long */
    const uint32_t less = 1;
#else
    const uint32_t less = 0;
#endif
    const uint32_t d =
        more != NULL ? deviations + (uint32_t)atoi(more) : deviations - less;
    struct qn_explored out;
    cr_assert(server_clean(p, QN_EXPLORE_C11, d, &out), "C11: %s at %s",
              out.fault, out.choices);
    cr_assert(server_clean(p, QN_EXPLORE_TSO, d > 0 ? d - 1 : 0, &out),
              "TSO: %s at %s", out.fault, out.choices);
}

Test(server_explore, a_client_calls_twice, .timeout = 3600)
{
    is_clean(&calls, 3);
}

Test(server_explore, two_clients_call_once, .timeout = 3600)
{
    is_clean(&two_clients, 2);
}

/* Two clients of two calls take minutes for each deviation more: by night, and
 * there more than an hour on cores that others share. */
Test(server_explore, two_clients_call_twice, .timeout = 4 * 3600)
{
    is_clean(&two_clients_twice, 1);
}

Test(server_explore, requests_are_submitted_and_collected, .timeout = 3600)
{
    is_clean(&submits, 3);
}

Test(server_explore, a_server_moves_to_another_domain, .timeout = 3600)
{
    is_clean(&moves, 2);
}

Test(server_explore, a_server_leaves_while_a_client_waits, .timeout = 3600)
{
    is_clean(&leaves, 2);
}

Test(server_explore, replies_that_stream_wake_their_clients, .timeout = 3600)
{
    is_clean(&streams, 3);
}

Test(server_explore, a_client_joins_beside_replies_in_groups, .timeout = 3600)
{
    is_clean(&groups, 2);
}

/* ---- defects ---- */

/* Within C11 and the deviations of the clean run. */
static bool is_found(const struct program *p, uint32_t deviations,
                     enum qn_server_mutant mutant)
{
    struct qn_explored out;
    qn_server_mutant = mutant;
    const bool found = !server_clean(p, QN_EXPLORE_C11, deviations, &out);
    qn_server_mutant = QN_SERVER_MUTANT_NONE;
    return found && out.fault != NULL;
}

Test(server_mutants, a_late_request_that_is_forgotten_is_found)
{
    cr_assert(is_found(&moves, 2, QN_SERVER_MUTANT_FORGET_LATE));
}

Test(server_mutants, streaming_without_the_last_fence_is_found)
{
    cr_assert(is_found(&streams, 2, QN_SERVER_MUTANT_NO_LAST_FENCE));
}

Test(server_mutants, a_server_that_leaves_and_wakes_none_is_found)
{
    cr_assert(is_found(&leaves, 2, QN_SERVER_MUTANT_NO_LAST_WAKE));
}

Test(server_mutants, a_second_server_beside_the_first_is_found)
{
    cr_assert(is_found(&moves, 2, QN_SERVER_MUTANT_TWO_SERVERS));
}

/* ---- one data, two objects, so two executors ---- */

static alignas(4096) unsigned char second_memory[4096];
static struct qn_delegate second;
static struct qn_delegate_client second_client;

static void setup_both(void *ctx)
{
    server_setup(ctx);
    const struct program *p = (const struct program *)ctx;
    const struct qn_delegate_opts o = {
        .type = &qn_delegate_shm_server, .clients = 1, .server = p->server};
    memset(second_memory, 0, qn_delegate_bytes(&o));
    QN_ASSERT(qn_delegate_format(second_memory, &o) == QN_OK);
    QN_ASSERT(qn_delegate_open(&second, second_memory, server_add, NULL) ==
              QN_OK);
    QN_ASSERT(qn_delegate_join(&second, &second_client, NULL) == QN_OK);
}

static void call_both(void *ctx)
{
    uint64_t first_result, second_result;
    (void)ctx;
    QN_ASSERT(qn_delegate(&server_object, &server_clients[0], 0, 1,
                          &first_result) == QN_OK);
    QN_ASSERT(qn_delegate(&second, &second_client, 0, 1, &second_result) ==
              QN_OK);
    if (first_result != 1 || second_result != 2) {
        qn_sim_fail("the second server has not seen what the first has run");
    }
    server_stop();
    while (qn_delegate_stop(&second) != QN_OK) {
        qn_pause();
    }
}

static void serve_first(void *ctx)
{
    (void)ctx;
    QN_ASSERT(qn_delegate_serve(&server_object, &server_servers[0]) == QN_OK);
}

static void serve_second(void *ctx)
{
    (void)ctx;
    QN_ASSERT(qn_delegate_serve(&second, &server_servers[1]) == QN_OK);
}

static bool two_executors_are_clean(bool stream)
{
    const struct program p = {
        .clients = 1,
        .servers = 2,
        .calls = 2, /* one of each server_object */
        .domains = 1,
        .server = {.pause = QN_SERVER_NONE, .only_server_uses_data = stream}};
    const struct qn_explore_opts o = {
        .nodes = 3,
        .node = {call_both, serve_first, serve_second},
        .setup = setup_both,
        .check = server_check,
        .ctx = (void *)(uintptr_t)&p, /* read only */
        .memory = QN_EXPLORE_C11,
        .deviations = 2,
        .steps_max = 2000};
    struct qn_explored out;
    return qn_explore(&o, &out) && out.complete;
}

/* The option says that only one server uses the data. That it does not hold for
 * two objects with the same data is what this shows. */
Test(server_mutants, streaming_with_two_executors_is_found)
{
    cr_assert(two_executors_are_clean(false));
    cr_assert(!two_executors_are_clean(true));
}
