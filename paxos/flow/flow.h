#ifndef QN_PAXOS_FLOW_FLOW_H
#define QN_PAXOS_FLOW_FLOW_H

/**
 * Flow control: how far the leader may run ahead of the other members
 * (PROTOCOL.md 3.6).
 *
 * The leader alone decides, so the gate stands there: a batch is decided only
 * if no *awaited* member would then lack more than its mark. What waits behind
 * the gate pushes back by itself: the queue fills, origins get no credit,
 * sockets are not read. So the memory that any replica keeps for a slow member
 * is bounded in bytes, and a slow member costs the others time, but never the
 * log.
 *
 *     lag     bytes and slots that are decided and that the member has not
 *             applied
 *     mark    the largest lag that a member may have
 *               lag_*    while it applies
 *               stop_*   when it has applied nothing for QN_FLOW_QUIET: a short
 *                        stop costs the other members nothing
 *             A member that goes on after a stop has its lag as its mark. The
 *             mark falls half as fast as the member applies, down to lag_*
 *     awaited every living member in sync, except those that were given up. A
 *             member is given up when it has shut the gate for `timeout` and
 *             meanwhile has applied, or read of a long batch, less than 1/16 of
 *             lag_bytes and of lag_slots; or when it is slow. It is awaited
 *             again when it has applied as much as that, or lacks less than its
 *             mark, and its next slot is still kept
 *     slow    the member shuts the gate; in QN_FLOW_SLOW_LOOKS consecutive
 *             looks, one `timeout` apart, it has lacked more than half of
 *             stop_*, or has shut the gate for half of the time, and its pace
 *             was less than a quarter of that of another awaited member. A pace
 *             is what a member applies in the time in which it lacks something.
 *             Where all replicas share one core it is about the same for all,
 *             whichever member waits for which
 *     pause   a member that was slow, or that is given up again soon after it
 *             was awaited again, has a pause. It is awaited again only after
 *             the pause and when it lacks less than its mark: it has caught up
 *             while the others went on. The pause doubles each time. Meanwhile
 *             nothing is held for its join; later a hold for it may shut the
 *             gate for a quarter of the pause
 *     hold    a replica gives a snapshot: what was decided since the cut is
 *             kept for the joiner. The mark grows with the part that has been
 *             sent, so writes slow down and do not stop while a join goes on. A
 *             hold that shuts the gate and has not grown for twice `timeout` is
 *             given up
 *
 * A member without lag never shuts the gate, so a batch that is longer than the
 * mark goes alone.
 *
 * With `min_awaited` or fewer followers awaited no member is given up: writes
 * are *held* until a member goes on. Ended members do not count: with fewer
 * living followers than `min_awaited` all of them are waited for, and the last
 * member serves alone.
 *
 * Pure: no IO, no clock; times are arguments. One thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/clock.h"
#include "core/node.h"

/** A member that has applied nothing for this long is stopped. */
#define QN_FLOW_QUIET      (100 * QN_MS)
/** A slow member applies less than 1 / QN_FLOW_SLOW of another's pace ... */
#define QN_FLOW_SLOW       4u
/** ... in this number of consecutive looks, one `timeout` apart. */
#define QN_FLOW_SLOW_LOOKS 3u
/** Its pause, in units of `timeout`: the first, and the longest. */
#define QN_FLOW_PAUSE      16u
#define QN_FLOW_PAUSE_MOST 512u
/** At first a stamp passes the shut gate at this interval. The pause between
 *  two stamps grows with the time since the first one: a quarter of the slots
 *  kept is left for stamps (stop_slots), which lasts for months. */
#define QN_FLOW_STAMP      (10 * QN_MS)
/** `done` of a hold whose snapshot has been sent. */
#define QN_HOLD_DONE       65536u

struct qn_flow_limits {
    uint64_t lag_bytes, stop_bytes; /* marks; 0 < lag <= stop */
    uint64_t lag_slots, stop_slots;
    qn_time_t timeout;    /* ns; `lag-timeout` */
    uint32_t min_awaited; /* `min-replicas-to-write`; or QN_FLOW_MINORITY */
};

/** As `min_awaited`: with the leader it is a majority of the voters, as they
 *  are at the moment. 0, 1, 2 for 1, 3, 5 of them. */
#define QN_FLOW_MINORITY UINT32_MAX

/** Where a member is. */
struct qn_flow_place {
    qn_slot_t applied; /* slots <= it */
    uint64_t bytes;    /* decided above it */
    bool kept;         /* slot applied + 1 can still be had from the leader */
    uint64_t read;     /* bytes that it has read of batches, also of one that it
                          does not have whole; never falls in one incarnation */
};

/** What a giver of a snapshot asks to keep. */
struct qn_flow_hold {
    qn_slot_t slot; /* first that the joiner will need; 0: none */
    uint32_t done;  /* part of the snapshot sent, of QN_HOLD_DONE */
};

/** What was decided from a hold's slot on. */
struct qn_flow_kept {
    uint64_t bytes, slots;
    bool kept; /* the slot can still be had from the leader */
};

/** How far a leader may go, of `most` (bytes or slots), while `done` of
 *  QN_HOLD_DONE of a snapshot has been sent. */
static inline uint64_t qn_flow_hold_mark(uint64_t most, uint64_t done)
{
    return most / 8 + (most - most / 8) * done / QN_HOLD_DONE;
}

/** What a member has done between two looks, and what that took. Private. */
struct qn_flow_pace {
    uint64_t bytes, read;
    qn_time_t lacked; /* ns in which it lacked something */
    qn_time_t heard;  /* it said last where it is */
    uint64_t shut;    /* qn_flow_shut_by at the last look */
};

/** What is known of one member. Private. */
struct qn_flow_member {
    bool living, awaited;
    bool given;   /* given up, and not awaited again since */
    bool waiting; /* it has shut the gate and its window is open: */
    struct qn_flow_place at;
    uint64_t slots;      /* decided above at.applied */
    qn_time_t moved_at;  /* it applied something */
    uint64_t mark_bytes; /* while it applies */
    uint64_t mark_slots;
    qn_time_t since; /* window: begin ... */
    uint64_t bytes;  /* ... and what it has applied in it, */
    uint64_t applied;
    uint64_t read;            /* ... and read */
    struct qn_flow_pace pace; /* since the last look */
    uint64_t shown;       /* its pace when it last lacked something, bytes/s;
                             0: unknown */
    bool behind;          /* slow in a look, and not as fast as that since */
    uint32_t slow;        /* consecutive looks in which it was slow */
    qn_time_t pause;      /* after it was given up; 0: none */
    qn_time_t pause_over; /* when it is over */
    qn_time_t back_at;    /* it was awaited again; 0: never */
    qn_time_t shut_at;    /* it shuts the gate now; 0: no */
    uint64_t shut;        /* ns, in total, without the present time */
    struct qn_flow_hold hold; /* as it says */
    qn_slot_t hold_over;      /* its hold of this slot was given up */
    uint64_t hold_bytes;      /* decided from its slot on, bytes */
    uint64_t hold_slots;      /* likewise, slots */
    qn_time_t hold_moved;     /* its `done` has grown */
    uint64_t hold_shut;       /* `shut` when it began */
};

struct qn_flow {
    struct qn_flow_limits limits;
    uint32_t nodes;
    qn_node_t self;
    uint64_t voters;     /* mask: the members that min_awaited counts */
    bool held;           /* writes wait for a member that may not be given up */
    uint64_t given;      /* members given up, in total */
    qn_time_t looked;    /* at their pace; 0: never */
    qn_time_t stamp_at;  /* a stamp may pass a shut gate from then on */
    qn_time_t passed_at; /* the first one did; 0: it was open since */
    uint64_t holds;      /* holds given up, in total */
    uint64_t shut;       /* ns for which the gate was shut */
    qn_time_t shut_at;   /* it is; 0: no */
    struct qn_flow_member member[QN_NODES_MAX];
};

/** @param l  1 .. and as its fields say; copied. */
void qn_flow_init(struct qn_flow *f, qn_node_t self, uint32_t nodes,
                  const struct qn_flow_limits *l);

/** Change the limits of time and number. A member that shuts the gate is
 *  judged by them at the next look, counted from the moment at which it
 *  began. A member that was given up before stays so until it returns. */
void qn_flow_change(struct qn_flow *f, qn_time_t timeout, uint32_t min_awaited);

/** Only these members, a mask, count for min_awaited. All, as at first. */
void qn_flow_voters(struct qn_flow *f, uint64_t voters);

/** This node leads from now on. Every living member (`living`, a mask) whose
 *  next slot is kept is awaited. @param at  [nodes] */
void qn_flow_begin(struct qn_flow *f, qn_time_t now, uint64_t living,
                   const struct qn_flow_place *at);

/** A member says where it is now. */
void qn_flow_heard(struct qn_flow *f, qn_time_t now, qn_node_t n,
                   struct qn_flow_place at);

/** A member, which may be this one, says what it holds. */
void qn_flow_keep(struct qn_flow *f, qn_time_t now, qn_node_t n,
                  struct qn_flow_hold hold, struct qn_flow_kept since);

/** A member has ended; its next incarnation is not awaited before it applies.
 */
void qn_flow_down(struct qn_flow *f, qn_time_t now, qn_node_t n);

/** A slot of `bytes` was decided. */
void qn_flow_decided(struct qn_flow *f, uint64_t bytes);

/** The members that shut the gate, as masks. */
struct qn_flow_by {
    uint64_t members; /* by what they have not applied */
    uint64_t holds;   /* by what they hold for a joiner */
};

/** Members and holds that forbid a batch of `bytes` now. O(nodes). */
struct qn_flow_by qn_flow_shuts(const struct qn_flow *f, qn_time_t now,
                                uint64_t bytes);

/** Members and holds with the oldest need: they forbid a batch for which the
 *  log has no place. */
struct qn_flow_by qn_flow_oldest(const struct qn_flow *f);

/**
 * A batch waits and the members in `by` forbid it. An empty `by`: it may be
 * decided, or no batch waits. Members and holds that make no progress are given
 * up here.
 *
 * @return true: one was given up; ask qn_flow_shuts again.
 */
bool qn_flow_look(struct qn_flow *f, qn_time_t now, struct qn_flow_by by);

/** First slot that an awaited member lacks or a hold keeps; UINT64_MAX. */
qn_slot_t qn_flow_first(const struct qn_flow *f);

/** Awaited members, a mask. */
uint64_t qn_flow_awaited(const struct qn_flow *f);

/** The members for which the leader slows down (paxos/driver/flow_control.h):
 * all but those that are slow. A mask. */
uint64_t qn_flow_followed(const struct qn_flow *f);

/** A slot is filled. @param passes  With a stamp, though the gate is shut. */
void qn_flow_stamped(struct qn_flow *f, qn_time_t now, bool passes);

/** How long member `n` has shut the gate, ns. */
uint64_t qn_flow_shut_by(const struct qn_flow *f, qn_node_t n, qn_time_t now);

/** How long the gate was shut, ns. */
uint64_t qn_flow_shut(const struct qn_flow *f, qn_time_t now);

#endif
