/*
 * Ring or tree: see the header.
 *
 * `since` is the time of the last trouble, or of the last change to the ring.
 * The tree's own reason stays that of the last trouble until the ring is taken,
 * so that a reader of INFO sees why it is not the ring.
 */
#include "paxos/dissemination/ring_choice.h"

#include <stdio.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "paxos/mutant.h"

enum { DEPTH_ONE = 8 /* of `depth` */ };

static void check(const struct qn_ring_choice *c)
{
    QN_ASSERT(c->ring == (c->reason == QN_RING_IN_STEP));
    QN_ASSERT(!c->ring || c->from != 0);
    QN_ASSERT(c->timed <= c->sent);
    QN_ASSERT(c->spans <= QN_RING_SPANS);
    QN_ASSERT(c->spans == 0 || c->span[c->first].oldest_at <= c->clock);
    QN_ASSERT(c->calm >= QN_RING_CALM);
    QN_ASSERT(c->calm <= QN_RING_CALM_MAX);
}

void qn_ring_choice_init(struct qn_ring_choice *c, uint32_t from,
                         qn_time_t limit)
{
    QN_ASSERT(limit >= QN_RING_LAG);
    *c = (struct qn_ring_choice){
        .from = from,
        .limit = limit,
        .reason = from == 0 ? QN_RING_UNWANTED : QN_RING_NEW,
        .calm = QN_RING_CALM,
    };
}

/* ---- what is watched ----------------------------------------------------- */

static struct qn_ring_span *span_at(struct qn_ring_choice *c, uint32_t i)
{
    return &c->span[(c->first + i) % QN_RING_SPANS];
}

/* Between two looks at most half of the limit counts. */
static qn_time_t counted(const struct qn_ring_choice *c, qn_time_t now)
{
    QN_ASSERT(now >= c->looked_at);
    return c->clock + QN_MIN(now - c->looked_at, c->limit / 2);
}

static void watch(struct qn_ring_choice *c, qn_time_t now)
{
    if (c->spans == 0) {
        c->looked_at = now; /* nothing was watched until now */
    }
    qn_time_t at = counted(c, now);
    bool late = c->spans != 0 && at - span_at(c, c->spans - 1)->oldest_at >=
                                     c->limit / QN_RING_SPANS;
    if (c->spans == 0 || (late && c->spans < QN_RING_SPANS)) {
        span_at(c, c->spans++)->oldest_at = at;
    }
    span_at(c, c->spans - 1)->newest = c->sent;
}

static void forget_up_to(struct qn_ring_choice *c, qn_slot_t learned)
{
    while (c->spans != 0 && span_at(c, 0)->newest <= learned) {
        c->first = (c->first + 1) % QN_RING_SPANS;
        c->spans--;
    }
}

/* A member lacks one that was sent a limit ago. */
static bool is_late(struct qn_ring_choice *c)
{
    return c->spans != 0 && c->clock - span_at(c, 0)->oldest_at >= c->limit;
}

/* ---- the choice ---------------------------------------------------------- */

void qn_ring_choice_begin(struct qn_ring_choice *c, qn_slot_t learned,
                          qn_time_t now)
{
    c->changes += c->ring;
    c->ring = false;
    c->reason = c->from == 0 ? QN_RING_UNWANTED : QN_RING_NEW;
    c->members = 0;
    c->calm = QN_RING_CALM;
    c->since = now;
    c->depth = 0;
    c->sent = c->timed = 0;
    c->spans = 0;
    qn_ring_choice_sent(c, learned, now);
    check(c);
}

void qn_ring_choice_sent(struct qn_ring_choice *c, qn_slot_t slot,
                         qn_time_t now)
{
    c->sent = QN_MAX(c->sent, slot);
    c->timed = c->timed != 0 ? c->timed : c->sent;
    if (c->from != 0 && c->sent != 0) {
        watch(c, now);
    }
}

/* All have the one that is timed, and all up to `learned`. */
static void arrived(struct qn_ring_choice *c, qn_slot_t learned)
{
    qn_slot_t under_way = c->sent - c->timed + 1;
    uint32_t most = UINT32_MAX / (2 * DEPTH_ONE);
    c->depth += (uint32_t)QN_MIN(under_way, most) - c->depth / DEPTH_ONE;
    c->timed = c->sent > learned ? c->sent : 0;
}

/* The load is a pipeline. Once it is the ring, half of that is enough. */
static bool is_deep(const struct qn_ring_choice *c)
{
    uint64_t want = (uint64_t)c->from * DEPTH_ONE;
    return c->from == 1 || c->depth >= (c->ring ? want / 2 : want);
}

static void leave(struct qn_ring_choice *c, enum qn_ring_reason why,
                  uint64_t members, qn_time_t now)
{
    if (c->ring && why != QN_RING_SHALLOW) {
        bool lasted = now - c->since >= c->calm;
        c->calm = lasted ? QN_RING_CALM : QN_MIN(2 * c->calm, QN_RING_CALM_MAX);
    }
    c->ring = false;
    c->reason = why;
    c->members = members;
    c->since = now;
}

static void trouble(struct qn_ring_choice *c, const struct qn_ring_facts *f,
                    qn_time_t now)
{
    if (f->suspected != 0) {
        leave(c, QN_RING_SUSPECTED, f->suspected, now);
    } else {
        uint64_t behind = is_late(c) ? f->behind : f->left_out;
        QN_ASSERT(behind != 0);
        leave(c, QN_RING_BEHIND, behind, now);
    }
}

bool qn_ring_choice_look(struct qn_ring_choice *c,
                         const struct qn_ring_facts *f, qn_time_t now)
{
    bool before = c->ring;
    if (c->from == 0) {
        return false;
    }
    c->clock = counted(c, now);
    c->looked_at = now;
    forget_up_to(c, f->learned);
    if (c->timed != 0 && c->timed <= f->learned) {
        arrived(c, f->learned);
    }
    bool held_up = f->suspected != 0 || f->left_out != 0 || is_late(c);
    if (held_up && !(c->ring && QN_MUTANT(RING_STAYS))) {
        trouble(c, f, now);
    } else if (c->ring && !is_deep(c)) {
        leave(c, QN_RING_SHALLOW, 0, now);
    } else if (!c->ring && now - c->since >= c->calm) {
        c->ring = is_deep(c);
        c->reason = c->ring ? QN_RING_IN_STEP : QN_RING_SHALLOW;
        c->members = 0;
        c->since = c->ring ? now : c->since;
    }
    c->changes += c->ring != before;
    check(c);
    return c->ring != before;
}

const char *qn_ring_choice_text(const struct qn_ring_choice *c, char *to)
{
    static const char *const texts[QN_RING_REASONS] = {
        [QN_RING_UNWANTED] = "no ring is wanted",
        [QN_RING_NEW] = "not all were in step for long enough",
        [QN_RING_SUSPECTED] = "suspected",
        [QN_RING_BEHIND] = "behind",
        [QN_RING_SHALLOW] = "the load is no pipeline",
        [QN_RING_IN_STEP] = "all are in step",
    };
    if (c->members != 0) {
        snprintf(to, QN_RING_TEXT_MAX, "member %u is %s",
                 (unsigned)__builtin_ctzll(c->members), texts[c->reason]);
    } else {
        snprintf(to, QN_RING_TEXT_MAX, "%s", texts[c->reason]);
    }
    return to;
}

qn_time_t qn_ring_choice_deadline(const struct qn_ring_choice *c)
{
    if (!c->ring || c->spans == 0) {
        return QN_TIME_NEVER;
    }
    qn_time_t age = c->clock - c->span[c->first].oldest_at;
    return c->looked_at +
           QN_MIN(c->limit / 4, c->limit - QN_MIN(age, c->limit));
}
