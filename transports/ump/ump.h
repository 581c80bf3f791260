#ifndef QN_TRANSPORTS_UMP_UMP_H
#define QN_TRANSPORTS_UMP_UMP_H

/**
 * UMP: messages in cells of one cache line, over shared memory.
 *
 * A lane is written by its owner only. It carries the owner's cells toward the
 * peer, and the owner's acknowledgement of the cells of the opposite lane:
 *
 *   lane memory of A toward B, in A's outbox (B maps it read-only)
 *   +----------------------------------------------------+ 0
 *   | control  to, from    incarnations of B and of A     |  (E)
 *   |          generation, start                          |
 *   |          want        A waits for room               |  (W)
 *   +----------------------------------------------------+ 64
 *   | ack      cells of the lane B -> A that A has read   |  (K)
 *   +----------------------------------------------------+ 128
 *   | cell 0   header (C) | 56 bytes of payload           |
 *   | cell 1   ...                                        |
 *   +----------------------------------------------------+ 128 + 64 * cells
 *
 *   header   63 ........ 32 31 ...... 16 15 .. 11 10 .. 8 7 .... 0
 *            sequence       generation   next     kind    length
 *
 * A cell is there when its header carries the expected sequence and the lane's
 * generation: no index is shared, a message of one cell costs one line. The
 * payload of a FIRST cell begins with the length of the whole message (32
 * bits), so it holds 52 bytes of it; all others hold 56.
 *
 * Segments. Cells are used in runs of a segment (64 of them in a lane of 1024).
 * The last cell of a run names the segment of the next one, which the sender
 * chooses among those that were acknowledged: the lowest. So a peer that keeps
 * up sees two segments for ever, 8 KiB that stay in the caches closest to both
 * cores, and one that does not keep up sees the whole lane. A walk through all
 * of it costs a round trip 1.4 times the bare line's instead of 1.2, and a
 * stream half its rate. The price: one cell is never used (a run is completed
 * only when there is another segment to go on in), and what was read of an
 * unfinished run is not free yet.
 *
 * The pairs (labels as in ump.c and README.md):
 *   C  header:  release by the sender, acquire by the receiver: the payload is
 *               there when its header is.
 *   K  ack:     release by the receiver, acquire by the sender: the reads are
 *               over when the cell is free.
 *   W  want/ack: store-then-load on both sides, all four seq_cst.
 *   E  to:      seq_cst; written 0 first and last when a lane is opened again.
 *
 * Everything that comes from the peer's memory is checked once, after it was
 * loaded. A peer that writes nonsense gets this end QN_ECORRUPT, for ever; the
 * bytes of a one-cell message are shown in place, so a reader must not rely on
 * finding the same byte twice (core/qp.h, qn_qp_steady).
 *
 * Paper: the channel is that of Barrelfish and libsmelt (UMP, "user-level
 * message passing"); sequence in the cell instead of an alternating bit, so
 * that a lane survives the death of either end.
 */

#include <stdalign.h>
#include <stdint.h>

#include "core/base/atomic.h"
#include "core/qp.h"

#define QN_UMP_CELL_BYTES  56u /* payload of one cell */
#define QN_UMP_FIRST_BYTES 52u /* message bytes in a FIRST cell */
#define QN_UMP_CELLS_MIN   16u
#define QN_UMP_CELLS_MAX   65536u

#define QN_UMP_SEGMENT_CELLS 64u /* of a segment, in lanes of 512 to 2048 */
#define QN_UMP_SEGMENTS_MAX  32u
#define QN_UMP_KIND_MASK     0x7u /* bits 8 to 10 of a header */
#define QN_UMP_NEXT_SHIFT    11u  /* bits 11 to 15: the segment to go on in */
/* The lowest segment moves on every 4 M cells: each one is written again long
 * before 2^32 cells are over and its old sequences would be expected again. */
#define QN_UMP_DRIFT_SHIFT   22u

struct qn_ump_control {
    alignas(QN_CACHELINE) qn_a64 to; /* peer's incarnation; 0: closed */
    qn_a64 from;                     /* owner's incarnation */
    qn_a32 generation;               /* of this opening, 1 .. 65535 */
    qn_a32 start;                    /* sequence of the first cell */
    qn_a32 want;                     /* 1: the owner waits for room */
};

struct qn_ump_ack {
    alignas(QN_CACHELINE) qn_a64 read; /* generation << 32 | next sequence */
};

struct qn_ump_cell {
    alignas(QN_CACHELINE) qn_a64 header;
    uint8_t payload[QN_UMP_CELL_BYTES];
};

struct qn_ump_lane {
    struct qn_ump_control control;
    struct qn_ump_ack ack;
    struct qn_ump_cell cell[];
};

extern const struct qn_transport qn_ump;

/** As qn_ump.open, with a chosen first sequence: tests start near the wrap. */
int qn_ump_open_at(struct qn_qp **out, const struct qn_qp_opts *opts,
                   uint32_t start);

#endif
