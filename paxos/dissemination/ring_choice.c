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
    QN_ASSERT(c->mark <= c->sent);
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

static void watch(struct qn_ring_choice *c, qn_slot_t slot, qn_time_t now)
{
    c->mark = slot;
    c->age = 0;
    c->looked_at = now;
}

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
    c->sent = learned;
    watch(c, learned, now);
    check(c);
}

void qn_ring_choice_sent(struct qn_ring_choice *c, qn_slot_t slot,
                         qn_time_t now)
{
    c->sent = QN_MAX(c->sent, slot);
    if (c->mark == 0) {
        watch(c, c->sent, now);
    }
}

/* All have the mark. */
static void arrived(struct qn_ring_choice *c, qn_time_t now)
{
    qn_slot_t under_way = c->sent - c->mark + 1;
    uint32_t most = UINT32_MAX / (2 * DEPTH_ONE);
    c->depth += (uint32_t)QN_MIN(under_way, most) - c->depth / DEPTH_ONE;
    watch(c, c->sent > c->mark ? c->sent : 0, now);
}

static void grow_old(struct qn_ring_choice *c, qn_time_t now)
{
    c->age += QN_MIN(now - c->looked_at, c->limit / 2);
    c->looked_at = now;
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
        leave(c, QN_RING_BEHIND, f->behind, now);
    }
}

bool qn_ring_choice_look(struct qn_ring_choice *c,
                         const struct qn_ring_facts *f, qn_time_t now)
{
    bool before = c->ring;
    QN_ASSERT(now >= c->looked_at);
    if (c->from == 0) {
        return false;
    }
    if (c->mark != 0 && f->behind == 0) {
        arrived(c, now);
    } else if (c->mark != 0) {
        grow_old(c, now);
    }
    bool late = c->mark != 0 && c->age >= c->limit;
    if ((f->suspected != 0 || late) && !(c->ring && QN_MUTANT(RING_STAYS))) {
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
        snprintf(to, QN_RING_TEXT_MAX, "replica %u is %s",
                 (unsigned)__builtin_ctzll(c->members), texts[c->reason]);
    } else {
        snprintf(to, QN_RING_TEXT_MAX, "%s", texts[c->reason]);
    }
    return to;
}

qn_time_t qn_ring_choice_deadline(const struct qn_ring_choice *c)
{
    return c->ring && c->mark != 0 ? c->looked_at + c->limit / 2
                                   : QN_TIME_NEVER;
}
