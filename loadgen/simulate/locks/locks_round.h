#ifndef QN_LOADGEN_SIMULATE_LOCKS_LOCKS_ROUND_H
#define QN_LOADGEN_SIMULATE_LOCKS_LOCKS_ROUND_H

/** A simulated machine as a host of rounds (loadgen/sync/round.h), for `quoin
 *  bench lock --machine`. Threads that wait look on, as in locks_run.h. One
 *  round at a time, one thread. */

#include "loadgen/sync/round.h"

extern const struct qn_sync_host qn_locks_host;

#endif
