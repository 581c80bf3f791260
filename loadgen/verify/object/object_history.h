#ifndef QN_LOADGEN_VERIFY_OBJECT_OBJECT_HISTORY_H
#define QN_LOADGEN_VERIFY_OBJECT_OBJECT_HISTORY_H

/**
 * Checks whether the history of a counter, a queue or a stack is linearizable.
 *
 * All operations are complete, and the object is empty at first. The values
 * that are put are distinct, which makes the checks exact and fast: a false
 * alarm or a miss is impossible, and there is no budget.
 *
 * - counter: the results are distinct and in the order of time. O(n log n).
 * - queue: the bad patterns of Henzinger, Sezgin and Vafeiadis
 *   ("Aspect-oriented linearizability proofs", 2013); the one for a take that
 *   finds nothing is that of Bouajjani, Emmi, Enea and Hamza ("On reducing
 *   linearizability to state reachability", 2015). O(n log n).
 * - stack: values are removed from below, one level after the other
 *   (stack_history.c has the proof). O(n * (log n + levels)), where the levels
 *   are at most the values that lie on the stack at the same time.
 *
 * An operation that responded before another one was invoked comes before it;
 * those with equal times overlap.
 *
 * Pure: allocates and frees, no IO, no clock; any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "core/base/clock.h"

enum qn_object_kind {
    QN_OBJECT_ADD,     /* 1 was added; value: what the counter was before */
    QN_OBJECT_PUT,     /* enqueued or pushed */
    QN_OBJECT_TAKE,    /* dequeued or popped */
    QN_OBJECT_NOTHING, /* a take that has found nothing; no value */
};

struct qn_object_record {
    qn_time_t invoked;   /* ns, before the call */
    qn_time_t responded; /* ns, after it; >= invoked */
    uint64_t value;
    uint8_t kind; /* enum qn_object_kind */
};

enum qn_object_fault {
    QN_OBJECT_NO_FAULT,  /* the history is linearizable */
    QN_OBJECT_PHANTOM,   /* taken, and never put; a result that is too large */
    QN_OBJECT_TWICE,     /* two takes, or two additions, with one value */
    QN_OBJECT_FUTURE,    /* taken before it was put */
    QN_OBJECT_REVERSED,  /* two values in conflict with time */
    QN_OBJECT_NOT_EMPTY, /* nothing found, while some value was certainly in */
    QN_OBJECT_NESTING,   /* of a stack: no value can lie below the others */
};

struct qn_object_verdict {
    enum qn_object_fault fault;
    size_t record[2]; /* records that show it; the second one may be the first
                         once more */
};

#define QN_OBJECT_RECORDS_MAX ((size_t)1 << 30)

/**
 * Check the additions of a counter.
 *
 * @param r      [n] in any order, all ADD. Borrowed.
 * @param first  What the counter was at first.
 * @param out    Filled.
 * @return QN_OK for any verdict; QN_ENOMEM; QN_EINVAL: n is too large, or a
 *         record of another kind.
 */
int qn_counter_history_check(const struct qn_object_record *r, size_t n,
                             uint64_t first, struct qn_object_verdict *out);

/** Check the PUT, TAKE and NOTHING of a queue. @return as above; QN_EINVAL also
 *  if a value is put twice. */
int qn_queue_history_check(const struct qn_object_record *r, size_t n,
                           struct qn_object_verdict *out);

/** The same for a stack. */
int qn_stack_history_check(const struct qn_object_record *r, size_t n,
                           struct qn_object_verdict *out);

/** A few words for a fault: "a value was taken twice". */
const char *qn_object_fault_text(enum qn_object_fault fault);

#endif
