#ifndef QN_KVS_SUPERVISION_SUPERVISION_INTERNAL_H
#define QN_KVS_SUPERVISION_SUPERVISION_INTERNAL_H

/**
 * What the parts of a step ask of each other. A step is one struct qn_sv_step:
 * the state, the event, the time and the actions.
 */

#include "kvs/supervision/supervision.h"

struct qn_sv_step {
    struct qn_supervision *s;
    const struct qn_supervision_event *e;
    qn_time_t now;
    struct qn_supervision_actions *out;
};

/** While loading replicas have a chance to rebuild the state, this often it is
 *  looked whether one has. */
#define QN_SV_LOST_LOOK (50 * QN_MS)

/** While an upgrade settles, this often replicas are asked about roles. */
#define QN_SV_ROLES_LOOK (2 * QN_MS)

static inline uint64_t qn_sv_bit(qn_node_t i)
{
    return (uint64_t)1 << i;
}

/* ---- supervision.c ------------------------------------------------------- */

/** Replicas in one of the states first .. last. */
uint32_t qn_sv_count(const struct qn_supervision *s,
                     enum qn_replica_state first, enum qn_replica_state last);

/** Send the process of `i` a signal. */
void qn_sv_kill(const struct qn_sv_step *x, qn_node_t i);

/** End the supervisor with `status`. The first one counts. */
void qn_sv_finish(const struct qn_sv_step *x, int status);

/** Close the descriptor of an outbox. */
void qn_sv_drop_outbox(const struct qn_sv_step *x, qn_node_t node,
                       uint64_t incarnation);

/* ---- messages.c: what is said to replicas -------------------------------- */

void qn_sv_send(const struct qn_sv_step *x, qn_node_t to,
                const struct qn_control_msg *m, struct qn_outbox_name outbox);
/** A message that has only a kind. */
void qn_sv_say(const struct qn_sv_step *x, qn_node_t to,
               enum qn_control_kind kind);
void qn_sv_say_all(const struct qn_sv_step *x, enum qn_control_kind kind);
void qn_sv_say_peer_up(const struct qn_sv_step *x, qn_node_t to,
                       qn_node_t about, uint64_t incarnation);
void qn_sv_say_peer_down(const struct qn_sv_step *x, qn_node_t to,
                         qn_node_t about, uint64_t incarnation);
void qn_sv_say_lead(const struct qn_sv_step *x, qn_node_t leader);
/** A client's wish to recover from `node` is not met. */
void qn_sv_say_refused(const struct qn_sv_step *x, qn_node_t to, qn_node_t node,
                       uint64_t client, uint32_t why);
/** Could `to` go on alone? The number of the question is the recovery's. */
void qn_sv_ask_recoverable(const struct qn_sv_step *x, qn_node_t to,
                           const struct qn_ctl_recover *wish);
void qn_sv_say_member_seat(const struct qn_sv_step *x, qn_node_t to,
                           const struct qn_ctl_member_seat *seat);
void qn_sv_say_member_answer(const struct qn_sv_step *x, qn_node_t to,
                             const struct qn_ctl_member_answer *a);
void qn_sv_say_voter_change(const struct qn_sv_step *x, qn_node_t to,
                            const struct qn_ctl_voter_change *c);
void qn_sv_ask_roles(const struct qn_sv_step *x, qn_node_t to, uint32_t token);

/* ---- membership.c -------------------------------------------------------- */

/** A process says HELLO; its outbox came with it. */
void qn_sv_on_hello(const struct qn_sv_step *x, qn_node_t from);

/** The outbox of the present incarnation of `i` came with the message: keep it,
 *  and tell the others. */
void qn_sv_present(const struct qn_sv_step *x, qn_node_t i);

/** A replica answers a PEER_UP. */
void qn_sv_on_peer_met(const struct qn_sv_step *x, qn_node_t from,
                       const struct qn_ctl_peer_met *m);

/** The process of `i` is gone: it need not be met, nor meet any. */
void qn_sv_forget_unmet(struct qn_supervision *s, qn_node_t i);
/** Tell those again that could not meet a peer, if it is time to. */
void qn_sv_meet_turn(const struct qn_sv_step *x);
qn_time_t qn_sv_meet_deadline(const struct qn_supervision *s);

/** Tell the others that an incarnation has ended. */
void qn_sv_broadcast_down(const struct qn_sv_step *x, qn_node_t about,
                          uint64_t incarnation);

/** Tell `to`, which was without a supervisor, of incarnations that it does not
 *  know. */
void qn_sv_catch_up(const struct qn_sv_step *x, qn_node_t to);

/** Drop the retained outbox once its owner does not own the register. */
void qn_sv_retained_review(const struct qn_sv_step *x);

/** The process of `i` has ended: retain its outbox or drop it. */
void qn_sv_outbox_ended(const struct qn_sv_step *x, qn_node_t i);

/** True if that incarnation owns the accept register. */
bool qn_sv_owns_register(const struct qn_supervision_facts *f, qn_node_t node,
                         uint64_t incarnation);

/* ---- restart.c ----------------------------------------------------------- */

/** A process of `i`, which has none. */
void qn_sv_spawn(const struct qn_sv_step *x, qn_node_t i);
void qn_sv_on_start(const struct qn_sv_step *x);
void qn_sv_on_spawned(const struct qn_sv_step *x);
void qn_sv_on_spawn_failed(const struct qn_sv_step *x);
/** The process is gone: nothing of it stays but its outbox, if it is needed. */
void qn_sv_reap(const struct qn_sv_step *x, qn_node_t i);
void qn_sv_on_exit(const struct qn_sv_step *x);
/** Start those again whose back-off is over. */
void qn_sv_restart_turn(const struct qn_sv_step *x);
qn_time_t qn_sv_restart_deadline(const struct qn_supervision *s, qn_time_t now);
/** A replica is in back-off for so long that it matters whether it is needed
 *  for a majority. */
bool qn_sv_long_backoff(const struct qn_supervision *s, qn_time_t now);

/* ---- drain.c ------------------------------------------------------------- */

void qn_sv_on_signal(const struct qn_sv_step *x);
void qn_sv_drain(const struct qn_sv_step *x);
/** A replica says how long it tries, s. */
void qn_sv_on_draining(const struct qn_sv_step *x, uint64_t limit_s);
void qn_sv_on_drained(const struct qn_sv_step *x, qn_node_t from,
                      uint64_t unanswered, bool group_stopped);
/** Tell all to stop once the last one has drained or ended. */
void qn_sv_drain_check(const struct qn_sv_step *x);
void qn_sv_drain_turn(const struct qn_sv_step *x);
/** All have ended: log what was not answered. @return the exit status. */
int qn_sv_drain_status(const struct qn_sv_step *x);

/* ---- verdict.c ----------------------------------------------------------- */

/** Does any replica still have the data? If not, end. */
void qn_sv_verdict(const struct qn_sv_step *x);

/** Text about the end of `i`: how, as far as it is known. */
void qn_sv_describe_end(char *text, size_t cap, const struct qn_replica_slot *r,
                        int status);

/* ---- recovery.c ---------------------------------------------------------- */

void qn_sv_on_recover(const struct qn_sv_step *x, qn_node_t from,
                      const struct qn_ctl_recover *m);
void qn_sv_on_recoverable(const struct qn_sv_step *x, qn_node_t from,
                          const struct qn_ctl_recoverable *m);
void qn_sv_on_recovered(const struct qn_sv_step *x, qn_node_t from, int err);
void qn_sv_recovery_turn(const struct qn_sv_step *x);
/** A recovery is going on, if only as a question. */
bool qn_sv_recovers(const struct qn_supervision *s);
/** No replica may be started: the chosen one must be alone. */
bool qn_sv_recovery_holds(const struct qn_supervision *s);

/* ---- voters.c ------------------------------------------------------------ */

/** As far as is known. */
bool qn_sv_votes(const struct qn_supervision *s, qn_node_t i);
/** The seat has a process, or is to have one. */
bool qn_sv_taken(const struct qn_supervision *s, qn_node_t i);
/** Number of seats that are taken. */
uint32_t qn_sv_members(const struct qn_supervision *s);
/** The options are known: those of them vote, unless others are known. */
void qn_sv_voters_begin(struct qn_supervision *s);
/** A replica says which vote. */
void qn_sv_on_voters(const struct qn_sv_step *x, qn_node_t from,
                     const struct qn_ctl_voters *m);
/** That entry names these voters. */
void qn_sv_voters_learn(const struct qn_sv_step *x, uint32_t entries,
                        uint64_t voters);
/** Processes that are to be none drain and end. */
void qn_sv_leave_turn(const struct qn_sv_step *x);
qn_time_t qn_sv_leave_deadline(const struct qn_supervision *s, qn_time_t now);

/* ---- member_change.c ----------------------------------------------------- */

void qn_sv_on_member_list(const struct qn_sv_step *x, qn_node_t from,
                          const struct qn_ctl_member_list *m);
void qn_sv_on_member_add(const struct qn_sv_step *x, qn_node_t from,
                         const struct qn_ctl_member_add *m);
void qn_sv_on_member_remove(const struct qn_sv_step *x, qn_node_t from,
                            const struct qn_ctl_member_remove *m);
/** A replica says whether it has met the newcomer, if it is one. */
void qn_sv_member_met(const struct qn_sv_step *x, qn_node_t from,
                      const struct qn_ctl_peer_met *m);
void qn_sv_on_voter_changed(const struct qn_sv_step *x, qn_node_t from,
                            const struct qn_ctl_voter_changed *m);
/** The newcomer was told of its peers, and they of it; not START. */
void qn_sv_member_introduced(const struct qn_sv_step *x);
/** The newcomer has no process. */
void qn_sv_member_spawn_failed(const struct qn_sv_step *x);
void qn_sv_member_turn(const struct qn_sv_step *x);
qn_time_t qn_sv_member_deadline(const struct qn_supervision *s, qn_time_t now);
/** A newcomer waits until others have met it, but for those that were stopped
 * by a signal. */
bool qn_sv_member_meets(const struct qn_supervision *s);
/** A change is under way. */
bool qn_sv_member_changes(const struct qn_supervision *s);
/** `i` is being added, and has not failed. */
bool qn_sv_is_newcomer(const struct qn_supervision *s, qn_node_t i);
/** `i` has no vote, as this supervisor was told, and is to end. */
bool qn_sv_member_leaves(const struct qn_supervision *s, qn_node_t i);
/** No process of `i` is started: its vote is being ended, of the incarnation
 *  that it had, or begins. */
bool qn_sv_member_holds(const struct qn_supervision *s, qn_node_t i);

/* ---- upgrade.c, upgrade_roles.c ------------------------------------------ */

void qn_sv_on_upgrade(const struct qn_sv_step *x);
void qn_sv_on_roles(const struct qn_sv_step *x, qn_node_t from,
                    const struct qn_ctl_roles *m);
/** Replica `i` has ended. @return true: the upgrade asked for it, and it is
 *  started again at once; false: an end like any other, unless *stays is
 *  filled: it is a new one that cannot live, and is not started again. */
bool qn_sv_upgrade_ended(const struct qn_sv_step *x, qn_node_t i, bool *stays);
void qn_sv_upgrade_turn(const struct qn_sv_step *x);
qn_time_t qn_sv_upgrade_deadline(const struct qn_supervision *s, qn_time_t now);
/** Voters that serve: a mask. */
uint64_t qn_sv_serving(const struct qn_supervision *s);
/** A replica that is not complete or has not answered; QN_NODES_MAX: none. */
qn_node_t qn_sv_roles_missing(const struct qn_supervision *s);
/** All see the same roles, the leader leads, and the next one to leave takes
 *  nothing along. @return the roles; NULL: not yet. */
const struct qn_roles *qn_sv_roles_agreed(const struct qn_supervision *s);
/** Ask those that have not answered, if it is time to. */
void qn_sv_roles_ask(const struct qn_sv_step *x);
/** Of a mask that is not empty. */
qn_node_t qn_sv_lowest(uint64_t mask);

/* ---- adoption.c ---------------------------------------------------------- */

void qn_sv_on_orphan_met(const struct qn_sv_step *x);
void qn_sv_on_orphan_ended(const struct qn_sv_step *x);
void qn_sv_on_take_over(const struct qn_sv_step *x);
void qn_sv_on_unreached(const struct qn_sv_step *x);
void qn_sv_on_vacant(const struct qn_sv_step *x);
void qn_sv_on_catch_up(const struct qn_sv_step *x);
void qn_sv_on_taken_over(const struct qn_sv_step *x);
/** @return true: `m` is part of what an orphan says, and dealt with. */
bool qn_sv_on_orphan_message(const struct qn_sv_step *x, qn_node_t from,
                             const struct qn_control_msg *m);

/* ---- successor.c --------------------------------------------------------- */

void qn_sv_on_successor_asks(const struct qn_sv_step *x);
void qn_sv_on_successor_takes(const struct qn_sv_step *x);

/* ---- invariants.c -------------------------------------------------------- */

/** Relations between the parts' states that hold after each step. */
void qn_sv_invariants(const struct qn_supervision *s);

#endif
