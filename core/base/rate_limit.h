#ifndef QN_CORE_BASE_RATE_LIMIT_H
#define QN_CORE_BASE_RATE_LIMIT_H

/**
 * A line of the log that would be written again and again: once, and then how
 * often it would have been.
 *
 * A line is of a kind, which is a text: its reason, without numbers. The first
 * of a kind is written at once, and the next one QN_RATE_LIMIT_PERIOD later at
 * the soonest; it tells how many were not written in between. So a loop that
 * fails a thousand times a second writes six lines a minute for each of its
 * reasons, and no reason hides another.
 *
 * One thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/clock.h"

#define QN_RATE_LIMIT_PERIOD ((qn_time_t)10 * QN_S)
/** Kinds that are told apart; all further ones are one. */
#define QN_RATE_LIMIT_KINDS  16u
#define QN_RATE_LIMIT_TEXT   48u

/** All zero: nothing was written yet. */
struct qn_rate_limit {
    struct {
        const char *what; /* kept; NULL: free */
        qn_time_t next;   /* ns; not again before */
        uint64_t left;    /* not written since */
    } kind[QN_RATE_LIMIT_KINDS];
};

/**
 * Shall a line of this kind be written now?
 *
 * @param what  Its kind; kept: a constant.
 * @param now   ns, monotonic.
 * @param more  [QN_RATE_LIMIT_TEXT] Filled if so: to be put at its end, such as
 *              "; 193 more like it since", or "".
 */
bool qn_rate_limit(struct qn_rate_limit *s, const char *what, qn_time_t now,
                   char more[QN_RATE_LIMIT_TEXT]);

#endif
