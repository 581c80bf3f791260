/*
 * State by message (PROTOCOL.md 3.7): what nodes say of themselves where none
 * reads another's outbox, when they say it, and what is void.
 */
#include "paxos/driver/driver_internal.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/driver/driver_world.h"

static struct world *begin(uint32_t nodes)
{
    struct world *w = world_make(nodes, false);
    w->messages = true;
    w->snapshots_by_hand = true;
    w->silent = true;
    world_start(w);
    return w;
}

/* What i knows of k. */
static const struct qn_peer_position *known(const struct world *w, qn_node_t i,
                                            qn_node_t k)
{
    return &w->member[i].driver->positions.peer[k];
}

static uint64_t signs(const struct world *w, qn_node_t at, qn_node_t of)
{
    return qn_driver_signs(w->member[at].driver, of);
}

static uint64_t signs_of_all(const struct world *w)
{
    uint64_t sum = 0;
    for (qn_node_t i = 0; i < w->nodes; i++) {
        for (qn_node_t k = 0; k < w->nodes; k++) {
            sum += i != k ? signs(w, i, k) : 0;
        }
    }
    return sum;
}

Test(driver_state, positions_come_soon_and_then_nothing_is_said)
{
    struct world *w = begin(5);
    world_go_on(w);
    world_rounds(w, 60);
    for (qn_node_t i = 0; i < w->nodes; i++) {
        for (qn_node_t k = 0; k < w->nodes; k++) {
            cr_expect(i == k || known(w, i, k)->applied == w->member[k].slot,
                      "node %u takes %u to be at %lu, not %lu", i, k,
                      (unsigned long)known(w, i, k)->applied,
                      (unsigned long)w->member[k].slot);
        }
    }
    uint64_t before = signs_of_all(w);
    cr_assert_gt(before, 0u);
    world_rounds(w, 5000); /* half a second */
    cr_assert_eq(signs_of_all(w), before, "an idle group speaks");
    world_end(w);
}

/* At most once in an interval, whatever is decided meanwhile. */
Test(driver_state, positions_are_not_said_with_every_slot)
{
    struct world *w = begin(3);
    world_go_on(w);
    world_rounds(w, 60);
    qn_slot_t from = w->member[0].slot;
    uint64_t before = signs(w, 0, 2);
    qn_time_t since = w->now;
    world_load(w, 600);
    uint64_t intervals = (w->now - since) / QN_HEARTBEAT_INTERVAL;
    cr_assert_gt(w->member[0].slot, from + 2 * intervals);
    /* Node 2 is also asked, for it waits for node 0 and 0 for nobody else. */
    cr_expect_leq(signs(w, 0, 2) - before, 2 * intervals + 2);
    world_end(w);
}

/* What of the program's is said at once is there after one turn of each; the
 * rest within an interval; what has not changed is not said. */
Test(driver_state, what_the_program_says_comes_at_once_or_soon)
{
    struct world *w = begin(3);
    world_go_on(w);
    world_rounds(w, 60);
    struct qn_outbox_state *own = w->member[2].driver->o.state;
    const struct qn_outbox_state *at_0 = qn_driver_said(w->member[0].driver, 2);
    for (uint32_t i = 0; i < QN_PEER_STATE_COUNTERS; i++) {
        qn_store(&own->counters[i], 100 + i, QN_RELAXED);
        world_rounds(w, i < QN_PEER_STATE_AT_ONCE ? 60 : 2);
        cr_expect_eq(qn_load(&at_0->counters[i], QN_RELAXED), 100 + i, "%u", i);
    }
    qn_store(&own->phase, 3, QN_RELAXED);
    world_rounds(w, 2);
    cr_expect_eq(qn_load(&at_0->phase, QN_RELAXED), 3u);
    uint64_t before = signs(w, 0, 2);
    qn_store(&own->counters[0], 7, QN_RELAXED);
    world_rounds(w, 60);
    cr_expect_eq(qn_load(&at_0->counters[0], QN_RELAXED), 7u, "soon");
    cr_expect_eq(signs(w, 0, 2), before + 1, "once");
    qn_store(&own->counters[QN_PEER_STATE_COUNTERS], 8, QN_RELAXED);
    world_rounds(w, 60);
    cr_expect_eq(signs(w, 0, 2), before + 1, "it is no part of STATE");
    world_end(w);
}

/* The successor has said nothing yet: what its predecessor said is void. */
Test(driver_state, a_new_incarnation_says_its_own_counters)
{
    struct world *w = begin(3);
    world_go_on(w);
    qn_store(&w->member[2].driver->o.state->counters[3], 9, QN_RELAXED);
    world_rounds(w, 60);
    const struct qn_outbox_state *at_0 = qn_driver_said(w->member[0].driver, 2);
    cr_assert_eq(qn_load(&at_0->counters[3], QN_RELAXED), 9u);
    world_lose(w, 2);
    cr_assert_eq(qn_load(&at_0->counters[3], QN_RELAXED), 9u, "the last words");
    qn_store(&w->member[0].driver->o.state->counters[3], 5, QN_RELAXED);
    world_restart(w, 2);
    world_rounds(w, 60);
    cr_expect_eq(qn_load(&at_0->counters[3], QN_RELAXED), 0u);
    cr_expect_eq(qn_load(&qn_driver_said(w->member[2].driver, 0)->counters[3],
                         QN_RELAXED),
                 5u, "no message has told it");
    world_end(w);
}

Test(driver_state, a_new_incarnation_begins_at_its_own_position)
{
    struct world *w = begin(3);
    world_go_on(w);
    world_rounds(w, 60);
    cr_assert_eq(known(w, 0, 2)->applied, w->member[2].slot);
    cr_assert_gt(w->member[2].slot, 0u);
    world_lose(w, 2);
    world_restart(w, 2);
    world_rounds(w, 60);
    cr_expect_eq(known(w, 0, 2)->applied, 0u, "its predecessor's: %lu",
                 (unsigned long)known(w, 0, 2)->applied);
    cr_expect_eq(known(w, 1, 2)->applied, 0u);
    cr_expect_eq(known(w, 2, 0)->applied, w->member[0].slot,
                 "no message has told it");
    cr_assert(world_install(w, 2, 0));
    world_rounds(w, 60);
    cr_expect_eq(known(w, 0, 2)->applied, w->member[2].slot);
    world_end(w);
}

/* Someone else's words: an earlier life of node 2 would be far ahead. */
Test(driver_state, what_another_incarnation_had_said_is_void)
{
    struct world *w = begin(3);
    uint8_t bytes[QN_PEER_STATE_BYTES];
    world_go_on(w);
    world_rounds(w, 60);
    qn_slot_t was = known(w, 0, 2)->learned;
    uint64_t before = signs(w, 0, 2);
    struct qn_peer_state s = {.inc = w->member[2].inc - 1,
                              .applied = was + 1000,
                              .learned = was + 1000};
    qn_peer_state_encode(&s, bytes, sizeof bytes);
    struct qn_msg m = {.kind = QN_MSG_STATE,
                       .body = {bytes, sizeof bytes},
                       .total = sizeof bytes};
    qn_driver_state_take(w->member[0].driver, 2, &m);
    world_rounds(w, 60);
    cr_expect_eq(signs(w, 0, 2), before);
    cr_expect_eq(known(w, 0, 2)->learned, was);
    s.inc++;
    qn_peer_state_encode(&s, bytes, sizeof bytes);
    qn_driver_state_take(w->member[0].driver, 2, &m);
    world_rounds(w, 1);
    cr_expect_eq(known(w, 0, 2)->learned, was + 1000, "its own words count");
    world_end(w);
}

Test(driver_state, a_peer_that_is_waited_for_gives_signs_of_life)
{
    struct world *w = begin(3);
    world_go_on(w);
    world_rounds(w, 60);
    w->member[0].stopped = true; /* the leader */
    world_submit_number(w, 2, 7);
    world_rounds(w, 60);
    cr_assert_eq(qn_driver_waits_for(w->member[2].driver), 1u);
    uint64_t silent = signs(w, 2, 0);
    world_rounds(w, 200);
    cr_expect_eq(signs(w, 2, 0), silent, "it does nothing, and speaks");
    w->member[0].stopped = false;
    w->member[1].stopped = true; /* the acceptor: the leader waits for it */
    world_rounds(w, 200);
    cr_expect_gt(signs(w, 2, 0), silent + 5, "it goes on, and is silent");
    cr_assert_eq(qn_driver_waits_for(w->member[0].driver), 2u);
    silent = signs(w, 0, 1);
    world_rounds(w, 200);
    cr_expect_eq(signs(w, 0, 1), silent);
    w->member[1].stopped = false;
    world_settle(w, 20000);
    world_end(w);
}

/* The verdict rests on answers: while a peer has given none, there is none. */
Test(driver_state, no_verdict_before_all_peers_have_answered)
{
    struct world *w = begin(5);
    world_go_on(w);
    world_rounds(w, 60);
    w->member[4].stopped = true;
    world_kill(w, 0); /* leader and acceptor */
    world_kill(w, 1);
    for (qn_node_t p = 2; p < 5; p++) {
        world_tell(w, p, 0);
        world_tell(w, p, 1);
    }
    world_restart(w, 0);
    world_restart(w, 1);
    world_rounds(w, 5000);
    for (qn_node_t p = 0; p < 4; p++) {
        cr_expect(!world_status(w, p).halted, "node %u", p);
    }
    w->member[4].stopped = false;
    world_rounds(w, 5000);
    for (qn_node_t p = 0; p < 5; p++) {
        cr_expect(world_status(w, p).halted, "node %u", p);
    }
    world_end(w);
}

Test(driver_state, memory_of_others_is_refused_beside_it)
{
    struct world *w = begin(3);
    struct qn_driver *d = NULL;
    static qn_a64 index;
    struct qn_arena arena;
    struct qn_driver_opts o = w->member[0].driver->o;
    const uint64_t inc[] = {1, 2, 3};
    const struct qn_arena *none[3] = {NULL, NULL, NULL};
    o.incarnation = inc;
    o.direct = w->member[0].direct;
    o.tree = w->member[0].tree;
    o.topology = "sequential";
    o.arena = &arena;
    o.peer_arena = none;
    cr_assert_eq(qn_driver_create(&d, &o), QN_EINVAL);
    o.arena = NULL;
    o.read_index = &index;
    cr_assert_eq(qn_driver_create(&d, &o), QN_EINVAL);
    cr_assert(d == NULL);
    world_end(w);
}

/* ---- reads --------------------------------------------------------------- */

static void wants(struct world *w, qn_node_t i)
{
    struct qn_driver *d = w->member[i].driver;
    qn_driver_read_wanted(d, qn_driver_read_view(d).index);
}

static bool may_read(struct world *w, qn_node_t i, uint64_t index)
{
    return qn_driver_read_view(w->member[i].driver).reached >= index;
}

Test(driver_state, a_read_is_answered_soon_at_every_node)
{
    struct world *w = begin(5);
    world_go_on(w);
    world_rounds(w, 60);
    for (qn_node_t i = 0; i < w->nodes; i++) {
        uint64_t index = qn_driver_read_view(w->member[i].driver).index;
        wants(w, i);
        cr_expect_not(may_read(w, i, index), "nobody was asked");
        world_rounds(w, 6);
        cr_expect(may_read(w, i, index), "node %u", i);
        cr_expect_eq(qn_driver_waits_for(w->member[i].driver), 0u);
    }
    world_end(w);
}

Test(driver_state, without_reads_nobody_is_asked)
{
    struct world *w = begin(3);
    world_go_on(w);
    for (qn_node_t i = 0; i < w->nodes; i++) {
        cr_expect_eq(qn_driver_read_view(w->member[i].driver).index, 1u);
    }
    world_end(w);
}

/* A reader has nothing to write: still the leader, and then the acceptor, is
 * suspected and replaced. */
Test(driver_state, readers_wait_for_leader_and_acceptor)
{
    struct world *w = begin(3);
    world_go_on(w);
    world_rounds(w, 60);
    w->member[1].stopped = true;
    uint64_t index = qn_driver_read_view(w->member[2].driver).index;
    wants(w, 2);
    world_rounds(w, 60);
    cr_assert_eq(qn_driver_waits_for(w->member[2].driver), 1u);
    cr_assert_eq(qn_driver_waits_for(w->member[0].driver), 2u,
                 "the leader does not wait for its acceptor");
    cr_assert_not(may_read(w, 2, index));
    qn_driver_suspect(w->member[0].driver, 2, w->now);
    world_rounds(w, 2000);
    cr_expect(may_read(w, 2, index), "there is another acceptor");
    world_end(w);
}

/* What was put into a lane at the end of a turn is flushed in the same. */
Test(driver_state, who_sleeps_is_rung_for_a_question)
{
    struct world *w = begin(3);
    world_go_on(w);
    world_rounds(w, 100);
    struct world_member *leader = &w->member[0];
    qn_doorbell_arm(&leader->doorbell);
    cr_assert_not(qn_driver_pending(leader->driver));
    wants(w, 2);
    world_turn(w, 2);
    cr_expect(qn_driver_pending(leader->driver));
    const struct qn_doorbell_line *line =
        qn_outbox_doorbell(leader->incarnation.outbox);
    cr_expect_eq(qn_load(&line->epoch, QN_SEQ_CST) % 2, 0u, "not rung");
    qn_doorbell_disarm(&leader->doorbell);
    world_end(w);
}
