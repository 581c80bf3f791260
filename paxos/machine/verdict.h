#ifndef QN_PAXOS_MACHINE_VERDICT_H
#define QN_PAXOS_MACHINE_VERDICT_H

/**
 * Memory acceptor: can the group go on from what is left (PROTOCOL.md 5.7)?
 *
 * The newest slots lie in the ring of the word's owner. While that one lives it
 * goes on; when its life has ended, one goes on that has learned all that the
 * ring does not keep any more. Is there none, nothing is ever decided again:
 *
 *     slots   1 ...... kept | kept + 1 ... lo - 1 | lo ........ hi |
 *             learned by    | overwritten: lost   | in the ring of |
 *             the longest   |                     | the ended owner|
 *
 * But what looks like a gap may be filled yet: what the ended ones had sent may
 * lie unread in a member's lane, the longest may give another what that one
 * lacks before slots of its own beyond, and a snapshot may be on its way. So
 * the group has stopped when all have read what the ended ones had sent, have
 * learned equally much, and await nothing; and while that is not so of one of
 * them, he is waited for: for ever, if he stands still.
 *
 * Pure. One thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/node.h"

/** What a living member says of itself; of one that does not live, nothing but
 *  `lives` counts. */
struct qn_verdict_member {
    bool lives;
    bool heard; /* it knows of all ends that are known here, and had received
                   before what those had sent */
    bool late;  /* its life began after the owner's had ended: nothing came from
                   there, and from the others nothing that they lack */
    qn_slot_t learned; /* all slots <= it */
    qn_slot_t coming;  /* position of a snapshot that is on its way to it; 0 */
};

struct qn_verdict_in {
    bool ended;       /* the life of the word's owner, for certain ... */
    qn_slot_t lo, hi; /* ... and its ring keeps these */
    uint32_t nodes;   /* <= QN_NODES_MAX */
    struct qn_verdict_member member[QN_NODES_MAX]; /* [nodes] */
};

enum qn_verdict_kind {
    QN_VERDICT_NONE,    /* the group goes on, or somebody takes over */
    QN_VERDICT_WAITING, /* for `awaited`: without them it cannot */
    QN_VERDICT_STOPPED  /* it cannot */
};

struct qn_verdict {
    enum qn_verdict_kind kind;
    uint64_t awaited;  /* mask of members: of which it is not known what they
                          hold; if there are none, those that are behind, and
                          the longest, which is to help them */
    qn_node_t longest; /* who has most: the first of those that have, one that
                          is not late if there is such a one ... */
    qn_slot_t kept;    /* ... all slots up to this one */
    qn_slot_t lo, hi;  /* of the ended owner's ring */
};

/** O(nodes). Of NONE only the kind is filled. */
struct qn_verdict qn_verdict_find(const struct qn_verdict_in *in);

#endif
