#ifndef QN_COLL_WIRING_H
#define QN_COLL_WIRING_H

/**
 * Wirings: what one member does in an operation of one kind, as a list of
 * stages. Each operation passes through the stages in order; a stage *fires*
 * when a message of each predecessor is in, and then sends one message to each
 * successor (coll_flow.h runs it).
 *
 *     broadcast     down                  each stage uses the tree of its
 *     acknowledged  down, up              direction: those of a plan may be
 *     reduce        up                    two, with the same root
 *     all-reduce    up, down
 *     commit        down, up, down
 *     exchange      out, in               from each member to each
 *     ring          around (at the root: out, in)
 *
 * A wiring names neighbours only, so it is as long as a member has links, and
 * a group has up to QN_MEMBERS_MAX members. Wirings of all members of an
 * operation are made from the same trees or the same ring, so both ends of a
 * link agree: `there` of a successor is the index of the link among the
 * receiver's predecessors of that stage. Messages carry it.
 *
 * Immutable once made, any thread; the makers allocate.
 */

#include <stdbool.h>

#include "core/node.h"
#include "core/topo/diamond_ring.h"
#include "core/topo/tree.h"

#define QN_STAGES_MAX 3u

enum qn_wiring_kind {
    QN_WIRING_BROADCAST,    /* all get the root's payload */
    QN_WIRING_ACKNOWLEDGED, /* and the root learns when all have worked */
    QN_WIRING_REDUCE,       /* the root gets what all contribute */
    QN_WIRING_ALLREDUCE,    /* all get it; of nothing: a barrier */
    QN_WIRING_COMMIT,       /* payload down, votes up, decision down */
    QN_WIRING_EXCHANGE,     /* an all-reduction in one hop: all get what each
                               contributes. Of a tree only its members count */
    QN_WIRING_RING,         /* made by qn_wiring_ring only */
};

/** What the payload of a stage's messages is to the receiver. */
enum qn_wiring_payload {
    QN_PAYLOAD_NONE,    /* there is none: an acknowledgement */
    QN_PAYLOAD_COPY,    /* the operation's; passed on as it is */
    QN_PAYLOAD_COMBINE, /* a contribution; the combination is passed on */
};

struct qn_link {
    uint16_t node;  /* at the other end */
    uint16_t there; /* successor: the link's index at the receiver's stage */
    uint8_t stage;  /* successor: the receiver's stage */
    bool bare;      /* successor: the receiver wants no payload */
};

struct qn_stage {
    enum qn_wiring_payload payload; /* of what it receives */
    uint32_t preds, succs;          /* links */
    uint32_t pred_at, succ_at;      /* the first of them in qn_wiring.link */
    bool begun;    /* fires only when the member has begun the operation */
    bool worked;   /* fires only when the member has done its work for it */
    bool delivers; /* its first message is the operation's delivery here */
    bool must;     /* a successor that cannot be sent to fails the operation; if
                      not, it is left out, for nothing comes back from it */
};

struct qn_wiring {
    enum qn_wiring_kind kind;
    bool root;
    bool called;     /* every member begins each operation; if not, the root */
    uint32_t stages; /* 1 .. QN_STAGES_MAX */
    uint32_t preds;  /* of all stages */
    uint32_t links;
    struct qn_stage stage[QN_STAGES_MAX];
    struct qn_link link[]; /* all predecessors, then all successors, each by
                              stage; successors in sending order */
};

static inline const struct qn_link *qn_wiring_pred(const struct qn_wiring *w,
                                                   uint32_t stage, uint32_t i)
{
    return &w->link[w->stage[stage].pred_at + i];
}

static inline const struct qn_link *qn_wiring_succ(const struct qn_wiring *w,
                                                   uint32_t stage, uint32_t i)
{
    return &w->link[w->stage[stage].succ_at + i];
}

struct qn_wiring_opts {
    enum qn_wiring_kind kind; /* all but QN_WIRING_RING */
    bool called;              /* every member begins each operation, as calls of
                                 MPI do; if not: only the root, and all others
                                 are delivered to */
    const struct qn_tree *down, *up; /* borrowed; the same members and root. One
                                        of them may be NULL if no stage goes
                                        that way; an exchange asks for
                                        `down`. Reductions are `called` */
    qn_node_t self;                  /* a member */
};

/** The wiring of a member of a tree, or of a pair of trees.
 *  @param out  Filled: freed by qn_wiring_destroy.
 *  @return QN_OK; QN_EINVAL: a tree that is not valid or is missing, trees of
 *  other members or roots, `self` is no member, a reduction that is not
 *  `called`; QN_ENOMEM. O(members). */
int qn_wiring_tree(struct qn_wiring **out, const struct qn_wiring_opts *o);

struct qn_wiring_ring_opts {
    const struct qn_diamond_ring *ring; /* borrowed; `core` of it is the map */
    const qn_node_t *node; /* [n] the node on each core; borrowed. NULL: its
                              number is the core's */
    qn_node_t self;        /* a member */
    bool observed;         /* forward before working: the acknowledgement says
                              that all have seen the operation, not that all
                              have worked */
};

/** The wiring of a member of a diamond ring. Its root is the only one that
 *  begins operations.
 *  @return QN_OK; QN_EINVAL: `self` is no member, or the map is none;
 *  QN_ENOMEM. O(links). */
int qn_wiring_ring(struct qn_wiring **out, const struct qn_wiring_ring_opts *o);

/** NULL is fine. */
void qn_wiring_destroy(struct qn_wiring *w);

#endif
