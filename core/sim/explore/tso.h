#ifndef QN_SIM_EXPLORE_TSO_H
#define QN_SIM_EXPLORE_TSO_H

/**
 * Memory of x86 for the explorer: total store order.
 *
 * A node's stores reach memory in order but late, and its own loads look into
 * its buffer first. So of the four reorderings only one exists, a load that
 * passes an earlier store to another place; it is the one that loses wake-ups.
 *
 * Copies to shared memory enter the buffer in pieces of at most a line, which
 * drain one after the other: a reader that does not wait for the announcement
 * sees a torn message. What a program writes in place (a reserved cell) goes to
 * memory at once; that hides nothing, since no reader may look before the
 * header, which is a store.
 */

#include "core/sim/machine.h"

extern const struct qn_sim_memory qn_tso;

/** Empty all buffers without effect: before a run. */
void qn_tso_reset(void);

/** Stores that wait in the node's buffer. */
uint32_t qn_tso_waiting(uint32_t node);

/** Fills what the oldest store of the node's buffer, which is not empty, will
 *  write. */
void qn_tso_oldest(uint32_t node, struct qn_sim_access *out);

/** The oldest store of the node's buffer reaches memory. */
void qn_tso_drain_one(uint32_t node);

/** All buffers are emptied into memory. */
void qn_tso_drain_all(void);

#endif
