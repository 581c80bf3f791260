#ifndef QN_TESTS_SIM_CLUSTER_INTERNAL_H
#define QN_TESTS_SIM_CLUSTER_INTERNAL_H

/** What the parts of the cluster share. */

#include "tests/sim/paxos/cluster.h"

#define CHECK(c, cond, ...) ((cond) ? (void)0 : cluster_fail((c), __VA_ARGS__))

/* ---- cluster_packets.c --------------------------------------------------- */

/** Send a message, in fragments where they are wanted. */
void cluster_post(struct cluster *c, qn_node_t from, qn_node_t to,
                  const struct qn_msg *m, bool tree);
/** Drop what is behind the first `keep` packets. */
void cluster_cut(struct lane *l, uint64_t keep);
/** Drop all, and what of it was joined or parked. */
void cluster_reset_lane(struct lane *l);

/* ---- cluster_lives.c ----------------------------------------------------- */

/** What an incarnation wrote; NULL: none. */
const struct memory *cluster_memory(const struct cluster *c, qn_node_t node,
                                    uint64_t inc);
/** The ring of an incarnation; NULL: none. */
const struct qn_ring *cluster_ring(const struct cluster *c, qn_node_t node,
                                   uint64_t inc);

/* ---- cluster_check.c ----------------------------------------------------- */

/* After each step of node i, in this order. */
/** First slot that the ring of the word's owner keeps. */
qn_slot_t cluster_kept(const struct cluster *c);
void cluster_check_begun(struct cluster *c, qn_node_t i,
                         const struct qn_ring *was, qn_slot_t kept);
void cluster_check_learned(struct cluster *c, qn_node_t i);
void cluster_check_roles(struct cluster *c, qn_node_t i);
void cluster_check_bounds(struct cluster *c, qn_node_t i);
void cluster_check_awaited(struct cluster *c, qn_node_t i);

/* ---- cluster_reads.c ----------------------------------------------------- */

/** Something of `slot` is visible now. */
void cluster_shown(struct cluster *c, qn_slot_t slot);
/** After each step of node i. */
void cluster_check_reads(struct cluster *c, qn_node_t i);
/** A new incarnation has asked nothing. */
void cluster_reads_begin(struct member *m);
/** It goes on by force: what is given up was never shown. */
void cluster_reads_recover(struct cluster *c, qn_node_t node);

/* ---- cluster_verdict.c --------------------------------------------------- */

/** Who says that the group has stopped is right. */
void cluster_check_stopped(struct cluster *c, qn_node_t i);

/** Node i applies. */
void cluster_check_apply(struct cluster *c, qn_node_t i,
                         const struct qn_apply *a);

#endif
