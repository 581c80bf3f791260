#ifndef QN_TESTS_UNIT_PAXOS_MEMBER_TRANSFER_TRANSFER_WORLD_H
#define QN_TESTS_UNIT_PAXOS_MEMBER_TRANSFER_TRANSFER_WORLD_H

/**
 * Members with a toy as their state, which give it to each other: an array of
 * numbers that each slot of a common log changes. All in one thread and in
 * virtual time. What a test changes it changes in `w`.
 */

#include "paxos/member/transfer/state_transfer.h"
#include "tests/support/test.h"

enum { NODES = 3, LANE_MAX = 16 };

/* Calls that a test lets fail. */
enum call { BEGIN, NEXT, PROGRESS, READ, FINISH, RESUME, TELL, CALLS };

/* The n-th call fails, and from there on each `every`-th one. */
struct failure {
    uint32_t at; /* 0: none */
    int err;
    uint32_t every; /* 0: that one only; 1: all */
    uint32_t calls; /* so far */
    uint32_t met;   /* that failed */
};

struct toy {
    qn_slot_t applied;
    uint32_t count;
    uint32_t item[]; /* [count] */
};

struct node {
    qn_node_t self;
    struct qn_state_transfer *x;
    struct toy *toy; /* NULL: none */
    bool down;       /* has ended */
    bool stopped;    /* takes no turn */
    bool may_not_suspend;
    struct failure fail[CALLS];
    /* The donor's cut: */
    bool cuts;
    struct toy *cut; /* a copy; NULL with `no_cut` */
    qn_slot_t cut_at;
    size_t given; /* bytes */
    /* What the joiner builds: */
    struct toy *made;
    size_t made_bytes;
    bool finished;
    uint32_t begins, ends, abandons, installs;
    uint64_t resumed_last;  /* of the library's state that came last */
    uint32_t library_nodes; /* that it says; NODES */
    bool holds;             /* the log, behind ... */
    qn_slot_t hold_at;
    uint32_t suspended; /* turns in which it applied nothing */
    qn_time_t at;
};

extern struct world {
    struct node node[NODES];
    struct message {
        uint8_t *bytes;
        size_t len;
    } lane[NODES][NODES][LANE_MAX]; /* [from][to] */
    uint32_t head[NODES][NODES], tail[NODES][NODES];
    qn_slot_t slots; /* decided */
    qn_time_t now;
    uint64_t leaders; /* mask: asked last */
    int64_t damage;   /* chunks until one is damaged; < 0: none */
    uint32_t blocks;  /* of the state transfers' allocator */
    size_t bytes;     /* in them */
    uint32_t allocations, allocation_fails; /* the n-th one; 0: none */
    /* Set before world_begin: */
    bool no_cut;
    uint32_t rounds_max;
    qn_time_t call; /* ns that a call may take, as its user says */
} w;

/** All members hold a toy of `count` numbers. End frees all, and checks that
 *  nothing else was left: no cut, no state half built. */
void world_begin(uint32_t count);
void world_end(void);

/** Create one more state transfer, as that of node 0. @return as it says. */
int world_member_again(struct qn_state_transfer **x);

/** A member of which nothing is left but its place. */
void loses_all(struct node *n);
void dies(struct node *n);
/** Drop what is on its way from or to a member. */
void lanes_clear(qn_node_t a);

/** `writes` slots are decided, then a turn of each; a millisecond passes. */
void world_step(uint32_t writes);
/** Steps until node `n` has joined; fails after `most` of them. */
void run_until_joined(struct node *n, uint32_t most);

struct qn_state_transfer_status status_of(const struct node *n);
void expect_same(const struct node *a, const struct node *b);
void fail_at(struct node *n, enum call c, uint32_t at, int err, uint32_t every);

#endif
