#ifndef QN_KVS_STORE_STORE_SPARE_H
#define QN_KVS_STORE_STORE_SPARE_H

/**
 * Spares: freed blocks of entries, kept for the next entries of the same size.
 *
 * Most overwritten values are replaced by values of the same size. malloc does
 * not know that: it merges each freed block with its neighbours, whose headers
 * are cold, and cuts the next block out of the merged one.
 *
 * There are QN_SPARE_SIZES lists, each for one size at a time: of sizes that
 * share a list, the first one owns it until it is empty. The total is bounded
 * in bytes. A list from which no block was taken while qn_spares_old looked at
 * all other lists is freed, block by block.
 *
 * Threads: one. No allocation; wait-free.
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

/** Take a kept block of the same `bytes`; NULL: none. The caller owns it. */
void *qn_spares_take(struct qn_spares *s, uint64_t bytes);

/** Keep a block of `bytes`, a multiple of 16. @return true: taken; false: the
 *  caller must free it. */
bool qn_spares_keep(struct qn_spares *s, void *block, uint64_t bytes);

/** Take a block that is no longer worth keeping, so that other sizes can use
 *  its list. Call it from time to time until it returns NULL, which means:
 *  none in this list; the next call looks at the next list. The caller owns
 *  the block. */
void *qn_spares_old(struct qn_spares *s);

/** Take any block; NULL: there is none left. The caller owns it. */
void *qn_spares_any(struct qn_spares *s);

#endif
