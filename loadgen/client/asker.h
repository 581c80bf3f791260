#ifndef QN_LOADGEN_CLIENT_ASKER_H
#define QN_LOADGEN_CLIENT_ASKER_H

/**
 * What one client asks, and what it thinks of the answers. No socket, no
 * clock, no batch: whoever sends decides when and how many.
 *
 *     qn_asker_next(a, &request);             choose
 *     qn_asker_write(a, &request, &out);      its bytes
 *     ... a reply comes ...
 *     switch (qn_asker_judge(a, &request, &reply, &value))
 *
 * Most operations are one request. Those of two (RMW; CAS when values are
 * unique, which has to read first) answer QN_ANSWER_HALF to the first, and the
 * second waits inside until it is asked for: next gives it before anything
 * new, with `follows` set, `since` and `begun` as they were.
 *
 *     while (there is room && (qn_asker_waiting(a) > 0 || something is due))
 *         next, write, send
 *
 * The same seed, number and calls give the same requests. One thread per asker.
 */

#include "loadgen/workload/request.h"

struct qn_asker_opts {
    const struct qn_workload *workload; /* kept */
    const struct qn_mix *mix;           /* kept; NULL: the workload's */
    uint64_t number;                    /* of this client, < clients */
    uint64_t clients;                   /* all that ask the same server */
    uint64_t seed;                      /* what it will ask */
    uint32_t open_max; /* requests that it may have open at once, >= 1 */
};

/** Private. */
struct qn_asker {
    const struct qn_workload *workload;
    const struct qn_mix *mix;
    struct qn_walk walk;
    uint64_t value;             /* unique values: the last one given out */
    struct qn_request *waiting; /* [waiting_max] a ring of second halves */
    uint32_t waiting_max;
    uint32_t waiting_first;
    uint32_t waiting_count;
};

enum qn_answer {
    QN_ANSWER_RIGHT,
    QN_ANSWER_MISS,  /* right, and there was nothing: a GET of a missing key,
                        a DEL of one, a CAS that does not match */
    QN_ANSWER_HALF,  /* right, and the second half waits now */
    QN_ANSWER_ERROR, /* an error reply */
    QN_ANSWER_WRONG  /* wrong type, size or content */
};

/** @return QN_OK or QN_ENOMEM. */
int qn_asker_init(struct qn_asker *a, const struct qn_asker_opts *opts);

void qn_asker_fini(struct qn_asker *a);

/** The next request: a second half if one waits, else by the mix; then the
 *  times are 0 and the caller's to fill. */
void qn_asker_next(struct qn_asker *a, struct qn_request *out);

/** A SET of that key, for preloading. */
void qn_asker_store(struct qn_asker *a, uint64_t key, struct qn_request *out);

/** Second halves that wait. */
static inline uint32_t qn_asker_waiting(const struct qn_asker *a)
{
    return a->waiting_count;
}

/** Append the bytes of a request of this asker. */
static inline void qn_asker_write(struct qn_asker *a,
                                  const struct qn_request *request,
                                  struct qn_outgoing *out)
{
    qn_request_write(a->workload, request, &a->walk, out);
}

/**
 * What a reply to a request means.
 *
 * @param value  Filled, with unique values, for a GET that is RIGHT or HALF:
 *               the number of the value that was read.
 */
enum qn_answer qn_asker_judge(struct qn_asker *a,
                              const struct qn_request *request,
                              const struct qn_reply *reply, uint64_t *value);

/** Unique values: the client that wrote one, and which of its writes it was,
 *  from 1 on. The value number is never 0. */
static inline uint64_t qn_value_writer(uint64_t value)
{
    return value >> 40;
}

static inline uint64_t qn_value_sequence(uint64_t value)
{
    return value & ((UINT64_C(1) << 40) - 1);
}

#endif
