/* Sessions over a real replica: what kvs/frontend asks of it. Three replicas in
 * one thread, over channels in memory, in virtual time; no socket. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kvs/frontend/admit.h"
#include "kvs/frontend/frontend_internal.h"
#include "kvs/resp/reply.h"
#include "tests/support/inmemory_transport.h"
#include "tests/support/test.h"

enum { NODES = 3, CELLS = 4096, CELL_BYTES = 56, FOLLOWER = 1, CONNS = 3 };

struct member {
    struct qn_driver *driver;
    struct qn_replica *replica;
    struct qn_qp *direct[NODES], *tree[NODES];
    struct qn_outbox_state state;
    struct qn_config config;
    bool stopped;
};

static struct member member[NODES];
static qn_a64 read_index;
static bool messages; /* no replica reads another's outbox */
static qn_time_t now;
static struct qn_frontend fe; /* of the follower */
static struct qn_conn *conn[CONNS];
static struct qn_buf received[CONNS];
static uint64_t elsewhere, published, taken;

/* ---- the front end of the follower --------------------------------------- */

static void on_deferred(void *ctx, struct qn_store *store,
                        struct qn_cmd_call *call)
{
    (void)ctx;
    qn_frontend_deferred_read(&fe, store, call);
}

static void on_configured(void *ctx)
{
    (void)ctx;
    qn_frontend_configured(&fe);
}

static bool takes(const struct qn_cmd_call *call)
{
    taken++;
    return strcmp(call->cmd->name, "config|set") == 0;
}

static void run_local(struct qn_conn *c, struct qn_cmd_call *call)
{
    (void)c;
    qn_reply_status(call->reply, call->cmd->name);
}

static uint64_t clients_elsewhere(void *ctx, uint64_t most)
{
    (void)ctx;
    return QN_MIN(elsewhere, most);
}

static void publish_clients(void *ctx, uint64_t clients)
{
    (void)ctx;
    published = clients;
}

static void frontend_make(struct qn_replica *r)
{
    const struct qn_frontend_opts o = {
        .replica = r,
        .self = FOLLOWER,
        .nodes = NODES,
        .linearizable = true,
        .ops = {.takes = takes,
                .run_local = run_local,
                .clients_elsewhere = clients_elsewhere,
                .publish_clients = publish_clients},
    };
    cr_assert(qn_frontend_init(&fe, &o) == QN_OK);
    for (int i = 0; i < CONNS; i++) {
        conn[i] = calloc(1, sizeof *conn[i]);
        cr_assert(conn[i] != NULL);
        conn[i]->fe = &fe;
        qn_session_init(&conn[i]->session, &fe.limits);
    }
}

/* As qn_frontend_run, without the sockets. */
static void frontend_turn(void)
{
    struct qn_turn *t = &fe.turn;
    struct qn_client_session *s = NULL;
    struct qn_driver *driver = qn_replica_driver(fe.o.replica);
    qn_slot_t index = qn_driver_read_view(driver).index;
    t->again = qn_replica_turn(fe.o.replica, now, 1000 + now / QN_MS);
    qn_frontend_completions(&fe);
    qn_turn_begin_inputs(t, index, qn_driver_read_view(driver).reached,
                         qn_replica_store(fe.o.replica) != NULL);
    while ((s = qn_turn_next_input(t)) != NULL) {
        cr_assert(qn_session_run(&t->env, s) == QN_OK);
        cr_assert(qn_session_save_partial_input(&t->env, s) == QN_OK);
        qn_turn_ran(t, s);
    }
    qn_driver_flush(driver, now);
    qn_frontend_completions(&fe);
    qn_turn_begin_outputs(t);
    while ((s = qn_turn_next_output(t)) != NULL) {
        for (int i = 0; i < CONNS; i++) {
            if (conn[i] != NULL && s == &conn[i]->session) {
                qn_buf_append(&received[i], s->out.data, s->out.len);
                s->out.len = 0;
            }
        }
    }
    qn_turn_end(t, qn_driver_read_view(driver).reached);
}

static void sends(int i, const char *text)
{
    static char room[CONNS][65536];
    size_t n = strlen(text);
    cr_assert(n <= sizeof room[i]);
    memcpy(room[i], text, n);
    qn_session_feed(&conn[i]->session, (const uint8_t *)room[i], n);
    qn_turn_run_later(&fe.turn, &conn[i]->session);
}

#define expect_replies(i, text)                                                \
    do {                                                                       \
        cr_assert(received[i].len == strlen(text) &&                           \
                      (received[i].len == 0 ||                                 \
                       memcmp(received[i].data, text, received[i].len) == 0),  \
                  "expected \"%s\", got \"%.*s\"", text, (int)received[i].len, \
                  received[i].len == 0 ? "" : (char *)received[i].data);       \
        received[i].len = 0;                                                   \
    } while (0)

/* ---- the group ----------------------------------------------------------- */

static void told(void *ctx, qn_node_t from, struct qn_slice bytes)
{
    (void)ctx;
    (void)from;
    (void)bytes;
}

static void member_make(qn_node_t i)
{
    static const uint64_t incarnation[NODES] = {11, 12, 13};
    struct member *m = &member[i];
    const struct qn_outbox_state *peer[NODES] = {0};
    for (qn_node_t p = 0; p < NODES; p++) {
        peer[p] = p != i ? &member[p].state : NULL;
    }
    qn_config_init(&m->config);
    struct qn_replica_opts o = {.self = i,
                                .nodes = NODES,
                                .incarnation = incarnation[i],
                                .first = true,
                                .seed = 5,
                                .config = &m->config,
                                .submits_first = i == 0,
                                .told = told,
                                .ctx = m};
    if (i == FOLLOWER) {
        o.deferred_read = on_deferred;
        o.configured = on_configured;
    }
    cr_assert(qn_replica_create(&m->replica, &o) == QN_OK);
    const struct qn_driver_opts d = {.self = i,
                                     .nodes = NODES,
                                     .incarnation = incarnation,
                                     .direct = m->direct,
                                     .tree = m->tree,
                                     .topology = "sequential",
                                     .service = qn_replica_service(m->replica),
                                     .read_index =
                                         messages ? NULL : &read_index,
                                     .state = &m->state,
                                     .peer_state = messages ? NULL : peer,
                                     .first = true,
                                     .seed = 5,
                                     .now = now};
    cr_assert(qn_driver_create(&m->driver, &d) == QN_OK);
    cr_assert(qn_replica_begin(m->replica, m->driver) == QN_OK);
}

static void turns(uint32_t n, qn_time_t step)
{
    for (uint32_t i = 0; i < n; i++, now += step) {
        for (qn_node_t k = 0; k < NODES; k++) {
            if (member[k].stopped) {
                continue;
            }
            if (k == FOLLOWER) {
                frontend_turn();
            } else {
                (void)qn_replica_turn(member[k].replica, now,
                                      1000 + now / QN_MS);
                qn_driver_flush(qn_replica_driver(member[k].replica), now);
            }
        }
    }
}

static void setup(void)
{
    now = QN_MS;
    for (qn_node_t i = 0; i < NODES; i++) {
        for (qn_node_t p = 0; p < i; p++) {
            struct qn_qp *end[2];
            inmemory_pair(end, CELLS, CELL_BYTES);
            member[i].direct[p] = end[0];
            member[p].direct[i] = end[1];
            inmemory_pair(end, CELLS, CELL_BYTES);
            member[i].tree[p] = end[0];
            member[p].tree[i] = end[1];
        }
    }
    for (qn_node_t i = 0; i < NODES; i++) {
        member_make(i);
    }
    frontend_make(member[FOLLOWER].replica);
    turns(50, 100 * QN_US);
}

static void teardown(void)
{
    for (int i = 0; i < CONNS; i++) {
        if (conn[i] != NULL) {
            qn_session_close(&conn[i]->session);
        }
    }
    while (qn_turn_release(&fe.turn) != NULL) {
    }
    for (int i = 0; i < CONNS; i++) {
        if (conn[i] != NULL) {
            conn[i]->fe = NULL;
            qn_conn_free_if_done(conn[i]);
        }
        qn_buf_free(&received[i]);
    }
    qn_frontend_fini(&fe);
    for (qn_node_t i = 0; i < NODES; i++) {
        qn_replica_destroy(member[i].replica);
        qn_driver_destroy(member[i].driver);
        for (qn_node_t p = 0; p < NODES; p++) {
            qn_qp_close(member[i].direct[p]);
            qn_qp_close(member[i].tree[p]);
        }
    }
}

#define CASE(name)                                                             \
    Test(session_ops, name, .init = setup, .fini = teardown, .timeout = 60)

/* ---- tests --------------------------------------------------------------- */

CASE(a_write_goes_through_the_log_of_the_group)
{
    sends(0, "SET a 1\r\n");
    turns(1, 100 * QN_US);
    expect_replies(0, "");
    turns(10, 100 * QN_US);
    expect_replies(0, "+OK\r\n");
    cr_expect(conn[0]->session.last_write > 0);
    cr_expect(conn[0]->session.last_write ==
              qn_replica_last_own(member[FOLLOWER].replica));
}

CASE(reads_behind_own_writes_see_exactly_the_earlier_ones)
{
    sends(0, "SET a 1\r\nGET a\r\nAPPEND a x\r\nGET a\r\nPING\r\n");
    sends(1, "GET nothing\r\nMGET nothing\r\n");
    turns(20, 100 * QN_US);
    expect_replies(0, "+OK\r\n$1\r\n1\r\n:2\r\n$2\r\n1x\r\n+ping\r\n");
    expect_replies(1, "$-1\r\n*1\r\n$-1\r\n");
    cr_expect(fe.part.keyspace_hits == 2 && fe.part.keyspace_misses == 1);
}

CASE(only_writes_without_keys_may_be_run_beside_the_log)
{
    sends(0, "SET a 1\r\nGET a\r\nINCR b\r\n");
    turns(20, 100 * QN_US);
    cr_expect(taken == 0);
    received[0].len = 0;
    sends(0, "CONFIG SET lag-timeout 1000\r\nFLUSHALL\r\n");
    turns(20, 100 * QN_US);
    cr_expect(taken == 2);
    expect_replies(0, "+config|set\r\n+OK\r\n");
}

CASE(writes_beyond_the_room_wait_and_all_are_answered_in_order)
{
    char script[65536] = "";
    uint32_t total = 0;
    member[0].stopped = member[2].stopped = true;
    bool blocked = false;
    for (int round = 0; round < 60 && !blocked; round++) {
        size_t len = 0;
        for (int k = 0; k < 400; k++) {
            len += (size_t)sprintf(script + len, "INCR n\r\n");
        }
        total += 400;
        sends(0, script);
        turns(1, QN_US);
        blocked = conn[0]->session.reason == QN_BLOCKED_BACKPRESSURE;
    }
    cr_assert(blocked, "there was room for %u writes", total);
    sends(1, "GET n\r\nPING\r\n");
    turns(1, QN_US);
    expect_replies(1, "$-1\r\n+ping\r\n");
    member[0].stopped = member[2].stopped = false;
    struct qn_buf all = {0};
    for (int i = 0; i < 20000 && conn[0]->session.commands < total; i++) {
        turns(1, 10 * QN_US);
    }
    turns(100, 100 * QN_US);
    for (uint32_t k = 1; k <= total; k++) {
        char reply[16];
        int n = snprintf(reply, sizeof reply, ":%u\r\n", k);
        qn_buf_append(&all, reply, (size_t)n);
    }
    cr_expect(received[0].len == all.len);
    cr_expect(memcmp(received[0].data, all.data, all.len) == 0);
    qn_buf_free(&all);
}

/* commit-timeout is 3 s; a tick of 100 ms counts once per turn. */
CASE(without_a_quorum_writes_are_refused_and_the_rest_is_answered)
{
    member[0].stopped = member[2].stopped = true;
    sends(0, "SET a 1\r\nGET a\r\n");
    turns(40, 100 * QN_MS);
    expect_replies(0, "-ERR write outcome unknown, read before retrying\r\n"
                      "$-1\r\n");
    sends(0, "SET b 1\r\nPING\r\nGET b\r\n");
    turns(2, 100 * QN_MS);
    expect_replies(0, "-CLUSTERDOWN no quorum of replicas\r\n+ping\r\n"
                      "$-1\r\n");
    cr_expect(qn_in_flight_count(&fe.turn.env.in_flight) == 0);
}

CASE(a_closed_connection_is_freed_by_its_last_completion)
{
    sends(0, "SET a 1\r\nGET a\r\nSET a 2\r\n");
    sends(1, "SET b 1\r\n");
    turns(1, 100 * QN_US);
    cr_assert(conn[0]->session.pending == 3);
    qn_session_close(&conn[0]->session);
    conn[0]->fe = NULL; /* libuv has let go of it */
    qn_conn_free_if_done(conn[0]);
    conn[0] = NULL; /* a sanitizer sees whether it is freed, and once */
    turns(20, 100 * QN_US);
    cr_expect(qn_in_flight_count(&fe.turn.env.in_flight) == 0);
    expect_replies(1, "+OK\r\n");
}

CASE(options_of_the_log_are_in_force_for_the_sessions)
{
    const struct qn_config *c = qn_replica_config(member[FOLLOWER].replica);
    cr_expect(fe.turn.env.output_limit == c->client_output_limit);
    cr_expect(fe.turn.env.output_pause == c->client_output_pause);
    cr_expect(fe.turn.env.value_max == c->proto_max_bulk_len);
    cr_expect(fe.turn.env.key_max == c->max_key_len);
    cr_expect(fe.limits.bulk_max == c->proto_max_bulk_len);
}

CASE(clients_of_all_replicas_are_counted_against_maxclients)
{
    uint64_t most = qn_replica_config(member[FOLLOWER].replica)->maxclients;
    elsewhere = most - 2;
    cr_expect(qn_admit(conn[0], true) == NULL);
    cr_expect(published == 1);
    cr_expect(qn_admit(conn[1], true) == NULL);
    const char *refusal = qn_admit(conn[2], true);
    cr_assert(refusal != NULL);
    cr_expect(strcmp(refusal, "ERR max number of clients reached") == 0);
    cr_expect(published == 2 && !conn[2]->admitted);
    qn_admit_gone(conn[2]);
    cr_expect(published == 2);
    qn_admit_gone(conn[0]);
    qn_admit_gone(conn[0]);
    cr_expect(published == 1);
    cr_expect(qn_admit(conn[2], true) == NULL);
    qn_admit_gone(conn[1]);
    qn_admit_gone(conn[2]);
    cr_expect(published == 0);
}

CASE(what_is_owed_at_the_end_of_draining_is_counted)
{
    sends(0, "SET a 1\r\nPING\r\n");
    sends(1, "GET a\r\n");
    member[0].stopped = member[2].stopped = true;
    frontend_turn();
    cr_expect(qn_in_flight_count(&fe.turn.env.in_flight) == 1);
    cr_expect(qn_session_unanswered(&conn[0]->session) == 1);
    cr_expect(qn_session_unanswered(&conn[1]->session) == 0);
}

/* ---- by message ---------------------------------------------------------- */

static void setup_messages(void)
{
    messages = true;
    setup();
}

#define BY_MESSAGE(name)                                                       \
    Test(session_ops, name, .init = setup_messages, .fini = teardown,          \
         .timeout = 60)

/* The replica is up to date, and cannot know it before it has asked. */
BY_MESSAGE(a_read_waits_for_an_answer)
{
    sends(0, "GET a\r\n");
    turns(1, 100 * QN_US);
    cr_assert(conn[0]->session.reason == QN_BLOCKED_READ_INDEX);
    member[0].stopped = true; /* the leader */
    turns(50, 100 * QN_US);
    expect_replies(0, "");
    member[0].stopped = false;
    turns(20, 100 * QN_US);
    expect_replies(0, "$-1\r\n");
}

/* Inside apply no index is known that they must wait for. */
BY_MESSAGE(reads_behind_own_writes_wait_for_these_and_ask)
{
    sends(0, "SET a 1\r\nGET a\r\nAPPEND a x\r\nGET a\r\n");
    turns(1, 100 * QN_US);
    cr_expect(conn[0]->session.reason == QN_BLOCKED_PENDING);
    cr_expect(conn[0]->session.deferred_reads == 0);
    turns(60, 100 * QN_US);
    expect_replies(0, "+OK\r\n$1\r\n1\r\n:2\r\n$2\r\n1x\r\n");
}
