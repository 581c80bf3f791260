#ifndef QN_TESTS_UNIT_PAXOS_MEMBER_MEMBER_WORLD_H
#define QN_TESTS_UNIT_PAXOS_MEMBER_MEMBER_WORLD_H

/**
 * A group whose members are threads of one process, each with an event loop as
 * member.h asks for: a turn, then poll() on the doorbell. The test's thread
 * tells them what to do on a board, and waits until what it asked for has come.
 *
 * A thread that is told to die returns at once, with all that it has: the
 * kernel marks its liveness word, as it does for a process.
 */

#include <pthread.h>

#include "core/place/commons.h"
#include "paxos/driver/driver.h"
#include "paxos/member/member.h"

#define WORLD_MESSAGE "hello" /* of the service */

enum {
    WORLD_NODES = 3, /* that begin */
    WORLD_LIVES = 8
};

/** The replicated state. */
struct world_state {
    uint64_t applied; /* commands */
    uint64_t digest;  /* of them, in order */
};

/** One incarnation: a thread. */
struct world_life {
    struct world *world;
    qn_node_t node;
    uint64_t incarnation;
    pthread_t thread;
    struct qn_member *member;
    int tid;
    bool there;                 /* its outbox is */
    uint64_t met[QN_NODES_MAX]; /* the last incarnation that has come up */
    bool started;               /* it takes turns */
    bool die, stop;             /* orders: at once, or in order */
    bool sleep;                 /* order: make no turns */
    bool speak;                 /* order: send WORLD_MESSAGE */
    qn_node_t speak_to;
    bool ended;      /* the thread has */
    uint64_t wanted; /* commands that it shall submit */
    uint64_t submitted;
    struct world_state state;
    bool complete;          /* it has all that was applied before it began */
    struct world_state cut; /* donor: what it gives */
    bool cut_given;
    bool cutting; /* from begin to end */
    uint64_t cuts;
    struct world_state built; /* joiner: what it gets */
    uint64_t installed;       /* snapshots */
    uint64_t lags;            /* told so often */
    uint64_t messages;        /* of the service */
    uint64_t snapshot_lines;  /* logged, of installed snapshots */
    uint64_t deaths;          /* mask of nodes whose end it was told */
    uint64_t recorded;        /* flight recorders given */
    uint64_t resumed;         /* mask of nodes */
    uint64_t leader;          /* as it knows, and */
    uint64_t failovers;       /* ... as it was told */
};

struct world {
    const struct qn_transport *transport;
    bool memory_acceptor;
    struct qn_commons *commons;
    int commons_fd;
    int doorbell_fd[QN_NODES_MAX];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct world_life life[WORLD_LIVES];
    uint32_t lives;
    struct world_life *present[QN_NODES_MAX]; /* NULL: a vacant seat */
    uint32_t seats;         /* 0: WORLD_NODES; more: memory acceptor */
    uint32_t command_bytes; /* of each; 0: 8 */
    bool no_cut;            /* the state must not change while it is given */
    qn_time_t lag_timeout;  /* ns; 0: 10 s */
};

/** Commons and doorbells; then WORLD_NODES nodes, which meet. `lag_timeout`,
 * `no_cut`, `command_bytes` and `seats` may be set before. */
void world_begin(struct world *w, const char *transport, bool memory_acceptor);

/** All threads end in order, and everything is given back. */
void world_end(struct world *w);

/** The options that a member of the world has. */
struct qn_member_opts world_opts(struct world *w, qn_node_t node,
                                 uint64_t incarnation);

/** The state that a member of the world gives and takes. */
struct qn_member_state world_state_of(struct world_life *l);

/** The present thread of a node dies; returns when it has ended. */
void world_kill(struct world *w, qn_node_t node);

/** A new incarnation of a dead node, or the first one of a vacant seat; the
 *  others are told, and it starts when they have lanes for it. Returns when it
 *  takes turns. */
void world_return(struct world *w, qn_node_t node);

/** Submit `n` more commands at a node. */
void world_submit(struct world *w, qn_node_t node, uint64_t n);

/** Wait until all living nodes have applied `n` commands in all. */
void world_applied(struct world *w, uint64_t n);

/** Hold a node's turns, or let it go on. */
void world_sleep(struct world *w, qn_node_t node, bool sleep);

/** Wait until `is(life)` of a node's present thread. */
void world_wait(struct world *w, qn_node_t node,
                bool (*is)(const struct world_life *l));

/** Send WORLD_MESSAGE. */
void world_speak(struct world *w, qn_node_t from, qn_node_t to);

/** What the present incarnation of a node knows and was told, as of now; fields
 *  as in struct world_life. */
struct world_facts {
    struct world_state state;
    uint64_t deaths, recorded, resumed, installed, lags, messages;
    uint64_t cuts, snapshot_lines;
    qn_node_t leader;
};
struct world_facts world_facts(struct world *w, qn_node_t node);

#endif
