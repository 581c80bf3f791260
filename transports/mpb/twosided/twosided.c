/*
 * A chunk is got behind the look that found its flag, so nothing of it is
 * stale. A chunk's last line may stay in the write buffer; it leaves it when
 * the flag is stored, which is on another line.
 *
 * A pair's counts are compared for equality: each end is at most one chunk
 * ahead of the other.
 */
#include "transports/mpb/twosided/twosided.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "transports/mpb/mutant.h"

#define COUNT 0xffffffu /* of 24 bits */

static uint32_t flag_lines(uint32_t nodes)
{
    return (nodes + QN_MPB_LINE_WORDS - 1) / QN_MPB_LINE_WORDS;
}

uint32_t qn_two_chunk_lines(uint32_t nodes, uint32_t lines)
{
    uint32_t flags = flag_lines(nodes);
    return flags >= lines ? 0 : QN_MIN(lines - flags, QN_TWO_CHUNK_MAX);
}

int qn_two_init(struct qn_two *t, const struct qn_two_opts *o)
{
    uint32_t chunk = qn_two_chunk_lines(o->chip->nodes, o->lines);
    if (chunk == 0 || o->first + o->lines > QN_MPB_LINES) {
        return QN_EINVAL;
    }
    memset(t, 0, sizeof *t);
    t->chip = o->chip;
    t->flags = o->first;
    t->chunk = o->first + flag_lines(o->chip->nodes);
    t->chunk_bytes = chunk * QN_MPB_LINE_BYTES;
    t->session = o->session & 0xffffu;
    return QN_OK;
}

/* Tell the peer both counts. */
static void tell(struct qn_two *t)
{
    uint32_t self = t->chip->self;
    uint64_t flag = (uint64_t)t->sent[t->m.peer] << 40 |
                    (uint64_t)t->got[t->m.peer] << 16 | t->session;
    qn_mpb_store(t->chip, t->m.peer, t->flags + self / QN_MPB_LINE_WORDS,
                 self % QN_MPB_LINE_WORDS, flag);
    if (!QN_MPB_MUTANT(TWO_KEPT)) {
        qn_mpb_drain(t->chip);
    }
}

/* Look at what the peer has sent to here, or got from here. */
static bool reached(struct qn_two *t, bool sent, uint32_t count)
{
    if (!QN_MPB_MUTANT(TWO_STALE)) {
        qn_mpb_invalidate(t->chip);
    }
    uint64_t seen = qn_mpb_load(t->chip, t->chip->self,
                                t->flags + t->m.peer / QN_MPB_LINE_WORDS,
                                t->m.peer % QN_MPB_LINE_WORDS);
    return (seen & 0xffffu) == t->session &&
           (seen >> (sent ? 40 : 16) & COUNT) == count;
}

static uint32_t more(uint32_t count)
{
    return (count + 1) & COUNT;
}

void qn_two_begin(struct qn_two *t, const struct qn_two_message *m)
{
    QN_ASSERT(t->at == t->m.len);
    QN_ASSERT(m->peer < t->chip->nodes);
    QN_ASSERT(m->peer != t->chip->self);
    t->m = *m;
    t->at = 0;
    t->put = false;
}

/* @return false: the peer has not got the chunk yet. */
static bool send_chunk(struct qn_two *t, uint32_t len)
{
    qn_node_t peer = t->m.peer;
    if (!t->put) {
        qn_mpb_put(t->chip, t->chip->self, t->chunk, t->m.bytes + t->at, len);
        t->sent[peer] = more(t->sent[peer]);
        t->put = true;
        tell(t);
    }
    return reached(t, false, t->sent[peer]);
}

/* @return false: it has not come yet. */
static bool receive_chunk(struct qn_two *t, uint32_t len)
{
    qn_node_t peer = t->m.peer;
    if (!reached(t, true, more(t->got[peer]))) {
        return false;
    }
    qn_mpb_get(t->chip, t->m.bytes + t->at, peer, t->chunk, len);
    t->got[peer] = more(t->got[peer]);
    tell(t);
    return true;
}

int qn_two_step(struct qn_two *t)
{
    while (t->at < t->m.len) {
        uint32_t len = QN_MIN(t->chunk_bytes, t->m.len - t->at);
        if (t->m.send ? !send_chunk(t, len) : !receive_chunk(t, len)) {
            return QN_EAGAIN;
        }
        t->at += len;
        t->put = false;
    }
    return QN_OK;
}
