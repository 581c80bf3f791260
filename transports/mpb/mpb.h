#ifndef QN_TRANSPORTS_MPB_MPB_H
#define QN_TRANSPORTS_MPB_MPB_H

/**
 * The queuepair over message buffers: two-sided send and receive through the
 * sender's own buffer, as RCCE has it, but with a ring of cells and counters
 * where RCCE has one chunk and two flags.
 *
 *     buffer of A                        buffer of B
 *     +--------------------------+       +---------------------------+
 *     | chunk for B: cells       | <-get-|                           |
 *     |   head | 56 bytes        |       |                           |
 *     |                          |       | flag line that A writes   |
 *     |                          |-put-> |   sent   cells put      S |
 *     |                          |       |   ready  cells of B's   R |
 *     |                          |       |   want   wants room     W |
 *     +--------------------------+       +---------------------------+
 *
 *     sent, ready   63 .. 32 index | 31 .. 16 writer | 15 .. 0 reader
 *     head          63 .. 32 index | 15 .. 8 kind    | 7 .. 0 length
 *
 * Writer and reader are the low bits of both incarnations: a flag of another
 * pair is as none. A line is written by one core only, and each looks at flags
 * in its own buffer, which is near. The payload of a FIRST cell begins with the
 * length of the whole message (32 bits).
 *
 *   S  sent:        the cells below it are there.
 *   R  ready:       the reads are over when the cell is free.
 *   W  want, ready: store, then load of the other, on both sides.
 *   L  sent again:  a cell that was got counts when `sent`, looked at once
 *                   more, still names both incarnations. A successor of the
 *                   sender stores `sent` before it writes a cell.
 *
 * All of it is as of chip.h: a look is invalidate and load, a flag is stored
 * and drained.
 */

#include "core/qp.h"

#define QN_MPB_CELL_BYTES  56u /* payload of a cell */
#define QN_MPB_FIRST_BYTES 52u /* message bytes in a FIRST cell */

extern const struct qn_transport qn_mpb;

/** As qn_mpb.open, with a chosen first index, the same at both ends: tests
 *  start near the wrap. */
int qn_mpb_open_at(struct qn_qp **out, const struct qn_qp_opts *o,
                   uint32_t start);

#endif
