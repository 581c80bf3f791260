#ifndef QN_TESTS_SIM_SUPERVISION_WORLD_H
#define QN_TESTS_SIM_SUPERVISION_WORLD_H

/**
 * A group of replicas and its supervisors in virtual time, from one seed.
 *
 * The machine of kvs/supervision runs as it is. The shell around it, the
 * processes of the replicas, their control channels and the group's memory are
 * models:
 *
 *     model.c     a replica: what it says, does and has heard
 *     members.c   the group's voters, and what is ordered of them
 *     shell.c     a supervisor: delivers events, does actions
 *     adopt.c     how a new supervisor meets the group
 *     check.c     what must hold whatever happens
 *     schedule.c  faults by seed, then healing, then the end
 *
 * A violation prints the seed and the command that replays it, and aborts.
 */

#include <stdbool.h>
#include <stdint.h>

#include "kvs/supervision/supervision.h"

#define WORLD_NODES   7u
#define CHANNEL_MAX   600u /* messages; more is a defect of the model */
#define CHANNEL_WIDE  278u /* as a real socket has room for */
#define CHANNEL_TIGHT 5u

/** What a seed may do. */
struct faults {
    bool kill;     /* processes of replicas */
    bool weak;     /* new processes end soon */
    bool stop;     /* processes stall */
    bool spawn;    /* fork fails */
    bool crash;    /* the supervisor is killed, between any two actions */
    bool tight;    /* control channels with room for few messages */
    bool busy;     /* replicas take no connection for a while */
    bool upgrade;  /* a successor comes with another build */
    bool members;  /* clients add and remove members */
    bool recover;  /* clients want a recovery */
    bool leave;    /* an operator ends a replica */
    bool lose;     /* also the last complete replica may be killed */
    bool stubborn; /* replicas do not drain */
};

/** What all seeds together have reached. */
struct coverage {
    uint64_t seeds, steps, spawns, spawn_failures, exits, crashes, adoptions,
        late, unreached, retained, handovers, upgrades, upgrades_stopped,
        recoveries, recoveries_refused, backlogged, skipped, left, lost,
        rebuilt, drains, drains_killed, drains_twice, entries, members_added,
        members_removed, members_refused, members_unknown, unmet;
};

struct letter {
    struct qn_control_msg m;
    struct qn_outbox_name outbox;
};

/** First in, first out. */
struct channel {
    uint32_t count;
    struct letter item[CHANNEL_MAX];
};

/** The newest incarnation of a peer that a process has heard of. */
struct heard {
    uint64_t up, down;
};

/** A replica's process. */
struct process {
    bool alive;
    uint64_t incarnation;
    pid_t pid;
    uint32_t build;
    int status;      /* of its end */
    bool killed;     /* by a signal, which it has not noticed */
    bool reported;   /* ... its supervisor was told of it */
    bool introduced; /* START has come */
    bool said_hello, complete, draining, stubborn, asked_to_leave;
    bool linked;  /* its control channel leads to the present supervisor */
    bool to_tell; /* ... an adopter, which has not heard all */
    bool busy;    /* takes no connection */
    qn_time_t stopped_until; /* ns; 0: it runs */
    qn_time_t hello_at, complete_at, drained_at, dies_at, recovered_at;
    uint64_t question; /* RECOVER_QUERY to answer ... */
    qn_time_t answer_at;
    struct heard heard[WORLD_NODES];
    uint64_t lanes; /* mask: seats that it has lanes for */
    uint64_t knows_voters;
    uint32_t knows_entries;
    qn_time_t learns_at; /* the newest ones */
    struct channel in;   /* from its supervisor: in the socket */
    struct channel out;  /* to it */
};

struct supervisor {
    bool alive;
    bool adopting; /* before TAKE_OVER */
    bool configured;
    bool successor; /* it came with --upgrade */
    uint32_t build;
    qn_time_t slow_until; /* it does not get the core */
    uint32_t crash_after; /* actions; 0: not */
    qn_time_t ask_at;
    struct qn_supervision machine;
    struct qn_supervision_actions actions;
    struct qn_supervision_event later[2 * WORLD_NODES + 2];
    uint32_t laters;
    const struct letter *letter; /* at hand */
    struct channel backlog[WORLD_NODES];
    struct qn_outbox_name held[2 * WORLD_NODES + 2];
    uint32_t helds;
    int signals;        /* to be told */
    int successor_step; /* 1: wants to ask, 2: has been answered */
};

#define ORDERS_MAX 16u

/** An order to change the voters, that some member was given. */
struct order {
    struct qn_ctl_voter_change c;
    qn_node_t by;
    uint64_t by_incarnation;
    uint64_t supervisor; /* the how many-th has given it */
    qn_time_t at;        /* it is done, or refused */
};

/** Clients, by what they want. */
enum { CLIENT_LISTS = 1, CLIENT_ADDS, CLIENT_REMOVES };

struct world {
    uint64_t seed;
    uint64_t random;
    uint64_t hash; /* of every event and action */
    qn_time_t now;
    struct qn_supervision_opts opts;
    struct faults f;
    uint32_t room; /* of a control channel */
    bool trace;    /* print what happens */
    bool ring;     /* loading replicas can rebuild the state */
    bool faulty;   /* faults happen still */
    struct process process[WORLD_NODES];
    struct supervisor sup;
    uint32_t build;     /* newest */
    qn_time_t start_at; /* the next supervisor; QN_TIME_NEVER: not needed */
    bool start_upgrade;
    /* the group's memory */
    uint64_t incarnations;           /* given */
    struct qn_outbox_name owner;     /* of the register */
    qn_time_t owner_at;              /* the next owner */
    uint64_t left_mark[WORLD_NODES]; /* incarnation that left for good */
    uint64_t voters;                 /* mask */
    uint32_t entries;
    uint64_t supervisors; /* that there were */
    uint32_t former;      /* the last order before the present change */
    uint64_t removed[WORLD_NODES]; /* the last incarnation that was; 0 */
    struct order order[ORDERS_MAX];
    uint32_t orders;
    qn_node_t leader;
    uint64_t epoch;
    qn_time_t fault_at;
    uint64_t stays; /* mask: not started again, for a reason that was said */
    bool drained;   /* the server was told to */
    qn_time_t drain_at;
    uint64_t unsent; /* replies; that the present supervisor heard of */
    bool undrained;  /* a serving one ended while draining */
    bool over;       /* the server has ended */
    int status;
    uint32_t announced_lost; /* times that all data was said to be lost */
    struct coverage *cover;
};

/* ---- world.c ------------------------------------------------------------- */

uint64_t world_random(struct world *w, uint64_t n); /* below n */
bool world_chance(struct world *w, uint32_t percent);
qn_time_t world_ms(struct world *w, uint64_t least, uint64_t most);
void world_note(struct world *w, uint64_t what);
/** A line, if QN_SIM_TRACE is set. */
void world_trace(const struct world *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
_Noreturn void world_fail(const struct world *w, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void channel_push(struct world *w, struct channel *c, const struct letter *l);
struct letter channel_pop(struct channel *c);
bool runs(const struct world *w, const struct process *p);
uint32_t complete_count(const struct world *w, bool running);

/* ---- model.c ------------------------------------------------------------- */

void process_start(struct world *w, qn_node_t i, uint64_t incarnation);
void process_end(struct world *w, qn_node_t i, int status);
void process_turn(struct world *w, qn_node_t i);
qn_time_t process_deadline(const struct world *w, qn_node_t i);
/** The next leader, and the next owner of the register. */
void group_turn(struct world *w);

/* ---- members.c ----------------------------------------------------------- */

void members_begin(struct world *w);
void members_turn(struct world *w);
qn_time_t members_deadline(const struct world *w);
/** A replica is given an order. */
void members_order(struct world *w, qn_node_t by,
                   const struct qn_ctl_voter_change *c);
/** It tells its supervisor which voters it knows. */
void members_say(struct world *w, qn_node_t i);
/** It hears PEER_UP. */
void members_meet(struct world *w, qn_node_t i, const struct qn_control_msg *m);
/** It hears START: those without lanes for it are absent. */
void members_start(struct world *w, qn_node_t i);
/** A client of `i` wants something. */
void members_ask(struct world *w, qn_node_t i);
void members_answered(struct world *w, qn_node_t to,
                      const struct qn_ctl_member_answer *a);

/* ---- shell.c ------------------------------------------------------------- */

void shell_event(struct world *w, struct qn_supervision_event e);
void shell_node_event(struct world *w, enum qn_supervision_on kind,
                      qn_node_t i);
void shell_hear(struct world *w, qn_node_t i);
void shell_turn(struct world *w);
bool shell_has_work(const struct world *w);
/** Killed: its backlogs are gone, what is in sockets is not. */
void shell_crash(struct world *w);

/* ---- adopt.c ------------------------------------------------------------- */

void adopt_begin(struct world *w);
void adopt_turn(struct world *w);
void late_turn(struct world *w);

/* ---- check.c ------------------------------------------------------------- */

void check_spawn(struct world *w, qn_node_t i, uint64_t incarnation);
void check_drop(struct world *w, struct qn_outbox_name name);
void check_heard(struct world *w, qn_node_t by, const struct qn_control_msg *m);
void check_order_to_recover(struct world *w, qn_node_t chosen);
void check_finish(struct world *w, int status);
void check_step(struct world *w);
/** NULL: all that must be serving are, and know each other; else what replica
 *  *which lacks. */
const char *check_unhealed(const struct world *w, qn_node_t *which);

/* ---- schedule.c ---------------------------------------------------------- */

/** Run one seed. @return the hash of its trace. */
uint64_t world_run(uint64_t seed, struct coverage *cover);

#endif
