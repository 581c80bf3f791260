#ifndef QN_SIM_TIMED_PREFETCH_H
#define QN_SIM_TIMED_PREFETCH_H

/**
 * A stride prefetcher: one stream of a cache. Two misses at equal distances
 * make a stream; each further one of it asks for the lines behind it.
 *
 * What is asked for is brought when that line is looked at next, by any node,
 * as of the time at which it was asked for: until then nothing has happened to
 * it. A stream whose last line was stored to asks for lines to write.
 *
 * Pure.
 */

#include <stdbool.h>

#include "core/sim/timed/prices.h"

#define QN_PREFETCH_DISTANCE 32  /* lines, at most: half of a page */
#define QN_PREFETCH_AHEAD    20u /* lines that a stream asks for, at most */

enum qn_prefetch_state { QN_PREFETCH_NONE, QN_PREFETCH_ASKED, QN_PREFETCH_IS };

/** One line of a stream. Addresses are in lines. */
struct qn_prefetch_line {
    enum qn_prefetch_state state; /* IS: it was brought, and not used yet */
    uintptr_t base;
    qn_ps_t at;    /* when it was asked for; its transfer begins */
    qn_ps_t whole; /* IS: what its transfer takes */
};

/** All 0: no stream yet. */
struct qn_prefetch {
    uintptr_t last; /* missed */
    intptr_t stride;
    bool stored;    /* the unit has stored to `last` */
    bool writes;    /* it has to the line before that */
    uint32_t lines; /* of `line`, in a state that is not NONE */
    uint32_t next;  /* to be replaced */
    struct qn_prefetch_line line[QN_PREFETCH_AHEAD];
};

/** @return the line, if it is in that state; else NULL. */
static inline struct qn_prefetch_line *qn_prefetch_find(
    struct qn_prefetch *f, uintptr_t base, enum qn_prefetch_state state)
{
    for (uint32_t i = 0; f->lines > 0 && i < QN_PREFETCH_AHEAD; i++) {
        if (f->line[i].base == base && f->line[i].state == state) {
            return &f->line[i];
        }
    }
    return NULL;
}

static inline void qn_prefetch_drop(struct qn_prefetch *f,
                                    struct qn_prefetch_line *l)
{
    l->state = QN_PREFETCH_NONE;
    f->lines--;
}

static inline void qn_prefetch_ask(struct qn_prefetch *f, uint32_t ahead,
                                   uintptr_t base, qn_ps_t at)
{
    struct qn_prefetch_line *l = &f->line[f->next];
    if (qn_prefetch_find(f, base, QN_PREFETCH_ASKED) != NULL ||
        qn_prefetch_find(f, base, QN_PREFETCH_IS) != NULL) {
        return;
    }
    f->lines += l->state == QN_PREFETCH_NONE;
    f->next = (f->next + 1) % ahead;
    *l = (struct qn_prefetch_line){
        .state = QN_PREFETCH_ASKED, .base = base, .at = at};
}

static inline void qn_prefetch_stored(struct qn_prefetch *f, uintptr_t line)
{
    f->stored |= f->last == line;
}

/** A load has missed that line, or used what was brought, at `at`.
 *  @param ahead  1 to QN_PREFETCH_AHEAD. */
static inline void qn_prefetch_miss(struct qn_prefetch *f, uint32_t ahead,
                                    uintptr_t line, qn_ps_t at)
{
    intptr_t stride = (intptr_t)(line - f->last);
    bool goes_on = stride == f->stride && stride != 0 &&
                   stride <= QN_PREFETCH_DISTANCE &&
                   stride >= -QN_PREFETCH_DISTANCE;
    f->writes = f->stored;
    f->stored = false;
    f->last = line;
    f->stride = stride;
    for (uint32_t i = 1; goes_on && i <= ahead; i++) {
        qn_prefetch_ask(f, ahead, line + i * (uintptr_t)stride, at);
    }
}

#endif
