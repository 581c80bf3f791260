#ifndef QN_LOADGEN_VERIFY_CHECKER_SEARCH_INTERNAL_H
#define QN_LOADGEN_VERIFY_CHECKER_SEARCH_INTERNAL_H

/**
 * The search for an order, in three files that share this state: order.c puts
 * operations into the order and takes them back, choice.c says which can come
 * next, search.c walks and explains why that is exact.
 */

#include "loadgen/verify/checker/failed_internal.h"
#include "loadgen/verify/checker/model_internal.h"

/* What the register holds. */
struct qn_search_at {
    int64_t value;
    int32_t slot; /* QN_SLOT_NIL: absent; QN_SLOT_NONE: no one names it */
};

struct qn_search_frame {
    struct qn_search_at at;
    uint32_t trail_len;
    uint64_t from; /* where its choices begin in the pool */
    uint64_t next; /* the next one to try */
};

/* Optional operations that differ only in when they were asked: the first one
 * not placed is tried for all, so what is placed is always a beginning. */
struct qn_search_group {
    uint32_t next; /* index in optional of the first not placed */
    uint32_t end;
    int32_t slot; /* of the value that they need; QN_SLOT_NONE: none */
};

struct qn_search_link {
    uint32_t next;
    uint32_t prev;
};

struct qn_search {
    struct qn_model *m;
    /* Lists of what must happen and is not placed; op_count is the end. */
    struct qn_search_link *by_inv;
    struct qn_search_link *by_resp; /* those that were answered */
    /* What may have happened, in groups of which one stands for all. */
    uint32_t *optional; /* [optional_count] by group, then inv */
    uint32_t optional_count;
    /* [group_count] those that need no value first */
    struct qn_search_group *group;
    uint32_t group_count;
    uint32_t *group_of; /* [slot_count] the first that needs the value */
    uint32_t *in_group; /* [op_count] of optional operations */
    struct qn_search_at at;
    uint32_t *trail; /* what was placed, in order */
    uint32_t trail_len;
    struct qn_search_frame *frame; /* [op_count + 1] */
    uint32_t depth;
    uint32_t *pool; /* choices of all frames */
    uint64_t pool_len;
    uint64_t pool_room;
    struct qn_failed_key hash; /* of the set placed */
    struct qn_failed failed;
    uint64_t steps;
    qn_time_t stuck; /* the furthest horizon that nothing got beyond */
    uint32_t stuck_op;
};

/* ---- order.c ---- */

/** Make the lists of what must happen. Uses s->trail as scratch. */
void qn_search_link(struct qn_search *s);

/** The first of a list; op_count: it is empty. */
static inline uint32_t qn_search_first(const struct qn_search_link *l,
                                       const struct qn_search *s)
{
    return l[s->m->op_count].next;
}

/** The earliest answer among what is not placed: what was asked by then is
 *  enabled. */
static inline qn_time_t qn_search_horizon(const struct qn_search *s)
{
    uint32_t i = qn_search_first(s->by_resp, s);
    return i == s->m->op_count ? QN_TIME_NEVER : s->m->op[i].resp;
}

/** Does `at` satisfy what o needs? */
bool qn_search_fits(const struct qn_model_op *o, const struct qn_search_at *at);

/** What the register holds after o. */
struct qn_search_at qn_search_after(const struct qn_search *s,
                                    const struct qn_model_op *o,
                                    const struct qn_search_at *at);

/** Let operation i come next: it fits and is enabled. */
void qn_search_place(struct qn_search *s, uint32_t i);

/** Take back what was placed since frame f. */
void qn_search_undo(struct qn_search *s, const struct qn_search_frame *f);

/* ---- choice.c ---- */

/** Make the groups of s->optional, which is by inv. */
void qn_search_group_optional(struct qn_search *s);

/** Append to the pool what can come next, by rules 2 to 5, most urgent first;
 *  readers that fit have been placed. @return false: out of memory. */
bool qn_search_choose(struct qn_search *s);

#endif
