#ifndef QN_KVS_SNAPSHOT_SNAPSHOT_INTERNAL_H
#define QN_KVS_SNAPSHOT_SNAPSHOT_INTERNAL_H

/** Layouts that the writer and the reader of snapshots share. */

#include <stddef.h>
#include <stdint.h>

#define QN_SNAPSHOT_MAGIC    0x50414e53u /* "SNAP" */
#define QN_SNAPSHOT_DEADLINE 1u          /* flag: a deadline follows */

struct qn_snapshot_head {
    uint32_t magic;
    uint16_t version;
    uint8_t kind;
    uint8_t zero;
    uint32_t number; /* from 0 */
    uint32_t bytes;  /* of the body */
    uint64_t position;
    uint64_t sum; /* qn_snapshot_sum */
};

/** META begins with it; then sessions, last refused commands, utility log,
 *  flushes, options. */
struct qn_snapshot_fixed {
    uint64_t stamp_ms, applied_ms, seed, keys, logical_bytes;
    uint32_t nodes, dbs, ul_count, zero;
};

struct qn_snapshot_entry {
    uint8_t flags, db;
    uint16_t zero;
    uint32_t key_len, value_len, zero_too;
    uint64_t slot;
};

/** The checksum of a whole chunk without its field `sum`. @param len At least
 *  the bytes of a head. */
uint64_t qn_snapshot_sum(const uint8_t *chunk, size_t len);

#endif
