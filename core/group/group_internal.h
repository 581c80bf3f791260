#ifndef QN_GROUP_GROUP_INTERNAL_H
#define QN_GROUP_GROUP_INTERNAL_H

/**
 * The state of a context, and the part of it that forward.c works on: what
 * comes from the peers and what of it goes to the children. For this folder
 * only.
 */

#include "core/group/backlog_internal.h"
#include "core/group/group.h"

/* A long message that comes from one peer frame by frame. */
struct qn_forward_in {
    uint8_t *body;      /* [QN_MSG_MAX], owned; NULL: not read by frames */
    bool open;          /* frames of it are still to come */
    uint32_t total;     /* its bytes */
    uint32_t got;       /* of which arrived */
    uint32_t first_len; /* bytes of its FIRST */
    uint32_t more_len;  /* of its longest other frame */
};

struct qn_context {
    qn_node_t self;
    qn_node_t parent; /* == self at the root; no member: QN_NODES_MAX */
    qn_node_t sender; /* of what is being delivered */
    uint32_t child_count;
    qn_node_t child[QN_NODES_MAX]; /* in send order */
    uint64_t below[QN_NODES_MAX];  /* by child: it and all below it */
    struct qn_qp **qp;             /* by node */
    qn_deliver_fn *deliver;
    void *ctx;
    uint64_t up; /* the parent; all masks are of nodes */
    uint64_t children;
    uint64_t listen; /* peers to receive from, besides the parent */
    uint64_t down;
    uint64_t dirty; /* queuepairs used since they were flushed clean */
    uint64_t drops[QN_NODES_MAX];
    qn_node_t cursor;  /* the peer of `listen` to look at next */
    bool parent_first; /* in the next poll */
    bool delivering;   /* inside a call of `deliver` */

    /* How each peer is read, by messages or by frames: see forward.c. */
    uint64_t framed;
    uint64_t cut_through; /* peers to be read by frames: the parent or none */
    uint64_t inside;      /* peers of which a message may be half read */
    struct qn_forward_in in[QN_NODES_MAX];

    /* Inner nodes: the last long message, in[source], and the nodes that still
       get it. */
    qn_node_t source;
    uint32_t sent[QN_NODES_MAX];
    uint64_t to;     /* nodes that are being sent it */
    uint64_t missed; /* children that had no place for it */
    uint64_t abort;  /* nodes, once children, that are owed an ABORT */

    /* Acknowledged form. */
    bool acked;
    uint64_t number;                /* last broadcast (root) or delivered */
    uint64_t told;                  /* last number acknowledged to the parent */
    uint64_t heard[QN_NODES_MAX];   /* by child: acknowledged so far */
    uint64_t bytes[QN_ACKED_COUNT]; /* root: sum of sizes up to number i */
    struct qn_backlog backlog;      /* inner nodes */
};

static inline uint64_t bit(qn_node_t node)
{
    return UINT64_C(1) << node;
}

static inline bool is_root(const struct qn_context *c)
{
    return c->parent == c->self;
}

static inline uint64_t living_children(const struct qn_context *c)
{
    return c->children & ~c->down;
}

static inline bool parent_alive(const struct qn_context *c)
{
    return (c->up & ~c->down) != 0;
}

/** Receive one frame or message from a living peer, deliver it, and forward it
 *  if that is the parent. @return false: none was there. */
bool qn_forward_receive(struct qn_context *c, qn_node_t from);

/** True if qn_forward_receive would receive something. */
bool qn_forward_has(struct qn_context *c, qn_node_t from);

/** Send all children what they are owed and have room for. */
void qn_forward_catch_up(struct qn_context *c);

/** Send a child what it is owed, in order.
 *  @return true if it is owed nothing more: a new message may follow. */
bool qn_forward_ready(struct qn_context *c, qn_node_t child);

/** Mask of nodes that are owed something which is here. */
uint64_t qn_forward_pending(const struct qn_context *c);

/** `parent` and `children` are new: abort what cannot go on, and choose how
 *  each peer is read. @return false: an inner node has no memory to read its
 *  parent by frames, and reads it by messages. */
bool qn_forward_reroot(struct qn_context *c);

/** A peer ended. */
void qn_forward_down(struct qn_context *c, qn_node_t peer);

/** Free the bodies. */
void qn_forward_fini(struct qn_context *c);

#endif
