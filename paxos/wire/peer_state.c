/* See peer_state.h. All fields are words, so the struct is walked as such. */
#include "paxos/wire/peer_state.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/little_endian.h"
#include "paxos/wire/msg.h"

enum { WORDS = QN_PEER_STATE_BYTES / 8 };

static_assert(sizeof(struct qn_peer_state) == QN_PEER_STATE_BYTES,
              "words, and no gap between them");
static_assert(offsetof(struct qn_peer_state, phase) == QN_PEER_STATE_SHORT,
              "what may be left out comes last");

static bool is_length(size_t bytes)
{
    return bytes == QN_PEER_STATE_BYTES || bytes == QN_PEER_STATE_SHORT;
}

static bool sane(const struct qn_peer_state *s)
{
    return s->inc != 0 && s->applied <= s->learned && s->learned <= QN_SLOT_MAX;
}

void qn_peer_state_encode(const struct qn_peer_state *s, uint8_t *to,
                          uint32_t bytes)
{
    uint64_t word[WORDS];
    QN_ASSERT(sane(s)); /* what is encoded can be decoded */
    QN_ASSERT(is_length(bytes));
    memcpy(word, s, sizeof word);
    for (uint32_t i = 0; i < bytes / 8; i++) {
        qn_put_le(to + (size_t)i * 8, word[i], 8);
    }
}

int qn_peer_state_decode(struct qn_peer_state *s, struct qn_slice body)
{
    uint64_t word[WORDS] = {0};
    if (!is_length(body.len)) {
        return QN_ECORRUPT;
    }
    for (uint32_t i = 0; i < body.len / 8; i++) {
        word[i] = qn_get_le(body.data + (size_t)i * 8, 8);
    }
    memcpy(s, word, sizeof word);
    return sane(s) ? QN_OK : QN_ECORRUPT;
}
