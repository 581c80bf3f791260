#include "core/sync/delegate/auto_rule.h"

#include "core/base/bits.h"

/* Operations behind a change that do not count, and those that show a trial
 * which is much worse. */
#define UNCOUNTED (QN_AUTO_EPOCH / 4)
#define WORSE     (QN_AUTO_EPOCH / 2)

/* Batches as long as this are those of a crowd, in which no lock is cheap. */
#define CROWD  24u
/* Where many clients wait, more attempts than this fail per operation: of tas
 * one that goes to sleep has made more (its FIRST_LOOKS). One waiter beside a
 * long operation made five, with an attempt at each look. */
#define FAILED 16u

/* A failed trial is repeated after LOSSES times the time that it has lost, and
 * after EPOCHS_MIN epochs at least. Each further failure doubles both, at most
 * DOUBLED_MAX times. */
#define LOSSES      50u
#define EPOCHS_MIN  8u
#define DOUBLED_MAX 5u

/* Epochs. A trial that seems to have lost more was idle. */
#define LOST_MAX 4u

static uint64_t ns_of(uint64_t operations, uint64_t cost)
{
    return operations * cost / 1024;
}

static bool crowd_fails(uint32_t now, const struct qn_auto_window *seen)
{
    return now == QN_AUTO_LOCK && seen->failed > FAILED * seen->operations;
}

static bool makes_sense(uint32_t parts, uint32_t now, uint32_t other,
                        const struct qn_auto_window *seen)
{
    if (other == now || other >= parts) {
        return false;
    }
    if (now == QN_AUTO_LOCK) {
        return other == QN_AUTO_CC_SYNCH ? 32 * seen->failed > seen->operations
                                         : crowd_fails(now, seen);
    }
    if (other == QN_AUTO_LOCK) {
        const uint32_t few = now == QN_AUTO_CC_SYNCH ? CROWD : 2;
        return seen->operations < few * seen->batches;
    }
    return now == QN_AUTO_H_SYNCH || seen->operations > 3 * seen->batches;
}

/* Clients that tell again after a few operations make the lock dearer than it
 * is. A crowd tells soon. */
static uint16_t window_of(uint32_t now, uint32_t operations,
                          const struct qn_auto_window *seen)
{
    const bool few = now == QN_AUTO_LOCK && !crowd_fails(now, seen);
    const uint64_t each = 1 + seen->failed / QN_MAX(seen->operations, 1u);
    return (uint16_t)(few ? QN_MIN(operations * each, QN_AUTO_CALM)
                          : operations);
}

static void begin_epoch(uint64_t time, struct qn_auto_state *s)
{
    s->begin = time;
    s->warm = true;
    s->seen = (struct qn_auto_window){0};
}

static uint32_t change(uint32_t to, uint64_t time, struct qn_auto_state *s)
{
    begin_epoch(time, s);
    s->changed = time;
    s->warm = false;
    s->window = QN_AUTO_WINDOW;
    s->uncounted = 0;
    return to;
}

/* Under the load that there is. Others keep theirs: they come back, some of
 * them whenever another process takes a core. */
static struct qn_auto_trial *trials_of(struct qn_auto_state *s)
{
    const uint64_t cost = QN_MAX(s->cost, 2u);
    const uint32_t octave = 63u - (uint32_t)__builtin_clzll(cost);
    const uint32_t half = (uint32_t)(cost >> (octave - 1)) & 1;
    return s->trial[(2 * octave + half) % QN_AUTO_COSTS];
}

/* `loss`: what a trial of this backend costs, ns. */
static void put_off(uint32_t part, uint64_t loss, uint64_t time,
                    struct qn_auto_state *s)
{
    struct qn_auto_trial *t = &trials_of(s)[part];
    const uint32_t n = t->doubled;
    const uint64_t epoch = ns_of(QN_AUTO_EPOCH, s->cost);
    const uint64_t lost = QN_MIN(loss, LOST_MAX * epoch);
    t->due = time + (QN_MAX(LOSSES * lost, EPOCHS_MIN * epoch) << n);
    t->doubled = QN_MIN(n + 1, DOUBLED_MAX);
}

/* Where a trial is so much worse that a few operations take long, time says
 * so, or attempts that fail. */
static bool is_over(uint32_t now, uint64_t cost, uint64_t lasts,
                    const struct qn_auto_state *s)
{
    const bool worse = cost > s->cost + s->cost / 8;
    const bool slow = lasts > ns_of(QN_AUTO_EPOCH, s->cost);
    const uint32_t enough = worse ? WORSE : QN_AUTO_EPOCH;
    return (s->warm && s->seen.operations >= enough) ||
           (worse && (slow || crowd_fails(now, &s->seen)));
}

static uint16_t batch_of(const struct qn_auto_window *seen)
{
    const uint64_t eighths = 8 * seen->operations / QN_MAX(seen->batches, 1u);
    return (uint16_t)QN_MIN(eighths, UINT16_MAX);
}

/* Batches of four times the length, or a fourth, are another load's. A client
 * that is between its sums has told batches without operations, or these
 * without batches: no length. */
static bool other_batches(const struct qn_auto_window *w,
                          const struct qn_auto_state *s)
{
    const uint32_t b = batch_of(w);
    return w->operations != 0 && w->batches != 0 && s->batch != 0 &&
           (b > 4u * s->batch || 4 * b < s->batch);
}

/* A trial goes on, or is over. */
static uint32_t tried(uint32_t now, uint64_t cost, uint64_t time,
                      struct qn_auto_state *s)
{
    const uint64_t lasts = time - s->changed;
    if (!is_over(now, cost, lasts, s)) {
        return now;
    }
    if (cost < s->cost - s->cost / 32) {
        const uint64_t loss = ns_of(QN_AUTO_EPOCH, s->cost - cost);
        /* Both combine, and batches are not alike: the load has changed since,
         * and the last home is to be tried under this one. */
        const bool unlike = s->home != QN_AUTO_LOCK && now != QN_AUTO_LOCK &&
                            other_batches(&s->seen, s);
        s->last = s->home;
        s->home = (uint8_t)now;
        s->cost = cost;
        s->batch = batch_of(&s->seen);
        if (unlike) {
            trials_of(s)[s->last] = (struct qn_auto_trial){0};
        } else {
            put_off(s->last, loss, time, s);
        }
        begin_epoch(time, s);
        return now;
    }
    const uint64_t usual = ns_of(s->uncounted + s->seen.operations, s->cost);
    put_off(now, lasts > usual ? lasts - usual : 0, time, s);
    return change(s->home, time, s);
}

/* What trials have shown under another load of the same cost counts, as long
 * as batches look alike. */
static void change_load(uint64_t cost, bool unlike, struct qn_auto_state *s)
{
    s->cost = cost;
    s->batch = batch_of(&s->seen);
    s->odd = 0;
    for (uint32_t i = 0; unlike && i < QN_AUTO_PARTS; i++) {
        trials_of(s)[i] = (struct qn_auto_trial){0};
    }
}

/* One epoch that differs by a third was disturbed; two are another load. */
static void keep_cost(uint64_t cost, bool unlike, struct qn_auto_state *s)
{
    const bool same =
        3 * cost <= 4 * s->cost && 4 * cost >= 3 * s->cost && !unlike;
    if (same) {
        s->cost = (3 * s->cost + cost) / 4;
        s->odd = 0;
    } else if (s->cost == 0 || ++s->odd == 2) {
        change_load(cost, unlike, s);
    }
}

/* An epoch at home is over: is a trial due? First of the last home, since
 * loads come back. Not behind an odd epoch: where the load has changed within
 * it, neither its cost nor what executors saw is that of the load to come. */
static uint32_t next_of(uint32_t parts, uint32_t now, uint64_t time,
                        struct qn_auto_state *s)
{
    for (uint32_t k = 0; k < parts && s->odd == 0; k++) {
        const uint32_t i = (s->last + k) % parts;
        if (time >= trials_of(s)[i].due &&
            makes_sense(parts, now, i, &s->seen)) {
            return change(i, time, s);
        }
    }
    s->window = now == QN_AUTO_LOCK && s->seen.failed == 0
                    ? QN_AUTO_CALM
                    : window_of(now, QN_AUTO_HOME, &s->seen);
    begin_epoch(time, s);
    return now;
}

/* Behind an odd epoch a shorter one decides, and where batches are another
 * load's. At a lock at which many fail, which is slow, their number of attempts
 * ends it. */
static bool epoch_ends(uint32_t now, bool unlike, const struct qn_auto_state *s)
{
    const uint32_t length = unlike ? UNCOUNTED : QN_AUTO_EPOCH >> (s->odd > 0);
    return s->seen.operations >= length ||
           (crowd_fails(now, &s->seen) && FAILED * s->seen.failed > UNCOUNTED);
}

uint32_t qn_auto_rule(uint32_t parts, uint32_t now,
                      const struct qn_auto_window *w, uint64_t time,
                      struct qn_auto_state *s)
{
    if (s->begin == 0) {
        s->last = QN_AUTO_CC_SYNCH;
        return change(now, time, s);
    }
    s->seen.operations += w->operations;
    s->seen.batches += w->batches;
    s->seen.failed += w->failed;
    const uint64_t cost =
        (time - s->begin) * 1024 / QN_MAX(s->seen.operations, 1);
    if (!s->warm && s->seen.operations >= UNCOUNTED) {
        s->uncounted = s->seen.operations;
        s->window = window_of(now, QN_AUTO_WINDOW, &s->seen);
        begin_epoch(time, s);
        return now;
    }
    if (now != s->home) {
        return tried(now, cost, time, s);
    }
    /* Told since the last call, not in all of the epoch: what was told before
     * a change of the load would hide it. */
    const bool unlike = other_batches(w, s);
    if (!epoch_ends(now, unlike, s)) {
        return now;
    }
    keep_cost(cost, unlike, s);
    return next_of(parts, now, time, s);
}
