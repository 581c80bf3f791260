#ifndef QN_LOADGEN_CLIENT_CLIENT_H
#define QN_LOADGEN_CLIENT_CLIENT_H

/**
 * One client without its sockets: decides what to send and when, and checks the
 * replies. Each connection of the client has a qn_connection_state. A client is
 * one of
 *
 *     closed loop   sends batches of `depth` requests; the next batch is made
 *                   when the last reply of the previous one has arrived
 *     open loop     sends a request when its schedule says so, on any
 *                   connection, whether or not earlier ones are answered; if
 *                   `depth` are outstanding, the request waits and keeps its
 *                   intended time
 *
 *     due? -> fill connections -> write their bytes -> feed received bytes ->
 * due?
 *
 * An operation of two requests (request_generator.h) counts once, from the
 * intended time of its first request. Its second request is due as soon as the
 * first one is answered (closed loop: in the next batch).
 *
 * Time is an argument, so the same client runs in virtual time.
 *
 * One thread per client and its connections. No allocation after init.
 */

#include "core/base/clock.h"
#include "loadgen/client/request_generator.h"
#include "loadgen/client/stats.h"
#include "loadgen/verify/history/history.h"
#include "loadgen/workload/schedule.h"

#include <stdbool.h>

#define QN_CLIENT_DEPTH_MAX 10000

/** What a client does from now on. */
struct qn_client_task {
    uint32_t depth;     /* maximum of outstanding requests, 1..depth_max */
    uint64_t requests;  /* operations to start; UINT64_MAX: unlimited */
    bool preload;       /* SET keys first_key, first_key + step, ... in order
                           instead of the mix at random; a closed loop */
    uint64_t first_key; /* preload only */
    uint64_t step;
    bool one_by_one; /* open loop: each fill makes one request, so that each
                        request can take another connection */
    const struct qn_schedule *schedule; /* copied; NULL: closed loop */
};

/** Private. */
struct qn_client {
    const struct qn_workload *workload;
    struct qn_client_task task;
    struct qn_schedule schedule; /* of an open loop */
    struct qn_request_generator generator;
    struct qn_recorder *recorder;
    uint16_t number;
    uint32_t depth_max;
    uint32_t outstanding;   /* on all connections, without greetings */
    uint32_t batch_left;    /* closed loop: requests of this batch that are not
                               sent yet */
    struct qn_request next; /* chosen, not yet sent */
    bool has_next;
};

/** An outstanding request. */
struct qn_slot {
    struct qn_record *record; /* NULL: not recorded */
    qn_time_t sent; /* when it was written; request.since is the intended time
                       of its operation */
    struct qn_request request;
};

/** One connection of a client. Private but for `succeeded`. */
struct qn_connection_state {
    struct qn_client *client;
    struct qn_reply_scanner scanner;
    struct qn_slot *slot; /* [mask + 1] ring */
    uint32_t mask;
    uint32_t asked;     /* requests sent; runs free */
    uint32_t answered;  /* replies taken; runs free */
    bool greeting;      /* the outstanding request is the greeting */
    uint32_t succeeded; /* 1 << op of each correct reply; the caller clears */
    struct qn_outgoing out;
};

struct qn_client_opts {
    const struct qn_workload *workload; /* kept */
    const struct qn_mix *mix;           /* kept; NULL: the workload's */
    uint32_t depth_max; /* largest depth of its tasks, 1..QN_CLIENT_DEPTH_MAX */
    uint64_t number;    /* of this client, < clients */
    uint64_t clients;
    uint64_t seed;                /* seed of its requests */
    struct qn_recorder *recorder; /* of its thread, kept; NULL: no history */
};

/** @return QN_OK; QN_ENOMEM, then nothing has to be freed. The client has no
 *          task yet and sends nothing. */
int qn_client_init(struct qn_client *c, const struct qn_client_opts *opts);

/** The connections must be finished before. All zero is accepted. */
void qn_client_fini(struct qn_client *c);

/** @return QN_OK or QN_ENOMEM, then nothing is left behind. */
int qn_connection_state_init(struct qn_connection_state *l,
                             struct qn_client *c);

void qn_connection_state_fini(struct qn_connection_state *l);

/** Set the task; it takes effect at the next fill. */
void qn_client_begin(struct qn_client *c, const struct qn_client_task *task);

/** No reply is outstanding. */
static inline bool qn_client_idle(const struct qn_client *c)
{
    return c->outstanding == 0;
}

/** No reply is outstanding on this connection, not even to a greeting. */
static inline bool qn_connection_state_idle(const struct qn_connection_state *l)
{
    return l->answered == l->asked;
}

/** Outstanding requests of this connection, including a greeting. */
static inline uint32_t qn_connection_state_outstanding(
    const struct qn_connection_state *l)
{
    return l->asked - l->answered;
}

/** Second requests that are not sent yet. */
static inline uint32_t qn_client_halves(const struct qn_client *c)
{
    return qn_request_generator_waiting(&c->generator) +
           (c->has_next && c->next.follows);
}

/** Nothing is outstanding and nothing is left to send. */
static inline bool qn_client_done(const struct qn_client *c)
{
    return qn_client_idle(c) && c->task.requests == 0 &&
           qn_client_halves(c) == 0;
}

/** When the client is due to send: 0 for now; QN_TIME_NEVER if it has to
 *  receive replies first, or is done. */
static inline qn_time_t qn_client_due(const struct qn_client *c)
{
    bool half = qn_client_halves(c) > 0;
    if (c->task.requests == 0 && !half) {
        return QN_TIME_NEVER;
    }
    if (c->task.schedule == NULL) {
        return c->outstanding == 0 || c->batch_left > 0 ? 0 : QN_TIME_NEVER;
    }
    if (c->outstanding == c->task.depth) {
        return QN_TIME_NEVER;
    }
    return half ? 0 : qn_schedule_next(&c->schedule);
}

/**
 * Make the requests that are due, or one of them (one_by_one); at least one
 * must be due. The bytes of the previous fill are discarded: they must have
 * been written.
 *
 * @param now     Time at which the requests are sent.
 * @param reads   Connection for operations that only read; NULL: none is
 *                usable, and the first such request and all after it wait.
 * @param writes  Connection for all other operations; may equal `reads`.
 */
void qn_client_fill(struct qn_client *c, qn_time_t now,
                    struct qn_connection_state *reads,
                    struct qn_connection_state *writes);

/**
 * The bytes that the last fill or greeting has put on a connection.
 *
 * @param iov  Filled: the bytes to write, valid until the next fill; the caller
 *             may change the array.
 * @return number of pieces; 0 if there is nothing to write.
 */
static inline int qn_connection_state_bytes(const struct qn_connection_state *l,
                                            struct iovec **iov)
{
    *iov = l->out.iov;
    return l->out.iov_count;
}

/** Make a batch of HELLO 3 alone; the connection must be idle. Its reply is not
 *  counted. */
void qn_client_greet(struct qn_connection_state *l);

/**
 * Take bytes that were received from the server.
 *
 * @param now    Time of the read; latencies end here.
 * @param stats  Counts are added here.
 * @return QN_OK; QN_ECORRUPT if the bytes are not RESP or no request is
 *         outstanding, QN_EPERM if the server refused the greeting. After an
 *         error the connection must be closed; stats->first_error has the
 *         reason.
 */
int qn_client_feed(struct qn_connection_state *l, const uint8_t *data,
                   size_t len, qn_time_t now, struct qn_stats *stats);

/** The connection was lost: its outstanding requests will never be answered. A
 *  preload sends them again. */
void qn_client_lost(struct qn_connection_state *l, struct qn_stats *stats);

/** Open loop: number of requests that are due at `now` and not sent. */
uint64_t qn_client_unsent(const struct qn_client *c, qn_time_t now);

#endif
