#include "core/sync/delegate/auto_rule.h"

#include "core/base/bits.h"

#define CALM 64u /* windows after which a change was no mistake */

/* Waiting clients per batch, in eighths. */
static const struct {
    uint32_t up, down;
} limit[] = {
    [QN_AUTO_LOCK] = {.up = 16, .down = 0},
    [QN_AUTO_CC_SYNCH] = {.up = 96, .down = 8},
    [QN_AUTO_H_SYNCH] = {.up = UINT32_MAX, .down = 32},
};

static uint32_t wish(uint32_t parts, uint32_t now,
                     const struct qn_auto_window *w)
{
    const uint64_t waiting = 8 * w->waited / QN_MAX(w->batches, 1);
    if (waiting >= limit[now].up && now + 1 < parts) {
        return now + 1;
    }
    return waiting < limit[now].down ? now - 1 : now;
}

static void stay(struct qn_auto_state *s)
{
    s->streak = 0;
    if (++s->calm >= CALM) {
        s->calm = 0;
        s->doublings -= s->doublings > 0;
    }
}

uint32_t qn_auto_rule(uint32_t parts, uint32_t now,
                      const struct qn_auto_window *w, struct qn_auto_state *s)
{
    const uint32_t want = wish(parts, now, w);
    if (want == now) {
        stay(s);
        return now;
    }
    s->streak = want == s->wanted ? s->streak + 1 : 1;
    s->wanted = want;
    s->calm++;
    if (s->streak < 1u << s->doublings) {
        return now;
    }
    if (want == s->before && s->calm < CALM &&
        1u << s->doublings < QN_AUTO_PATIENCE_MAX) {
        s->doublings++;
    }
    s->before = now;
    s->streak = 0;
    s->calm = 0;
    return want;
}
