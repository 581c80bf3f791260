#ifndef QN_KVS_RESP_H
#define QN_KVS_RESP_H

/**
 * RESP, reader and writer: pure state machines over bytes (kvs/RESP.md).
 *
 * Reader. The caller reads a socket into memory that the reader offers, says
 * how much arrived, and takes requests one after the other. Arguments point
 * into the reader's memory; a large bulk is read into its final place. Any
 * chopping of the stream gives the same requests. An error is sticky: it is
 * reported once with the text of the reply, and the stream is over.
 *
 *     room = qn_resp_room(r, &n);  n = read(fd, room, n);  qn_resp_fed(r, n);
 *     while (qn_resp_next(r, &req) == QN_OK) { ... }
 *
 * The reader can also work on bytes that the caller owns for this turn (a
 * pooled buffer): qn_resp_feed() parses them in place and keeps only an
 * unfinished rest when qn_resp_settle() is called.
 *
 * Memory of an idle reader: none beyond the struct. One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "kvs/buf.h"

struct qn_resp_limits {
    uint64_t bulk_max;   /* bytes of one argument, proto-max-bulk-len */
    uint32_t args_max;   /* elements of one request, max-args */
    uint64_t buffer_max; /* bytes held, client-query-buffer-limit */
    bool restricted;     /* not authenticated: 10 args, 16384 bytes */
};

struct qn_resp_req {
    const struct qn_slice *argv; /* [argc], borrowed until the next call */
    uint32_t argc;               /* >= 1 */
};

/** Embedded by value in a connection; fields are private. The layout belongs
 *  to resp.c and may grow. */
struct qn_resp_reader {
    const struct qn_resp_limits *limits; /* kept, may change between calls */
    struct qn_buf held;    /* an unfinished rest, or what was read into room */
    const uint8_t *input;  /* bytes being parsed: held.data, or borrowed */
    size_t input_len;      /* bytes */
    size_t at;             /* parsed so far */
    struct qn_slice *argv; /* [argv_cap] */
    uint32_t argv_cap;
    uint32_t argc;
    int error; /* sticky */
    const char *error_text;
};

void qn_resp_init(struct qn_resp_reader *r,
                  const struct qn_resp_limits *limits);
void qn_resp_free(struct qn_resp_reader *r);

/** True if the reader holds an unfinished rest: then read into room. */
bool qn_resp_holds(const struct qn_resp_reader *r);

/** Memory to read a socket into; *n its size, at least 1 byte. While a large
 *  bulk is under way it is that bulk's final place. NULL: lack of memory, or
 *  above buffer_max. */
uint8_t *qn_resp_room(struct qn_resp_reader *r, size_t *n);
/** n bytes were read into room. */
void qn_resp_fed(struct qn_resp_reader *r, size_t n);

/** Parse bytes in place, borrowed until settle. Only when nothing is held. */
void qn_resp_feed(struct qn_resp_reader *r, const uint8_t *bytes, size_t n);
/** The caller's bytes go away: keep the unfinished rest, if any. Requests
 *  returned before are invalid now. QN_OK or QN_ENOMEM. */
int qn_resp_settle(struct qn_resp_reader *r);

/** The next request. @return QN_OK; QN_EAGAIN: more bytes are needed;
 *  QN_EINVAL: protocol error, answer qn_resp_error() and close (sticky);
 *  QN_EPERM: cross-protocol request, close without an answer; QN_ENOMEM. */
int qn_resp_next(struct qn_resp_reader *r, struct qn_resp_req *req);

/** Text of the error reply, without `-` and CRLF. */
const char *qn_resp_error(const struct qn_resp_reader *r);

#endif
