#ifndef QN_PAXOS_GROUP_GROUP_FEED_H
#define QN_PAXOS_GROUP_GROUP_FEED_H

/**
 * The change feed of a group's member: the commands that it has applied, each
 * once and in order, for what follows the state without being a part of it.
 * Positions, gaps, bounds and how to store a position: paxos/feed/feed.h. Here
 * is the same for a program that has a group (`feed` of its options).
 *
 *     each turn of the loop, after qn_group_turn:
 *       while qn_group_feed_read(g, id, &r) is QN_OK: work on it
 *       qn_group_feed_position(g, id, &at), and store it
 *
 * A subscription ends with the member: in the next incarnation, in this process
 * or another one, subscribe again at the stored position. The positions of all
 * members are the same.
 *
 * Threads: the group's. Not from callbacks of the service (QN_EBUSY), but from
 * those of proposals and barriers. Nothing blocks.
 *
 * Each call returns QN_OK or what stands beside it; and QN_EAGAIN: this process
 * is not a member yet; QN_EBUSY; QN_EPERM: a forked child; QN_ENOSYS: the
 * options have no feed; or the error that has ended the group here.
 */

#include "paxos/feed/feed.h"
#include "paxos/group/group.h"

/** As qn_feed_subscribe. With `from` NULL the program takes a copy of its state
 *  in the same place, and this follows it without a gap. @return QN_EGONE;
 *  QN_EDQUOT; QN_ENOMEM; with NULL also QN_EAGAIN: this member has no state
 *  now. */
int qn_group_feed_subscribe(struct qn_group *g,
                            const struct qn_feed_position *from, uint32_t *id);

/** As qn_feed_seek. @return QN_EGONE; with NULL QN_EAGAIN, as above. */
int qn_group_feed_seek(struct qn_group *g, uint32_t id,
                       const struct qn_feed_position *to);

/** As qn_feed_read. @param r  Its bytes are borrowed until the next turn.
 *  @return QN_EAGAIN: there is no more now; QN_EGONE. */
int qn_group_feed_read(struct qn_group *g, uint32_t id,
                       struct qn_feed_record *r);

/** @param out  Filled: the position to store. */
int qn_group_feed_position(struct qn_group *g, uint32_t id,
                           struct qn_feed_position *out);

/** It ends. */
int qn_group_feed_unsubscribe(struct qn_group *g, uint32_t id);

/** @param out  Filled; `first` is where one that has heard QN_EGONE can go on.
 */
int qn_group_feed_status(struct qn_group *g, struct qn_feed_status *out);

#endif
