#ifndef QN_KVS_SNAPSHOT_SNAPSHOT_INTERNAL_H
#define QN_KVS_SNAPSHOT_SNAPSHOT_INTERNAL_H

/** Layouts that the writer and the reader of snapshots share. */

#include <stddef.h>
#include <stdint.h>

#define QN_SNAPSHOT_DEADLINE 1u /* flag: a deadline follows */

struct qn_snapshot_head {
    uint16_t version;
    uint8_t kind;
    uint8_t zero;
    uint32_t zero_too;
};

/** META begins with it; then last refused commands, flushes, options. */
struct qn_snapshot_fixed {
    uint64_t applied_ms, seed, keys, logical_bytes;
    uint32_t nodes, dbs;
};

struct qn_snapshot_entry {
    uint8_t flags, db;
    uint16_t zero;
    uint32_t key_len, value_len, zero_too;
    uint64_t slot;
};

#endif
