#ifndef QN_SIM_EXPLORE_VISITED_H
#define QN_SIM_EXPLORE_VISITED_H

/**
 * The states that an exploration has visited, by what has happened before
 * them. Inside of the folder only.
 *
 * A run is told access by access, each with those of other nodes that it
 * depends on. Runs that differ only in the order of independent accesses are
 * one trace, and end in one state: by this a state has a key, and nothing of
 * memory or of stacks is compared (happens-before caching: Musuvathi and
 * Qadeer, "Partial-order reduction for context-bounded state exploration",
 * MSR-TR-2007-12). A state that was visited with no more deviations need not be
 * gone on from again.
 *
 * Keys are 60 bits of a hash: two traces of a million get the same one by
 * chance once in a million explorations.
 */

#include "core/sim/explore/explore.h"
#include "core/sim/machine.h"

/** Where a run is, beside its trace. */
struct qn_visited_at {
    uint32_t paused, set; /* bits of nodes: in a pause; in the sleep set */
    uint32_t kills;
    bool leaves; /* the running node cannot go on */
};

/** An exploration begins. */
void qn_visited_start(void);

/** A run begins. */
void qn_visited_begin(enum qn_explore_memory m);

/** The running node performs an access. `checked`: there are checked copies. */
void qn_visited_access(const struct qn_sim_access *a, bool checked);

/** A store of `node`, `place` behind its oldest, leaves its buffer. */
void qn_visited_drain(uint32_t node, uint32_t place,
                      const struct qn_sim_access *a);

/** Something else that only the running node can tell. */
void qn_visited_note(uint32_t what);

/** Something that may concern all. */
void qn_visited_all(void);

/** The run is at a choice that no run has come to by the same choices. @return
 *  true: all that follows was run, with no more deviations. false: it is
 *  visited now. */
bool qn_visited(const struct qn_visited_at *at, uint32_t deviations);

#endif
