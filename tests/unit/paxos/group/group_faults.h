#ifndef QN_TESTS_UNIT_PAXOS_GROUP_GROUP_FAULTS_H
#define QN_TESTS_UNIT_PAXOS_GROUP_GROUP_FAULTS_H

/**
 * A service whose callbacks fail, and an allocator that refuses, each at the
 * calls that were chosen. They stand in front of those of a process, count its
 * calls, and check that a group keeps what group.h promises to a service: one
 * `end` for each `begin`, and each state that was begun is installed or
 * abandoned.
 *
 * Threads: those of the group. A plan is in memory that the test and its
 * processes share, and counts go on when the process is replaced.
 */

#include <stdbool.h>
#include <stdint.h>

#include "paxos/group/group.h"

enum group_fault_call {
    GROUP_FAULT_APPLY,
    GROUP_FAULT_BEGIN,
    GROUP_FAULT_NEXT,
    GROUP_FAULT_READ,
    GROUP_FAULT_FINISH,
    GROUP_FAULT_MEMORY, /* of the allocator; not those that free */
    GROUP_FAULT_CALLS
};

struct group_fault_plan {
    enum group_fault_call call;
    int err;              /* of a callback */
    uint64_t at;          /* this one of its calls fails, from 1; 0: none */
    bool for_ever;        /* and each after it */
    size_t bytes_refused; /* requests of this size are refused; 0: none */
    /* Written by the process: */
    uint64_t calls[GROUP_FAULT_CALLS], failed;
    uint64_t blocks; /* of the allocator, that are out; and their bytes: */
    uint64_t bytes, bytes_most;
    uint64_t cuts;   /* begun and not ended */
    uint64_t builds; /* begun, and neither installed nor abandoned */
    bool broken;     /* that build has failed, and is to be abandoned */
    uint64_t wrong;  /* calls that may not come */
};

/** Of one process. */
struct group_faults {
    struct group_fault_plan *plan; /* shared */
    struct qn_group_service of;    /* what is behind it */
    struct qn_alloc alloc;
    struct qn_alloc_limit counted; /* behind it; there is no limit */
};

/** The process begins: what the last one had has ended with it. `f` is kept,
 *  `o` has the service behind it, and gets the faulty one, and the allocator.
 */
void group_faults_begin(struct group_faults *f, struct group_fault_plan *plan,
                        struct qn_group_opts *o);

#endif
