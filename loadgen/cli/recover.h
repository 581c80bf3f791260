#ifndef QN_LOADGEN_CLI_RECOVER_H
#define QN_LOADGEN_CLI_RECOVER_H

/**
 * What a stopped group would keep and lose if it continued from the longest
 * remaining log: computed from section Quoin of INFO of any replica.
 *
 * Pure; one thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/node.h"

struct qn_recover_part {
    bool member;      /* its seat is taken */
    bool heard;       /* it has answered */
    bool complete;    /* it has all positions <= has */
    uint64_t has;     /* highest position of its log */
    uint64_t clients; /* client connections, which stay if the group continues
                         from it */
    char state[16];   /* "online", "loading", ... */
};

struct qn_recover_plan {
    uint64_t epoch; /* epoch in which the group stopped */
    uint32_t replicas;
    struct qn_recover_part part[QN_NODES_MAX]; /* by seat */
    uint32_t complete;                         /* complete replicas */
    qn_node_t from;   /* complete replica with the highest position; of several,
                         one with most clients */
    uint64_t decided; /* highest position known to be decided */
    bool serving;     /* the group serves */
    bool memory;      /* memory acceptor: only the leader was lost */
    bool incomplete;  /* the group has stopped because no replica has a part of
                         the log, whose end is known */
};

/**
 * Make the plan.
 *
 * @param info  NUL-terminated: the text of INFO quoin.
 * @param why   [cap] Filled if there is no plan: one line.
 * @return QN_OK; QN_ECORRUPT: not the INFO of a quoind; QN_EBUSY: nothing to
 *         recover, or not now. `plan` is filled as far as possible.
 */
int qn_recover_make(struct qn_recover_plan *plan, const char *info, char *why,
                    size_t cap);

/** Print the plan as text. @return false if writing fails. */
bool qn_recover_print(const struct qn_recover_plan *plan, FILE *to);

#endif
