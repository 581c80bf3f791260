/*
 * A node computes each move from its number, so that nothing of a schedule is
 * stored: the halving is walked again, log2 of the nodes, and the ring needs
 * no walk.
 */
#include "transports/mpb/twosided/rivals.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

/* Halve the ranks from `low` to `high`, of which the first has all that they
 * need. It keeps the larger half. `*i` is counted down by the moves that are
 * not asked for. */
static bool halving_move(uint32_t nodes, uint32_t rank, uint32_t *i,
                         struct qn_rival_move *out)
{
    uint32_t low = 0;
    uint32_t high = nodes;
    while (high - low > 1) {
        uint32_t middle = high - (high - low) / 2;
        if (rank == low || rank == middle) {
            *out = (struct qn_rival_move){.rank = rank == low ? middle : low,
                                          .send = rank == low,
                                          .from = middle,
                                          .until = high};
            if ((*i)-- == 0) {
                return true;
            }
        }
        if (rank < middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    return false;
}

/* Two moves per round; in round r the slices of the ranks r further go left. */
static bool ring_move(uint32_t nodes, uint32_t rank, uint32_t i,
                      struct qn_rival_move *out)
{
    uint32_t round = i / 2;
    if (round + 1 >= nodes) {
        return false;
    }
    out->send = (i % 2 == 0) == (rank % 2 == 0);
    out->rank = (out->send ? rank + nodes - 1 : rank + 1) % nodes;
    out->from = (rank + round + !out->send) % nodes;
    out->until = out->from + 1;
    return true;
}

bool qn_rival_move(enum qn_rival_kind kind, uint32_t nodes, uint32_t rank,
                   uint32_t i, struct qn_rival_move *out)
{
    uint32_t left = i;
    QN_ASSERT(rank < nodes);
    bool found = halving_move(nodes, rank, &left, out);
    if (kind == QN_RIVAL_BINOMIAL) {
        out->from = 0;
        out->until = nodes;
        return found;
    }
    return found || ring_move(nodes, rank, left, out);
}

int qn_rival_init(struct qn_rival *r, enum qn_rival_kind kind,
                  const struct qn_two_opts *o)
{
    memset(r, 0, sizeof *r);
    r->kind = kind;
    return qn_two_init(&r->two, o);
}

int qn_rival_begin(struct qn_rival *r, qn_node_t root, void *bytes,
                   uint32_t len)
{
    if (r->dead) {
        return QN_EPEERDEAD;
    }
    if (r->busy) {
        return QN_EAGAIN;
    }
    if (root >= r->two.chip->nodes) {
        return QN_EINVAL;
    }
    r->busy = true;
    r->under_way = false;
    r->root = root;
    r->bytes = bytes;
    r->len = len;
    r->move = 0;
    return QN_OK;
}

/* Where a slice begins, in bytes: slices are of whole lines. */
static uint32_t slice_at(const struct qn_rival *r, uint32_t slice)
{
    uint32_t nodes = r->two.chip->nodes;
    uint64_t lines =
        ((uint64_t)r->len + QN_MPB_LINE_BYTES - 1) / QN_MPB_LINE_BYTES;
    uint64_t each = (lines + nodes - 1) / nodes * QN_MPB_LINE_BYTES;
    return (uint32_t)QN_MIN(slice * each, (uint64_t)r->len);
}

/* @return false: there is no more to do. */
static bool begin_move(struct qn_rival *r)
{
    uint32_t nodes = r->two.chip->nodes;
    uint32_t rank = (r->two.chip->self + nodes - r->root) % nodes;
    struct qn_rival_move move;
    if (!qn_rival_move(r->kind, nodes, rank, r->move, &move)) {
        return false;
    }
    uint32_t from = slice_at(r, move.from);
    qn_two_begin(&r->two, &(struct qn_two_message){
                              .peer = (r->root + move.rank) % nodes,
                              .send = move.send,
                              .bytes = r->bytes + from,
                              .len = slice_at(r, move.until) - from});
    r->move++;
    return true;
}

int qn_rival_step(struct qn_rival *r)
{
    if (r->dead) {
        return QN_EPEERDEAD;
    }
    while (r->busy) {
        if (r->under_way && qn_two_step(&r->two) != QN_OK) {
            return QN_EAGAIN;
        }
        r->under_way = begin_move(r);
        r->busy = r->under_way;
    }
    return QN_OK;
}

void qn_rival_down(struct qn_rival *r)
{
    r->dead = true;
}
