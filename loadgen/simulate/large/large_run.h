#ifndef QN_LOADGEN_SIMULATE_LARGE_LARGE_RUN_H
#define QN_LOADGEN_SIMULATE_LARGE_LARGE_RUN_H

/** One large collective (core/coll/large) on a described machine, in virtual
 *  time. One run at a time, one thread. */

#include <stdbool.h>
#include <stdint.h>

#include "core/coll/large/large_schedule.h"
#include "core/machine/machine.h"

/** Bytes of an operation whose result is checked; longer ones are priced, but
 *  move no bytes. */
#define QN_LARGE_RUN_CHECKED ((uint64_t)1 << 16)
#define QN_LARGE_RUN_MOST    ((uint64_t)64 << 20)

struct qn_large_run_opts {
    const struct qn_machine *m; /* each core has a member, in their order */
    const struct qn_large_variant *variant;
    uint64_t bytes; /* as in struct qn_large_call, a multiple of 4 */
    uint32_t root;
    double slow; /* factor on the time of the last member's transfers; 0: 1 */
    uint64_t seed;
    double jitter;
};

struct qn_large_run_result {
    double ns;  /* of one operation: from the instant when all have entered the
                   first until all have left the last, divided */
    bool wrong; /* a result is, or a member has failed */
};

/**
 * Run some operations, of which the first does not count. Members enter and
 * leave together (QN_LARGE_ALL).
 *
 * @return QN_OK; QN_EINVAL: members, bytes, root or no costs; QN_ENOMEM;
 *         QN_ETIMEDOUT: they take more than an hour of virtual time.
 */
int qn_large_run_timed(struct qn_large_run_result *out,
                       const struct qn_large_run_opts *o);

#endif
