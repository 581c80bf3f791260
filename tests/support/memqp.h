#ifndef QN_TESTS_SUPPORT_MEMQP_H
#define QN_TESTS_SUPPORT_MEMQP_H

/**
 * A queuepair in ordinary memory: the deterministic double of a transport, for
 * tests of what stands on core/qp.h (groups, the driver).
 *
 * Two bounded FIFOs of cells, one per direction, with the semantics of
 * core/qp.h: frames, staging of one message that does not fit, assembly, and
 * EAGAIN. What tests need besides:
 *
 *   - the cell size is free, so that short messages have many frames;
 *   - memqp_allow limits how many more frames an end may send, so that room
 *     ends at any chosen frame, and a source dies there if nobody calls it
 *     again;
 *   - the double asserts what a backend may rely on: frames form messages,
 *     views are not mixed, release follows peek;
 *   - memqp_inject puts any frame into the channel, and memqp_scribble changes
 *     one that its reader is looking at, as a peer gone wild would. A message
 * of one frame is shown in place, like the frames themselves.
 *
 * One thread; no doorbells (a test looks at every end in turn).
 */

#include "core/qp.h"

#define MEMQP_UNLIMITED UINT32_MAX

/** Make a channel: end[0] and end[1] are its two ends. cells >= 1 of
 *  1 <= cell_bytes <= QN_INPLACE_MAX bytes per direction. Aborts without
 * memory. Memory is freed when both ends were closed. */
void memqp_pair(struct qn_qp *end[2], uint32_t cells, uint32_t cell_bytes);

/** `end` may send `frames` more; MEMQP_UNLIMITED: as many as have room. */
void memqp_allow(struct qn_qp *end, uint32_t frames);

/** Frames that `end` has sent since the pair was made. */
uint64_t memqp_frames(const struct qn_qp *end);

/** Frames sent by `end` that its peer has not released. */
uint32_t memqp_used(const struct qn_qp *end);

/** Put a frame behind what `end` has sent, whatever it is. There must be
 *  room and f->len <= cell_bytes. */
void memqp_inject(struct qn_qp *end, const struct qn_frame *f);

/** Turn over each bit of the oldest frame that `end` has sent and its peer has
 *  not released, if there is one. */
void memqp_scribble(struct qn_qp *end);

#endif
