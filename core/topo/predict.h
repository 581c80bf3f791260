#ifndef QN_TOPO_PREDICT_H
#define QN_TOPO_PREDICT_H

/**
 * What a tree costs under the machine model, in cycles.
 *
 * q, the queued factor: a message that was visible when its receiver turned to
 * it costs q * r, one that is waited for costs r. 1 is the published model and
 * right for operations in lock-step; 1/8 fits the published reductions, whose
 * messages are queued. It does not matter for a broadcast, where no core
 * gets more than one message.
 *
 * The shape must be valid and have as many cores as the machine. Pure, any
 * thread; about 50 KB of stack.
 */

#include "core/topo/shape.h"

enum qn_collective {
    QN_COLLECTIVE_BROADCAST, /* all cores informed */
    QN_COLLECTIVE_REDUCE,    /* the root has the result */
    QN_COLLECTIVE_BARRIER,   /* reduction, then broadcast */
    QN_COLLECTIVE_ACK, /* broadcast; each acknowledges after its subtree did */
    QN_COLLECTIVE_2PC, /* acknowledged broadcast, then broadcast */
    QN_COLLECTIVES
};

/** "broadcast", "reduce", "barrier", "ack", "2pc"; NULL past the last. */
const char *qn_collective_name(uint32_t op);

/** Latency of an operation. @param q queued factor, 0 .. 1. */
double qn_predict(const struct qn_machine *m, const struct qn_shape *s,
                  enum qn_collective op, double q);

/**
 * The same with the one message that published measurements add: a leaf first
 * triggers the root, for reductions the root tells a leaf afterwards; the
 * maximum over leaves. Barriers have none.
 */
double qn_predict_published(const struct qn_machine *m,
                            const struct qn_shape *s, enum qn_collective op,
                            double q);

/**
 * Broadcast: when does each core have the message, and when is it idle again?
 *
 * @param at    [n] filled, NULL: not wanted.
 * @param idle  [n] filled, NULL: not wanted.
 * @return The latency, max over `at`. O(n).
 */
double qn_predict_broadcast(const struct qn_machine *m,
                            const struct qn_shape *s, double *at, double *idle);

/**
 * Reduction: a core sends to its parent once it has its children's messages,
 * taken in order of visibility (ties: lower core).
 *
 * @param start  [n] when each core is ready to receive or send; NULL: 0.
 * @param done   [n] filled: when each core has all it waits for; may be NULL.
 * @return done of the root. O(n log n).
 */
double qn_predict_reduce(const struct qn_machine *m, const struct qn_shape *s,
                         double q, const double *start, double *done);

/**
 * Exchange: each core sends to all others, the next higher one first, and then
 * receives from each, in order of visibility. No shape: every pair is an edge.
 *
 * @return When the last core has received all. O(n^3).
 */
double qn_predict_exchange(const struct qn_machine *m, double q);

/**
 * Cycles that each core is busy per operation; 1 / the maximum bounds the rate
 * of a pipeline.
 *
 * @param acks  With acknowledgements up the tree.
 * @param busy  [n] filled, NULL: not wanted.
 * @return The maximum. O(n).
 */
double qn_predict_occupancy(const struct qn_machine *m,
                            const struct qn_shape *s, bool acks, double *busy);

/**
 * No broadcast tree on this machine is faster than this: the optimum for n
 * equal cores with the least send and receive cost of the machine, where every
 * informed core keeps sending. Exact if all costs are equal. O(n^2).
 */
double qn_predict_bound(const struct qn_machine *m);

#endif
