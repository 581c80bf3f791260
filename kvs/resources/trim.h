#ifndef QN_KVS_RESOURCES_TRIM_H
#define QN_KVS_RESOURCES_TRIM_H

/**
 * When a replica gives free memory of its heap back to the system.
 *
 * malloc keeps what was freed (qn_store_tune_malloc). Giving it back is one
 * call that takes 2 to 60 ms for 700 MiB of values from 16 KiB on, and 0.2 s
 * among millions of small values, where it gains nothing. It is therefore made
 * only in an idle replica: nothing was applied or answered for QN_TRIM_IDLE,
 * plus half of that per replica id, so that no two replicas pause at the same
 * time. And it is made only if resident memory exceeds used memory by a quarter
 * and QN_TRIM_LEAST. What an attempt could not give back is not tried again
 * until as much has been freed anew.
 *
 * Pure, any thread, wait-free: the caller measures the memory and calls
 * malloc_trim.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/clock.h"
#include "core/node.h"

#define QN_TRIM_IDLE  (2 * QN_S)
#define QN_TRIM_FEW   64u /* commands within the time count as none: monitors */
#define QN_TRIM_LEAST ((uint64_t)64 << 20) /* bytes */

struct qn_trim {
    qn_time_t at;   /* ns; when to look at the memory; QN_TIME_NEVER: no work
                       was done */
    qn_time_t idle; /* ns */
    uint64_t work;  /* as told last, in units of QN_TRIM_FEW */
    uint64_t left;  /* bytes that an attempt could not give back */
};

/** Begin. @param self  The replica's id, which sets its idle time apart. */
void qn_trim_init(struct qn_trim *t, qn_node_t self);

/** Once a turn.
 *  @param work  Commands that were applied or answered so far.
 *  @return the latest time of the next turn, ns, or QN_TIME_NEVER; `now` or
 *          earlier: look at the memory now. */
qn_time_t qn_trim_turn(struct qn_trim *t, uint64_t work, qn_time_t now);

/** The memory, in bytes. @return true: give it back, then call qn_trim_done. */
bool qn_trim_look(struct qn_trim *t, uint64_t resident, uint64_t used);

/** Memory was given back; `resident` and `used` are the bytes afterwards. */
void qn_trim_done(struct qn_trim *t, uint64_t resident, uint64_t used);

#endif
