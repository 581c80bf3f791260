#ifndef QN_WAIT_BACKOFF_H
#define QN_WAIT_BACKOFF_H

/**
 * A wait that begins without sleeping: first it looks again and again, then it
 * lets other threads of its core run, then it says that the caller should
 * park.
 *
 *     look ... look      for `look_ns`: the node owns its core
 *     yield, look, ...   `yields` times: it shares the core with nodes that it
 *                        may be waiting for. Before each, `looks` looks: what
 *                        it waits for may be on its way from another core
 *     park
 *
 * Two threads that alternate on a core hand it over in 2 us by yields, and in
 * two system calls more by sleeping. A yield among threads that have nothing
 * to do is 0.4 us lost, so there are few of them.
 *
 * It reads the clock once per QN_BACKOFF_LOOKS looks, so a short wait costs
 * none. One thread per struct.
 */

#include <stdbool.h>

#include "core/wait/spin.h"

#define QN_BACKOFF_LOOKS 32u

/** How long. All zero: park at once. */
struct qn_backoff_opts {
    qn_time_t look_ns;
    uint32_t yields;
    uint32_t looks; /* before each yield */
};

/** One wait. Fields are private. */
struct qn_backoff {
    struct qn_backoff_opts o;
    struct qn_spin spin;
    uint32_t looks;  /* since something was found, or since the last yield */
    uint32_t yields; /* since something was found */
};

/** What suits a node of a group: it looks where each owns its core, and yields
 *  where they share them. */
struct qn_backoff_opts qn_backoff_of(const struct qn_spin_opts *o);

void qn_backoff_init(struct qn_backoff *p, const struct qn_backoff_opts *o);

/** Something was found, or the node has slept: the next wait starts afresh. */
void qn_backoff_reset(struct qn_backoff *p);

/** Nothing was found. @return true: look again; false: park. */
bool qn_backoff_again(struct qn_backoff *p);

/** The same for one whose look is a whole turn, at a time that it knows: it
 *  looks for `look_ns`, and not for QN_BACKOFF_LOOKS turns before that.
 *  @param now  ns, monotonic. */
bool qn_backoff_again_at(struct qn_backoff *p, qn_time_t now);

#endif
