/*
 * One round, both sides.
 *
 *     a                                b
 *     probes: 4 x 16 times a line there and back      a takes the time
 *             6 batches each way, as below
 *     12 x  send 8 messages, flush     wait until all 8 are there
 *           (timed: send)              take 8 messages (timed: drain)
 *     12 x  the same from b to a
 *     12 x  8 messages there and back                 a takes the time
 *     probes
 *
 * That a batch is there whole is said by a line of its own (`batch`), so the
 * receiver has not touched the cells before it is timed: each is a transfer.
 * The sender waits until the batch has been drained before it sends the next,
 * so its stores find the lines where they are when messages are rare.
 *
 * Both threads spin. A thread that waits long yields its core now and then, in
 * case the partner runs on the same core or another process needs it.
 *
 * Shared lines: `met`, `batch` and `probe` of a seat are stored by the partner
 * only, release, and loaded by the owner, acquire; what stands in `said` was
 * written before `met`.
 */
#include "core/discover/pair_run_internal.h"

#include <sched.h>
#include <sys/resource.h>

#include "core/base/cycles.h"

enum {
    BATCHES = 12,
    TRIP_RUNS = 12,
    TRIPS = 8,
    LINE_RUNS = 4,
    LINES = 16,
    PROBE_BATCHES = 6
};

#define PATIENCE 20000u /* looks before the core is offered to others */

/* Wait until *word has come to `value`. acquire: what its writer wrote before
 * is visible. @return false: stop. */
static bool await(const struct qn_pair_run *v, const qn_a64 *word,
                  uint64_t value)
{
    for (uint32_t looks = 1; qn_load(word, QN_ACQUIRE) < value; looks++) {
        if (looks % PATIENCE == 0) {
            /* relaxed: carries nothing. */
            if (qn_load(v->stop, QN_RELAXED) != 0) {
                return false;
            }
            (void)sched_yield();
        }
    }
    return true;
}

int qn_pair_run_meet(struct qn_pair_run *v)
{
    v->meetings++;
    /* release: pairs with the acquire in await. */
    qn_store(&v->tx->met, v->meetings, QN_RELEASE);
    return await(v, &v->rx->met, v->meetings) ? QN_OK : QN_EAGAIN;
}

uint32_t qn_pair_run_overhead(void)
{
    double x[64];
    for (uint32_t i = 0; i < 64; i++) {
        uint64_t start = qn_cycles();
        x[i] = (double)(qn_cycles() - start);
    }
    return (uint32_t)qn_midmean(x, 64);
}

static double since(const struct qn_pair_run *v, uint64_t start)
{
    double ticks = (double)(qn_cycles() - start) - v->overhead;
    return ticks > 0 ? ticks : 0;
}

/* ---- the bare line ---- */

static void probe_put(struct qn_pair_run *v)
{
    v->probes++;
    qn_copy_out(v->tx->probe_bytes, &v->probes, sizeof v->probes);
    /* release: pairs with the acquire in await. */
    qn_store(&v->tx->probe, v->probes, QN_RELEASE);
}

static int line(struct qn_pair_run *v, float *cycles)
{
    double x[LINE_RUNS];
    int rc = qn_pair_run_meet(v);
    for (uint32_t run = 0; run < LINE_RUNS && rc == QN_OK; run++) {
        uint64_t start = qn_cycles();
        for (uint32_t i = 0; i < LINES && rc == QN_OK; i++) {
            if (v->first) {
                probe_put(v);
                rc = await(v, &v->rx->probe, v->probes) ? QN_OK : QN_EAGAIN;
            } else {
                rc = await(v, &v->rx->probe, v->probes + 1) ? QN_OK : QN_EAGAIN;
                probe_put(v);
            }
        }
        x[run] = since(v, start) / LINES;
    }
    *cycles = rc == QN_OK ? (float)qn_midmean(x, LINE_RUNS) : 0;
    return rc;
}

/* ---- messages ---- */

static int put(struct qn_pair_run *v)
{
    static const uint8_t message[QN_INPLACE_MAX] = {1};
    int rc;
    while ((rc = qn_qp_try_send(v->qp, message, sizeof message)) == QN_EAGAIN) {
        /* relaxed: carries nothing. */
        if (qn_load(v->stop, QN_RELAXED) != 0) {
            break;
        }
    }
    return rc;
}

static int take(struct qn_pair_run *v)
{
    const void *message;
    size_t len;
    uint8_t copy[QN_INPLACE_MAX];
    uint32_t looks = 0;
    int rc;
    while ((rc = qn_qp_peek(v->qp, &message, &len)) == QN_EAGAIN) {
        if (++looks % PATIENCE == 0) {
            /* relaxed: carries nothing. */
            if (qn_load(v->stop, QN_RELAXED) != 0) {
                return QN_EAGAIN;
            }
            (void)sched_yield();
        }
    }
    if (rc == QN_OK) {
        (void)qn_qp_steady(message, len, copy);
        qn_qp_release(v->qp);
    }
    return rc;
}

static int send_batch(struct qn_pair_run *v, double *cycles)
{
    int rc = QN_OK;
    uint64_t start = qn_cycles();
    for (uint32_t i = 0; i < QN_BATCH && rc == QN_OK; i++) {
        rc = put(v);
    }
    (void)qn_qp_flush(v->qp);
    *cycles = since(v, start) / QN_BATCH;
    v->batches++;
    /* release: the whole batch before this; acquire in await. */
    qn_store(&v->tx->batch, v->batches, QN_RELEASE);
    return rc;
}

static int drain_batch(struct qn_pair_run *v, double *cycles)
{
    v->batches++;
    int rc = await(v, &v->rx->batch, v->batches) ? QN_OK : QN_EAGAIN;
    uint64_t start = qn_cycles();
    for (uint32_t i = 0; i < QN_BATCH && rc == QN_OK; i++) {
        rc = take(v);
    }
    *cycles = since(v, start) / QN_BATCH;
    (void)qn_qp_flush(v->qp);
    return rc;
}

/* n <= BATCHES of one direction. */
static int batches(struct qn_pair_run *v, bool sends, uint32_t n, float *cycles)
{
    double x[BATCHES];
    int rc = QN_OK;
    for (uint32_t i = 0; i < n && rc == QN_OK; i++) {
        rc = qn_pair_run_meet(v);
        if (rc == QN_OK) {
            rc = sends ? send_batch(v, &x[i]) : drain_batch(v, &x[i]);
        }
    }
    if (rc == QN_OK) {
        *cycles = (float)qn_midmean(x, n);
    }
    return rc;
}

static int one_trip(struct qn_pair_run *v)
{
    int rc = v->first ? put(v) : take(v);
    (void)qn_qp_flush(v->qp);
    if (rc == QN_OK) {
        rc = v->first ? take(v) : put(v);
    }
    (void)qn_qp_flush(v->qp);
    return rc;
}

static int round_trips(struct qn_pair_run *v, float *cycles)
{
    double x[TRIP_RUNS];
    int rc = qn_pair_run_meet(v);
    for (uint32_t run = 0; run < TRIP_RUNS && rc == QN_OK; run++) {
        uint64_t start = qn_cycles();
        for (uint32_t i = 0; i < TRIPS && rc == QN_OK; i++) {
            rc = one_trip(v);
        }
        x[run] = since(v, start) / TRIPS;
    }
    if (rc == QN_OK) {
        *cycles = (float)qn_midmean(x, TRIP_RUNS);
    }
    return rc;
}

/* ---- the round ---- */

/* Each side knows its own sends; in place of the other's stand its drains,
 * until b has told a. */
static int probe(struct qn_pair_run *v, float *cycles)
{
    bool a = v->first;
    int rc = line(v, &cycles[QN_PROBE_LINE]);
    rc = rc ? rc : batches(v, a, PROBE_BATCHES, &cycles[QN_PROBE_SEND_AB]);
    return rc ? rc : batches(v, !a, PROBE_BATCHES, &cycles[QN_PROBE_SEND_BA]);
}

/* How often the scheduler took the core from this thread. */
static long preempted(void)
{
    struct rusage u;
    return getrusage(RUSAGE_THREAD, &u) == 0 ? u.ru_nivcsw : 0;
}

/* b tells a what it has seen. */
static int tell(struct qn_pair_run *v, struct qn_round *r, bool *disturbed)
{
    if (!v->first) {
        qn_copy_out(&v->tx->said, r, sizeof *r);
        uint32_t mine = *disturbed;
        qn_copy_out(&v->tx->disturbed, &mine, sizeof mine);
    }
    int rc = qn_pair_run_meet(v); /* announces what b wrote */
    if (rc == QN_OK && v->first) {
        struct qn_round said;
        uint32_t theirs;
        qn_copy_in(&said, &v->rx->said, sizeof said);
        qn_copy_in(&theirs, &v->rx->disturbed, sizeof theirs);
        r->before[QN_PROBE_SEND_BA] = said.before[QN_PROBE_SEND_BA];
        r->after[QN_PROBE_SEND_BA] = said.after[QN_PROBE_SEND_BA];
        r->value[QN_DRAIN_AB] = said.value[QN_DRAIN_AB];
        r->value[QN_SEND_BA] = said.value[QN_SEND_BA];
        *disturbed = *disturbed || theirs != 0;
    }
    return rc;
}

int qn_pair_run_round(struct qn_pair_run *v, struct qn_round *r,
                      bool *disturbed)
{
    long before = preempted();
    bool a = v->first;
    int rc = probe(v, r->before);
    rc = rc ? rc
            : batches(v, a, BATCHES, &r->value[a ? QN_SEND_AB : QN_DRAIN_AB]);
    rc = rc ? rc
            : batches(v, !a, BATCHES, &r->value[a ? QN_DRAIN_BA : QN_SEND_BA]);
    rc = rc ? rc : round_trips(v, &r->value[QN_ROUND_TRIP]);
    rc = rc ? rc : probe(v, r->after);
    *disturbed = preempted() != before;
    return rc ? rc : tell(v, r, disturbed);
}
