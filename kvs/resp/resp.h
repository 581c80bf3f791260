#ifndef QN_KVS_RESP_RESP_H
#define QN_KVS_RESP_RESP_H

/**
 * The RESP reader: a pure state machine over bytes (kvs/resp/RESP.md, section
 * 1). The writer is kvs/resp/reply.h.
 *
 * The caller reads a socket into memory that the reader offers, says how much
 * arrived, and takes requests one after the other. Arguments point into the
 * reader's memory; a large bulk is read into its final place. Any segmentation
 * of the stream gives the same requests. An error is sticky: it is reported
 * with the text of the reply, and ends the stream.
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
 * Before it reads more, a caller may ask whether a whole request has arrived
 * (qn_resp_wants); if not, it settles and reads into room.
 *
 * A caller may stop taking requests at any point (back-pressure) and settle:
 * requests that were not taken are kept, and qn_resp_next() returns them later.
 * So is a request that was taken and put back because it cannot run yet.
 *
 * An idle reader has no memory beyond the struct. One thread; no function
 * blocks. A reader is not moved after its init.
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

/** Begin with an empty stream. @param limits  Kept; may change between calls.
 */
void qn_resp_init(struct qn_resp_reader *r,
                  const struct qn_resp_limits *limits);
/** Free all memory; the stream is over. */
void qn_resp_free(struct qn_resp_reader *r);

/** True if the reader holds bytes of its own, which are an unfinished request
 *  or requests not taken yet. The caller then reads into room. O(1). */
bool qn_resp_holds(const struct qn_resp_reader *r);

/** Memory to read a socket into; *n is its size, at least 1 byte. While a
 *  large bulk is under way it is that bulk's final place, and ends with it.
 *  Not between feed and settle. @return NULL, *n untouched: memory is short,
 *  or buffer_max bytes are held already. */
uint8_t *qn_resp_room(struct qn_resp_reader *r, size_t *n);
/** n bytes were read into room; n is at most the size that qn_resp_room gave.
 */
void qn_resp_fed(struct qn_resp_reader *r, size_t n);

/** True if the request under way needs more bytes than have arrived. Parses
 *  ahead, and allocates at most for its arguments. After an error false:
 *  qn_resp_next reports the error. */
bool qn_resp_wants(struct qn_resp_reader *r);

/** How many of the caller's `n` bytes a socket should be read into. Few where
 *  a large bulk is likely, because what is read of it must be copied. At
 *  least 1 if n is. O(1). */
size_t qn_resp_feed_max(const struct qn_resp_reader *r, size_t n);

/** Parse `n` bytes in place, borrowed until settle. Only while nothing is
 *  held (qn_resp_holds). */
void qn_resp_feed(struct qn_resp_reader *r, const uint8_t *bytes, size_t n);
/** The caller's bytes go away: keep the unfinished rest, if any. Requests
 *  returned before become invalid. Memory whose requests were all taken is
 *  freed.
 *  @return QN_OK; QN_ENOMEM: the stream is over. */
int qn_resp_settle(struct qn_resp_reader *r);

/** Take the next request; *req is untouched unless the result is QN_OK.
 *  @return QN_OK; QN_EAGAIN: more bytes are needed; QN_EINVAL: protocol
 *          error, answer qn_resp_error() and close (sticky); QN_EPERM:
 *          cross-protocol request, close without an answer (sticky);
 *          QN_ENOMEM: close (sticky). O(bytes looked at), plus O(arguments
 *          of the request under way) where its memory moves. */
int qn_resp_next(struct qn_resp_reader *r, struct qn_resp_req *req);

/** The request that qn_resp_next() takes next, if it is whole; it is not taken.
 *  @return false: *req is untouched; qn_resp_next() says why. As costly as
 *          that, which then finds it parsed. */
bool qn_resp_peek(struct qn_resp_reader *r, struct qn_resp_req *req);

/** Put back the request last taken, which was not run: it is the next one
 *  again. Its arguments become invalid. Only directly after the
 *  qn_resp_next() that gave it. */
void qn_resp_put_back(struct qn_resp_reader *r);

/** Text of the error reply after QN_EINVAL, without `-` and CRLF, valid until
 *  free; else NULL. */
const char *qn_resp_error(const struct qn_resp_reader *r);

#endif
