#include "loadgen/client.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Cost is what matters here: a generator that is slower than the server shows
 * its own speed. Per request: its bytes, one scan of the reply, one increment
 * in a histogram; the clock is read once per write and once per read, by the
 * caller.
 */

int qn_client_init(struct qn_client *c, const struct qn_client_opts *opts)
{
    const struct qn_workload *w = opts->workload;
    QN_ASSERT(opts->depth_max >= 1 && opts->depth_max <= QN_CLIENT_DEPTH_MAX);
    *c = (struct qn_client){.workload = w, .random = opts->seed};
    c->request = calloc(opts->depth_max, sizeof *c->request);
    if (c->request == NULL ||
        qn_outgoing_init(&c->out, w, opts->depth_max) != QN_OK) {
        qn_client_fini(c);
        return QN_ENOMEM;
    }
    return QN_OK;
}

void qn_client_fini(struct qn_client *c)
{
    free(c->request);
    qn_outgoing_fini(&c->out);
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
    c->greeting = false;
    c->sent_at = now;
    qn_outgoing_clear(&c->out);
}

static void ask_one(struct qn_client *c, struct qn_request *r)
{
    if (c->task.preload) {
        qn_request_preload(c->workload, c->task.first_key, &c->out, r);
        c->task.first_key += c->task.step;
    } else {
        qn_request_next(c->workload, &c->random, &c->out, r);
    }
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
        ask_one(c, &c->request[c->asked]);
    }
    *iov = c->out.iov;
    *count = c->out.iov_count;
}

void qn_client_greet(struct qn_client *c, qn_time_t now, struct iovec **iov,
                     int *count)
{
    static const char hello[] = "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n";
    batch_clear(c, now);
    qn_outgoing_append(&c->out, hello, sizeof hello - 1);
    c->greeting = true;
    c->asked = 1;
    *iov = c->out.iov;
    *count = c->out.iov_count;
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

static void note_wrong(const struct qn_request *request,
                       const struct qn_reply *r, struct qn_stats *stats)
{
    stats->op[request->op].wrong++;
    if (stats->first_wrong[0] != '\0') {
        return;
    }
    char what[64];
    char text[65];
    qn_request_describe(request, what, sizeof what);
    show(text, r);
    snprintf(stats->first_wrong, sizeof stats->first_wrong,
             "%s: type '%c', number %" PRId64 ", '%s'", what, r->type,
             r->number, text);
}

/* One reply. An error to the greeting ends the connection. */
static int take(struct qn_client *c, const struct qn_reply *r, qn_time_t now,
                struct qn_stats *stats)
{
    const struct qn_request *request = &c->request[c->answered++];
    bool is_error = r->type == '-' || r->type == '!';
    if (is_error && stats->first_error[0] == '\0') {
        show(stats->first_error, r);
    }
    if (c->greeting) {
        return is_error ? QN_EPERM : QN_OK;
    }
    struct qn_op_stats *op = &stats->op[request->op];
    if (is_error) {
        op->errors++;
    } else if (!qn_request_is_right(c->workload, request, r)) {
        note_wrong(request, r, stats);
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
    if (lost > 0 && !c->greeting) {
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
