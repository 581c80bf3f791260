#ifndef QN_PAXOS_MEMBER_TRANSFER_LIBRARY_STATE_H
#define QN_PAXOS_MEMBER_TRANSFER_LIBRARY_STATE_H

/**
 * The library's own state in a snapshot: what a member needs beside the user's
 * state to continue behind a slot. To the user it is one opaque block.
 *
 *     | version 32 | nodes 32 | entries 32 | 0 32 | position 64 | stamp 64 |
 *     | nodes x session | nodes x incarnation whose vote has ended, 64     |
 *     | entries x utility log, QN_UL_BYTES each                            |
 *
 * Numbers are in host order: a snapshot never leaves its machine.
 *
 * Pure: no allocation, IO or clock. Any thread.
 */

#include "paxos/machine/onepaxos.h"

#define QN_LIBRARY_STATE_VERSION 3u

struct qn_library_state {
    struct qn_resume resume;
    uint32_t nodes;                    /* seats that count */
    uint32_t ul_count;                 /* entries of the utility log */
    struct qn_ul_entry ul[QN_UL_KEPT]; /* consecutive, oldest first */
};

/** Incarnations are below it (as QN_COMMONS_LIVES_MAX). */
#define QN_LIBRARY_STATE_LIVES_MAX ((uint64_t)1 << 56)
/** ms since 1970, and below it: 8900 years. The time of the log never falls, so
 *  a stamp from beyond would stop it. */
#define QN_LIBRARY_STATE_STAMP_MAX ((uint64_t)1 << 48)

/** Bytes of a block at most. */
#define QN_LIBRARY_STATE_MAX                                                   \
    (32u + QN_NODES_MAX * (sizeof(struct qn_session) + sizeof(uint64_t)) +     \
     QN_UL_KEPT * QN_UL_BYTES)

/** Write the block. @param to  [QN_LIBRARY_STATE_MAX] Filled. @return bytes. */
size_t qn_library_state_encode(const struct qn_library_state *s, uint8_t *to);

/**
 * Read a block, and trust nothing in it.
 *
 * @param s      Filled if QN_OK, else untouched.
 * @param nodes  Of this group.
 * @param block  Borrowed.
 * @return QN_OK; QN_ECORRUPT: of another version or group, of a wrong length,
 *         or with an entry, a position, an order, a stamp, a session or an
 *         incarnation that cannot be. Those that can be and are false are not
 *         found: a later incarnation than there is, say.
 */
int qn_library_state_decode(struct qn_library_state *s, uint32_t nodes,
                            struct qn_slice block);

#endif
