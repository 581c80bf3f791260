#ifndef QN_TESTS_CONFORMANCE_LARGE_MEMBER_H
#define QN_TESTS_CONFORMANCE_LARGE_MEMBER_H

/**
 * A member of a run of large collectives: operations in a row, each drawn from
 * the seed of the run: variant, root, size, entry and exit. It checks each
 * result that it gets. Inputs and outputs alternate between two sets, because
 * with exit NONE the last ones may still be read.
 *
 * Threads: a member belongs to one, or to a process.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/coll/large/large.h"

#define LARGE_MEMBERS_MAX 5u
#define LARGE_BYTES_MAX   40000u
#define LARGE_SET         ((size_t)LARGE_MEMBERS_MAX * LARGE_BYTES_MAX)
/* Two inputs, two outputs, intermediate memory. */
#define LARGE_ARENA       (5 * LARGE_SET)
#define LARGE_NO_MEMBER   UINT32_MAX

struct large_run {
    uint32_t members, operations, seed;
    uint32_t slow;    /* a member that works between operations */
    uint32_t victim;  /* a member that ends ... */
    uint32_t ends_at; /* ... in this operation */
    const struct qn_large_variant *variant; /* of each operation */
    bool push, arenas;
};

struct large_member {
    const struct large_run *run;
    struct qn_large_line *lines;
    const struct qn_large_arena *arenas; /* NULL: one address space */
    uint8_t *memory;                     /* [LARGE_ARENA] of this member */
    uint32_t rank;
    int rc;
    uint32_t done; /* operations */
    struct qn_alloc work;
    struct qn_large *large; /* for large_member_end() */
};

/** Contributions of two bytes: a sum; and one that kills its process when it
 *  combines. */
extern const struct qn_operator large_member_sum, large_member_deadly;

/** @param work  Filled: intermediate memory, the last part of the arena, one
 *  block. @return as qn_large_init. */
int large_member_init(struct large_member *n, struct qn_large *l,
                      struct qn_alloc *work);

/** A thread's function. @param arg  struct large_member; its rc is QN_EIO
 *  after a wrong result, else as of qn_large_run and qn_large_settle.
 *  @return NULL. */
void *large_member_run(void *arg);

/** When all have returned: others may read what a victim has. */
void large_member_end(struct large_member *n);

#endif
