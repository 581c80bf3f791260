/*
 * The world of the tests of rejoining: every node applies the same log, lanes
 * hold few messages, and a turn takes a random share of what has come.
 */
#include "tests/unit/kvs/snapshot/state_transfer_world.h"

#include <stdlib.h>

#include "core/base/err.h"

struct world w;

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

void log_add(uint8_t kind, uint32_t key, uint32_t len)
{
    if (w.slots == w.slots_cap) {
        w.slots_cap = QN_MAX(2 * w.slots_cap, (qn_slot_t)1024);
        w.op = realloc(w.op, w.slots_cap * sizeof *w.op);
    }
    w.op[w.slots++] = (struct op){kind, key, len};
}

void log_random(void)
{
    uint64_t r = draw(&w.random);
    uint32_t kind = (uint32_t)(r % 10);
    log_add(kind < 4   ? 0
            : kind < 8 ? 1
                       : 2,
            (uint32_t)(r >> 8) % w.keys, (uint32_t)(r >> 40) % 30);
}

void catch_up(struct node *n)
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

static bool cut(void *ctx, struct qn_library_state *s)
{
    struct node *n = ctx;
    *s = (struct qn_library_state){.resume.position = n->applied,
                                   .nodes = NODES};
    return !n->cut_not;
}

static void facts(void *ctx, struct qn_snapshot_meta *m)
{
    (void)ctx;
    *m = (struct qn_snapshot_meta){.nodes = NODES, .config = w.config};
}

static void hold(void *ctx, qn_node_t joiner, qn_slot_t position, uint32_t done)
{
    struct node *n = ctx;
    struct qn_snapshot_iter_facts f = {0};
    cr_assert(qn_snapshot_iter_facts(n->store, &f));
    cr_assert_eq(f.position, position);
    n->hold_done = done;
    /* One given to the end is over at the latest when another begins. */
    n->holds = true;
    n->hold_at = position;
    n->hold_for = joiner;
}

static void release(void *ctx, qn_node_t joiner)
{
    struct node *n = ctx;
    cr_assert(n->holds);
    cr_assert_eq(n->hold_for, joiner);
    n->holds = false;
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

static uint32_t log_used(void *ctx, qn_slot_t position)
{
    const struct node *n = ctx;
    (void)position;
    uint64_t mark = qn_flow_hold_mark(100, n->hold_done);
    return (uint32_t)(mark * w.log_used / 100);
}

static qn_time_t cpu(void)
{
    return w.cpu += w.look_cpu;
}

static void discard(void *ctx, struct qn_store *s)
{
    ((struct node *)ctx)->discards++;
    qn_store_destroy(s);
}

static int resume(void *ctx, const struct qn_library_state *s, qn_time_t now)
{
    (void)s;
    (void)now;
    return ((struct node *)ctx)->install;
}

static void install(void *ctx, struct qn_store *s,
                    const struct qn_snapshot_meta *m)
{
    struct node *n = ctx;
    qn_store_destroy(n->store);
    n->store = s;
    n->applied = m->position;
    n->installs++;
}

/* ---- the world ---- */

void world_begin(uint32_t keys)
{
    w = (struct world){.keys = keys,
                       .paced = w.paced,
                       .log_bytes = w.log_bytes != 0 ? w.log_bytes : 64 << 20,
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
        const struct qn_snapshot_content_opts c = {.nodes = NODES,
                                                   .config = &w.config,
                                                   .log_bytes = w.log_bytes,
                                                   .ops = {.store = own_store,
                                                           .facts = facts,
                                                           .install = install,
                                                           .discard = discard,
                                                           .ctx = n}};
        cr_assert_eq(qn_snapshot_content_create(&n->content, &c), QN_OK);
        const struct qn_state_transfer_opts o = {
            .self = i,
            .nodes = NODES,
            .user = qn_snapshot_content_user(n->content),
            .ops = {.tell = tell,
                    .busy = busy,
                    .cut = cut,
                    .resume = resume,
                    .log_used = log_used,
                    .hold = hold,
                    .release = release,
                    .cpu = w.paced ? cpu : NULL,
                    .ctx = n}};
        cr_assert_eq(qn_state_transfer_create(&n->state_transfer, &o), QN_OK);
        n->store = store_of(2, 0);
        catch_up(n);
    }
}

void lanes_clear(qn_node_t a)
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

void world_end(void)
{
    for (qn_node_t i = 0; i < NODES; i++) {
        lanes_clear(i);
        qn_state_transfer_destroy(w.node[i].state_transfer);
        qn_snapshot_content_destroy(w.node[i].content);
        qn_store_destroy(w.node[i].store);
    }
    free(w.op);
}

/* A new incarnation has nothing. */
void loses_all(struct node *n)
{
    qn_store_destroy(n->store);
    n->store = NULL;
    n->applied = 0;
}

void dies(struct node *n)
{
    n->down = true;
    lanes_clear(n->self);
    for (qn_node_t i = 0; i < NODES; i++) {
        if (i != n->self) {
            qn_state_transfer_peer_down(w.node[i].state_transfer, n->self,
                                        w.now);
        }
    }
}

/* One turn: a random share of what has come, then the work. */
void world_turn(struct node *n)
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
            bool mine = qn_state_transfer_on_message(
                n->state_transfer, from, (struct qn_slice){m.bytes, m.len},
                w.now);
            cr_assert(mine);
            free(m.bytes);
        }
    }
    n->tells = 0;
    n->at = qn_state_transfer_turn(n->state_transfer, w.now);
    cr_assert_leq(n->tells, QN_STATE_TRANSFER_GIVE);
    for (qn_node_t to = 0; to < NODES; to++) {
        cr_assert_leq(w.tail[n->self][to] - w.head[n->self][to],
                      QN_STATE_TRANSFER_WINDOW + 4);
    }
    catch_up(n);
}

struct world_status status_of(const struct node *n)
{
    struct qn_state_transfer_status st;
    struct qn_snapshot_content_status c;
    qn_state_transfer_status(n->state_transfer, &st);
    qn_snapshot_content_status(n->content, &c);
    return (struct world_status){.joining = st.joining,
                                 .comes = st.comes,
                                 .giving = st.giving,
                                 .donor = st.donor,
                                 .keys = c.keys,
                                 .joined = st.joined,
                                 .given = st.given,
                                 .attempts = st.attempts,
                                 .cut_bytes = c.cut_bytes,
                                 .cut_bytes_max = c.cut_bytes_max,
                                 .cut_bytes_most = c.cut_bytes_most,
                                 .cuts_anew = st.anew};
}

/* `writes` of the log, then a turn of each; time passes. */
void world_step(uint32_t writes)
{
    for (uint32_t i = 0; i < writes; i++) {
        log_random();
    }
    for (qn_node_t i = 0; i < NODES; i++) {
        world_turn(&w.node[i]);
    }
    w.now += QN_MS;
}

void run_until_joined(struct node *n, uint64_t times, uint32_t writes)
{
    for (uint32_t i = 0; status_of(n).joined < times; i++) {
        cr_assert_lt(i, 20000, "node %u does not get there", n->self);
        world_step((uint32_t)(draw(&w.random) % (2 * writes + 1)));
    }
}

void expect_same(const struct node *a, const struct node *b)
{
    cr_assert_eq(a->applied, b->applied);
    cr_assert_eq(qn_store_digest(a->store, 0), qn_store_digest(b->store, 0));
    for (uint64_t i = 0; i < w.keys; i++) {
        struct number_key k = {i};
        cr_assert_eq(qn_store_stripe_slot(a->store, i % 2, key_of(&k)),
                     qn_store_stripe_slot(b->store, i % 2, key_of(&k)));
    }
}

void expect_no_snapshot_iter_active(void)
{
    for (qn_node_t i = 0; i < NODES; i++) {
        cr_assert(w.node[i].store == NULL ||
                  !qn_snapshot_iter_active(w.node[i].store));
    }
}

void expect_no_snapshot_iter(void)
{
    expect_no_snapshot_iter_active();
    for (qn_node_t i = 0; i < NODES; i++) {
        cr_assert(!status_of(&w.node[i]).giving);
    }
}

/* Until somebody has been asked and has begun. */
struct node *donor_of(struct node *n)
{
    for (uint32_t i = 0; i < 100 && status_of(n).keys == 0; i++) {
        world_step(0);
    }
    qn_node_t d = status_of(n).donor;
    cr_assert_lt(d, NODES);
    return &w.node[d];
}
