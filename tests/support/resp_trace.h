#ifndef QN_TESTS_SUPPORT_RESP_TRACE_H
#define QN_TESTS_SUPPORT_RESP_TRACE_H

/**
 * The result of a RESP reader on a stream, as text: one line per request (`argc
 * len:bytes len:bytes ...`), then the reason of the end (`more`, `held` with an
 * unfinished rest, `http`, or the error's text). Two splits of a stream agree
 * if their traces are equal.
 */

#include "kvs/base/buf.h"
#include "kvs/resp/resp.h"

enum qn_resp_trace_mode {
    QN_RESP_TRACE_ROOM, /* every byte is read into the room of the reader */
    QN_RESP_TRACE_FEED, /* fed from a buffer that is overwritten after each call
                         */
    QN_RESP_TRACE_SLOW, /* as FEED, but only one request is taken per call */
    QN_RESP_TRACE_BACK, /* as FEED, but each request is put back once first */
    QN_RESP_TRACE_LOOK, /* as SLOW, but the reader looks ahead before and after
                         */
    QN_RESP_TRACE_MODES, /* number of modes */
};

/** Size of the next chop, at least 1. */
typedef size_t qn_resp_chop(void *arg, size_t left);

/** Appends to `out` the trace of bytes[n], split by `chop`. The reader is
 *  initialised and freed here. */
void qn_resp_trace_record(struct qn_buf *out,
                          const struct qn_resp_limits *limits,
                          enum qn_resp_trace_mode mode, const uint8_t *bytes,
                          size_t n, qn_resp_chop *chop, void *arg);

/** Chop functions: everything at once; `arg` a size_t, the length of each chop;
 *  `arg` a size_t, the first chop only; `arg` a uint64_t, state of a random
 *  number generator, not 0. */
size_t qn_resp_chop_whole(void *arg, size_t left);
size_t qn_resp_chop_every(void *arg, size_t left);
size_t qn_resp_chop_cut_at(void *arg, size_t left);
size_t qn_resp_chop_random(void *arg, size_t left);

#endif
