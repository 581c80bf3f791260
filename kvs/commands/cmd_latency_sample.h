#ifndef QN_KVS_COMMANDS_CMD_LATENCY_SAMPLE_H
#define QN_KVS_COMMANDS_CMD_LATENCY_SAMPLE_H

/**
 * How long commands take, by row of the table. It is an estimate, because
 * reading the clock twice costs a tenth of a GET. One command in
 * QN_CMD_CLOCK_OF is timed and counts for QN_CMD_CLOCK_OF commands. The number
 * is a prime, so a pipeline that repeats itself cannot hide one of its
 * commands.
 *
 * All zero to begin with. One thread; wait-free.
 */

#include "core/base/clock.h"
#include "kvs/commands/command.h"

#define QN_CMD_CLOCK_OF 61u

struct qn_cmd_latency_sample {
    uint64_t ns[QN_CMD_ROWS_MAX]; /* by qn_cmd_index */
    uint32_t untimed;             /* since the last that was timed */
};

/** A command begins. @return its start, ns, for qn_cmd_latency_sample_stop;
 *  0: not timed. */
static inline qn_time_t qn_cmd_latency_sample_start(
    struct qn_cmd_latency_sample *c)
{
    if (++c->untimed < QN_CMD_CLOCK_OF) {
        return 0;
    }
    c->untimed = 0;
    return qn_clock_now();
}

/** The command that began at `start` (0: not timed) has ended. */
static inline void qn_cmd_latency_sample_stop(struct qn_cmd_latency_sample *c,
                                              const struct qn_cmd *cmd,
                                              qn_time_t start)
{
    if (start != 0) {
        c->ns[qn_cmd_index(cmd)] += (qn_clock_now() - start) * QN_CMD_CLOCK_OF;
    }
}

#endif
