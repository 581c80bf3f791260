#ifndef QN_COLL_COLL_FLOW_INTERNAL_H
#define QN_COLL_COLL_FLOW_INTERNAL_H

/*
 * State. All progress is by number: `fired[s]` says up to which operation stage
 * s has fired, `delivered`, `begun`, `worked` and `completed` likewise. Of an
 * operation in the window there is a slot with its kind, the messages that are
 * in (a byte per link: a message that comes twice is corrupt, and a death must
 * know which are missing), and how many of its own are not sent.
 *
 * An operation of fewer stages than others passes those that it lacks at once,
 * so operations of different kinds keep one order.
 *
 * What has fired is a queue of {operation, stage}; its head's successors are
 * sent to one after the other. One queue for all successors: a successor
 * without room holds the others back, but no longer than until it has read, and
 * it always reads (coll_flow.h, Room).
 *
 * Cumulative acknowledgements are not in that queue. Those of up to `owed` have
 * fired and those of up to `told` are sent, both numbers of one stage:
 * QN_FLOW_ACKS.
 *
 * Numbers wrap: they are compared by difference.
 */

#include "core/coll/coll_flow.h"

/* The stage of an acknowledged broadcast that goes up. */
#define QN_FLOW_ACKS 1u

struct qn_flow_slot {
    uint8_t kind; /* QN_FLOW_KINDS_MAX: not known */
    bool *has;    /* [preds of any kind] by link: its message is in */
    uint32_t got[QN_STAGES_MAX]; /* messages */
    uint32_t unsent;             /* of the stages that have fired */
};

struct qn_flow_firing {
    uint32_t number;
    uint8_t stage;
};

struct qn_flow_neighbour {
    qn_node_t node;
    bool gone; /* it has ended, or takes part no more */
};

struct qn_coll_flow {
    const struct qn_wiring *wiring[QN_FLOW_KINDS_MAX];
    uint32_t kinds;
    uint32_t window;
    bool called;     /* every member begins each operation */
    bool cumulative; /* acknowledgements; elsewhere `told` is not used */
    uint32_t stages; /* of the wiring that has most */
    const struct qn_link *ack; /* cumulative: to the parent; or NULL */
    uint32_t changes;          /* inputs so far; it may wrap */

    uint32_t begun;
    uint32_t worked;
    uint32_t delivered;
    uint32_t fired[QN_STAGES_MAX];
    uint32_t told; /* the parent: all up to it are acknowledged */
    uint32_t completed;
    uint32_t highest; /* that is known here */

    int error;       /* no operation begins any more */
    uint32_t failed; /* the first that fails, once `error` is set */

    struct qn_flow_slot *slot; /* [window] by number */
    struct qn_flow_firing
        *queue; /* [queue_mask + 1], at least window * stages */
    uint32_t queue_mask;
    uint32_t head, tail; /* of queue; run free */
    uint32_t at;         /* the head's next successor */

    struct qn_flow_neighbour *neighbour; /* [neighbours] in ascending order */
    uint32_t neighbours;
    uint32_t untold; /* neighbours before this one are told */
};

/* a is before b */
static inline bool qn_flow_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

static inline struct qn_flow_slot *qn_flow_slot_of(const struct qn_coll_flow *f,
                                                   uint32_t number)
{
    return &f->slot[number & (f->window - 1)];
}

static inline bool qn_flow_is_known(const struct qn_flow_slot *s)
{
    return s->kind != QN_FLOW_KINDS_MAX;
}

#endif
