#include "loadgen/workload/workload.h"

#include "core/base/assert.h"
#include "core/base/err.h"
#include "loadgen/base/digits.h"
#include "loadgen/base/random.h"
#include "loadgen/workload/request.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Bytes that all requests share are made once: those before the first key of
 * each command, and one block of filler. The filler of a plain value is the END
 * of that block, so that one piece of memory holds it together with its CRLF,
 * whatever the size. The filler of a unique value begins at an offset given by
 * its number, in a block of random letters: no byte is made for it, and the
 * filler confirms the number.
 *
 * Why a plain mark has 8 digits and not all of them: small values are common,
 * and 8 digits distinguish 10^8 keys.
 *
 * Sizes do not depend on the seed: a second run finds what the first one wrote.
 */

/* Bound for key numbers with insertions; no run reaches it. */
#define INSERT_NUMBERS UINT64_C(1000000000000)

static const char pattern[] =
    "quoin quoin quoin quoin quoin quoin quoin quoin ";

#define SCRIPT                                                                 \
    "if redis.call('GET',KEYS[1])==ARGV[1] then "                              \
    "return redis.call('SET',KEYS[1],ARGV[2]) end return false"

#define TEXT(s)                                                                \
    {                                                                          \
        (const uint8_t *)(s), sizeof(s) - 1                                    \
    }

static const struct qn_slice heads[QN_COMMAND_COUNT] = {
    [QN_COMMAND_GET] = TEXT("*2\r\n$3\r\nGET\r\n"),
    [QN_COMMAND_SET] = TEXT("*3\r\n$3\r\nSET\r\n"),
    [QN_COMMAND_INCR] = TEXT("*2\r\n$4\r\nINCR\r\n"),
    [QN_COMMAND_PING] = TEXT("*1\r\n$4\r\nPING\r\n"),
    [QN_COMMAND_DEL] = TEXT("*2\r\n$3\r\nDEL\r\n"),
    [QN_COMMAND_CAS] = TEXT("*5\r\n$3\r\nSET\r\n"),
    [QN_COMMAND_SCAN] = TEXT("*4\r\n$4\r\nSCAN\r\n$16\r\n"),
};
static const struct qn_slice eval_head =
    TEXT("*6\r\n$4\r\nEVAL\r\n$100\r\n" SCRIPT "\r\n$1\r\n1\r\n");
static_assert(sizeof SCRIPT - 1 == 100, "the length above");

/* ---- sizes ---- */

/* Independent for keys and for values, and of the order of the keys. */
static uint64_t hash(uint64_t key, uint64_t salt)
{
    return qn_random_mix((2 * key + salt) * UINT64_C(0x9e3779b97f4a7c15));
}

static uint64_t size_of(const struct qn_sizes *s, uint64_t key, uint64_t salt)
{
    return s->kind == QN_SIZES_FIXED ? s->min : qn_sizes_at(s, hash(key, salt));
}

uint64_t qn_workload_key_size(const struct qn_workload *w, uint64_t key)
{
    return size_of(&w->opts.key_size, key, 0);
}

uint64_t qn_workload_value_size(const struct qn_workload *w, uint64_t key,
                                uint64_t value)
{
    return size_of(&w->opts.value_size, w->opts.unique ? value : key, 1);
}

static uint64_t keys_end(const struct qn_workload_opts *o)
{
    bool grows = qn_mix_weight(&o->mix, QN_OP_INSERT) > 0;
    return grows ? INSERT_NUMBERS : o->keys;
}

uint64_t qn_workload_key_size_min(const struct qn_workload_opts *opts)
{
    return 1 + strlen(opts->tag) + qn_digits_count(keys_end(opts) - 1);
}

/* ---- init ---- */

/* Random letters, the same in every run. Two slices at different offsets differ
 * in all of their length. */
static void fill_random(uint8_t *to, size_t len)
{
    uint64_t random = 1;
    for (size_t i = 0; i < len; i++) {
        to[i] = (uint8_t)('a' + qn_random_below(&random, 26));
    }
}

static int make_filler(struct qn_workload *w)
{
    w->filler_len =
        w->opts.value_size.max + 2 + (w->opts.unique ? QN_FILLER_SHIFTS : 0);
    w->filler = malloc(w->filler_len);
    if (w->filler == NULL) {
        return QN_ENOMEM;
    }
    size_t len = w->filler_len - 2;
    if (w->opts.unique) {
        fill_random(w->filler, len);
    }
    for (size_t i = 0; i < len && !w->opts.unique; i++) {
        /* Filled from the end, so that fillers of all sizes end alike. */
        w->filler[len - 1 - i] =
            (uint8_t)pattern[sizeof pattern - 2 - i % (sizeof pattern - 1)];
    }
    memcpy(w->filler + len, "\r\n", 2);
    return QN_OK;
}

static void make_heads(struct qn_workload *w)
{
    memcpy(w->head, heads, sizeof heads);
    if (w->opts.cas == QN_CAS_EVAL) {
        w->head[QN_COMMAND_CAS] = eval_head;
    }
    int len =
        snprintf((char *)w->mset_head, sizeof w->mset_head,
                 "*%" PRIu64 "\r\n$4\r\nMSET\r\n", 1 + 2 * w->opts.mset_keys);
    w->head[QN_COMMAND_MSET] = (struct qn_slice){w->mset_head, (size_t)len};
}

/* Room for the largest request. */
static void make_limits(struct qn_workload *w)
{
    const struct qn_workload_opts *o = &w->opts;
    size_t header = 1 + 10 + 2;
    size_t key = header + o->key_size.max + 2;
    size_t value =
        header + QN_MIN(o->value_size.max, (uint64_t)QN_VALUE_INLINE_MAX) + 2;
    bool mset = qn_mix_weight(&o->mix, QN_OP_MSET) > 0;
    uint64_t pairs = mset ? QN_MAX(o->mset_keys, UINT64_C(2)) : 2;
    w->copy_max = eval_head.len + pairs * (key + value) + QN_REQUEST_SLACK;
    w->iov_max = (uint32_t)(2 * pairs + 1);
}

static bool are_valid(const struct qn_workload_opts *o)
{
    return o->keys >= 1 && o->keys <= QN_KEYS_MAX &&
           o->key_size.min <= o->key_size.max &&
           o->key_size.max >= qn_workload_key_size_min(o) &&
           o->key_size.max <= QN_KEY_SIZE_MAX &&
           o->value_size.min <= o->value_size.max &&
           o->value_size.max <= QN_VALUE_SIZE_MAX && o->mset_keys >= 1 &&
           o->mset_keys <= QN_MSET_KEYS_MAX &&
           !(o->unique && qn_mix_weight(&o->mix, QN_OP_MSET) > 0);
}

int qn_workload_init(struct qn_workload *w, const struct qn_workload_opts *opts)
{
    if (!are_valid(opts)) {
        return QN_EINVAL;
    }
    *w = (struct qn_workload){.opts = *opts};
    w->tag_len = strlen(opts->tag);
    struct qn_sizes *key = &w->opts.key_size;
    struct qn_sizes *value = &w->opts.value_size;
    key->min = QN_MAX(key->min, qn_workload_key_size_min(opts));
    if (opts->unique) {
        value->min = QN_MAX(value->min, (uint64_t)QN_MARK_UNIQUE);
        value->max = QN_MAX(value->max, value->min);
    }
    qn_dist_init(&w->dist, &opts->dist, opts->keys);
    w->small_numbers =
        keys_end(opts) <= 100000000 && key->min >= 1 + w->tag_len + 8;
    make_heads(w);
    make_limits(w);
    int err = make_filler(w);
    if (err == QN_OK) {
        err = qn_request_make_templates(w);
    }
    if (err != QN_OK) {
        qn_workload_fini(w);
    }
    return err;
}

void qn_workload_fini(struct qn_workload *w)
{
    for (int i = 0; i < QN_COMMAND_COUNT; i++) {
        free(w->template[i].bytes);
    }
    free(w->filler);
    *w = (struct qn_workload){0};
}
