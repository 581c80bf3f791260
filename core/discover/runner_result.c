/*
 * The results of the runner: costs and facts from the rounds of all pairs.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/discover/runner_internal.h"

void qn_runner_judge(struct qn_runner *r, size_t i, struct qn_measured *out)
{
    const struct qn_runner_pair *p = &r->pair[i];
    qn_measured_judge(r->round + i * r->rounds_max, p->rounds, r->scratch, out);
}

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* To a hundredth of a cycle, which is more than is known. */
static double rounded(double cycles)
{
    return QN_MAX(round(cycles * 100) / 100, 0.01);
}

/* Facts of one pair, both directions. */
static void set_pair(struct qn_machine *m, uint32_t a, uint32_t b,
                     const struct qn_measured *it,
                     const struct qn_pair_costs *c)
{
    size_t ab = (size_t)a * m->n + b, ba = (size_t)b * m->n + a;
    m->send[ab] = rounded(c->send_ab);
    m->send[ba] = rounded(c->send_ba);
    m->receive[ab] = rounded(c->receive_ab);
    m->receive[ba] = rounded(c->receive_ba);
    double trip = rounded(it->of[QN_ROUND_TRIP].median);
    m->facts.round_trip[ab] = m->facts.round_trip[ba] = trip;
    m->facts.level[ab] = rounded(it->level_ab);
    m->facts.level[ba] = rounded(it->level_ba);
    m->facts.unstable[ab] = m->facts.unstable[ba] = !it->stable;
}

/* Fill all costs. q [2 * pairs] gets the queued factors: of stable pairs, of
 * all if none is. */
static int set_pairs(struct qn_runner *r, struct qn_runner_report *rep,
                     double *q)
{
    uint32_t stable = 0, all = 0;
    for (uint32_t a = 0; a < r->m->n; a++) {
        for (uint32_t b = a + 1; b < r->m->n; b++) {
            struct qn_measured it;
            struct qn_pair_costs c;
            if (r->pair[qn_runner_index(r, a, b)].rounds == 0) {
                return QN_ETIMEDOUT;
            }
            qn_runner_judge(r, qn_runner_index(r, a, b), &it);
            qn_measured_costs(&it, &c);
            set_pair(r->m, a, b, &it, &c);
            if (it.stable || stable == 0) {
                all = it.stable && stable == 0 ? 0 : all;
                q[all++] = c.queued_ab;
                q[all++] = c.queued_ba;
            }
            stable += it.stable;
            rep->unstable += !it.stable;
            rep->levels += !it.same_level;
            rep->rounds += it.rounds;
            rep->counted += it.counted;
        }
    }
    qsort(q, all, sizeof *q, by_value);
    r->m->facts.queued_factor = q[all / 2];
    return QN_OK;
}

int qn_runner_finish(struct qn_runner *r, struct qn_runner_report *rep,
                     uint64_t ticks)
{
    struct qn_machine_facts *f = &r->m->facts;
    double *q = malloc(2 * (size_t)r->pairs * sizeof *q);
    if (q == NULL || qn_machine_make_room(r->m) != QN_OK) {
        free(q);
        return QN_ENOMEM;
    }
    rep->pairs = r->pairs;
    rep->seconds = (double)(qn_clock_now() - r->begin) / 1e9;
    f->clock_ghz = (double)ticks / (rep->seconds * 1e9);
    time_t now = (time_t)(qn_clock_wall_ms() / 1000);
    struct tm tm;
    (void)strftime(f->measured, sizeof f->measured, "%Y-%m-%dT%H:%M:%SZ",
                   gmtime_r(&now, &tm));
    (void)snprintf(f->transport, sizeof f->transport, "%s",
                   r->opts->transport->name);
    int rc = set_pairs(r, rep, q);
    free(q);
    return rc;
}
