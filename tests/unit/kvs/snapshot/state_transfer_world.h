#ifndef QN_TESTS_UNIT_KVS_SNAPSHOT_STATE_TRANSFER_WORLD_H
#define QN_TESTS_UNIT_KVS_SNAPSHOT_STATE_TRANSFER_WORLD_H

/**
 * Nodes that state_transfer each other: stores, lanes, a log and time of their
 * own, all in one thread. What a test changes it changes in `w`.
 */

#include "kvs/snapshot/snapshot_content.h"
#include "kvs/store/snapshot_iter.h"
#include "paxos/flow/flow.h"
#include "tests/unit/kvs/store/store_support.h"

enum { NODES = 4, KEYS_MAX = 200000, LANE_MAX = 16 };

/* ---- a log: what all stores are made of ---- */

struct op {
    uint8_t kind; /* 0 set, 1 add (not idempotent), 2 delete, 3 flush */
    uint32_t key;
    uint32_t len;
};

struct message {
    uint8_t *bytes;
    size_t len;
};

struct node {
    qn_node_t self;
    struct qn_state_transfer *state_transfer;
    struct qn_snapshot_content *content;
    struct qn_store *store; /* NULL: loading */
    struct qn_store *old;
    qn_slot_t applied;
    bool down;      /* has ended */
    bool stopped;   /* takes no turn */
    bool busy;      /* named so */
    bool cut_not;   /* not between two slots */
    int install;    /* what it says, if not QN_OK */
    uint64_t tells; /* chunks of this turn */
    bool holds;     /* the log, behind ... */
    uint32_t hold_done;
    qn_slot_t hold_at;
    qn_node_t hold_for;
    uint32_t discards, installs;
    qn_time_t at;
};

extern struct world {
    struct node node[NODES];
    struct message lane[NODES][NODES][LANE_MAX]; /* [from][to] */
    uint32_t head[NODES][NODES], tail[NODES][NODES];
    uint32_t lane_room;
    struct op *op; /* [slots] */
    qn_slot_t slots, slots_cap;
    uint32_t keys;
    uint64_t random;
    qn_time_t now;
    struct qn_config config;
    int64_t damage; /* chunks until one is damaged; < 0: none */
    bool paced;     /* set before world_begin: donors spare their clients */
    qn_time_t cpu, look_cpu; /* the CPU clock, and what a look at it adds */
    uint32_t log_used;       /* % of what the hold lets the leader do now */
    uint64_t log_bytes;      /* set before world_begin; 0: 64 MiB */
} w;

/* One more slot of the log that all apply; see struct op. */
void log_add(uint8_t kind, uint32_t key, uint32_t len);
void log_random(void);
void catch_up(struct node *n);

/* All nodes hold `keys` keys; end frees everything. */
void world_begin(uint32_t keys);
void world_end(void);

void lanes_clear(qn_node_t a);
/* A new incarnation has nothing. */
void loses_all(struct node *n);
void dies(struct node *n);

/* One turn: a random share of what has come, then the work. */
void world_turn(struct node *n);
/* `writes` of the log, then a turn of each; time passes. */
void world_step(uint32_t writes);
void run_until_joined(struct node *n, uint64_t times, uint32_t writes);
/* Until somebody has been asked and has begun. */
struct node *donor_of(struct node *n);

/* What both, the transfer and its content, say. */
struct world_status {
    bool joining, comes, giving;
    qn_node_t donor;
    uint64_t keys, joined, given, attempts;
    uint64_t cut_bytes, cut_bytes_max, cut_bytes_most, cuts_anew;
};
struct world_status status_of(const struct node *n);
void expect_same(const struct node *a, const struct node *b);
void expect_no_snapshot_iter_active(void);
void expect_no_snapshot_iter(void);

#endif
