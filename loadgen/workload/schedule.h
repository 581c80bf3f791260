#ifndef QN_LOADGEN_WORKLOAD_SCHEDULE_H
#define QN_LOADGEN_WORKLOAD_SCHEDULE_H

/**
 * Intended send times of the requests of an open loop.
 *
 * A rate is a function of time, in pieces that are constant or a ramp. A
 * schedule is the cursor of one client over its share of the arrivals: the
 * intended time of the next one, and a step to the one after. Nothing is stored
 * per arrival: a client that is a million requests behind holds the same few
 * bytes.
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
 * Pure: no clock, no allocation. After qn_rate_fit all threads share a rate; a
 * schedule belongs to one thread.
 */

#include "core/base/clock.h"

#include <stdbool.h>
#include <stdint.h>

#define QN_RATE_PIECES_MAX 64                   /* without the warm-up */
#define QN_RATE_MAX        UINT64_C(1000000000) /* per second */

/** Requests per second in one piece of time; changes linearly. */
struct qn_rate_piece {
    double from;    /* per second, at the beginning */
    double to;      /* per second, at the end */
    double begin;   /* s after the start of the schedule */
    double seconds; /* length; INFINITY for the last piece of a count of
                       requests */
    double before;  /* arrivals before this piece */
};

struct qn_rate {
    uint32_t count; /* 0: closed loop */
    struct qn_rate_piece piece[QN_RATE_PIECES_MAX + 1];
};

/**
 * Parse "50k" (constant), "10k..200k" (a ramp) or "10k,20k..30k,50k" (pieces of
 * equal length). Counts as in qn_parse_count.
 *
 * @param rate  Filled, except for the times.
 * @return QN_OK; QN_EINVAL for another form, a rate above QN_RATE_MAX, a piece
 *         that is 0 throughout, or too many pieces.
 */
int qn_rate_parse(struct qn_rate *rate, const char *text);

/** True if the rate is constant, so that it can serve a count of requests. */
static inline bool qn_rate_is_constant(const struct qn_rate *rate)
{
    return rate->count == 1 && rate->piece[0].from == rate->piece[0].to;
}

/**
 * Set the times: `warmup` s at the first rate, then the pieces, which take
 * `seconds` together. Call it once, after parsing.
 *
 * @param seconds  > 0; INFINITY only for a constant rate.
 */
void qn_rate_fit(struct qn_rate *rate, double warmup, double seconds);

/** Arrivals in the first `at` seconds. O(pieces). */
double qn_rate_area(const struct qn_rate *rate, double at);

struct qn_schedule_opts {
    const struct qn_rate *rate; /* kept; fitted */
    qn_time_t start;            /* start of the first piece */
    bool poisson;               /* false: at equal distances */
    uint32_t number;            /* number of this client, from 0 */
    uint32_t clients; /* number of clients that share the arrivals, > number */
    double share;     /* share of the rate for these clients, (0, 1] */
    uint64_t seed;    /* seed of the Poisson gaps; different for each client */
};

/** Private. */
struct qn_schedule {
    const struct qn_rate *rate;
    qn_time_t start;
    qn_time_t next; /* QN_TIME_NEVER: no more arrivals */
    double at;      /* position: arrivals of all clients until `next` */
    double
        step; /* arrivals of all clients per arrival of this one, on average */
    uint64_t random;
    uint32_t piece; /* piece of `next` */
    bool poisson;
};

/** Make a schedule at its first arrival. */
void qn_schedule_init(struct qn_schedule *s,
                      const struct qn_schedule_opts *opts);

/** The intended time of the next arrival; QN_TIME_NEVER after the last. */
static inline qn_time_t qn_schedule_next(const struct qn_schedule *s)
{
    return s->next;
}

/** Step to the next arrival. Not after the last. */
void qn_schedule_step(struct qn_schedule *s);

/** Number of arrivals that are due and not taken at `now`: exact at equal
 *  distances, the expected number for Poisson. O(pieces). */
uint64_t qn_schedule_behind(const struct qn_schedule *s, qn_time_t now);

#endif
