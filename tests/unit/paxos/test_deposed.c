/*
 * A leader that is deposed before it has begun to take requests. Node 2 of
 * three leads epoch 1; node 0 leads epoch 2 and says so before node 2 has heard
 * of that epoch.
 */
#include "tests/support/test.h"
#include "tests/unit/paxos/fixture.h"

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
    cr_assert_eq(fx_blobs, 0);
}

static void chosen(uint32_t index, qn_node_t leader)
{
    const struct qn_ul_entry e = {.index = index,
                                  .kind = QN_UL_LEADER,
                                  .leader = (uint8_t)leader,
                                  .acceptor = 1,
                                  .leader_inc = 10 + leader,
                                  .acceptor_inc = 11};
    uint8_t ul[QN_UL_BYTES];
    qn_ul_encode(&e, ul);
    struct qn_msg m = {.kind = QN_MSG_U_CHOSEN, .epoch = index};
    m.body = (struct qn_slice){ul, sizeof ul};
    fx_recv(&d, 1, &m);
}

/* It is adopted with slot 1, which it may not apply yet. */
static void lead_without_serving(void)
{
    qn_onepaxos_allow(d.p, 0);
    chosen(1, OLD);
    struct qn_blob *b = fx_slot_batch(1);
    struct qn_msg m = {.kind = QN_MSG_PREPARED,
                       .flags = QN_MSG_LAST,
                       .epoch = 1,
                       .slot = 1,
                       .prepared = {.log_lo = 1, .hi = 1},
                       .body = {b->bytes, b->len}};
    fx_recv(&d, 1, &m);
    qn_blob_unref(b);
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
    qn_onepaxos_allow(d.p, UINT64_MAX);
    fx_go(&d);
    fx_tick(&d);
    chosen(2, 0);
    fx_tick(&d);
    cr_assert_eq(fx_count(&d, QN_MSG_REQUEST), 1u);
    cr_assert_eq(fx_to(&d, QN_MSG_REQUEST, 0), 0u);
}
