#ifndef QN_LOADGEN_COLLECTIVE_FORM_H
#define QN_LOADGEN_COLLECTIVE_FORM_H

/**
 * The operations that `quoin bench collectives` runs: one node's part, called
 * with blocking calls in a row, as a program would call them.
 *
 * Each node checks each result. Threads: one per struct.
 */

#include "core/coll/coll.h"
#include "core/coll/sequenced_broadcast.h"
#include "core/topo/diamond_ring.h"
#include "core/topo/tree.h"
#include "core/wait/backoff.h"
#include "loadgen/bench/mesh.h"
#include "loadgen/collective/collective_tasks.h"

#define QN_COLLECTIVE_FORMS_MAX   12u
#define QN_COLLECTIVE_SIZE_MAX    4096u /* bytes of a broadcast */
#define QN_COLLECTIVE_WINDOW_MAX  64u
#define QN_COLLECTIVE_CELLS       256u /* of a lane */
#define QN_COLLECTIVE_TOLD_MAX    64u  /* bytes of qn_collective_tell */
#define QN_COLLECTIVE_AS_SIZE     UINT32_MAX
#define QN_COLLECTIVE_DEADLINE_NS (20 * QN_S) /* from a meeting to the next */

struct qn_collective_opts {
    const struct qn_tree *tree;         /* of all nodes; kept */
    const struct qn_diamond_ring *ring; /* likewise */
    uint32_t size;   /* bytes of a broadcast: 8 .. QN_COLLECTIVE_SIZE_MAX */
    uint32_t window; /* of the pipelines; a power of two */
    bool exchange;   /* of coll.h */
    struct qn_backoff_opts backoff;
    struct qn_collective_tasks *tasks; /* kept; NULL: forms of tasks are not
                                          run */
};

/** One node. Fields are private. */
struct qn_collective_node {
    const struct qn_collective_opts *o;
    struct qn_mesh_end *end;
    struct qn_qp *tree_qp[QN_NODES_MAX], *direct_qp[QN_NODES_MAX];
    struct qn_coll *coll;
    qn_time_t deadline; /* of the operations until the next meeting */
    uint64_t done;      /* operations of all forms, for their contents */
    uint64_t wrong;     /* results */
    uint32_t delivered;
    uint16_t view; /* of the last pipeline */
    alignas(8) uint8_t in[QN_COLLECTIVE_SIZE_MAX];
    alignas(8) uint8_t out[QN_COLLECTIVE_SIZE_MAX];
};

struct qn_collective_form {
    const char *name;
    const char *text;
    uint32_t bytes; /* of a message or of a contribution;
                       QN_COLLECTIVE_AS_SIZE: those of opts */
    int (*run)(struct qn_collective_node *n, uint32_t count);
    bool threads; /* of threads only: tasks are addresses */
};

/** The i-th form; NULL past the last. The first is the barrier. */
const struct qn_collective_form *qn_collective_form(uint32_t i);

/** @return QN_OK, QN_EINVAL, QN_ENOMEM. */
int qn_collective_node_init(struct qn_collective_node *n,
                            struct qn_mesh_end *end,
                            const struct qn_collective_opts *o);
void qn_collective_node_fini(struct qn_collective_node *n);

/** A barrier, and a new deadline. @return QN_OK or why it failed. */
int qn_collective_meet(struct qn_collective_node *n);

/** The root's `bytes` [len] become those of all. At most
 *  QN_COLLECTIVE_TOLD_MAX. @return as meet. */
int qn_collective_tell(struct qn_collective_node *n, void *bytes, uint32_t len);

#endif
