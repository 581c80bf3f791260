#ifndef QN_SIM_EXPLORE_WEAKEN_H
#define QN_SIM_EXPLORE_WEAKEN_H

/**
 * Mutants of memory orders: the same code, one of its operations weaker.
 *
 * Each operation of atomic.h knows its place in the source. After
 * qn_weaken_watch, the operations that runs come across are collected; then one
 * at a time can be given another order. So a test can ask of each order whether
 * an exploration needs it, without a copy of the code:
 *
 *     qn_weaken_watch();
 *     explore();
 *     n = qn_weaken_sites("transports/ump/", site, MAX);
 *     for each of them: qn_weaken_begin(&site[i], memory_order_relaxed);
 *                       explore(); a fault: the order is needed
 *
 * An operation is named by its function, its kind and its number among those of
 * that kind in the function: "publish store 1".
 *
 * One thread; not reentrant.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/atomic.h"
#include "core/base/atomic_sim.h" /* struct qn_sim_site */

#define QN_WEAK_MAX 32u

struct qn_weak_site {
    struct qn_sim_site at; /* strings are constants of the program */
    memory_order order;    /* in the source */
    uint32_t number;       /* from 1 */
};

/** Collect operations from now on; forget others. */
void qn_weaken_watch(void);

/** Those met so far that are stronger than relaxed, in files whose name
 *  contains `part`, in the order of the source. @return how many; `out` has
 *  room for `max`, and the rest is left out. */
uint32_t qn_weaken_sites(const char *part, struct qn_weak_site *out,
                         uint32_t max);

/** From now on that operation has order `to`. Others that were weakened before
 *  stay weak: at most QN_WEAK_MAX. */
void qn_weaken_begin(const struct qn_weak_site *site, memory_order to);

/** All operations are as strong as in the source. */
void qn_weaken_end(void);

/** The next weaker orders that make sense for a kind of operation, the weakest
 *  first. @return how many, at most 3. */
uint32_t qn_weaker_orders(const struct qn_weak_site *site, memory_order *out);

const char *qn_order_name(memory_order order);

#endif
