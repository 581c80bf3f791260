#ifndef QN_LOADGEN_VERIFY_CHECKER_SEARCH_INTERNAL_H
#define QN_LOADGEN_VERIFY_CHECKER_SEARCH_INTERNAL_H

/**
 * The search for an order, in three files that share this state: order.c places
 * operations and takes them back, candidates.c lists the operations that can
 * come next, search.c walks and explains why the result is exact.
 */

#include "loadgen/verify/checker/model_internal.h"
#include "loadgen/verify/checker/visited_states_internal.h"

/* What the register holds. */
struct qn_search_at {
    int64_t value;
    int32_t slot; /* QN_SLOT_NIL: absent; QN_SLOT_NONE: no operation names the
                     value */
};

struct qn_search_frame {
    struct qn_search_at at;
    uint32_t trail_len;
    uint64_t from; /* begin of its candidates in the pool */
    uint64_t next; /* next candidate to try */
};

/* Optional operations that differ only in their invocation time: the first one
 * not placed stands for all, so the placed ones are always a prefix. */
struct qn_search_group {
    uint32_t next; /* index in optional of the first one not placed */
    uint32_t end;
    int32_t slot; /* slot of the value that they need; QN_SLOT_NONE: none */
};

struct qn_search_link {
    uint32_t next;
    uint32_t prev;
};

struct qn_search {
    struct qn_model *m;
    /* Lists of required operations that are not placed; op_count is the end. */
    struct qn_search_link *by_inv;
    struct qn_search_link *by_resp; /* those with a response */
    /* Optional operations, in groups of which one stands for all. */
    uint32_t *optional; /* [optional_count] by group, then inv */
    uint32_t optional_count;
    /* [group_count] groups that need no value come first */
    struct qn_search_group *group;
    uint32_t group_count;
    uint32_t *group_of; /* [slot_count] first group that needs the value */
    uint32_t *in_group; /* [op_count] group of each optional operation */
    struct qn_search_at at;
    uint32_t *trail; /* placed operations, in order */
    uint32_t trail_len;
    struct qn_search_frame *frame; /* [op_count + 1] */
    uint32_t depth;
    uint32_t *pool; /* candidates of all frames */
    uint64_t pool_len;
    uint64_t pool_room;
    struct qn_visited_key hash; /* of the placed set */
    struct qn_visited_states visited;
    uint64_t steps;
    qn_time_t stuck; /* furthest horizon that no order passed */
    uint32_t stuck_op;
};

/* ---- order.c ---- */

/** Make the lists of required operations. Uses s->trail as scratch. */
void qn_search_link(struct qn_search *s);

/** First of a list; op_count: the list is empty. */
static inline uint32_t qn_search_first(const struct qn_search_link *l,
                                       const struct qn_search *s)
{
    return l[s->m->op_count].next;
}

/** Earliest response of the operations not placed: operations invoked by then
 *  are enabled. */
static inline qn_time_t qn_search_horizon(const struct qn_search *s)
{
    uint32_t i = qn_search_first(s->by_resp, s);
    return i == s->m->op_count ? QN_TIME_NEVER : s->m->op[i].resp;
}

/** Does `at` satisfy the need of o? */
bool qn_search_fits(const struct qn_model_op *o, const struct qn_search_at *at);

/** Content of the register after o. */
struct qn_search_at qn_search_after(const struct qn_search *s,
                                    const struct qn_model_op *o,
                                    const struct qn_search_at *at);

/** Place operation i next; it must fit and be enabled. */
void qn_search_place(struct qn_search *s, uint32_t i);

/** Take back all operations placed since frame f. */
void qn_search_undo(struct qn_search *s, const struct qn_search_frame *f);

/* ---- candidates.c ---- */

/** Make the groups of s->optional, which is sorted by invocation. */
void qn_search_group_optional(struct qn_search *s);

/** Append the candidates by rules 2 to 5 to the pool, most urgent first;
 *  readers that fit have been placed. @return false without memory. */
bool qn_search_candidates(struct qn_search *s);

#endif
