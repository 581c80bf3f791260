#ifndef QN_PAXOS_MEMBER_TRANSFER_STATE_TRANSFER_CHUNK_H
#define QN_PAXOS_MEMBER_TRANSFER_STATE_TRANSFER_CHUNK_H

/**
 * A snapshot as a sequence of chunks, each of which fits a channel's messages.
 *
 *     chunk 0        LIBRARY   the library's own state (library_state.h)
 *     chunks 1 ..    CONTENT   what the user's `next` has written, as it is
 *     last chunk     END       bytes of all contents, 64
 *
 *     chunk:  | magic 32 | version 16 | kind 8 | 0 | number 32 | bytes 32 |
 *             | position 64 | XXH3 of all of it 64 | content ...          |
 *
 * Numbers are in host order: a snapshot never leaves its machine. The reader
 * refuses a chunk that is cut, damaged, out of order, repeated, of another
 * version or of another snapshot, and says why.
 *
 * Pure: no allocation, IO, clock or globals. One thread per reader.
 */

#include <stdbool.h>

#include "paxos/machine/onepaxos.h"

#define QN_STATE_TRANSFER_VERSION 3u     /* of chunks and messages */
#define QN_STATE_TRANSFER_CHUNK   32768u /* bytes at most; 1/8 of a lane */
#define QN_STATE_TRANSFER_HEAD    32u    /* bytes of an empty one */
#define QN_STATE_TRANSFER_CONTENT                                              \
    (QN_STATE_TRANSFER_CHUNK - QN_STATE_TRANSFER_HEAD) /* of one chunk */

enum qn_chunk_kind {
    QN_CHUNK_LIBRARY,
    QN_CHUNK_CONTENT,
    QN_CHUNK_END,
};

struct qn_chunk_head {
    uint32_t magic;
    uint16_t version;
    uint8_t kind;
    uint8_t zero;
    uint32_t number; /* from 0 */
    uint32_t bytes;  /* of the content */
    uint64_t position;
    uint64_t sum; /* of head and content, without this field */
};

/**
 * Put the head before a content that lies at chunk + QN_STATE_TRANSFER_HEAD.
 *
 * @param chunk  [QN_STATE_TRANSFER_CHUNK]
 * @param bytes  Of the content, 0..QN_STATE_TRANSFER_CONTENT.
 * @return bytes of the chunk.
 */
size_t qn_chunk_seal(uint8_t *chunk, enum qn_chunk_kind kind, uint32_t number,
                     qn_slot_t position, size_t bytes);

/** Zeroed: begins a snapshot. Private except for `kind`, `position`, `why`. */
struct qn_chunk_reader {
    uint8_t kind;       /* of the last chunk; kinds never decrease */
    qn_slot_t position; /* of this snapshot, once a chunk was read */
    const char *why;    /* after an error: one clause */
    uint32_t number;    /* of the next chunk */
    uint64_t bytes;     /* of the contents so far */
};

/**
 * Check the next chunk.
 *
 * @param chunk    Borrowed.
 * @param content  Filled: a part of `chunk`.
 * @return QN_OK; QN_ECORRUPT, which r->why explains: then the reader is of no
 *         use any more.
 */
int qn_chunk_read(struct qn_chunk_reader *r, struct qn_slice chunk,
                  struct qn_slice *content);

#endif
