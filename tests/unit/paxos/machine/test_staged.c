/*
 * What a candidate keeps of what leaders stage at it (paxos/PROTOCOL.md 6.3,
 * T18). Node 3 of four. Node 0 leads epoch 0, node 2 epoch 1; both froze, and
 * their STAGEs, each in parts, meet here in any order. Slot 1 is `x` in the log
 * of node 0, where nobody has accepted it, and `y` in that of node 2.
 */
#include "tests/support/test.h"
#include "tests/unit/paxos/machine/fixture.h"

#define LEADS_1   2u
#define CANDIDATE 3u

static struct fx d;
static struct qn_refbuf *x, *y;

static void setup(void)
{
    struct qn_params v = fx_params();
    fx_make(&d, CANDIDATE, 4, &v);
    x = fx_batch(0, 1, (const char *const[]){"x"}, 1);
    y = fx_batch(LEADS_1, 1, (const char *const[]){"y"}, 1);
}

static void teardown(void)
{
    qn_refbuf_unref(x);
    qn_refbuf_unref(y);
    fx_end(&d);
    cr_assert_eq(fx_refbufs, 0);
}

#define STAGED_AT(name) Test(staged, name, .init = setup, .fini = teardown)

/* The first part: the utility log up to `epoch`. */
static void stage_begins(qn_node_t from, qn_epoch_t epoch)
{
    static const struct qn_ul_entry led = {.index = 1,
                                           .kind = QN_UL_LEADER,
                                           .leader = LEADS_1,
                                           .acceptor = 1,
                                           .leader_inc = 10 + LEADS_1,
                                           .acceptor_inc = 11};
    uint8_t ul[QN_UL_BYTES];
    qn_ul_encode(&led, ul);
    struct qn_msg m = {
        .kind = QN_MSG_STAGE, .flags = QN_MSG_UL, .epoch = epoch};
    m.stage.hi = 1;
    m.body = (struct qn_slice){ul, epoch == 0 ? 0 : sizeof ul};
    fx_recv(&d, from, &m);
}

/* The last part: slot 1. @return what STAGED says. */
static bool stage_ends(qn_node_t from, qn_epoch_t epoch,
                       const struct qn_refbuf *batch)
{
    struct qn_msg m = {
        .kind = QN_MSG_STAGE, .flags = QN_MSG_LAST, .epoch = epoch, .slot = 1};
    m.stage.hi = 1;
    m.body = (struct qn_slice){batch->bytes, batch->len};
    fx_recv(&d, from, &m);
    return fx_sent(&d, QN_MSG_STAGED, 0)->flags == QN_MSG_OK;
}

/* Entry 2: node 2 has appointed the candidate. */
static void appointed(void)
{
    const struct qn_ul_entry e = {.index = 2,
                                  .tenure = 2,
                                  .from = 1,
                                  .kind = QN_UL_ACCEPTOR,
                                  .leader = LEADS_1,
                                  .acceptor = CANDIDATE,
                                  .leader_inc = 10 + LEADS_1,
                                  .acceptor_inc = 10 + CANDIDATE};
    uint8_t ul[QN_UL_BYTES];
    qn_ul_encode(&e, ul);
    struct qn_msg m = {.kind = QN_MSG_U_CHOSEN, .epoch = 2};
    m.body = (struct qn_slice){ul, sizeof ul};
    fx_recv(&d, LEADS_1, &m);
    fx_tick(&d);
}

static void expect_y(void)
{
    cr_assert_eq(d.applied_count, 1u);
    cr_assert_str_eq(d.applied[0].text, "y");
}

STAGED_AT(slots_of_a_deposed_leader_stay_out_of_the_set_of_the_next)
{
    stage_begins(0, 0);
    stage_begins(LEADS_1, 1);
    cr_assert(!stage_ends(0, 0, x));
    cr_assert(stage_ends(LEADS_1, 1, y));
    appointed();
    expect_y();
}

STAGED_AT(a_late_stage_leaves_the_set_of_a_newer_leader)
{
    stage_begins(LEADS_1, 1);
    cr_assert(stage_ends(LEADS_1, 1, y));
    stage_begins(0, 0);
    appointed();
    expect_y();
}

STAGED_AT(a_second_stage_of_the_same_epoch_leaves_the_set_that_is_whole)
{
    stage_begins(LEADS_1, 1);
    cr_assert(stage_ends(LEADS_1, 1, y));
    stage_begins(LEADS_1, 1);
    appointed();
    expect_y();
}

STAGED_AT(a_second_stage_of_the_same_epoch_is_answered)
{
    stage_begins(LEADS_1, 1);
    cr_assert(stage_ends(LEADS_1, 1, y));
    stage_begins(LEADS_1, 1);
    cr_assert(stage_ends(LEADS_1, 1, y));
    appointed();
    expect_y();
}

STAGED_AT(a_set_that_was_begun_in_an_older_epoch_is_not_taken)
{
    stage_begins(0, 0);
    cr_assert(stage_ends(0, 0, x));
    stage_begins(LEADS_1, 1);
    cr_assert(!stage_ends(0, 0, x));
    cr_assert(stage_ends(LEADS_1, 1, y));
    appointed();
    expect_y();
}
