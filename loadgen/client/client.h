#ifndef QN_LOADGEN_CLIENT_CLIENT_H
#define QN_LOADGEN_CLIENT_CLIENT_H

/**
 * One client without its sockets: what to send, when, and what the replies say.
 *
 * A client has a lane per connection. It is one of
 *
 *     closed loop   a batch of `depth` requests; the next one is made when the
 *                   last reply of this one has come
 *     open loop     a request when its schedule says so, on any lane, whatever
 *                   became of those before; only if `depth` are outstanding
 *                   does it wait, and keeps its intended time
 *
 *     due? -> fill lanes -> write their bytes -> feed what is read ... -> due?
 *
 * An operation of two requests (asker.h) counts once, from when its first half
 * was meant to be sent; its second half is due as soon as the first is answered
 * (closed loop: in the next batch).
 *
 * Time comes in as an argument, so the same client runs in virtual time.
 *
 * One thread per client and its lanes. No allocation after init.
 */

#include "core/base/clock.h"
#include "loadgen/client/asker.h"
#include "loadgen/client/stats.h"
#include "loadgen/verify/history/history.h"
#include "loadgen/workload/schedule.h"

#include <stdbool.h>

#define QN_CLIENT_DEPTH_MAX 10000

/** What the client asks for from now on. */
struct qn_client_task {
    uint32_t depth;     /* requests outstanding at most, 1..depth_max */
    uint64_t requests;  /* operations to begin; UINT64_MAX: no end */
    bool preload;       /* SET keys first_key, first_key + step, ... in order
                           instead of the mix at random; a closed loop */
    uint64_t first_key; /* preload only */
    uint64_t step;
    bool one_by_one; /* open loop: a fill makes one request, so that each may
                        take another lane */
    const struct qn_schedule *schedule; /* copied; NULL: closed loop */
};

/** Private but for what its functions say. */
struct qn_client {
    const struct qn_workload *workload;
    struct qn_client_task task;
    struct qn_schedule schedule; /* of an open loop */
    struct qn_asker asker;
    struct qn_recorder *recorder;
    uint16_t number;
    uint32_t depth_max;
    uint32_t outstanding;   /* on all lanes, without greetings */
    uint32_t batch_left;    /* closed loop: of this batch, not yet asked */
    struct qn_request next; /* chosen, not yet asked */
    bool has_next;
};

/** A request on its way. */
struct qn_slot {
    struct qn_record *record; /* NULL: nobody records it */
    qn_time_t sent; /* request.since: when its operation was meant to begin */
    struct qn_request request;
};

/** One connection of a client. Private but for `succeeded`. */
struct qn_connection_state {
    struct qn_client *client;
    struct qn_reply_scanner scanner;
    struct qn_slot *slot; /* [mask + 1] ring */
    uint32_t mask;
    uint32_t asked;     /* runs free */
    uint32_t answered;  /* of them */
    bool greeting;      /* what is outstanding is one */
    uint32_t succeeded; /* 1 << op of each right answer; the caller clears */
    struct qn_outgoing out;
};

struct qn_client_opts {
    const struct qn_workload *workload; /* kept */
    const struct qn_mix *mix;           /* kept; NULL: the workload's */
    uint32_t depth_max; /* of all its tasks, 1..QN_CLIENT_DEPTH_MAX */
    uint64_t number;    /* of this client, < clients */
    uint64_t clients;
    uint64_t seed;                /* what it will ask */
    struct qn_recorder *recorder; /* of its thread, kept; NULL: no history */
};

/** @return QN_OK or QN_ENOMEM, then nothing is left behind. It has no task and
 *  sends nothing. */
int qn_client_init(struct qn_client *c, const struct qn_client_opts *opts);

/** Its lanes are gone. All zero is accepted. */
void qn_client_fini(struct qn_client *c);

/** @return QN_OK or QN_ENOMEM, then nothing is left behind. */
int qn_connection_state_init(struct qn_connection_state *l,
                             struct qn_client *c);

void qn_connection_state_fini(struct qn_connection_state *l);

/** Give it work, from the next fill on. */
void qn_client_begin(struct qn_client *c, const struct qn_client_task *task);

/** No reply is outstanding. */
static inline bool qn_client_idle(const struct qn_client *c)
{
    return c->outstanding == 0;
}

/** No reply is outstanding on this lane, not even to a greeting. */
static inline bool qn_connection_state_idle(const struct qn_connection_state *l)
{
    return l->answered == l->asked;
}

/** Requests on their way on this lane, a greeting too. */
static inline uint32_t qn_connection_state_outstanding(
    const struct qn_connection_state *l)
{
    return l->asked - l->answered;
}

/** Second halves that are still to be sent. */
static inline uint32_t qn_client_halves(const struct qn_client *c)
{
    return qn_asker_waiting(&c->asker) + (c->has_next && c->next.follows);
}

/** Nothing is outstanding and nothing is left to ask. */
static inline bool qn_client_done(const struct qn_client *c)
{
    return qn_client_idle(c) && c->task.requests == 0 &&
           qn_client_halves(c) == 0;
}

/** When it wants to send next: 0 for at once; QN_TIME_NEVER if it must be fed
 *  before, or is done. */
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
 * Make the requests that are due, or one of them (one_by_one); something must
 * be due. What the lanes held before
 * is forgotten: it must have been written.
 *
 * @param now     They are sent now.
 * @param reads   The lane for what only reads; NULL: none is there, and the
 *                first such request and all after it wait.
 * @param writes  The lane for all else; the same one or another one.
 */
void qn_client_fill(struct qn_client *c, qn_time_t now,
                    struct qn_connection_state *reads,
                    struct qn_connection_state *writes);

/**
 * What the last fill or greeting has put on a lane.
 *
 * @param iov    Filled: the bytes to write, valid until the next fill; the
 *               caller may change the array.
 * @return pieces; 0 if there is nothing.
 */
static inline int qn_connection_state_bytes(const struct qn_connection_state *l,
                                            struct iovec **iov)
{
    *iov = l->out.iov;
    return l->out.iov_count;
}

/** Make a batch that is only HELLO 3; the lane must be idle. Its reply is not
 *  counted. */
void qn_client_greet(struct qn_connection_state *l);

/**
 * Take what came from the server.
 *
 * @param now    Latency counts to here.
 * @param stats  Counts go here.
 * @return QN_OK; QN_ECORRUPT if it is no RESP or answers nothing, QN_EPERM if
 *         the greeting was refused: the connection is of no more use, and the
 *         reason is in stats->first_error.
 */
int qn_client_feed(struct qn_connection_state *l, const uint8_t *data,
                   size_t len, qn_time_t now, struct qn_stats *stats);

/** The connection is gone: what was outstanding on it will never be answered. A
 *  preload sends it again. */
void qn_client_lost(struct qn_connection_state *l, struct qn_stats *stats);

/** Open loop: how many requests are due at `now` and not sent. */
uint64_t qn_client_unsent(const struct qn_client *c, qn_time_t now);

#endif
