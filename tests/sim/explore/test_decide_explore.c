/*
 * The leader of the memory acceptor decides, and may end in front of any
 * operation of that: what the word calls decided is whole in its ring all the
 * same (PROTOCOL.md 5.2, `accept`). And the other order of the two stores, M2,
 * is found.
 *
 * The leader is the real machine; its memory comes from one piece, which the
 * next run uses again, since it may end anywhere.
 */
#include <stdlib.h>
#include <string.h>

#include "core/sim/explore/explore.h"
#include "paxos/machine/onepaxos.h"
#include "paxos/mutant.h"
#include "tests/support/test.h"

#define NODES    3u
#define COMMANDS 2u /* a slot each */
#define SLOTS    8u
#define CAPACITY 1024u
#define RING     2048u
#define HEAP     (1u << 20)

enum qn_mutant qn_mutant;

static uint8_t *heap, *ring_mem;
static size_t heap_used;
static struct qn_pair word;
static struct qn_memory_acceptor shared;
static struct qn_step_out out;
static struct qn_onepaxos *leader;

/** Nothing is given back; a piece that grows moves. */
static void *resize(void *ctx, void *p, size_t bytes)
{
    (void)ctx;
    if (bytes == 0) {
        return NULL;
    }
    cr_assert_leq(heap_used + bytes, HEAP);
    uint8_t *at = heap + heap_used;
    heap_used += qn_align_up(bytes, 64);
    if (p != NULL) { /* it lies below, so this reads nothing but the heap */
        memmove(at, p, QN_MIN(bytes, (size_t)(at - (uint8_t *)p)));
    }
    return at;
}

static const struct qn_alloc pieces = {resize, NULL};

static const struct qn_ring *no_ring(void *ctx, qn_node_t node, uint64_t inc)
{
    (void)ctx, (void)node, (void)inc;
    return NULL;
}

static void setup(void *ctx)
{
    (void)ctx;
    static const uint64_t inc[NODES] = {100, 101, 102};
    const struct qn_ring_opts r = {.slots = SLOTS, .capacity = CAPACITY};
    memset(ring_mem, 0, RING);
    memset(heap, 0, HEAP);
    heap_used = 0;
    word = (struct qn_pair){0};
    shared =
        (struct qn_memory_acceptor){.accept_register = &word, .ring = no_ring};
    qn_ring_open(&shared.own, ring_mem, &r);
    qn_ring_begin(&shared.own, 1);
    struct qn_onepaxos_opts o = {.nodes = NODES,
                                 .incarnation = inc,
                                 .alloc = &pieces,
                                 .params = qn_params_default(true),
                                 .seed = 1,
                                 .memory = &shared};
    o.params.ring = 64;
    o.params.queue = 64;
    o.params.batch_commands = 1;
    leader = qn_onepaxos_init(resize(NULL, NULL, qn_onepaxos_size(&o)), &o);
    const struct qn_slice part = {(const uint8_t *)"x", 1};
    const struct qn_input in = {.kind = QN_IN_SUBMIT, .submit = {&part, 1}};
    for (uint32_t i = 0; i < COMMANDS; i++) {
        cr_assert_eq(qn_onepaxos_step(leader, &in, QN_S, 1, &out), QN_OK);
        qn_step_out_release(&out);
    }
}

static void decide(void *ctx)
{
    (void)ctx;
    const struct qn_input tick = {.kind = QN_IN_TICK};
    (void)qn_onepaxos_step(leader, &tick, QN_S, 1, &out);
}

/** As the next owner would. */
static const char *all_is_there(void *ctx)
{
    (void)ctx;
    struct qn_ring ring;
    const struct qn_ring_opts r = {.slots = SLOTS, .capacity = CAPACITY};
    qn_ring_open(&ring, ring_mem, &r);
    const struct qn_accept_register w = qn_memory_acceptor_load(&shared);
    if (qn_sim_end_of(0) == QN_SIM_DONE && w.hi != COMMANDS) {
        return "not all was decided";
    }
    for (qn_slot_t s = 1; s <= w.hi; s++) {
        struct qn_refbuf *b = NULL;
        qn_epoch_t epoch = 0;
        if (qn_ring_read(&ring, s, &pieces, &epoch, &b) != QN_OK) {
            return "decided, and nowhere to be read";
        }
        const struct qn_slice bytes = {b->bytes, b->len};
        if (qn_batch_check(bytes) != QN_OK || qn_batch_count(bytes) != 1) {
            return "decided, and another batch";
        }
    }
    return NULL;
}

static bool clean(enum qn_explore_memory in, enum qn_mutant m,
                  struct qn_explored *found)
{
    const struct qn_explore_opts o = {.nodes = 1,
                                      .node = {decide},
                                      .setup = setup,
                                      .check = all_is_there,
                                      .memory = in,
                                      .deviations = 2,
                                      .kills = 1};
    heap = aligned_alloc(64, HEAP);
    ring_mem = aligned_alloc(QN_CACHELINE, RING);
    cr_assert_leq(qn_ring_bytes(SLOTS, CAPACITY), RING);
    qn_mutant = m;
    bool good = qn_explore(&o, found);
    free(heap);
    free(ring_mem);
    return good;
}

Test(decide_explore, what_is_decided_is_in_the_ring, .timeout = 120)
{
    for (enum qn_explore_memory m = QN_EXPLORE_TSO; m <= QN_EXPLORE_C11; m++) {
        struct qn_explored found;
        cr_assert(clean(m, QN_MUTANT_NONE, &found), "memory %d: %s at %s",
                  (int)m, found.fault, found.choices);
        cr_assert(found.complete);
        cr_assert_gt(found.runs, 10); /* one for each store at least */
    }
}

Test(decide_explore, a_ring_that_is_written_after_the_cas_is_found,
     .timeout = 120)
{
    for (enum qn_explore_memory m = QN_EXPLORE_TSO; m <= QN_EXPLORE_C11; m++) {
        struct qn_explored found;
        cr_assert(!clean(m, QN_MUTANT_RING_AFTER, &found));
        cr_assert_str_eq(found.fault, "decided, and nowhere to be read");
    }
}
