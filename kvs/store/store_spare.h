#ifndef QN_KVS_STORE_STORE_SPARE_H
#define QN_KVS_STORE_STORE_SPARE_H

/**
 * Spares: freed blocks of the store's entries, kept for the next ones of the
 * same size.
 *
 * Values that are overwritten are mostly replaced by values of the same size.
 * malloc does not know that: it merges each freed block with its neighbours,
 * whose headers are cold, and cuts the next one out of what it has got.
 *
 * QN_SPARE_SIZES lists, each for one size at a time; of sizes that share a list
 * the one that was there first has it until its list is empty. Bounded in
 * bytes. A list from which no block was taken while qn_spares_old looked at all
 * others is freed, block by block.
 *
 * Threads: one. No allocation.
 */

#include <stdbool.h>
#include <stdint.h>

#define QN_SPARE_SIZES 64u

/** Fields are private; all zero but `max`: empty. */
struct qn_spares {
    struct {
        uint64_t bytes; /* of each block */
        void *first;    /* list, linked in their first word */
        bool wanted;    /* since qn_spares_old looked at it */
    } size[QN_SPARE_SIZES];
    uint64_t kept; /* bytes */
    uint64_t max;  /* bytes; 0: nothing is kept */
    uint32_t at;   /* the list that qn_spares_old looks at next */
};

/** A block that was kept with the same `bytes`; NULL: none. Given. */
void *qn_spares_take(struct qn_spares *s, uint64_t bytes);

/** Keep a block of `bytes`, a multiple of 16. @return true: taken; false: it
 *  is to be freed. */
bool qn_spares_keep(struct qn_spares *s, void *block, uint64_t bytes);

/** A block that is no longer worth keeping, and its place goes to other sizes.
 *  To be called now and then, until it says NULL: none here, the next call
 *  looks further. Given. */
void *qn_spares_old(struct qn_spares *s);

/** Any block, until all are gone: NULL. Given. */
void *qn_spares_any(struct qn_spares *s);

#endif
