#ifndef QN_SIM_EXPLORE_TSO_H
#define QN_SIM_EXPLORE_TSO_H

/**
 * Memory of x86 for the explorer: total store order.
 *
 * A node's stores reach memory in order but late, and its own loads look into
 * its buffer first. So of the four reorderings only one exists, a load that
 * passes an earlier store to another place; it is the one that loses wake-ups.
 *
 * But streaming stores wait in no order with others: each may leave the buffer
 * before earlier stores and after later ones, except those that meet it in a
 * word. What empties the buffer orders them too: seq_cst operations and fences,
 * read-modify-writes, system calls. QN_EXPLORE_STREAMS of a node may wait.
 *
 * Copies to shared memory enter the buffer in pieces of at most a line, which
 * drain one after the other: a reader that does not wait for the announcement
 * sees a torn message. What a program writes in place (a reserved cell) goes to
 * memory at once; that hides nothing, since no reader may look before the
 * header, which is a store.
 */

#include "core/sim/explore/explore.h"
#include "core/sim/machine.h"

#define QN_TSO_LEAVERS (QN_EXPLORE_STREAMS + 1)

extern const struct qn_sim_memory qn_tso;

/** Empty all buffers without effect: before a run. */
void qn_tso_reset(void);

/** Which stores of the node's buffer may reach memory next. @param place
 *  [QN_TSO_LEAVERS] filled: how many earlier stores it would leave behind. The
 *  first is 0. @return how many; 0: the buffer is empty. */
uint32_t qn_tso_leavers(uint32_t node, uint32_t *place);

/** Fills what that store of the node's buffer will write. */
void qn_tso_at(uint32_t node, uint32_t place, struct qn_sim_access *out);

/** That store, one of the leavers, reaches memory. */
void qn_tso_drain_one(uint32_t node, uint32_t place);

/** All buffers are emptied into memory. */
void qn_tso_drain_all(void);

#endif
