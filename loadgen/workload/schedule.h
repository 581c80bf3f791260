#ifndef QN_LOADGEN_WORKLOAD_SCHEDULE_H
#define QN_LOADGEN_WORKLOAD_SCHEDULE_H

/**
 * When an open loop's requests are meant to be sent.
 *
 * A rate is a function of time, in pieces that are constant or a ramp. A
 * schedule is one client's cursor over its share of the arrivals: the intended
 * time of the next one, and a step to the one after. Nothing is stored per
 * arrival: a client that is a million behind holds the same few bytes.
 *
 *     rate ^         ramp                 unit arrivals n = 0, 1, 2 ... of all
 *          |      ____/                   clients lie at the times where the
 *          |_____/       constant         area under the rate reaches n + 1/2;
 *          +---------------> time         Poisson: sums of exponential gaps
 *
 * Measuring time by the area under the rate makes a constant stream exact under
 * any rate, and turns a homogeneous Poisson stream into the inhomogeneous one
 * (time rescaling: Daley and Vere-Jones, An Introduction to the Theory of Point
 * Processes I, 7.4).
 *
 * Pure: no clock, no allocation. A rate is shared, once fitted, by all threads;
 * a schedule belongs to one.
 */

#include "core/base/clock.h"

#include <stdbool.h>
#include <stdint.h>

#define QN_RATE_PIECES_MAX 64                   /* without the warm-up */
#define QN_RATE_MAX        UINT64_C(1000000000) /* per second */

/** Requests per second from one time to another, along a line. */
struct qn_rate_piece {
    double from;    /* per second, at its beginning */
    double to;      /* at its end */
    double begin;   /* s after the schedule's start */
    double seconds; /* its length; INFINITY for the last one of a count */
    double before;  /* arrivals before it */
};

struct qn_rate {
    uint32_t count; /* 0: closed loop */
    struct qn_rate_piece piece[QN_RATE_PIECES_MAX + 1];
};

/**
 * Parse "50k" (constant), "10k..200k" (a ramp) or "10k,20k..30k,50k" (pieces of
 * equal length). Counts as in qn_parse_count.
 *
 * @param rate  Filled, but for the times.
 * @return QN_OK; QN_EINVAL if it has another form, a rate above QN_RATE_MAX, a
 *         piece that is 0 all along, or too many pieces.
 */
int qn_rate_parse(struct qn_rate *rate, const char *text);

/** It does not change: it can serve a count of requests. */
static inline bool qn_rate_is_constant(const struct qn_rate *rate)
{
    return rate->count == 1 && rate->piece[0].from == rate->piece[0].to;
}

/**
 * Lay the pieces out: `warmup` s at the first rate, then the pieces, together
 * `seconds` long. Once, after parsing.
 *
 * @param seconds  > 0; INFINITY only for a constant rate.
 */
void qn_rate_fit(struct qn_rate *rate, double warmup, double seconds);

/** Arrivals in the first `at` seconds. O(pieces). */
double qn_rate_area(const struct qn_rate *rate, double at);

struct qn_schedule_opts {
    const struct qn_rate *rate; /* kept; fitted */
    qn_time_t start;            /* of the first piece */
    bool poisson;               /* or at equal distances */
    uint32_t number;            /* of this client, 0.. */
    uint32_t clients;           /* that share the arrivals, > number */
    double share;               /* of the rate that these clients get, (0, 1] */
    uint64_t seed;              /* of the Poisson gaps; own to each client */
};

/** Private. */
struct qn_schedule {
    const struct qn_rate *rate;
    qn_time_t start;
    qn_time_t next; /* QN_TIME_NEVER: it is over */
    double at;      /* arrivals of all clients until `next` */
    double step;    /* of all clients per arrival of this one, on average */
    uint64_t random;
    uint32_t piece; /* where `next` lies */
    bool poisson;
};

/** Begin at the first arrival. */
void qn_schedule_init(struct qn_schedule *s,
                      const struct qn_schedule_opts *opts);

/** The intended time of the next arrival; QN_TIME_NEVER after the last. */
static inline qn_time_t qn_schedule_next(const struct qn_schedule *s)
{
    return s->next;
}

/** On to the one after. Not after the last. */
void qn_schedule_step(struct qn_schedule *s);

/** How many arrivals are due and not taken at `now`: exact at equal distances,
 *  expected for Poisson ones. O(pieces). */
uint64_t qn_schedule_behind(const struct qn_schedule *s, qn_time_t now);

#endif
