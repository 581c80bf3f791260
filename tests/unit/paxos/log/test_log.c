#include "paxos/machine/acceptor.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/machine/fixture.h"

#include <string.h>

static struct qn_log_entry ring[8];
static struct qn_log log_;

static void setup(void)
{
    memset(ring, 0, sizeof ring);
    qn_log_init(&log_, ring, 8);
}

static void teardown(void)
{
    qn_log_fini(&log_);
}

#define LOG(name) Test(log, name, .init = setup, .fini = teardown)

static struct qn_refbuf *refbuf(const char *text)
{
    return qn_refbuf_copy(&qn_alloc_malloc, text, strlen(text));
}

static void put(qn_slot_t slot, const char *text, enum qn_slot_state state)
{
    struct qn_refbuf *b = refbuf(text);
    qn_log_put(&log_, slot, b, state);
}

LOG(holds_as_many_slots_as_the_ring)
{
    cr_assert(!qn_log_holds(&log_, 0));
    cr_assert(qn_log_holds(&log_, 1));
    cr_assert(qn_log_holds(&log_, 8));
    cr_assert(!qn_log_holds(&log_, 9));
    cr_assert(!qn_log_holds(&log_, UINT64_MAX));
}

LOG(dropping_moves_the_window_over_the_wrap)
{
    for (qn_slot_t s = 1; s <= 40; s++) {
        qn_log_drop(&log_, s > 8 ? s - 7 : 1, 100);
        put(s, "abc", QN_SLOT_LEARNED);
        cr_assert_eq(log_.bytes, 3 * (s < 8 ? s : 8));
    }
    cr_assert_eq(log_.lo, 33u);
    qn_log_drop(&log_, 41, 100);
    cr_assert_eq(log_.bytes, 0u);
}

LOG(drops_no_more_than_it_is_allowed_in_a_step)
{
    for (qn_slot_t s = 1; s <= 8; s++) {
        put(s, "abc", QN_SLOT_LEARNED);
    }
    qn_log_drop(&log_, 9, 3);
    cr_assert_eq(log_.lo, 4u);
}

LOG(a_proposal_may_be_replaced)
{
    put(1, "abc", QN_SLOT_PROPOSED);
    put(1, "defgh", QN_SLOT_LEARNED);
    cr_assert_eq(log_.bytes, 5u);
}

Test(log, a_learned_slot_is_never_replaced, .init = setup, .signal = SIGABRT)
{
    put(1, "abc", QN_SLOT_LEARNED);
    put(1, "abc", QN_SLOT_LEARNED);
}

Test(log, a_proposal_is_never_dropped, .init = setup, .signal = SIGABRT)
{
    put(1, "abc", QN_SLOT_PROPOSED);
    qn_log_drop(&log_, 2, 1);
}

/* ------------------------------------------------------- the acceptor -- */

static struct qn_acceptor acceptor;

static void acceptor_setup(void)
{
    setup();
    qn_acceptor_process_init(&acceptor, &log_);
    acceptor.active = true;
}

#define ACCEPTOR(name)                                                         \
    Test(acceptor, name, .init = acceptor_setup, .fini = teardown)

static enum qn_accept accept_text(qn_epoch_t e, qn_slot_t s, const char *text)
{
    struct qn_refbuf *b = refbuf(text);
    enum qn_accept r = qn_acceptor_accept(&acceptor, e, s, b);
    qn_refbuf_unref(b);
    return r;
}

ACCEPTOR(takes_slots_in_order_and_repeats_them)
{
    cr_assert_eq(accept_text(0, 1, "a"), QN_ACCEPT_DONE);
    cr_assert_eq(accept_text(0, 2, "b"), QN_ACCEPT_DONE);
    cr_assert_eq(accept_text(0, 1, "a"), QN_ACCEPT_AGAIN);
    cr_assert_eq(acceptor.hi, 2u);
    cr_assert_eq(qn_log_at(&log_, 2)->batch->bytes[0], 'b');
    cr_assert_eq(qn_log_at(&log_, 3)->state, QN_SLOT_EMPTY);
}

Test(acceptor, a_gap_is_our_own_mistake, .init = acceptor_setup,
     .signal = SIGABRT)
{
    accept_text(0, 2, "b");
}

/* 11: the register grows, epoch first, so no value occurs twice. */
Test(acceptor, the_register_never_falls, .signal = SIGABRT)
{
    struct qn_pair pair = {0};
    struct qn_memory_acceptor memory = {.accept_register = &pair};
    const struct qn_accept_register from = {2, 5};
    const struct qn_accept_register to = {1, 6};
    (void)qn_memory_acceptor_move(&memory, from, to);
}

/* T2: a deposed leader's ACCEPT comes after the promise. */
ACCEPTOR(a_promise_ends_all_earlier_epochs)
{
    qn_slot_t hi = 99;
    cr_assert_eq(accept_text(0, 1, "a"), QN_ACCEPT_DONE);
    cr_assert(qn_acceptor_promise(&acceptor, 3, 0, &hi));
    cr_assert_eq(hi, 1u);
    cr_assert_eq(accept_text(0, 2, "b"), QN_ACCEPT_REFUSED);
    cr_assert_eq(accept_text(2, 2, "b"), QN_ACCEPT_REFUSED);
    cr_assert_eq(accept_text(4, 2, "b"), QN_ACCEPT_REFUSED);
    cr_assert_eq(accept_text(3, 2, "b"), QN_ACCEPT_DONE);
}

ACCEPTOR(a_promise_never_falls_and_is_of_its_tenure)
{
    qn_slot_t hi = 99;
    cr_assert(qn_acceptor_promise(&acceptor, 3, 0, &hi));
    cr_assert(qn_acceptor_promise(&acceptor, 3, 0, &hi)); /* again */
    cr_assert(!qn_acceptor_promise(&acceptor, 2, 0, &hi));
    cr_assert(!qn_acceptor_promise(&acceptor, 5, 4, &hi));
    cr_assert_eq(acceptor.promised, 3u);
}

ACCEPTOR(who_is_not_active_refuses_everything)
{
    qn_slot_t hi = 99;
    acceptor.active = false;
    cr_assert_eq(accept_text(0, 1, "a"), QN_ACCEPT_REFUSED);
    cr_assert(!qn_acceptor_promise(&acceptor, 1, 0, &hi));
    cr_assert_eq(hi, 99u);
}

/* 6.1: log[s] is already L: a replaced acceptor gets a late ACCEPT. */
ACCEPTOR(a_slot_it_learned_before_is_accepted_if_equal)
{
    put(1, "a", QN_SLOT_LEARNED);
    cr_assert_eq(accept_text(0, 1, "a"), QN_ACCEPT_DONE);
}

Test(acceptor, a_slot_it_learned_otherwise_stops_it, .init = acceptor_setup,
     .signal = SIGABRT)
{
    put(1, "a", QN_SLOT_LEARNED);
    accept_text(0, 1, "b");
}

/* A P slot of its own counts for nothing. */
ACCEPTOR(a_proposal_of_its_own_node_gives_way)
{
    put(1, "a", QN_SLOT_PROPOSED);
    cr_assert_eq(accept_text(0, 1, "b"), QN_ACCEPT_DONE);
    cr_assert_eq(qn_log_at(&log_, 1)->batch->bytes[0], 'b');
}

ACCEPTOR(a_repeat_of_a_dropped_slot_cannot_be_compared)
{
    cr_assert_eq(accept_text(0, 1, "a"), QN_ACCEPT_DONE);
    qn_log_drop(&log_, 2, 1);
    cr_assert_eq(accept_text(0, 1, "a"), QN_ACCEPT_AGAIN);
}
