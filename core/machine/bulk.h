#ifndef QN_MACHINE_BULK_H
#define QN_MACHINE_BULK_H

/**
 * What copies of many bytes cost: bandwidths, which concurrent copies share.
 *
 * A copy is cut into pieces. A piece takes, each in the order of requests and
 * all at once, what it needs of
 *
 *     a core         as long as a line from there costs, times the lines
 *     a cache        that gives to others what its core has written
 *     a memory node  that reads, or is written
 *     a link         between a memory node and all others, either way
 *
 * and ends when the last of them has carried it. What a core has copied lies in
 * its cache, until the cache has taken as many other bytes as it holds, or a
 * core with another cache has written it. A piece that comes from the own cache
 * needs the core alone. One that is written for the first time is fetched from
 * memory, and written back.
 *
 * Bandwidths are those of the machine's facts. Else (assumed):
 *
 *     copy    a line after the other costs 1/8 of a receive
 *     memory  as a quarter of its cores copy, and at least two
 *     link    half of that. A cache gives what a memory node does
 *     holds   1 MiB for each core that has the cache
 *
 * One thread per struct. `create` allocates, and so may `piece`.
 */

#include "core/machine/machine.h"

#define QN_BULK_PIECE ((uint64_t)16384) /* bytes */

struct qn_bulk;

/** Copy `bytes` from address `from`, of memory that lies with member `owner`,
 *  to address `to`, that lies with `taker`. Addresses may be invented: equal
 *  ones are the same memory. */
struct qn_bulk_request {
    uint32_t by; /* the member that copies */
    uint32_t owner, taker;
    uint64_t from, to;
    uint64_t bytes; /* of a piece: at most QN_BULK_PIECE */
};

/**
 * @param out   Filled; freed by qn_bulk_destroy.
 * @param m     With costs; borrowed.
 * @param core  [n] index of each member's core. Borrowed.
 * @return QN_OK; QN_EINVAL: no member, an index, no costs; QN_ENOMEM.
 */
int qn_bulk_create(struct qn_bulk **out, const struct qn_machine *m,
                   const uint32_t *core, uint32_t n);

/** NULL is fine. */
void qn_bulk_destroy(struct qn_bulk *b);

/** As if new: all is free, and nothing lies in a cache. */
void qn_bulk_reset(struct qn_bulk *b);

/** Only the caches are as they are; all is free from time 0 on. */
void qn_bulk_rest(struct qn_bulk *b);

/** @param now  ps; not before that of earlier calls since the last
 *  qn_bulk_rest (asserted). @return when the piece
 *  ends, later than now. Without memory it forgets what caches have. */
uint64_t qn_bulk_piece(struct qn_bulk *b, const struct qn_bulk_request *c,
                       uint64_t now);

#endif
