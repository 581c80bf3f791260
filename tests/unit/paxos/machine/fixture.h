#ifndef QN_TESTS_PAXOS_FIXTURE_H
#define QN_TESTS_PAXOS_FIXTURE_H

/**
 * One machine under test: steps it, keeps its latest outputs for the test to
 * look at, and records what it applied. Messages are handed over by the test.
 */

#include "paxos/machine/memory_acceptor.h"
#include "paxos/machine/onepaxos.h"

struct fx_applied {
    qn_slot_t slot;
    uint64_t stamp_ms;
    qn_node_t origin;
    uint64_t seq;
    bool mine;
    char text[24];
};

struct fx {
    struct qn_onepaxos *p;
    struct qn_step_out out; /* of the latest step; references kept till next */
    struct qn_step_out prev;
    qn_time_t now;
    uint64_t wall_ms;
    struct qn_alloc alloc;
    int64_t memory_left; /* calls of the allocator until it fails */
    uint32_t applied_count;
    qn_slot_t slots; /* whole slots applied */
    struct fx_applied applied[512];
};

/** Refbufs that live in all machines together: they pass them on. */
extern int64_t fx_refbufs;

/** Small numbers: ring 64, window 4, batch 4 commands, queue 12. */
struct qn_params fx_params(void);

/** A machine `self` of `nodes`; incarnation of node i is 10 + i. */
void fx_make(struct fx *f, qn_node_t self, uint32_t nodes,
             const struct qn_params *v);

/** With the memory acceptor, if `s` is not NULL. */
void fx_make_shared(struct fx *f, qn_node_t self, uint32_t nodes,
                    const struct qn_params *v, struct qn_memory_acceptor *s);

/** A group with `nodes` seats: those in `voters`, a mask, are taken, the others
 *  are vacant. */
void fx_make_seats(struct fx *f, qn_node_t self, uint32_t nodes,
                   uint64_t voters, const struct qn_params *v,
                   struct qn_memory_acceptor *s);

/** With seats, from a snapshot. */
void fx_make_resumed(struct fx *f, qn_node_t self, uint32_t nodes,
                     uint64_t voters, const struct qn_params *v,
                     struct qn_memory_acceptor *s, const struct qn_resume *r);

/** With arenas. */
void fx_make_uploads(struct fx *f, qn_node_t self, uint32_t nodes,
                     const struct qn_params *v, const struct qn_uploads *u);

void fx_up(struct fx *f, qn_node_t peer, uint64_t inc);

/** Ends it. */
void fx_end(struct fx *f);

int fx_submit(struct fx *f, const char *text);
int fx_recv(struct fx *f, qn_node_t from, const struct qn_msg *m);
void fx_fragment(struct fx *f, qn_node_t from, uint8_t kind, qn_slot_t slot);
void fx_beat(struct fx *f, qn_node_t peer, qn_slot_t applied,
             qn_slot_t learned);
void fx_room(struct fx *f, uint64_t peers);
void fx_down(struct fx *f, qn_node_t peer);
/** `node` is to vote, or to be removed. */
int fx_seat(struct fx *f, qn_node_t node, bool votes, bool forced);
int fx_seat_of(struct fx *f, struct qn_voter_change s);
void fx_suspect(struct fx *f, uint64_t peers);
void fx_stamp(struct fx *f);
void fx_tick(struct fx *f);
void fx_go(struct fx *f);
/** Reads have come; or may still wait. */
void fx_read(struct fx *f, bool fresh);
/** Advance the clock, then TICK. */
void fx_later(struct fx *f, qn_time_t ns);

/** The k-th message of a kind among the latest outputs; NULL if none. */
const struct qn_msg *fx_sent(const struct fx *f, uint8_t kind, uint32_t k);
/** To whom it goes; QN_NODES_MAX for BCAST. */
qn_node_t fx_to(const struct fx *f, uint8_t kind, uint32_t k);
uint32_t fx_count(const struct fx *f, uint8_t kind);
struct qn_onepaxos_status fx_status(const struct fx *f);

/** A batch of commands text[0..n) of `origin`, from sequence `first`. */
struct qn_refbuf *fx_batch(qn_node_t origin, uint64_t first,
                           const char *const *text, uint32_t n);
/** Messages about it; they own nothing. */
struct qn_msg fx_accept(qn_slot_t slot, const struct qn_refbuf *batch);
struct qn_msg fx_learn(qn_slot_t slot, const struct qn_refbuf *batch,
                       qn_slot_t hi);
/** A request of commands; the refbuf it lies in is *owner, to be dropped. */
struct qn_msg fx_request(uint64_t first, const char *const *text, uint32_t n,
                         struct qn_refbuf **owner);

/** The batch of slot s: one command of node 0, "x", sequence s. */
struct qn_refbuf *fx_slot_batch(qn_slot_t s);
/** It comes by LEARN from node 1; by FILL from `from`. */
void fx_learn_slot(struct fx *f, qn_slot_t s, qn_slot_t hi);
void fx_fill_slot(struct fx *f, qn_node_t from, qn_slot_t s, qn_slot_t hi,
                  bool last);

#endif
