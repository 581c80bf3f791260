#ifndef QN_LOADGEN_WORKLOAD_REQUEST_H
#define QN_LOADGEN_WORKLOAD_REQUEST_H

/**
 * One request: its operation, its bytes, and the check of a value in its reply.
 *
 * request_generator.h chooses the next request, client.h when to send it and on
 * which connection.
 *
 * One thread per buffer. No allocation after init.
 */

#include "loadgen/net/reply.h"
#include "loadgen/workload/workload.h"

#include <sys/uio.h>

/** Bytes to be written to a socket. Private except iov and iov_count. */
struct qn_outgoing {
    uint8_t *bytes; /* all bytes except long values */
    size_t len;
    struct iovec *iov; /* all bytes in order, contiguous ones in one piece; the
                          caller may change it */
    int iov_count;
};

/** State of a request until it is answered. */
struct qn_request {
    uint64_t key;      /* number of the key; SCAN: the cursor */
    uint64_t value;    /* unique values: number of the written value */
    uint64_t expected; /* unique values, CAS: number of the expected value */
    uint64_t since;    /* set by the caller: intended time of its operation */
    uint64_t begun;    /* set by the caller: actual begin of its operation */
    uint8_t op;        /* enum qn_op: the operation it counts for */
    uint8_t command;   /* enum qn_command: the command that is sent */
    bool follows;      /* the second request of its operation */
};

/** Make room for `depth` requests.
 *  @return QN_OK; QN_ENOMEM, then nothing has to be freed. */
int qn_outgoing_init(struct qn_outgoing *out, const struct qn_workload *w,
                     uint32_t depth);

void qn_outgoing_fini(struct qn_outgoing *out);

/** Clear the buffer; its bytes must have been written. */
static inline void qn_outgoing_clear(struct qn_outgoing *out)
{
    out->len = 0;
    out->iov_count = 0;
}

/** Append other bytes, at most 64. */
void qn_outgoing_append(struct qn_outgoing *out, const void *bytes, size_t len);

/** Make the templates of a workload, the last step of its init. @return QN_OK
 *  or QN_ENOMEM. */
int qn_request_make_templates(struct qn_workload *w);

/** Append the bytes of a request. @param walk  Draws the keys of an MSET. */
void qn_request_write(const struct qn_workload *w, const struct qn_request *r,
                      struct qn_walk *walk, struct qn_outgoing *out);

/**
 * Check that the reply is a value of that key: type, size and content. Unique
 * values are checked in full, by the sum of the reply; others by their head.
 *
 * @param value  Filled: number of the value, if values are unique and the check
 *               succeeds; else 0.
 */
bool qn_request_check_value(const struct qn_workload *w, uint64_t key,
                            const struct qn_reply *reply, uint64_t *value);

/** Text for a message: "get of key k0000042". At most `size` bytes, including
 *  the 0. */
void qn_request_describe(const struct qn_workload *w,
                         const struct qn_request *r, char *text, size_t size);

#endif
