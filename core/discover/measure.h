#ifndef QN_CORE_DISCOVER_MEASURE_H
#define QN_CORE_DISCOVER_MEASURE_H

/**
 * What rounds of measurement of one pair of cores say about its costs. Pure:
 * runner.h measures.
 *
 * A **round** is a short run of everything: some batches of messages from a to
 * b and from b to a, and some round trips; before and after it three
 * **probes**: a bare cache line that goes there and back, and some batches each
 * way. Within a round the middle half of the samples is averaged (qn_midmean),
 * which neither outliers nor a coarse counter can move much.
 *
 * Machines change under the measurement: frequency, other load, a hypervisor
 * that moves virtual processors (the same line then takes five times as long
 * for seconds); or sends alone take more than twice as long on one side, while
 * the line's way is the same (as if a core had half of its store buffer, since
 * its other hardware thread works for another process). The probes tell the
 * **level** that the machine was on. A round that has a probe whose two values
 * differ by more than their spread straddles a change and does not count. Of
 * the others, those count that lie on one level: the lowest that enough of them
 * saw, of the line first, then of each side's sends. So a result never mixes
 * two levels, and if the machine shows the same level again it repeats.
 *
 * A result is **stable** if enough rounds count and the median of each quantity
 * is known to QN_STABLE_SPREAD with 95 % confidence (order statistics: no
 * assumption on how the noise is distributed).
 *
 * No allocation, any thread.
 */

#include <stdbool.h>
#include <stdint.h>

/** Quantities, cycles. Each direction has its own sends and drains. */
enum qn_quantity {
    QN_SEND_AB, /* one message of a batch, the sender's time */
    QN_SEND_BA,
    QN_DRAIN_AB, /* one message of a batch that is there already, the
                    receiver's time; a sends, b receives */
    QN_DRAIN_BA,
    QN_ROUND_TRIP, /* one message there and one back */
    QN_QUANTITIES,
};

#define QN_BATCH 8u /* messages of a batch */

#define QN_LEVEL_SPREAD  1.3   /* probes within this factor lie on one level */
#define QN_SENDS_STEP    1.0   /* cycles; and so much, of sends */
#define QN_LEVEL_SHARE   0.2   /* of the rounds, to take a level for real */
#define QN_STABLE_SPREAD 0.04  /* half the interval over the median */
#define QN_STABLE_CYCLES 0.5   /* or so much, where the counter ends */
#define QN_ROUNDS_MIN    9u    /* that must count */
#define QN_ROUNDS_MAX    4096u /* that a pair may have */

/** Probes, cycles. */
enum qn_probe {
    QN_PROBE_LINE,    /* there and back */
    QN_PROBE_SEND_AB, /* one message of a batch, as QN_SEND_AB */
    QN_PROBE_SEND_BA,
    QN_PROBES,
};

struct qn_round {
    float before[QN_PROBES], after[QN_PROBES];
    float value[QN_QUANTITIES];
};

struct qn_quantity_result {
    double median; /* cycles */
    double low;    /* 95 % interval of the median */
    double high;
};

struct qn_measured {
    struct qn_quantity_result of[QN_QUANTITIES];
    double level_ab; /* what probes of a round that counts took, median: a
                        line there and back and a batch from a to b, cycles */
    double level_ba;
    uint32_t rounds;  /* that were judged */
    uint32_t steady;  /* of them, those whose probes agree, before and after */
    uint32_t counted; /* of them, those on the level of the result */
    bool same_level;  /* enough rounds count; else all were used as they are */
    bool stable;
};

/** Mean of the middle half of x [n], n >= 1; x is sorted. */
double qn_midmean(double *x, uint32_t n);

/**
 * Judge the rounds of a pair.
 *
 * @param round    [n] In any order; borrowed. n is 1 .. QN_ROUNDS_MAX.
 * @param scratch  [n] Filled.
 * @param out      Filled.
 */
void qn_measured_judge(const struct qn_round *round, uint32_t n,
                       double *scratch, struct qn_measured *out);

/** Costs of the machine model (machine.h), cycles. */
struct qn_pair_costs {
    double send_ab, send_ba;
    double receive_ab, receive_ba; /* b's of a message from a; a's from b */
    double queued_ab, queued_ba;   /* the queued factor, above 0 to 1 */
};

/**
 * Costs from quantities. The receive cost is that of a message that is waited
 * for: what the round trip takes beside its two sends, dealt to both directions
 * as their drains are, and never below a drain. So the model predicts a round
 * trip exactly as it was measured.
 */
void qn_measured_costs(const struct qn_measured *r, struct qn_pair_costs *c);

#endif
