/*
 * See driver_group.h.
 */
#include "tests/unit/paxos/driver/driver_group.h"

#include <stdlib.h>

#include "tests/support/test.h"
#include "transports/registry.h"
#include "transports/ump/ump.h"

struct node node[MAX];
alignas(QN_CACHELINE) uint8_t flight[MAX][QN_FLIGHT_BYTES(QN_FLIGHT_ENTRIES)];
qn_time_t now;
uint32_t work = 1;
bool peers_are_wild;
static struct qn_events events[MAX];
static struct qn_commons *commons;
static uint32_t nodes;

static uint32_t on_apply(void *ctx, const struct qn_applied *a)
{
    struct node *n = ctx;
    cr_assert_lt(n->logged, LOG_MAX);
    struct logged *l = &n->log[n->logged++];
    *l = (struct logged){.origin = a->origin,
                         .seq = a->seq,
                         .len = a->bytes.len,
                         .slot = a->slot,
                         .stamp_ms = a->stamp_ms};
    memcpy(&l->first8, a->bytes.data, a->bytes.len < 8 ? a->bytes.len : 8);
    cr_assert_eq(a->mine, a->origin == (qn_node_t)(n - node));
    if (a->mine) {
        n->mine++;
        cr_assert_eq(a->seq, n->mine, "own commands come in order, once");
    }
    return work;
}

static void on_applied(void *ctx, qn_slot_t slot, uint64_t stamp_ms)
{
    (void)ctx;
    (void)slot;
    (void)stamp_ms;
}

static void on_peer_message(void *ctx, qn_node_t from, struct qn_slice bytes)
{
    struct node *n = ctx;
    if (peers_are_wild) {
        void *lane = qn_outbox_lane(node[from].own, (qn_node_t)(n - node),
                                    QN_LANE_DIRECT);
        memset((char *)lane + sizeof(struct qn_ump_lane), 'w', CELLS * 64);
    }
    n->told++;
    memcpy(n->told_text, bytes.data, bytes.len < 15 ? bytes.len : 15);
}

static void memory_open(const struct qn_transport *t)
{
    for (uint32_t i = 0; i < nodes; i++) {
        const struct qn_outbox_opts o = {
            .node = i,
            .nodes = nodes,
            .incarnation = 100 + i,
            .lane_bytes = t->lane_bytes(CELLS),
            .numa_node = -1,
        };
        cr_assert_eq(qn_outbox_create(&node[i].own, &o), QN_OK);
    }
}

static void channels_open(const struct qn_transport *t, uint32_t i)
{
    qn_doorbell_init(&node[i].doorbell, qn_outbox_doorbell(node[i].own), -1);
    for (uint32_t p = 0; p < nodes; p++) {
        qn_doorbell_handle_init(&node[i].ringer[p],
                                qn_outbox_doorbell(node[p].own), -1);
        struct qn_qp **qp[QN_LANES] = {&node[i].direct[p], &node[i].tree[p]};
        for (int lane = 0; lane < QN_LANES && p != i; lane++) {
            const struct qn_qp_opts o = {
                .tx = qn_outbox_lane(node[i].own, p, (enum qn_lane)lane),
                .rx = qn_outbox_lane(node[p].own, i, (enum qn_lane)lane),
                .cells = CELLS,
                .self = i,
                .peer = p,
                .self_inc = 100 + i,
                .peer_inc = 100 + p,
                .doorbell = &node[i].doorbell,
                .ringer = &node[i].ringer[p],
            };
            cr_assert_eq(t->open(qp[lane], &o), QN_OK);
        }
    }
}

void group_start(uint32_t n)
{
    const struct qn_transport *t = qn_transport_find("ump");
    int fd = -1;
    uint64_t inc[MAX];
    nodes = n;
    now = QN_S;
    cr_assert_eq(qn_commons_create(&commons, n, 0, false, &fd), QN_OK);
    memory_open(t);
    for (uint32_t i = 0; i < n; i++) {
        inc[i] = 100 + i;
        channels_open(t, i);
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct qn_outbox_state *peers[MAX] = {0};
        for (uint32_t p = 0; p < n; p++) {
            peers[p] = p == i ? NULL : qn_outbox_state(node[p].own);
        }
        memset(flight[i], 0, sizeof flight[i]);
        qn_events_init(&events[i], flight[i], NULL, 1);
        const struct qn_driver_opts o = {
            .self = i,
            .nodes = n,
            .events = &events[i],
            .incarnation = inc,
            .direct = node[i].direct,
            .tree = node[i].tree,
            .topology = "sequential",
            .service = {.apply = on_apply,
                        .applied = on_applied,
                        .on_peer_message = on_peer_message,
                        .ctx = &node[i]},
            .read_index = qn_commons_read_index(commons),
            .state = qn_outbox_state(node[i].own),
            .peer_state = peers,
            .first = true,
            .seed = 1,
            .now = now,
        };
        cr_assert_eq(qn_driver_create(&node[i].driver, &o), QN_OK);
    }
}

void group_stop(void)
{
    for (uint32_t i = 0; i < nodes; i++) {
        qn_driver_destroy(node[i].driver);
        for (uint32_t p = 0; p < nodes; p++) {
            qn_qp_close(node[i].direct[p]);
            qn_qp_close(node[i].tree[p]);
        }
    }
    for (uint32_t i = 0; i < nodes; i++) {
        qn_outbox_destroy(node[i].own);
    }
    qn_commons_destroy(commons);
}

bool one_turn(uint32_t i)
{
    qn_driver_turn(node[i].driver, now, now / QN_MS);
    /* Publish before expose. */
    cr_assert_geq(qn_load(qn_commons_read_index(commons), QN_SEQ_CST),
                  qn_driver_applied(node[i].driver));
    return qn_driver_flush(node[i].driver, now);
}

void rounds(uint32_t count)
{
    for (uint32_t r = 0; r < count; r++) {
        now += 100 * QN_US;
        for (uint32_t i = 0; i < nodes; i++) {
            if (!node[i].stopped) {
                one_turn(i);
            }
        }
    }
}

bool submit(uint32_t i, const void *bytes, size_t len)
{
    uint64_t seq = 0;
    const struct qn_slice part = {bytes, len};
    return qn_driver_submit(node[i].driver, &part, 1, &seq) == QN_OK;
}

void submit_number(uint32_t i, uint64_t x)
{
    cr_assert(submit(i, &x, sizeof x), "node %u refused %lu", i,
              (unsigned long)x);
}

void check_equal_logs(uint32_t expected)
{
    for (uint32_t i = 0; i < nodes; i++) {
        cr_assert_eq(node[i].logged, expected, "node %u applied %u of %u", i,
                     node[i].logged, expected);
        cr_assert_arr_eq(node[i].log, node[0].log,
                         expected * sizeof(struct logged), "node %u", i);
    }
}
