#ifndef QN_SYNC_DELEGATE_AUTO_RULE_H
#define QN_SYNC_DELEGATE_AUTO_RULE_H

/**
 * When `auto` takes another backend: a pure function of what executors see.
 * Inside of the folder only.
 *
 * How many clients wait decides what is cheapest. Executors see it, each in its
 * own way: under a lock by the attempts that fail, as combiner by the requests
 * that it finds. The figures differ, so each step up and down has a threshold
 * of its own, with a gap between them.
 *
 *     lock  --(waiting >= UP)-->  cc_synch  --(>= UP)-->  h_synch
 *           <--(< DOWN)---------            <--(< DOWN)--
 *
 * One window proves little, and thresholds do not fit each machine. So a change
 * needs `patience` windows in a row; a change that soon goes back doubles that,
 * and a long time without any halves it. An object between two backends then
 * changes seldom, and one whose load changes does so at once.
 *
 * Pure: no shared memory, no clock.
 */

#include <stdint.h>

/** Backends, from few clients to many. */
enum qn_auto_part {
    QN_AUTO_LOCK,
    QN_AUTO_CC_SYNCH,
    QN_AUTO_H_SYNCH, /* with more than one domain */
};

#define QN_AUTO_WINDOW       64u /* operations in a window, at least */
#define QN_AUTO_PATIENCE_MAX 256u

/** What one client has seen as executor. */
struct qn_auto_window {
    uint64_t operations; /* in its batches */
    uint64_t batches;
    uint64_t waited; /* failed attempts to get the lock; operations of others */
};

/** What the rule remembers; all zero at first. */
struct qn_auto_state {
    uint32_t before;    /* the backend before this one */
    uint32_t wanted;    /* by the last window */
    uint32_t streak;    /* windows in a row that wanted it */
    uint32_t doublings; /* of the patience */
    uint32_t calm;      /* windows since the last change, or halving */
};

/**
 * A window has ended.
 *
 * @param parts  Backends that there are, 2 or 3.
 * @param now    The one in use, below `parts`.
 * @param s      Updated.
 * @return the one to use from now on.
 */
uint32_t qn_auto_rule(uint32_t parts, uint32_t now,
                      const struct qn_auto_window *w, struct qn_auto_state *s);

#endif
