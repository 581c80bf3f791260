#include "loadgen/workload.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Templates hold key number 0, so only the digits of a request's key number
 * that can be anything but 0 are ever written, into the key and, for a value,
 * into its mark.
 *
 * Why the mark has 8 digits and not all of them: a reply is checked against
 * the key that is still in the send buffer, by one short comparison per GET;
 * 8 digits tell 10^8 keys apart.
 */

static const char filler[] = "quoin quoin quoin quoin quoin quoin quoin quoin ";

struct text {
    uint8_t *bytes;
    size_t len;
    bool oom;
};

static void append(struct text *t, const void *bytes, size_t len)
{
    uint8_t *grown = t->oom ? NULL : realloc(t->bytes, t->len + len + 1);
    if (grown == NULL) {
        t->oom = true;
        return;
    }
    if (len > 0) {
        memcpy(grown + t->len, bytes, len);
    }
    t->bytes = grown;
    t->len += len;
}

static void append_header(struct text *t, char type, uint64_t n)
{
    char line[32];
    int len = snprintf(line, sizeof line, "%c%" PRIu64 "\r\n", type, n);
    append(t, line, (size_t)len);
}

static void append_filler(struct text *t, size_t len)
{
    while (len > 0 && !t->oom) {
        size_t n = QN_MIN(len, sizeof filler - 1);
        append(t, filler, n);
        len -= n;
    }
}

static void append_bulk(struct text *t, const char *s)
{
    append_header(t, '$', strlen(s));
    append(t, s, strlen(s));
    append(t, "\r\n", 2);
}

static void append_zeros(struct text *t, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        append(t, "0", 1);
    }
}

static void append_key(struct text *t, char letter, uint64_t size)
{
    append_header(t, '$', size);
    append(t, &letter, 1);
    append_zeros(t, size - 1);
}

static bool has_value(enum qn_op op)
{
    return op == QN_OP_SET || op == QN_OP_MSET;
}

/* The value's header, its mark, and as much of the rest as is inline. */
static void append_value(const struct qn_workload *w, struct text *t,
                         struct qn_template *p)
{
    append(t, "\r\n", 2);
    append_header(t, '$', w->opts.value_size);
    p->mark_at = t->len;
    p->mark_len = w->mark_len;
    append_zeros(t, w->mark_len);
    p->tail = w->tail_len > 0;
    if (!p->tail) {
        append_filler(t, w->opts.value_size - w->mark_len);
        append(t, "\r\n", 2);
    }
}

static int make_template(struct qn_workload *w, enum qn_op op)
{
    static const char *const command[QN_OP_COUNT] = {
        [QN_OP_GET] = "GET",   [QN_OP_SET] = "SET",   [QN_OP_INCR] = "INCR",
        [QN_OP_MSET] = "MSET", [QN_OP_PING] = "PING",
    };
    struct qn_template *p = &w->template[op];
    p->pieces = op == QN_OP_PING   ? 0
                : op == QN_OP_MSET ? (uint32_t)w->opts.mset_keys
                                   : 1;
    struct text prefix = {0};
    append_header(&prefix, '*',
                  1 + (uint64_t)p->pieces * (has_value(op) ? 2 : 1));
    append_bulk(&prefix, command[op]);

    struct text piece = {0};
    append_key(&piece, op == QN_OP_INCR ? 'c' : 'k', w->opts.key_size);
    p->key_at = piece.len;
    if (has_value(op)) {
        append_value(w, &piece, p);
    } else {
        append(&piece, "\r\n", 2);
    }
    p->prefix = prefix.bytes;
    p->prefix_len = prefix.len;
    p->piece = piece.bytes;
    p->piece_len = piece.len;
    w->copy_max = QN_MAX(w->copy_max, p->prefix_len + p->pieces * p->piece_len);
    w->iov_max = QN_MAX(w->iov_max, p->tail ? 2 * p->pieces : 1);
    return prefix.oom || piece.oom ? QN_ENOMEM : QN_OK;
}

static int make_tail(struct qn_workload *w)
{
    if (w->opts.value_size <= QN_VALUE_INLINE_MAX) {
        return QN_OK;
    }
    size_t len = w->opts.value_size - w->mark_len;
    w->tail = malloc(len + 2);
    if (w->tail == NULL) {
        return QN_ENOMEM;
    }
    for (size_t i = 0; i < len; i++) {
        w->tail[i] = (uint8_t)filler[i % (sizeof filler - 1)];
    }
    memcpy(w->tail + len, "\r\n", 2);
    w->tail_len = len + 2;
    return QN_OK;
}

static uint32_t count_digits(uint64_t n)
{
    uint32_t digits = 1;
    for (; n >= 10; n /= 10) {
        digits++;
    }
    return digits;
}

uint64_t qn_workload_key_size_min(uint64_t keys)
{
    return 1 + count_digits(keys - 1);
}

int qn_workload_init(struct qn_workload *w, const struct qn_workload_opts *opts)
{
    if (opts->keys < 1 || opts->keys > QN_KEYS_MAX ||
        opts->key_size < qn_workload_key_size_min(opts->keys) ||
        opts->key_size > QN_KEY_SIZE_MAX ||
        opts->value_size > QN_VALUE_SIZE_MAX || opts->mset_keys < 1 ||
        opts->mset_keys > QN_MSET_KEYS_MAX) {
        return QN_EINVAL;
    }
    *w = (struct qn_workload){.opts = *opts};
    w->digits = count_digits(opts->keys - 1);
    uint64_t mark_max = QN_MIN(opts->value_size, (uint64_t)QN_VALUE_MARK_MAX);
    w->mark_len = QN_MIN(mark_max, opts->key_size - 1);
    int err = make_tail(w);
    for (int op = 0; op < QN_OP_COUNT && err == QN_OK; op++) {
        if (op == QN_OP_SET || qn_mix_weight(&opts->mix, (enum qn_op)op) > 0) {
            err = make_template(w, (enum qn_op)op);
        }
    }
    if (err != QN_OK) {
        qn_workload_fini(w);
    }
    return err;
}

void qn_workload_fini(struct qn_workload *w)
{
    for (int op = 0; op < QN_OP_COUNT; op++) {
        free(w->template[op].prefix);
        free(w->template[op].piece);
    }
    free(w->tail);
    *w = (struct qn_workload){0};
}

void qn_workload_digits(uint8_t *end, uint64_t key, uint32_t digits)
{
    QN_DASSERT(digits >= 1);
    for (uint32_t i = 0; i < digits; i++) {
        *--end = (uint8_t)('0' + key % 10);
        key /= 10;
    }
}
