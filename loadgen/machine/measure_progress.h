#ifndef QN_LOADGEN_MACHINE_MEASURE_PROGRESS_H
#define QN_LOADGEN_MACHINE_MEASURE_PROGRESS_H

/**
 * Measures this machine interactively: progress on stderr (a bar on a terminal,
 * a line per second elsewhere), and Ctrl-C ends it. Blocks; call it from the
 * only thread of the program.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/discover/runner.h"
#include "core/machine/machine.h"

struct qn_measure_progress_opts {
    const char
        *program; /* first words of each line, for example "quoin machine" */
    const char *transport;
    double seconds;  /* as qn_runner_opts */
    double spread_s; /* as qn_runner_opts */
    uint32_t
        parallel; /* as qn_runner_opts; 0: as many as cores and quota permit */
    bool quiet;   /* no progress, errors only */
};

/** Defaults. */
#define QN_MEASURE_DEFAULT_TRANSPORT "ump"
#define QN_MEASURE_DEFAULT_SECONDS   8.0
#define QN_MEASURE_DEFAULT_SPREAD_S  1.5

/**
 * Measure m, which was discovered on this machine. Prints one line with the
 * result or the error, and one about a single core or a CPU quota.
 *
 * @param report  Filled.
 * @return 0; 1: the measurement failed; 2: unknown transport. After an
 *         interrupt the process is terminated by the signal.
 */
int qn_measure_progress_run(struct qn_machine *m,
                            const struct qn_measure_progress_opts *o,
                            struct qn_runner_report *report);

/**
 * Open a machine with costs: like qn_machine_source_open, but "live" is
 * measured at once with the defaults. Prints one line on failure.
 *
 * @param out  Filled if the result is 0.
 * @return 0; 1: the measurement failed; 2: wrong name or file, or a machine
 *         without costs.
 */
int qn_measure_progress_open(struct qn_machine **out, const char *what,
                             const char *program);

#endif
