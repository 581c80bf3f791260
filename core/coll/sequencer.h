#ifndef QN_COLL_SEQUENCER_H
#define QN_COLL_SEQUENCER_H

/**
 * Several sources of one sequence. Any member may be a source: it sends what it
 * submits to the root as a request, and the root begins it as the next
 * operation of the flow (coll_flow.h), whose number is its place in the
 * sequence.
 *
 *     source  submit --- request {source, incarnation, number} ---> root
 *     root    admit: the next of this source; begin it as operation k
 *     all     deliver k: observe
 *     source  ended: k is complete at the root, or at a companion here
 *
 * Each source numbers its own submissions from 1 in each incarnation, and the
 * tag travels with the payload. So a request that is sent again is found and
 * dropped, and every member knows from what it has delivered up to where each
 * source has come: any of them can be the next root.
 *
 * Requests have credit of their own: it bounds the submissions of a source that
 * have not ended. So requests need room for the credit and no more, whatever
 * the window of the flow is.
 *
 * Pure: no allocation, one thread per struct.
 */

#include <stdint.h>

#include "core/node.h"

struct qn_tag {
    uint32_t source;      /* a member */
    uint32_t incarnation; /* of the source, from 1 */
    uint64_t number;      /* of the submission, from 1 */
};

enum qn_tag_verdict {
    QN_TAG_NEXT,  /* the next one of its source */
    QN_TAG_OLD,   /* it was there before, or its incarnation has ended */
    QN_TAG_EARLY, /* one before it is missing */
};

/** Up to where each source has come. */
struct qn_sequencer {
    uint32_t members;
    struct qn_tag *last; /* [members] by source; the caller's. Kept */
};

/** @param last  [members] Filled: none of any source. */
void qn_sequencer_init(struct qn_sequencer *s, struct qn_tag *last,
                       uint32_t members);

/** What a request is; nothing changes. */
enum qn_tag_verdict qn_sequencer_judge(const struct qn_sequencer *s,
                                       const struct qn_tag *t);

/** What a request is. Only QN_TAG_NEXT changes the state: the tag is the last
 *  of its source from now on. A source that is no member: QN_TAG_OLD. */
enum qn_tag_verdict qn_sequencer_admit(struct qn_sequencer *s,
                                       const struct qn_tag *t);

/** An operation with this tag was delivered here. */
void qn_sequencer_observe(struct qn_sequencer *s, const struct qn_tag *t);

/** One member as a source. */
struct qn_source {
    struct qn_tag last; /* submitted */
    uint64_t ended;     /* all submissions up to it */
    uint32_t credit;    /* submissions that have not ended, at most */
};

/** @param credit  At least 1. */
void qn_source_init(struct qn_source *s, qn_node_t self, uint32_t incarnation,
                    uint32_t credit);

/** @param tag  Filled: of the next request.
 *  @return QN_OK; QN_EAGAIN: no credit. */
int qn_source_submit(struct qn_source *s, struct qn_tag *tag);

/** The submissions up to `number` have ended: all members have them. An older
 *  number changes nothing.
 *  @return QN_OK; QN_ECORRUPT: it was not submitted. */
int qn_source_end(struct qn_source *s, uint64_t number);

/** The submissions behind `ended` are sent again, in order, to a new root.
 *  @return how many. */
static inline uint32_t qn_source_open(const struct qn_source *s)
{
    return (uint32_t)(s->last.number - s->ended);
}

#endif
