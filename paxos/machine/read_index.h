#ifndef QN_PAXOS_MACHINE_READ_INDEX_H
#define QN_PAXOS_MACHINE_READ_INDEX_H

/**
 * The read index by message, the origin's part (PROTOCOL.md 8.3): which reads
 * may be answered from what is applied here.
 *
 * Reads are numbered by the question that is asked for them: a read has the
 * number of the first question that leaves after it has come. All reads of a
 * turn have the same. An answer to question n says up to which slot this node
 * must have applied before reads of numbers <= n may be answered: that slot was
 * decided when the answer was given, and all that had been acknowledged or read
 * anywhere before question n was asked lies at or below it.
 *
 *     ask          a new question; returns its number
 *     answer       the answer to it, or to a later one, has come
 *     reached      all reads of numbers <= the result may be answered
 *
 * Two answers are kept, the oldest that is not applied and the newest. So a
 * reader waits for one answer's slot at most, however fast others follow.
 *
 * Pure: no allocation, no clock. One thread. O(1).
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/clock.h"
#include "core/node.h"

/** An answer whose slot is not applied yet; number 0: none. */
struct qn_read_answer {
    uint64_t number;
    qn_slot_t slot;
};

/** Zero it to begin. Fields private. */
struct qn_read_index {
    uint64_t asked;    /* newest question */
    uint64_t answered; /* newest one that has an answer; <= asked */
    uint64_t reached;  /* all numbers <= it may be answered; <= answered */
    struct qn_read_answer oldest, newest;
    qn_time_t again_at; /* without an answer it is asked again then */
    qn_epoch_t sent_in; /* epoch whose leader was asked last */
};

/** @return the number of the new question. */
uint64_t qn_read_index_ask(struct qn_read_index *r);

/** Does a question wait for its answer? */
static inline bool qn_read_index_waits(const struct qn_read_index *r)
{
    return r->asked != r->answered;
}

/** Is the newest question to be sent (again), if `epoch` has a leader that
 *  answers? Yes, if it waits and was not sent to that leader, or long ago. */
bool qn_read_index_due(const struct qn_read_index *r, qn_epoch_t epoch,
                       qn_time_t now);

/** It is sent to the leader of `epoch`. */
void qn_read_index_sent(struct qn_read_index *r, qn_epoch_t epoch,
                        qn_time_t again_at);

/** An answer to question `number` has come: `slot`. One that was never asked,
 *  or is answered already, says nothing. @param applied  By this node. */
void qn_read_index_answer(struct qn_read_index *r, uint64_t number,
                          qn_slot_t slot, qn_slot_t applied);

/** The group goes on by force: answers whose slots are not applied name slots
 *  that may be lost. Their questions are asked again. */
void qn_read_index_void(struct qn_read_index *r);

/** @return up to which number reads may be answered from the state that has
 *  exactly the slots <= applied, and perhaps a part of the next one. */
uint64_t qn_read_index_reached(struct qn_read_index *r, qn_slot_t applied);

#endif
