#ifndef QN_TESTS_SIM_INTERNAL_H
#define QN_TESTS_SIM_INTERNAL_H

/** A schedule, and what its parts share:
 *
 *      sim.c         a run: its parameters, its steps, healing
 *      sim_turn.c    what a living node does in a step
 *      sim_deaths.c  who dies and comes back, and whom others take for dead
 */

#include "tests/sim/paxos/cluster.h"
#include "tests/sim/paxos/sim.h"

enum fault {
    FAULT_LOSS,      /* LEARNs, any subset of the receivers */
    FAULT_REORDER,   /* LEARNs overtake each other and come twice */
    FAULT_DELAY,     /* channels of very different speed */
    FAULT_PAUSE,     /* nodes are stalled, for long */
    FAULT_ROOM,      /* transfers find room rarely */
    FAULT_MEMORY,    /* allocations fail */
    FAULT_CLOCK,     /* the wall clock jumps, forward and back */
    FAULT_JUMP,      /* all are stalled while time passes */
    FAULT_BOUND,     /* a turn applies a few commands only */
    FAULT_REPEAT,    /* origins are told to send everything again */
    FAULT_FRAGMENTS, /* messages are cut small */
    FAULT_SMALL,     /* bounds so small that they are reached */
    FAULT_SUSPECT,   /* nodes are suspected, rightly or not */
    FAULT_CUT,  /* one direction between two nodes carries nothing for long */
    FAULT_KILL, /* nodes die at any output and come back, some without
                   their record, also while a failover is under way; never so
                   many that the group has to stop ... */
    FAULT_LOST, /* ... but once */
    FAULTS
};

struct sim {
    struct cluster c;
    uint32_t faults; /* mask */
    bool healed;
    qn_node_t slow; /* takes one of slow_turns turns; NODES_MAX: nobody */
    uint32_t slow_turns, skipped;
    bool slows;     /* leaders are told to leave pauses */
    uint64_t tempo; /* of that: a sequence of its own */
    qn_time_t delay[QN_NODES_MAX][QN_NODES_MAX]; /* ns, most */
    qn_time_t paused_until[QN_NODES_MAX];
    qn_time_t cut_until[QN_NODES_MAX][QN_NODES_MAX];
    uint64_t submitted[QN_NODES_MAX]; /* by this incarnation */
    uint64_t untold[QN_NODES_MAX];    /* mask: who does not know of its death */
    qn_time_t back_at[QN_NODES_MAX];  /* of the dead */
    bool lost;                        /* it may have to stop ... */
    enum coverage_row stop;           /* ... for this reason */
    bool reads;                       /* by message */
    uint64_t readers;                 /* of these: a sequence of its own */
    uint64_t seater;                  /* members come and go: likewise */
    uint32_t load;                    /* commands per turn, at most */
    uint32_t size;                    /* bytes of a command, at most */
};

/** A fault that this schedule has, as long as it has any. */
bool sim_has(const struct sim *s, enum fault f);

/** In so many of a hundred cases. */
bool sim_chance(struct sim *s, uint32_t percent);

/** Memory acceptor: nobody but the owner of the ring may be in sync when that
 *  one ends. */
bool sim_may_strand(const struct sim *s);

/** Next number below 16 of a sequence of its own, so that a schedule that needs
 *  none stays as it was. */
uint64_t sim_aside(uint64_t *sequence);

/** Node i, which lives and does not pause, takes a turn. */
void sim_turn(struct sim *s, qn_node_t i);

/** A node has died; when it comes back. */
void sim_bury(struct sim *s, qn_node_t i);

/** May node i die in the middle of its step? Then it is buried. */
bool sim_on_doom(struct cluster *c, qn_node_t i);

/** Those who are dead become known and come back; others may die. */
void sim_deaths(struct sim *s);

/** With kills snapshots are part of normal life; without, of the healing. */
void sim_snapshots(struct sim *s);

/** Members come and go. */
void sim_seats(struct sim *s);

/** Anybody may take anybody for dead for a while. */
void sim_suspicions(struct sim *s);

#endif
