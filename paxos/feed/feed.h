#ifndef QN_PAXOS_FEED_FEED_H
#define QN_PAXOS_FEED_FEED_H

/**
 * The change feed of a member: the commands that were applied there, each once
 * and in order, for subscribers that follow the replicated state without being
 * a part of it (a cache, an index, a copy elsewhere).
 *
 * The feed keeps the newest records in one ring, and each subscriber has a
 * position in it. No member waits: what does not fit overwrites the oldest
 * record, and a subscriber that had not read it is told QN_EGONE with the first
 * position to be had. So `bytes` and `records` say how far each subscriber may
 * lag behind, and one that lags takes nothing from another one.
 *
 * A position is a slot and a number in it, and names the next record. It is the
 * same in every member, as duplicates are removed from the log in the same way
 * everywhere. So a subscriber that stores the position after its work sees each
 * record at least once, also if it goes on with another member. (Not of another
 * group: with its last member a group ends, and positions of it with it.)
 *
 *     at = stored position
 *     qn_feed_subscribe(f, &at, &id)      QN_EGONE: see below
 *       each turn:
 *       while qn_feed_read(f, id, &r) is QN_OK: work on it
 *       store qn_feed_position(f, id)
 *
 * What was lost is never passed over in silence. QN_EGONE: it was cut here. A
 * record QN_FEED_GAP: this member never saw it, because it has installed a
 * snapshot, or the group was recovered by force. In both cases the subscriber
 * takes a copy of the state and goes on behind it:
 *
 *     between two slots, with the state as it is now:
 *     take a copy of the state, or begin one
 *     qn_feed_subscribe(f, NULL, &id)     or qn_feed_seek(f, id, NULL): what
 *                                         follows the state, without a gap
 *
 * If all subscribers are cut, and none seeks while as much is recorded as is
 * kept, then nothing is recorded any more (unless `retain`), until one seeks:
 * what comes next is the first to be had then. So a subscriber that has stopped
 * costs its member nothing.
 *
 * Memory: one block of qn_feed_bytes, allocated when the first subscriber comes
 * and freed when the last one has gone, or as long as the feed with `retain`.
 * Recording a command is a copy of its bytes, and nothing while there is no
 * block.
 *
 * Threads: one, that of the member's turns. Nothing blocks. To read in
 * another thread or process is the program's part.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/alloc.h"
#include "core/base/bits.h"
#include "core/node.h"

/** Where a subscriber is: everything before it was read. */
struct qn_feed_position {
    qn_slot_t slot;
    uint64_t number; /* of a command in the slot, from 0; duplicates do not
                        count */
};

/** Below 0, 0, above 0: `a` is before, at, behind `b`. */
static inline int qn_feed_compare(struct qn_feed_position a,
                                  struct qn_feed_position b)
{
    return a.slot != b.slot ? (a.slot > b.slot) - (a.slot < b.slot)
                            : (a.number > b.number) - (a.number < b.number);
}

enum qn_feed_kind {
    QN_FEED_COMMAND,
    QN_FEED_GAP /* this member does not have what lies from `at` to before
                   `to` */
};

struct qn_feed_record {
    enum qn_feed_kind kind;
    struct qn_feed_position at; /* its position */
    struct qn_feed_position to; /* the next one's lowest */
    /* Of a command only: */
    uint64_t stamp_ms;     /* of its batch */
    qn_node_t origin;      /* the node that has submitted it ... */
    uint64_t origin_inc;   /* ... its incarnation ... */
    uint64_t seq;          /* ... and its sequence there */
    struct qn_slice bytes; /* read: borrowed until the next call that records,
                              or ends a subscription */
};

#define QN_FEED_SUBSCRIBERS_MAX 64u

struct qn_feed_opts {
    uint64_t bytes;       /* of commands that are kept, from 1; one that is
                             longer is cut at once */
    uint32_t records;     /* that are kept, from 1 */
    uint32_t subscribers; /* at once, 1 .. QN_FEED_SUBSCRIBERS_MAX */
    bool retain;          /* record also while there is no subscriber, so that
                             one that ended can come back to its position */
    qn_slot_t applied;    /* of the member now: the feed begins behind it */
    const struct qn_alloc *alloc; /* kept; NULL: qn_alloc_malloc */
};

struct qn_feed; /* opaque */

/** Bytes of its block: what a feed with these options takes at most, beside
 *  about 2 KiB of its own. */
uint64_t qn_feed_bytes(const struct qn_feed_opts *o);

/** Are all options within their ranges? */
bool qn_feed_valid(const struct qn_feed_opts *o);

/** @return QN_OK; QN_EINVAL: an option is out of range; QN_ENOMEM. */
int qn_feed_create(struct qn_feed **out, const struct qn_feed_opts *o);
/** NULL is fine. */
void qn_feed_destroy(struct qn_feed *f);

/* ---- the member ---------------------------------------------------------- */

/** The next command that was applied. Its `kind` and position are given here;
 *  of `at` only the slot is looked at: the present one, or a later one (what
 *  is skipped becomes a gap). Bytes are copied. O(records that it overwrites).
 */
void qn_feed_command(struct qn_feed *f, const struct qn_feed_record *c);

/** All of `slot` was applied. */
void qn_feed_slot_end(struct qn_feed *f, qn_slot_t slot);

/** A snapshot was installed: the state is as of the end of `slot`. What this
 *  member had not applied of that is a gap. It is never an older state than the
 *  one that it replaces, also if that was lost: positions do not go back. */
void qn_feed_snapshot(struct qn_feed *f, qn_slot_t slot);

/* ---- subscribers --------------------------------------------------------- */

/**
 * Begin to read at `from`, which may lie in the future: then records before it
 * are passed over. NULL: what comes next. Between two slots, and with the state
 * as it is then, that follows without a gap.
 *
 * @param id  Filled: names the subscription until unsubscribe.
 * @return QN_OK; QN_EGONE: what lies there was cut, see qn_feed_first; or is
 *         not known, as nothing was recorded then; QN_EDQUOT: there are as many
 *         as there may be; QN_ENOMEM. Then nothing has changed.
 */
int qn_feed_subscribe(struct qn_feed *f, const struct qn_feed_position *from,
                      uint32_t *id);

/** The subscription ends, and its id may be given to the next one. */
void qn_feed_unsubscribe(struct qn_feed *f, uint32_t id);

/** Go on at `to`; NULL: at what comes next. @return QN_OK; QN_EGONE: as above,
 *  and nothing has changed. */
int qn_feed_seek(struct qn_feed *f, uint32_t id,
                 const struct qn_feed_position *to);

/**
 * The next record of this subscriber, which is read then.
 *
 * A gap begins where the subscriber was, if that is inside of it.
 *
 * @return QN_OK; QN_EAGAIN: there is none yet; QN_EGONE: it was cut. That stays
 *         so until qn_feed_seek.
 */
int qn_feed_read(struct qn_feed *f, uint32_t id, struct qn_feed_record *r);

/** The position to store: everything before it was read, or does not exist. */
struct qn_feed_position qn_feed_position(const struct qn_feed *f, uint32_t id);

/** The first position to be had. Without a block: what comes next. */
struct qn_feed_position qn_feed_first(const struct qn_feed *f);

struct qn_feed_status {
    struct qn_feed_position first, next; /* kept: from, to before */
    uint64_t bytes;                      /* of commands that are kept */
    uint32_t records;                    /* that are kept */
    uint32_t subscribers;
    uint32_t gone; /* of these, those that wait for qn_feed_seek */
    uint64_t cut;  /* records that were overwritten, ever */
};
void qn_feed_status(const struct qn_feed *f, struct qn_feed_status *out);

/** Records that wait for this subscriber; a gap is one. */
uint32_t qn_feed_lag(const struct qn_feed *f, uint32_t id);

#endif
