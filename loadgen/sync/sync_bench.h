#ifndef QN_LOADGEN_SYNC_SYNC_BENCH_H
#define QN_LOADGEN_SYNC_SYNC_BENCH_H

/** `quoin bench lock`, `delegate`, `queue` and `stack`. One thread. */

#include "loadgen/sync/round.h"

/** @param host     Where its rounds run.
 *  @param command  "lock", "delegate", "queue" or "stack".
 *  @return the exit status. */
int qn_sync_bench(const struct qn_sync_host *host, const char *command,
                  int argc, char **argv);

#endif
