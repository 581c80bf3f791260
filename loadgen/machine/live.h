#ifndef QN_LOADGEN_MACHINE_LIVE_H
#define QN_LOADGEN_MACHINE_LIVE_H

/**
 * Measure this machine for a person who waits: progress on stderr (a bar on a
 * terminal, a line per second elsewhere), and Ctrl-C that ends it. Blocks; to
 * be called by the only thread of the program.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/discover/runner.h"
#include "core/machine/machine.h"

struct qn_live_opts {
    const char *program; /* begins each line, "quoin machine" */
    const char *transport;
    double seconds;    /* as qn_runner_opts */
    double spread_s;   /* as qn_runner_opts */
    uint32_t parallel; /* as qn_runner_opts; 0: what cores and quota permit */
    bool quiet;        /* no progress, errors only */
};

/** What people get who ask for nothing else. */
#define QN_LIVE_TRANSPORT "ump"
#define QN_LIVE_SECONDS   8.0
#define QN_LIVE_SPREAD_S  1.5

/**
 * Measure m, which was discovered here. Says in a line what it was or what went
 * wrong, and what a single core or a CPU quota mean.
 *
 * @param report  Filled.
 * @return 0; 1: it did not succeed; 2: no such transport. Interrupted, the
 *         process ends by the signal.
 */
int qn_live_measure(struct qn_machine *m, const struct qn_live_opts *o,
                    struct qn_runner_report *report);

/**
 * Open a machine that has costs, for who plans on it: as qn_source_open, and
 * "live" is measured at once, as people get it who ask for nothing else. Says
 * in a line what is wrong.
 *
 * @param out  Filled if the answer is 0.
 * @return 0; 1: measuring did not succeed; 2: wrong name or file, or there are
 *         no costs in it.
 */
int qn_live_open(struct qn_machine **out, const char *what,
                 const char *program);

#endif
