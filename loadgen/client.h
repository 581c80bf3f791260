#ifndef QN_LOADGEN_CLIENT_H
#define QN_LOADGEN_CLIENT_H

/**
 * One closed-loop client without its socket: what to send next, and what the
 * replies say.
 *
 *     fill -> write the batch -> feed what is read ... until idle -> fill ...
 *
 * A batch is up to `depth` requests; the next one is made when the last reply
 * of this one has come. Time comes in as an argument, so the same client runs
 * in virtual time.
 *
 * One thread per client. No allocation after init.
 */

#include "core/base/clock.h"
#include "loadgen/request.h"
#include "loadgen/stats.h"

#include <stdbool.h>

#define QN_CLIENT_DEPTH_MAX 10000

struct qn_client_opts {
    const struct qn_workload *workload; /* kept */
    uint32_t depth_max;                 /* requests per batch, at most */
    uint64_t seed;                      /* what this client will ask */
};

/** What the client asks for from now on. */
struct qn_client_task {
    uint32_t depth;     /* requests per batch, 1..depth_max */
    uint64_t requests;  /* how many to send; UINT64_MAX: no end */
    bool preload;       /* SET keys first_key, first_key + step, ... in order
                           instead of the mix at random */
    uint64_t first_key; /* preload only */
    uint64_t step;
};

/** Private. */
struct qn_client {
    const struct qn_workload *workload;
    struct qn_client_task task;
    uint64_t random;
    struct qn_reply_scanner scanner;
    uint32_t asked;             /* requests in the batch */
    uint32_t answered;          /* of them */
    qn_time_t sent_at;          /* when the batch was made */
    bool greeting;              /* the batch is one */
    struct qn_request *request; /* [depth_max] the batch */
    struct qn_outgoing out;     /* its bytes */
};

/** @return QN_OK or QN_ENOMEM, then nothing is left behind. It has no task
 *  and sends nothing. */
int qn_client_init(struct qn_client *c, const struct qn_client_opts *opts);

void qn_client_fini(struct qn_client *c);

/** Give it work, from the next batch on. */
void qn_client_begin(struct qn_client *c, const struct qn_client_task *task);

/** No reply is outstanding. */
static inline bool qn_client_idle(const struct qn_client *c)
{
    return c->answered == c->asked;
}

/** Nothing is outstanding and nothing is left to ask. */
static inline bool qn_client_done(const struct qn_client *c)
{
    return qn_client_idle(c) && c->task.requests == 0;
}

/**
 * Make the next batch; the client must be idle and not done.
 *
 * @param now    Latency counts from here.
 * @param iov    Filled: the bytes to write, valid until the next fill; the
 *               caller may change the array.
 * @param count  Filled: pieces, at least 1.
 */
void qn_client_fill(struct qn_client *c, qn_time_t now, struct iovec **iov,
                    int *count);

/** Make a batch that is only HELLO 3; the client must be idle. Its reply is
 *  not counted. */
void qn_client_greet(struct qn_client *c, qn_time_t now, struct iovec **iov,
                     int *count);

/**
 * Take what came from the server.
 *
 * @param now    Latency counts to here.
 * @param stats  Counts go here.
 * @return QN_OK; QN_ECORRUPT if it is no RESP or answers nothing, QN_EPERM if
 *         the greeting was refused: the connection is of no more use, and the
 *         reason is in stats->first_error.
 */
int qn_client_feed(struct qn_client *c, const uint8_t *data, size_t len,
                   qn_time_t now, struct qn_stats *stats);

/** The connection is gone: what was outstanding will never be answered. A
 *  preload sends it again. */
void qn_client_lost(struct qn_client *c, struct qn_stats *stats);

#endif
