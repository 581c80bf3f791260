#ifndef QN_GROUP_GROUP_INTERNAL_H
#define QN_GROUP_GROUP_INTERNAL_H

/**
 * The state of a context, and the part of it that relay.c works on: what comes
 * from the parent and goes to the children. For this folder only.
 */

#include "core/group/backlog_internal.h"
#include "core/group/group.h"

struct qn_context {
    qn_node_t self;
    qn_node_t parent; /* == self at the root */
    uint32_t child_count;
    qn_node_t child[QN_NODES_MAX]; /* in send order */
    uint64_t below[QN_NODES_MAX];  /* by child: it and all below it */
    struct qn_qp **qp;             /* by node */
    qn_deliver_fn *deliver;
    void *ctx;
    uint64_t children; /* all masks are of nodes */
    uint64_t down;
    uint64_t dirty; /* queuepairs used since they were flushed clean */
    uint64_t drops[QN_NODES_MAX];

    /* Inner nodes: the last long message and who still gets it. */
    uint8_t *body;      /* [QN_MSG_MAX], NULL elsewhere */
    bool open;          /* frames of it are still to come */
    uint32_t total;     /* its bytes */
    uint32_t got;       /* of which arrived */
    uint32_t first_len; /* bytes of its FIRST */
    uint32_t more_len;  /* of its longest other frame */
    uint32_t sent[QN_NODES_MAX];
    uint64_t to;     /* children that are being sent it */
    uint64_t missed; /* children that had no place for it */
    uint64_t abort;  /* children that are owed an ABORT */

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
    return !is_root(c) && (c->down & bit(c->parent)) == 0;
}

/** Receive one frame (inner node) or message (leaf) from the living parent,
 *  forward and deliver. @return false: none was there. */
bool qn_relay_receive(struct qn_context *c);

/** Send all children what they are owed and have room for. */
void qn_relay_catch_up(struct qn_context *c);

/** Mask of children that are owed something which is here. */
uint64_t qn_relay_owed(const struct qn_context *c);

/** A neighbour ended. */
void qn_relay_down(struct qn_context *c, qn_node_t peer);

#endif
