#ifndef QN_COLL_REQUEST_LANES_H
#define QN_COLL_REQUEST_LANES_H

/**
 * Requests of a sequence (sequence.h) on queuepairs: what sources submit goes
 * to the root of the view, and the root says up to where all have come. On
 * lanes of their own: requests that wait for the window wait there and hold
 * nothing else up, and of one source there are never more than its credit.
 *
 *     4 bytes  number  of the root: the stable number; of a request: 0
 *     2        view    earlier ones are dropped, for a later one the sender has
 *                      left this view
 *     2        0: a request, its tag and message follow; 1: from the root
 *
 * Threads: one. Nothing blocks; nothing but init allocates.
 */

#include "core/coll/sequence.h"
#include "core/qp.h"

/** Fields are private. */
struct qn_request_lanes {
    struct qn_sequence *s;
    struct qn_qp **qp; /* [members] by node; NULL: none, or it has ended */
    bool *is_used;     /* [members] to be flushed */
    uint32_t members;
    qn_node_t root;
    bool is_root;
    uint16_t view;
    alignas(16) uint8_t own[QN_INPLACE_MAX]; /* a short message */
};

/** @param members  Of qp; 0: there are no requests.
 *  @return QN_OK or QN_ENOMEM. `fini` frees what there is in any case. */
int qn_request_lanes_init(struct qn_request_lanes *l, struct qn_sequence *s,
                          uint32_t members);
void qn_request_lanes_fini(struct qn_request_lanes *l);

/** The sequence has entered a view.
 *  @param qp  [members] by node; NULL: no member, or the node itself. Borrowed,
 *             the queuepairs are kept. */
void qn_request_lanes_enter(struct qn_request_lanes *l, qn_node_t self,
                            const struct qn_view *view, struct qn_qp **qp);

/** The root looks once at each lane, others at the root's; and send what there
 *  is. @return true if something moved. */
bool qn_request_lanes_poll(struct qn_request_lanes *l);

/** True if poll would move something. */
bool qn_request_lanes_pending(struct qn_request_lanes *l);

/** @return true while something waits for room. */
bool qn_request_lanes_flush(struct qn_request_lanes *l);

/** A node has ended: its queuepair is used no more. */
void qn_request_lanes_down(struct qn_request_lanes *l, qn_node_t node);

#endif
