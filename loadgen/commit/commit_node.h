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
    qn_time_t since;    /* it was proposed */
    qn_time_t measured; /* ns; the first measured one was */
};

void qn_commit_node_init(struct qn_commit_node *n,
                         const struct qn_commit_turn *t, qn_node_t self);

/** The service of its driver. */
struct qn_service qn_commit_node_service(struct qn_commit_node *n);

/** Take turns. @return QN_OK; QN_ETIMEDOUT, or a peer has failed: QN_EIO. */
int qn_commit_node_run(struct qn_commit_node *n, struct qn_driver *driver,
                       const struct qn_commit_ways *ways, void *ctx);

/** This node has failed, before or in its turns: the others need not wait. */
void qn_commit_node_failed(const struct qn_commit_turn *t, qn_node_t self,
                           int rc);

#endif
