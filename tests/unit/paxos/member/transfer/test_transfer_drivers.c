/* State transfer between real drivers, in one thread and in virtual time. The
 * service is an array of numbers, and has no consistent cut: its giver suspends
 * applying, whatever the others decide meanwhile. */
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/place/outbox.h"
#include "paxos/member/driver_transfer.h"
#include "tests/support/inmemory_transport.h"
#include "tests/support/test.h"

enum { NODES = 3, CELLS = 4096, CELL_BYTES = 56, COUNT = 500000 };

struct state {
    qn_slot_t applied;
    uint32_t item[COUNT];
};

static struct member {
    struct qn_driver *driver;
    struct qn_state_transfer *x;
    struct qn_driver_transfer ops;
    struct qn_member_state user;
    bool silent; /* gives and takes nothing */
    uint32_t begins;
    struct qn_qp *direct[NODES], *tree[NODES];
    struct qn_outbox_state outbox;
    struct state *state, *made;
    size_t given, read;
    uint64_t applied_while_given; /* slots; 0: it applied none */
    uint32_t suspended;           /* turns */
} member[NODES];

static qn_a64 read_index;
static qn_time_t now;

/* ---- the service --------------------------------------------------------- */

static uint32_t on_apply(void *ctx, const struct qn_applied *a)
{
    struct member *m = ctx;
    uint64_t x;
    cr_assert_eq(a->bytes.len, sizeof x);
    memcpy(&x, a->bytes.data, sizeof x);
    uint32_t *item = &m->state->item[x % COUNT];
    *item = *item * 3 + (uint32_t)x;
    m->applied_while_given += qn_state_transfer_suspends(m->x);
    return 1;
}

static void on_applied(void *ctx, qn_slot_t slot, uint64_t stamp_ms)
{
    (void)stamp_ms;
    ((struct member *)ctx)->state->applied = slot;
}

static void on_message(void *ctx, qn_node_t from, struct qn_slice bytes)
{
    struct member *m = ctx;
    cr_assert(qn_state_transfer_on_message(m->x, from, bytes, now));
}

static void on_need(void *ctx, qn_slot_t slot)
{
    qn_state_transfer_begin(((struct member *)ctx)->x, slot, now);
}

/* ---- its state ----------------------------------------------------------- */

static bool complete(void *ctx)
{
    (void)ctx;
    return true;
}

static int begin(void *ctx, qn_slot_t position)
{
    struct member *m = ctx;
    cr_assert_eq(position, m->state->applied);
    m->given = 0;
    m->begins++;
    return QN_OK;
}

static int next(void *ctx, uint8_t *bytes, size_t cap, size_t *len)
{
    struct member *m = ctx;
    size_t left = sizeof *m->state - m->given;
    if (left == 0) {
        return QN_ENOENT;
    }
    *len = left < cap ? left : cap;
    memcpy(bytes, (const uint8_t *)m->state + m->given, *len);
    m->given += *len;
    return QN_OK;
}

static void end(void *ctx)
{
    (void)ctx;
}

static int read_part(void *ctx, qn_slot_t position, struct qn_slice part)
{
    struct member *m = ctx;
    (void)position;
    if (m->made == NULL) {
        m->made = calloc(1, sizeof *m->made);
        m->read = 0;
    }
    if (part.len > sizeof *m->made - m->read) {
        return QN_ECORRUPT;
    }
    memcpy((uint8_t *)m->made + m->read, part.data, part.len);
    m->read += part.len;
    return QN_OK;
}

static int finish(void *ctx)
{
    const struct member *m = ctx;
    return m->read == sizeof *m->made ? QN_OK : QN_ECORRUPT;
}

static void install(void *ctx, qn_slot_t position)
{
    struct member *m = ctx;
    free(m->state);
    m->state = m->made;
    m->made = NULL;
    cr_assert_eq(m->state->applied, position);
}

static void abandon(void *ctx)
{
    struct member *m = ctx;
    free(m->made);
    m->made = NULL;
}

static void covered(void *ctx, uint64_t seq)
{
    (void)ctx;
    (void)seq;
}

static void caught_up(void *ctx, qn_slot_t position)
{
    (void)ctx;
    (void)position;
}

/* ---- the group ----------------------------------------------------------- */

static void member_make(qn_node_t i)
{
    static const uint64_t incarnation[NODES] = {11, 12, 13};
    struct member *m = &member[i];
    const struct qn_outbox_state *peer[NODES] = {0};
    for (qn_node_t p = 0; p < NODES; p++) {
        peer[p] = p != i ? &member[p].outbox : NULL;
    }
    m->state = calloc(1, sizeof *m->state);
    const struct qn_driver_opts o = {.self = i,
                                     .nodes = NODES,
                                     .incarnation = incarnation,
                                     .direct = m->direct,
                                     .tree = m->tree,
                                     .topology = "sequential",
                                     .service = {.apply = on_apply,
                                                 .applied = on_applied,
                                                 .on_peer_message = on_message,
                                                 .need_snapshot = on_need,
                                                 .ctx = m},
                                     .read_index = &read_index,
                                     .state = &m->outbox,
                                     .peer_state = peer,
                                     .first = true,
                                     .seed = 5,
                                     .now = now};
    cr_assert_eq(qn_driver_create(&m->driver, &o), QN_OK);
    m->user = (struct qn_member_state){
        .covered = covered, .caught_up = caught_up, .ctx = m};
    m->ops = (struct qn_driver_transfer){.driver = m->driver,
                                         .self = i,
                                         .nodes = NODES,
                                         .incarnation = incarnation[i],
                                         .backlog_bytes = 8u << 20,
                                         .state = &m->user};
    const struct qn_state_transfer_opts t = {
        .self = i,
        .nodes = NODES,
        .ops = qn_driver_transfer_ops(&m->ops),
        .user = {.no_cut = true,
                 .complete = complete,
                 .begin = begin,
                 .next = next,
                 .end = end,
                 .read = read_part,
                 .finish = finish,
                 .install = install,
                 .abandon = abandon,
                 .ctx = m}};
    cr_assert_eq(qn_state_transfer_create(&m->x, &t), QN_OK);
}

static void turn(struct member *m)
{
    qn_driver_turn(m->driver, now, 1000 + now / QN_MS);
    if (!m->silent) {
        (void)qn_state_transfer_turn(m->x, now);
    }
    const bool suspends = qn_state_transfer_suspends(m->x);
    qn_driver_suspend_apply(m->driver, suspends);
    m->suspended += suspends;
    qn_driver_flush(m->driver, now);
}

static void rounds(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++, now += 100 * QN_US) {
        for (qn_node_t k = 0; k < NODES; k++) {
            turn(&member[k]);
        }
    }
}

static void submit(qn_node_t i, uint64_t x)
{
    const struct qn_slice part = {(const uint8_t *)&x, sizeof x};
    uint64_t seq;
    if (qn_driver_room(member[i].driver)) {
        cr_assert_eq(qn_driver_submit(member[i].driver, &part, 1, &seq), QN_OK);
    }
}

static void group_begin(void)
{
    now = QN_MS;
    for (qn_node_t i = 0; i < NODES; i++) {
        for (qn_node_t p = 0; p < i; p++) {
            struct qn_qp *pair[2];
            inmemory_pair(pair, CELLS, CELL_BYTES);
            member[i].direct[p] = pair[0];
            member[p].direct[i] = pair[1];
            inmemory_pair(pair, CELLS, CELL_BYTES);
            member[i].tree[p] = pair[0];
            member[p].tree[i] = pair[1];
        }
    }
    for (qn_node_t i = 0; i < NODES; i++) {
        member_make(i);
    }
    rounds(50);
}

static void group_end(void)
{
    for (qn_node_t i = 0; i < NODES; i++) {
        struct member *m = &member[i];
        qn_state_transfer_destroy(m->x);
        qn_driver_destroy(m->driver);
        cr_assert_null(m->made);
        free(m->state);
        for (qn_node_t p = 0; p < NODES; p++) {
            qn_qp_close(m->direct[p]);
            qn_qp_close(m->tree[p]);
        }
    }
}

static struct qn_state_transfer_status status_of(qn_node_t i)
{
    struct qn_state_transfer_status st;
    qn_state_transfer_status(member[i].x, &st);
    return st;
}

static void expect_all_same(void)
{
    for (qn_node_t i = 1; i < NODES; i++) {
        cr_assert_eq(member[i].state->applied, member[0].state->applied);
        cr_assert_eq(
            memcmp(member[i].state, member[0].state, sizeof *member[0].state),
            0, "node %u", i);
    }
}

/* Node 2 lacks slots, asks for a snapshot under load, and goes on behind it. */
Test(transfer_drivers, a_state_without_a_cut_travels_while_others_decide,
     .timeout = 60)
{
    group_begin();
    qn_driver_hold_learns(member[2].driver, true);
    for (uint64_t x = 0; x < 200; x++) {
        submit(0, x * 977);
        submit(1, x * 1013);
        rounds(2);
    }
    qn_slot_t lacks = member[2].state->applied;
    qn_slot_t others = member[0].state->applied;
    cr_assert_gt(others, lacks + 50);
    qn_state_transfer_begin(member[2].x, others, now);
    qn_slot_t decided_meanwhile = 0;
    for (uint64_t x = 0; status_of(2).joined == 0; x++) {
        cr_assert_lt(x, 5000);
        submit(0, x * 31);
        submit(1, x * 37);
        rounds(1);
        for (qn_node_t i = 0; i < 2; i++) {
            struct qn_driver_status st;
            qn_driver_status(member[i].driver, &st);
            if (status_of(i).giving) {
                decided_meanwhile =
                    QN_MAX(decided_meanwhile, st.learned - st.applied);
            }
        }
    }
    cr_assert_geq(member[2].state->applied, others);
    cr_assert_gt(decided_meanwhile, 2, "%llu: the others went on",
                 (unsigned long long)decided_meanwhile);
    uint32_t gave = 0;
    for (qn_node_t i = 0; i < NODES; i++) {
        cr_assert_eq(member[i].applied_while_given, 0);
        gave += member[i].suspended > 3;
        cr_assert(!qn_state_transfer_suspends(member[i].x));
    }
    cr_assert_eq(gave, 1);
    qn_driver_hold_learns(member[2].driver, false);
    submit(2, 12345);
    rounds(500);
    expect_all_same();
    group_end();
}

/* The other member that could give it is silent: the leader goes on applying,
 * and the joiner waits for that one. */
Test(transfer_drivers, a_leader_gives_no_state_while_another_one_can,
     .timeout = 60)
{
    group_begin();
    struct qn_driver_status st;
    qn_driver_status(member[0].driver, &st);
    cr_assert_eq(st.leader, 0);
    qn_driver_hold_learns(member[2].driver, true);
    for (uint64_t x = 0; x < 100; x++) {
        submit(0, x * 977);
        rounds(2);
    }
    member[1].silent = true;
    qn_state_transfer_begin(member[2].x, member[0].state->applied, now);
    for (uint32_t i = 0; status_of(2).attempts < 4; i++) {
        cr_assert_lt(i, 500);
        submit(0, i);
        rounds(100);
    }
    cr_assert_eq(member[0].begins, 0);
    cr_assert_eq(member[0].suspended, 0);
    member[1].silent = false;
    for (uint32_t i = 0; status_of(2).joined == 0; i++) {
        cr_assert_lt(i, 500);
        rounds(100);
    }
    cr_assert_eq(member[0].begins, 0);
    cr_assert_geq(member[1].begins, 1);
    qn_driver_hold_learns(member[2].driver, false);
    submit(2, 12345);
    rounds(500);
    expect_all_same();
    group_end();
}
