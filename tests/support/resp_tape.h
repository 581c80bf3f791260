#ifndef QN_TESTS_SUPPORT_RESP_TAPE_H
#define QN_TESTS_SUPPORT_RESP_TAPE_H

/**
 * What a RESP reader makes of a stream, as text: one line per request
 * (`argc len:bytes len:bytes ...`), then how it ended (`more`, `held` with an
 * unfinished rest, `http`, or the error's text). Two segmentations of a stream
 * agree when their tapes are equal.
 */

#include "kvs/base/buf.h"
#include "kvs/resp/resp.h"

enum qn_tape_mode {
    QN_TAPE_ROOM,  /* every byte is read into the reader's room */
    QN_TAPE_FEED,  /* fed from a buffer that is overwritten after each turn */
    QN_TAPE_SLOW,  /* as FEED, but only one request is taken per turn */
    QN_TAPE_BACK,  /* as FEED, but each request is put back at first */
    QN_TAPE_LOOK,  /* as SLOW, but the reader looks ahead before and after */
    QN_TAPE_MODES, /* how many */
};

/** Size of the next chop, at least 1. */
typedef size_t qn_tape_chop(void *arg, size_t left);

/** Append to `out` the tape of bytes[n], segmented by `chop`. The reader is
 *  initialised and freed here. */
void qn_tape_record(struct qn_buf *out, const struct qn_resp_limits *limits,
                    enum qn_tape_mode mode, const uint8_t *bytes, size_t n,
                    qn_tape_chop *chop, void *arg);

/** Chop functions: everything at once; `arg` a size_t, as long as the chop
 *  shall be each time; `arg` a size_t, the first chop only; `arg` a uint64_t,
 *  state of a random number generator, not 0. */
size_t qn_tape_whole(void *arg, size_t left);
size_t qn_tape_every(void *arg, size_t left);
size_t qn_tape_cut_at(void *arg, size_t left);
size_t qn_tape_random(void *arg, size_t left);

#endif
