#ifndef QN_TESTS_UNIT_OC_WORLD_H
#define QN_TESTS_UNIT_OC_WORLD_H

/** Broadcasts of several nodes in one thread, on a strict chip, in an order
 * that a seed chooses. */

#include <stdint.h>

/** Synchronous: roots that change and that stay, lengths of several chunks.
 *  @return NULL, or what went wrong. */
const char *oc_sync_traffic(uint64_t seed);

/** The smallest case of the published error: five nodes, k = 2, roots 0 then 2,
 *  and node 1 late. */
const char *oc_root_change(uint64_t seed);

/** A root that comes back after almost as many broadcasts as there are
 *  numbers. */
const char *oc_old_lines(uint64_t seed);

/** Asynchronous: all nodes send and sleep. `deaths`: some end and come back. */
const char *oc_async_traffic(uint64_t seed, uint32_t deaths);

/** A member stops taking anything: how far does a source get? */
const char *oc_async_stall(uint64_t seed);

/** The same, while others end and come back; then it goes on. `most`: chunks
 *  that have waited in the node in front of it. */
const char *oc_async_stall_and_deaths(uint64_t seed, uint32_t *most);

/** Node 1 of a chain reads a head that its parent has written in part: its
 *  bytes (even seeds) or its version. */
const char *oc_async_torn_head(uint64_t seed);

/** Node 1 of a chain is its end while versions go through more than half of
 *  their numbers, and then passes on again. */
const char *oc_async_old_leaf(uint64_t seed);

/** A member comes back, and finds a word of an incarnation whose low bits were
 *  the same. */
const char *oc_async_old_position(uint64_t seed);

/** A node comes back, and its view changes as often as it had in the life
 *  before. */
const char *oc_async_same_count(uint64_t seed);

/** A member that has half a message goes on from a chunk that is the second
 *  half of another. */
const char *oc_async_jump(uint64_t seed);

/** What went along a former tree comes to a node behind the same along a newer
 *  one. */
const char *oc_async_straggler(uint64_t seed);

#endif
