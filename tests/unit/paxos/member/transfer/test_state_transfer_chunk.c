/* Chunks of a transfer: what is written is read, and a chunk that is damaged,
 * missing, repeated or of another snapshot is refused. */
#include "paxos/member/transfer/state_transfer_chunk.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "tests/support/test.h"

enum { CHUNKS = 5, POSITION = 77 };

static struct {
    uint8_t bytes[QN_STATE_TRANSFER_CHUNK];
    size_t len;
} tape[CHUNKS], other[CHUNKS];

static const size_t content[CHUNKS] = {100, QN_STATE_TRANSFER_CONTENT, 1, 300,
                                       8};

static void record(bool of_other)
{
    const uint64_t bytes = content[1] + content[2] + content[3];
    for (uint32_t i = 0; i < CHUNKS; i++) {
        uint8_t *chunk = of_other ? other[i].bytes : tape[i].bytes;
        uint8_t *at = chunk + QN_STATE_TRANSFER_HEAD;
        for (size_t k = 0; k < content[i]; k++) {
            at[k] = (uint8_t)(k + i);
        }
        enum qn_chunk_kind kind = i == 0            ? QN_CHUNK_LIBRARY
                                  : i == CHUNKS - 1 ? QN_CHUNK_END
                                                    : QN_CHUNK_CONTENT;
        if (kind == QN_CHUNK_END) {
            memcpy(at, &bytes, sizeof bytes);
        }
        size_t len = qn_chunk_seal(
            chunk, kind, i, of_other ? POSITION + 1 : POSITION, content[i]);
        *(of_other ? &other[i].len : &tape[i].len) = len;
    }
}

static int read_at(struct qn_chunk_reader *r, uint32_t i)
{
    /* Of exactly its size: a sanitizer sees what is read beyond. */
    uint8_t *own = malloc(tape[i].len + 1);
    struct qn_slice got = {NULL, 0};
    memcpy(own, tape[i].bytes, tape[i].len);
    int err = qn_chunk_read(r, (struct qn_slice){own, tape[i].len}, &got);
    cr_assert((err == QN_OK) == (r->why == NULL));
    if (err == QN_OK) {
        cr_assert_eq(got.len, content[i]);
        cr_assert_eq(
            memcmp(got.data, tape[i].bytes + QN_STATE_TRANSFER_HEAD, got.len),
            0);
    }
    free(own);
    return err;
}

/* Read order[0 .. n). @return the last answer. */
static int play(const uint32_t *order, uint32_t n)
{
    struct qn_chunk_reader r = {0};
    int err = QN_OK;
    for (uint32_t i = 0; i < n && err == QN_OK; i++) {
        err = read_at(&r, order[i]);
    }
    return err;
}

static void in_order(uint32_t *order)
{
    for (uint32_t i = 0; i < CHUNKS; i++) {
        order[i] = i;
    }
}

Test(state_transfer_chunk, what_is_written_is_read)
{
    struct qn_chunk_reader r = {0};
    record(false);
    for (uint32_t i = 0; i < CHUNKS; i++) {
        cr_assert_eq(read_at(&r, i), QN_OK, "%u: %s", i, r.why);
        cr_assert_eq(r.position, POSITION);
    }
    cr_assert_eq(r.kind, QN_CHUNK_END);
    cr_assert_eq(r.bytes, content[1] + content[2] + content[3]);
}

Test(state_transfer_chunk, chunks_out_of_order_are_refused)
{
    uint32_t order[CHUNKS + 1];
    record(false);
    for (uint32_t i = 0; i + 1 < CHUNKS; i++) {
        in_order(order);
        order[i] = i + 1; /* one is missing, and one comes twice */
        cr_assert_eq(play(order, CHUNKS), QN_ECORRUPT, "%u", i);
        in_order(order);
        order[i + 1] = i;
        cr_assert_eq(play(order, CHUNKS), QN_ECORRUPT, "%u", i);
    }
    in_order(order);
    order[CHUNKS] = CHUNKS - 1;
    cr_assert_eq(play(order, CHUNKS + 1), QN_ECORRUPT, "behind the end");
}

Test(state_transfer_chunk, a_damaged_byte_is_found, .timeout = 60)
{
    uint32_t order[CHUNKS];
    record(false);
    in_order(order);
    for (uint32_t c = 0; c < CHUNKS; c++) {
        size_t step = tape[c].len > 4000 ? 371 : 3;
        for (size_t i = 0; i < tape[c].len; i += step) {
            tape[c].bytes[i] ^= (uint8_t)(1u << (i % 8));
            cr_assert_eq(play(order, c + 1), QN_ECORRUPT, "chunk %u, byte %zu",
                         c, i);
            tape[c].bytes[i] ^= (uint8_t)(1u << (i % 8));
        }
        size_t len = tape[c].len;
        for (tape[c].len = 0; tape[c].len < len; tape[c].len += step) {
            cr_assert_eq(play(order, c + 1), QN_ECORRUPT);
        }
        tape[c].len = len;
    }
}

Test(state_transfer_chunk, chunks_of_another_one_are_refused)
{
    uint32_t order[CHUNKS];
    record(false);
    record(true);
    in_order(order);
    memcpy(&tape[2], &other[2], sizeof tape[2]);
    cr_assert_eq(play(order, 3), QN_ECORRUPT);
}

/* A field of chunk c is overwritten, and the sum is right. */
static int forged(uint32_t c, size_t at, uint64_t v, size_t n)
{
    uint32_t order[CHUNKS];
    const size_t head = offsetof(struct qn_chunk_head, sum);
    record(false);
    in_order(order);
    memcpy(tape[c].bytes + at, &v, n);
    uint64_t sum = XXH3_64bits_withSeed(tape[c].bytes + QN_STATE_TRANSFER_HEAD,
                                        tape[c].len - QN_STATE_TRANSFER_HEAD,
                                        XXH3_64bits(tape[c].bytes, head));
    memcpy(tape[c].bytes + head, &sum, sizeof sum);
    return play(order, CHUNKS);
}

#define HEAD(field) offsetof(struct qn_chunk_head, field)

Test(state_transfer_chunk, nonsense_with_a_right_checksum_is_refused)
{
    static const struct {
        uint32_t chunk;
        size_t at;
        uint64_t v;
        size_t n;
    } f[] = {{0, HEAD(magic), 1, 4},
             {0, HEAD(version), QN_STATE_TRANSFER_VERSION + 1, 2},
             {0, HEAD(kind), QN_CHUNK_CONTENT, 1},
             {0, HEAD(kind), QN_CHUNK_END, 1},
             {1, HEAD(kind), QN_CHUNK_LIBRARY, 1},
             {1, HEAD(kind), QN_CHUNK_END, 1},
             {1, HEAD(kind), QN_CHUNK_END + 1, 1},
             {1, HEAD(zero), 1, 1},
             {1, HEAD(bytes), 1, 4},
             {1, HEAD(position), 99, 8},
             {1, HEAD(number), 2, 4},
             {4, HEAD(kind), QN_CHUNK_CONTENT, 1},
             {4, QN_STATE_TRANSFER_HEAD, 5, 8}};
    for (size_t i = 0; i < QN_ARRAY_COUNT(f); i++) {
        int want =
            f[i].chunk == 4 && f[i].at == HEAD(kind) ? QN_OK : QN_ECORRUPT;
        cr_assert_eq(forged(f[i].chunk, f[i].at, f[i].v, f[i].n), want,
                     "case %zu", i);
    }
}
