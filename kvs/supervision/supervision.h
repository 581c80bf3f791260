#ifndef QN_KVS_SUPERVISION_SUPERVISION_H
#define QN_KVS_SUPERVISION_SUPERVISION_H

/**
 * What a supervisor decides: a pure step function (sans-IO).
 *
 *     qn_supervision_step(state, event, now, actions)
 *
 * Inputs are events and the time, outputs are actions in a struct of the
 * caller. Inside there is no clock, no process, no socket, no allocation and
 * no log. The shell (kvs/supervisor) observes events and does the actions.
 *
 * Each replica is in one of these states:
 *
 *     STARTING --READY--> SERVING --DRAINED--> DRAINED --exit--> ENDED
 *         \________________________\______________________exit____/
 *
 * One file per part:
 *
 *     restart.c     the next incarnation after an end, with back-off
 *     membership.c  which replica was told of which incarnation; the outbox
 *                   that is retained for the owner of the accept register
 *     drain.c       all replicas end in order, within a limit
 *     verdict.c     no replica has the data any more
 *     voters.c      which seats are to have a process; the others' end
 *     member_change.c   a member is added or removed
 *     recovery.c    a group that stopped goes on from one replica
 *     upgrade.c, upgrade_roles.c   replicas are replaced one at a time
 *     adoption.c    a group whose supervisor ended is taken over
 *     successor.c   a successor takes the group over from this supervisor
 *
 * Threads: one per state. No call blocks or allocates.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/clock.h"
#include "core/node.h"
#include "kvs/control/member_error.h"
#include "kvs/supervision/supervision_action.h"
#include "kvs/supervision/supervision_event.h"

/** Exit statuses of a supervisor. Ended at once by signal s: 128 + s. */
enum qn_supervisor_status {
    QN_SUPERVISOR_DRAINED = 0,
    QN_SUPERVISOR_LOST = 1, /* no replica was left, or not all has drained, or
                               the group had stopped */
    QN_SUPERVISOR_NOT_BEGUN = 2, /* could not start; nothing left behind */
};

enum qn_replica_state {
    QN_REPLICA_STARTING, /* not complete yet */
    QN_REPLICA_SERVING,
    QN_REPLICA_DRAINED,
    QN_REPLICA_ENDED /* no process */
};

/** One replica. Written by the step only. */
struct qn_replica_slot {
    enum qn_replica_state state;
    pid_t pid;
    bool spawning;   /* SPAWN was ordered, its result has not come */
    bool adopted;    /* no child: only that it ended is seen, not how */
    bool reachable;  /* its control channel is open */
    bool informed;   /* it hears of changes of the membership; a later
                        incarnation from its HELLO on */
    bool has_outbox; /* of its present incarnation, from its HELLO on */
    bool killed;     /* by an action: it did not drain in time, or another one
                        goes on alone, or it did not become complete */
    bool leaves;     /* it had no vote, and was told to drain and end */
    bool let_go;     /* ... it has drained, and was told to stop */
    int error;       /* it said FAILED, and why */
    uint64_t incarnation;         /* present or last; 0: none yet */
    uint64_t ordered;             /* least number of the last SPAWN */
    uint64_t ended;               /* last one that was announced and ended */
    uint64_t knows[QN_NODES_MAX]; /* newest incarnation of each peer that it was
                                     told of, or says that it knows */
    uint64_t lacks; /* mask of peers: it could not meet them, so they are absent
                       for it until it is told of them again ... */
    qn_time_t again_at;    /* ns; ... which is then at the latest */
    qn_time_t started_at;  /* ns */
    qn_time_t restart_at;  /* ns; QN_TIME_NEVER: not */
    qn_time_t leave_until; /* ns; `leaves`: it is killed then */
    uint32_t backoff_ms;   /* before the next restart but this */
};

/** What a replica says about roles. */
struct qn_roles {
    bool asked; /* and has not answered */
    bool heard; /* in this step */
    bool active;
    uint64_t epoch;
    qn_node_t leader, acceptor;
    uint64_t in_sync; /* mask of nodes */
};

enum qn_upgrade_step {
    QN_UPGRADE_NONE,   /* no upgrade is going on */
    QN_UPGRADE_SETTLE, /* until all are complete and agree on roles */
    QN_UPGRADE_LEAVE,  /* `node` drains and ends */
    QN_UPGRADE_COME,   /* its next incarnation becomes complete */
};

struct qn_upgrade {
    enum qn_upgrade_step step;
    qn_node_t node;
    uint64_t to_replace; /* mask of nodes */
    uint32_t done, total;
    bool ordered;                  /* another leader; in epoch ... */
    uint64_t epoch;                /* ... and at ... */
    qn_time_t ordered_at;          /* ns */
    qn_time_t began, since, until; /* ns; all of it, this step, its end */
    qn_time_t asked_at;            /* ns; ROLES, last */
    uint32_t token;                /* of this step's questions */
    struct qn_roles roles[QN_NODES_MAX];
};

enum qn_recovery_step {
    QN_RECOVERY_NONE, /* no recovery is going on */
    QN_RECOVERY_ASKS, /* `node` is asked whether it could; nothing is done */
    QN_RECOVERY_ENDS, /* until all but `node` have ended */
    QN_RECOVERY_GOES, /* `node` is told, and has not answered */
};

struct qn_recovery {
    enum qn_recovery_step step;
    qn_node_t node;
    uint64_t incarnation; /* the one that was asked */
    bool agreed;          /* ASKS: it could, with all up to ... */
    uint64_t position;    /* ... this one */
    qn_node_t asker;      /* whose client wants it ... */
    uint64_t client;      /* ... and which one */
    uint64_t asked;       /* number of the question, never reused */
    qn_time_t until;      /* ns; ASKS, GOES: its answer is waited for */
};

enum qn_member_step {
    QN_MEMBER_NONE,  /* no change of the members is going on */
    QN_MEMBER_COMES, /* add: a process is made, and has said nothing yet */
    QN_MEMBER_MEETS, /* ... until the others have met it */
    QN_MEMBER_LOADS, /* ... until it is complete */
    QN_MEMBER_VOTES, /* its vote, or the end of it, is ordered */
    QN_MEMBER_LEAVES /* until it has no process */
};

struct qn_member_change {
    enum qn_member_step step;
    qn_node_t node;
    bool votes; /* it is added; else removed */
    bool forced;
    uint64_t incarnation; /* MEETS and later: of the newcomer */
    uint64_t unmet;       /* MEETS: mask of those that have not said so */
    qn_node_t asker;      /* whose client wants it ... */
    uint64_t asker_incarnation;
    bool answered;
    struct qn_ctl_member_answer answer; /* ... which one, and so far: why not */
    uint32_t number;                    /* of the last order, never reused */
    bool ordered;                       /* one was given ... */
    bool asked;                         /* ... and is not answered ... */
    bool unknown;            /* ... or it is not known what became of it */
    qn_node_t by;            /* it was given to ... */
    uint64_t by_incarnation; /* ... this one */
    qn_time_t silent_at;     /* ns; `asked`: another one is asked then */
    qn_time_t again_at;      /* ns; else: once more */
    qn_time_t until;         /* ns; end of this step */
};

/** A group that is being taken over: what its replicas have said so far. */
struct qn_orphans {
    bool taken_over;    /* the group is ours; those awaited are late */
    uint64_t voters;    /* mask: those that replicas without a vote name, and
                           these; if no voter speaks */
    uint64_t connected; /* mask; before TAKE_OVER: its process lives */
    uint64_t awaited;   /* mask; it has not said all */
    uint64_t ready;     /* mask; it said READY */
    uint64_t unreached; /* mask; it lives and takes no connection */
    qn_time_t until;    /* ns; before TAKE_OVER: the others are late then;
                           QN_TIME_NEVER: none has said all */
    uint64_t newest[QN_NODES_MAX]; /* incarnation that any of them knows; 0 */
    uint64_t held;                 /* mask; the outbox of that one is held */
    struct qn_outbox_name owner;   /* held, too: it owns the register */
};

struct qn_supervision {
    struct qn_supervision_opts opts;
    struct qn_replica_slot replica[QN_NODES_MAX];
    uint64_t incarnations;          /* given so far: the highest number */
    struct qn_outbox_name retained; /* of a dead incarnation that owns the
                                       accept register */
    struct qn_orphans orphans;
    struct qn_upgrade upgrade;
    struct qn_recovery recovery;
    struct qn_member_change change;
    uint64_t voters;         /* mask: newest that is known. Each is to have a
                                process */
    uint32_t voters_entries; /* of the utility log; 0: those of opts.taken */
    bool served;             /* all were ready once */
    uint32_t adopted; /* living replicas that were taken over; 0: a new group */
    bool draining;
    qn_time_t drain_began; /* ns */
    qn_time_t drain_until; /* ns; kill those that have not drained by then;
                              QN_TIME_NEVER: they were */
    uint64_t unanswered;   /* replies that drained replicas did not give */
    bool undrained;        /* a replica that had not drained ended meanwhile */
    bool stopped;          /* a drained one says that the group had stopped */
    char last_end[160];    /* of a complete replica; empty: none yet */
    bool verdict_due;      /* a replica is gone, or not complete: is the data
                              lost? */
    qn_time_t lost_at;     /* ns; then it is, unless one becomes complete;
                              QN_TIME_NEVER: one is */
    bool lost;             /* it is */
    uint64_t lost_upto;    /* least slot that had been decided */
    bool over;             /* FINISH was given out, with ... */
    int status;
    qn_time_t last_step; /* ns */
    bool handed_over;    /* to a successor */
};

/** Nothing begun yet; `opts` is copied. TAKE_OVER may replace it. */
void qn_supervision_init(struct qn_supervision *s,
                         const struct qn_supervision_opts *opts);

/**
 * Deal with one event.
 *
 * @param s    In, out. Not over yet.
 * @param e    Borrowed.
 * @param now  ns; never less than in the step before.
 * @param out  Filled: what to do, in order, and when TIMER is due.
 *
 * Pure: the same state, event and time give the same actions. O(replicas),
 * MESSAGE and SPAWNED up to O(replicas) with a copy per action.
 */
void qn_supervision_step(struct qn_supervision *s,
                         const struct qn_supervision_event *e, qn_time_t now,
                         struct qn_supervision_actions *out);

/** The step for this kind of event reads facts.stopped. Looking costs a read of
 *  /proc per replica, so the shell looks only then. */
bool qn_supervision_needs_stopped(const struct qn_supervision *s,
                                  enum qn_supervision_on kind, qn_time_t now);

/** Mask of the seats that have a process, or are to have one. */
uint64_t qn_supervision_taken(const struct qn_supervision *s);

/** Before TAKE_OVER: replicas that are still waited for. */
bool qn_supervision_awaits_orphans(const struct qn_supervision *s,
                                   qn_time_t now);

/** The group's replicas are all heard or ended: no adoption is going on. */
bool qn_supervision_adoption_is_over(const struct qn_supervision *s);

/** The last line of a server whose data is lost. @return false: it is not,
 *  nothing is filled. */
bool qn_supervision_last_words(const struct qn_supervision *s, char *text,
                               size_t cap);

#endif
