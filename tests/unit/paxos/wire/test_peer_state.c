/*
 * The body of STATE: every field comes back, and what no node says is refused.
 */
#include "core/base/err.h"
#include "paxos/wire/msg.h"
#include "paxos/wire/peer_state.h"
#include "tests/support/test.h"

#include <string.h>

static const struct qn_peer_state some = {
    .inc = 0x0102030405060708,
    .applied = 100,
    .learned = QN_SLOT_MAX,
    .voted = UINT64_MAX,
    .stopped = UINT64_C(1) << 63,
    .read = 5,
    .hold_slot = 6,
    .hold_done = 7,
    .held = 8,
    .lack = 15,
    .ask = 9,
    .answer = 10,
    .phase = 11,
    .counters = {12, UINT64_MAX, 13, 14},
};

static int decode(const struct qn_peer_state *s, struct qn_peer_state *got)
{
    uint8_t bytes[QN_PEER_STATE_BYTES];
    uint64_t word[QN_PEER_STATE_BYTES / 8];
    memcpy(word, s, sizeof word);
    for (uint32_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(word[i / 8] >> (8 * (i % 8)));
    }
    return qn_peer_state_decode(got, (struct qn_slice){bytes, sizeof bytes});
}

Test(peer_state, every_field_comes_back_as_it_was)
{
    uint8_t bytes[QN_PEER_STATE_BYTES];
    struct qn_peer_state got;
    qn_peer_state_encode(&some, bytes, QN_PEER_STATE_BYTES);
    cr_assert_eq(bytes[0], 8, "little endian");
    cr_assert_eq(bytes[7], 1);
    cr_assert_eq(
        qn_peer_state_decode(&got, (struct qn_slice){bytes, sizeof bytes}),
        QN_OK);
    cr_assert_eq(memcmp(&got, &some, sizeof got), 0);
}

Test(peer_state, what_the_receiver_has_is_left_out)
{
    uint8_t bytes[QN_PEER_STATE_BYTES];
    struct qn_peer_state got, want = some;
    memset(bytes, 0xee, sizeof bytes);
    qn_peer_state_encode(&some, bytes, QN_PEER_STATE_SHORT);
    cr_assert_eq(bytes[QN_PEER_STATE_SHORT], 0xee);
    cr_assert_eq(qn_peer_state_decode(
                     &got, (struct qn_slice){bytes, QN_PEER_STATE_SHORT}),
                 QN_OK);
    want.phase = 0;
    memset(want.counters, 0, sizeof want.counters);
    cr_assert_eq(memcmp(&got, &want, sizeof got), 0);
}

Test(peer_state, another_length_is_refused)
{
    uint8_t bytes[QN_PEER_STATE_BYTES + 1] = {0};
    struct qn_peer_state got;
    qn_peer_state_encode(&some, bytes, QN_PEER_STATE_BYTES);
    for (size_t len = 0; len <= sizeof bytes; len++) {
        int err = qn_peer_state_decode(&got, (struct qn_slice){bytes, len});
        bool good = len == QN_PEER_STATE_BYTES || len == QN_PEER_STATE_SHORT;
        cr_assert_eq(err, good ? QN_OK : QN_ECORRUPT, "%zu bytes", len);
    }
}

Test(peer_state, what_no_node_says_is_refused)
{
    struct qn_peer_state got;
    struct qn_peer_state s = some;
    cr_assert_eq(decode(&s, &got), QN_OK);
    s.inc = 0;
    cr_expect_eq(decode(&s, &got), QN_ECORRUPT, "no incarnation");
    s = some;
    s.applied = QN_SLOT_MAX + 1;
    cr_expect_eq(decode(&s, &got), QN_ECORRUPT, "applied beyond learned");
    s = some;
    s.learned = QN_SLOT_MAX + 1;
    cr_expect_eq(decode(&s, &got), QN_ECORRUPT, "no slot is as high");
}
