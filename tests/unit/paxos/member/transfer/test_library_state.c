/* The library's own state as a block: what is written is read, and what cannot
 * be is refused. */
#include "paxos/member/transfer/library_state.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "tests/support/test.h"

#define NODES 3u
#define SLOT  1000u

static uint8_t block[QN_LIBRARY_STATE_MAX];
static struct qn_library_state state, got;

static size_t make(void)
{
    state = (struct qn_library_state){
        .resume = {.position = SLOT,
                   .stamp_ms = 77,
                   .session = {{5, 6}, {7, 8}, {9, 0}},
                   .ended = {0, 6, 4}},
        .nodes = NODES,
        .ul_count = 2};
    state.ul[0] = (struct qn_ul_entry){.index = 4, .kind = QN_UL_LEADER};
    state.ul[1] = (struct qn_ul_entry){
        .index = 5, .tenure = 4, .leader = 2, .leader_inc = 11};
    return qn_library_state_encode(&state, block);
}

/* A copy of exactly its size: a sanitizer sees what is read beyond. */
static int read_block(const uint8_t *bytes, size_t len)
{
    uint8_t *own = malloc(len + (len == 0));
    memcpy(own, bytes, len);
    int err = qn_library_state_decode(&got, NODES, (struct qn_slice){own, len});
    free(own);
    return err;
}

Test(library_state, what_is_written_is_read)
{
    size_t len = make();
    cr_assert_leq(len, QN_LIBRARY_STATE_MAX);
    cr_assert_eq(read_block(block, len), QN_OK);
    cr_assert_eq(got.resume.position, SLOT);
    cr_assert_eq(got.resume.stamp_ms, 77);
    cr_assert_eq(got.resume.session[1].inc, 7);
    cr_assert_eq(got.resume.session[1].last, 8);
    cr_assert_eq(got.resume.session[2].inc, 9);
    cr_assert_eq(got.resume.ended[0], 0);
    cr_assert_eq(got.resume.ended[1], 6);
    cr_assert_eq(got.resume.ended[2], 4);
    cr_assert_eq(got.nodes, NODES);
    cr_assert_eq(got.ul_count, 2);
    cr_assert_eq(got.ul[1].index, 5);
    cr_assert_eq(got.ul[1].leader_inc, 11);
}

Test(library_state, the_largest_group_and_log_fit)
{
    static struct qn_library_state most;
    most.nodes = QN_NODES_MAX;
    most.ul_count = QN_UL_KEPT;
    for (uint32_t i = 0; i < QN_UL_KEPT; i++) {
        most.ul[i] = (struct qn_ul_entry){.index = 9 + i, .leader_inc = i};
    }
    size_t len = qn_library_state_encode(&most, block);
    cr_assert_eq(len, QN_LIBRARY_STATE_MAX);
    cr_assert_eq(qn_library_state_decode(&got, QN_NODES_MAX,
                                         (struct qn_slice){block, len}),
                 QN_OK);
    cr_assert_eq(got.ul[QN_UL_KEPT - 1].leader_inc, QN_UL_KEPT - 1);
}

Test(library_state, a_wrong_length_is_refused)
{
    size_t len = make();
    for (size_t n = 0; n < len; n++) {
        cr_assert_eq(read_block(block, n), QN_ECORRUPT, "%zu bytes", n);
    }
    block[len] = 0;
    cr_assert_eq(read_block(block, len + 1), QN_ECORRUPT);
}

Test(library_state, what_cannot_be_is_refused_and_changes_nothing)
{
    static const struct {
        size_t at;
        uint64_t v;
        size_t n;
    } f[] = {{0, QN_LIBRARY_STATE_VERSION + 1, 4},
             {0, 0, 4},
             {4, NODES + 1, 4},
             {4, NODES - 1, 4},
             {8, QN_UL_KEPT + 1, 4},
             {8, UINT32_MAX, 4},
             {8, 1, 4},
             {8, 3, 4},
             {12, 1, 4},
             {16, QN_SLOT_MAX + 1, 8},
             {16, UINT64_MAX, 8},
             {24, QN_LIBRARY_STATE_STAMP_MAX, 8},
             {32, 0, 8}, /* a command of no incarnation */
             {32 + 16, QN_LIBRARY_STATE_LIVES_MAX, 8},
             {32 + NODES * 16, QN_LIBRARY_STATE_LIVES_MAX, 8},
             {32 + NODES * 24 - 8, UINT64_MAX, 8},
             {32 + NODES * 24 + QN_UL_BYTES, 0x77, 4}}; /* not consecutive */
    for (size_t i = 0; i < sizeof f / sizeof f[0]; i++) {
        size_t len = make();
        got = (struct qn_library_state){.nodes = 99};
        memcpy(block + f[i].at, &f[i].v, f[i].n);
        cr_assert_eq(read_block(block, len), QN_ECORRUPT, "case %zu", i);
        cr_assert_eq(got.nodes, 99, "case %zu", i);
    }
}

Test(library_state, the_last_stamp_and_incarnation_are_read)
{
    static const struct qn_session last = {QN_LIBRARY_STATE_LIVES_MAX - 1,
                                           UINT64_MAX};
    make();
    state.resume.stamp_ms = QN_LIBRARY_STATE_STAMP_MAX - 1;
    state.resume.session[0] = (struct qn_session){0, 0};
    state.resume.session[1] = last;
    state.resume.ended[2] = QN_LIBRARY_STATE_LIVES_MAX - 1;
    size_t len = qn_library_state_encode(&state, block);
    cr_assert_eq(read_block(block, len), QN_OK);
    cr_assert_eq(got.resume.session[1].inc, last.inc);
    cr_assert_eq(got.resume.ended[2], last.inc);
}

Test(library_state, more_entries_than_are_kept_are_refused)
{
    static uint8_t longer[QN_LIBRARY_STATE_MAX + QN_UL_BYTES];
    const uint32_t count = QN_UL_KEPT + 1;
    make();
    const size_t seats = 32 + NODES * (sizeof(struct qn_session) + 8);
    memcpy(longer, block, seats);
    memcpy(longer + 8, &count, sizeof count);
    for (uint32_t i = 0; i < count; i++) {
        const struct qn_ul_entry e = {.index = i};
        qn_ul_encode(&e, longer + seats + i * QN_UL_BYTES);
    }
    cr_assert_eq(read_block(longer, seats + count * QN_UL_BYTES), QN_ECORRUPT);
}

/* Any bytes are refused, or read as a state that keeps the limits. */
Test(library_state, garbage_does_no_harm)
{
    uint64_t random = 4711;
    uint32_t refused = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        size_t len = make();
        for (uint32_t k = 0; k < 1 + i % 4; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            block[(random >> 33) % len] = (uint8_t)(random >> 25);
        }
        int err = read_block(block, len);
        cr_assert(err == QN_OK || err == QN_ECORRUPT);
        refused += err != QN_OK;
        if (err == QN_OK) {
            cr_assert_eq(got.nodes, NODES);
            cr_assert_leq(got.resume.position, QN_SLOT_MAX);
            cr_assert_eq(got.ul[1].index, got.ul[0].index + 1);
        }
    }
    cr_assert_gt(refused, 5000);
}
