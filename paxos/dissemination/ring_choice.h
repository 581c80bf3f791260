#ifndef QN_PAXOS_DISSEMINATION_RING_CHOICE_H
#define QN_PAXOS_DISSEMINATION_RING_CHOICE_H

/**
 * Ring or tree: along which of the two the root broadcasts LEARN, and since
 * when.
 *
 * In a diamond ring each node sends to few others, so a pipeline of broadcasts
 * is faster; but one slow member delays all behind it. So the root leaves the
 * ring for the tree the moment a member is suspected, or lacks a broadcast that
 * was sent `limit` ago. It returns when all members have been in step for a
 * while (`calm`): QN_RING_CALM at first, and twice as long each time the ring
 * did not last as long, up to QN_RING_CALM_MAX. A new root begins with the
 * tree.
 *
 * All broadcasts that a member may lack are watched, in spans: those that were
 * sent within a sixteenth of the limit are one. A span is as old as its oldest
 * broadcast, and over when all members have its newest. So a ring is left in
 * the first look in which a broadcast that a member lacks is as old as the
 * limit, and at most a sixteenth before.
 *
 * Another broadcast is timed: how many were sent until all members had it says
 * whether the load is a pipeline (the depth), for a root that is to take the
 * ring only then.
 *
 * A root that is stalled itself accuses no member: between two looks at most
 * half of the limit counts. It asks to be woken four times in a limit
 * (qn_ring_choice_deadline), so that one that wakes in time counts all, and one
 * whose timer has whole ms nearly all.
 *
 * Pure: time and positions are arguments. One thread. O(QN_RING_SPANS).
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/clock.h"
#include "core/node.h"

/** How old a broadcast may become that a member lacks: each replica has its own
 *  core; cores are shared, where a member may just wait for one. */
#define QN_RING_LAG        ((qn_time_t)2 * QN_MS)
#define QN_RING_LAG_SHARED ((qn_time_t)10 * QN_MS)
/** All were in step for so long before the ring is taken: at first; at most. */
#define QN_RING_CALM       ((qn_time_t)100 * QN_MS)
#define QN_RING_CALM_MAX   ((qn_time_t)10 * QN_S)

/** Why it is the ring, or not. */
enum qn_ring_reason {
    QN_RING_UNWANTED,  /* tree: there is no ring */
    QN_RING_NEW,       /* tree: not all were in step for long enough yet */
    QN_RING_SUSPECTED, /* tree: a member is, or was a short time ago */
    QN_RING_BEHIND,    /* tree: a member lacks a broadcast, or lacked one */
    QN_RING_SHALLOW,   /* tree: too few broadcasts are under way at once */
    QN_RING_IN_STEP,   /* ring */
    QN_RING_REASONS
};

#define QN_RING_TEXT_MAX 64u /* bytes of a reason, NUL included */
/* Spans that are watched at once. Each covers this part of the limit, so when
 * all are in use the oldest one is as old as the limit. */
#define QN_RING_SPANS    16u

/** Broadcasts that were sent one soon after the other. */
struct qn_ring_span {
    qn_slot_t newest;
    qn_time_t oldest_at; /* when the oldest was sent, on the clock below */
};

/** Fields private; filled by qn_ring_choice_init. */
struct qn_ring_choice {
    uint32_t from; /* broadcasts under way at once from which on the ring is
                      taken; 0: never, 1: always */
    qn_time_t limit;
    bool ring;
    enum qn_ring_reason reason;
    uint64_t members;      /* mask: for which of them */
    qn_slot_t sent;        /* newest one */
    qn_slot_t timed;       /* for the depth; 0: none is */
    qn_time_t clock;       /* time that counts, up to the last look */
    qn_time_t looked_at;   /* time of that look; or when the first was sent */
    qn_time_t calm;        /* to be in step for */
    qn_time_t since;       /* in step since; with `ring`, ring since */
    uint32_t depth;        /* smoothed, in eighths */
    uint64_t changes;      /* from ring to tree and back */
    uint32_t first, spans; /* of ... */
    struct qn_ring_span span[QN_RING_SPANS]; /* ... these: a ring buffer */
};

/** What the root sees. Masks of members. */
struct qn_ring_facts {
    uint64_t suspected;
    uint64_t left_out; /* of the tree, until they have caught up */
    qn_slot_t learned; /* by all; UINT64_MAX: none is told, or none is watched
                          (qn_ring_choice_watches) */
    uint64_t behind;   /* have learned no more than that */
};

/** @param from   As above. @param limit  QN_RING_LAG, or longer. */
void qn_ring_choice_init(struct qn_ring_choice *c, uint32_t from,
                         qn_time_t limit);

/** This node begins as a root, with the tree. @param learned  Members may lack
 *  slots up to it; 0: there are none. */
void qn_ring_choice_begin(struct qn_ring_choice *c, qn_slot_t learned,
                          qn_time_t now);

/** `slot` was broadcast; or a member is new and may lack it. */
void qn_ring_choice_sent(struct qn_ring_choice *c, qn_slot_t slot,
                         qn_time_t now);

/** Some members may lack something that was sent. */
static inline bool qn_ring_choice_watches(const struct qn_ring_choice *c)
{
    return c->spans != 0;
}

/** A look, in each turn of the root. @return true: it is the other one of ring
 *  and tree from now on (c->ring). */
bool qn_ring_choice_look(struct qn_ring_choice *c,
                         const struct qn_ring_facts *f, qn_time_t now);

/** The reason in words: "member 2 is behind". @param to  [QN_RING_TEXT_MAX]
 *  filled. @return to. */
const char *qn_ring_choice_text(const struct qn_ring_choice *c, char *to);

/** When to look again at the latest, so that a ring is left in time; or
 *  QN_TIME_NEVER. */
qn_time_t qn_ring_choice_deadline(const struct qn_ring_choice *c);

#endif
