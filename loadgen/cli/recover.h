#ifndef QN_LOADGEN_CLI_RECOVER_H
#define QN_LOADGEN_CLI_RECOVER_H

/**
 * What would become of a group that has stopped, if it went on from the longest
 * log that is left: judged from INFO's section Quoin of any replica.
 *
 * Pure; one thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/node.h"

struct qn_recover_part {
    bool heard;       /* it has answered ... */
    bool complete;    /* ... and has whatever it says */
    uint64_t has;     /* all positions <= it */
    uint64_t clients; /* connections, which stay if it goes on from here */
    char state[16];   /* "online", "loading", ... */
};

struct qn_recover_plan {
    uint64_t epoch; /* that the group stopped in */
    uint32_t replicas;
    struct qn_recover_part part[QN_NODES_MAX]; /* [replicas] */
    uint32_t complete;                         /* of them */
    qn_node_t from;   /* complete, and nobody complete has more; of those that
                         have as much, one with most clients */
    uint64_t decided; /* the highest position that is known to be */
    bool serving;     /* the group goes on */
    bool memory;      /* the acceptor: the leader alone was lost */
    bool incomplete;  /* it has stopped though it is known how far the log
                         goes: a part of it is left with nobody */
};

/**
 * @param info  NUL-terminated: the text of INFO quoin.
 * @param why   [cap] Filled if there is no plan: one line.
 * @return QN_OK; QN_ECORRUPT: that is no quoind's; QN_EBUSY: there is nothing
 *         to recover, or not now. `plan` is filled as far as it goes.
 */
int qn_recover_make(struct qn_recover_plan *plan, const char *info, char *why,
                    size_t cap);

/** In plain words. @return false: `to` does not take it. */
bool qn_recover_print(const struct qn_recover_plan *plan, FILE *to);

#endif
