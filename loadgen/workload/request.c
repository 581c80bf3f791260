#include "loadgen/workload/request.h"

#include "core/base/assert.h"
#include "core/base/err.h"
#include "loadgen/base/digits.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * If all sizes are equal, a request is a copy of its template with the digits
 * of its key. Otherwise it is assembled from blocks of constant size, which the
 * compiler turns into a few moves: 16 digits of the key number at once, the
 * mark of a value at once. A block may write beyond the end of its field, never
 * before its beginning, so the buffer keeps QN_REQUEST_SLACK bytes free.
 *
 * Of a request only the key number is kept; the value that a GET must return is
 * computed from it again. So requests may be outstanding while their buffer is
 * already filled with the next ones.
 */

#define BLOCK QN_DIGITS

enum { EXTRA_MAX = 64 };

#define TEXT(s)                                                                \
    {                                                                          \
        (const uint8_t *)(s), sizeof(s) - 1                                    \
    }

static const struct qn_slice ifeq = TEXT("$4\r\nIFEQ\r\n");
static const struct qn_slice scan_tail =
    TEXT("\r\n$5\r\nCOUNT\r\n$2\r\n10\r\n");
static_assert(QN_SCAN_COUNT == 10, "the count above");

int qn_outgoing_init(struct qn_outgoing *out, const struct qn_workload *w,
                     uint32_t depth)
{
    *out = (struct qn_outgoing){
        .bytes = malloc(depth * w->copy_max + EXTRA_MAX),
        .iov = calloc((size_t)depth * w->iov_max + 1, sizeof *out->iov),
    };
    if (out->bytes == NULL || out->iov == NULL) {
        qn_outgoing_fini(out);
        return QN_ENOMEM;
    }
    return QN_OK;
}

void qn_outgoing_fini(struct qn_outgoing *out)
{
    free(out->bytes);
    free(out->iov);
    *out = (struct qn_outgoing){0};
}

/* Contiguous bytes share one piece. */
static void add_piece(struct qn_outgoing *out, const uint8_t *from, size_t len)
{
    if (out->iov_count > 0) {
        struct iovec *last = &out->iov[out->iov_count - 1];
        if ((uint8_t *)last->iov_base + last->iov_len == from) {
            last->iov_len += len;
            return;
        }
    }
    out->iov[out->iov_count++] = (struct iovec){(void *)from, len};
}

void qn_outgoing_append(struct qn_outgoing *out, const void *bytes, size_t len)
{
    QN_ASSERT(len <= EXTRA_MAX);
    uint8_t *to = out->bytes + out->len;
    memcpy(to, bytes, len);
    out->len += len;
    add_piece(out, to, len);
}

/* ---- marks ---- */

static void hex16(uint8_t to[BLOCK], uint64_t n)
{
    static const char digit[] = "0123456789abcdef";
    for (int i = BLOCK - 1; i >= 0; i--) {
        to[i] = (uint8_t)digit[n & 15];
        n >>= 4;
    }
}

static bool parse_hex16(const uint8_t from[BLOCK], uint64_t *out)
{
    uint64_t n = 0;
    for (int i = 0; i < BLOCK; i++) {
        uint8_t c = from[i];
        uint8_t digit = 16;
        if (c >= '0' && c <= '9') {
            digit = (uint8_t)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            digit = (uint8_t)(c - 'a' + 10);
        }
        if (digit == 16) {
            return false;
        }
        n = n << 4 | digit;
    }
    *out = n;
    return true;
}

/* ---- writing ---- */

static uint8_t *put(uint8_t *p, const struct qn_slice *s)
{
    memcpy(p, s->data, s->len);
    return p + s->len;
}

static uint8_t *put_crlf(uint8_t *p)
{
    memcpy(p, "\r\n", 2);
    return p + 2;
}

/* "$100" and CRLF. */
static uint8_t *put_bulk_header(uint8_t *p, uint64_t size)
{
    QN_DASSERT(size < 10000000000);
    uint8_t block[BLOCK];
    uint64_t lower = qn_digits8(size % 100000000);
    *p++ = '$';
    if (size < 10) {
        *p++ = (uint8_t)('0' + size);
    } else if (size < 100) {
        memcpy(p, (uint8_t *)&lower + 6, 2);
        p += 2;
    } else {
        uint32_t digits = qn_digits_count(size);
        qn_digits16(block, size);
        memcpy(p, block + BLOCK - digits, digits);
        p += digits;
    }
    return put_crlf(p);
}

static uint8_t *put_key(const struct qn_workload *w, uint8_t *p, char letter,
                        uint64_t key)
{
    uint64_t size = qn_workload_key_size(w, key);
    p = put_bulk_header(p, size);
    uint8_t block[BLOCK];
    qn_digits16(block, key);
    if (size >= BLOCK) {
        if (size > BLOCK) {
            memset(p, '0', size - BLOCK);
        }
        memcpy(p + size - BLOCK, block, BLOCK);
    } else {
        memcpy(p, block + BLOCK - size, size);
    }
    *p = (uint8_t)letter;
    if (w->tag_len > 0) {
        memcpy(p + 1, w->opts.tag, w->tag_len);
    }
    return put_crlf(p + size);
}

/* Make the mark at the beginning of a value of `size` bytes. @return its
 * length. */
static size_t make_mark(const struct qn_workload *w, uint64_t key,
                        uint64_t value, uint64_t size, uint8_t mark[BLOCK])
{
    if (w->opts.unique) {
        hex16(mark, value);
        return QN_MARK_UNIQUE;
    }
    size_t len = QN_MIN(size, (uint64_t)QN_MARK_PLAIN);
    uint8_t block[2 * BLOCK] = {0};
    uint64_t lower = qn_digits8(key % 100000000);
    memcpy(block, &lower, 8);
    memcpy(mark, block + QN_MARK_PLAIN - len, BLOCK);
    return len;
}

/* The filler behind the mark; followed by CRLF, except for unique values. */
static const uint8_t *filler_of(const struct qn_workload *w, size_t len,
                                uint64_t value)
{
    return w->opts.unique ? w->filler + value % QN_FILLER_SHIFTS
                          : w->filler + w->filler_len - len - 2;
}

/* A request being written: the bytes between out->len and p are not yet in a
 * piece. */
struct pen {
    const struct qn_workload *workload;
    struct qn_outgoing *out;
    uint8_t *p;
};

static void pen_flush(struct pen *pen)
{
    struct qn_outgoing *out = pen->out;
    uint8_t *from = out->bytes + out->len;
    size_t len = (size_t)(pen->p - from);
    add_piece(out, from, len);
    out->len += len;
}

static void pen_value(struct pen *pen, uint64_t key, uint64_t value)
{
    const struct qn_workload *w = pen->workload;
    uint64_t size = qn_workload_value_size(w, key, value);
    uint8_t mark[BLOCK];
    size_t mark_len = make_mark(w, key, value, size, mark);
    size_t rest = size - mark_len;
    size_t tail = w->opts.unique ? 0 : 2; /* CRLF in the same block */
    const uint8_t *filler = filler_of(w, rest, value);
    pen->p = put_bulk_header(pen->p, size);
    memcpy(pen->p, mark, BLOCK);
    pen->p += mark_len;
    if (size <= QN_VALUE_INLINE_MAX) {
        memcpy(pen->p, filler, rest + tail);
        pen->p += rest + tail;
    } else {
        pen_flush(pen);
        add_piece(pen->out, filler, rest + tail);
    }
    if (tail == 0) {
        pen->p = put_crlf(pen->p);
    }
}

static void pen_key(struct pen *pen, char letter, uint64_t key)
{
    pen->p = put_key(pen->workload, pen->p, letter, key);
}

static void pen_cas(struct pen *pen, const struct qn_request *r)
{
    pen_key(pen, 'k', r->key);
    if (pen->workload->opts.cas == QN_CAS_IFEQ) {
        pen_value(pen, r->key, r->value);
        pen->p = put(pen->p, &ifeq);
        pen_value(pen, r->key, r->expected);
    } else {
        pen_value(pen, r->key, r->expected);
        pen_value(pen, r->key, r->value);
    }
}

static void pen_mset(struct pen *pen, struct qn_walk *walk)
{
    for (uint64_t i = 0; i < pen->workload->opts.mset_keys; i++) {
        uint64_t key = qn_walk_next(walk);
        pen_key(pen, 'k', key);
        pen_value(pen, key, 0);
    }
}

static void pen_scan(struct pen *pen, uint64_t cursor)
{
    qn_digits16(pen->p, cursor);
    pen->p = put(pen->p + BLOCK, &scan_tail);
}

static void write_parts(const struct qn_workload *w, const struct qn_request *r,
                        struct qn_walk *walk, struct qn_outgoing *out)
{
    struct pen pen = {w, out, put(out->bytes + out->len, &w->head[r->command])};
    switch ((enum qn_command)r->command) {
    case QN_COMMAND_GET:
    case QN_COMMAND_DEL:
        pen_key(&pen, 'k', r->key);
        break;
    case QN_COMMAND_INCR:
        pen_key(&pen, 'c', r->key);
        break;
    case QN_COMMAND_SET:
        pen_key(&pen, 'k', r->key);
        pen_value(&pen, r->key, r->value);
        break;
    case QN_COMMAND_CAS:
        pen_cas(&pen, r);
        break;
    case QN_COMMAND_MSET:
        pen_mset(&pen, walk);
        break;
    case QN_COMMAND_SCAN:
        pen_scan(&pen, r->key);
        break;
    case QN_COMMAND_PING:
    case QN_COMMAND_COUNT:
        break;
    }
    pen_flush(&pen);
}

static void write_template(const struct qn_workload *w,
                           const struct qn_template *t,
                           const struct qn_request *r, struct qn_outgoing *out)
{
    uint8_t *to = out->bytes + out->len;
    uint64_t lower = qn_digits8(r->key % 100000000);
    memcpy(to, t->bytes, t->len);
    if (w->small_numbers) {
        memcpy(to + t->key_end - 8, &lower, 8);
    } else {
        uint8_t block[BLOCK];
        uint64_t room = w->opts.key_size.min - 1 - w->tag_len;
        size_t n = QN_MIN(room, (uint64_t)BLOCK);
        qn_digits16(block, r->key);
        memcpy(to + t->key_end - n, block + BLOCK - n, n);
    }
    if (t->mark_len == QN_MARK_PLAIN) {
        memcpy(to + t->mark_at, &lower, 8);
    } else if (t->mark_len > 0) {
        uint8_t mark[BLOCK];
        make_mark(w, r->key, r->value, w->opts.value_size.min, mark);
        memcpy(to + t->mark_at, mark, t->mark_len);
    }
    add_piece(out, to, t->len);
    out->len += t->len;
    if (t->rest_len > 0) {
        add_piece(out, w->filler + w->filler_len - t->rest_len, t->rest_len);
    }
}

void qn_request_write(const struct qn_workload *w, const struct qn_request *r,
                      struct qn_walk *walk, struct qn_outgoing *out)
{
    const struct qn_template *t = &w->template[r->command];
    if (t->bytes != NULL) {
        write_template(w, t, r, out);
    } else {
        write_parts(w, r, walk, out);
    }
}

/* Made once from its parts, then kept. */
static int make_template(struct qn_workload *w, enum qn_command command)
{
    struct qn_outgoing out;
    if (qn_outgoing_init(&out, w, 1) != QN_OK) {
        return QN_ENOMEM;
    }
    const struct qn_request r = {.command = (uint8_t)command};
    write_parts(w, &r, NULL, &out);
    struct qn_template *t = &w->template[command];
    uint64_t size = w->opts.value_size.min;
    uint8_t block[2 * BLOCK];
    size_t key_header =
        (size_t)(put_bulk_header(block, w->opts.key_size.min) - block);
    t->len = out.len;
    t->key_end = w->head[command].len + key_header + w->opts.key_size.min;
    if (command == QN_COMMAND_SET) {
        uint8_t *end = put_bulk_header(block, size);
        t->mark_at = t->key_end + 2 + (size_t)(end - block);
        t->mark_len = make_mark(w, 0, 0, size, block);
        t->rest_len = out.iov_count > 1 ? out.iov[1].iov_len : 0;
    }
    free(out.iov);
    t->bytes = out.bytes;
    return QN_OK;
}

int qn_request_make_templates(struct qn_workload *w)
{
    static const uint8_t one_key[] = {QN_COMMAND_GET, QN_COMMAND_SET,
                                      QN_COMMAND_INCR, QN_COMMAND_DEL};
    if (w->opts.key_size.kind != QN_SIZES_FIXED ||
        w->opts.value_size.kind != QN_SIZES_FIXED || w->opts.unique) {
        return QN_OK;
    }
    for (size_t i = 0; i < QN_ARRAY_COUNT(one_key); i++) {
        int err = make_template(w, (enum qn_command)one_key[i]);
        if (err != QN_OK) {
            return err;
        }
    }
    return QN_OK;
}

/* ---- checking ---- */

static bool is_plain(const struct qn_workload *w, uint64_t key,
                     const struct qn_reply *reply)
{
    uint64_t size = qn_workload_value_size(w, key, 0);
    if (reply->type != '$' || (uint64_t)reply->number != size) {
        return false;
    }
    if (size == 0) { /* an empty value has no head */
        return true;
    }
    uint8_t mark[BLOCK];
    size_t mark_len = make_mark(w, key, 0, size, mark);
    return memcmp(reply->head, mark, mark_len) == 0 &&
           memcmp(reply->head + mark_len, filler_of(w, size - mark_len, 0),
                  reply->head_len - mark_len) == 0;
}

/* The number of a unique value determines all of its bytes. */
static bool is_unique(const struct qn_workload *w, const struct qn_reply *reply,
                      uint64_t *value)
{
    uint64_t number;
    if (reply->type != '$' || reply->number < QN_MARK_UNIQUE ||
        !parse_hex16(reply->head, &number)) {
        return false;
    }
    uint64_t size = qn_workload_value_size(w, 0, number);
    if ((uint64_t)reply->number != size) {
        return false;
    }
    struct qn_reply_sum sum = {0, 0};
    qn_reply_sum_add(&sum, reply->head, QN_MARK_UNIQUE);
    qn_reply_sum_add(&sum, filler_of(w, size - QN_MARK_UNIQUE, number),
                     size - QN_MARK_UNIQUE);
    *value = number;
    return sum.a == reply->sum.a && sum.b == reply->sum.b;
}

bool qn_request_check_value(const struct qn_workload *w, uint64_t key,
                            const struct qn_reply *reply, uint64_t *value)
{
    *value = 0;
    return w->opts.unique ? is_unique(w, reply, value)
                          : is_plain(w, key, reply);
}

void qn_request_describe(const struct qn_workload *w,
                         const struct qn_request *r, char *text, size_t size)
{
    const char *name = qn_mix_op_name((enum qn_op)r->op);
    if (r->command == QN_COMMAND_PING || r->command == QN_COMMAND_MSET ||
        r->command == QN_COMMAND_SCAN) {
        snprintf(text, size, "%s", name);
        return;
    }
    uint8_t key[2 * QN_REQUEST_SLACK + QN_KEY_SIZE_MAX];
    uint8_t *end =
        put_key(w, key, r->command == QN_COMMAND_INCR ? 'c' : 'k', r->key);
    int len = (int)qn_workload_key_size(w, r->key);
    snprintf(text, size, "%s of key %.*s", name, len,
             (const char *)end - 2 - len);
}
