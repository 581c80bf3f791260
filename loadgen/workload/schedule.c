#include "loadgen/workload/schedule.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/list.h"
#include "loadgen/base/options.h"
#include "loadgen/base/random.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/*
 * The arrivals of all clients are one stream, dealt in turn: client i of c gets
 * the arrivals i, i + c, i + 2c ... So the total rate is exact for any number
 * of clients and threads, and no two clients share a counter. Poisson streams
 * are independent streams of 1/c of the rate, which add up to one of the rate.
 *
 * Positions are doubles: 10^10 arrivals leave 10^-6 of an arrival's distance,
 * and 10^5 s leave 10^-11 s.
 *
 * Why a cursor and not a queue of due arrivals: an open loop against a server
 * that is too slow falls behind without bound, and the generator must not grow
 * with it. The intended time of any arrival follows from its number or, for
 * Poisson, from the random state, so nothing is stored.
 */

static int parse_piece(const char *text, size_t len, struct qn_rate_piece *p)
{
    char item[64];
    uint64_t from;
    if (len >= sizeof item) {
        return QN_EINVAL;
    }
    memcpy(item, text, len);
    item[len] = '\0';
    char *dots = strstr(item, "..");
    if (dots != NULL) {
        *dots = '\0';
    }
    uint64_t to = 0;
    if (qn_parse_count(item, &from) != QN_OK ||
        (dots != NULL && qn_parse_count(dots + 2, &to) != QN_OK)) {
        return QN_EINVAL;
    }
    to = dots != NULL ? to : from;
    if (from > QN_RATE_MAX || to > QN_RATE_MAX || from + to == 0) {
        return QN_EINVAL;
    }
    *p = (struct qn_rate_piece){.from = (double)from, .to = (double)to};
    return QN_OK;
}

int qn_rate_parse(struct qn_rate *rate, const char *text)
{
    struct qn_rate made = {0};
    const char *word;
    size_t len;
    while (qn_list_next(&text, &word, &len)) {
        if (made.count == QN_RATE_PIECES_MAX ||
            parse_piece(word, len, &made.piece[made.count]) != QN_OK) {
            return QN_EINVAL;
        }
        made.count++;
    }
    *rate = made;
    return QN_OK;
}

/* Arrivals in the first `t` seconds of a piece. */
static double piece_area(const struct qn_rate_piece *p, double t)
{
    if (p->from == p->to) {
        return p->from * t;
    }
    return p->from * t + (p->to - p->from) / p->seconds * t * t / 2;
}

/* The inverse: time at which a piece has had `arrivals`. This form of the root
 * does not cancel, and holds at a slope of zero. */
static double piece_time(const struct qn_rate_piece *p, double arrivals)
{
    if (p->from == p->to) {
        return arrivals / p->from;
    }
    double slope = (p->to - p->from) / p->seconds;
    double root = p->from * p->from + 2 * slope * arrivals;
    double t = 2 * arrivals / (p->from + sqrt(fmax(root, 0)));
    return fmin(t, p->seconds);
}

void qn_rate_fit(struct qn_rate *rate, double warmup, double seconds)
{
    QN_ASSERT(rate->count >= 1 && rate->count <= QN_RATE_PIECES_MAX);
    QN_ASSERT(seconds > 0);
    QN_ASSERT(isfinite(seconds) || qn_rate_is_constant(rate));
    double each = seconds / rate->count;
    memmove(&rate->piece[1], &rate->piece[0],
            rate->count * sizeof rate->piece[0]);
    rate->count++;
    rate->piece[0].to = rate->piece[0].from;
    double begin = 0;
    double before = 0;
    for (uint32_t i = 0; i < rate->count; i++) {
        struct qn_rate_piece *p = &rate->piece[i];
        p->begin = begin;
        p->before = before;
        p->seconds = i == 0 ? warmup : each;
        begin += p->seconds;
        before += piece_area(p, p->seconds);
    }
}

double qn_rate_area(const struct qn_rate *rate, double at)
{
    uint32_t i = 0;
    while (i + 1 < rate->count && at >= rate->piece[i + 1].begin) {
        i++;
    }
    const struct qn_rate_piece *p = &rate->piece[i];
    return p->before + piece_area(p, fmin(fmax(at - p->begin, 0), p->seconds));
}

/* Set `next` to the time of position `at`. */
static void find_next(struct qn_schedule *s)
{
    const struct qn_rate *r = s->rate;
    while (s->piece + 1 < r->count && s->at >= r->piece[s->piece + 1].before) {
        s->piece++;
    }
    const struct qn_rate_piece *p = &r->piece[s->piece];
    double within = s->at - p->before;
    if (within >= piece_area(p, p->seconds)) {
        s->next = QN_TIME_NEVER;
        return;
    }
    double seconds = p->begin + piece_time(p, within);
    s->next = s->start + (qn_time_t)(seconds * 1e9);
}

/* Exponential with mean 1; the argument of log is in (0, 1]. */
static double gap(struct qn_schedule *s)
{
    return -log((double)((qn_random_next(&s->random) >> 11) + 1) * 0x1p-53);
}

void qn_schedule_init(struct qn_schedule *s,
                      const struct qn_schedule_opts *opts)
{
    QN_ASSERT(opts->number < opts->clients);
    QN_ASSERT(opts->share > 0 && opts->share <= 1);
    *s = (struct qn_schedule){
        .rate = opts->rate,
        .start = opts->start,
        .step = opts->clients / opts->share,
        .random = opts->seed,
        .poisson = opts->poisson,
    };
    s->at =
        opts->poisson ? gap(s) * s->step : (opts->number + 0.5) / opts->share;
    find_next(s);
}

void qn_schedule_step(struct qn_schedule *s)
{
    QN_DASSERT(s->next != QN_TIME_NEVER);
    s->at += s->poisson ? gap(s) * s->step : s->step;
    find_next(s);
}

uint64_t qn_schedule_behind(const struct qn_schedule *s, qn_time_t now)
{
    if (s->next > now) {
        return 0;
    }
    double area = qn_rate_area(s->rate, (double)(now - s->start) / 1e9);
    return 1 + (uint64_t)(fmax(area - s->at, 0) / s->step);
}
