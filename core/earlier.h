#ifndef QN_EARLIER_H
#define QN_EARLIER_H

/** Times put together: when is the next turn due? Pure, any thread. */

#include "core/base/clock.h"

/** The earlier one. A function: QN_MIN would evaluate a call in its arguments
 *  twice, and a turn is full of parts that say when they are due. */
static inline qn_time_t qn_time_earlier(qn_time_t a, qn_time_t b)
{
    return a < b ? a : b;
}

#endif
