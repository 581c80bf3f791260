#ifndef QN_TESTS_UNIT_PAXOS_DRIVER_WORLD_H
#define QN_TESTS_UNIT_PAXOS_DRIVER_WORLD_H

/**
 * A whole group of real drivers in one thread, over the real transport and
 * private memory, in virtual time; nodes are killed, come back as new
 * incarnations, and get snapshots.
 *
 * Every applied command is checked on the spot: all nodes apply one history,
 * each command of an origin once and in order, a slot's stamp never falls,
 * nothing is exposed before it is published, and nobody finds a smaller read
 * index than was published. A snapshot takes its receiver to
 * the donor's place in the history. By message every node reads in some of its
 * turns, and no read is answered that misses what anybody had applied before it
 * came.
 */

#include <setjmp.h>

#include "core/device.h"
#include "core/machine/machine.h"
#include "core/topo/tree.h"
#include "paxos/driver/driver.h"
#include "paxos/feed/feed.h"

struct qn_transport;

#define WORLD_NODES   8u
#define WORLD_CELLS   64u
#define WORLD_HISTORY 262144u
#define WORLD_LIVES   512u
#define WORLD_OWNERS  256u

/** Memory of an incarnation that has ended, while somebody keeps it. */
struct world_life {
    qn_node_t node;
    uint64_t inc;
    struct qn_outbox *outbox;
    void *ring_mem;
    struct qn_ring ring;
    void *arena_mem;             /* NULL: without arenas */
    struct qn_arena arena, seen; /* its writer's; as others see it */
};

#define WORLD_READS 64u /* newest questions whose floor is known */

/** Reads of that number must see all slots up to `slot`. */
struct world_floor {
    uint64_t number;
    qn_slot_t slot;
};

struct world_member {
    const struct qn_alloc *alloc; /* of all its lives; NULL: malloc's */
    struct qn_driver *driver;     /* NULL: dead */
    struct qn_feed *feed;         /* NULL: dead, or the world has none */
    uint64_t inc;
    struct world_life incarnation;
    struct qn_device *device; /* NULL: lanes, or dead */
    struct qn_qp *direct[WORLD_NODES], *tree[WORLD_NODES];
    struct qn_doorbell doorbell;
    struct qn_doorbell_handle ringer[WORLD_NODES];
    void *vote_record;
    jmp_buf *fence; /* it is fenced before it writes there; NULL: not */
    /* the replicated service: a place in the history */
    uint32_t count;
    qn_slot_t slot;    /* last whole one */
    qn_slot_t exposed; /* last one of which it has applied anything */
    uint64_t stamp_ms;
    struct qn_session session[WORLD_NODES];
    struct {
        int err;
        uint32_t left;           /* commands that are answered so */
        qn_slot_t from;          /* the first slot of these */
        bool inside;             /* not the first one of a slot */
    } fails;                     /* with world.may_fail */
    uint32_t refused;            /* commands that were */
    bool stopped;                /* takes no turns */
    bool suspended;              /* applies nothing (qn_driver_suspend_apply) */
    bool coming;                 /* it lives, and has no driver yet */
    bool deaf;                   /* hears of no end and of no new incarnation */
    uint64_t heard[WORLD_NODES]; /* newest incarnation of each that it has heard
                                    of */
    struct world_floor floor[WORLD_READS]; /* by number of the question */
    uint64_t wanted, reached; /* numbers: asked for, answered and checked */
    bool need_snapshot;       /* said so, and has got none yet */
    bool blank;               /* no record is kept (as if it were lost) */
    uint64_t submitted;       /* by this incarnation */
    bool wrote;               /* the word lies open for it */
    uint64_t owned;           /* epochs that it has announced */
};

struct world {
    /* options, set before world_start */
    uint32_t nodes;
    uint64_t voters; /* mask: they begin the group, and the other seats are
                        vacant at first; 0: all begin it */
    bool memory;     /* acceptor; else a process */
    bool messages;   /* no node reads another's outbox */
    const struct qn_transport *transport; /* NULL: UMP */
    const char *topology;                 /* NULL: sequential */
    struct qn_machine *costs;   /* owned; plans the tree instead; NULL: not */
    struct qn_tree plan;        /* is the tree instead; n = 0: not */
    uint32_t ring, ring_from;   /* as of a driver; 0: none */
    uint32_t ring_slots;        /* 0: many */
    struct qn_flow_limits flow; /* all 0: for so many nodes, and this ring; who
                                   stops is awaited for 20 ms */
    uint64_t ring_bytes;
    uint32_t cells;       /* of a lane: WORLD_CELLS */
    uint64_t arena_bytes; /* 0: commands travel through the lanes */
    uint64_t seed;
    bool snapshots_by_hand;   /* not at once */
    bool may_fail;            /* the service has try_apply */
    struct qn_feed_opts feed; /* of each; `subscribers` 0: none */
    bool shared_cores;        /* the parameters of that column */
    bool silent;              /* no node reads */
    uint64_t readers;         /* random: which node reads when */
    qn_slot_t shown;          /* a node has applied a part of it */
    bool wild; /* somebody writes nonsense: the read index may be cut */
    /* state */
    void *device_memory; /* of the group; NULL: lanes */
    struct qn_device_opts device_opts;
    bool begun;
    struct world_member member[WORLD_NODES];
    qn_a64 read_index;
    struct qn_pair word;
    struct {
        uint64_t epoch, inc; /* inc 0: none */
        qn_node_t node;
    } owner[WORLD_OWNERS]; /* as the commons keep them, by epoch */
    qn_time_t now;
    uint64_t lives; /* incarnations given */
    struct {
        uint64_t inc, seq;
        qn_node_t origin;
        qn_slot_t slot;
    } history[WORLD_HISTORY];
    uint32_t history_count;
    struct world_life old[WORLD_LIVES];
    uint32_t old_count;
    uint32_t installs;
};

/** A fresh world on the heap; world_end frees it. */
struct world *world_make(uint32_t nodes, bool memory);
void world_start(struct world *w);
void world_end(struct world *w);

/** Turns of all that run, 100 us apart. */
void world_rounds(struct world *w, uint32_t count);
void world_turn(struct world *w, qn_node_t i);

bool world_submit(struct world *w, qn_node_t i, const void *bytes, size_t len);
void world_submit_number(struct world *w, qn_node_t i, uint64_t x);

/** The process of i ends between two turns; nobody is told. */
void world_kill(struct world *w, qn_node_t i);
/** `at` hears that i has ended. */
void world_tell(struct world *w, qn_node_t at, qn_node_t i);
/** kill, and all hear of it. */
void world_lose(struct world *w, qn_node_t i);
/** i comes back as a new incarnation without state, or takes a seat that was
 *  vacant; all living are told. */
void world_restart(struct world *w, qn_node_t i);
/** Likewise, but so far that incarnation has only its memory: it has not begun.
 */
void world_come(struct world *w, qn_node_t i);
/** It begins. */
void world_arrive(struct world *w, qn_node_t i);
/** `at` hears of the present incarnation of i. */
void world_hear(struct world *w, qn_node_t at, qn_node_t i);
/** `at` hears of all that it has missed. */
void world_catch_up(struct world *w, qn_node_t at);
/** i gets a snapshot of donor. @return false: not now, or it does not help. */
bool world_install(struct world *w, qn_node_t i, qn_node_t donor);
/** i applies nothing from now on, or again. @return false: not now, it is in
 *  the middle of a slot. */
bool world_suspend_apply(struct world *w, qn_node_t i, bool suspended);
/** All that run suspect `mask`. */
void world_suspect(struct world *w, uint64_t mask);

struct qn_driver_status world_status(const struct world *w, qn_node_t i);

/** Rounds until all that run have applied all that they submitted, and equally
 *  much; fails if `rounds` do not do. */
void world_settle(struct world *w, uint32_t rounds);
bool world_settled(const struct world *w);

/** Could i go on alone from the ring of the word's owner (memory): has it
 *  mapped it, and applied what it does not keep? As the world sees it. */
bool world_in_sync(const struct world *w, qn_node_t i);

/* Voters that come and go. Memory acceptor. */

/** A group of `nodes` seats with these voters has begun. */
struct world *world_seats(uint32_t nodes, uint64_t voters);
/** The present incarnation of a node is to be a voter, or is removed. */
struct qn_driver_change world_change(const struct world *w, qn_node_t node,
                                     bool votes);
/** `at` gets the order. @return as qn_driver_change. */
int world_order(struct world *w, qn_node_t at,
                const struct qn_driver_change *c);
int world_order_of(struct world *w, qn_node_t at, qn_node_t node, bool votes);
/** Rounds until the order that `at` has is done; then these are the voters. */
void world_ordered(struct world *w, qn_node_t at, uint64_t voters);
void world_becomes_voter(struct world *w, qn_node_t node);

/* What most stories need. */

/** A world that has begun, with its defaults. */
struct world *world_begin(uint32_t nodes, bool memory);
/** Some commands of everybody that runs. */
void world_load(struct world *w, uint32_t commands);
/** A load, until it is applied. */
void world_go_on(struct world *w);
/** What `to` has not read of `from` yet is lost. */
void world_wipe(struct world *w, qn_node_t from, qn_node_t to,
                enum qn_lane lane);
/** LEARN comes down the right tree: sooner than any gap is looked for. */
void world_learns_at_once(struct world *w);

/* Between the two sources. */

void world_life_make(struct world *w, qn_node_t i);
void world_life_free(const struct world *w, struct world_life *l);
/** Attach the device, if there is one, to all that live. */
void world_device_attach(struct world *w, qn_node_t i);
/** One end of the channels between i and p. */
void world_channel_open(struct world *w, qn_node_t i, qn_node_t p);
void world_channel_close(struct world_member *m, qn_node_t p);
void world_driver_start(struct world *w, qn_node_t i, bool first);

/** Next number below n of the seeded sequence. */
uint64_t world_random(struct world *w, uint64_t n);

#endif
