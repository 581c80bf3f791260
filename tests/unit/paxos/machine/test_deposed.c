/*
 * A leader that is deposed, and does not hear of it in time. Node 2 of three
 * leads epoch 1, node 0 leads epoch 2.
 */
#include "tests/support/test.h"
#include "tests/unit/paxos/machine/fixture.h"

#define OLD 2u

static struct fx d;

static void setup(void)
{
    struct qn_params v = fx_params();
    fx_make(&d, OLD, 3, &v);
}

static void teardown(void)
{
    fx_end(&d);
    cr_assert_eq(fx_refbufs, 0);
}

static struct qn_ul_entry led_by(uint32_t index, qn_node_t leader)
{
    return (struct qn_ul_entry){.index = index,
                                .kind = QN_UL_LEADER,
                                .leader = (uint8_t)leader,
                                .acceptor = 1,
                                .leader_inc = 10 + leader,
                                .acceptor_inc = 11};
}

static void chosen(uint32_t index, qn_node_t leader)
{
    const struct qn_ul_entry e = led_by(index, leader);
    uint8_t ul[QN_UL_BYTES];
    qn_ul_encode(&e, ul);
    struct qn_msg m = {.kind = QN_MSG_U_CHOSEN, .epoch = index};
    m.body = (struct qn_slice){ul, sizeof ul};
    fx_recv(&d, 1, &m);
}

/* It is adopted with slot 1, which it may not apply yet. */
static void lead_without_serving(void)
{
    qn_onepaxos_set_apply_budget(d.p, 0);
    chosen(1, OLD);
    struct qn_refbuf *b = fx_slot_batch(1);
    struct qn_msg m = {.kind = QN_MSG_PREPARED,
                       .flags = QN_MSG_LAST,
                       .epoch = 1,
                       .slot = 1,
                       .prepared = {.log_lo = 1, .hi = 1},
                       .body = {b->bytes, b->len}};
    fx_recv(&d, 1, &m);
    qn_refbuf_unref(b);
    fx_tick(&d);
    cr_assert_eq(fx_status(&d).role, QN_ACTIVE);
    cr_assert_eq(fx_count(&d, QN_MSG_REDIRECT), 0u);
}

/* Found by the simulator: it took itself for ready afterwards, forgot that the
 * later leader was, and kept its commands for ever. */
Test(deposed, a_later_leaders_redirect_is_not_forgotten, .init = setup,
     .fini = teardown)
{
    lead_without_serving();
    cr_assert_eq(fx_submit(&d, "x"), QN_OK);
    const struct qn_msg later = {.kind = QN_MSG_REDIRECT,
                                 .epoch = 2,
                                 .redirect = {.leader = 0, .leader_inc = 10}};
    fx_recv(&d, 0, &later);
    qn_onepaxos_set_apply_budget(d.p, UINT64_MAX);
    fx_go(&d);
    fx_tick(&d);
    chosen(2, 0);
    fx_tick(&d);
    cr_assert_eq(fx_count(&d, QN_MSG_REQUEST), 1u);
    cr_assert_eq(fx_to(&d, QN_MSG_REQUEST, 0), 0u);
}

/* Found by the simulator: more in flight than there can be. The snapshot was
 * asked for before this node led, and has what a later leader decided. */
Test(deposed, a_snapshot_beyond_its_own_slots_deposes, .init = setup,
     .fini = teardown)
{
    lead_without_serving();
    qn_onepaxos_set_apply_budget(d.p, UINT64_MAX);
    fx_go(&d);
    fx_tick(&d); /* the no-op is slot 2 */
    const struct qn_resume old = {.position = 2}, beyond = {.position = 3};
    qn_onepaxos_install(d.p, &old, d.now);
    cr_assert_eq(fx_status(&d).role, QN_ACTIVE, "it is its own slot");
    qn_onepaxos_install(d.p, &beyond, d.now);
    cr_assert_eq(fx_status(&d).role, QN_FOLLOWER);
}

/* T10: what the acceptor had when it adopted this node for epoch 1 says nothing
 * about epoch 3. */
Test(deposed, an_answer_of_an_older_epoch_is_not_adopted, .init = setup,
     .fini = teardown)
{
    const struct qn_msg late = {.kind = QN_MSG_PREPARED,
                                .flags = QN_MSG_LAST,
                                .epoch = 1,
                                .prepared = {.log_lo = 1}};
    chosen(1, OLD);
    chosen(2, 0);
    chosen(3, OLD);
    cr_assert_eq(fx_status(&d).role, QN_PREPARING);
    fx_recv(&d, 1, &late);
    fx_tick(&d);
    cr_assert_eq(fx_status(&d).role, QN_PREPARING);
}

/* T9: this node leads epoch 0, appoints node 1 again with entry 1, and hears of
 * that only when the leader of epoch 2 seals it: its log is the frozen one. */
Test(deposed, an_own_entry_that_is_skipped_over_counts)
{
    struct qn_params v = fx_params();
    fx_make(&d, 0, 3, &v);
    struct qn_ul_entry own = led_by(1, 0), next = led_by(2, OLD);
    own.kind = QN_UL_ACCEPTOR;
    own.tenure = next.tenure = 1;
    uint8_t ul[2 * QN_UL_BYTES];
    qn_ul_encode(&own, ul);
    qn_ul_encode(&next, ul + QN_UL_BYTES);
    const struct qn_msg seal = {.kind = QN_MSG_SEAL,
                                .epoch = 2,
                                .slot = 1,
                                .seal = {.target = 1},
                                .body = {ul, sizeof ul}};
    fx_recv(&d, OLD, &seal);
    fx_room(&d, UINT64_C(1) << OLD);
    const struct qn_msg *m = fx_sent(&d, QN_MSG_SEALED, 0);
    cr_assert(m != NULL && (m->flags & QN_MSG_OK) != 0);
    fx_end(&d);
    cr_assert_eq(fx_refbufs, 0);
}

/* ---- an entry that is left open ------------------------------------------ */

static void setup_four(void)
{
    struct qn_params v = fx_params();
    fx_make(&d, OLD, 4, &v);
}

/* Node 3 proposes itself for epoch 1, and this node votes for it. */
static const struct qn_ballot ballot_of_3 = {.round = 1, .node = 3, .inc = 13};

static void vote_for_3(void)
{
    const struct qn_ul_entry e = led_by(1, 3);
    uint8_t ul[QN_UL_BYTES];
    qn_ul_encode(&e, ul);
    struct qn_msg m = {
        .kind = QN_MSG_U_ACCEPT, .epoch = 1, .u = {.bal = ballot_of_3}};
    m.body = (struct qn_slice){ul, sizeof ul};
    fx_recv(&d, 3, &m);
    cr_assert_eq(fx_count(&d, QN_MSG_U_ACCEPTED), 1u);
}

/* Time goes by until it asks for an entry. */
static void until_it_asks(void)
{
    for (int i = 0; i < 20 && fx_count(&d, QN_MSG_U_PREPARE) == 0; i++) {
        fx_later(&d, fx_params().t_rank);
    }
    cr_assert_eq(fx_count(&d, QN_MSG_U_PREPARE), 1u);
}

/* Two more voters grant what this node asks for. */
static void both_grant(uint8_t asked, uint8_t answer)
{
    cr_assert_eq(fx_count(&d, asked), 1u);
    struct qn_msg m = {
        .kind = answer, .epoch = 1, .u = {.bal = fx_sent(&d, asked, 0)->u.bal}};
    fx_recv(&d, 0, &m);
    fx_recv(&d, 1, &m);
}

/* Found by random kills over words: 40 ms later the acceptor ended, the leader
 * needed that entry to replace it, and the group had lost both for ever. */
Test(deposed, what_a_dead_proposer_left_open_is_finished, .init = setup_four,
     .fini = teardown)
{
    vote_for_3();
    fx_later(&d, 100 * QN_MS);
    cr_assert_eq(fx_count(&d, QN_MSG_U_PREPARE), 0u, "it lives");
    fx_down(&d, 3);
    until_it_asks();
    both_grant(QN_MSG_U_PREPARE, QN_MSG_U_PROMISE);
    both_grant(QN_MSG_U_ACCEPT, QN_MSG_U_ACCEPTED);
    cr_assert_eq(fx_status(&d).epoch, 1u);
    cr_assert_eq(fx_status(&d).leader, 3u);
    until_it_asks(); /* to lead epoch 2 */
    cr_assert_eq(fx_sent(&d, QN_MSG_U_PREPARE, 0)->epoch, 2u);
}

/* Too late: the entry would lose leader and acceptor; node 0 replaces node 1
 * and may get a majority that has no vote for it. */
static void it_stays_open(void)
{
    for (int i = 0; i < 20; i++) {
        fx_later(&d, fx_params().t_rank);
        cr_assert_eq(fx_count(&d, QN_MSG_U_PREPARE), 0u);
    }
}

Test(deposed, what_names_a_dead_acceptor_stays_open, .init = setup_four,
     .fini = teardown)
{
    vote_for_3();
    fx_down(&d, 3);
    fx_later(&d, fx_params().t_rank);
    fx_down(&d, 1);
    it_stays_open();
}

Test(deposed, nor_is_it_finished_if_the_acceptor_ended_first,
     .init = setup_four, .fini = teardown)
{
    vote_for_3();
    fx_down(&d, 1);
    fx_down(&d, 3);
    it_stays_open();
}
