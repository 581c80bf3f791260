#include "loadgen/client.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/random.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The batch's bytes stay where they are until the next batch is made, and a
 * slot says where each request's key lies. So a reply is checked against what
 * was really sent, and nothing else is remembered about a request.
 *
 * Cost is what matters here: a generator that is slower than the server shows
 * its own speed. Per request: one copy of a template of some 40 bytes, a few
 * digits, one scan of the reply, one increment in a histogram; the clock is
 * read once per write and once per read, by the caller.
 */

enum { KIND_GREETING = QN_OP_COUNT };

int qn_client_init(struct qn_client *c, const struct qn_client_opts *opts)
{
    const struct qn_workload *w = opts->workload;
    QN_ASSERT(opts->depth_max >= 1 && opts->depth_max <= QN_CLIENT_DEPTH_MAX);
    *c = (struct qn_client){.workload = w, .random = opts->seed};
    c->slot = calloc(opts->depth_max, sizeof *c->slot);
    c->iov = calloc((size_t)opts->depth_max * w->iov_max + 1, sizeof *c->iov);
    /* The greeting is shorter than any key's SET, yet not than any PING. */
    c->bytes = malloc(opts->depth_max * w->copy_max + 64);
    if (c->slot == NULL || c->iov == NULL || c->bytes == NULL) {
        qn_client_fini(c);
        return QN_ENOMEM;
    }
    return QN_OK;
}

void qn_client_fini(struct qn_client *c)
{
    free(c->slot);
    free(c->iov);
    free(c->bytes);
    *c = (struct qn_client){0};
}

void qn_client_begin(struct qn_client *c, const struct qn_client_task *task)
{
    QN_ASSERT(task->depth >= 1);
    c->task = *task;
}

static void batch_clear(struct qn_client *c, qn_time_t now)
{
    QN_ASSERT(qn_client_idle(c));
    c->asked = 0;
    c->answered = 0;
    c->len = 0;
    c->iov_count = 0;
    c->sent_at = now;
}

/* Append to the batch; bytes that follow each other share one piece. */
static uint8_t *copy(struct qn_client *c, const uint8_t *bytes, size_t len)
{
    uint8_t *to = c->bytes + c->len;
    memcpy(to, bytes, len);
    c->len += len;
    struct iovec *last = c->iov_count > 0 ? &c->iov[c->iov_count - 1] : NULL;
    if (last != NULL && (uint8_t *)last->iov_base + last->iov_len == to) {
        last->iov_len += len;
    } else {
        c->iov[c->iov_count++] = (struct iovec){to, len};
    }
    return to;
}

static uint64_t next_key(struct qn_client *c)
{
    if (c->task.preload) {
        uint64_t key = c->task.first_key;
        c->task.first_key += c->task.step;
        return key;
    }
    return qn_random_below(&c->random, c->workload->opts.keys);
}

static void add_piece(struct qn_client *c, const struct qn_template *t,
                      struct qn_slot *slot)
{
    const struct qn_workload *w = c->workload;
    uint64_t key = next_key(c);
    uint8_t *piece = copy(c, t->piece, t->piece_len);
    uint8_t *key_end = piece + t->key_at;
    qn_workload_digits(key_end, key, w->digits);
    slot->key_at = (uint32_t)(key_end - c->bytes);
    if (t->mark_len > 0) {
        memcpy(piece + t->mark_at, key_end - t->mark_len, t->mark_len);
    }
    if (t->tail) {
        c->iov[c->iov_count++] = (struct iovec){w->tail, w->tail_len};
    }
}

static enum qn_op next_op(struct qn_client *c)
{
    const struct qn_mix *mix = &c->workload->opts.mix;
    if (c->task.preload) {
        return QN_OP_SET;
    }
    uint32_t sum = mix->upto[QN_OP_COUNT - 1];
    return qn_mix_pick(mix, qn_random_below(&c->random, sum));
}

void qn_client_fill(struct qn_client *c, qn_time_t now, struct iovec **iov,
                    int *count)
{
    QN_ASSERT(!qn_client_done(c));
    batch_clear(c, now);
    uint64_t n = QN_MIN(c->task.requests, (uint64_t)c->task.depth);
    if (c->task.requests != UINT64_MAX) {
        c->task.requests -= n;
    }
    for (; c->asked < n; c->asked++) {
        enum qn_op op = next_op(c);
        const struct qn_template *t = &c->workload->template[op];
        struct qn_slot *slot = &c->slot[c->asked];
        slot->kind = (uint8_t)op;
        copy(c, t->prefix, t->prefix_len);
        for (uint32_t i = 0; i < t->pieces; i++) {
            add_piece(c, t, slot);
        }
    }
    *iov = c->iov;
    *count = c->iov_count;
}

void qn_client_greet(struct qn_client *c, qn_time_t now, struct iovec **iov,
                     int *count)
{
    static const char hello[] = "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n";
    batch_clear(c, now);
    copy(c, (const uint8_t *)hello, sizeof hello - 1);
    c->slot[0].kind = KIND_GREETING;
    c->asked = 1;
    *iov = c->iov;
    *count = c->iov_count;
}

/* The text of a reply for a message: printable, cut. */
static void show(char *to, const struct qn_reply *r)
{
    size_t n = QN_MIN(r->head_len, (size_t)64);
    for (size_t i = 0; i < n; i++) {
        to[i] = (char)(r->head[i] < ' ' || r->head[i] > '~' ? '.' : r->head[i]);
    }
    to[n] = '\0';
}

static void note_wrong(const struct qn_client *c, const struct qn_slot *slot,
                       const struct qn_reply *r, struct qn_stats *stats)
{
    stats->op[slot->kind].wrong++;
    if (stats->first_wrong[0] != '\0') {
        return;
    }
    char text[65];
    show(text, r);
    size_t digits = c->workload->digits;
    bool keyed = slot->kind != QN_OP_PING;
    snprintf(stats->first_wrong, sizeof stats->first_wrong,
             "%s%s%.*s: type '%c', number %" PRId64 ", '%s'",
             qn_op_name((enum qn_op)slot->kind), keyed ? " of key number " : "",
             keyed ? (int)digits : 0,
             keyed ? (const char *)c->bytes + slot->key_at - digits : "",
             r->type, r->number, text);
}

static bool is_text(const struct qn_reply *r, const char *text)
{
    return r->type == '+' && r->head_len == strlen(text) &&
           memcmp(r->head, text, r->head_len) == 0;
}

/* A GET answers null or the value that everybody writes to this key. */
static bool value_is_right(const struct qn_client *c,
                           const struct qn_slot *slot, const struct qn_reply *r)
{
    const struct qn_workload *w = c->workload;
    return r->type == '$' && (uint64_t)r->number == w->opts.value_size &&
           (w->mark_len == 0 || /* an empty value has no head */
            memcmp(r->head, c->bytes + slot->key_at - w->mark_len,
                   w->mark_len) == 0);
}

static bool is_right(const struct qn_client *c, const struct qn_slot *slot,
                     const struct qn_reply *r)
{
    switch (slot->kind) {
    case QN_OP_GET:
        return r->type == '_' || value_is_right(c, slot, r);
    case QN_OP_INCR:
        return r->type == ':';
    case QN_OP_PING:
        return is_text(r, "PONG");
    default:
        return is_text(r, "OK");
    }
}

/* One reply. An error to the greeting ends the connection. */
static int take(struct qn_client *c, const struct qn_reply *r, qn_time_t now,
                struct qn_stats *stats)
{
    const struct qn_slot *slot = &c->slot[c->answered++];
    bool is_error = r->type == '-' || r->type == '!';
    if (is_error && stats->first_error[0] == '\0') {
        show(stats->first_error, r);
    }
    if (slot->kind == KIND_GREETING) {
        return is_error ? QN_EPERM : QN_OK;
    }
    struct qn_op_stats *op = &stats->op[slot->kind];
    if (is_error) {
        op->errors++;
    } else if (!is_right(c, slot, r)) {
        note_wrong(c, slot, r, stats);
    } else {
        op->ops++;
        op->misses += r->type == '_';
        qn_histogram_record(&op->latency, now - c->sent_at);
    }
    return QN_OK;
}

int qn_client_feed(struct qn_client *c, const uint8_t *data, size_t len,
                   qn_time_t now, struct qn_stats *stats)
{
    size_t at = 0;
    while (at < len) {
        size_t used;
        struct qn_reply reply;
        int err =
            qn_reply_scan(&c->scanner, data + at, len - at, &used, &reply);
        at += used;
        if (err == 1 && !qn_client_idle(c)) {
            err = take(c, &reply, now, stats);
        } else if (err != 0) {
            snprintf(stats->first_error, sizeof stats->first_error, "%s",
                     err == 1 ? "a reply that nobody asked for"
                              : "what came is not RESP");
            err = QN_ECORRUPT;
        }
        if (err != QN_OK) {
            return err;
        }
    }
    return QN_OK;
}

void qn_client_lost(struct qn_client *c, struct qn_stats *stats)
{
    uint32_t lost = c->asked - c->answered;
    if (lost > 0 && c->slot[0].kind != KIND_GREETING) {
        if (c->task.preload) {
            c->task.first_key -= lost * c->task.step;
            c->task.requests += lost;
        } else {
            stats->unanswered += lost;
        }
    }
    c->answered = c->asked;
    c->scanner = (struct qn_reply_scanner){0};
}
