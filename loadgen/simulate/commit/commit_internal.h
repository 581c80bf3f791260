#ifndef QN_LOADGEN_SIMULATE_COMMIT_INTERNAL_H
#define QN_LOADGEN_SIMULATE_COMMIT_INTERNAL_H

/** The group of one run, shared by the files of this folder. */

#include "core/place/commons.h"
#include "core/place/outbox.h"
#include "core/topo/tree.h"
#include "core/wait/doorbell.h"
#include "core/wait/spin.h"
#include "loadgen/simulate/commit/commit.h"
#include "paxos/driver/driver.h"
#include "paxos/log/ring.h"
#include "paxos/member/detector/failure_detector.h"

enum qn_sim_operation { QN_SIM_IDLE, QN_SIM_WRITES, QN_SIM_READS };

struct qn_sim_client {
    enum qn_sim_operation does;
    bool wants;         /* IDLE: a write, for which there was no room */
    qn_ps_t since;      /* the operation began */
    qn_slot_t index;    /* READS: it waits until this is applied */
    bool ended;         /* not answered yet: */
    qn_ps_t applied_at; /* when it ended */
    uint64_t position;  /* commands applied then */
};

/** An answer that a client got, or a read. */
struct qn_sim_observation {
    qn_ps_t from, until; /* the operation */
    uint64_t position;   /* commands applied at its end */
    bool read;
};

struct qn_sim_replica {
    struct qn_sim_group *group;
    qn_node_t self;
    struct qn_driver *driver;
    struct qn_outbox *outbox;
    struct qn_ring ring;                /* memory acceptor; the writer's */
    struct qn_qp *direct[QN_NODES_MAX]; /* [self] NULL */
    struct qn_qp *tree[QN_NODES_MAX];   /* likewise */
    struct qn_doorbell doorbell;        /* the own one */
    struct qn_doorbell_handle ringer[QN_NODES_MAX]; /* of the peers */
    struct qn_failure_detector detector;
    struct qn_spin spin;
    uint64_t turns;
    uint64_t epoch; /* as known at the last turn */
    bool ended;     /* killed */
    qn_ps_t died_at;
    bool claimed; /* it may write the accept register */

    /* The service: a place in the group's history. */
    uint64_t count; /* commands applied */
    qn_slot_t slot; /* whole ones */
    uint64_t stamp_ms;
    uint64_t last[QN_NODES_MAX]; /* sequence applied of each origin */

    struct qn_sim_client *client; /* [clients], owned; NULL: none */
    uint32_t *of_seq;    /* [QN_SIM_CLIENTS_MAX] writer of a sequence */
    uint64_t submitted;  /* sequence of the last one */
    uint32_t under_way;  /* operations */
    uint32_t unanswered; /* of them, ended */
    uint64_t random;
};

/** A command of the history. */
struct qn_sim_command {
    qn_node_t origin;
    uint64_t seq;
    qn_slot_t slot;
    uint32_t applied;     /* number of replicas that applied it */
    qn_ps_t since, until; /* submitted, applied last */
};

struct qn_sim_group {
    struct qn_sim_commit_opts o;
    struct qn_sim_commit_result *out;
    qn_ps_t load_from, load_until; /* the measured part */
    struct qn_commons *commons;
    struct qn_machine *costs;       /* between replicas */
    struct qn_tree plan;            /* n = 0: none */
    struct qn_sim_replica *replica; /* [replicas], owned */
    bool settled;                   /* all is applied everywhere: leave */

    struct qn_sim_command *history; /* [history_room], owned */
    uint64_t history_count, history_room;
    struct qn_sim_observation *seen; /* [seen_room], owned */
    uint64_t seen_count, seen_room;
    qn_ps_t applied_at; /* when something new was applied last */
};

/* ---- commit.c ------------------------------------------------------------ */

/** Check the options, and prepare group and result. @return QN_OK; QN_EINVAL,
 *  QN_ENOMEM: there is nothing to end. */
int qn_sim_group_begin(struct qn_sim_group *g, struct qn_sim_commit_result *out,
                       const struct qn_sim_commit_opts *o);
void qn_sim_group_end(struct qn_sim_group *g);

/** Run the machine: one node per replica. */
int qn_sim_group_run(struct qn_sim_group *g,
                     void (*node)(void *ctx, uint32_t node), void *ctx,
                     void (*ended)(void *ctx, uint32_t node, bool killed));

/* ---- plan.c -------------------------------------------------------------- */

/** Number the replicas, and plan their tree. Fills g->costs, g->plan and
 *  g->out->core. @return QN_OK, QN_EINVAL, QN_ENOMEM. */
int qn_sim_group_plan(struct qn_sim_group *g);

/* ---- group.c ------------------------------------------------------------- */

/** Memory, channels and clients of all, and then their drivers, outside of a
 *  run. After a failure too qn_sim_group_close is due. */
int qn_sim_group_open(struct qn_sim_group *g);
int qn_sim_group_open_drivers(struct qn_sim_group *g);
void qn_sim_group_close(struct qn_sim_group *g);

static inline uint64_t qn_sim_incarnation(qn_node_t node)
{
    return 100 + (uint64_t)node;
}

/* ---- replica.c ----------------------------------------------------------- */

/** What node `node` of the machine does; `ctx` is the group. */
void qn_sim_replica_main(void *ctx, uint32_t node);

/** The machine says that a node was killed or has ended. */
void qn_sim_replica_ended(void *ctx, uint32_t node, bool killed);

/** Has that replica ended, and can that be seen by now? */
bool qn_sim_replica_is_dead(const struct qn_sim_group *g, qn_node_t node);

/* ---- clients.c ----------------------------------------------------------- */

/** A turn of the clients of a replica. @return true if any did something. */
bool qn_sim_clients_turn(struct qn_sim_replica *r);

/** The own command `seq` was applied. */
void qn_sim_clients_applied(struct qn_sim_replica *r, uint64_t seq);

/* ---- history.c ----------------------------------------------------------- */

/** The bytes of a command: origin, sequence, and a pattern that follows from
 *  both. `bytes` [len], len at least 16. */
void qn_sim_command_fill(uint8_t *bytes, uint32_t len, qn_node_t origin,
                         uint64_t seq);

/** The service of a driver; `ctx` is the replica. */
uint32_t qn_sim_history_apply(void *ctx, const struct qn_applied *a);
void qn_sim_history_applied(void *ctx, qn_slot_t slot, uint64_t stamp_ms);

/** The read index is not below what `r` has applied. */
void qn_sim_history_published(struct qn_sim_replica *r);

/** An operation of a client of `r` has ended, and is answered now. */
void qn_sim_history_observe(struct qn_sim_replica *r,
                            const struct qn_sim_client *c);

/** Is all that was begun applied at all that can? */
bool qn_sim_history_settled(const struct qn_sim_group *g);

/** After the run. @return what is broken; NULL. */
const char *qn_sim_history_check(struct qn_sim_group *g);

#endif
