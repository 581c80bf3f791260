#ifndef QN_COLL_COLL_VIEW_H
#define QN_COLL_COLL_VIEW_H

/**
 * Views: how the living members go on after a death.
 *
 * In a view a fixed set of members runs over fixed wirings. A member that dies
 * ends it: all others get QN_EPEERDEAD (coll_flow.h). Then the decider of
 * views (the caller; in a server the utility log)
 *
 *     1. asks each living member to leave, and for its report: how far it has
 *        come. From then on it delivers nothing in the old view;
 *     2. decides the next view from the reports of all of them;
 *     3. tells it to each, with its wiring, and each enters it.
 *
 * If a member dies meanwhile, this begins again, with a higher number. Members
 * may by then be in different views: the numbers of operations are the same in
 * all of them, so their reports can be compared.
 *
 * What one living member has delivered stays: the member that has most becomes
 * the root and sends again what another lacks. What only the dead have
 * delivered is void, and its numbers are used again.
 *
 *     numbers  ...  before | ...... done | ......
 *                   all    | some have   | no living
 *                   have   | it: sent    | member
 *                   it     | again       | has it
 *
 * A node may join a sequence in a view, a new incarnation for instance. It
 * brings the state of a member that has delivered least, as of that member's
 * report, and reports the same number.
 *
 * Pure: any thread.
 */

#include <stdbool.h>

#include "core/node_set.h"

struct qn_view {
    uint16_t number; /* of all members; it may wrap */
    qn_node_t root;  /* a member that has delivered up to `done` */
    uint32_t before; /* all members have delivered up to it */
    uint32_t done;   /* the greatest number that one of them has delivered */
    uint64_t member[QN_NODE_SET_WORDS(QN_MEMBERS_MAX)]; /* a set: node_set.h */
};

static inline bool qn_view_has(const struct qn_view *v, qn_node_t node)
{
    return node < QN_MEMBERS_MAX &&
           (v->member[node / 64] >> node % 64 & 1) != 0;
}

struct qn_view_report {
    qn_node_t member;
    uint32_t delivered; /* up to this number */
    uint32_t released;  /* it can send again what it has delivered after this */
};

/** @param out     Filled; untouched on failure.
 *  @param number  Above those of all views that one of the members may be in.
 *  @param report  [n] of each living member; borrowed. The one that has
 *                 delivered most becomes the root; of several, the first: name
 *                 a living root first.
 *  @return QN_OK; QN_EINVAL: n is 0, or no node; QN_ECORRUPT: reports that
 * members of one sequence cannot have made. */
int qn_view_decide(struct qn_view *out, uint16_t number,
                   const struct qn_view_report *report, uint32_t n);

/** Whether view a is newer than b: numbers of views wrap. */
static inline bool qn_view_newer(uint16_t a, uint16_t b)
{
    return (int16_t)(uint16_t)(a - b) > 0;
}

/** Whether number a is before b: numbers wrap. */
static inline bool qn_view_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

#endif
