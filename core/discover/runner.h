#ifndef QN_CORE_DISCOVER_RUNNER_H
#define QN_CORE_DISCOVER_RUNNER_H

/**
 * Measure a machine: pinned threads, one per core, send each other messages
 * over queuepairs of the transport that is given, pair by pair.
 *
 *   rounds   measure.h says what one is: here 12 batches of 8 each way, 12 x 8
 *            round trips, and the probes before and after; messages fill a cell
 *   pair_runs   rounds one after the other, after a warm-up that does not count
 *   steps    pair_runs of disjoint pairs at the same time (round_robin.h)
 *   passes   all steps; three at least, spread over opts.spread_s; then those
 *            pairs are visited again that are not stable, until opts.seconds
 *            are over. A pass that others hold up is broken off some 1.5 s
 *            later (and 80 ms for each of its steps): pairs are then unstable,
 *            as they are with too few rounds
 *
 * The lane that a core reads lies in memory that the core itself touched first,
 * so at home on its own memory node, as outboxes are.
 *
 * Threads that wait for their turn sleep; those that measure spin and own their
 * cores. Everything is gone when the call returns: memory, threads, and no
 * file is made.
 *
 * Called by one thread, which waits and shows progress meanwhile.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/machine/machine.h"
#include "core/qp.h"

struct qn_runner_progress {
    uint64_t pair_runs;  /* made */
    uint64_t visits_due; /* that are certain: more follow if there is noise */
    uint32_t pairs;      /* of the machine */
    uint32_t stable;     /* of them, so far */
    double elapsed_s;
    double left_s; /* estimate */
    double part;   /* 0 to 1, how much of it is over; never falls */
};

struct qn_runner_opts {
    const struct qn_transport *transport; /* kept during the call */
    double seconds;    /* when to leave pairs that are not stable; three
                          passes are made unless others hold them up */
    double spread_s;   /* the passes of a small machine are spread over it, for
                          levels last seconds */
    uint32_t parallel; /* pairs at the same time, at most; 0: as many as there
                          are disjoint ones */
    /** Called some ten times a second. @return false: stop now. NULL: none. */
    bool (*progress)(void *arg, const struct qn_runner_progress *p);
    void *arg;
};

struct qn_runner_report {
    uint32_t pairs;    /* of cores */
    uint32_t unstable; /* marked so in the facts */
    uint32_t levels;   /* of them: never on one level before and after */
    uint32_t rounds;   /* of all pairs */
    uint32_t counted;  /* of them, those on the level of their pair's result */
    double seconds;
};

/**
 * Fill the costs and the facts of a machine that was discovered here.
 *
 * @param m       Costs are overwritten; facts but `cpu` are, too. One core: no
 *                pair, nothing is measured.
 * @param report  Filled.
 * @return QN_OK; QN_EAGAIN: progress said stop; QN_EPERM: a thread could not
 *         be pinned to a core of m; QN_ETIMEDOUT: cores that another
 *         process keeps busy gave no result for some pair; QN_ENOMEM; or what
 * the transport said. Then m has no costs.
 *
 * Blocks. Milliseconds per pair and step.
 */
int qn_machine_measure(struct qn_machine *m, const struct qn_runner_opts *opts,
                       struct qn_runner_report *report);

#endif
