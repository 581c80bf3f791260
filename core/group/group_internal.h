#ifndef QN_GROUP_GROUP_INTERNAL_H
#define QN_GROUP_GROUP_INTERNAL_H

/**
 * The state of a context: what comes from the peers and what of it goes to the
 * children. For this folder only.
 *
 * Arrays and sets are as long as the number of members says (context.c lays
 * them out behind the context). With at most 64 members a set is one word, and
 * the words of all sets lie beside each other.
 */

#include "core/group/group.h"
#include "core/node_set.h"

/* A long message that comes from one peer frame by frame. */
struct qn_forward_in {
    uint8_t *body;      /* [msg_max], owned; NULL: not read by frames */
    bool open;          /* frames of it are still to come */
    uint32_t total;     /* its bytes */
    uint32_t got;       /* of which arrived */
    uint32_t first_len; /* bytes of its FIRST */
    uint32_t more_len;  /* of its longest other frame */
};

/* Bits of qn_context.view. */
#define QN_VIEW_FRAMED 1u /* the peer is read by frames */
#define QN_VIEW_INSIDE 2u /* a message of it may be half read */

struct qn_context {
    const struct qn_alloc *alloc;
    qn_node_t self;
    qn_node_t parent; /* == self at the root; no member: QN_NO_MEMBER */
    qn_node_t sender; /* of what is being delivered */
    uint32_t members; /* all nodes are below it */
    uint32_t msg_max; /* bytes of a message */
    uint32_t child_count;
    qn_node_t *child;  /* [child_count] in send order; room for all members */
    struct qn_qp **qp; /* [members] by node */
    struct qn_device_bcast *bcast; /* of a device; NULL: there are queuepairs */
    qn_deliver_fn *deliver;
    void *ctx;
    struct qn_node_set children;
    struct qn_node_set down;
    struct qn_node_set listen; /* peers to receive from, besides the parent */
    struct qn_node_set dirty;  /* queuepairs used since they were flushed
                                  clean */
    uint64_t *drops;           /* [members] by child */
    qn_node_t cursor;          /* look at `others` from here on next */
    bool parent_first;         /* in the next poll */
    bool delivering;           /* inside a call of `deliver` */

    /* They follow from the above: context.c, qn_context_derive. */
    bool parent_lives;         /* there is one, and it is not down */
    struct qn_node_set living; /* children that are not down */
    struct qn_node_set others; /* `listen` but the parent, not down */

    /* How each peer is read, by messages or by frames: see forward.c. */
    uint8_t *view;         /* [members] by peer: QN_VIEW_* */
    qn_node_t cut_through; /* to be read by frames: the parent; QN_NO_MEMBER */
    struct qn_forward_in *in; /* [members] by peer */

    /* Inner nodes: the last long message, in[source], and the nodes that still
       get it. */
    qn_node_t source;
    uint32_t *sent;           /* [members] by node, bytes */
    struct qn_node_set to;    /* nodes that are being sent it */
    struct qn_node_set abort; /* nodes, once children, that are owed an
                                 ABORT */
    bool owing;               /* false: `to` and `abort` are empty */
};

static inline bool is_root(const struct qn_context *c)
{
    return c->parent == c->self;
}

/** The parent, or what is down, is another one: compute what follows. */
void qn_context_derive(struct qn_context *c);

/* --- pending.c: what the children are owed ------------------------------- */

/** Send all children what they are owed and have room for. `owing` comes first:
 *  each turn asks, and usually no child is owed anything. */
void qn_pending_pay(struct qn_context *c);

static inline void qn_pending_catch_up(struct qn_context *c)
{
    if (c->owing) {
        qn_pending_pay(c);
    }
}

/** Send a child what it is owed, in order.
 *  @return true if it is owed nothing more: a new message may follow. */
bool qn_pending_ready(struct qn_context *c, qn_node_t child);

/** A long message begins, which all children get that live. */
void qn_pending_begin(struct qn_context *c);

/** Send the children of `to` what is here of the long message. */
void qn_pending_send(struct qn_context *c);

/** The long message is given up for those that have not got all of it, but for
 *  the nodes of `keep` (NULL: none is kept). It is counted as dropped; one that
 *  got its beginning gets an ABORT. */
void qn_pending_drop(struct qn_context *c, const struct qn_node_set *keep);

/** The long message will never be complete: as drop, for all and not counted.
 */
void qn_pending_cut(struct qn_context *c);

/** True while a node is owed something which is here. */
bool qn_pending_here(const struct qn_context *c);

static inline bool qn_pending_any(const struct qn_context *c)
{
    return c->owing && qn_pending_here(c);
}

/** True if such a node has room. */
bool qn_pending_has_room(const struct qn_context *c);

/* --- forward.c ----------------------------------------------------------- */

/** Receive one frame or message from a living peer, deliver it, and forward it
 *  if that is the parent. @return false: none was there. */
bool qn_forward_receive(struct qn_context *c, qn_node_t from);

/** True if qn_forward_receive would receive something. */
bool qn_forward_has(struct qn_context *c, qn_node_t from);

/** `parent` and `children` are new: abort what cannot go on, and choose how
 *  each peer is read. @return false: an inner node has no memory to read its
 *  parent by frames, and reads it by messages. */
bool qn_forward_reroot(struct qn_context *c);

/** A peer ended. */
void qn_forward_down(struct qn_context *c, qn_node_t peer);

/** Free the bodies. */
void qn_forward_fini(struct qn_context *c);

#endif
