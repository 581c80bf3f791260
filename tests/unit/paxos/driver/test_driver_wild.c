/*
 * A peer that goes wild: another thread changes a request in the peer's memory
 * while the driver decodes it. Every state that the request passes through is a
 * good one, of one command or of two, so nothing may be refused, and what the
 * leader makes of it must be one of them and no mixture: its batch would be
 * malformed, and the acceptor is the first to see it.
 *
 * The race is the point, so this does not run under ThreadSanitizer.
 */
#include <pthread.h>

#include "core/place/commons.h"
#include "core/place/outbox.h"
#include "paxos/driver/driver.h"
#include "paxos/log/batch.h"
#include "paxos/wire/msg.h"
#include "tests/support/test.h"
#include "transports/ump/ump.h"

enum { CELLS = 64, ROUNDS = 20000, LEADER = 0, ORIGIN = 1 };

/* A command's length is written doubled (batch.h). */
#define ONE_OF_3  6 /* "a\2b" */
#define TWO_OF_1  2 /* "a", "b" */
#define LENGTH_AT QN_HEADER_BRIEF

struct wild {
    struct qn_outbox *outbox[2];
    struct qn_commons *commons;
    struct qn_qp *qp[2][QN_LANES]; /* [node][lane] */
    struct qn_driver *leader;
    qn_a32 stop;
    uint64_t next; /* sequence of the next command */
    uint32_t applied, of_3;
};

static uint32_t on_apply(void *ctx, const struct qn_applied *a)
{
    struct wild *w = ctx;
    cr_assert_eq(a->origin, ORIGIN);
    cr_assert_eq(a->seq, ++w->applied);
    cr_assert(a->bytes.len == 1 || a->bytes.len == 3);
    w->of_3 += a->bytes.len == 3;
    return 1;
}

static void on_applied(void *ctx, qn_slot_t slot, uint64_t stamp_ms)
{
    (void)ctx;
    (void)slot;
    (void)stamp_ms;
}

static void channels_open(struct wild *w)
{
    for (qn_node_t i = 0; i < 2; i++) {
        const struct qn_outbox_opts o = {.node = i,
                                         .nodes = 2,
                                         .incarnation = 100 + i,
                                         .lane_bytes = qn_ump.lane_bytes(CELLS),
                                         .numa_node = -1};
        cr_assert_eq(qn_outbox_create(&w->outbox[i], &o), QN_OK);
    }
    for (qn_node_t i = 0; i < 2; i++) {
        for (int lane = 0; lane < QN_LANES; lane++) {
            const struct qn_qp_opts o = {
                .tx = qn_outbox_lane(w->outbox[i], 1 - i, (enum qn_lane)lane),
                .rx = qn_outbox_lane(w->outbox[1 - i], i, (enum qn_lane)lane),
                .cells = CELLS,
                .self = i,
                .peer = 1 - i,
                .self_inc = 100 + i,
                .peer_inc = 101 - i,
            };
            cr_assert_eq(qn_ump.open(&w->qp[i][lane], &o), QN_OK);
        }
    }
}

static void begin(struct wild *w)
{
    int fd = -1;
    channels_open(w);
    cr_assert_eq(qn_commons_create(&w->commons, 2, 0, false, &fd), QN_OK);
    const struct qn_driver_opts o = {
        .self = LEADER,
        .nodes = 2,
        .incarnation = (const uint64_t[]){100, 101},
        .direct = (struct qn_qp *[]){NULL, w->qp[LEADER][QN_LANE_DIRECT]},
        .tree = (struct qn_qp *[]){NULL, w->qp[LEADER][QN_LANE_TREE]},
        .topology = "sequential",
        .service = {.apply = on_apply, .applied = on_applied, .ctx = w},
        .read_index = qn_commons_read_index(w->commons),
        .state = qn_outbox_state(w->outbox[LEADER]),
        .first = true,
        .peer_state =
            (const struct qn_outbox_state *[]){
                NULL, qn_outbox_state(w->outbox[ORIGIN])},
        .now = QN_S,
    };
    cr_assert_eq(qn_driver_create(&w->leader, &o), QN_OK);
    w->next = 1;
}

static void end(struct wild *w)
{
    qn_driver_destroy(w->leader);
    for (int i = 0; i < 2; i++) {
        for (int lane = 0; lane < QN_LANES; lane++) {
            qn_qp_close(w->qp[i][lane]);
        }
    }
    qn_outbox_destroy(w->outbox[0]);
    qn_outbox_destroy(w->outbox[1]);
    qn_commons_destroy(w->commons);
}

/* Writes the length of the first command into every cell of the origin's direct
 * lane. What else is sent there ends before that byte. */
static void *scribble(void *ctx)
{
    struct wild *w = ctx;
    struct qn_ump_lane *lane =
        qn_outbox_lane(w->outbox[ORIGIN], LEADER, QN_LANE_DIRECT);
    for (uint8_t length = ONE_OF_3; qn_load(&w->stop, QN_RELAXED) == 0;
         length ^= ONE_OF_3 ^ TWO_OF_1) {
        for (uint32_t i = 0; i < CELLS; i++) {
            qn_copy_out(&lane->cell[i].payload[LENGTH_AT], &length, 1);
        }
    }
    return NULL;
}

static void request_send(struct wild *w)
{
    static const uint8_t list[] = {ONE_OF_3, 'a', 2, 'b'};
    uint8_t bytes[QN_INPLACE_MAX];
    const struct qn_msg m = {
        .kind = QN_MSG_REQUEST, .slot = w->next, .body = {list, sizeof list}};
    size_t head = qn_msg_head(&m, bytes);
    cr_assert_eq(head, LENGTH_AT);
    memcpy(bytes + head, list, sizeof list);
    struct qn_qp *qp = w->qp[ORIGIN][QN_LANE_DIRECT];
    cr_assert_eq(qn_qp_try_send(qp, bytes, head + sizeof list), QN_OK);
    (void)qn_qp_flush(qp);
}

/* The acceptor, for once in the same node as the origin. */
static void accept_and_teach(struct wild *w)
{
    uint8_t bytes[256];
    size_t len = 0;
    struct qn_msg m;
    cr_assert_eq(qn_qp_try_recv(w->qp[ORIGIN][QN_LANE_DIRECT], bytes,
                                sizeof bytes, &len),
                 QN_OK, "the request was refused");
    cr_assert_eq(qn_msg_decode(&m, bytes, len), QN_OK, "a mixture of two");
    cr_assert_eq(m.kind, QN_MSG_ACCEPT);
    w->next += qn_batch_count(m.body);
    struct qn_outbox_state *state = qn_outbox_state(w->outbox[ORIGIN]);
    qn_store(&state->learned, m.slot, QN_RELEASE);
    const struct qn_msg answer = {.kind = QN_MSG_ACCEPTED, .slot = m.slot};
    size_t head = qn_msg_head(&answer, bytes);
    cr_assert_leq(head, LENGTH_AT, "the other thread writes into it");
    struct qn_qp *qp = w->qp[ORIGIN][QN_LANE_DIRECT];
    cr_assert_eq(qn_qp_try_send(qp, bytes, head), QN_OK);
    (void)qn_qp_flush(qp);
}

Test(driver_wild, a_request_that_changes_while_it_is_read_is_one_of_its_states,
     .timeout = 120)
{
    static struct wild w;
    begin(&w);
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, scribble, &w), 0);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        qn_time_t now = QN_S + i * QN_US;
        request_send(&w);
        qn_driver_turn(w.leader, now, now / QN_MS);
        qn_driver_flush(w.leader, now);
        accept_and_teach(&w);
    }
    qn_store(&w.stop, 1, QN_RELAXED);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    qn_driver_turn(w.leader, 2 * QN_S, 2000);
    cr_assert_eq(w.applied + 1, w.next, "all that was decided is applied");
    cr_assert_eq((uint64_t)w.of_3 + (w.applied - w.of_3) / 2, ROUNDS);
    end(&w);
}
