/* A replica is given the state of another: three of them in one thread, over
 * channels in memory, in virtual time. */
#include "tests/unit/kvs/store/store_support.h"

#include "core/base/err.h"
#include "kvs/replica/replica.h"
#include "kvs/replica/snapshot_content_ops.h"
#include "kvs/store/snapshot_iter.h"
#include "paxos/member/driver_transfer.h"
#include "tests/support/inmemory_transport.h"

enum { NODES = 3, CELLS = 4096, CELL_BYTES = 56 };

struct member {
    struct qn_driver *driver;
    struct qn_replica *replica;
    struct qn_state_transfer *rejoin;
    struct qn_member_state state_of; /* callbacks */
    struct qn_driver_transfer transfer;
    struct qn_snapshot_content *content;
    struct qn_qp *direct[NODES], *tree[NODES];
    struct qn_outbox_state state;
    struct qn_config config;
    uint32_t configured;
    bool stopped;
    bool again; /* its last turn wants another one */
};

static struct member member[NODES];
static qn_a64 read_index;
static qn_time_t now;
static uint64_t maxmemory[NODES]; /* that each is started with; 0: default */

static void told(void *ctx, qn_node_t from, struct qn_slice bytes)
{
    struct member *m = ctx;
    cr_assert(qn_state_transfer_on_message(m->rejoin, from, bytes, now));
}

static void configured(void *ctx)
{
    ((struct member *)ctx)->configured++;
}

static void need_snapshot(void *ctx, qn_slot_t slot)
{
    qn_state_transfer_begin(((struct member *)ctx)->rejoin, slot, now);
}

static void covered(void *ctx, uint64_t seq)
{
    qn_replica_covered(ctx, seq);
}

static void caught_up(void *ctx, qn_slot_t position)
{
    qn_replica_caught_up(ctx, position);
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
    m->config.tcp_backlog = 100 + i;
    if (maxmemory[i] != 0) {
        m->config.maxmemory = maxmemory[i];
    }
    const struct qn_replica_opts o = {.self = i,
                                      .nodes = NODES,
                                      .incarnation = incarnation[i],
                                      .first = true,
                                      .seed = 5,
                                      .config = &m->config,
                                      .submits_first = i == 0,
                                      .told = told,
                                      .configured = configured,
                                      .ctx = m};
    cr_assert_eq(qn_replica_create(&m->replica, &o), QN_OK);
    const struct qn_driver_opts d = {
        .self = i,
        .nodes = NODES,
        .incarnation = incarnation,
        .direct = m->direct,
        .tree = m->tree,
        .topology = "sequential",
        .service = qn_replica_service(m->replica),
        .snapshots = {.needed = need_snapshot, .ctx = m},
        .read_index = &read_index,
        .state = &m->state,
        .peer_state = peer,
        .first = true,
        .seed = 5,
        .now = now};
    cr_assert_eq(qn_driver_create(&m->driver, &d), QN_OK);
    cr_assert_eq(qn_replica_begin(m->replica, m->driver), QN_OK);
    const struct qn_snapshot_content_opts c = {
        .nodes = NODES,
        .config = &m->config,
        .log_bytes = 64 << 20,
        .ops = qn_snapshot_content_ops_of(m->replica)};
    cr_assert_eq(qn_snapshot_content_create(&m->content, &c), QN_OK);
    m->state_of =
        (struct qn_member_state){.user = qn_snapshot_content_user(m->content),
                                 .covered = covered,
                                 .caught_up = caught_up,
                                 .ctx = m->replica};
    m->transfer = (struct qn_driver_transfer){.driver = m->driver,
                                              .self = i,
                                              .nodes = NODES,
                                              .incarnation = incarnation[i],
                                              .backlog_bytes = 64 << 20,
                                              .state = &m->state_of};
    const struct qn_state_transfer_opts j = {
        .self = i,
        .nodes = NODES,
        .ops = qn_driver_transfer_ops(&m->transfer),
        .user = m->state_of.user};
    cr_assert_eq(qn_state_transfer_create(&m->rejoin, &j), QN_OK);
}

static void turn(struct member *m)
{
    if (!m->stopped) {
        qn_state_transfer_turn(m->rejoin, now);
        m->again = qn_replica_turn(m->replica, now, 1000 + now / QN_MS);
        qn_driver_flush(qn_replica_driver(m->replica), now);
    }
}

static void rounds(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++, now += 100 * QN_US) {
        for (qn_node_t k = 0; k < NODES; k++) {
            turn(&member[k]);
        }
    }
}

static void begin(void)
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
    rounds(50);
    for (qn_node_t i = 0; i < NODES; i++) {
        cr_assert_not_null(qn_replica_store(member[i].replica));
    }
}

static void end(void)
{
    for (qn_node_t i = 0; i < NODES; i++) {
        qn_state_transfer_destroy(member[i].rejoin);
        qn_snapshot_content_destroy(member[i].content);
        qn_replica_destroy(member[i].replica);
        qn_driver_destroy(member[i].driver);
        for (qn_node_t p = 0; p < NODES; p++) {
            qn_qp_close(member[i].direct[p]);
            qn_qp_close(member[i].tree[p]);
        }
    }
}

static struct qn_cmd_call call_of(struct qn_slice *argv, const char *a,
                                  const char *b, const char *c, const char *d)
{
    const char *word[] = {a, b, c, d};
    uint32_t argc = 0;
    for (; argc < 4 && word[argc] != NULL; argc++) {
        argv[argc] = text(word[argc]);
    }
    return (struct qn_cmd_call){.cmd = qn_cmd_resolve(argv, argc, NULL),
                                .argv = argv,
                                .argc = argc,
                                .proto = 2};
}

static void write4(qn_node_t i, const char *a, const char *b, const char *c,
                   const char *d)
{
    struct qn_slice argv[4];
    const struct qn_cmd_call call = call_of(argv, a, b, c, d);
    cr_assert(qn_replica_can_submit(member[i].replica));
    cr_assert_eq(qn_replica_submit_write(member[i].replica, &call), QN_OK);
}

static void write3(qn_node_t i, const char *a, const char *b, const char *c)
{
    write4(i, a, b, c, NULL);
}

static void deferred_read(qn_node_t i, const char *a, const char *b)
{
    struct qn_slice argv[4];
    const struct qn_cmd_call call = call_of(argv, a, b, NULL, NULL);
    qn_slot_t index =
        qn_driver_read_index(qn_replica_driver(member[i].replica));
    cr_assert_eq(qn_replica_submit_read(member[i].replica, &call, index),
                 QN_OK);
}

static void expect_reply(qn_node_t i, const char *want)
{
    struct qn_slice reply;
    cr_assert(qn_replica_next_completion(member[i].replica, &reply),
              "none for %s", want);
    cr_assert(slice_is(reply, text(want)), "%.*s, not %s", (int)reply.len,
              (const char *)reply.data, want);
}

static void expect_no_reply(qn_node_t i)
{
    struct qn_slice reply;
    cr_assert(!qn_replica_next_completion(member[i].replica, &reply));
}

static void expect_all_same(void)
{
    uint64_t digest = qn_store_digest(qn_replica_store(member[0].replica), 0);
    for (qn_node_t i = 1; i < NODES; i++) {
        cr_assert_eq(qn_replica_applied(member[i].replica),
                     qn_replica_applied(member[0].replica));
        cr_assert_eq(qn_store_digest(qn_replica_store(member[i].replica), 0),
                     digest);
        cr_assert_eq(qn_replica_stamp_ms(member[i].replica),
                     qn_replica_stamp_ms(member[0].replica));
    }
}

#define OK   "+OK\r\n"
#define LOST "-ERR write outcome unknown, read before retrying\r\n"

static struct qn_snapshot_meta meta;
static struct qn_library_state library;

/* What node 0 has, as a store and a meta. */
static struct qn_store *copy_of_0(void)
{
    struct qn_store *from = qn_replica_store(member[0].replica), *to;
    struct qn_snapshot_iter_facts f;
    struct qn_walked e;
    const struct qn_state_transfer_ops ops =
        qn_driver_transfer_ops(&member[0].transfer);
    cr_assert(ops.cut(ops.ctx, &library));
    qn_replica_facts(member[0].replica, &meta);
    meta.position = library.resume.position;
    cr_assert_eq(qn_snapshot_iter_begin(from, meta.position, UINT64_MAX),
                 QN_OK);
    cr_assert(qn_snapshot_iter_facts(from, &f));
    meta.dbs = f.dbs;
    const struct qn_store_opts o = {.seed = f.seed, .dbs = f.dbs};
    cr_assert_eq(qn_store_create(&to, &o), QN_OK);
    for (; qn_snapshot_iter_peek(from, &e) == QN_OK;
         qn_snapshot_iter_next(from)) {
        cr_assert_eq(put(to, e.db, e.key, e.value, e.slot), QN_OK);
    }
    qn_snapshot_iter_end(from);
    return to;
}

static int install(qn_node_t i, struct qn_store *s)
{
    const struct qn_state_transfer_ops ops =
        qn_driver_transfer_ops(&member[i].transfer);
    int err = ops.resume(ops.ctx, &library, now);
    if (err == QN_OK) {
        qn_replica_install(member[i].replica, s, &meta);
    } else {
        qn_store_destroy(s);
    }
    return err;
}

static int install_copy(qn_node_t i)
{
    return install(i, copy_of_0());
}

/* Node 2 sends and hears nothing any more; the others decide. */
static void two_stands_still(void)
{
    member[2].stopped = true;
    qn_driver_flush(qn_replica_driver(member[2].replica), now);
    rounds(50);
}

static void expect_writes(qn_node_t i, uint64_t ok, uint64_t unknown)
{
    const struct qn_replica_writes *w = qn_replica_writes(member[i].replica);
    cr_assert_eq(w->covered_ok, ok);
    cr_assert_eq(w->unknown_snapshot, unknown);
    cr_assert_eq(w->unknown_timeout, 0);
}

Test(replica_install, own_writes_in_it_complete)
{
    begin();
    write3(2, "SET", "a", "1");
    write3(2, "INCR", "a", NULL);
    deferred_read(2, "GET", "a");
    write3(2, "SET", "b", "3");
    two_stands_still();
    cr_assert_eq(qn_replica_pending(member[2].replica), 3);
    cr_assert_eq(install_copy(2), QN_OK);
    expect_reply(2, OK);
    expect_reply(2, LOST); /* what it counted is not known */
    expect_reply(2, "$1\r\n2\r\n");
    expect_reply(2, OK);
    expect_no_reply(2);
    expect_writes(2, 2, 1);
    cr_assert_eq(qn_replica_pending(member[2].replica), 0);
    cr_assert_eq(qn_replica_applied(member[2].replica),
                 qn_replica_applied(member[0].replica));
    /* And it goes on. */
    member[2].stopped = false;
    write3(2, "INCR", "a", NULL);
    write3(0, "INCR", "a", NULL);
    rounds(50);
    struct qn_slice reply;
    cr_assert(qn_replica_next_completion(member[2].replica, &reply));
    cr_assert_eq(reply.data[0], ':');
    expect_no_reply(2);
    expect_all_same();
    end();
}

/* What the reply of each kind of write depends on. */
Test(replica_install, a_reply_that_the_state_decides_is_not_known)
{
    static const struct {
        const char *word[4];
        const char *reply;
    } t[] = {{{"SET", "a", "1"}, OK},
             {{"SET", "a", "2", "NX"}, LOST},
             {{"SET", "a", "3", "GET"}, LOST},
             {{"SETNX", "a", "4"}, LOST},
             {{"MSET", "a", "5"}, OK},
             {{"MSETNX", "a", "6"}, LOST},
             {{"GETSET", "a", "7"}, LOST},
             {{"APPEND", "a", "8"}, LOST},
             {{"DEL", "a"}, LOST},
             {{"FLUSHDB"}, OK},
             {{"CONFIG", "SET", "max-key-len", "100"}, OK},
             {{"FLUSHALL", "ASYNC"}, OK}};
    begin();
    for (size_t i = 0; i < QN_ARRAY_COUNT(t); i++) {
        write4(2, t[i].word[0], t[i].word[1], t[i].word[2], t[i].word[3]);
    }
    two_stands_still();
    cr_assert_eq(install_copy(2), QN_OK);
    for (size_t i = 0; i < QN_ARRAY_COUNT(t); i++) {
        expect_reply(2, t[i].reply);
    }
    expect_no_reply(2);
    end();
}

/* The snapshot says which one was refused last, not which others were. */
Test(replica_install, up_to_a_refused_one_nothing_is_sure)
{
    begin();
    write4(1, "CONFIG", "SET", "max-key-len", "4");
    rounds(50);
    expect_reply(1, OK);
    write3(2, "SET", "a", "1");
    write3(2, "SET", "longer", "2");
    write3(2, "SET", "b", "3");
    two_stands_still();
    cr_assert_eq(install_copy(2), QN_OK);
    expect_reply(2, LOST);
    expect_reply(2, LOST);
    expect_reply(2, OK);
    expect_no_reply(2);
    expect_writes(2, 1, 2);
    /* It knows now what the donor knew: it may be asked itself. */
    struct qn_snapshot_meta from_2;
    qn_replica_facts(member[2].replica, &from_2);
    cr_assert_eq(from_2.refused[2].inc, 13);
    cr_assert_eq(from_2.refused[2].last, 2);
    end();
}

/* The same on all replicas, whoever was told. */
Test(replica_install, each_replica_knows_whose_command_was_refused)
{
    begin();
    write3(1, "SET", "a", "x");
    write3(1, "INCR", "a", NULL);
    write3(1, "SET", "a", "y");
    write4(2, "SET", "a", "z", "QX");
    rounds(50);
    for (qn_node_t i = 0; i < NODES; i++) {
        qn_replica_facts(member[i].replica, &meta);
        cr_assert_eq(meta.refused[0].inc, 0);
        cr_assert_eq(meta.refused[1].inc, 12);
        cr_assert_eq(meta.refused[1].last, 2);
        cr_assert_eq(meta.refused[2].inc, 13);
        cr_assert_eq(meta.refused[2].last, 1);
    }
    expect_reply(1, OK);
    expect_reply(1, "-ERR value is not an integer or out of range\r\n");
    expect_reply(1, OK);
    expect_reply(2, "-ERR syntax error\r\n");
    expect_writes(1, 0, 0);
    end();
}

/* Another incarnation of the same replica had one refused: that is none of
 * this. */
Test(replica_install, what_an_earlier_life_was_refused_does_not_count)
{
    begin();
    write3(2, "SET", "a", "1");
    two_stands_still();
    struct qn_store *s = copy_of_0();
    meta.refused[2] = (struct qn_session){.inc = 12, .last = 1000};
    cr_assert_eq(install(2, s), QN_OK);
    expect_reply(2, OK);
    expect_no_reply(2);
    end();
}

Test(replica_install, own_writes_behind_it_are_answered_as_usual)
{
    begin();
    write3(2, "SET", "a", "1");
    two_stands_still();
    write3(2, "INCR", "a", NULL); /* has not left */
    deferred_read(2, "GET", "a");
    cr_assert_eq(install_copy(2), QN_OK);
    expect_reply(2, OK);
    expect_no_reply(2);
    member[2].stopped = false;
    rounds(50);
    expect_reply(2, ":2\r\n");
    expect_reply(2, "$1\r\n2\r\n");
    expect_no_reply(2);
    expect_all_same();
    end();
}

Test(replica_install, what_is_not_newer_is_refused)
{
    begin();
    write3(0, "SET", "a", "1");
    rounds(50);
    struct qn_store *before = qn_replica_store(member[2].replica);
    cr_assert_eq(install_copy(2), QN_ESTALE);
    cr_assert_eq(qn_replica_store(member[2].replica), before);
    expect_all_same();
    end();
}

Test(replica_install, run_time_options_travel_and_others_stay)
{
    begin();
    member[2].stopped = true;
    write4(0, "CONFIG", "SET", "max-key-len", "777");
    rounds(50);
    cr_assert_eq(member[0].configured, 2); /* the first entry's, and this */
    cr_assert_eq(install_copy(2), QN_OK);
    cr_assert_eq(member[2].configured, 2);
    cr_assert_eq(qn_replica_config(member[2].replica)->max_key_len, 777);
    cr_assert_eq(qn_replica_config(member[2].replica)->tcp_backlog, 102);
    end();
}

#define OOM "-OOM command not allowed when used memory > 'maxmemory'.\r\n"

/* Each entry takes 48 + 1 + 1 bytes: two fit, a third does not. */
Test(replica_install, all_refuse_by_the_limit_of_the_first_entry)
{
    maxmemory[0] = 110;
    maxmemory[1] = 1;
    maxmemory[2] = 10000;
    begin();
    static const char *const key[] = {"a", "b", "c"};
    for (uint32_t i = 0; i < 3; i++) {
        write3(i, "SET", key[i], "1");
        rounds(50);
    }
    expect_reply(1, "+OK\r\n");
    expect_reply(2, OOM);
    expect_all_same();
    for (qn_node_t i = 0; i < NODES; i++) {
        cr_assert_eq(qn_replica_config(member[i].replica)->maxmemory, 110);
        cr_assert_eq(qn_store_count(qn_replica_store(member[i].replica), 0), 2);
    }
    end();
}

/* A SET that a snapshot contains was refused for want of room there. */
Test(replica_install, what_maxmemory_refused_is_not_said_to_be_done)
{
    maxmemory[0] = 60;
    begin();
    write3(2, "SET", "a", "1");
    write3(2, "SET", "b", "2");
    write3(2, "SET", "a", "3");
    two_stands_still();
    cr_assert_eq(install_copy(2), QN_OK);
    expect_reply(2, LOST);
    expect_reply(2, LOST);
    expect_reply(2, OK);
    expect_no_reply(2);
    end();
}

/* The one that got a snapshot, limit and size, refuses what the others do. */
Test(replica_install, a_store_from_a_snapshot_refuses_the_same_commands)
{
    maxmemory[0] = 700;
    begin();
    member[2].stopped = true;
    for (uint32_t i = 0; i < 40; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%u", i % 30);
        write3(0, i % 3 == 2 ? "GETDEL" : "SET", key,
               i % 3 == 2 ? NULL : "0123456789");
    }
    write4(0, "CONFIG", "SET", "maxmemory", "900");
    rounds(200);
    cr_assert_eq(install_copy(2), QN_OK);
    cr_assert_eq(qn_replica_config(member[2].replica)->maxmemory, 900);
    member[2].stopped = false;
    for (uint32_t i = 0; i < 40; i++) {
        char key[16];
        snprintf(key, sizeof key, "m%u", i % 20);
        write3(i % 3, i % 5 == 4 ? "GETDEL" : "APPEND", key,
               i % 5 == 4 ? NULL : "01234");
        rounds(5);
    }
    rounds(200);
    expect_all_same();
    struct qn_store_stats st[NODES];
    for (qn_node_t i = 0; i < NODES; i++) {
        qn_store_stats(qn_replica_store(member[i].replica), &st[i]);
        cr_assert_leq(st[i].logical_bytes, 900);
        cr_assert_gt(st[i].logical_bytes, 900 - 60, "the limit is reached");
        cr_assert_eq(st[i].logical_bytes, st[0].logical_bytes);
    }
    end();
}

Test(replica_install, the_old_store_is_freed_in_steps)
{
    enum { KEYS = 5000 };
    begin();
    for (uint32_t i = 0; i < KEYS; i++) {
        char key[16];
        struct qn_slice reply;
        snprintf(key, sizeof key, "%u", i);
        while (!qn_replica_can_submit(member[0].replica)) {
            rounds(1);
            while (qn_replica_next_completion(member[0].replica, &reply)) {
            }
        }
        write3(0, "SET", key, "value");
    }
    rounds(300);
    member[2].stopped = true;
    write3(0, "SET", "a", "1");
    rounds(50);
    expect_no_reply(2);
    cr_assert_eq(install_copy(2), QN_OK);
    member[2].stopped = false;
    uint32_t turns = 0;
    do {
        rounds(1);
        turns++;
    } while (member[2].again);
    cr_assert_geq(turns, KEYS / 1024);
    cr_assert_leq(turns, 100);
    expect_all_same();
    end();
}

/* All of it: the protocol over the drivers' channels, under writes. The joiner
 * hears no LEARN meanwhile, and has nothing but the log's memory otherwise. */
Test(replica_install, through_the_drivers_channels, .timeout = 60)
{
    begin();
    member[2].stopped = true;
    struct qn_slice reply;
    for (uint32_t i = 0; i < 4000; i++) {
        char key[16];
        snprintf(key, sizeof key, "%u", i % 3000);
        write3(0, "SET", key, i % 2 ? "value" : "a longer value than that");
        if (i % 50 == 0) {
            rounds(1);
        }
        while (qn_replica_next_completion(member[0].replica, &reply)) {
        }
    }
    rounds(50);
    qn_driver_hold_learns(qn_replica_driver(member[2].replica), true);
    member[2].stopped = false;
    qn_state_transfer_begin(member[2].rejoin,
                            qn_replica_applied(member[0].replica), now);
    struct qn_state_transfer_status st = {0};
    for (uint32_t i = 0; st.joined == 0; i++) {
        cr_assert_lt(i, 20000); /* the donor rests by its real CPU time */
        write3(1, "INCR", "counter", NULL);
        rounds(1);
        while (qn_replica_next_completion(member[1].replica, &reply)) {
        }
        qn_state_transfer_status(member[2].rejoin, &st);
    }
    qn_driver_hold_learns(qn_replica_driver(member[2].replica), false);
    rounds(3000);
    expect_all_same();
    end();
}
