/*
 * The checksum covers head and content: the content's XXH3 seeded with the
 * head's. It finds damage, not malice; lengths and order are checked, too.
 * Nothing is sent twice, so one damaged chunk makes a snapshot worthless.
 */
#include "paxos/member/transfer/state_transfer_chunk.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/base/assert.h"
#include "core/base/err.h"

#define MAGIC 0x50414e53u /* "SNAP" */

static_assert(sizeof(struct qn_chunk_head) == QN_STATE_TRANSFER_HEAD,
              "the head of a chunk");

static uint64_t sum_of(const uint8_t *chunk, size_t len)
{
    size_t head = offsetof(struct qn_chunk_head, sum);
    size_t content = sizeof(struct qn_chunk_head);
    return XXH3_64bits_withSeed(chunk + content, len - content,
                                XXH3_64bits(chunk, head));
}

size_t qn_chunk_seal(uint8_t *chunk, enum qn_chunk_kind kind, uint32_t number,
                     qn_slot_t position, size_t bytes)
{
    QN_ASSERT(bytes <= QN_STATE_TRANSFER_CONTENT);
    struct qn_chunk_head h = {.magic = MAGIC,
                              .version = QN_STATE_TRANSFER_VERSION,
                              .kind = (uint8_t)kind,
                              .number = number,
                              .bytes = (uint32_t)bytes,
                              .position = position};
    memcpy(chunk, &h, sizeof h);
    h.sum = sum_of(chunk, sizeof h + bytes);
    memcpy(chunk, &h, sizeof h);
    return sizeof h + bytes;
}

static int refuse(struct qn_chunk_reader *r, const char *why)
{
    r->why = why;
    return QN_ECORRUPT;
}

/* Is it the next chunk of this snapshot? */
static int check(struct qn_chunk_reader *r, struct qn_slice chunk,
                 const struct qn_chunk_head *h)
{
    if (h->magic != MAGIC || h->version != QN_STATE_TRANSFER_VERSION) {
        return refuse(r, "the snapshot has another version");
    }
    if (h->bytes != chunk.len - sizeof *h || h->zero != 0 ||
        h->sum != sum_of(chunk.data, chunk.len)) {
        return refuse(r, "a chunk is damaged");
    }
    bool first = r->number == 0;
    if (h->number != r->number || (!first && h->position != r->position)) {
        return refuse(r, "a chunk is missing, repeated or of another snapshot");
    }
    if ((h->kind == QN_CHUNK_LIBRARY) != first || h->kind < r->kind ||
        h->kind > QN_CHUNK_END) {
        return refuse(r, "the snapshot's parts are out of order");
    }
    return QN_OK;
}

static int check_end(struct qn_chunk_reader *r, struct qn_slice content)
{
    if (content.len != sizeof r->bytes ||
        memcmp(content.data, &r->bytes, sizeof r->bytes) != 0) {
        return refuse(r, "the snapshot has other bytes than its end says");
    }
    return QN_OK;
}

int qn_chunk_read(struct qn_chunk_reader *r, struct qn_slice chunk,
                  struct qn_slice *content)
{
    struct qn_chunk_head h;
    if (r->number != 0 && r->kind == QN_CHUNK_END) {
        return refuse(r, "the snapshot continues behind its end");
    }
    if (chunk.len < sizeof h || chunk.len > QN_STATE_TRANSFER_CHUNK) {
        return refuse(r, "a chunk is too short or too long");
    }
    memcpy(&h, chunk.data, sizeof h);
    int err = check(r, chunk, &h);
    if (err != QN_OK) {
        return err;
    }
    r->number++;
    r->kind = h.kind;
    r->position = h.position;
    *content = (struct qn_slice){chunk.data + sizeof h, h.bytes};
    if (h.kind == QN_CHUNK_END) {
        return check_end(r, *content);
    }
    r->bytes += h.kind == QN_CHUNK_CONTENT ? h.bytes : 0;
    return QN_OK;
}
