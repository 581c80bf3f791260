/*
 * Fields are copied one after the other. A reader checks all numbers before it
 * uses them: a peer of another build may have written the block.
 */
#include "paxos/member/transfer/library_state.h"

#include <assert.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

struct fixed {
    uint32_t version, nodes, ul_count, zero;
    uint64_t position, stamp_ms;
};

/** What there is of each seat. */
#define SEAT_BYTES (sizeof(struct qn_session) + sizeof(uint64_t))

static_assert(sizeof(struct fixed) == 32, "QN_LIBRARY_STATE_MAX counts it");

size_t qn_library_state_encode(const struct qn_library_state *s, uint8_t *to)
{
    QN_ASSERT(s->nodes <= QN_NODES_MAX && s->ul_count <= QN_UL_KEPT);
    const struct fixed f = {.version = QN_LIBRARY_STATE_VERSION,
                            .nodes = s->nodes,
                            .ul_count = s->ul_count,
                            .position = s->resume.position,
                            .stamp_ms = s->resume.stamp_ms};
    size_t sessions = s->nodes * sizeof s->resume.session[0];
    size_t ended = s->nodes * sizeof s->resume.ended[0];
    memcpy(to, &f, sizeof f);
    memcpy(to + sizeof f, s->resume.session, sessions);
    memcpy(to + sizeof f + sessions, s->resume.ended, ended);
    uint8_t *entry = to + sizeof f + sessions + ended;
    for (uint32_t i = 0; i < s->ul_count; i++, entry += QN_UL_BYTES) {
        qn_ul_encode(&s->ul[i], entry);
    }
    return (size_t)(entry - to);
}

static bool fits(const struct fixed *f, uint32_t nodes, size_t len)
{
    return f->version == QN_LIBRARY_STATE_VERSION && f->nodes == nodes &&
           f->ul_count <= QN_UL_KEPT && f->zero == 0 &&
           f->position <= QN_SLOT_MAX &&
           f->stamp_ms < QN_LIBRARY_STATE_STAMP_MAX &&
           len == sizeof *f + nodes * SEAT_BYTES + f->ul_count * QN_UL_BYTES;
}

/* Where no incarnation has begun there is no command. */
static bool seats_can_be(const struct qn_library_state *s)
{
    for (uint32_t i = 0; i < s->nodes; i++) {
        const struct qn_session *of = &s->resume.session[i];
        if (of->inc >= QN_LIBRARY_STATE_LIVES_MAX ||
            s->resume.ended[i] >= QN_LIBRARY_STATE_LIVES_MAX ||
            (of->inc == 0 && of->last != 0)) {
            return false;
        }
    }
    return true;
}

static bool read_ul(struct qn_library_state *s, struct qn_slice entries)
{
    for (uint32_t i = 0; i < s->ul_count; i++) {
        if (qn_ul_decode(&s->ul[i], entries, i) != QN_OK ||
            s->ul[i].index != s->ul[0].index + i) {
            return false;
        }
    }
    return true;
}

int qn_library_state_decode(struct qn_library_state *s, uint32_t nodes,
                            struct qn_slice block)
{
    QN_ASSERT(nodes <= QN_NODES_MAX);
    struct fixed f;
    if (block.len < sizeof f) {
        return QN_ECORRUPT;
    }
    memcpy(&f, block.data, sizeof f);
    if (!fits(&f, nodes, block.len)) {
        return QN_ECORRUPT;
    }
    struct qn_library_state r = {
        .resume = {.position = f.position, .stamp_ms = f.stamp_ms},
        .nodes = nodes,
        .ul_count = f.ul_count};
    size_t sessions = nodes * sizeof r.resume.session[0];
    memcpy(r.resume.session, block.data + sizeof f, sessions);
    memcpy(r.resume.ended, block.data + sizeof f + sessions,
           nodes * sizeof r.resume.ended[0]);
    const size_t seats = nodes * SEAT_BYTES;
    const struct qn_slice entries = {block.data + sizeof f + seats,
                                     block.len - sizeof f - seats};
    if (!seats_can_be(&r) || !read_ul(&r, entries)) {
        return QN_ECORRUPT;
    }
    *s = r;
    return QN_OK;
}
