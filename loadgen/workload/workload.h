#ifndef QN_LOADGEN_WORKLOAD_WORKLOAD_H
#define QN_LOADGEN_WORKLOAD_WORKLOAD_H

/**
 * A workload: operations, keys and values. Their bytes: request.h.
 *
 * Key number i is a letter and i in decimal, padded with zeros: 'k' for keys
 * with a value, 'c' for counters (INCR). A tag behind the letter separates the
 * keys of a run from all others. The sizes of key and value are functions of i;
 * the size of a unique value is a function of its number. A value is a mark and
 * filler:
 *
 *     plain    mark: the last QN_MARK_PLAIN digits of the key, or what fits.
 *              Every client writes the same value, so every GET can be checked
 *     unique   mark: QN_MARK_UNIQUE hexadecimal digits of a number that no
 *              other write has; a value has at least this size. Its filler
 *              follows from the number, too, and is checked to its end, so a
 *              value made of parts of two values is detected
 *
 * Values longer than QN_VALUE_INLINE_MAX are not copied: requests point into
 * one shared block of filler.
 *
 *     head             key                       value
 *     *3$3SET          $16 k000000000000042      $100 00000042xxxx xxxx...CRLF
 *     (per operation)                                 mark         (block)
 *
 * Immutable after init: shared by all threads. It must not be moved.
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
#define QN_SCAN_COUNT       10 /* COUNT of each SCAN */
#define QN_REQUEST_SLACK    32 /* bytes that may be written beyond the end */

/** Form of a compare-and-set. The reply is OK, or null if it fails. */
enum qn_cas_form {
    QN_CAS_IFEQ, /* SET key new IFEQ old: Redis 8.4, Valkey 8.1, quoind */
    QN_CAS_EVAL  /* a script: any Redis */
};

struct qn_workload_opts {
    struct qn_mix mix;
    struct qn_dist_spec dist;
    uint64_t keys;              /* 1..QN_KEYS_MAX; insert adds more */
    struct qn_sizes key_size;   /* up to QN_KEY_SIZE_MAX; min is raised to the
                                   size of a letter and all digits */
    struct qn_sizes value_size; /* up to QN_VALUE_SIZE_MAX */
    uint64_t mset_keys;         /* keys per MSET, 1..QN_MSET_KEYS_MAX */
    enum qn_cas_form cas;
    bool unique;              /* unique values; excludes mset */
    char tag[QN_TAG_MAX + 1]; /* behind the letter of each key; "": none */
};

/** Command of a request. */
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

/** The bytes of a command with one key, for key 0. If all sizes are equal, a
 *  request is a copy of them with the digits of its own key. */
struct qn_template {
    uint8_t *bytes;  /* [len] NULL: no template */
    size_t len;      /* without filler that is only referenced */
    size_t key_end;  /* end of the digits of the key */
    size_t mark_at;  /* SET: begin of the mark of the value */
    size_t mark_len; /* 0 without a value */
    size_t rest_len; /* referenced filler, including CRLF */
};

struct qn_workload {
    struct qn_workload_opts opts;
    struct qn_dist dist;
    struct qn_slice head[QN_COMMAND_COUNT]; /* bytes before the first key */
    uint8_t mset_head[32];
    struct qn_template template[QN_COMMAND_COUNT];
    bool small_numbers; /* 8 digits are enough for all keys, and fit behind the
                           tag */
    uint8_t *filler;    /* [filler_len] ends with CRLF */
    size_t filler_len;
    size_t tag_len;
    size_t copy_max;  /* maximum of bytes copied per request */
    uint32_t iov_max; /* maximum of pieces per request */
};

/**
 * @return QN_OK; QN_EINVAL if key_size cannot hold the keys or another value is
 *         out of its range; QN_ENOMEM. On failure nothing has to be freed.
 */
int qn_workload_init(struct qn_workload *w,
                     const struct qn_workload_opts *opts);

void qn_workload_fini(struct qn_workload *w);

/** Smallest key size that holds all keys, including insertions. */
uint64_t qn_workload_key_size_min(const struct qn_workload_opts *opts);

/** Size of a key, and of a value of it, in bytes; `value` is its number if
 *  values are unique. */
uint64_t qn_workload_key_size(const struct qn_workload *w, uint64_t key);
uint64_t qn_workload_value_size(const struct qn_workload *w, uint64_t key,
                                uint64_t value);

#endif
