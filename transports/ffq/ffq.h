#ifndef QN_TRANSPORTS_FFQ_FFQ_H
#define QN_TRANSPORTS_FFQ_FFQ_H

/**
 * FastForward queues: the slot itself says whether it is full or empty, so the
 * two ends share no index.
 *
 *   word     63 ........ 32 31 ...... 16 15 .... 8 7 .... 0
 *            position       tag          kind      length
 *
 * A position counts the slots of a lane from its opening on: slot and lap in
 * one. The tag counts the openings of the lane. A word that does not name the
 * expected position and tag says nothing: it is of another lap or incarnation.
 *
 *   lane memory of A toward B, in A's outbox (B maps it read-only)
 *   +--------------------------------------------------+ 0
 *   | control  to, from, tag, start (E); want (W)       |
 *   +--------------------------------------------------+ 64
 *   | slot 0   word (C) | 56 bytes of payload           |
 *   | slot 1   ...                                      |
 *   +--------------------------------------------------+ 64 + 64 * cells
 *   | mirror   a word per slot of the lane B -> A: A    |
 *   |          has read that position (K); 8 in a line  |
 *   +--------------------------------------------------+ 64 + 72 * cells
 *
 * That is the *isolated* form (ffq). In the *shared* one (ffq_shared), as in
 * the paper, there is no mirror: the consumer says "empty" over the word of the
 * slot that it has read. So one line less travels, both ends write each lane,
 * and lanes are made anew for each pair of incarnations: one that wakes late
 * would say "empty" over a message of its successor.
 *
 * Laps and tags instead of the paper's NULL, because a consumer cannot clear a
 * slot that it may only read, and so that a lane survives the death of either
 * end: 0 and 1 would look the same in the next lap or incarnation.
 *
 * The pairs: C, the word of a full slot; K, that of an empty one; W, want; E,
 * `to`. README.md has their orders.
 *
 * Paper: Giacomoni, Moseley, Vachharajani, "FastForward for efficient pipeline
 * parallelism" (PPoPP 2008).
 */

#include <stdalign.h>
#include <stdint.h>

#include "core/base/atomic.h"
#include "core/qp.h"

#define QN_FFQ_SLOT_BYTES  56u /* payload of a slot */
#define QN_FFQ_FIRST_BYTES 52u /* of a FIRST, behind the message's length */
#define QN_FFQ_CELLS_MIN   16u
#define QN_FFQ_CELLS_MAX   65536u

struct qn_ffq_control {
    alignas(QN_CACHELINE) qn_a64 to; /* peer's incarnation; 0: closed */
    qn_a64 from;                     /* owner's incarnation */
    qn_a32 tag;                      /* of this opening, 1 .. 65535 */
    qn_a32 start;                    /* position of the first slot */
    qn_a32 want;                     /* 1: the owner waits for room */
};

struct qn_ffq_slot {
    alignas(QN_CACHELINE) qn_a64 word;
    uint8_t payload[QN_FFQ_SLOT_BYTES];
};

struct qn_ffq_lane {
    struct qn_ffq_control control;
    struct qn_ffq_slot slot[]; /* [cells]; mirror words behind */
};

extern const struct qn_transport qn_ffq;        /* isolated */
extern const struct qn_transport qn_ffq_shared; /* both ends write */

/** As their open, with a chosen first position: tests start near the wrap. */
int qn_ffq_open_at(struct qn_qp **out, const struct qn_qp_opts *opts,
                   uint32_t start);
int qn_ffq_shared_open_at(struct qn_qp **out, const struct qn_qp_opts *opts,
                          uint32_t start);

#endif
