#ifndef QN_LOADGEN_CLIENT_REQUEST_GENERATOR_H
#define QN_LOADGEN_CLIENT_REQUEST_GENERATOR_H

/**
 * Generates the requests of one client and checks the replies. No socket, no
 * clock, no batch: the caller decides when to send and how many.
 *
 *     qn_request_generator_next(a, &request);        choose
 *     qn_request_generator_write(a, &request, &out); append its bytes
 *     ... a reply arrives ...
 *     switch (qn_request_generator_check_reply(a, &request, &reply, &value))
 *
 * Most operations are one request. RMW, and CAS with unique values, are two:
 * the reply to the first one is QN_REPLY_CONTINUES, and the second one waits in
 * the generator. next() returns waiting requests before new ones, with
 * `follows` set and `since` and `begun` unchanged.
 *
 *     while (there is room && (waiting > 0 || a request is due))
 *         next, write, send
 *
 * The same seed, number and calls give the same requests. One thread per
 * generator.
 */

#include "loadgen/workload/request.h"

struct qn_request_generator_opts {
    const struct qn_workload *workload; /* kept */
    const struct qn_mix *mix;           /* kept; NULL: the workload's */
    uint64_t number;                    /* of this client, < clients */
    uint64_t clients;  /* number of clients of the same server */
    uint64_t seed;     /* seed of its requests */
    uint32_t open_max; /* maximum of outstanding requests, >= 1 */
};

/** Private. */
struct qn_request_generator {
    const struct qn_workload *workload;
    const struct qn_mix *mix;
    struct qn_walk walk;
    uint64_t value;             /* unique values: the last one used */
    struct qn_request *waiting; /* [waiting_max] ring of second requests */
    uint32_t waiting_max;
    uint32_t waiting_first;
    uint32_t waiting_count;
};

enum qn_reply_check {
    QN_REPLY_RIGHT,
    QN_REPLY_MISS, /* correct, nothing found: GET or DEL of a missing key, CAS
                      that does not match */
    QN_REPLY_CONTINUES, /* correct, the second request waits now */
    QN_REPLY_ERROR,     /* an error reply */
    QN_REPLY_WRONG      /* wrong type, size or content */
};

/** @return QN_OK or QN_ENOMEM. */
int qn_request_generator_init(struct qn_request_generator *a,
                              const struct qn_request_generator_opts *opts);

void qn_request_generator_fini(struct qn_request_generator *a);

/** The next request: a waiting second request, or one chosen by the mix. A new
 *  request has zero times; the caller fills them. */
void qn_request_generator_next(struct qn_request_generator *a,
                               struct qn_request *out);

/** A SET of `key`, for preloading. */
void qn_request_generator_store(struct qn_request_generator *a, uint64_t key,
                                struct qn_request *out);

/** Number of waiting second requests. */
static inline uint32_t qn_request_generator_waiting(
    const struct qn_request_generator *a)
{
    return a->waiting_count;
}

/** Append the bytes of a request of this generator. */
static inline void qn_request_generator_write(struct qn_request_generator *a,
                                              const struct qn_request *request,
                                              struct qn_outgoing *out)
{
    qn_request_write(a->workload, request, &a->walk, out);
}

/**
 * Check the reply to a request.
 *
 * @param value  Filled, with unique values, for a GET that is RIGHT or
 *               CONTINUES: the number of the value that was read.
 */
enum qn_reply_check qn_request_generator_check_reply(
    struct qn_request_generator *a, const struct qn_request *request,
    const struct qn_reply *reply, uint64_t *value);

/** Unique values: number of the client that wrote the value, and the sequence
 *  number of the write, from 1. A value number is never 0. */
static inline uint64_t qn_value_writer(uint64_t value)
{
    return value >> 40;
}

static inline uint64_t qn_value_sequence(uint64_t value)
{
    return value & ((UINT64_C(1) << 40) - 1);
}

#endif
