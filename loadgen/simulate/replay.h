#ifndef QN_LOADGEN_SIMULATE_REPLAY_H
#define QN_LOADGEN_SIMULATE_REPLAY_H

/** `quoin sim replay GROUP`: published claims, replayed on simulated machines,
 *  row by row: published, simulated, and whether it holds. One thread. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct qn_replay_opts {
    const char *machines[2]; /* folders of machine files */
    bool every;              /* every group size, not only powers of two */
    bool longer;             /* also plans of about one second */
    FILE *to;
};

/** One row: what was published or claimed, what came out. */
struct qn_replay_row {
    const char *id;
    char what[160];
    const char *published; /* the figure in print; NULL: a claim of ours */
    double limit;          /* at least; if `most`, at most */
    bool most;
    double got;
};

/** @return true if it holds. */
bool qn_replay_row_print(const struct qn_replay_row *r, FILE *to);

/** S1: the planned tree against every static tree, on all machines.
 *  @param missed  Filled: rows that do not hold. @return the exit status. */
int qn_replay_s1(const struct qn_replay_opts *o, uint32_t *missed);

/** S3: 1Paxos over a planned tree against sequential sending; beside a bare
 *  broadcast; and with growing clients on 8 memory nodes. On seven machines of
 *  the first folder. As qn_replay_s1. */
int qn_replay_s3(const struct qn_replay_opts *o, uint32_t *missed);

#endif
