/*
 * One look per step of a wait, so that a caller can do something else in
 * between. The order within a chunk is that of the paper: wake siblings before
 * the own get (they are late already), tell the parent behind it (its buffer is
 * free then), wake the children, and copy to memory last, while they get.
 *
 * A chunk is put by whole lines but its last, which leaves the write buffer
 * when the flag behind it is stored; every get comes behind the look that found
 * the flag, so nothing of a buffer is stale.
 *
 * The lines are cleared between two barriers. Behind the first all nodes are
 * through with the broadcasts before, so no flag of those is still looked at;
 * before the second ends none writes a notify or a done of this one. The lines
 * of the barrier itself need no clearing: these two write all of them. So no
 * flag is older than QN_OC_RENEWAL broadcasts, and the sign of a difference
 * tells.
 */
#include "transports/mpb/ocbcast/ocbcast.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "transports/mpb/mutant.h"

#define BUFFERS    2u
#define CHUNKS_MAX 0xffffu

static uint32_t rounds_of(uint32_t nodes)
{
    uint32_t rounds = 0;
    while (1u << rounds < nodes) {
        rounds++;
    }
    return rounds;
}

uint32_t qn_oc_chunk_lines(uint32_t nodes, uint32_t lines, uint32_t k)
{
    uint32_t flags = 1 + k + rounds_of(nodes);
    return flags >= lines ? 0
                          : QN_MIN((lines - flags) / BUFFERS, QN_OC_CHUNK_MAX);
}

int qn_oc_init(struct qn_oc *oc, const struct qn_oc_opts *o)
{
    uint32_t nodes = o->chip->nodes;
    uint32_t m = qn_oc_chunk_lines(nodes, o->lines, o->k);
    if (o->k < 1 || o->k >= nodes || m == 0 ||
        o->first + o->lines > QN_MPB_LINES) {
        return QN_EINVAL;
    }
    memset(oc, 0, sizeof *oc);
    oc->chip = o->chip;
    oc->tree =
        (struct qn_oc_tree){.members = UINT64_MAX >> (64 - nodes), .k = o->k};
    oc->notify = o->first;
    oc->done = oc->notify + 1;
    oc->barrier = oc->done + o->k;
    oc->rounds = rounds_of(nodes);
    oc->buffer = oc->barrier + oc->rounds;
    oc->chunk_lines = m;
    oc->session = o->session & 0xffffu;
    return QN_OK;
}

static uint64_t flag_of(const struct qn_oc *oc, uint32_t chunk)
{
    return (uint64_t)oc->number << 32 | chunk << 16 | oc->session;
}

/* Look at an own flag. */
static bool reached(struct qn_oc *oc, uint32_t line, uint32_t chunk)
{
    if (!QN_MPB_MUTANT(OC_STALE)) {
        qn_mpb_invalidate(oc->chip);
    }
    uint64_t seen = qn_mpb_load(oc->chip, oc->chip->self, line, 0);
    return (seen & 0xffffu) == oc->session &&
           (int64_t)(seen - flag_of(oc, chunk)) >= 0;
}

static void tell(struct qn_oc *oc, qn_node_t node, uint32_t line,
                 uint32_t chunk)
{
    qn_mpb_store(oc->chip, node, line, 0, flag_of(oc, chunk));
    if (!QN_MPB_MUTANT(OC_KEPT)) {
        qn_mpb_drain(oc->chip);
    }
}

int qn_oc_begin(struct qn_oc *oc, qn_node_t root, void *bytes, uint32_t len)
{
    uint32_t chunk_bytes = oc->chunk_lines * QN_MPB_LINE_BYTES;
    uint32_t chunks = len == 0 ? 1 : (len - 1) / chunk_bytes + 1;
    if (oc->dead) {
        return QN_EPEERDEAD;
    }
    if (oc->phase != QN_OC_IDLE) {
        return QN_EAGAIN;
    }
    if (root >= oc->chip->nodes) {
        return QN_EINVAL;
    }
    if (chunks > CHUNKS_MAX) {
        return QN_EMSGSIZE;
    }
    bool again = !oc->rooted || root == oc->tree.root;
    oc->tree.root = root;
    oc->rooted = true;
    oc->number++;
    oc->renews =
        oc->number % QN_OC_RENEWAL == 0 && !QN_MPB_MUTANT(OC_NO_RENEWAL);
    oc->bytes = bytes;
    oc->len = len;
    oc->chunk = 1;
    oc->chunks = chunks;
    oc->round = 0;
    oc->told = false;
    oc->second = false;
    oc->waits = 0;
    oc->children = qn_oc_child_count(&oc->tree, oc->chip->self);
    oc->phase = (again && !oc->renews) || QN_MPB_MUTANT(OC_NO_BARRIER)
                    ? QN_OC_ROOM
                    : QN_OC_BARRIER;
    return QN_OK;
}

/* Dissemination: in round r each node tells the one 2^r further. The second one
 * of a broadcast counts as its chunk 1. */
static bool barrier_passed(struct qn_oc *oc, uint32_t which)
{
    while (oc->round < oc->rounds) {
        uint32_t line = oc->barrier + oc->round;
        if (!oc->told) {
            uint32_t to = oc->chip->self + (1u << oc->round);
            tell(oc, to % oc->chip->nodes, line, which);
            oc->told = true;
        }
        if (!reached(oc, line, which)) {
            return false;
        }
        oc->told = false;
        oc->round++;
    }
    return true;
}

/* Own lines say that a broadcast is done, and not when. What stays in the write
 * buffer leaves it when the next flag is stored. */
static void clear_lines(struct qn_oc *oc, uint32_t end, uint32_t number)
{
    const uint64_t none =
        (uint64_t)number << 32 | CHUNKS_MAX << 16 | oc->session;
    for (uint32_t line = oc->notify; line < end; line++) {
        qn_mpb_store(oc->chip, oc->chip->self, line, 0, none);
    }
}

/* All nodes are here; and, if lines are cleared, all have cleared theirs. */
static bool met(struct qn_oc *oc)
{
    if (!barrier_passed(oc, oc->second)) {
        return false;
    }
    if (!oc->renews || oc->second) {
        return true;
    }
    clear_lines(oc, oc->barrier, oc->number - 1);
    oc->second = true;
    oc->round = 0;
    return barrier_passed(oc, oc->second);
}

/* All children have got that chunk. */
static bool children_done(struct qn_oc *oc, uint32_t chunk)
{
    for (; oc->waits < oc->children; oc->waits++) {
        if (!reached(oc, oc->done + oc->waits, chunk)) {
            return false;
        }
    }
    oc->waits = 0;
    return true;
}

/* Wake two places of a family: 0 is `parent`. */
static void wake(struct qn_oc *oc, qn_node_t parent, uint32_t place)
{
    uint32_t family = qn_oc_child_count(&oc->tree, parent);
    for (uint32_t i = 2 * place + 1; i <= 2 * place + 2 && i <= family; i++) {
        tell(oc, qn_oc_child(&oc->tree, parent, i - 1), oc->notify, oc->chunk);
    }
}

static uint32_t chunk_at(const struct qn_oc *oc)
{
    return (oc->chunk - 1) * oc->chunk_lines * QN_MPB_LINE_BYTES;
}

static uint32_t chunk_len(const struct qn_oc *oc)
{
    return QN_MIN(oc->chunk_lines * QN_MPB_LINE_BYTES, oc->len - chunk_at(oc));
}

static uint32_t buffer_of(const struct qn_oc *oc)
{
    return oc->buffer + oc->chunk % BUFFERS * oc->chunk_lines;
}

/* Get the chunk from the parent's buffer. */
static void take(struct qn_oc *oc)
{
    uint32_t place;
    qn_node_t parent = qn_oc_parent(&oc->tree, oc->chip->self, &place);
    uint32_t lines =
        (chunk_len(oc) + QN_MPB_LINE_BYTES - 1) / QN_MPB_LINE_BYTES;
    wake(oc, parent, place + 1);
    qn_mpb_move(oc->chip, buffer_of(oc), parent, buffer_of(oc), lines);
    tell(oc, parent, oc->done + place, oc->chunk);
}

static bool pass_chunk(struct qn_oc *oc)
{
    bool root = oc->tree.root == oc->chip->self;
    if (root) {
        qn_mpb_put(oc->chip, oc->chip->self, buffer_of(oc),
                   oc->bytes + chunk_at(oc), chunk_len(oc));
    } else {
        if (!reached(oc, oc->notify, oc->chunk)) {
            return false;
        }
        take(oc);
    }
    wake(oc, oc->chip->self, 0);
    if (!root) {
        qn_mpb_get(oc->chip, oc->bytes + chunk_at(oc), oc->chip->self,
                   buffer_of(oc), chunk_len(oc));
    }
    return true;
}

int qn_oc_step(struct qn_oc *oc)
{
    if (oc->dead) {
        return QN_EPEERDEAD;
    }
    if (oc->phase == QN_OC_BARRIER) {
        if (!met(oc)) {
            return QN_EAGAIN;
        }
        oc->phase = QN_OC_ROOM;
    }
    while (oc->phase == QN_OC_ROOM || oc->phase == QN_OC_CHUNK) {
        if (oc->phase == QN_OC_ROOM && oc->chunk > BUFFERS &&
            !children_done(oc, oc->chunk - BUFFERS)) {
            return QN_EAGAIN;
        }
        oc->phase = QN_OC_CHUNK;
        if (!pass_chunk(oc)) {
            return QN_EAGAIN;
        }
        oc->phase = oc->chunk == oc->chunks ? QN_OC_FINISH : QN_OC_ROOM;
        oc->chunk += oc->phase == QN_OC_ROOM;
    }
    if (oc->phase == QN_OC_FINISH) {
        if (!children_done(oc, oc->chunks)) {
            return QN_EAGAIN;
        }
        oc->phase = QN_OC_IDLE;
    }
    return QN_OK;
}

void qn_oc_number_at(struct qn_oc *oc, uint32_t number)
{
    oc->number = number;
    clear_lines(oc, oc->buffer, number);
}

void qn_oc_down(struct qn_oc *oc)
{
    oc->dead = true;
}
