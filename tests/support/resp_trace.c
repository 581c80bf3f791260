#include "tests/support/resp_trace.h"

#include <stdio.h>
#include <stdlib.h>

static void print_request(struct qn_buf *out, const struct qn_resp_req *req)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%u", req->argc);
    qn_buf_append(out, text, (size_t)n);
    for (uint32_t i = 0; i < req->argc; i++) {
        n = snprintf(text, sizeof text, " %zu:", req->argv[i].len);
        qn_buf_append(out, text, (size_t)n);
        qn_buf_append(out, req->argv[i].data, req->argv[i].len);
    }
    qn_buf_append(out, "\n", 1);
}

static void print_end(struct qn_buf *out, const struct qn_resp_reader *r,
                      int err)
{
    const char *text = err == QN_EAGAIN   ? qn_resp_holds(r) ? "held" : "more"
                       : err == QN_EPERM  ? "http"
                       : err == QN_EINVAL ? qn_resp_error(r)
                                          : qn_strerror(err);
    qn_buf_append(out, text, strlen(text));
    qn_buf_append(out, "\n", 1);
}

/* Values of `max`: all requests, and each is put back once before; one request,
 * and the reader looks ahead. */
#define TWICE ((size_t)0)
#define LOOK  (SIZE_MAX - 1)

static int take_twice(struct qn_buf *out, struct qn_resp_reader *r)
{
    struct qn_resp_req req;
    int err = QN_OK;
    while ((err = qn_resp_next(r, &req)) == QN_OK) {
        qn_resp_put_back(r);
        if (qn_resp_settle(r) != QN_OK || qn_resp_next(r, &req) != QN_OK) {
            return QN_ENOMEM;
        }
        print_request(out, &req);
    }
    return err;
}

/* Looking ahead finds the bytes that are taken next. */
static int take_look(struct qn_buf *out, struct qn_resp_reader *r)
{
    struct qn_resp_req req, ahead;
    bool wants = qn_resp_wants(r);
    bool whole = qn_resp_peek(r, &ahead);
    int err = qn_resp_next(r, &req);
    if (wants != (err == QN_EAGAIN) || whole != (err == QN_OK)) {
        qn_buf_append(out, "wrong look\n", 11);
    }
    if (err == QN_OK) {
        print_request(out, &ahead); /* the same arguments */
        (void)qn_resp_wants(r);     /* its bytes may move from here on */
    }
    return err;
}

/* Takes at most `max` requests. @return the reason of the end; QN_OK after
 * max. */
static int take(struct qn_buf *out, struct qn_resp_reader *r, size_t max)
{
    struct qn_resp_req req;
    if (max == TWICE) {
        return take_twice(out, r);
    }
    if (max == LOOK) {
        return take_look(out, r);
    }
    for (size_t i = 0; i < max; i++) {
        int err = qn_resp_next(r, &req);
        if (err != QN_OK) {
            return err;
        }
        print_request(out, &req);
    }
    return QN_OK;
}

/* Reads into the room of the reader; a room smaller than the chop splits it
 * further. */
static int turn_room(struct qn_buf *out, struct qn_resp_reader *r,
                     const uint8_t *bytes, size_t n, size_t max)
{
    int err = QN_EAGAIN;
    while (n != 0) {
        size_t size = 0;
        uint8_t *room = qn_resp_room(r, &size);
        if (room == NULL) {
            return QN_ENOMEM;
        }
        size = QN_MIN(size, n);
        memcpy(room, bytes, size);
        qn_resp_fed(r, size);
        bytes += size;
        n -= size;
        err = take(out, r, max);
        if (err != QN_OK && err != QN_EAGAIN) {
            return err;
        }
    }
    return err;
}

static int turn_feed(struct qn_buf *out, struct qn_resp_reader *r,
                     const uint8_t *bytes, size_t n, size_t max)
{
    if (qn_resp_holds(r)) {
        return turn_room(out, r, bytes, n, max);
    }
    uint8_t *pooled = malloc(n);
    if (pooled == NULL) {
        abort();
    }
    memcpy(pooled, bytes, n);
    qn_resp_feed(r, pooled, n);
    int err = take(out, r, max);
    if (qn_resp_settle(r) != QN_OK) {
        err = QN_ENOMEM;
    }
    memset(pooled, 0xee, n); /* pointers into it are detected */
    free(pooled);
    return err;
}

void qn_resp_trace_record(struct qn_buf *out,
                          const struct qn_resp_limits *limits,
                          enum qn_resp_trace_mode mode, const uint8_t *bytes,
                          size_t n, qn_resp_chop *chop, void *arg)
{
    struct qn_resp_reader r;
    qn_resp_init(&r, limits);
    int err = QN_EAGAIN;
    size_t max = mode == QN_RESP_TRACE_SLOW   ? 1
                 : mode == QN_RESP_TRACE_BACK ? TWICE
                 : mode == QN_RESP_TRACE_LOOK ? LOOK
                                              : SIZE_MAX;
    while (n != 0 && (err == QN_EAGAIN || err == QN_OK)) {
        size_t size = chop(arg, n);
        size = QN_MIN(size, n);
        err = mode == QN_RESP_TRACE_ROOM ? turn_room(out, &r, bytes, size, max)
                                         : turn_feed(out, &r, bytes, size, max);
        bytes += size;
        n -= size;
    }
    if (err == QN_OK || err == QN_EAGAIN) {
        err = take(out, &r, SIZE_MAX);
    }
    print_end(out, &r, err);
    qn_resp_free(&r);
}

size_t qn_resp_chop_whole(void *arg, size_t left)
{
    (void)arg;
    return left;
}

size_t qn_resp_chop_every(void *arg, size_t left)
{
    (void)left;
    return *(const size_t *)arg;
}

size_t qn_resp_chop_cut_at(void *arg, size_t left)
{
    size_t *cut = arg;
    size_t n = *cut != 0 ? *cut : left;
    *cut = 0;
    return n;
}

size_t qn_resp_chop_random(void *arg, size_t left)
{
    uint64_t *x = arg;
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    /* Lengths of all magnitudes, mostly short. */
    size_t bits = (size_t)(*x >> 58) % 12;
    size_t n = 1 + (size_t)((*x >> 8) & ((1U << bits) - 1));
    return QN_MIN(n, left);
}
