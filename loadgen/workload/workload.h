#ifndef QN_LOADGEN_WORKLOAD_WORKLOAD_H
#define QN_LOADGEN_WORKLOAD_WORKLOAD_H

/**
 * What is asked: operations, keys, values. Their bytes: request.h.
 *
 * Key number i is a letter and i in decimal, padded with zeros: 'k' for keys
 * with a value, 'c' for counters (INCR); a tag behind the letter keeps a run's
 * keys apart from all others. Sizes of key and value are functions
 * of i, but for that of a unique value, which is one of its number. A value is
 * a mark and filler, up to its size:
 *
 *     plain    the last QN_MARK_PLAIN digits of the key, or what fits: a key
 *              has one value, whoever writes it, so every GET can be checked
 *     unique   QN_MARK_UNIQUE hexadecimal digits of a number that no other
 *              write has; a value is that long at least. Its filler follows
 *              from the number, too, and is checked to its end: a value made
 *              of parts of two is found wrong
 *
 * Values longer than QN_VALUE_INLINE_MAX are not copied: requests point into
 * one block of filler that all share.
 *
 *     head             key                       value
 *     *3$3SET          $16 k000000000000042      $100 00000042xxxx xxxx...CRLF
 *     (per operation)                                 mark         (block)
 *
 * Immutable after init: shared by all threads. It must stay where it is.
 */

#include "core/base/bits.h"
#include "loadgen/workload/dist.h"
#include "loadgen/workload/mix.h"
#include "loadgen/workload/sizes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QN_KEYS_MAX         UINT64_C(4000000000)
#define QN_KEY_SIZE_MAX     1024
#define QN_VALUE_SIZE_MAX   (UINT64_C(512) << 20)
#define QN_VALUE_INLINE_MAX 256
#define QN_MARK_PLAIN       8
#define QN_MARK_UNIQUE      16
#define QN_FILLER_SHIFTS    4093 /* fillers of unique values, a prime */
#define QN_MSET_KEYS_MAX    1000
#define QN_TAG_MAX          12
#define QN_SCAN_COUNT       10 /* of each SCAN */
#define QN_REQUEST_SLACK    32 /* bytes that writing may touch past its end */

/** How a compare-and-set is said. Both answer OK, or null if it fails. */
enum qn_cas_form {
    QN_CAS_IFEQ, /* SET key new IFEQ old: Redis 8.4, Valkey 8.1, quoind */
    QN_CAS_EVAL  /* a script: any Redis */
};

struct qn_workload_opts {
    struct qn_mix mix;
    struct qn_dist_spec dist;
    uint64_t keys;              /* 1..QN_KEYS_MAX; insert adds more */
    struct qn_sizes key_size;   /* up to QN_KEY_SIZE_MAX; its min is raised to
                                   what a letter and all digits need */
    struct qn_sizes value_size; /* up to QN_VALUE_SIZE_MAX */
    uint64_t mset_keys;         /* keys per MSET, 1..QN_MSET_KEYS_MAX */
    enum qn_cas_form cas;
    bool unique;              /* unique values; then no mset */
    char tag[QN_TAG_MAX + 1]; /* behind each key's letter; "": none */
};

/** What is sent for an operation, or for a part of it. */
enum qn_command {
    QN_COMMAND_GET,
    QN_COMMAND_SET,
    QN_COMMAND_INCR,
    QN_COMMAND_MSET,
    QN_COMMAND_PING,
    QN_COMMAND_DEL,
    QN_COMMAND_CAS,
    QN_COMMAND_SCAN,
    QN_COMMAND_COUNT
};

/** The bytes of a command with one key, for key 0: if all sizes are alike, a
 *  request is a copy of them with the digits of its own key. */
struct qn_template {
    uint8_t *bytes;  /* [len] NULL: there is none */
    size_t len;      /* without a value's filler that is pointed to */
    size_t key_end;  /* behind the key's digits */
    size_t mark_at;  /* SET: where the value's mark begins */
    size_t mark_len; /* 0 without a value */
    size_t rest_len; /* filler that is pointed to, with CRLF */
};

struct qn_workload {
    struct qn_workload_opts opts;
    struct qn_dist dist;
    struct qn_slice head[QN_COMMAND_COUNT]; /* before the first key */
    uint8_t mset_head[32];
    struct qn_template template[QN_COMMAND_COUNT];
    bool small_numbers; /* 8 digits are enough, and fit behind the tag */
    uint8_t *filler;    /* [filler_len] ends with CRLF */
    size_t filler_len;
    size_t tag_len;
    size_t copy_max;  /* bytes that one request copies, at most */
    uint32_t iov_max; /* pieces of memory that one request needs, at most */
};

/**
 * @return QN_OK; QN_EINVAL if key_size cannot hold the keys or another value is
 *         out of its range; QN_ENOMEM. Nothing is left behind on failure.
 */
int qn_workload_init(struct qn_workload *w,
                     const struct qn_workload_opts *opts);

void qn_workload_fini(struct qn_workload *w);

/** The smallest key size that holds so many keys, and insertions. */
uint64_t qn_workload_key_size_min(const struct qn_workload_opts *opts);

/** Bytes of a key, and of a value of it; `value` is its number if values are
 *  unique. */
uint64_t qn_workload_key_size(const struct qn_workload *w, uint64_t key);
uint64_t qn_workload_value_size(const struct qn_workload *w, uint64_t key,
                                uint64_t value);

#endif
