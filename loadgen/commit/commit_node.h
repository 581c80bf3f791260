#ifndef QN_LOADGEN_COMMIT_NODE_H
#define QN_LOADGEN_COMMIT_NODE_H

/**
 * One node of a turn: it takes turns with its driver until all nodes have
 * applied all commands, and proposes them if it is the proposer. What a form
 * adds to a turn, and how its nodes sleep, it gives as functions.
 *
 * Threads: the node's own.
 */

#include "loadgen/commit/commit_form.h"
#include "paxos/driver/driver.h"

/** What runs while a command is timed is the same code in each form: a call,
 *  also where the compiler could put it in line. */
#define QN_COMMIT_CALLED __attribute__((noinline))

/** What a form does around a turn. */
struct qn_commit_ways {
    /** @return when to take another turn, or QN_TIME_NEVER. */
    qn_time_t (*begin)(void *ctx, qn_time_t now);
    qn_time_t (*end)(void *ctx, qn_time_t now);
    void (*arm)(void *ctx); /* say that this node sleeps */
    bool (*again)(void *ctx);
    void (*sleep)(void *ctx, qn_time_t until); /* after arm */
    void (*wake)(void *ctx);                   /* say that it does not */
    void (*ring)(void *ctx, qn_node_t peer);
};

/** Fields are private. */
struct qn_commit_node {
    const struct qn_commit_turn *t;
    qn_node_t self;
    struct qn_driver *driver;
    struct qn_commit_said so_far;
    struct qn_backoff backoff;
    uint64_t proposed;
    bool under_way, ended;
    qn_time_t since;     /* it was proposed */
    qn_time_t measured;  /* ns; the first measured one was */
    uint64_t slept, ran; /* before the first turn */
    qn_time_t deadline;
};

void qn_commit_node_init(struct qn_commit_node *n,
                         const struct qn_commit_turn *t, qn_node_t self);

/** The service of its driver. */
struct qn_service qn_commit_node_service(struct qn_commit_node *n);

/** Take turns. @return QN_OK; QN_ETIMEDOUT, or a peer has failed: QN_EIO. */
int qn_commit_node_run(struct qn_commit_node *n, struct qn_driver *driver,
                       const struct qn_commit_ways *ways, void *ctx);

/* For a form whose turns are its own (commit_group.c): */

/** Its turns begin. */
void qn_commit_node_begin(struct qn_commit_node *n);

/** A command has been applied, as one of struct qn_applied. */
QN_COMMIT_CALLED void qn_commit_node_apply(struct qn_commit_node *n,
                                           qn_node_t origin, uint64_t seq,
                                           bool mine, struct qn_slice bytes);

/** Is a command due? @param words  [2] Filled: its bytes. */
QN_COMMIT_CALLED bool qn_commit_node_due(struct qn_commit_node *n,
                                         uint64_t *words);

/** It was proposed, with that result. @return was it? */
QN_COMMIT_CALLED bool qn_commit_node_proposed(struct qn_commit_node *n, int rc);

/** After a turn: what is at its end is said, and `ring` called for each other
 *  node that may wait for it. */
void qn_commit_node_look(struct qn_commit_node *n,
                         void (*ring)(void *ctx, qn_node_t peer), void *ctx);

/** Take no further turn: all have ended, or one has failed, or it is too late.
 */
bool qn_commit_node_over(const struct qn_commit_node *n);

/** It must not sleep: qn_commit_node_look has something to say. */
bool qn_commit_node_restless(const struct qn_commit_node *n);

/** Its turns have ended. @param failovers  That it has seen. @return as
 *  qn_commit_node_run. */
int qn_commit_node_end(struct qn_commit_node *n, uint64_t failovers);

/** This node has failed, before or in its turns: the others need not wait. */
void qn_commit_node_failed(const struct qn_commit_turn *t, qn_node_t self,
                           int rc);

#endif
