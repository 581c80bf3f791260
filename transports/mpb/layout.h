#ifndef QN_TRANSPORTS_MPB_LAYOUT_H
#define QN_TRANSPORTS_MPB_LAYOUT_H

/**
 * What lies where in a message buffer. All cores have the same layout, which
 * follows from the number of nodes and of lanes:
 *
 *     0            flags     one line per peer and lane, written by that peer:
 *                            what it has sent here, what it has read from here
 *     chunk        chunks    for each peer and lane a ring of cells of two
 *                            lines, written by the own core only
 *     broadcast    OC-Bcast  the rest: flags of the tree, a barrier, buffers
 *     256
 *
 * The lines of a queuepair come first by peer, then by lane. A core that does
 * not get its chunk emptied by a dead peer still has those of all others.
 * What does not fit is refused: 48 nodes with one lane, 39 with two do.
 *
 * Pure.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/node.h"

#define QN_MPB_CELL_LINES 2u
#define QN_MPB_CELLS_MAX  32u /* of a chunk */

struct qn_mpb_layout {
    uint32_t nodes, lanes;
    uint32_t cells;     /* of each chunk, a power of two */
    uint32_t chunk;     /* line of the first chunk */
    uint32_t broadcast; /* first line behind the chunks */
};

/** @return false if so many nodes and lanes do not fit. */
bool qn_mpb_layout(struct qn_mpb_layout *out, uint32_t nodes, uint32_t lanes);

/** Lines that a broadcast needs with a fan-out of k and buffers of one line. */
uint32_t qn_mpb_broadcast_lines(uint32_t nodes, uint32_t k);

/** The line in `at`'s buffer that `writer` writes. */
uint32_t qn_mpb_flag_line(const struct qn_mpb_layout *l, qn_node_t at,
                          qn_node_t writer, enum qn_lane lane);

/** The first line of the chunk in `from`'s buffer that `to` reads. */
uint32_t qn_mpb_chunk_line(const struct qn_mpb_layout *l, qn_node_t from,
                           qn_node_t to, enum qn_lane lane);

#endif
