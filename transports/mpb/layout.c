/*
 * Chunks get what makes a ring long enough to keep both ends busy, but not more
 * than CHUNK_LINES of a core's lines; the buffers of broadcasts get the rest,
 * where a line more is worth more.
 */
#include "transports/mpb/layout.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "transports/mpb/chip.h"

#define CHUNK_LINES 144u
#define FANOUT_MIN  2u

static uint32_t log2_up(uint32_t n)
{
    uint32_t rounds = 0;
    while (1u << rounds < n) {
        rounds++;
    }
    return rounds;
}

/* Synchronous: notification, done flags, the barrier, two buffers of a line; a
 * word per member more, for what else may come. Asynchronous: two words per
 * member, a head and a buffer of a line. */
uint32_t qn_mpb_broadcast_lines(uint32_t nodes, uint32_t k)
{
    uint32_t words = (nodes + QN_MPB_LINE_WORDS - 1) / QN_MPB_LINE_WORDS;
    uint32_t synchronous = 1 + k + words + log2_up(nodes) + 2 * 2;
    return QN_MAX(synchronous, 2 * words + 2);
}

bool qn_mpb_layout(struct qn_mpb_layout *out, uint32_t nodes, uint32_t lanes)
{
    if (nodes < 2 || nodes > QN_MPB_CORES || lanes < 1 || lanes > QN_LANES) {
        return false;
    }
    uint32_t pairs = (nodes - 1) * lanes;
    uint32_t least =
        qn_mpb_broadcast_lines(nodes, QN_MIN(FANOUT_MIN, nodes - 1));
    uint32_t cells = QN_MPB_CELLS_MAX;
    while (cells > 1 && pairs * cells * QN_MPB_CELL_LINES > CHUNK_LINES) {
        cells /= 2;
    }
    uint32_t used = pairs * (1 + cells * QN_MPB_CELL_LINES);
    if (used + least > QN_MPB_LINES) {
        return false;
    }
    *out = (struct qn_mpb_layout){.nodes = nodes,
                                  .lanes = lanes,
                                  .cells = cells,
                                  .chunk = pairs,
                                  .broadcast = used};
    return true;
}

/* The number of a peer among the others of a core. */
static uint32_t pair_of(const struct qn_mpb_layout *l, qn_node_t core,
                        qn_node_t peer, enum qn_lane lane)
{
    QN_ASSERT(core < l->nodes);
    QN_ASSERT(peer < l->nodes);
    QN_ASSERT(core != peer);
    QN_ASSERT(lane < l->lanes);
    return (peer < core ? peer : peer - 1) * l->lanes + (uint32_t)lane;
}

uint32_t qn_mpb_flag_line(const struct qn_mpb_layout *l, qn_node_t at,
                          qn_node_t writer, enum qn_lane lane)
{
    return pair_of(l, at, writer, lane);
}

uint32_t qn_mpb_chunk_line(const struct qn_mpb_layout *l, qn_node_t from,
                           qn_node_t to, enum qn_lane lane)
{
    return l->chunk + pair_of(l, from, to, lane) * l->cells * QN_MPB_CELL_LINES;
}
