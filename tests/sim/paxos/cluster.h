#ifndef QN_TESTS_SIM_CLUSTER_H
#define QN_TESTS_SIM_CLUSTER_H

/**
 * N real machines in one thread, the packets between them, and a global view
 * that checks the invariants of PROTOCOL.md 7 after every step. Who decides
 * what happens next is the simulator (sim.c, by a seed) or a scenario file.
 *
 * Every message is encoded and decoded on its way. A violated invariant
 * prints what, and aborts; replay.h adds the command that replays the run.
 */

#include "paxos/halt/verdict.h"
#include "paxos/machine/onepaxos.h"
#include "tests/sim/paxos/coverage.h"
#include "tests/sim/paxos/run_trace.h"

#define CLUSTER_SLOTS    65536u /* decided in one run, at most */
#define CLUSTER_COMMANDS 262144u
#define CLUSTER_ENTRIES  4096u
#define CLUSTER_LIVES    1024u
#define CLUSTER_VOID     0u /* hash of a slot that was given up */

struct packet {
    struct packet *next;
    qn_node_t from, to;
    qn_time_t due;
    size_t len;
    uint8_t bytes[];
};

/** Packets of one ordered pair of nodes and one lane, oldest first. */
struct lane {
    struct packet *head, **tail;
    struct qn_joiner joiner; /* at the receiver; direct lane only */
    struct qn_msg parked;    /* joined, but refused for now */
    bool is_parked;
};

struct command {
    qn_node_t origin;
    uint64_t inc;
    uint64_t seq;
};

/** What outlives an incarnation. */
struct record {
    struct qn_vote vote;
    struct qn_ul_entry log[CLUSTER_ENTRIES];
    uint32_t count;
    bool lost; /* and nothing was written since */
};

/** The ring of one incarnation; it stays until the end. */
struct memory {
    struct cluster *c;
    qn_node_t node;
    uint64_t inc;
    uint8_t *mem;
    uint64_t granted; /* bytes of it that were asked for */
    uint64_t ended;   /* lives that had begun when its own ended; else all */
    struct qn_ring ring;
};

/** The arena of one incarnation; it stays until the end. */
struct upload {
    qn_node_t node;
    uint64_t inc;
    void *mem;
    struct qn_arena arena; /* as others see it */
};

#define CLUSTER_READS 64u /* newest questions whose floor is known */

/** The reads of one number must see all slots up to `slot`. */
struct read_floor {
    uint64_t number;
    qn_slot_t slot;
};

/** Reads of one incarnation (cluster_reads.c). */
struct member_reads {
    struct read_floor floor[CLUSTER_READS]; /* by number */
    uint64_t answered, reached;             /* checked so far */
};

struct member {
    struct cluster *cluster;
    struct qn_onepaxos *p; /* NULL: dead */
    uint64_t inc;
    struct record record;
    struct qn_memory_acceptor shared; /* memory acceptor */
    bool claimed;                     /* the word */
    struct qn_arena arena;            /* with uploads: its writer's */
    struct qn_uploads uploads;
    struct qn_step_out out;
    uint32_t applied;                    /* commands */
    qn_slot_t slot;                      /* last whole slot applied */
    uint64_t stamp;                      /* of the last apply */
    struct qn_session seq[QN_NODES_MAX]; /* last applied of each origin */
    qn_slot_t learned;                   /* checked so far */
    qn_slot_t accepted;                  /* likewise, as acceptor */
    bool active;                         /* was ACTIVE after its last step */
    qn_time_t deadline;
    uint64_t transfers;
    bool need_snapshot;
    struct member_reads reads;
};

struct cluster {
    uint32_t nodes;
    qn_time_t now;
    uint64_t wall_ms;
    struct qn_params params;
    struct member member[QN_NODES_MAX];
    struct lane direct[QN_NODES_MAX][QN_NODES_MAX]; /* [from][to] */
    struct lane tree[QN_NODES_MAX][QN_NODES_MAX];   /* [from][to] */
    uint64_t decided[CLUSTER_SLOTS];                /* hash by slot */
    qn_slot_t decided_hi;
    qn_slot_t shown; /* a member has applied a part of it */
    struct qn_session decided_seq[QN_NODES_MAX]; /* last in the decided log */
    uint64_t lives;                              /* incarnations given so far */
    uint32_t epochs; /* leaders that became ACTIVE */
    bool in_memory;  /* the acceptor; else it is a process */
    uint64_t voters; /* mask: they begin the group; 0: all, and none comes or
                        goes */
    uint32_t ring_slots;
    uint64_t ring_bytes, ring_span, ring_keep;
    uint64_t refused; /* times that a ring was to grow and could not */
    bool full;        /* a ring is as long as it may be */
    struct qn_pair word;
    struct qn_accept_register
        checked;                     /* value of the word after the last step */
    uint64_t owner[CLUSTER_ENTRIES]; /* incarnation that announced an epoch */
    struct memory memory[CLUSTER_LIVES];
    uint32_t memory_count;
    size_t arena_bytes; /* of an incarnation; 0: commands travel in requests */
    struct upload upload[CLUSTER_LIVES];
    uint32_t upload_count;
    struct qn_ul_entry entry[CLUSTER_ENTRIES]; /* the utility log */
    uint32_t entries;
    bool led[CLUSTER_ENTRIES];        /* its leader became ACTIVE */
    uint64_t ended[QN_NODES_MAX];     /* incarnation whose vote was ended ... */
    qn_time_t ended_at[QN_NODES_MAX]; /* ... and when; 0: it has heard of it */
    bool forced;                      /* recovered, and no node has led since */
    qn_epoch_t stopped; /* a node has the verdict that the group has stopped, in
                           this epoch; 0: not so */
    struct qn_ul_entry
        ghost[QN_NODES_MAX]; /* what the dead have proposed ... */
    uint32_t ghosts;         /* ... for the next index */
    struct command history[CLUSTER_COMMANDS];
    uint32_t history_count;
    size_t fragment_bytes;  /* longer messages travel in fragments */
    struct qn_alloc alloc;  /* of all machines */
    uint32_t out_of_memory; /* of 1000 allocations fail; see rng */
    int64_t refbufs;        /* live */
    uint64_t rng;
    uint64_t luck;            /* of records: a sequence of its own */
    uint64_t trace;           /* hash of all steps so far */
    struct coverage *cover;   /* NULL: not counted */
    struct run_trace *record; /* of each step; NULL: not recorded */
    uint64_t doomed; /* mask: dies in its next step, between two outputs */
    /** When a packet leaves; may drop it (false) or set due. */
    bool (*on_send)(struct cluster *c, struct packet *k, bool tree);
    /** Before the outputs of a step are executed; NULL: none. */
    void (*on_outputs)(struct cluster *c, qn_node_t node);
    /** A doomed node has made a step: may it die now? */
    bool (*on_doom)(struct cluster *c, qn_node_t node);
    void *ctx;
};

/** All fields of opts (nodes, params, callbacks, ...) set before. */
void cluster_start(struct cluster *c);
void cluster_end(struct cluster *c);

/** One step of a node; executes its outputs and checks everything.
 *  @return what qn_onepaxos_step returned (QN_ENOMEM, QN_EAGAIN are fine). */
int cluster_step(struct cluster *c, qn_node_t node, const struct qn_input *in);

int cluster_submit(struct cluster *c, qn_node_t node, const char *text,
                   size_t len);
void cluster_tick(struct cluster *c, qn_node_t node); /* and while again */
/** The incarnation of a node ends: of what it sent on each lane the first
 * packets arrive, a random number below `keep`. The others are told by
 *  cluster_down. */
void cluster_kill(struct cluster *c, qn_node_t node, uint64_t keep);
/** It comes back as a new incarnation, with its record and a snapshot of
 * `donor`; all others are told. @return false: the donor is in the middle of a
 * slot. */
bool cluster_restart(struct cluster *c, qn_node_t node, qn_node_t donor);
/** `node` gets a snapshot of `donor`, if that helps. */
void cluster_install(struct cluster *c, qn_node_t node, qn_node_t donor);
/** All but `node` end at once, what they sent is received or lost, and it goes
 *  on from what it has learned: what was decided above is none any more. With
 *  the memory acceptor those slots are void: nobody ever applies them. */
void cluster_recover(struct cluster *c, qn_node_t node);
/** The record of a dead node is damaged, if a majority of the others' is not.
 */
void cluster_lose_record(struct cluster *c, qn_node_t node);
/** Memory acceptor: can the group go on, as its members' outboxes say? */
struct qn_verdict cluster_verdict(const struct cluster *c);
/** Everything decided can be had from this node and the ring. */
bool cluster_in_sync(const struct cluster *c, qn_node_t node);
void cluster_down(struct cluster *c, qn_node_t node, qn_node_t peer);
/** `node`, which may lead, is to make `peer` a voter, or to remove it. */
void cluster_seat(struct cluster *c, qn_node_t node, qn_node_t peer, bool votes,
                  bool forced);
/** Node i is a voter, as far as any living node or the newest entry says. */
bool cluster_votes(const struct cluster *c, qn_node_t i);
/** `node` is told to relieve the leader. */
void cluster_lead(struct cluster *c, qn_node_t node);
/** Reads come to `node`, fresh or such as may still wait (process acceptor).
 */
void cluster_read(struct cluster *c, qn_node_t node, bool fresh);
void cluster_suspect(struct cluster *c, qn_node_t node, uint64_t peers);
void cluster_room(struct cluster *c, qn_node_t node, uint64_t peers);
/** `node` reads the position of `peer`. */
void cluster_beat(struct cluster *c, qn_node_t node, qn_node_t peer);
/** `node` tells all others its position, as nodes without a commons do. */
void cluster_say_beat(struct cluster *c, qn_node_t node);
/** `node` may apply at most `commands` more (qn_onepaxos_set_apply_budget). */
void cluster_allow(struct cluster *c, qn_node_t node, uint64_t commands);
/** `node` is to leave a pause after each slot; see
 * qn_onepaxos_set_propose_interval. */
void cluster_slow(struct cluster *c, qn_node_t node, qn_time_t gap);

/** Deliver the oldest packet of a lane. @return false: nothing delivered
 *  (empty, or refused for now). */
bool cluster_deliver(struct cluster *c, struct lane *l, bool tree);
void cluster_drop(struct cluster *c, struct lane *l);

_Noreturn void cluster_fail(const struct cluster *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/** Next number below n (n > 0) of the seeded sequence (splitmix64). Here, since
 * n is a constant in most calls, and a sixth of all time was its division. */
static inline uint64_t cluster_random(struct cluster *c, uint64_t n)
{
    uint64_t z = (c->rng += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % n;
}

#endif
