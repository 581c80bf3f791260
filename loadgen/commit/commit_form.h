#ifndef QN_LOADGEN_COMMIT_FORM_H
#define QN_LOADGEN_COMMIT_FORM_H

/**
 * The forms of a group that `quoin bench commit` compares, and one turn of one
 * form: a group is made, one node proposes commands, one at a time, all apply
 * them, and the group ends.
 *
 * Threads: one that runs turns; a turn has one thread or child per node.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/atomic.h"
#include "core/base/clock.h"
#include "core/node.h"
#include "core/qp.h"
#include "core/wait/backoff.h"

#define QN_COMMIT_OPERATIONS_MAX 65536u /* measured ones of a turn */
#define QN_COMMIT_COMMAND_BYTES  16u
#define QN_COMMIT_CELLS          256u        /* of a lane */
#define QN_COMMIT_DEADLINE_NS    (20 * QN_S) /* of a turn */

/** What a node says when it has ended. Read after the turn. */
struct qn_commit_said {
    uint64_t applied, digest; /* commands, and of them in their order */
    uint64_t wrong;           /* commands that are not those of the proposer */
    uint64_t failovers;       /* changes of roles that it has seen */
    uint64_t sleeps;          /* voluntary changes of context */
    uint64_t cpu_ns;          /* of its thread */
};

/** What the nodes of a turn share. All zero at first. */
struct qn_commit_shared {
    qn_a64 failed; /* nodes that have failed */
    qn_a64 total;  /* commands of the turn; 0: not known yet */
    qn_a64 ended;  /* nodes that have applied `total` */
    /* Read after the turn. */
    struct qn_commit_said said[QN_NODES_MAX];
    uint64_t elapsed_ns; /* the proposer's, of the measured operations */
    uint32_t count;      /* of them */
    uint32_t ns[QN_COMMIT_OPERATIONS_MAX]; /* from propose to own apply */
};

struct qn_commit_turn {
    const struct qn_transport *transport; /* borrowed, as all here */
    uint32_t nodes;                       /* 2 .. QN_NODES_MAX */
    bool processes;                       /* else threads */
    bool memory_acceptor;
    const uint32_t *core; /* [nodes] CPU of each */
    struct qn_backoff_opts backoff;
    qn_node_t proposer;              /* node 0 leads */
    uint32_t warm;                   /* operations before ... */
    uint32_t operations;             /* ... these are measured: 1 ..
                                        QN_COMMIT_OPERATIONS_MAX */
    struct qn_commit_shared *shared; /* memory shared with children */
};

struct qn_commit_form {
    const char *name;
    const char *text;
    bool memory_acceptor_only;
    int (*run)(const struct qn_commit_turn *t);
};

/** The i-th form; NULL past the last. The first is what the others are compared
 *  with. */
const struct qn_commit_form *qn_commit_form(uint32_t i);

/** Run a turn of a form. `t->shared` is cleared first.
 *  @return QN_OK: all nodes have applied the same, the proposer's commands and
 *  nothing else; QN_EIO: they have not, or a node has failed; QN_EINVAL,
 *  QN_ENOMEM, QN_EMFILE, QN_ENOSYS: there is no such group. */
int qn_commit_turn_run(const struct qn_commit_form *f,
                       const struct qn_commit_turn *t);

/** The forms: one turn of each. @return QN_OK; as qn_commit_turn_run. */
int qn_commit_bare_run(const struct qn_commit_turn *t);   /* commit_bare.c */
int qn_commit_member_run(const struct qn_commit_turn *t); /* commit_member.c */
int qn_commit_group_run(const struct qn_commit_turn *t);  /* commit_group.c */

#endif
