/* Rejoining, between nodes of the test: stores, lanes and time are its own. */
#include "store_support.h"

#include <stdlib.h>

#include "core/base/err.h"
#include "kvs/rejoin.h"
#include "kvs/store_cut.h"

enum { NODES = 4, KEYS_MAX = 200000, LANE_MAX = 16 };

/* ---- a log: what all stores are made of ---- */

struct op {
    uint8_t kind; /* 0 set, 1 add (not idempotent), 2 delete, 3 flush */
    uint32_t key;
    uint32_t len;
};

struct message {
    uint8_t *bytes;
    size_t len;
};

struct node {
    qn_node_t self;
    struct qn_rejoin *rejoin;
    struct qn_store *store; /* NULL: loading */
    struct qn_store *old;
    qn_slot_t applied;
    bool down;      /* has ended */
    bool stopped;   /* takes no turn */
    bool busy;      /* named so */
    bool cut_not;   /* not between two slots */
    int install;    /* what it says, if not QN_OK */
    uint64_t tells; /* chunks of this turn */
    uint32_t discards, installs;
    qn_time_t at;
};

static struct world {
    struct node node[NODES];
    struct message lane[NODES][NODES][LANE_MAX]; /* [from][to] */
    uint32_t head[NODES][NODES], tail[NODES][NODES];
    uint32_t lane_room;
    struct op *op; /* [slots] */
    qn_slot_t slots, slots_cap;
    uint32_t keys;
    uint64_t random;
    qn_time_t now;
    struct qn_config config;
    int64_t damage; /* chunks until one is damaged; < 0: none */
} w;

static void apply(struct node *n)
{
    const struct op *op = &w.op[n->applied++];
    struct number_key k = {op->key};
    struct qn_found f;
    uint64_t value = op->key;
    static uint8_t filler[300000];
    bool there = qn_store_get(n->store, op->key % 2, key_of(&k), &f);
    if (op->kind == 3) {
        qn_store_flush(n->store, UINT32_MAX, n->applied);
    } else if (op->kind == 2) {
        qn_store_del(n->store, op->key % 2, key_of(&k), n->applied);
    } else {
        if (op->kind == 1 && there && f.value.len >= 8) {
            memcpy(&value, f.value.data, 8);
        }
        value = value * 3 + 1;
        struct qn_slice parts[2] = {{(uint8_t *)&value, 8}, {filler, op->len}};
        struct qn_put p = {.db = op->key % 2,
                           .key = key_of(&k),
                           .parts = parts,
                           .part_count = 2,
                           .slot = n->applied,
                           .deadline_ms = op->key % 11 == 0 ? 5 : 0};
        cr_assert_eq(qn_store_put(n->store, &p), QN_OK);
    }
}

static void log_add(uint8_t kind, uint32_t key, uint32_t len)
{
    if (w.slots == w.slots_cap) {
        w.slots_cap = QN_MAX(2 * w.slots_cap, (qn_slot_t)1024);
        w.op = realloc(w.op, w.slots_cap * sizeof *w.op);
    }
    w.op[w.slots++] = (struct op){kind, key, len};
}

static void log_random(void)
{
    uint64_t r = draw(&w.random);
    uint32_t kind = (uint32_t)(r % 10);
    log_add(kind < 4   ? 0
            : kind < 8 ? 1
                       : 2,
            (uint32_t)(r >> 8) % w.keys, (uint32_t)(r >> 40) % 30);
}

static void catch_up(struct node *n)
{
    while (n->store != NULL && n->applied < w.slots) {
        apply(n);
    }
    if (n->store != NULL) {
        qn_store_reclaim(n->store, 256);
    }
}

/* ---- what rejoining asks of its replica ---- */

static int tell(void *ctx, qn_node_t to, struct qn_slice bytes)
{
    struct node *n = ctx;
    cr_assert_neq(to, n->self);
    cr_assert_leq(bytes.len, 60000);
    if (w.node[to].down ||
        w.tail[n->self][to] - w.head[n->self][to] >= w.lane_room) {
        return QN_EAGAIN;
    }
    struct message *m = &w.lane[n->self][to][w.tail[n->self][to]++ % LANE_MAX];
    *m = (struct message){malloc(bytes.len), bytes.len};
    memcpy(m->bytes, bytes.data, bytes.len);
    n->tells += bytes.len > 1000;
    if (bytes.len > 1000 && w.damage-- == 0) {
        m->bytes[bytes.len / 2] ^= 1;
    }
    return QN_OK;
}

static struct qn_store *own_store(void *ctx)
{
    return ((struct node *)ctx)->store;
}

static bool facts(void *ctx, struct qn_snapshot_meta *m)
{
    struct node *n = ctx;
    *m = (struct qn_snapshot_meta){
        .resume.position = n->applied, .nodes = NODES, .config = w.config};
    return !n->cut_not;
}

static uint64_t busy(void *ctx)
{
    (void)ctx;
    uint64_t mask = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        mask |= (uint64_t)w.node[i].busy << i;
    }
    return mask;
}

static void discard(void *ctx, struct qn_store *s)
{
    ((struct node *)ctx)->discards++;
    qn_store_destroy(s);
}

static int install(void *ctx, struct qn_store *s,
                   const struct qn_snapshot_meta *m, qn_time_t now)
{
    struct node *n = ctx;
    (void)now;
    if (n->install != QN_OK) {
        return n->install;
    }
    qn_store_destroy(n->store);
    n->store = s;
    n->applied = m->resume.position;
    n->installs++;
    return QN_OK;
}

/* ---- the world ---- */

static void begin(uint32_t keys)
{
    w = (struct world){.keys = keys,
                       .random = 4711,
                       .now = QN_MS,
                       .lane_room = LANE_MAX,
                       .damage = -1};
    qn_config_init(&w.config);
    for (uint32_t i = 0; i < keys; i++) {
        log_add(0, i, i % 60);
    }
    for (qn_node_t i = 0; i < NODES; i++) {
        struct node *n = &w.node[i];
        *n = (struct node){.self = i};
        const struct qn_rejoin_opts o = {
            .self = i,
            .nodes = NODES,
            .config = &w.config,
            .ops = {tell, own_store, facts, busy, install, discard, n}};
        cr_assert_eq(qn_rejoin_create(&n->rejoin, &o), QN_OK);
        n->store = store_of(2, 0);
        catch_up(n);
    }
}

static void lanes_clear(qn_node_t a)
{
    for (qn_node_t b = 0; b < NODES; b++) {
        for (; w.head[a][b] != w.tail[a][b]; w.head[a][b]++) {
            free(w.lane[a][b][w.head[a][b] % LANE_MAX].bytes);
        }
        for (; w.head[b][a] != w.tail[b][a]; w.head[b][a]++) {
            free(w.lane[b][a][w.head[b][a] % LANE_MAX].bytes);
        }
    }
}

static void end(void)
{
    for (qn_node_t i = 0; i < NODES; i++) {
        lanes_clear(i);
        qn_rejoin_destroy(w.node[i].rejoin);
        qn_store_destroy(w.node[i].store);
    }
    free(w.op);
}

/* A new life has nothing. */
static void loses_all(struct node *n)
{
    qn_store_destroy(n->store);
    n->store = NULL;
    n->applied = 0;
}

static void dies(struct node *n)
{
    n->down = true;
    lanes_clear(n->self);
    for (qn_node_t i = 0; i < NODES; i++) {
        if (i != n->self) {
            qn_rejoin_down(w.node[i].rejoin, n->self, w.now);
        }
    }
}

/* One turn: a random share of what has come, then the work. */
static void turn(struct node *n)
{
    if (n->down || n->stopped) {
        return;
    }
    for (qn_node_t from = 0; from < NODES; from++) {
        uint64_t most = draw(&w.random) % (LANE_MAX + 1);
        for (; most > 0 && w.head[from][n->self] != w.tail[from][n->self];
             most--) {
            struct message m =
                w.lane[from][n->self][w.head[from][n->self]++ % LANE_MAX];
            bool mine = qn_rejoin_told(
                n->rejoin, from, (struct qn_slice){m.bytes, m.len}, w.now);
            cr_assert(mine);
            free(m.bytes);
        }
    }
    n->tells = 0;
    n->at = qn_rejoin_turn(n->rejoin, w.now);
    cr_assert_leq(n->tells, QN_REJOIN_GIVE);
    for (qn_node_t to = 0; to < NODES; to++) {
        cr_assert_leq(w.tail[n->self][to] - w.head[n->self][to],
                      QN_REJOIN_WINDOW + 4);
    }
    catch_up(n);
}

static struct qn_rejoin_status status_of(const struct node *n)
{
    struct qn_rejoin_status st;
    qn_rejoin_status(n->rejoin, &st);
    return st;
}

/* `writes` of the log, then a turn of each; time passes. */
static void step(uint32_t writes)
{
    for (uint32_t i = 0; i < writes; i++) {
        log_random();
    }
    for (qn_node_t i = 0; i < NODES; i++) {
        turn(&w.node[i]);
    }
    w.now += QN_MS;
}

static void run_until_joined(struct node *n, uint64_t times, uint32_t writes)
{
    for (uint32_t i = 0; status_of(n).joined < times; i++) {
        cr_assert_lt(i, 20000, "node %u does not get there", n->self);
        step((uint32_t)(draw(&w.random) % (2 * writes + 1)));
    }
}

static void expect_same(const struct node *a, const struct node *b)
{
    cr_assert_eq(a->applied, b->applied);
    cr_assert_eq(qn_store_digest(a->store, 0), qn_store_digest(b->store, 0));
    for (uint64_t i = 0; i < w.keys; i++) {
        struct number_key k = {i};
        cr_assert_eq(qn_store_stripe_slot(a->store, i % 2, key_of(&k)),
                     qn_store_stripe_slot(b->store, i % 2, key_of(&k)));
    }
}

static void expect_no_cut_active(void)
{
    for (qn_node_t i = 0; i < NODES; i++) {
        cr_assert(w.node[i].store == NULL ||
                  !qn_store_cut_active(w.node[i].store));
    }
}

static void expect_no_cut(void)
{
    expect_no_cut_active();
    for (qn_node_t i = 0; i < NODES; i++) {
        cr_assert(!status_of(&w.node[i]).giving);
    }
}

/* ---- getting there ---- */

static void one_joins(uint32_t keys, uint32_t writes)
{
    struct node *n = &w.node[2];
    begin(keys);
    loses_all(n);
    qn_rejoin_begin(n->rejoin, 0, w.now);
    cr_assert(status_of(n).joining);
    run_until_joined(n, 1, writes);
    step(0);
    expect_same(n, &w.node[0]);
    cr_assert(!status_of(n).joining);
    cr_assert_eq(status_of(n).attempts, 1);
    expect_no_cut();
    end();
}

Test(rejoin, a_new_life_gets_everything_while_others_write, .timeout = 120)
{
    one_joins(1, 0);
    one_joins(50, 3);
    one_joins(20000, 40);
}

Test(rejoin, with_100000_keys_under_writes, .timeout = 120)
{
    one_joins(100000, 200);
}

Test(rejoin, one_that_fell_behind_serves_until_the_end)
{
    struct node *n = &w.node[1];
    begin(20000);
    n->stopped = true;
    step(5000);
    n->stopped = false;
    qn_slot_t stood = n->applied;
    struct qn_store *old = n->store;
    qn_rejoin_begin(n->rejoin, w.slots, w.now);
    uint64_t keys = 0;
    while (status_of(n).joined == 0) {
        cr_assert_eq(n->store, old);
        n->applied = w.slots; /* the log does not help it */
        step(0);
        /* One chunk a turn: an entry has 40 bytes at least. */
        cr_assert_leq(status_of(n).keys, keys + QN_SNAPSHOT_CHUNK / 40);
        keys = status_of(n).keys;
    }
    cr_assert_lt(stood, n->applied);
    expect_same(n, &w.node[0]);
    end();
}

Test(rejoin, a_full_channel_only_slows_it)
{
    struct node *n = &w.node[2];
    begin(10000);
    w.lane_room = 1;
    loses_all(n);
    qn_rejoin_begin(n->rejoin, 0, w.now);
    run_until_joined(n, 1, 5);
    step(0);
    expect_same(n, &w.node[0]);
    end();
}

Test(rejoin, long_values_travel)
{
    struct node *n = &w.node[2];
    begin(20);
    for (uint32_t i = 0; i < 20; i++) {
        log_add(0, i, 299000);
    }
    step(0);
    loses_all(n);
    qn_rejoin_begin(n->rejoin, 0, w.now);
    run_until_joined(n, 1, 1);
    step(0);
    expect_same(n, &w.node[0]);
    end();
}

Test(rejoin, a_flush_makes_it_begin_again)
{
    struct node *n = &w.node[2];
    begin(30000);
    loses_all(n);
    qn_rejoin_begin(n->rejoin, 0, w.now);
    step(0);
    step(10);
    step(10);
    log_add(3, 0, 0);
    run_until_joined(n, 1, 10);
    step(0);
    expect_same(n, &w.node[0]);
    cr_assert_geq(status_of(n).attempts, 2);
    cr_assert_geq(n->discards, 1, "what it had of the first one");
    expect_no_cut();
    end();
}

Test(rejoin, two_at_once_are_served_one_after_the_other)
{
    begin(5000);
    for (uint32_t i = 1; i < 3; i++) {
        loses_all(&w.node[i]);
        qn_rejoin_begin(w.node[i].rejoin, 0, w.now);
    }
    dies(&w.node[3]);
    run_until_joined(&w.node[1], 1, 5);
    run_until_joined(&w.node[2], 1, 5);
    step(0);
    expect_same(&w.node[1], &w.node[0]);
    expect_same(&w.node[2], &w.node[0]);
    cr_assert_eq(status_of(&w.node[0]).given + status_of(&w.node[1]).given +
                     status_of(&w.node[2]).given,
                 2);
    cr_assert_lt(w.now, QN_REJOIN_SILENCE, "nobody was given up");
    expect_no_cut();
    end();
}

/* ---- whom it asks ---- */

/* Until somebody has been asked and has begun. */
static struct node *donor_of(struct node *n)
{
    for (uint32_t i = 0; i < 100 && status_of(n).keys == 0; i++) {
        step(0);
    }
    qn_node_t d = status_of(n).donor;
    cr_assert_lt(d, NODES);
    return &w.node[d];
}

Test(rejoin, the_busy_one_is_asked_last)
{
    begin(3000);
    struct node *n = &w.node[2];
    w.node[3].busy = true;
    loses_all(n);
    qn_rejoin_begin(n->rejoin, 0, w.now);
    cr_assert_eq(donor_of(n), &w.node[0], "3 would be the next");
    dies(&w.node[0]);
    dies(&w.node[1]);
    run_until_joined(n, 1, 0);
    cr_assert_eq(status_of(&w.node[3]).given, 1);
    end();
}

Test(rejoin, who_is_loading_or_behind_helps_nobody)
{
    begin(3000);
    struct node *n = &w.node[2];
    loses_all(n);
    loses_all(&w.node[3]);
    qn_rejoin_begin(n->rejoin, w.slots + 1, w.now);
    for (uint32_t i = 0; i < 20; i++) {
        step(0);
        expect_no_cut_active();
    }
    cr_assert_geq(status_of(n).attempts, 3);
    cr_assert_eq(status_of(n).joined, 0);
    log_random();
    log_random();
    run_until_joined(n, 1, 0);
    expect_same(n, &w.node[1]);
    end();
}

Test(rejoin, when_the_donor_dies_another_is_asked)
{
    begin(20000);
    struct node *n = &w.node[2];
    loses_all(n);
    qn_rejoin_begin(n->rejoin, 0, w.now);
    struct node *donor = donor_of(n);
    dies(donor);
    cr_assert_eq(n->discards, 1);
    run_until_joined(n, 1, 10);
    step(0);
    expect_same(n, &w.node[donor->self == 0 ? 1 : 0]);
    cr_assert_eq(status_of(n).attempts, 2);
    end();
}

Test(rejoin, when_the_joiner_dies_its_cut_ends)
{
    begin(20000);
    struct node *n = &w.node[2];
    loses_all(n);
    qn_rejoin_begin(n->rejoin, 0, w.now);
    struct node *donor = donor_of(n);
    cr_assert(qn_store_cut_active(donor->store));
    dies(n);
    expect_no_cut();
    end();
}

Test(rejoin, a_donor_that_stands_still_is_given_up_after_a_while)
{
    begin(20000);
    struct node *n = &w.node[2];
    loses_all(n);
    qn_rejoin_begin(n->rejoin, 0, w.now);
    struct node *donor = donor_of(n);
    donor->stopped = true;
    qn_time_t since = w.now;
    while (status_of(n).attempts == 1) {
        step(0);
    }
    cr_assert_geq(w.now - since, QN_REJOIN_SILENCE - 20 * QN_MS);
    cr_assert_leq(w.now - since, QN_REJOIN_SILENCE + 20 * QN_MS);
    run_until_joined(n, 1, 0);
    /* It wakes, says what nobody wants any more, and ends its cut. */
    donor->stopped = false;
    step(0);
    step(0);
    step(0);
    cr_assert_eq(status_of(n).joined, 1);
    expect_no_cut();
    end();
}

/* A node that stood still itself finds its messages before it judges. */
Test(rejoin, standing_still_oneself_is_no_silence_of_others)
{
    begin(20000);
    struct node *n = &w.node[2];
    loses_all(n);
    qn_rejoin_begin(n->rejoin, 0, w.now);
    donor_of(n);
    for (uint32_t i = 0; i < 10 && status_of(n).joined == 0; i++) {
        w.now += 2 * QN_REJOIN_SILENCE;
        for (qn_node_t k = 0; k < NODES; k++) {
            qn_rejoin_turn(w.node[k].rejoin, w.now); /* before it receives */
        }
        for (uint32_t k = 0; k < 6; k++) {
            step(0);
        }
    }
    run_until_joined(n, 1, 0);
    cr_assert_eq(status_of(n).attempts, 1);
    end();
}

Test(rejoin, a_joiner_that_stands_still_costs_a_cut_for_a_while_only)
{
    begin(20000);
    struct node *n = &w.node[2];
    loses_all(n);
    qn_rejoin_begin(n->rejoin, 0, w.now);
    struct node *donor = donor_of(n);
    n->stopped = true;
    for (uint32_t i = 0; status_of(donor).giving; i++) {
        cr_assert_lt(i, 2 * QN_REJOIN_SILENCE / QN_MS);
        step(1);
    }
    expect_no_cut();
    n->stopped = false;
    run_until_joined(n, 1, 10);
    step(0);
    expect_same(n, donor);
    end();
}

Test(rejoin, damage_is_found_and_another_is_asked)
{
    begin(20000);
    struct node *n = &w.node[2];
    loses_all(n);
    w.damage = 7;
    qn_rejoin_begin(n->rejoin, 0, w.now);
    run_until_joined(n, 1, 5);
    step(0);
    expect_same(n, &w.node[0]);
    cr_assert_eq(status_of(n).attempts, 2);
    end();
}

Test(rejoin, alone_it_tries_again_without_haste)
{
    begin(100);
    struct node *n = &w.node[2];
    loses_all(n);
    for (qn_node_t i = 0; i < NODES; i++) {
        if (i != 2) {
            dies(&w.node[i]);
        }
    }
    qn_rejoin_begin(n->rejoin, 0, w.now);
    qn_time_t before = w.now;
    step(0);
    cr_assert_gt(n->at, before, "it does not spin");
    cr_assert_leq(n->at, before + 100 * QN_MS);
    w.node[0].down = false;
    qn_rejoin_up(n->rejoin, 0);
    run_until_joined(n, 1, 0);
    end();
}

/* ---- the end ---- */

Test(rejoin, it_is_installed_between_two_slots_only)
{
    begin(100);
    struct node *n = &w.node[2];
    loses_all(n);
    n->install = QN_EAGAIN;
    w.node[3].cut_not = true;
    qn_rejoin_begin(n->rejoin, 0, w.now);
    step(0);
    step(0);
    cr_assert_eq(status_of(n).keys, 0, "nor does a cut begin otherwise");
    w.node[3].cut_not = false;
    for (uint32_t i = 0; i < 50; i++) {
        step(0);
    }
    cr_assert_eq(status_of(n).joined, 0);
    cr_assert_eq(status_of(n).keys, 100);
    n->install = QN_OK;
    run_until_joined(n, 1, 0);
    expect_same(n, &w.node[0]);
    end();
}

Test(rejoin, what_is_not_needed_any_more_is_thrown_away)
{
    begin(100);
    struct node *n = &w.node[2];
    n->install = QN_ESTALE;
    qn_rejoin_begin(n->rejoin, 0, w.now);
    for (uint32_t i = 0; i < 50 && status_of(n).joining; i++) {
        step(1);
    }
    cr_assert(!status_of(n).joining);
    cr_assert_eq(n->discards, 1);
    cr_assert_eq(n->installs, 0);
    expect_same(n, &w.node[0]);
    end();
}

Test(rejoin, what_does_not_fit_is_asked_of_another)
{
    begin(100);
    struct node *n = &w.node[2];
    loses_all(n);
    n->install = QN_EINVAL;
    qn_rejoin_begin(n->rejoin, 0, w.now);
    while (status_of(n).attempts < 3) {
        step(0);
    }
    n->install = QN_OK;
    run_until_joined(n, 1, 0);
    end();
}

Test(rejoin, one_that_the_log_has_left_behind_is_begun_anew)
{
    begin(20000);
    struct node *n = &w.node[2];
    loses_all(n);
    qn_rejoin_begin(n->rejoin, 0, w.now);
    donor_of(n);
    step(10);
    qn_rejoin_begin(n->rejoin, 3, w.now);
    cr_assert_eq(n->discards, 0, "it has that");
    qn_slot_t least = w.slots;
    qn_rejoin_begin(n->rejoin, least, w.now);
    cr_assert_eq(n->discards, 1);
    run_until_joined(n, 1, 0);
    cr_assert_geq(n->applied, least);
    end();
}

Test(rejoin, what_the_log_leaves_behind_before_it_comes_is_refused)
{
    begin(20000);
    struct node *n = &w.node[2];
    loses_all(n);
    dies(&w.node[0]);
    dies(&w.node[1]);
    qn_rejoin_begin(n->rejoin, 0, w.now);
    turn(n);
    while (!qn_store_cut_active(w.node[3].store)) {
        turn(&w.node[3]);
    }
    log_random();
    qn_slot_t least = w.slots;
    qn_rejoin_begin(n->rejoin, least, w.now);
    run_until_joined(n, 1, 1);
    cr_assert_eq(status_of(n).attempts, 2);
    cr_assert_geq(n->applied, least);
    end();
}

/* ---- messages ---- */

/* Chunks of an attempt that was given up still come, from the same node. */
Test(rejoin, chunks_of_an_earlier_attempt_are_dropped)
{
    begin(20000);
    struct node *n = &w.node[2];
    struct node *donor = &w.node[3];
    loses_all(n);
    dies(&w.node[0]);
    dies(&w.node[1]);
    qn_rejoin_begin(n->rejoin, 0, w.now);
    turn(n);
    while (donor->tells == 0) {
        turn(donor);
    }
    cr_assert_gt(w.tail[3][2] - w.head[3][2], 0, "chunks are on their way");
    qn_rejoin_down(n->rejoin, 3, w.now);
    qn_rejoin_up(n->rejoin, 3);
    qn_rejoin_turn(n->rejoin, w.now); /* it asks, and then they come */
    run_until_joined(n, 1, 5);
    step(0);
    cr_assert_eq(status_of(n).attempts, 2);
    expect_same(n, donor);
    end();
}

Test(rejoin, messages_of_others_are_left_alone)
{
    begin(10);
    struct qn_rejoin *r = w.node[0].rejoin;
    static const uint8_t ask[32] = {1}, answer[32] = {2}, high[32] = {200};
    cr_assert(!qn_rejoin_told(r, 1, (struct qn_slice){ask, 32}, w.now));
    cr_assert(!qn_rejoin_told(r, 1, (struct qn_slice){answer, 32}, w.now));
    cr_assert(!qn_rejoin_told(r, 1, (struct qn_slice){high, 32}, w.now));
    cr_assert(!qn_rejoin_told(r, 1, (struct qn_slice){NULL, 0}, w.now));
    end();
}

/* Any bytes behind a right first one: dropped, or a wish to be served. */
Test(rejoin, malformed_messages_do_no_harm)
{
    begin(2000);
    struct node *n = &w.node[2];
    loses_all(n);
    qn_rejoin_begin(n->rejoin, 0, w.now);
    for (uint32_t i = 0; i < 3000; i++) {
        uint8_t bytes[64];
        for (uint32_t b = 0; b < sizeof bytes; b++) {
            bytes[b] = draw(&w.random) % 3 == 0 ? (uint8_t)draw(&w.random)
                                                : (uint8_t)(b == 4);
        }
        bytes[0] = (uint8_t)(16 + draw(&w.random) % 5);
        size_t len = draw(&w.random) % sizeof bytes + 1;
        uint8_t *own = malloc(len); /* of exactly its size */
        memcpy(own, bytes, len);
        struct node *to = &w.node[i % NODES];
        qn_node_t from = (qn_node_t)(draw(&w.random) % NODES);
        if (from != to->self) {
            cr_assert(qn_rejoin_told(to->rejoin, from,
                                     (struct qn_slice){own, len}, w.now));
        }
        free(own);
        step(0);
    }
    run_until_joined(n, 1, 0);
    step(0);
    expect_same(n, &w.node[0]);
    end();
}
