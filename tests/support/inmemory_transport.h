#ifndef QN_TESTS_SUPPORT_INMEMORY_TRANSPORT_H
#define QN_TESTS_SUPPORT_INMEMORY_TRANSPORT_H

/**
 * A queuepair in ordinary memory: the deterministic double of a transport, for
 * tests of the users of core/qp.h (groups, the driver).
 *
 * Two bounded FIFOs of cells, one per direction, with the semantics of
 * core/qp.h: frames, staging of one message that does not fit, assembly, and
 * EAGAIN. Additions for tests:
 *
 *   - the cell size is free, so that short messages have many frames;
 *   - inmemory_allow limits the further frames of an end, so that room ends at
 *     any chosen frame, and a sender that is not called again dies there;
 *   - the double asserts the guarantees that a backend relies on: frames form
 *     messages, views are not mixed, release follows peek;
 *   - inmemory_inject puts any frame into the channel, and inmemory_scribble
 *     changes one that its reader is reading, like a corrupt peer.
 *
 * A message of one frame is shown in place, like the frames themselves.
 *
 * One thread; no doorbells (a test polls every end in turn).
 */

#include "core/qp.h"

#define INMEMORY_UNLIMITED UINT32_MAX

/** Creates a channel with the ends end[0] and end[1]. cells >= 1 of 1 <=
 *  cell_bytes <= QN_INPLACE_MAX bytes per direction. Aborts without memory.
 *  Memory is freed when both ends are closed. */
void inmemory_pair(struct qn_qp *end[2], uint32_t cells, uint32_t cell_bytes);

/** As inmemory_pair, with the longest message (qn_qp_opts.msg_max). */
void inmemory_pair_limited(struct qn_qp *end[2], uint32_t cells,
                           uint32_t cell_bytes, uint32_t msg_max);

/** `end` may send `frames` more frames; INMEMORY_UNLIMITED: as many as have
 *  room. */
void inmemory_allow(struct qn_qp *end, uint32_t frames);

/** Number of frames that `end` has sent since the pair was created. */
uint64_t inmemory_frames(const struct qn_qp *end);

/** Number of frames sent by `end` that its peer has not released. */
uint32_t inmemory_used(const struct qn_qp *end);

/** Appends any frame to those that `end` has sent. There must be room and
 *  f->len <= cell_bytes. */
void inmemory_inject(struct qn_qp *end, const struct qn_frame *f);

/** Inverts every bit of the oldest frame that `end` has sent and its peer has
 *  not released, if any. */
void inmemory_scribble(struct qn_qp *end);

#endif
