/*
 * The forms.
 *
 * raw round trip   two lines, each written by one side: sequence and payload.
 *                  This is the minimum for 56 bytes in both directions.
 * raw stream       slots of one line, which hold the sequence; acknowledged
 *                  every quarter ring: the best raw queue known to us.
 * queuepair forms  the public interface, one flush per round trip, none within
 *                  a stream.
 *
 * The payload does not change from message to message: copying a byte as part
 * of a wide word just after it was stored makes the copy wait until every
 * earlier store has reached its line, 40 ns per message in any of the forms.
 *
 * The raw forms spin without `pause`, as in the published results. A queuepair
 * is polled with `pause`, as by a program: without it the poll takes the line
 * away from the sender that fills it. The forms run only if each side has its
 * own core (checked in bench_channel.c).
 */
#include "loadgen/bench/channel.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/bits.h"

#define LINE_BYTES 56u   /* payload of a line */
#define LONG_BYTES 4096u /* the long message */

struct raw_slot {
    alignas(QN_CACHELINE) qn_a64 sequence;
    uint8_t payload[LINE_BYTES];
};

struct qn_raw_lane {
    alignas(QN_CACHELINE) qn_a64 ack;
    struct raw_slot slot[];
};

int qn_raw_memory_create(struct qn_raw_memory *m, uint32_t cells)
{
    m->lane_bytes =
        sizeof(struct qn_raw_lane) + cells * sizeof(struct raw_slot);
    m->memory = mmap(NULL, 2 * m->lane_bytes, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return m->memory == MAP_FAILED ? QN_ENOMEM : QN_OK;
}

void qn_raw_memory_destroy(struct qn_raw_memory *m)
{
    munmap(m->memory, 2 * m->lane_bytes);
}

static void *raw_lane(const struct qn_raw_memory *m, qn_node_t of)
{
    return (uint8_t *)m->memory + of * m->lane_bytes;
}

void qn_channel_init(struct qn_channel *c, struct qn_mesh_end *end,
                     uint32_t cells, const struct qn_raw_memory *raw)
{
    qn_node_t peer = 1 - end->self;
    *c = (struct qn_channel){
        .end = end,
        .qp = end->qp[peer][QN_LANE_DIRECT],
        .tx = raw_lane(raw, end->self),
        .rx = raw_lane(raw, peer),
        .cells = cells,
    };
    qn_store(&c->tx->ack, 0, QN_SEQ_CST);
    for (uint32_t i = 0; i < cells; i++) {
        qn_store(&c->tx->slot[i].sequence, 0, QN_SEQ_CST);
    }
}

/* Retry while the queue is full or empty; the benchmark owns its cores. */
static int insist_send(struct qn_qp *qp, const void *msg, size_t len)
{
    int rc;
    while ((rc = qn_qp_try_send(qp, msg, len)) == QN_EAGAIN) {
        qn_pause();
    }
    return rc;
}

static int insist_peek(struct qn_qp *qp, const void **msg, size_t *len)
{
    int rc;
    while ((rc = qn_qp_peek(qp, msg, len)) == QN_EAGAIN) {
        qn_pause();
    }
    return rc;
}

int qn_channel_meet(struct qn_channel *c, uint8_t say, uint8_t *heard)
{
    size_t len;
    int rc = insist_send(c->qp, &say, 1);
    while (qn_qp_flush(c->qp)) {
        sched_yield();
    }
    while (rc == QN_OK &&
           (rc = qn_qp_try_recv(c->qp, heard, 1, &len)) == QN_EAGAIN) {
        sched_yield();
        rc = QN_OK;
    }
    return rc;
}

static void raw_put(struct raw_slot *s, const uint8_t *payload, uint64_t seq)
{
    qn_copy_out(s->payload, payload, LINE_BYTES);
    /* release -> acquire in raw_get: the payload before its sequence. */
    qn_store(&s->sequence, seq, QN_RELEASE);
}

static void raw_get(const struct raw_slot *s, uint8_t *payload, uint64_t seq)
{
    /* acquire: pairs with the release in raw_put. */
    while (qn_load(&s->sequence, QN_ACQUIRE) != seq) {
    }
    qn_copy_in(payload, s->payload, LINE_BYTES);
}

static uint64_t word_of(const uint8_t *payload)
{
    uint64_t word;
    memcpy(&word, payload, sizeof word);
    return word;
}

static void add(struct qn_channel *c, const uint8_t *payload)
{
    c->checksum += word_of(payload);
}

static int raw_round_trip(struct qn_channel *c, uint64_t count)
{
    uint8_t payload[LINE_BYTES] = {1};
    struct raw_slot *mine = &c->tx->slot[0];
    const struct raw_slot *theirs = &c->rx->slot[0];
    for (uint64_t i = 1; i <= count; i++) {
        if (c->end->self == 0) {
            raw_put(mine, payload, c->sent + i);
            raw_get(theirs, payload, c->received + i);
        } else {
            raw_get(theirs, payload, c->received + i);
            raw_put(mine, payload, c->sent + i);
        }
    }
    c->sent += count;
    c->received += count;
    add(c, payload);
    return QN_OK;
}

static void raw_send_all(struct qn_channel *c, uint64_t count)
{
    const uint8_t payload[LINE_BYTES] = {1};
    const uint32_t cells = c->cells;
    struct qn_raw_lane *tx = c->tx;
    const uint64_t end = c->sent + count;
    uint64_t freed = c->sent;
    for (uint64_t seq = c->sent + 1; seq <= end; seq++) {
        while (seq - freed > cells) {
            /* acquire: the reads of the slot are complete; pairs with
             * raw_receive_all. */
            freed = qn_load(&c->rx->ack, QN_ACQUIRE);
            qn_pause();
        }
        raw_put(&tx->slot[seq & (cells - 1)], payload, seq);
    }
    c->sent = end;
}

static void raw_receive_all(struct qn_channel *c, uint64_t count)
{
    uint8_t payload[LINE_BYTES];
    const uint32_t cells = c->cells;
    const struct qn_raw_lane *rx = c->rx;
    const uint64_t end = c->received + count;
    uint64_t acked = c->received;
    uint64_t sum = 0;
    /* Round trips are not acknowledged; release as below. */
    qn_store(&c->tx->ack, acked, QN_RELEASE);
    for (uint64_t seq = acked + 1; seq <= end; seq++) {
        raw_get(&rx->slot[seq & (cells - 1)], payload, seq);
        sum += word_of(payload);
        if (seq - acked >= cells / 4) {
            acked = seq;
            /* release: pairs with the acquire in raw_send_all. */
            qn_store(&c->tx->ack, acked, QN_RELEASE);
        }
    }
    c->received = end;
    c->checksum += sum;
    qn_store(&c->tx->ack, end, QN_RELEASE); /* as above */
}

static int raw_stream(struct qn_channel *c, uint64_t count)
{
    if (c->end->self == 0) {
        raw_send_all(c, count);
    } else {
        raw_receive_all(c, count);
    }
    return QN_OK;
}

static int qp_take(struct qn_channel *c, uint8_t *payload, size_t bytes)
{
    const void *msg;
    size_t len;
    int rc = insist_peek(c->qp, &msg, &len);
    if (rc == QN_OK) {
        qn_copy_in(payload, msg, bytes);
        qn_qp_release(c->qp);
        rc = len == bytes ? QN_OK : QN_ECORRUPT;
    }
    return rc;
}

static int qp_put(struct qn_channel *c, const uint8_t *payload)
{
    int rc = insist_send(c->qp, payload, LINE_BYTES);
    (void)qn_qp_flush(c->qp);
    return rc;
}

static int qp_round_trip(struct qn_channel *c, uint64_t count)
{
    uint8_t payload[LINE_BYTES] = {1};
    int rc = QN_OK;
    for (uint64_t i = 0; i < count && rc == QN_OK; i++) {
        if (c->end->self == 0) {
            rc = qp_put(c, payload);
            rc = rc != QN_OK ? rc : qp_take(c, payload, LINE_BYTES);
        } else {
            rc = qp_take(c, payload, LINE_BYTES);
            rc = rc != QN_OK ? rc : qp_put(c, payload);
        }
    }
    add(c, payload);
    return rc;
}

static int qp_send_all(struct qn_channel *c, uint64_t count, size_t bytes)
{
    uint8_t payload[LONG_BYTES] = {1};
    int rc = QN_OK;
    for (uint64_t i = 0; i < count && rc == QN_OK; i++) {
        rc = insist_send(c->qp, payload, bytes);
    }
    while (rc == QN_OK && qn_qp_flush(c->qp)) {
    }
    return rc;
}

static int qp_cell_stream(struct qn_channel *c, uint64_t count)
{
    uint8_t payload[LINE_BYTES] = {0};
    int rc = QN_OK;
    if (c->end->self == 0) {
        return qp_send_all(c, count, LINE_BYTES);
    }
    for (uint64_t i = 0; i < count && rc == QN_OK; i++) {
        rc = qp_take(c, payload, LINE_BYTES);
        add(c, payload);
    }
    (void)qn_qp_flush(c->qp);
    return rc;
}

/* The long message is read in place. */
static int qp_long_stream(struct qn_channel *c, uint64_t count)
{
    const void *msg;
    size_t len;
    int rc = QN_OK;
    if (c->end->self == 0) {
        return qp_send_all(c, count, LONG_BYTES);
    }
    for (uint64_t i = 0; i < count && rc == QN_OK; i++) {
        rc = insist_peek(c->qp, &msg, &len);
        if (rc == QN_OK) {
            add(c, msg);
            qn_qp_release(c->qp);
            rc = len == LONG_BYTES ? QN_OK : QN_ECORRUPT;
        }
    }
    (void)qn_qp_flush(c->qp);
    return rc;
}

static const struct qn_channel_form forms[] = {
    {"raw_round_trip", "two lines, 56 bytes of payload", true, LINE_BYTES, 1,
     raw_round_trip, NULL},
    {"round_trip", "queuepair, one cell each way", true, LINE_BYTES, 1,
     qp_round_trip, "raw_round_trip"},
    {"raw_stream", "64-byte slots, lazy acknowledgement", false, LINE_BYTES, 1,
     raw_stream, NULL},
    {"stream_cell", "queuepair, 56-byte messages", false, LINE_BYTES, 1,
     qp_cell_stream, "raw_stream"},
    {"stream_4k", "queuepair, 4 KiB messages", false, LONG_BYTES, 74,
     qp_long_stream, "raw_stream"},
};

const struct qn_channel_form *qn_channel_form(uint32_t i)
{
    return i < QN_ARRAY_COUNT(forms) ? &forms[i] : NULL;
}
