/*
 * A take-over by two processes while a third reads in pieces. The old leader
 * decides two slots of two lines each, the new one reads its ring and takes the
 * accept register over, and one of the three may end in front of any operation
 * that others see. Whatever the third has read whole is what was decided.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/explore/takeover_world.h"
#include "tests/support/test.h"

#define TURNS   3u
#define COMMAND 100u /* bytes; a batch of one takes two lines */
#define PIECE   64u
#define DECIDED 2u
#define LOOKS   2u

/* A sanitizer makes each run twenty times slower. */
#ifdef __SANITIZE_ADDRESS__
#define DEVIATIONS 1u
#define RUNS_LEAST 500u
#else
#define DEVIATIONS 2u
#define RUNS_LEAST 1000u
#endif

enum qn_mutant qn_mutant;

static struct qn_refbuf *got[LOOKS][DECIDED + 1];

static void setup(void *ctx)
{
    (void)ctx;
    takeover_begin();
    memset(got, 0, sizeof got);
    for (uint32_t i = 0; i < DECIDED; i++) {
        takeover_submit(0, COMMAND);
    }
}

static void old_leader(void *ctx)
{
    (void)ctx;
    takeover_tick(0, 1);
}

static void new_leader(void *ctx)
{
    (void)ctx;
    takeover_hears_of(1, 1, 1);
    takeover_tick(1, TURNS);
}

/* As a learner that maps the rings: by the register, its owner, its ring. */
static const struct qn_ring *ring_now(struct qn_accept_register at)
{
    uint64_t epoch;
    uint64_t inc;
    if (at.epoch == 0) {
        return &takeover.shared[0].own;
    }
    qn_load_pair(&takeover.owner[at.epoch], &epoch, &inc);
    if (epoch != at.epoch + 1) {
        qn_sim_fail("an epoch in the register, and no owner");
    }
    return &takeover.shared[inc - takeover_life(0)].own;
}

static void read_in_pieces(const struct qn_ring *r, qn_slot_t slot,
                           struct qn_refbuf **out)
{
    struct qn_ring_copy c;
    int64_t left;
    if (qn_ring_read_begin(r, slot, &takeover_pieces, &c) != QN_OK) {
        return;
    }
    do {
        left = qn_ring_read_some(r, &c, PIECE);
    } while (left > 0);
    if (left == 0) {
        *out = c.batch;
    }
}

static void reader(void *ctx)
{
    (void)ctx;
    for (uint32_t n = 0; n < LOOKS; n++) {
        const struct qn_accept_register at =
            qn_memory_acceptor_load(&takeover.shared[2]);
        for (qn_slot_t s = 1; s <= QN_MIN(at.hi, (qn_slot_t)DECIDED); s++) {
            read_in_pieces(ring_now(at), s, &got[n][s]);
        }
    }
}

static bool same(const struct qn_refbuf *a, const struct qn_refbuf *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

static const char *read_as_decided(void *ctx)
{
    (void)ctx;
    const struct qn_accept_register at =
        qn_memory_acceptor_load(&takeover.shared[0]);
    for (qn_slot_t s = 1; s <= QN_MIN(at.hi, (qn_slot_t)DECIDED); s++) {
        struct qn_refbuf *b = NULL;
        qn_epoch_t epoch = 0;
        if (qn_ring_read(takeover_ring_of(at.epoch), s, &takeover_pieces,
                         &epoch, &b) != QN_OK) {
            return "a decided slot is not in the owner's ring";
        }
        for (uint32_t n = 0; n < LOOKS; n++) {
            if (got[n][s] != NULL && !same(got[n][s], b)) {
                return "what was read is not what was decided";
            }
        }
    }
    return NULL;
}

static bool clean_in(enum qn_explore_memory in, uint32_t deviations,
                     enum qn_mutant m, struct qn_explored *found)
{
    const struct qn_explore_opts o = {.nodes = TAKEOVER_NODES,
                                      .node = {old_leader, new_leader, reader},
                                      .setup = setup,
                                      .check = read_as_decided,
                                      .memory = in,
                                      .deviations = deviations,
                                      .kills = 1};
    takeover_make();
    takeover.announced = true;
    qn_mutant = m;
    bool good = qn_explore(&o, found);
    takeover_unmake();
    return good;
}

Test(takeover_pieces, what_a_third_process_reads_was_decided, .timeout = 3600)
{
    for (enum qn_explore_memory m = QN_EXPLORE_TSO; m <= QN_EXPLORE_C11; m++) {
        struct qn_explored found;
        cr_assert(clean_in(m, DEVIATIONS, QN_MUTANT_NONE, &found),
                  "memory %d: %s at %s", (int)m, found.fault, found.choices);
        cr_assert(found.complete);
        cr_assert_gt(found.runs, RUNS_LEAST);
    }
}

/* The decision before the batch is in the ring. */
Test(takeover_pieces, a_ring_that_is_written_after_the_cas_is_found,
     .timeout = 3600)
{
    for (enum qn_explore_memory m = QN_EXPLORE_TSO; m <= QN_EXPLORE_C11; m++) {
        struct qn_explored found;
        cr_assert(!clean_in(m, 1, QN_MUTANT_RING_AFTER, &found));
    }
}
