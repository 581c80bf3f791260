/*
 * Two members take over the accept register at the same time, while the old
 * owner still decides or has ended, and any of the three may end in front of
 * any operation (PROTOCOL.md 5.3, `take_over`): an epoch has one owner, and
 * what was decided lies, as it was decided, in the ring of the owner that the
 * word names.
 *
 *     RIVALS  entry 1 names node 1, and node 2 knows of entry 2, which names it
 *     TWINS   both take entry 1 for theirs: the utility log was wrong
 *
 * The members are real machines; their memory comes from one piece, which the
 * next run uses again, since they may end anywhere.
 */
#include <stdlib.h>
#include <string.h>

#include "core/sim/explore/explore.h"
#include "paxos/machine/onepaxos_internal.h"
#include "paxos/mutant.h"
#include "tests/support/test.h"

#define NODES    3u
#define EPOCHS   3u
#define SLOTS    8u
#define CAPACITY 1024u
#define RING     2048u
#define HEAP     (1u << 20)
#define TURNS    3u

enum qn_mutant qn_mutant;

static struct {
    bool twins;
    bool announced; /* who moves the word says so first */
    uint8_t *heap, *ring_mem;
    size_t heap_used;
    struct qn_pair word;
    struct qn_pair owner[EPOCHS]; /* {epoch + 1, life} */
    struct qn_memory_acceptor shared[NODES];
    struct qn_step_out out[NODES];
    struct qn_onepaxos *node[NODES];
} w;

/** Nothing is given back; a piece that grows moves. */
static void *resize(void *ctx, void *p, size_t bytes)
{
    (void)ctx;
    if (bytes == 0) {
        return NULL;
    }
    cr_assert_leq(w.heap_used + bytes, HEAP);
    uint8_t *at = w.heap + w.heap_used;
    w.heap_used += qn_align_up(bytes, 64);
    if (p != NULL) { /* it lies below, so this reads nothing but the heap */
        memmove(at, p, QN_MIN(bytes, (size_t)(at - (uint8_t *)p)));
    } else {
        memset(at, 0, bytes);
    }
    return at;
}

static const struct qn_alloc pieces = {resize, NULL};

static uint64_t life(qn_node_t i)
{
    return 100 + i;
}

static const struct qn_ring *ring_of(void *ctx, qn_node_t node, uint64_t inc)
{
    (void)ctx;
    return inc == life(node) ? &w.shared[node].own : NULL;
}

/** First come (qn_commons_owner_set). */
static bool owns(void *ctx, qn_epoch_t epoch)
{
    const struct qn_memory_acceptor *s = ctx;
    struct qn_pair *at = &w.owner[epoch];
    uint64_t mine = life((qn_node_t)(s - w.shared));
    uint64_t first;
    uint64_t inc;
    (void)qn_cas_pair(at, 0, 0, (uint64_t)epoch + 1, mine);
    qn_load_pair(at, &first, &inc);
    return inc == mine;
}

/* --------------------------------------------------------------- members -- */

static void step(qn_node_t i, const struct qn_input *in, qn_time_t now)
{
    /* Each stamps with a clock of its own: batches without commands differ. */
    (void)qn_onepaxos_step(w.node[i], in, now, 1000 * (i + 1), &w.out[i]);
}

static void tick(qn_node_t i, uint32_t turns)
{
    const struct qn_input in = {.kind = QN_IN_TICK};
    for (uint32_t n = 1; n <= turns; n++) {
        step(i, &in, QN_S + n * QN_MS);
    }
}

static void submit(qn_node_t i)
{
    const struct qn_slice part = {(const uint8_t *)"x", 1};
    const struct qn_input in = {.kind = QN_IN_SUBMIT, .submit = {&part, 1}};
    step(i, &in, QN_S);
}

static void hears_of(qn_node_t i, uint32_t index, qn_node_t leader)
{
    const struct qn_ul_entry e = {.index = index,
                                  .kind = QN_UL_LEADER,
                                  .tenure = index,
                                  .leader = (uint8_t)leader,
                                  .acceptor = (uint8_t)leader,
                                  .leader_inc = life(leader),
                                  .acceptor_inc = life(leader)};
    uint8_t ul[QN_UL_BYTES];
    qn_ul_encode(&e, ul);
    const struct qn_msg m = {
        .kind = QN_MSG_U_CHOSEN, .epoch = index, .body = {ul, sizeof ul}};
    const struct qn_input in = {.kind = QN_IN_RECV, .recv = {0, &m}};
    step(i, &in, QN_S);
}

static void member_make(qn_node_t i)
{
    static const uint64_t inc[NODES] = {100, 101, 102};
    const struct qn_ring_opts r = {.slots = SLOTS, .capacity = CAPACITY};
    struct qn_memory_acceptor *s = &w.shared[i];
    *s = (struct qn_memory_acceptor){.accept_register = &w.word,
                                     .ring = ring_of,
                                     .owner = w.announced ? owns : NULL,
                                     .ctx = s};
    qn_ring_open(&s->own, w.ring_mem + (size_t)i * RING, &r);
    qn_ring_begin(&s->own, 1);
    struct qn_onepaxos_opts o = {.self = i,
                                 .nodes = NODES,
                                 .incarnation = inc,
                                 .alloc = &pieces,
                                 .params = qn_params_default(true),
                                 .seed = 1,
                                 .memory = s};
    o.params.ring = 64;
    o.params.queue = 64;
    o.params.batch_commands = 1;
    w.node[i] = qn_onepaxos_init(resize(NULL, NULL, qn_onepaxos_size(&o)), &o);
}

static void setup(void *ctx)
{
    (void)ctx;
    memset(w.ring_mem, 0, (size_t)NODES * RING);
    memset(w.owner, 0, sizeof w.owner);
    w.heap_used = 0;
    w.word = (struct qn_pair){0};
    for (qn_node_t i = 0; i < NODES; i++) {
        member_make(i);
    }
    submit(0);
    tick(0, 1);
    cr_assert_eq(w.word.second, 1);
    submit(0); /* it decides that meanwhile, if it lives */
}

static void old_owner(void *ctx)
{
    (void)ctx;
    tick(0, 1);
}

static void first(void *ctx)
{
    (void)ctx;
    hears_of(1, 1, 1);
    tick(1, TURNS);
}

static void second(void *ctx)
{
    (void)ctx;
    hears_of(2, 1, w.twins ? 2 : 1);
    if (!w.twins) {
        hears_of(2, 2, 2);
    }
    tick(2, TURNS);
}

/* ----------------------------------------------------------------- check -- */

/** Who owns the word's epoch: as announced, or else as all that lead say. */
static const struct qn_ring *newest_ring(struct qn_accept_register at)
{
    uint64_t inc = at.epoch == 0 ? life(0) : w.owner[at.epoch].second;
    if (inc == 0) {
        return &w.shared[at.epoch].own; /* RIVALS: entry i names node i */
    }
    return &w.shared[inc - life(0)].own;
}

static const char *learned_is(const struct qn_onepaxos *p, qn_slot_t s,
                              const struct qn_refbuf *b)
{
    if (!qn_log_holds(&p->log, s) ||
        qn_log_at(&p->log, s)->state != QN_SLOT_LEARNED) {
        return NULL;
    }
    const struct qn_refbuf *has = qn_log_at(&p->log, s)->batch;
    bool same = has->len == b->len && memcmp(has->bytes, b->bytes, b->len) == 0;
    return same ? NULL : "a decided slot has changed";
}

static const char *one_log(void *ctx)
{
    (void)ctx;
    const struct qn_accept_register at = qn_memory_acceptor_load(&w.shared[0]);
    uint32_t leaders = 0;
    for (qn_node_t i = 0; i < NODES; i++) {
        if (w.node[i]->acceptor.promised > at.epoch) {
            return "the word has fallen";
        }
        leaders += w.node[i]->leader.role == QN_ACTIVE &&
                   w.node[i]->leader.ep == at.epoch;
    }
    if (leaders > 1) {
        return "an epoch has two leaders";
    }
    if (w.twins && !w.announced) {
        return NULL; /* nobody can tell whose ring it is */
    }
    for (qn_slot_t s = 1; s <= at.hi; s++) {
        struct qn_refbuf *b = NULL;
        qn_epoch_t epoch = 0;
        if (qn_ring_read(newest_ring(at), s, &pieces, &epoch, &b) != QN_OK) {
            return "a decided slot is not in the owner's ring";
        }
        for (qn_node_t i = 0; i < NODES; i++) {
            const char *wrong = learned_is(w.node[i], s, b);
            if (wrong != NULL) {
                return wrong;
            }
        }
    }
    return NULL;
}

static bool explore(enum qn_explore_memory in, bool twins, bool announced,
                    enum qn_mutant m, struct qn_explored *found)
{
    const struct qn_explore_opts o = {.nodes = NODES,
                                      .node = {old_owner, first, second},
                                      .setup = setup,
                                      .check = one_log,
                                      .memory = in,
                                      .deviations = 1,
                                      .kills = 1};
    memset(&w, 0, sizeof w);
    w.twins = twins;
    w.announced = announced;
    w.heap = aligned_alloc(64, HEAP);
    w.ring_mem = aligned_alloc(QN_CACHELINE, (size_t)NODES * RING);
    cr_assert_leq(qn_ring_bytes(SLOTS, CAPACITY), RING);
    qn_mutant = m;
    bool good = qn_explore(&o, found);
    free(w.heap);
    free(w.ring_mem);
    return good;
}

static void is_clean(bool twins, bool announced)
{
    for (enum qn_explore_memory m = QN_EXPLORE_TSO; m <= QN_EXPLORE_C11; m++) {
        struct qn_explored found;
        cr_assert(explore(m, twins, announced, QN_MUTANT_NONE, &found),
                  "memory %d: %s at %s", (int)m, found.fault, found.choices);
        cr_assert(found.complete);
        cr_assert_gt(found.runs, 500, "%llu", (unsigned long long)found.runs);
    }
}

Test(takeover_explore, two_entries_have_one_log, .timeout = 120)
{
    is_clean(false, true);
}

Test(takeover_explore, one_entry_has_one_owner, .timeout = 120)
{
    is_clean(true, true);
}

/* By the word alone, too. */
Test(takeover_explore, one_entry_has_one_owner_though_nobody_says_whose,
     .timeout = 120)
{
    is_clean(true, false);
}

static void is_found(bool twins, bool announced, enum qn_mutant m)
{
    struct qn_explored found;
    cr_assert(!explore(QN_EXPLORE_TSO, twins, announced, m, &found));
    cr_assert(!explore(QN_EXPLORE_C11, twins, announced, m, &found));
}

Test(takeover_explore, an_equal_epoch_that_is_taken_is_found, .timeout = 120)
{
    is_found(true, false, QN_MUTANT_EQUAL_EPOCH);
}

Test(takeover_explore, a_second_owner_of_an_epoch_is_found, .timeout = 120)
{
    is_found(true, true, QN_MUTANT_TWO_OWNERS);
}

Test(takeover_explore, an_accept_that_compares_hi_alone_is_found,
     .timeout = 120)
{
    is_found(false, true, QN_MUTANT_NO_EPOCH);
}
