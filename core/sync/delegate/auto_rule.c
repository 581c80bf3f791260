#include "core/sync/delegate/auto_rule.h"

#include <stdbool.h>

#include "core/base/bits.h"

/* Epochs between trials of one backend: at first, and how often that doubles.
 * A trial lasts two epochs at most, so in the end it costs less than 1 %. */
#define FIRST_TRIAL 2u
#define DOUBLED_MAX 8u

/* Batches as long as this are those of a crowd, in which no lock is cheap. */
#define CROWD 24u

/* Where attempts fail an epoch is short: a crowd at a lock is slow. */
#define FAILED 4u

static bool makes_sense(uint32_t parts, uint32_t now, uint32_t other,
                        const struct qn_auto_window *seen)
{
    if (now == QN_AUTO_LOCK) {
        return other == QN_AUTO_CC_SYNCH &&
               32 * seen->failed > seen->operations;
    }
    if (other == QN_AUTO_LOCK) {
        return now == QN_AUTO_CC_SYNCH &&
               seen->operations < CROWD * seen->batches;
    }
    return other < parts &&
           (now == QN_AUTO_H_SYNCH || seen->operations > 3 * seen->batches);
}

static void begin_anew(struct qn_auto_state *s, uint64_t time)
{
    s->begin = time;
    s->seen = (struct qn_auto_window){0};
}

static void all_due(struct qn_auto_state *s)
{
    for (uint32_t i = 0; i < QN_AUTO_PARTS; i++) {
        s->trial[i].due = s->epochs;
        s->trial[i].doubled = 0;
    }
}

/* A trial goes on, or is over. */
static uint32_t tried(uint32_t now, uint64_t cost, uint64_t time,
                      struct qn_auto_state *s)
{
    /* A quarter of an epoch shows a backend that is much worse; where it is
     * that much worse that a quarter takes longer than an epoch, time does. */
    const uint64_t lasts = time - s->begin;
    const bool worse = cost > s->cost + s->cost / 8;
    const bool slow = lasts > s->cost * QN_AUTO_EPOCH / 1024;
    if (s->seen.operations < QN_AUTO_EPOCH / (worse ? 4 : 1) &&
        !(worse && slow)) {
        return now;
    }
    if (cost < s->cost - s->cost / 32) {
        s->home = now;
        s->cost = cost;
        all_due(s);
    } else {
        const uint32_t n = s->trial[now].doubled;
        s->trial[now].due = s->epochs + (FIRST_TRIAL << n);
        s->trial[now].doubled = QN_MIN(n + 1, DOUBLED_MAX);
    }
    begin_anew(s, time);
    return s->home;
}

/* One epoch that differs by a third was disturbed; two are another load. */
static void keep_cost(uint64_t cost, struct qn_auto_state *s)
{
    const bool same = 3 * cost <= 4 * s->cost && 4 * cost >= 3 * s->cost;
    if (same) {
        s->cost = (3 * s->cost + cost) / 4;
        s->odd = 0;
    } else if (s->cost == 0 || ++s->odd == 2) {
        s->cost = cost;
        s->odd = 0;
        all_due(s);
    }
}

/* An epoch at home is over: is a trial due? */
static uint32_t next_of(uint32_t parts, uint32_t now, uint64_t cost,
                        uint64_t time, struct qn_auto_state *s)
{
    const struct qn_auto_window seen = s->seen;
    s->epochs++;
    keep_cost(cost, s);
    begin_anew(s, time);
    for (uint32_t i = 0; i < parts; i++) {
        if (i != now && s->epochs >= s->trial[i].due &&
            makes_sense(parts, now, i, &seen)) {
            return i;
        }
    }
    return now;
}

uint32_t qn_auto_rule(uint32_t parts, uint32_t now,
                      const struct qn_auto_window *w, uint64_t time,
                      struct qn_auto_state *s)
{
    if (s->begin == 0) {
        begin_anew(s, time);
        return now;
    }
    s->seen.operations += w->operations;
    s->seen.batches += w->batches;
    s->seen.failed += w->failed;
    const uint64_t cost =
        (time - s->begin) * 1024 / QN_MAX(s->seen.operations, 1);
    if (now != s->home) {
        return tried(now, cost, time, s);
    }
    return s->seen.operations + FAILED * s->seen.failed < QN_AUTO_EPOCH
               ? now
               : next_of(parts, now, cost, time, s);
}
