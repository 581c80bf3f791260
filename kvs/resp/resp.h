#ifndef QN_KVS_RESP_RESP_H
#define QN_KVS_RESP_RESP_H

/**
 * RESP, the reader: a pure state machine over bytes (kvs/resp/RESP.md, section
 * 1). The writer is kvs/resp/reply.h.
 *
 * The caller reads a socket into memory that the reader offers, says how much
 * arrived, and takes requests one after the other. Arguments point into the
 * reader's memory; a large bulk is read into its final place. Any segmentation
 * of the stream gives the same requests. An error is sticky: it is reported
 * with the text of the reply, and the stream is over.
 *
 *     room = qn_resp_room(r, &n);  n = read(fd, room, n);  qn_resp_fed(r, n);
 *     while (qn_resp_next(r, &req) == QN_OK) { ... }
 *
 * The reader can also work on bytes that the caller owns for this turn (a
 * pooled buffer): qn_resp_feed() parses them in place and keeps only an
 * unfinished rest when qn_resp_settle() is called.
 *
 *     if (qn_resp_holds(r)) {
 *         room, read, fed as above
 *     } else {
 *         n = read(fd, pooled, qn_resp_feed_max(r, size));
 *         qn_resp_feed(r, pooled, n);
 *     }
 *     while (qn_resp_next(r, &req) == QN_OK) { ... }
 *     qn_resp_settle(r);
 *
 * Before it reads on, a caller may ask whether there is a whole request already
 * (qn_resp_wants); if not, it settles and reads into room.
 *
 * A caller may stop taking requests at any point (back-pressure) and settle:
 * the requests not taken are kept, and come from qn_resp_next() later. So is
 * one that was taken and put back, because it cannot be run yet.
 *
 * Memory of an idle reader: none beyond the struct. One thread. A reader is
 * not moved after its init.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "kvs/base/buf.h"

struct qn_resp_limits {
    uint64_t bulk_max;   /* bytes of one argument, proto-max-bulk-len */
    uint32_t args_max;   /* elements of one request, max-args */
    uint64_t buffer_max; /* bytes held, client-query-buffer-limit; larger than
                          * bulk_max, or the largest bulks never arrive */
    bool restricted;     /* not authenticated: 10 args, 16384 bytes */
};

struct qn_resp_req {
    const struct qn_slice *argv; /* [argc], borrowed until the next call */
    uint32_t argc;               /* >= 1 */
};

#define QN_RESP_ARGS_INLINE 8

/** Embedded by value in a connection; fields are private. The layout belongs
 *  to resp.c and may grow. */
struct qn_resp_reader {
    const struct qn_resp_limits *limits; /* kept, may change between calls */
    struct qn_buf held;    /* an unfinished rest, or what was read into room */
    struct qn_buf line;    /* unquoted arguments of an inline line */
    const uint8_t *input;  /* bytes being parsed: held.data, or borrowed */
    size_t input_len;      /* bytes */
    size_t begin;          /* where the request under way begins */
    size_t taken;          /* where the one last taken began; SIZE_MAX: gone */
    uintptr_t base;        /* its address when argv was filled */
    size_t at;             /* parsed so far */
    size_t bulk_len;       /* of the argument under way; SIZE_MAX: not known */
    size_t large;          /* bytes of the longest bulk that came so far */
    bool whole;            /* argv is a request that was not taken yet */
    bool is_large;         /* a bulk of the request under way is large */
    bool was_large;        /* of the one taken before */
    struct qn_slice *argv; /* [argv_cap]: few, or allocated */
    uint32_t argv_cap;
    uint32_t argc;
    uint32_t wanted; /* elements of the request under way; 0: none */
    int error;       /* sticky */
    const char *error_text;
    union {
        struct qn_slice few[QN_RESP_ARGS_INLINE]; /* enough for most */
        char error_own[64]; /* a text with a byte of the input in it */
    };
};

void qn_resp_init(struct qn_resp_reader *r,
                  const struct qn_resp_limits *limits);
void qn_resp_free(struct qn_resp_reader *r);

/** True if the reader holds bytes of its own, an unfinished rest or requests
 *  not taken yet: then read into room. */
bool qn_resp_holds(const struct qn_resp_reader *r);

/** Memory to read a socket into; *n its size, at least 1 byte. While a large
 *  bulk is under way it is that bulk's final place, and ends with it. NULL:
 *  lack of memory, or buffer_max bytes are held already. Not between feed and
 *  settle. */
uint8_t *qn_resp_room(struct qn_resp_reader *r, size_t *n);
/** n bytes were read into room. */
void qn_resp_fed(struct qn_resp_reader *r, size_t n);

/** True if the request under way needs more bytes than there are. Looks ahead,
 *  and allocates at most for its arguments. False too after an error, which is
 *  the next thing to be taken. */
bool qn_resp_wants(struct qn_resp_reader *r);

/** How many of the caller's `n` bytes a socket should be read into: few, where
 *  a large bulk is likely, since what is read of one has to move. At least 1 if
 *  n is. */
size_t qn_resp_feed_max(const struct qn_resp_reader *r, size_t n);

/** Parse bytes in place, borrowed until settle. Only when nothing is held. */
void qn_resp_feed(struct qn_resp_reader *r, const uint8_t *bytes, size_t n);
/** The caller's bytes go away: keep the unfinished rest, if any. Requests
 *  returned before are invalid now. Memory of which all was taken is freed.
 *  @return QN_OK; QN_ENOMEM: the stream is over. */
int qn_resp_settle(struct qn_resp_reader *r);

/** The next request. @return QN_OK; QN_EAGAIN: more bytes are needed;
 *  QN_EINVAL: protocol error, answer qn_resp_error() and close (sticky);
 *  QN_EPERM: cross-protocol request, close without an answer (sticky);
 *  QN_ENOMEM: close (sticky). O(bytes looked at), plus O(arguments of the
 *  request under way) where its memory moves. */
int qn_resp_next(struct qn_resp_reader *r, struct qn_resp_req *req);

/** The request last taken is the next one again: it was not run. Its arguments
 *  are invalid now. Right behind the qn_resp_next() that gave it. */
void qn_resp_put_back(struct qn_resp_reader *r);

/** Text of the error reply after QN_EINVAL, without `-` and CRLF; until
 *  free. Else NULL. */
const char *qn_resp_error(const struct qn_resp_reader *r);

#endif
