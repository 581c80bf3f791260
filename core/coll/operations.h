#ifndef QN_COLL_OPERATIONS_H
#define QN_COLL_OPERATIONS_H

/**
 * The operations of one member in their order, over trees: a pure function of
 * its inputs; coll.h moves its messages over queuepairs.
 *
 * The flow machine (coll_flow.h) says when which message comes and goes, a slot
 * (coll_slot.h) of each operation says what is in it.
 *
 * Operations that *end alike*, through the deaths of any members, if the option
 * says so. Then
 *
 *   - a member keeps what the last operations gave to all, because another may
 *     lack it;
 *   - a reduction or a gather is complete nowhere before it is at the root: the
 *     root tells all;
 *   - an exchange is complete at a member when all have begun it, as an
 *     all-reduction over a tree is;
 *   - of broadcasts and scatters, those whose number is a multiple of a period
 *     are acknowledged. So the root is at most a window and a period ahead of
 *     the last operation that all have begun, and no member needs what another
 *     does not keep.
 *
 * How far two members can be apart, with window w and period p: if one has
 * completed operation j, the root has begun it, so it has completed j - w. Of
 * the p operations up to there one was complete at the root only when all had
 * begun it, and these had completed all up to w before it:
 *
 *     j - 2 w - p     j - w - p          j - w             j
 *          |              |                |               |
 *     all have        all have        the root has     a member has
 *     completed       begun           completed        completed
 *
 * Views (coll_view.h): `leave` ends the present one and reports, `enter` begins
 * the next. Operations up to the view's `done` have completed and others are
 * void: their numbers are used again. In the new view operations that some
 * members lack are run again as all-reductions in which those contribute that
 * have the result. They wait until each member has started them, as operations
 * do.
 *
 * Threads: one. Nothing blocks; create and enter allocate.
 */

#include "core/coll/coll_flow.h"
#include "core/coll/coll_view.h"
#include "core/coll/payload/coll_call.h"

struct qn_operations_view {
    qn_node_t self;             /* a member */
    const struct qn_tree *down; /* borrowed */
    const struct qn_tree *up;   /* borrowed; NULL: `down` */
};

struct qn_operations_opts {
    struct qn_operations_view first;
    uint32_t window;
    uint32_t bytes_max;
    uint32_t head_bytes; /* room in front of each payload; a multiple of 8 */
    uint32_t before;     /* the number before the first operation */
    bool alike;
    bool exchange;   /* of coll.h */
    uint16_t number; /* of the first view */
};

#define QN_OPERATIONS_KINDS 8u /* of operations as they run, at most */

/** Broadcasts and scatters that end alike, from one that is acknowledged to the
 *  next. */
static inline uint32_t qn_operations_period(uint32_t window)
{
    return window < 8 ? 8 : window;
}

struct qn_operations;

/** @return QN_OK; QN_EINVAL: no valid trees, `self` is no member, or window;
 *  QN_ENOMEM. */
int qn_operations_create(struct qn_operations **out,
                         const struct qn_operations_opts *o);
void qn_operations_destroy(struct qn_operations *p); /* NULL is fine */

/* ---- the caller: as coll.h ---- */

int qn_operations_start(struct qn_operations *p,
                        const struct qn_coll_call *call, uint32_t *number);
int qn_operations_state(const struct qn_operations *p, uint32_t number);
uint32_t qn_operations_last(const struct qn_operations *p);
int qn_operations_leave(struct qn_operations *p, struct qn_view_report *out);

/** A node has ended that may be no neighbour: the flow machine has heard of it
 *  before. Where operations end alike, and it is a member, the view ends. */
void qn_operations_down(struct qn_operations *p, qn_node_t node);

/** Whether a view may be entered, by its number. @return QN_OK; QN_EPERM:
 *  operations do not end alike; QN_EINVAL: it is not newer than the present
 *  one, or the last. */
int qn_operations_await(const struct qn_operations *p,
                        const struct qn_view *view);

/** QN_EPERM and QN_EINVAL by number change nothing. */
int qn_operations_enter(struct qn_operations *p, const struct qn_view *view,
                        const struct qn_operations_view *o);

/* ---- between the flow machine and its messages ---- */

/** Of the present view, or of the last one. */
struct qn_coll_flow *qn_operations_flow(struct qn_operations *p);
const struct qn_wiring *const *qn_operations_wiring(
    const struct qn_operations *p); /* [qn_operations_kinds] */
uint32_t qn_operations_kinds(const struct qn_operations *p);

/** The payload of a message that the flow is about to take. Borrowed.
 *  @return QN_OK or QN_ECORRUPT. */
int qn_operations_take(struct qn_operations *p, const struct qn_flow_head *h,
                       const void *bytes, size_t len);

/** The payload of a message that goes out, behind `head_bytes` that may be
 *  written to. */
uint8_t *qn_operations_give(struct qn_operations *p,
                            const struct qn_flow_send *s, size_t *len);

/** The flow had an input. */
void qn_operations_settled(struct qn_operations *p);

#endif
