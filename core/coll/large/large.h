#ifndef QN_COLL_LARGE_H
#define QN_COLL_LARGE_H

/**
 * Large collectives: broadcast, reduction, scatter and gather between members
 * that map each other's memory, by pull and push (README.md).
 *
 * Each member has an *arena*, memory that the others map, and makes the same
 * calls in the same order. A buffer that others read or write lies in the
 * member's arena; which ones these are depends on the variant, so the simple
 * rule is: all. Members that share an address space need no arenas. To pull,
 * a read-only mapping will do. Push is for groups that have agreed to write
 * each other's memory: elsewhere it is QN_EPERM.
 *
 *     struct qn_large l;                          one per member, same opts
 *     qn_large_init(&l, &opts);
 *     qn_large_run(&l, &(struct qn_large_call){
 *         .operation = QN_LARGE_BROADCAST, .root = 0, .bytes = 1 << 20,
 *         .in = from, .out = to, .entry = QN_LARGE_OWN, .exit = QN_LARGE_OWN});
 *
 * *Deaths.* The program learns that a member has ended and says so, once, to
 * all: qn_large_down. Each member that needs the ended one, or one that needs
 * it, gets QN_EPEERDEAD, and all its later operations fail; others complete.
 * What was copied before is undefined at a member that has failed. Others may
 * still read its buffers, and by push write them: they are its own again when
 * qn_large_settle has returned. So a living member makes the same calls until
 * one has failed, or says qn_large_down of itself.
 *
 * A call blocks: it looks as `backoff` says, and then sleeps. One thread per
 * struct qn_large; qn_large_down from any.
 */

#include "core/base/alloc.h"
#include "core/base/atomic.h"
#include "core/coll/large/large_schedule.h"
#include "core/coll/payload/operators.h"
#include "core/wait/backoff.h"

#define QN_LARGE_BYTES_MAX ((uint64_t)1 << 30)
/** Bytes of the largest intermediate buffer that is kept for later calls. */
#define QN_LARGE_KEPT_MAX  ((uint64_t)16 << 20)
/** Members up to which each root gets a tree of its own. */
#define QN_LARGE_OWN_TREES 16u

/** What the members share: one line of each, zero at first, in memory that all
 *  may write. */
struct qn_large_line {
    alignas(QN_CACHELINE) qn_a32 word; /* progress * 2; odd: has ended.
                                          Raised by its member, made odd by any
                                          */
    qn_a32 sleepers; /* that sleep on `word`, or are about to */
    qn_a64 shown;    /* where its shown buffer is, in its arena; its member */
};

/** A member's memory as it is mapped here. */
struct qn_large_arena {
    void *base;
    size_t bytes;
};

struct qn_large_opts {
    uint32_t members, rank;
    struct qn_large_line *lines;         /* [members] shared, kept */
    const struct qn_large_arena *arenas; /* [members] kept; the own one may be
                                            written. NULL: one address space */
    const struct qn_large_place *place;  /* [members] kept; NULL: one region */
    const struct qn_alloc *work; /* kept: intermediate buffers, of the own
                                    arena. NULL: malloc, in one address space */
    uint64_t threshold;          /* of the ring, bytes; 0: QN_LARGE_CHUNK */
    bool push;                   /* members may write each other's memory */
    const struct qn_large_choices *choices; /* kept, the same at all: variants
                                               by size (large_predict.h); NULL:
                                               by operation and regions */
    struct qn_backoff_opts backoff;
};

struct qn_large_call {
    const struct qn_large_variant *variant; /* NULL: one that suits; of
                                               `choices`, if they are given */
    enum qn_large_operation operation;      /* as that of the variant */
    uint32_t root;
    uint64_t bytes; /* broadcast, reduce: of the vector, with as many elements
                       as fit exactly; scatter, gather: of each member */
    const void *in; /* reduce: NULL contributes the neutral element; it and
                       `out` are aligned as the operator needs. They do not
                       overlap */
    void *out;      /* [bytes]; gather: [members * bytes]. Not used: by the
                       root of a broadcast, by others in reduce and gather */
    const struct qn_operator *op; /* reduce */
    enum qn_large_sync entry, exit;
};

/** One member. Some 25 KB; fields are private. */
struct qn_large {
    struct qn_large_opts o;
    uint32_t regions;
    bool kept_built[2];
    struct qn_shape kept[2]; /* binomial, binomial+flat; root 0 */
    struct qn_shape tree;    /* of the last operation that has one */
    enum qn_large_tree tree_kind;
    struct qn_large_plan plan; /* of the last operation */
    const struct qn_large_call *call;
    uint32_t base;  /* progress before this operation */
    uint32_t value; /* own progress */
    uint64_t unmet; /* values since an entry of all */
    bool left_over; /* the last operation has left waits to the next one */
    int failed;     /* what all later operations return */
    struct qn_backoff backoff;
    struct qn_yield yield;
    qn_time_t awake_ns; /* of a wait of this operation */
    void *work;
    uint64_t work_bytes;
};

/** @param o  Copied. @return QN_OK; QN_EINVAL: no or too many members (1 ..
 *  QN_LARGE_MEMBERS_MAX), rank, lines missing, arenas without `work`. */
int qn_large_init(struct qn_large *l, const struct qn_large_opts *o);

/** Give intermediate memory back. After qn_large_settle. */
void qn_large_fini(struct qn_large *l);

/**
 * Run one operation. All members say the same, but for `in` and `out`. With
 * entry NONE each gives both, at the same places in its arena (without arenas
 * it is OWN). Before their words differ by 2^29 values (qn_large_span) the
 * entry of an operation is ALL, whatever it says.
 *
 * @param c  Borrowed.
 * @return QN_OK; QN_EPEERDEAD, and from then on; QN_EREMOVED: this member was
 *         said to have ended; QN_ECORRUPT: another member shows memory that is
 *         not in its arena, or none. Without any effect: QN_EPERM: push in a
 *         group that has not agreed to it; QN_EINVAL: root, bytes, operator,
 *         variant of another operation, a buffer that is missing or outside
 *         the own arena; QN_ENOMEM: no intermediate buffer.
 */
int qn_large_run(struct qn_large *l, const struct qn_large_call *c);

/** Wait until no other member uses this one's buffers: with exit NONE, and
 *  after a failure, until each other one has come to the end of that operation
 *  or has ended. @return QN_OK; after a failure what has failed. */
int qn_large_settle(struct qn_large *l);

/** A member has ended, or goes no further. @param lines  As in the options.
 *  Any thread and process that maps them; wait-free. */
void qn_large_down(struct qn_large_line *lines, uint32_t rank);

#endif
