#ifndef QN_COLL_LARGE_VARIANT_H
#define QN_COLL_LARGE_VARIANT_H

/**
 * The variants of large collectives (NUMACol, table 1), by name:
 *
 *     operation / direction / tree [/ fragments]
 *     broadcast/pull/binomial+flat/fixed    gather/push/ring
 *
 * 27 are those of the table. Beside them each operation has a flat form in
 * either direction, in which the root serves, or is served by, each member.
 *
 * Pure, any thread.
 */

#include <stdbool.h>
#include <stdint.h>

enum qn_large_operation {
    QN_LARGE_BROADCAST,
    QN_LARGE_REDUCE,
    QN_LARGE_SCATTER,
    QN_LARGE_GATHER,
    QN_LARGE_OPERATIONS,
};

enum qn_large_direction {
    QN_LARGE_PULL, /* the receiver copies */
    QN_LARGE_PUSH, /* the owner copies, into memory of another member */
};

enum qn_large_tree {
    QN_LARGE_FLAT,          /* all members below the root */
    QN_LARGE_RING,          /* as flat, but copies wait for a token */
    QN_LARGE_BINOMIAL,      /* of three levels; scatter, gather: of ranks */
    QN_LARGE_BINOMIAL_FLAT, /* the same, but flat within a region */
};

enum qn_large_fragments {
    QN_LARGE_WHOLE,
    QN_LARGE_DYNAMIC, /* two halves of what is longer than 8192 bytes */
    QN_LARGE_FIXED,   /* of 32768 bytes each */
};

#define QN_LARGE_DYNAMIC_ABOVE 8192u
#define QN_LARGE_CHUNK         32768u

struct qn_large_variant {
    const char *name;
    enum qn_large_operation operation;
    enum qn_large_direction direction;
    enum qn_large_tree tree;
    enum qn_large_fragments fragments;
};

/** The i-th variant; NULL past the last. Those of the table come first. */
const struct qn_large_variant *qn_large_variant_at(uint32_t i);
#define QN_LARGE_TABLE 27u

/** By its name; NULL: there is none. */
const struct qn_large_variant *qn_large_variant_find(const char *name);

/** "broadcast", ... */
const char *qn_large_operation_name(enum qn_large_operation op);

/** What suits. The same at all members that say the same.
 *  @param regions  NUMA regions that have members, at least 1.
 *  @param push     Whether members write each other's memory. */
const struct qn_large_variant *qn_large_variant_choose(
    enum qn_large_operation op, uint32_t regions, bool push);

/** The number of fragments of a message of that length: at least 1. */
uint32_t qn_large_fragment_count(const struct qn_large_variant *v,
                                 uint64_t bytes);

/** Where fragment `i` begins; where the last one ends, with i == count. */
uint64_t qn_large_fragment_at(const struct qn_large_variant *v, uint64_t bytes,
                              uint32_t i);

/** How many fragments hold the first `part` bytes: at least 1. */
uint32_t qn_large_fragments_of(const struct qn_large_variant *v, uint64_t bytes,
                               uint64_t part);

#endif
