#ifndef QN_COLL_LARGE_SCHEDULE_H
#define QN_COLL_LARGE_SCHEDULE_H

/**
 * What one member does in a large collective: a sequence of steps, of which
 * each waits for another member, copies, combines, or says how far this member
 * has come. What runs them is not known here (large.h; tests interpret them).
 *
 * *Progress.* Each member has one word, which only it raises. In an operation
 * it takes values from 1 on:
 *
 *     1 ..           entered: rounds of the entry barrier, or only 1
 *     entered + k    the k-th thing that others wait for, as the variant has it
 *     done           its own part is over; then rounds of the exit barrier
 *
 * `span` is above all of them, the same at all members, and so the distance of
 * an operation's values from those of the next one. A member that waits for a
 * value of another member computes it from the plan: no message says more than
 * "so far".
 *
 * *Buffers.* A member shows one buffer to others in an operation: pulls read
 * there, pushes write there.
 *
 * Pure, any thread. No allocation.
 */

#include "core/coll/large/large_tree.h"

/** When others may use a member's buffers, and when it may use them again. */
enum qn_large_sync {
    QN_LARGE_NONE, /* entry: at once, all have given the same places in their
                      memory; exit: when the next operation begins */
    QN_LARGE_OWN,  /* entry: when it has entered; exit: when it has left */
    QN_LARGE_ALL,  /* when all have */
};

/** One operation. All members have the same. */
struct qn_large_plan {
    const struct qn_large_variant *variant;
    const struct qn_shape *tree; /* broadcast, reduce: rooted at root; a flat
                                    one has all others below it */
    const struct qn_large_place *place; /* [n]; NULL: one node */
    uint32_t n, root;
    uint64_t bytes;     /* broadcast, reduce: the vector; else of each member */
    uint64_t threshold; /* of the ring, bytes */
    bool ordered;       /* reduce: in rank order; the operator needs it */
    enum qn_large_sync entry, exit;
};

enum qn_large_buffer {
    QN_LARGE_IN,
    QN_LARGE_OUT,
    QN_LARGE_WORK,  /* an intermediate buffer */
    QN_LARGE_SHOWN, /* of another member: what it shows */
};

struct qn_large_at {
    enum qn_large_buffer buffer;
    uint32_t member; /* SHOWN */
    uint64_t offset; /* bytes */
};

enum qn_large_kind {
    QN_LARGE_WAIT,    /* until `member` has come to `value` */
    QN_LARGE_COPY,    /* `bytes`: to = from */
    QN_LARGE_COMBINE, /* `bytes`: to = left (+) from */
    QN_LARGE_RAISE,   /* the own word to `value` */
};

struct qn_large_step {
    enum qn_large_kind kind;
    uint32_t member, value;
    uint64_t bytes;
    struct qn_large_at to, left, from;
};

/** Runs, or keeps, one step. @return QN_OK, or an error, which ends all. */
typedef int qn_large_emit_fn(void *ctx, const struct qn_large_step *step);

/** The steps of member `self` until it has left, but for what it leaves to the
 *  next operation if `exit` is NONE. @return QN_OK or what `emit` returned. */
int qn_large_steps(const struct qn_large_plan *p, uint32_t self,
                   qn_large_emit_fn *emit, void *ctx);

/** Waits until no other member reads `self`'s buffers any more: with exit NONE
 *  the steps that are left. */
int qn_large_steps_left(const struct qn_large_plan *p, uint32_t self,
                        qn_large_emit_fn *emit, void *ctx);

/** Waits until no other member uses `self`'s buffers, whichever way the
 *  operation has ended for it. */
int qn_large_steps_over(const struct qn_large_plan *p, uint32_t self,
                        qn_large_emit_fn *emit, void *ctx);

/** Values of an operation; at least 1. */
uint64_t qn_large_span(const struct qn_large_plan *p);

/** What `member` shows. */
enum qn_large_buffer qn_large_shows(const struct qn_large_plan *p,
                                    uint32_t member);

/** Bytes of `self`'s intermediate buffer; 0: it needs none. */
uint64_t qn_large_work_bytes(const struct qn_large_plan *p, uint32_t self);

#endif
