#ifndef QN_LOADGEN_REQUEST_H
#define QN_LOADGEN_REQUEST_H

/**
 * One request: what it asks, its bytes, and whether a reply answers it.
 *
 * When it is sent and on which connection is the client's affair (client.h);
 * what a workload consists of is the workload's (workload.h).
 *
 * One thread per buffer. No allocation after init.
 */

#include "loadgen/reply.h"
#include "loadgen/workload.h"

#include <sys/uio.h>

/** Bytes on their way to a socket. Private but for iov and iov_count. */
struct qn_outgoing {
    uint8_t *bytes; /* without tails */
    size_t len;
    struct iovec *iov; /* all of it, in order; the caller may change it */
    int iov_count;
};

/** What is remembered of a request until it is answered. */
struct qn_request {
    uint8_t op;   /* an enum qn_op */
    uint64_t key; /* number of its key, of the first of several */
};

/** Room for `depth` requests.
 *  @return QN_OK or QN_ENOMEM, then nothing is left behind. */
int qn_outgoing_init(struct qn_outgoing *out, const struct qn_workload *w,
                     uint32_t depth);

void qn_outgoing_fini(struct qn_outgoing *out);

/** Forget what it held: its bytes are written. */
static inline void qn_outgoing_clear(struct qn_outgoing *out)
{
    out->len = 0;
    out->iov_count = 0;
}

/** Append bytes that belong to no workload, 64 at most. */
void qn_outgoing_append(struct qn_outgoing *out, const void *bytes, size_t len);

/** Choose the next request of a client.
 *  @param random  The client's state; advanced. */
void qn_request_choose(const struct qn_workload *w, uint64_t *random,
                       struct qn_request *r);

/** Append its bytes. @param random  Draws the other keys of an MSET. */
void qn_request_write(const struct qn_workload *w, uint64_t *random,
                      const struct qn_request *r, struct qn_outgoing *out);

/** A reply that is no error answers this request: type, size and content. */
bool qn_request_is_right(const struct qn_workload *w,
                         const struct qn_request *r,
                         const struct qn_reply *reply);

/** "get of key number 42", for a message. */
void qn_request_describe(const struct qn_request *r, char *text, size_t size);

#endif
