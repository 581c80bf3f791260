#ifndef QN_SIM_TIMED_STORE_BUFFER_H
#define QN_SIM_TIMED_STORE_BUFFER_H

/**
 * Store buffers in virtual time: for each node the ends of its last stores'
 * transfers. A store enters when there is room, the node continues, and the
 * transfers follow one another in the order of the stores.
 *
 * Pure: no access to memory but its own; one run at a time.
 */

#include "core/sim/timed/prices.h"

#define QN_STORE_BUFFER_MAX 256u /* entries */

struct qn_store_buffer {
    uint32_t entries; /* of each node; 0: there are none */
    qn_ps_t *end;     /* [nodes*entries] of the last stores; owned */
    uint32_t *next;   /* [nodes] entry of the next one; owned */
    qn_ps_t *drained; /* [nodes] end of the newest; owned */
};

/** @param entries  0 .. QN_STORE_BUFFER_MAX.
 *  @return QN_OK or QN_ENOMEM; qn_store_buffer_fini is due after both. */
int qn_store_buffer_init(struct qn_store_buffer *b, uint32_t nodes,
                         uint32_t entries);
void qn_store_buffer_fini(struct qn_store_buffer *b);

/** A run begins: all are empty. */
void qn_store_buffer_clear(struct qn_store_buffer *b, uint32_t nodes);

/** When a store that is issued at `now` finds a free entry. */
qn_ps_t qn_store_buffer_enter(const struct qn_store_buffer *b, uint32_t node,
                              qn_ps_t now);

/** When all stores of the node that were issued before are visible, at `now`
 *  or later: the next transfer may begin. */
qn_ps_t qn_store_buffer_drained(const struct qn_store_buffer *b, uint32_t node,
                                qn_ps_t now);

/** The store that has entered is visible at `end`. */
void qn_store_buffer_put(struct qn_store_buffer *b, uint32_t node, qn_ps_t end);

/** The newest one is visible at `end` only, which is not earlier. */
void qn_store_buffer_extend(struct qn_store_buffer *b, uint32_t node,
                            qn_ps_t end);

#endif
