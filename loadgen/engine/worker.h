#ifndef QN_LOADGEN_ENGINE_WORKER_H
#define QN_LOADGEN_ENGINE_WORKER_H

/**
 * One thread of a load: a libuv loop and its share of the clients.
 *
 * A worker preloads its share, meets the others, warms up, measures, gives its
 * outstanding requests QN_WORKER_GRACE_MS to come home and ends. A lost
 * connection is opened again after QN_WORKER_RETRY_MS.
 */

#include "loadgen/client/collect.h"
#include "loadgen/client/silence.h"
#include "loadgen/net/address.h"
#include "loadgen/verify/history/history.h"
#include "loadgen/workload/schedule.h"
#include "loadgen/workload/workload.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define QN_WORKER_GRACE_MS      1000
#define QN_WORKER_RETRY_MS      100
/* Where those who still have to ask have had no connection for so long, a
 * preload or a count gives up. */
#define QN_WORKER_GIVE_UP_MS    10000
#define QN_WORKER_PRELOAD_DEPTH 64
/* Bytes that a preload keeps in flight per client, on average at most. */
#define QN_WORKER_PRELOAD_BYTES (UINT64_C(1) << 20)

/** What all workers share; constant while they run, but for the times, which
 *  are set while all of them wait at `start`. */
struct qn_worker_plan {
    const struct qn_workload *workload;
    const struct qn_address *address; /* [address_count] */
    uint32_t address_count;
    uint32_t reader_count; /* so many of them, the last, are only read from, and
                              the others only written to; 0: no such roles */
    bool spread_requests;  /* each client connects to all, and chooses one for
                              each batch, in an open loop for each request;
                              else clients are dealt in turn */
    const struct qn_rate *rate; /* fitted when the times are set; NULL: closed
                                   loop */
    bool poisson;
    const int *cpu; /* [threads] to pin to; NULL: none; -1: not this one */
    uint32_t threads;
    uint32_t connections; /* clients of all threads, >= threads */
    uint32_t pipeline;    /* 1..QN_CLIENT_DEPTH_MAX */
    uint64_t requests;    /* of all clients; 0: by time */
    qn_time_t interval;   /* from one hand-in to the next */
    uint64_t seed;
    FILE *raw; /* as in struct qn_stats, while it is measured; NULL: nowhere */
    struct qn_recorder *recorder; /* [threads], shared; NULL: no history */
    uint64_t operations_max;      /* that are recorded, but for the preload */
    bool resp3;
    bool preload;
    struct qn_collect *preloaded; /* what the preload saw */
    struct qn_collect *warmed;    /* what the warm-up saw */
    struct qn_collect *measured;
    struct qn_silence *silence;
    pthread_barrier_t *start; /* threads + 1 */
    qn_time_t warm_from;      /* where a timed schedule starts */
    qn_time_t measure_from;
    qn_time_t measure_to; /* QN_TIME_NEVER: by count */
};

struct qn_worker;

/**
 * Make a worker, with every threads-th client of the plan from `index` on.
 *
 * @param plan  Kept until destroyed.
 * @return QN_OK, QN_ENOMEM, or QN_EMFILE if the loop cannot be made.
 */
int qn_worker_create(struct qn_worker **out, const struct qn_worker_plan *plan,
                     uint32_t index);

/** NULL is accepted. It must not be running. */
void qn_worker_destroy(struct qn_worker *w);

/** Do all of it; the main function of its thread. Once. */
void qn_worker_run(struct qn_worker *w);

/** One of its connections has a number from 0 to this, exclusive. */
uint32_t qn_worker_conn_count(const struct qn_worker *w);

/** What has become of a connection, after the run. */
struct qn_worker_conn {
    uint32_t address; /* number in the plan */
    bool opened;      /* at least once */
    bool failed;      /* it was tried in vain, at least once */
};

struct qn_worker_conn qn_worker_conn(const struct qn_worker *w, uint32_t i);

/** End early, as if the time were over. Any thread or signal handler, from
 *  create until destroy. */
void qn_worker_stop(struct qn_worker *w);

#endif
