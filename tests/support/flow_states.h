#ifndef QN_TESTS_SUPPORT_FLOW_STATES_H
#define QN_TESTS_SUPPORT_FLOW_STATES_H

/**
 * In which states of the flow machine (core/coll/coll_flow.h) members were
 * killed: a table of counts by the operation, the member's role in it, and the
 * operation's state there. Which cells there are follows from the wirings that
 * were seen, so a test can demand that none is empty.
 *
 * One thread.
 */

#include "core/coll/coll_flow.h"

#define FLOW_STATES_ROWS 16u

enum flow_role {
    FLOW_ROOT,
    FLOW_INNER,
    FLOW_LEAF, /* one link in each stage at most; in a ring one each way */
    FLOW_ROLES
};

/** An operation may be in several: it waits in one stage and has messages of
 *  the one before to send. */
enum flow_state {
    FLOW_UNKNOWN, /* the next one that nothing is known of here */
    FLOW_ENDED,   /* the last that is complete here */
    FLOW_FAILED,  /* it was known, and a death has ended it */
    FLOW_LATE,    /* messages have come, and this member has not begun it */
    FLOW_NONE_IN, /* from here on of a stage: it awaits messages, none is in, */
    FLOW_SOME_IN, /* ... some are; */
    FLOW_WORKING, /* it awaits the local work; */
    FLOW_UNSENT,  /* it has fired, and no message of it is sent, */
    FLOW_PARTLY,  /* ... not all are */
    FLOW_STATES
};

struct flow_cell {
    bool exists;
    uint64_t kills;
};

struct flow_states {
    bool works;    /* local work takes time */
    bool all_fail; /* whatever is under way fails, by qn_coll_flow_fail; and
                      the last member is not killed */
    const char *(*name)(uint32_t row);
    struct flow_cell cell[FLOW_STATES_ROWS][FLOW_ROLES][FLOW_STATES]
                         [QN_STAGES_MAX];
};

/** The row of an operation, by its number and kind; QN_FLOW_KINDS_MAX: not
 *  known yet. */
typedef uint32_t flow_row_fn(void *ctx, uint32_t number, uint32_t kind);

/** A member that lives: there are the states of the operations that it knows.
 */
void flow_states_see(struct flow_states *t, const struct qn_coll_flow *f,
                     flow_row_fn *row_of, void *ctx);

/** A member is killed now. */
void flow_states_kill(struct flow_states *t, const struct qn_coll_flow *f,
                      flow_row_fn *row_of, void *ctx);

/** How many states exist in which there was no kill yet. */
uint32_t flow_states_left(const struct flow_states *t);

/** Prints the table. @param all  Check that there was a kill in each state that
 *  exists. */
void flow_states_expect(const struct flow_states *t, bool all);

#endif
