#include "loadgen/request.h"

#include "core/base/assert.h"
#include "core/base/err.h"
#include "loadgen/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A request is a copy of its template of some 40 bytes and a few digits; of
 * what was asked only the number of the key is kept, and the value that a GET
 * must answer is made from it again. So requests may be outstanding while their
 * buffer is already filled with the next ones.
 */

enum { EXTRA_MAX = 64 };

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

/* Bytes that follow each other share one piece. */
static uint8_t *copy(struct qn_outgoing *out, const void *bytes, size_t len)
{
    uint8_t *to = out->bytes + out->len;
    memcpy(to, bytes, len);
    out->len += len;
    struct iovec *last =
        out->iov_count > 0 ? &out->iov[out->iov_count - 1] : NULL;
    if (last != NULL && (uint8_t *)last->iov_base + last->iov_len == to) {
        last->iov_len += len;
    } else {
        out->iov[out->iov_count++] = (struct iovec){to, len};
    }
    return to;
}

void qn_outgoing_append(struct qn_outgoing *out, const void *bytes, size_t len)
{
    QN_ASSERT(len <= EXTRA_MAX);
    copy(out, bytes, len);
}

static void add_piece(const struct qn_workload *w, const struct qn_template *t,
                      uint64_t key, struct qn_outgoing *out)
{
    uint8_t *piece = copy(out, t->piece, t->piece_len);
    uint8_t *key_end = piece + t->key_at;
    qn_workload_digits(key_end, key, w->digits);
    if (t->mark_len > 0) {
        memcpy(piece + t->mark_at, key_end - t->mark_len, t->mark_len);
    }
    if (t->tail) {
        out->iov[out->iov_count++] = (struct iovec){w->tail, w->tail_len};
    }
}

void qn_request_choose(const struct qn_workload *w, uint64_t *random,
                       struct qn_request *r)
{
    const struct qn_mix *mix = &w->opts.mix;
    uint32_t sum = mix->upto[QN_OP_COUNT - 1];
    enum qn_op op = qn_mix_pick(mix, qn_random_below(random, sum));
    *r = (struct qn_request){.op = (uint8_t)op};
    if (w->template[op].pieces > 0) {
        r->key = qn_random_below(random, w->opts.keys);
    }
}

void qn_request_write(const struct qn_workload *w, uint64_t *random,
                      const struct qn_request *r, struct qn_outgoing *out)
{
    const struct qn_template *t = &w->template[r->op];
    copy(out, t->prefix, t->prefix_len);
    uint64_t key = r->key;
    for (uint32_t i = 0; i < t->pieces; i++) {
        add_piece(w, t, key, out);
        if (i + 1 < t->pieces) {
            key = qn_random_below(random, w->opts.keys);
        }
    }
}

static bool is_text(const struct qn_reply *r, const char *text)
{
    return r->type == '+' && r->head_len == strlen(text) &&
           memcmp(r->head, text, r->head_len) == 0;
}

/* A GET answers null or the value that everybody writes to this key. */
static bool value_is_right(const struct qn_workload *w, uint64_t key,
                           const struct qn_reply *r)
{
    uint8_t mark[QN_VALUE_MARK_MAX];
    if (r->type != '$' || (uint64_t)r->number != w->opts.value_size) {
        return false;
    }
    if (w->mark_len == 0) {
        return true; /* an empty value has no head */
    }
    qn_workload_digits(mark + w->mark_len, key, (uint32_t)w->mark_len);
    return memcmp(r->head, mark, w->mark_len) == 0;
}

bool qn_request_is_right(const struct qn_workload *w,
                         const struct qn_request *r,
                         const struct qn_reply *reply)
{
    switch (r->op) {
    case QN_OP_GET:
        return reply->type == '_' || value_is_right(w, r->key, reply);
    case QN_OP_INCR:
        return reply->type == ':';
    case QN_OP_PING:
        return is_text(reply, "PONG");
    default:
        return is_text(reply, "OK");
    }
}

void qn_request_describe(const struct qn_request *r, char *text, size_t size)
{
    const char *name = qn_op_name((enum qn_op)r->op);
    if (r->op == QN_OP_PING) {
        snprintf(text, size, "%s", name);
    } else {
        snprintf(text, size, "%s of key number %" PRIu64, name, r->key);
    }
}
