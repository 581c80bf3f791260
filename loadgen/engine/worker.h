#ifndef QN_LOADGEN_ENGINE_WORKER_H
#define QN_LOADGEN_ENGINE_WORKER_H

/**
 * One thread of a load: a libuv loop and its share of the clients.
 *
 * A worker preloads its share, meets the other workers, warms up, measures,
 * waits for outstanding requests for at most QN_WORKER_GRACE_MS, and ends. A
 * lost connection is opened again after QN_WORKER_RETRY_MS.
 */

#include "loadgen/client/stats_sink.h"
#include "loadgen/client/unavailability.h"
#include "loadgen/net/address.h"
#include "loadgen/verify/history/history.h"
#include "loadgen/workload/schedule.h"
#include "loadgen/workload/workload.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define QN_WORKER_GRACE_MS      1000
#define QN_WORKER_RETRY_MS      100
/* A preload or a counted load gives up if for this time no user with work had a
 * connection. */
#define QN_WORKER_GIVE_UP_MS    10000
#define QN_WORKER_PRELOAD_DEPTH 64
/* Bytes outstanding per client in a preload: the maximum on average. */
#define QN_WORKER_PRELOAD_BYTES (UINT64_C(1) << 20)

/** Shared by all workers; constant while they run, except for the times, which
 *  are set while all of them wait at `start`. */
struct qn_worker_plan {
    const struct qn_workload *workload;
    const struct qn_address *address; /* [address_count] */
    uint32_t address_count;
    uint32_t reader_count; /* the last ones of the addresses, which are only
                              read from; the others are only written to. 0: no
                              such roles */
    bool spread_requests;  /* each client connects to all addresses and chooses
                              one for each batch (closed loop) or request (open
                              loop); false: clients are dealt over the addresses
                              in turn */
    const struct qn_rate *rate; /* set with the times; NULL: closed loop */
    bool poisson;
    const int
        *cpu; /* [threads] CPU to pin to; -1: do not pin; NULL: pin none */
    uint32_t threads;
    uint32_t connections; /* clients of all threads, >= threads */
    uint32_t pipeline;    /* 1..QN_CLIENT_DEPTH_MAX */
    uint64_t requests;    /* operations of all clients; 0: limited by time */
    qn_time_t interval;   /* time between two hand-ins */
    uint64_t seed;
    FILE *raw; /* as in struct qn_stats, in MEASURE only; NULL: none */
    struct qn_recorder *recorder; /* [threads], shared; NULL: no history */
    uint64_t operations_max;      /* maximum of recorded operations, without the
                                     preload */
    bool resp3;
    bool preload;
    struct qn_stats_sink *preloaded; /* statistics of the preload */
    struct qn_stats_sink *warmed;    /* statistics of the warm-up */
    struct qn_stats_sink *measured;
    struct qn_unavailability *unavailability;
    pthread_barrier_t *start; /* threads + 1 */
    qn_time_t warm_from;      /* start of a timed schedule */
    qn_time_t measure_from;
    qn_time_t measure_to; /* QN_TIME_NEVER: limited by count */
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

/** NULL is accepted. The worker must not be running. */
void qn_worker_destroy(struct qn_worker *w);

/** Run all phases; the main function of its thread. Call it once. */
void qn_worker_run(struct qn_worker *w);

/** Number of connections of the worker. */
uint32_t qn_worker_conn_count(const struct qn_worker *w);

/** State of a connection after the run. */
struct qn_worker_conn {
    uint32_t address; /* number in the plan */
    bool opened;      /* at least once */
    bool failed;      /* an attempt to connect failed at least once */
};

struct qn_worker_conn qn_worker_conn(const struct qn_worker *w, uint32_t i);

/** End early, as if the time had expired. Any thread or signal handler, from
 *  create until destroy. */
void qn_worker_stop(struct qn_worker *w);

#endif
