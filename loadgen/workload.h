#ifndef QN_LOADGEN_WORKLOAD_H
#define QN_LOADGEN_WORKLOAD_H

/**
 * What is asked: keys, values and the bytes of each request.
 *
 * Key number i is a letter and i in decimal, padded with zeros: 'k' for keys
 * with a value, 'c' for counters (INCR). Its value is always the same bytes:
 * the last QN_VALUE_MARK_MAX digits of the key (or what fits), then filler. So
 * every GET can be checked, whoever wrote last.
 *
 * Requests are made from templates: a template is copied and its digits are
 * filled in. Values longer than QN_VALUE_INLINE_MAX are not copied: the filler
 * is one block that all requests point to.
 *
 *     prefix           piece (one per key)                       tail
 *     *3$3SET          $16 k000000000000042 $100 00000042xxxx    xxxx...CRLF
 *                           ^ key_at             ^ mark_at       (long values)
 *
 * Immutable after init: shared by all threads.
 */

#include "loadgen/mix.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QN_KEYS_MAX         UINT64_C(4000000000)
#define QN_KEY_SIZE_MAX     1024
#define QN_VALUE_SIZE_MAX   (UINT64_C(512) << 20)
#define QN_VALUE_INLINE_MAX 256
#define QN_VALUE_MARK_MAX   8
#define QN_MSET_KEYS_MAX    1000

struct qn_workload_opts {
    struct qn_mix mix;
    uint64_t keys;       /* 1..QN_KEYS_MAX */
    uint64_t key_size;   /* bytes; a letter and all digits of keys - 1 */
    uint64_t value_size; /* bytes, 0..QN_VALUE_SIZE_MAX */
    uint64_t mset_keys;  /* keys per MSET, 1..QN_MSET_KEYS_MAX */
};

struct qn_template {
    uint8_t *prefix; /* [prefix_len] once per request */
    size_t prefix_len;
    uint8_t *piece; /* [piece_len] once per key */
    size_t piece_len;
    size_t key_at;   /* where the digits end that vary, in the piece */
    size_t mark_at;  /* where the value's mark begins, in the piece */
    size_t mark_len; /* 0: no value or an empty one */
    uint32_t pieces; /* 0 for PING */
    bool tail;       /* each piece is followed by the shared tail */
};

struct qn_workload {
    struct qn_workload_opts opts;
    struct qn_template template[QN_OP_COUNT]; /* of the mix, and SET */
    uint32_t digits;                          /* decimal digits of keys - 1 */
    size_t mark_len;  /* bytes of a value that tell its key */
    uint8_t *tail;    /* [tail_len] end of a long value, with CRLF */
    size_t tail_len;  /* 0: values are inline */
    size_t copy_max;  /* bytes that one request copies, at most */
    uint32_t iov_max; /* pieces of memory that one request needs, at most */
};

/**
 * Make the templates.
 *
 * @return QN_OK; QN_EINVAL if key_size cannot hold the keys or another value is
 *         out of its range; QN_ENOMEM. Nothing is left behind on failure.
 */
int qn_workload_init(struct qn_workload *w,
                     const struct qn_workload_opts *opts);

void qn_workload_fini(struct qn_workload *w);

/** The smallest key_size that holds so many keys. */
uint64_t qn_workload_key_size_min(uint64_t keys);

/** Write key's `digits` last decimal digits so that they end before `end`. */
void qn_workload_digits(uint8_t *end, uint64_t key, uint32_t digits);

#endif
