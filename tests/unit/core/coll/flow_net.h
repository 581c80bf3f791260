#ifndef QN_TESTS_UNIT_CORE_COLL_FLOW_NET_H
#define QN_TESTS_UNIT_CORE_COLL_FLOW_NET_H

/**
 * A group of flow machines in virtual time, in one thread: lanes with a delay
 * for each message and bounded room, local work that takes time, and
 * operations that are begun whenever the window lets them, or later.
 *
 * The net checks at every member that operations are delivered in order, once,
 * with the root's payload; that the results of reductions are right; and counts
 * messages and hops.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/coll/coll_flow.h"

#define FLOW_NET_MAX 300u

struct flow_message {
    struct qn_flow_head head;
    uint64_t value;
    uint64_t visible;     /* time */
    uint32_t least, most; /* hops of the paths that led here */
};

struct flow_lane {
    uint32_t from, to;
    uint32_t head, tail;       /* run free */
    uint64_t last;             /* when the last message is visible */
    struct flow_message *ring; /* [room] */
};

/** One operation at one member. */
struct flow_op {
    uint64_t value;       /* the root's payload */
    uint64_t sum;         /* what was combined so far, or the result */
    uint32_t least, most; /* hops */
};

struct flow_member {
    struct qn_coll_flow *f;
    struct qn_wiring *wiring[QN_FLOW_KINDS_MAX];
    struct flow_lane *lane; /* [lanes] into this member */
    uint32_t lanes;
    uint32_t begun;
    uint32_t delivered; /* number */
    uint32_t completed; /* number */
    uint32_t handled;   /* messages sent and received */
    uint64_t begins_at; /* time: not before it */
    bool ended;
    struct flow_op *op; /* [window] by number */
};

struct flow_net;
typedef void flow_net_fn(struct flow_net *net, uint32_t member, uint64_t arg);

struct flow_event {
    uint64_t time;
    uint32_t member;
    uint32_t number;   /* of an operation whose work is done */
    flow_net_fn *call; /* NULL: none */
    uint64_t arg;
    bool work; /* if not: look at the lanes */
};

struct flow_net {
    uint32_t n, kinds, window, room;
    uint32_t first; /* number of the first operation */
    uint32_t ops;   /* to do */
    bool reorder;   /* lanes are no FIFOs */
    uint32_t delay; /* of a message: 1 .. delay */
    uint32_t work;  /* of local work: 0 .. work */
    uint32_t late;  /* from one begin to the next: 0 .. late */
    uint64_t now, random;
    uint64_t messages;    /* sent */
    uint32_t least, most; /* hops of the messages that the root gets back */
    struct flow_member member[FLOW_NET_MAX];
    struct flow_event *heap;
    uint32_t events, heap_size;
    uint32_t (*kind_of)(uint32_t number); /* NULL: kind 0 */
    void (*on_deliver)(struct flow_net *net, uint32_t member, uint32_t number);
    void (*on_complete)(struct flow_net *net, uint32_t member, uint32_t number);
    uint64_t (*payload)(struct flow_net *net, uint32_t number); /* of the root,
                                                     as it begins */
    uint32_t (*allowed)(struct flow_net *net); /* operations that the root may
                                                  have begun; NULL: all */
    void *ctx;
    uint64_t end; /* flow_net_run stops at this time; 0: never */
    struct {
        bool on;
        uint32_t member;
        uint32_t sends;
    } cut; /* flow_net_run stops when a member would send more than these */
};

/** Set n, kinds, and each member's wirings first; then the other options. */
void flow_net_start(struct flow_net *net);

/** Run until nothing happens any more. */
void flow_net_run(struct flow_net *net);

/** A member ends now. Its messages that are visible are read by all, later ones
 *  are not; then its neighbours hear of it. */
void flow_net_kill(struct flow_net *net, uint32_t member);

/** Let a member look again, and begin what it may. */
void flow_net_wake(struct flow_net *net, uint32_t member);

/** Call `call` at a time, and let the member look again. */
void flow_net_call(struct flow_net *net, uint64_t time, uint32_t member,
                   flow_net_fn *call, uint64_t arg);

void flow_net_free(struct flow_net *net);

/** Below `bound`. */
uint32_t flow_net_draw(struct flow_net *net, uint32_t bound);

/** The root's payload of an operation, if `payload` is NULL. */
uint64_t flow_net_value(uint32_t number);

/** What all contribute to a reduction, added. */
uint64_t flow_net_sum(const struct flow_net *net, uint32_t number);

/** A random tree over 0 .. n-1 with this root, or any (QN_NO_MEMBER). */
void flow_net_tree(struct flow_net *net, struct qn_tree *t, uint32_t root);

/** Wire all members for one kind of operation over a pair of trees. */
void flow_net_wire(struct flow_net *net, uint32_t kind,
                   const struct qn_wiring_opts *o);

/** Wire all members for a ring; node[] may be NULL. */
void flow_net_ring(struct flow_net *net, const struct qn_diamond_ring *r,
                   bool observed);

#endif
