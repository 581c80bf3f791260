#ifndef QN_COLL_LARGE_SCHEDULE_INTERNAL_H
#define QN_COLL_LARGE_SCHEDULE_INTERNAL_H

/**
 * What the two halves of the schedule share: writing of steps. One thread per
 * struct.
 */

#include "core/coll/large/large_schedule.h"

struct qn_large_writer {
    const struct qn_large_plan *p;
    uint32_t self;
    qn_large_emit_fn *emit;
    void *ctx;
    int rc;           /* the first error; nothing is emitted behind it */
    uint32_t entered; /* the last value of entering */
    uint32_t done;    /* its own part is over */
};

void qn_large_write(struct qn_large_writer *w, const struct qn_large_step *s);

/** Until `member` has done the k-th thing of its work, from 1. */
void qn_large_write_wait(struct qn_large_writer *w, uint32_t member,
                         uint32_t k);

/** Until the buffer that `member` shows may be used. */
void qn_large_write_await(struct qn_large_writer *w, uint32_t member);

/** Until `member` is done. */
void qn_large_write_until_done(struct qn_large_writer *w, uint32_t member);

/** The k-th thing of the own work is done. */
void qn_large_write_raise(struct qn_large_writer *w, uint32_t k);

void qn_large_write_copy(struct qn_large_writer *w, struct qn_large_at to,
                         struct qn_large_at from, uint64_t bytes);

static inline struct qn_large_at qn_large_own(enum qn_large_buffer buffer,
                                              uint64_t offset)
{
    return (struct qn_large_at){.buffer = buffer, .offset = offset};
}

static inline struct qn_large_at qn_large_of(uint32_t member, uint64_t offset)
{
    return (struct qn_large_at){QN_LARGE_SHOWN, member, offset};
}

/** The work between entry and exit, what is left behind it, what is shown and
 *  how much intermediate memory it takes: vectors (broadcast, reduce) and
 *  blocks (scatter, gather). */
void qn_large_vectors(struct qn_large_writer *w);
void qn_large_vectors_left(struct qn_large_writer *w);
enum qn_large_buffer qn_large_vectors_show(const struct qn_large_plan *p,
                                           uint32_t member);
uint64_t qn_large_vectors_work(const struct qn_large_plan *p, uint32_t self);
void qn_large_blocks(struct qn_large_writer *w);
void qn_large_blocks_left(struct qn_large_writer *w);
enum qn_large_buffer qn_large_blocks_show(const struct qn_large_plan *p,
                                          uint32_t member);
uint64_t qn_large_blocks_work(const struct qn_large_plan *p, uint32_t self);

#endif
