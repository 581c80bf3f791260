#ifndef QN_PAXOS_HALT_VERDICT_H
#define QN_PAXOS_HALT_VERDICT_H

/**
 * Memory acceptor: can the group go on from what is left (PROTOCOL.md 5.7)?
 *
 * The newest slots lie in the ring of the register's owner. While the owner
 * lives it goes on. When its incarnation has ended, a member goes on that has
 * learned every slot that the ring does not keep any more. If there is no such
 * member, nothing is ever decided again:
 *
 *     slots   1 ...... kept | kept + 1 ... lo - 1 | lo ........ hi |
 *             learned by    | overwritten: lost   | in the ring of |
 *             the longest   |                     | the ended owner|
 *
 * But what looks like a gap may be filled yet. Messages of the ended members
 * may lie unread in a member's lane; the longest may give another member what
 * that one lacks before slots of its own beyond; a snapshot may be on its way.
 * So the group has stopped when all members have read what the ended ones had
 * sent, have learned equally much, and await nothing. A member for which that
 * is not so is waited for: for ever, if it is stalled.
 *
 * Pure. One thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/node.h"

/** What a living member reports of itself. Of one that does not live only
 *  `lives` counts. */
struct qn_verdict_member {
    bool lives;
    bool votes; /* its vote counts: it may lead */
    bool heard; /* it knows of all ends that are known here, and had received
                   before what the ended members had sent */
    bool
        late; /* its incarnation began after the owner's had ended: nothing came
                 from the owner, and from the others nothing that they lack */
    qn_slot_t learned; /* all slots <= it */
    qn_slot_t coming;  /* position of a snapshot that is on its way to it; 0 */
};

struct qn_verdict_in {
    bool ended; /* the incarnation of the register's owner, for certain ... */
    qn_slot_t lo, hi; /* ... and its ring keeps these */
    uint32_t nodes;   /* <= QN_NODES_MAX */
    struct qn_verdict_member member[QN_NODES_MAX]; /* [nodes] */
};

enum qn_verdict_kind {
    QN_VERDICT_NONE,    /* the group goes on, or a member takes over */
    QN_VERDICT_WAITING, /* for `awaited`: without them it cannot */
    QN_VERDICT_STOPPED, /* it cannot */
    QN_VERDICT_DAMAGED  /* nor can it: the register was overwritten. Found by
                           the machine (qn_onepaxos_damaged), not here; the
                           other members of the verdict are 0 */
};

struct qn_verdict {
    enum qn_verdict_kind kind;
    uint64_t awaited; /* mask of members: of which it is not known what they
                         hold; if there are none, those that are behind, and
                         the longest, which is to help them */
    qn_node_t
        longest;      /* member that has learned most; of several one that
                         votes, then one that is not late, then the first ... */
    qn_slot_t kept;   /* ... all slots up to this one */
    qn_slot_t lo, hi; /* of the ended owner's ring */
};

/** O(nodes). Of NONE only the kind is filled. */
struct qn_verdict qn_verdict_find(const struct qn_verdict_in *in);

#endif
