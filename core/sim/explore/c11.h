#ifndef QN_SIM_EXPLORE_C11_H
#define QN_SIM_EXPLORE_C11_H

/**
 * Memory of C11 for the explorer.
 *
 * Each atomic variable keeps its last stores, in the order in which they were
 * executed; that is its modification order. Each node has a view: for each
 * variable the store that it must have seen. A load may take any store not
 * older than its node's view, and the explorer chooses.
 *
 *   relaxed load   the store is in the view from now on: coherence
 *   release store  the store carries the view of its node
 *   acquire load   takes over the view that the store carries
 *   streaming store  carries what a seq_cst fence of its node has published;
 *                  release operations of the node carry a view without it,
 *                  until a seq_cst fence or a read-modify-write of the node
 *   release fence  later relaxed stores carry the view of this moment
 *   acquire fence  takes over what earlier relaxed loads have found
 *   read-modify-write  takes the newest store, and carries what that one
 *                  carried besides: it continues a release sequence, as nothing
 *                  else does (C++20; C11 also lets later stores of the same
 *                  thread)
 *   seq_cst        one more view for all: a seq_cst store enters itself, a
 *                  seq_cst load takes no older store than is entered, a fence
 *                  exchanges: it enters its node's view and takes over all
 *
 * Plain bytes (qn_copy_in, qn_copy_out, the touches of mark.h) have no stale
 * values: two accesses, one of which writes, must be ordered by what release
 * and acquire carry, or else the run ends with a fault: a data race. The bytes
 * of qn_copy_in_checked may be any mix of the stores that do not happen before
 * one that the node knows.
 *
 * What the machine does not do, though C11 permits it: a load takes a value
 * that is stored only later in its own thread's order (load buffering); stores
 * of two nodes to one variable take effect in another order than they ran; a
 * compare-and-swap that fails takes an old value. And what it keeps is finite:
 * the last QN_C11_HISTORY stores of a variable.
 *
 * A system call on a word is a seq_cst fence, as futex(2) has it. On either
 * kind of object what happened before a wake-up happens before the return of
 * the sleeper that was woken.
 */

#include "core/sim/machine.h"

#define QN_C11_HISTORY 8u

extern const struct qn_sim_memory qn_c11;

/** Forget all stores: what lies in memory was there before all nodes. */
void qn_c11_reset(void);

/** Every node sees the newest of each variable. */
void qn_c11_time_passes(void);

#endif
