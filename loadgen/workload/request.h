#ifndef QN_LOADGEN_WORKLOAD_REQUEST_H
#define QN_LOADGEN_WORKLOAD_REQUEST_H

/**
 * One request: what it asks, its bytes, and whether a value answers it.
 *
 * Which one comes next is the asker's affair (asker.h), when it is sent and on
 * which connection the client's (client.h).
 *
 * One thread per buffer. No allocation after init.
 */

#include "loadgen/net/reply.h"
#include "loadgen/workload/workload.h"

#include <sys/uio.h>

/** Bytes on their way to a socket. Private but for iov and iov_count. */
struct qn_outgoing {
    uint8_t *bytes; /* without long values */
    size_t len;
    struct iovec *iov; /* all of it, in order; the caller may change it. Bytes
                          that follow each other share one. */
    int iov_count;
};

/** What is remembered of a request until it is answered. */
struct qn_request {
    uint64_t key;      /* its number; SCAN: the cursor */
    uint64_t value;    /* unique values: what it writes */
    uint64_t expected; /* unique values, CAS: what it expects to find */
    uint64_t since;  /* of the caller: when its operation was meant to begin */
    uint64_t begun;  /* of the caller: when it did */
    uint8_t op;      /* enum qn_op: what it counts as */
    uint8_t command; /* enum qn_command: what is sent */
    bool follows;    /* the second half of an operation */
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

/** Make a workload's templates, its last step of init. @return QN_OK or
 *  QN_ENOMEM. */
int qn_request_make_templates(struct qn_workload *w);

/** Append a request's bytes. @param walk  Draws the keys of an MSET. */
void qn_request_write(const struct qn_workload *w, const struct qn_request *r,
                      struct qn_walk *walk, struct qn_outgoing *out);

/**
 * Is this reply a value of that key: type, size and content? Of unique values
 * all bytes are checked, by the reply's sum; of others the head.
 *
 * @param value  Its number, if values are unique and this is one; else 0.
 */
bool qn_request_check_value(const struct qn_workload *w, uint64_t key,
                            const struct qn_reply *reply, uint64_t *value);

/** "get of key k0000042", for a message. At most `size` bytes with the 0. */
void qn_request_describe(const struct qn_workload *w,
                         const struct qn_request *r, char *text, size_t size);

#endif
