#ifndef QN_PAXOS_MEMBER_PEERS_H
#define QN_PAXOS_MEMBER_PEERS_H

/**
 * The peers of a member: which incarnation of each node is present, what is
 * mapped of it, and how to reach it (two queuepairs and a doorbell).
 *
 *     absent --add--> present --retire--> retained --sweep--> absent
 *
 * The outbox of a dead peer stays mapped ("retained") as long as the driver
 * needs its ring, which may hold the last slots. A node has one present
 * incarnation at most; earlier ones may be retained beside it.
 *
 * Owns the peers, their mappings, descriptors and queuepairs. It decides
 * nothing: member_meet.c meets them, and the failure detector
 * (paxos/member/detector) says which one is dead.
 *
 * Threads: one, the loop's.
 */

#include <stdbool.h>

#include "core/place/outbox.h"
#include "core/qp.h"
#include "paxos/log/arena.h"
#include "paxos/log/ring.h"

/** An incarnation of a peer, mapped here. */
struct qn_mapped_peer {
    struct qn_mapped_peer *next;  /* of the retained ones */
    const struct qn_alloc *alloc; /* of this, kept; NULL: malloc's */
    qn_node_t node;
    uint64_t incarnation;
    uint64_t
        former; /* met before the start: the one that was known before; 0 */
    int pid;    /* 0: unknown */
    int fd;     /* of the outbox, for an adopter; owned; -1: none */
    struct qn_outbox *outbox;
    struct qn_ring ring; /* memory acceptor */
    struct qn_arena arena;
};

#define QN_PEERS_BACKENDS 2u /* whose queuepairs one server may open */

/** What the queuepairs of one backend moved until they were closed. */
struct qn_peers_past {
    const struct qn_qp_ops *ops; /* NULL: of none */
    struct qn_qp_traffic traffic;
};

struct qn_peers {
    struct qn_mapped_peer *present[QN_NODES_MAX]; /* NULL: absent, or `self` */
    uint64_t mask;                      /* of the nodes with a present one */
    uint64_t incarnation[QN_NODES_MAX]; /* the present or last known one */
    struct qn_mapped_peer *retained;    /* dead, still mapped */
    struct qn_doorbell_handle doorbell[QN_NODES_MAX];
    struct qn_qp *direct[QN_NODES_MAX]; /* NULL: closed */
    struct qn_qp *tree[QN_NODES_MAX];
    struct qn_peers_past past[QN_PEERS_BACKENDS]; /* closed queuepairs */
};

/** `outbox` is taken, also on failure; its descriptor `fd` is borrowed. @param
 *  like  alloc, node, incarnation, pid. @return QN_OK; QN_ENOMEM; QN_EMFILE. */
int qn_peer_create(struct qn_mapped_peer **out,
                   const struct qn_mapped_peer *like, struct qn_outbox *outbox,
                   int fd);

/** NULL: nothing. */
void qn_peer_destroy(struct qn_mapped_peer *p);

/** It is its node's present incarnation from here on; none may be. `peer` is
 *  taken. */
void qn_peers_add(struct qn_peers *p, struct qn_mapped_peer *peer);

/** Present no more: close its queuepairs, retain it. @return it. */
struct qn_mapped_peer *qn_peers_retire(struct qn_peers *p, qn_node_t node);

/** Retain one that never was present, or not any more. Taken. */
void qn_peers_retain(struct qn_peers *p, struct qn_mapped_peer *peer);

/** Of all queuepairs of one backend so far: what others moved is not counted
 *  in its units. O(nodes). */
struct qn_qp_traffic qn_peers_traffic(const struct qn_peers *p,
                                      const struct qn_qp_ops *ops);

/** Close both queuepairs of a node, if they are open. */
void qn_peers_close_queuepairs(struct qn_peers *p, qn_node_t node);

/** Take a present peer out and free it: it could not be reached. */
void qn_peers_drop(struct qn_peers *p, qn_node_t node);

/** Unmap each retained one for which `needed` says no. */
void qn_peers_sweep(struct qn_peers *p,
                    bool (*needed)(const void *ctx,
                                   const struct qn_mapped_peer *peer),
                    const void *ctx);

/** @return mask of nodes with a present peer. */
static inline uint64_t qn_peers_present(const struct qn_peers *p)
{
    return p->mask;
}

/** Close and free all. */
void qn_peers_fini(struct qn_peers *p);

#endif
