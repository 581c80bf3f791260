#ifndef QN_PAXOS_MACHINE_ONEPAXOS_INTERNAL_H
#define QN_PAXOS_MACHINE_ONEPAXOS_INTERNAL_H

/**
 * The state of one node (PROTOCOL.md 3.2) and the functions of its parts:
 *
 *     onepaxos.c         the dispatcher: one step
 *     onepaxos_life.c    start, end, status
 *     origin.c           own commands: sequence, credit, sending (again)
 *     propose.c          the leader: requests of all origins, slots, ACCEPT
 *     acceptor_process.c ACCEPT at the acceptor
 *     learner.c          the decision, LEARN, apply, truncation
 *     catch_up.c         gaps: FETCH and FILL
 *     reconfigure.c      entries of the utility log, suspicion
 *     leader_change.c    a new leader: PREPARE, SEAL
 *     acceptor_change.c  a new acceptor: STAGE
 *     memory_leader.c    memory acceptor: accept, take-over by a new leader
 *     read_index.c       the read index by message: READ_INDEX, READ_AT
 *     bulk_reply.c       PREPARED, SEALED and STAGE, one slot at a time
 */

#include "paxos/flow/flow.h"
#include "paxos/machine/acceptor.h"
#include "paxos/machine/onepaxos.h"
#include "paxos/machine/queue.h"
#include "paxos/machine/read_index.h"

/** The arguments of a step. */
struct qn_step {
    qn_time_t now;
    uint64_t wall_ms;
    struct qn_step_out *out;
};

/** Own commands, as sent in one REQUEST; kept until all are applied. */
struct qn_origin_request {
    struct qn_refbuf *commands; /* one reference; grows until it is sent */
    uint64_t bytes;             /* of them, references resolved */
    uint64_t first;             /* sequence */
    uint32_t count;
    uint32_t uploaded; /* of these: in the arena */
};

struct qn_origin {
    struct qn_origin_request *ring; /* [mask + 1] */
    uint32_t mask;                  /* indices below run free */
    uint32_t head, sent, tail;      /* oldest kept, next to send, next free */
    uint32_t credit;                /* commands: a share of the queue ... */
    uint64_t credit_bytes;          /* ... and of its bytes */
    uint64_t seq, applied;          /* sequences: last given, last applied */
    uint64_t bytes, most;           /* of all kept requests; ever */
    qn_epoch_t ready;               /* its leader takes requests */
    bool want_stamp;                /* a REQUEST without commands is due */
    bool blocked;                   /* the own leader's queue was full */
};

struct qn_leader {
    enum qn_role role;
    qn_epoch_t ep;
    qn_slot_t next; /* next free slot */
    struct qn_queue queue;
    uint64_t inflight_bytes; /* bytes of batches in flight */
    qn_time_t interval;      /* ns, from one slot to the next, at least */
    qn_time_t fill_at;       /* the next slot not before */
    struct qn_flow flow;     /* while it leads */
    bool want_stamp;         /* fill a slot even with no command */
    uint64_t removed; /* mask: commands that are queued of these are dropped,
                         and those that live are to be told; or */
    uint64_t told;    /* ... have been */
    bool begun; /* memory acceptor: the oldest batch has its stamp, and a part
                   of it is in the ring */
    struct qn_session seen[QN_NODES_MAX]; /* applied, in the log or queued */
    uint64_t asked; /* mask of origins that were told to send again ... */
    uint64_t owed;  /* ... or will be when the queue has room */
};

/** A FILL in progress to one peer: slots next .. last. */
struct qn_fill_range {
    qn_slot_t next, last;
};

/** A slot that is copied out of a ring, a part in each step (memory_leader.c).
 */
struct qn_reading {
    struct qn_ring_copy copy;
    uint64_t epoch; /* whose owner's ring it is */
    bool whole;     /* it is a batch */
};

/** Give the copy up, if one was begun. */
static inline void qn_reading_stop(struct qn_reading *x)
{
    qn_ring_copy_drop(&x->copy);
    x->whole = false;
}

struct qn_catch_up {
    bool active;
    qn_node_t peer; /* the peer that was asked */
    uint32_t
        rank; /* the next peer to ask: its place in the order of choose() */
    qn_time_t until; /* then another peer is asked */
    qn_time_t
        gap_since;   /* since then learned_hi has not moved below decided_hi */
    uint64_t asked;  /* mask of peers that owe the end of an answer */
    uint64_t unable; /* mask of peers that cannot give learned_hi + 1 */
    uint64_t silent; /* mask of peers that let T_FETCH pass instead */
    bool dropped;    /* one of them because it dropped it */
    uint64_t count;  /* FETCH sent */
    bool need_snapshot;
    struct qn_reading reading; /* memory acceptor: of learned_hi + 1 */
    uint64_t read;             /* bytes that were read of rings so far */
    uint64_t transfers;        /* mask of peers with a FILL in progress */
    struct qn_fill_range transfer[QN_NODES_MAX];
};

#define QN_EPOCH_NONE UINT32_MAX

/** An answer of one message per slot, to one peer (bulk_reply.c). */
struct qn_bulk_reply {
    uint8_t kind; /* PREPARED, SEALED or STAGE */
    uint8_t flags;
    bool ul_first;      /* STAGE: the utility log has not been sent yet */
    qn_epoch_t epoch;   /* that it names */
    qn_epoch_t target;  /* SEALED */
    qn_slot_t base;     /* STAGE */
    qn_slot_t next, hi; /* slots still to send */
};

/** What changes of leader and acceptor need (reconfigure.c, leader_change.c,
 * acceptor_change.c). */
struct qn_reconfiguration {
    uint32_t seen;    /* utility entries acted upon */
    qn_epoch_t later; /* an epoch that `knower` knows ... */
    qn_node_t knower;
    qn_time_t ask_at;   /* ... and when it is asked (again) */
    qn_epoch_t cep;     /* newest epoch for which the log, P slots included, is
                           complete; NONE at start */
    uint64_t suspected; /* mask of nodes */
    uint64_t heard;     /* mask of peers that have mapped this incarnation: they
                           have sent it something, or began with it */
    bool
        said; /* this incarnation has told the others that it has mapped them */
    qn_time_t map_by;  /* a leader waits no longer for the others to */
    qn_time_t lead_at; /* then propose itself ... */
    bool certain; /* since the leader's incarnation has ended, or this node was
                     told to */
    qn_time_t finish_at; /* an entry was left open: then it is finished */
    qn_epoch_t relieve;  /* told to lead instead of its leader; NONE */
    bool forced;         /* told to lead, and to take its log for complete */
    bool wanted;         /* leader: voters are to change ... */
    struct qn_voter_change seat;  /* ... like that */
    int ended_as;                 /* the last change (qn_onepaxos_status) */
    uint64_t ended[QN_NODES_MAX]; /* newest incarnation that was removed; 0 */
    uint64_t random;              /* state; of jitter */
    /* PREPARING */
    qn_time_t prepare_at;   /* then again */
    qn_slot_t first;        /* asked from here on */
    bool prepared;          /* the acceptor has answered in full ... */
    qn_slot_t adopt_hi;     /* ... that it accepted so far */
    qn_slot_t serve_from;   /* ACTIVE: requests once this is applied */
    qn_epoch_t sk;          /* epoch that is being sealed; NONE */
    struct qn_log incoming; /* of SEALED, so far */
    qn_epoch_t copy_epoch;  /* take-over: whose ring is copied; NONE ... */
    qn_slot_t copy_first;   /* ... from this slot of it on ... */
    qn_slot_t void_hi;      /* this and those below are void (5.7), or 0 */
    qn_slot_t copy_next;    /* ... and the next one */
    uint64_t left_out;      /* mask: nothing was copied for them */
    qn_time_t came_by; /* a joiner that came meanwhile is awaited until then; or
                          NEVER */
    struct qn_reading reading; /* that slot ... */
    bool writing; /* ... of which a part may be in the own ring already */
    /* FROZEN */
    bool refused;        /* the acceptor has answered that it is not active */
    bool handing_over;   /* this epoch ends with another acceptor */
    uint64_t staging;    /* mask of candidates that STAGE was begun to */
    qn_node_t candidate; /* the first that has answered; NODES_MAX */
    /* candidate */
    qn_epoch_t st_from; /* NONE: nothing is staged */
    qn_slot_t st_base, st_hi;
    struct qn_log staged; /* also while it comes */
    /* answers under way */
    uint64_t answers; /* mask of peers */
    struct qn_bulk_reply answer[QN_NODES_MAX];
};

struct qn_peer {
    qn_slot_t applied, learned; /* from BEAT */
    uint64_t read;
    struct qn_flow_hold hold; /* the slots that it keeps for a joiner */
    bool later;               /* this incarnation started after the own one */
};

struct qn_onepaxos {
    qn_node_t self, parent;
    uint32_t nodes;
    const struct qn_alloc *alloc;
    struct qn_params params;
    struct qn_ul_entry cfg; /* newest INIT, LEADER or ACCEPTOR entry */
    uint64_t incarnation[QN_NODES_MAX];
    uint64_t alive; /* mask of nodes */
    struct qn_peer peer[QN_NODES_MAX];

    struct qn_log log;
    uint64_t kept; /* log.bytes after the last step that dropped slots */
    qn_slot_t learned_hi, applied, decided_hi;
    uint64_t stamp;        /* newest stamp in the log, ms */
    uint64_t apply_budget; /* commands that may be put out,
                              qn_onepaxos_set_apply_budget */
    bool apply_suspended;  /* qn_onepaxos_suspend_apply */
    qn_slot_t state_lost;  /* 0; or a snapshot of this position or a later one
                              replaces the state (qn_onepaxos_lose_state) */
    uint32_t apply_at;     /* where slot applied + 1 goes on (qn_batch_next) */
    struct qn_session session[QN_NODES_MAX];

    struct qn_memory_acceptor *memory; /* NULL: process acceptor */
    const struct qn_uploads *uploads;  /* NULL: commands are in requests */
    struct qn_acceptor acceptor;
    struct qn_leader leader;
    struct qn_origin origin;
    struct qn_catch_up catch_up;
    struct qn_utility ul;
    struct qn_reconfiguration change;
    struct qn_read_index reads; /* process acceptor */
    qn_time_t retry_at;         /* no memory before: not again until then */
};

#define QN_BIT(node) (UINT64_C(1) << (node))

/** The mask of all `nodes` nodes of a group. */
static inline uint64_t qn_group_mask(uint32_t nodes)
{
    return nodes == QN_NODES_MAX ? UINT64_MAX : QN_BIT(nodes) - 1;
}

/** Outputs still free in this step. */
static inline uint32_t qn_step_room(const struct qn_step *t)
{
    QN_DASSERT(t->out->count <= QN_OUTS_MAX);
    return QN_OUTS_MAX - t->out->count;
}

/** Bytes that one step may copy. */
static inline size_t qn_memory_leader_step_bytes(const struct qn_onepaxos *p)
{
    return p->params.copy_bytes != 0 ? p->params.copy_bytes : SIZE_MAX;
}

/** Next output. A free one exists by construction (asserted). */
struct qn_out *qn_step_emit(struct qn_step *t, enum qn_out_kind kind);

/** Emit SEND with a message without body, and return it for its fields. */
struct qn_msg *qn_step_send(struct qn_step *t, qn_node_t to, uint8_t kind);

/** Make `refbuf` the body of a message: takes a reference of its own. */
void qn_msg_refer(struct qn_msg *m, struct qn_refbuf *refbuf);

/* origin.c */
bool qn_origin_has_credit(const struct qn_onepaxos *p);
void qn_origin_share(struct qn_onepaxos *p);
int qn_origin_submit(struct qn_onepaxos *p, const struct qn_slice *parts,
                     uint32_t count, uint64_t *seq);
void qn_origin_flush(struct qn_onepaxos *p, struct qn_step *t);
void qn_origin_applied(struct qn_onepaxos *p, uint64_t seq);
void qn_origin_on_redirect(struct qn_onepaxos *p, struct qn_step *t,
                           qn_node_t from, const struct qn_msg *m);

/* reconfigure.c  */
bool qn_epoch_is(const struct qn_onepaxos *p, uint8_t node, uint64_t inc);
bool qn_epoch_leads(const struct qn_onepaxos *p);
bool qn_epoch_accepts(const struct qn_onepaxos *p);
bool qn_epoch_life_over(const struct qn_onepaxos *p, uint8_t node,
                        uint64_t inc);
bool qn_epoch_acceptor_gone(const struct qn_onepaxos *p);
bool qn_epoch_led_by_other(const struct qn_onepaxos *p, qn_epoch_t e,
                           qn_node_t from);
bool qn_epoch_accepted_by_other(const struct qn_onepaxos *p, qn_epoch_t e,
                                qn_node_t from);
qn_epoch_t qn_epoch_before(const struct qn_onepaxos *p, qn_epoch_t e);
void qn_reconfigure_learn(struct qn_onepaxos *p, struct qn_step *t);
bool qn_reconfigure_fits(const struct qn_onepaxos *p,
                         const struct qn_ul_entry *e);
void qn_reconfigure_suffix(struct qn_onepaxos *p, struct qn_step *t,
                           struct qn_slice entries);
void qn_reconfigure_relieve(struct qn_onepaxos *p, const struct qn_step *t);
void qn_reconfigure_behind(struct qn_onepaxos *p, struct qn_step *t,
                           qn_node_t peer, qn_epoch_t epoch);
void qn_reconfigure_check(struct qn_onepaxos *p, struct qn_step *t);
void qn_reconfigure_heard(struct qn_onepaxos *p, struct qn_step *t,
                          qn_node_t from);
void qn_reconfigure_greet(struct qn_onepaxos *p, struct qn_step *t,
                          qn_node_t peer);
bool qn_reconfigure_unmapped(const struct qn_onepaxos *p, qn_time_t now);
bool qn_reconfigure_votes(const struct qn_onepaxos *p, qn_node_t n);
void qn_reconfigure_note(struct qn_onepaxos *p, const struct qn_ul_entry *e);
void qn_reconfigure_ended(struct qn_onepaxos *p, const uint64_t *ended);
int qn_reconfigure_member(struct qn_onepaxos *p, struct qn_voter_change s);
qn_time_t qn_reconfigure_deadline(const struct qn_onepaxos *p, qn_time_t now);

/* leader_change.c */
void qn_leader_change_begin(struct qn_onepaxos *p, struct qn_step *t);
void qn_leader_change_check(struct qn_onepaxos *p, struct qn_step *t);
bool qn_leader_change_lost(const struct qn_onepaxos *p);
bool qn_leader_change_lacks(const struct qn_onepaxos *p);
bool qn_leader_change_needs_force(const struct qn_onepaxos *p);
int qn_leader_change_recover(struct qn_onepaxos *p, struct qn_step *t);
void qn_leader_change_serve(struct qn_onepaxos *p, struct qn_step *t);
void qn_leader_change_welcome(struct qn_onepaxos *p, struct qn_step *t,
                              qn_node_t peer);
void qn_leader_change_on_prepare(struct qn_onepaxos *p, struct qn_step *t,
                                 qn_node_t from, const struct qn_msg *m);
void qn_leader_change_on_prepared(struct qn_onepaxos *p, struct qn_step *t,
                                  qn_node_t from, const struct qn_msg *m);
void qn_leader_change_on_seal(struct qn_onepaxos *p, struct qn_step *t,
                              qn_node_t from, const struct qn_msg *m);
void qn_leader_change_on_sealed(struct qn_onepaxos *p, struct qn_step *t,
                                qn_node_t from, const struct qn_msg *m);

/* acceptor_change.c */
void qn_acceptor_change_check(struct qn_onepaxos *p, struct qn_step *t);
void qn_acceptor_change_on_stage(struct qn_onepaxos *p, struct qn_step *t,
                                 qn_node_t from, const struct qn_msg *m);
void qn_acceptor_change_on_staged(struct qn_onepaxos *p, qn_node_t from,
                                  const struct qn_msg *m);
void qn_acceptor_change_restarted(struct qn_onepaxos *p, qn_node_t peer);
void qn_acceptor_change_appointed(struct qn_onepaxos *p, struct qn_step *t,
                                  const struct qn_ul_entry *e);

/* memory_leader.c */
bool qn_memory_leader_may(const struct qn_onepaxos *p);
void qn_memory_leader_first(struct qn_onepaxos *p);
bool qn_memory_leader_fits(const struct qn_onepaxos *p, size_t len, bool alone);
bool qn_memory_leader_make_room(struct qn_onepaxos *p, struct qn_step *t,
                                size_t len);
bool qn_memory_leader_put(struct qn_onepaxos *p, const struct qn_refbuf *batch);
void qn_memory_leader_end(struct qn_onepaxos *p);
bool qn_memory_leader_accept(struct qn_onepaxos *p, struct qn_step *t,
                             qn_slot_t slot, struct qn_refbuf *batch);
void qn_memory_leader_begin(struct qn_onepaxos *p, struct qn_step *t);
bool qn_memory_leader_damaged(const struct qn_onepaxos *p,
                              struct qn_accept_register w);
bool qn_memory_leader_unknown(const struct qn_onepaxos *p);
int qn_memory_leader_catch_up(struct qn_onepaxos *p, struct qn_step *t);
int qn_memory_leader_force(struct qn_onepaxos *p, struct qn_step *t);
void qn_memory_leader_check(struct qn_onepaxos *p, struct qn_step *t);

/* read_index.c */
void qn_read_index_on_read(struct qn_onepaxos *p, struct qn_step *t,
                           bool fresh);
void qn_read_index_on_question(struct qn_onepaxos *p, struct qn_step *t,
                               qn_node_t from, const struct qn_msg *m);
void qn_read_index_on_answer(struct qn_onepaxos *p, struct qn_step *t,
                             qn_node_t from, const struct qn_msg *m);

/* bulk_reply.c */
void qn_bulk_reply_begin(struct qn_onepaxos *p, qn_node_t to,
                         const struct qn_bulk_reply *a);
void qn_bulk_reply_end(struct qn_onepaxos *p, qn_node_t to);
void qn_bulk_reply_void(struct qn_onepaxos *p);
void qn_bulk_reply_on_room(struct qn_onepaxos *p, struct qn_step *t,
                           uint64_t peers);

/* propose.c */
int qn_propose_request(struct qn_onepaxos *p, qn_node_t from, uint64_t first,
                       struct qn_slice commands, bool *again);
int qn_propose_on_request(struct qn_onepaxos *p, struct qn_step *t,
                          qn_node_t from, const struct qn_msg *m);
void qn_propose_on_nack(struct qn_onepaxos *p, struct qn_step *t,
                        qn_node_t from, const struct qn_msg *m);
void qn_propose_fill(struct qn_onepaxos *p, struct qn_step *t);
qn_time_t qn_propose_deadline(const struct qn_onepaxos *p, qn_time_t now);
void qn_propose_begin(struct qn_onepaxos *p, qn_time_t now);
void qn_propose_heard(struct qn_onepaxos *p, qn_time_t now, qn_node_t peer);
bool qn_propose_is_busy(const struct qn_onepaxos *p);
bool qn_propose_may_ask(const struct qn_onepaxos *p);
void qn_propose_step_down(struct qn_onepaxos *p);

/* acceptor_process.c */
int qn_acceptor_on_accept(struct qn_onepaxos *p, struct qn_step *t,
                          qn_node_t from, const struct qn_msg *m);
void qn_acceptor_nack(struct qn_onepaxos *p, struct qn_step *t, qn_node_t to,
                      qn_slot_t slot);

/* learner.c */
void qn_learner_accepted(struct qn_onepaxos *p, struct qn_step *t,
                         qn_slot_t slot);
void qn_learner_accept(struct qn_onepaxos *p, struct qn_step *t,
                       qn_epoch_t epoch, qn_slot_t slot,
                       struct qn_refbuf *batch);
void qn_learner_on_learn(struct qn_onepaxos *p, struct qn_step *t,
                         qn_node_t from, const struct qn_msg *m);
struct qn_refbuf *qn_learner_body(struct qn_onepaxos *p,
                                  const struct qn_msg *m);
void qn_learner_forget_proposed(struct qn_onepaxos *p, qn_slot_t first,
                                qn_slot_t last);
void qn_learner_propose(struct qn_onepaxos *p, qn_slot_t slot,
                        struct qn_refbuf *batch);
void qn_learner_settle(struct qn_onepaxos *p, struct qn_step *t, qn_slot_t slot,
                       struct qn_refbuf *batch);
void qn_learner_tell(struct qn_onepaxos *p, struct qn_step *t, qn_slot_t slot);
void qn_learner_on_accepted(struct qn_onepaxos *p, struct qn_step *t,
                            qn_node_t from, const struct qn_msg *m);
void qn_learner_learn(struct qn_onepaxos *p, struct qn_step *t,
                      const struct qn_msg *m);
void qn_learner_decided(struct qn_onepaxos *p, qn_slot_t hi, qn_time_t now);
void qn_learner_apply(struct qn_onepaxos *p, struct qn_step *t);
bool qn_learner_make_room(struct qn_onepaxos *p, qn_slot_t slot);
qn_slot_t qn_learner_applied_by_all(const struct qn_onepaxos *p, qn_slot_t lo);
void qn_learner_truncate(struct qn_onepaxos *p);
void qn_learner_cut(struct qn_onepaxos *p, qn_time_t now);
void qn_learner_restart(struct qn_onepaxos *p, qn_slot_t position,
                        qn_time_t now);

/* catch_up.c */
void qn_catch_up_check(struct qn_onepaxos *p, struct qn_step *t);
void qn_catch_up_need_snapshot(struct qn_onepaxos *p, struct qn_step *t,
                               qn_slot_t slot);
qn_time_t qn_catch_up_deadline(const struct qn_onepaxos *p);
void qn_catch_up_on_fetch(struct qn_onepaxos *p, struct qn_step *t,
                          qn_node_t from, const struct qn_msg *m);
void qn_catch_up_on_fill(struct qn_onepaxos *p, struct qn_step *t,
                         qn_node_t from, const struct qn_msg *m);
void qn_catch_up_on_fragment(struct qn_onepaxos *p, struct qn_step *t,
                             qn_node_t from, uint8_t kind, qn_slot_t slot);
void qn_catch_up_on_room(struct qn_onepaxos *p, struct qn_step *t,
                         uint64_t peers);
void qn_catch_up_on_down(struct qn_onepaxos *p, qn_node_t peer);

#endif
