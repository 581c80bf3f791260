/*
 * Two members take over the accept register at the same time, while the old
 * owner still decides or has ended, and any of the three may end in front of
 * any operation (PROTOCOL.md 5.3, `take_over`): an epoch has one owner, and
 * what was decided lies, as it was decided, in the ring of the owner that the
 * word names.
 *
 *     RIVALS  entry 1 names node 1, and node 2 knows of entry 2, which names it
 *     TWINS   both take entry 1 for theirs: the utility log was wrong
 */
#include <string.h>

#include "tests/sim/explore/takeover_world.h"
#include "tests/support/test.h"

#define TURNS 3u

enum qn_mutant qn_mutant;

static void setup(void *ctx)
{
    (void)ctx;
    takeover_begin();
    takeover_submit(0, 1);
    takeover_tick(0, 1);
    cr_assert_eq(takeover.word.second, 1);
    takeover_submit(0, 1); /* it decides that meanwhile, if it lives */
}

static void old_owner(void *ctx)
{
    (void)ctx;
    takeover_tick(0, 1);
}

static void first(void *ctx)
{
    (void)ctx;
    takeover_hears_of(1, 1, 1);
    takeover_tick(1, TURNS);
}

static void second(void *ctx)
{
    (void)ctx;
    takeover_hears_of(2, 1, takeover.twins ? 2 : 1);
    if (!takeover.twins) {
        takeover_hears_of(2, 2, 2);
    }
    takeover_tick(2, TURNS);
}

/* ----------------------------------------------------------------- check -- */

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
    const struct qn_accept_register at =
        qn_memory_acceptor_load(&takeover.shared[0]);
    uint32_t leaders = 0;
    for (qn_node_t i = 0; i < TAKEOVER_NODES; i++) {
        if (takeover.node[i]->acceptor.promised > at.epoch) {
            return "the word has fallen";
        }
        leaders += takeover.node[i]->leader.role == QN_ACTIVE &&
                   takeover.node[i]->leader.ep == at.epoch;
    }
    if (leaders > 1) {
        return "an epoch has two leaders";
    }
    if (takeover.twins && !takeover.announced) {
        return NULL; /* nobody can tell whose ring it is */
    }
    for (qn_slot_t s = 1; s <= at.hi; s++) {
        struct qn_refbuf *b = NULL;
        qn_epoch_t epoch = 0;
        if (qn_ring_read(takeover_ring_of(at.epoch), s, &takeover_pieces,
                         &epoch, &b) != QN_OK) {
            return "a decided slot is not in the owner's ring";
        }
        for (qn_node_t i = 0; i < TAKEOVER_NODES; i++) {
            const char *wrong = learned_is(takeover.node[i], s, b);
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
    const struct qn_explore_opts o = {.nodes = TAKEOVER_NODES,
                                      .node = {old_owner, first, second},
                                      .setup = setup,
                                      .check = one_log,
                                      .memory = in,
                                      .deviations = 1,
                                      .kills = 1};
    takeover_make();
    takeover.twins = twins;
    takeover.announced = announced;
    qn_mutant = m;
    bool good = qn_explore(&o, found);
    takeover_unmake();
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
