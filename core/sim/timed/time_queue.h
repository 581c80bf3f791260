#ifndef QN_SIM_TIMED_TIME_QUEUE_H
#define QN_SIM_TIMED_TIME_QUEUE_H

/** Nodes in the order of time: a binary heap that knows the place of each. Ties
 *  are broken by a hash of seed, time and node, so no node is always first. */

#include <stdbool.h>
#include <stdint.h>

#include "core/sim/timed/prices.h"

struct qn_time_queue {
    uint32_t count;
    uint32_t *heap; /* [nodes] nodes */
    uint32_t *at;   /* [nodes] place in heap; QN_SIM_NO_NODE: not there */
    qn_ps_t *time;  /* [nodes] */
    uint64_t *tie;  /* [nodes] */
    uint64_t seed;
};

/** @return QN_OK or QN_ENOMEM. */
int qn_time_queue_init(struct qn_time_queue *q, uint32_t nodes, uint64_t seed);
void qn_time_queue_fini(struct qn_time_queue *q);

/** Enter a node, or move it to another time. */
void qn_time_queue_set(struct qn_time_queue *q, uint32_t node, qn_ps_t time);

/** Take a node out; harmless if it is not there. */
void qn_time_queue_remove(struct qn_time_queue *q, uint32_t node);

/** Take out the first one. @return it; QN_SIM_NO_NODE: empty. */
uint32_t qn_time_queue_pop(struct qn_time_queue *q);

/** Would this node be first at that time? */
bool qn_time_queue_first(const struct qn_time_queue *q, uint32_t node,
                         qn_ps_t time);

/** splitmix64's last step: every bit of x moves every bit of the result. */
static inline uint64_t qn_time_queue_mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

#endif
