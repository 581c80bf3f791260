/*
 * One test per claim of the normal case. The number in a comment is the
 * section of paxos/PROTOCOL.md that makes it. Node 0 leads, node 1 accepts,
 * node 2 is neither.
 */
#include <string.h>

#include "tests/support/test.h"
#include "tests/unit/paxos/machine/fixture.h"

static struct fx a, b, c; /* leader, acceptor, third */

static void setup(void)
{
    struct qn_params v = fx_params();
    fx_make(&a, 0, 3, &v);
    fx_make(&b, 1, 3, &v);
    fx_make(&c, 2, 3, &v);
}

static void teardown(void)
{
    fx_end(&a);
    fx_end(&b);
    fx_end(&c);
    cr_assert_eq(fx_refbufs, 0);
}

#define PAPER(name) Test(paper, name, .init = setup, .fini = teardown)
#define TEXT(...)                                                              \
    (const char *const[])                                                      \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

/* Hand the first ACCEPT of a to b. */
static void accept_first(void)
{
    cr_assert_eq(fx_recv(&b, 0, fx_sent(&a, QN_MSG_ACCEPT, 0)), QN_OK);
}

/* 2: the leader numbers slots and sends ACCEPT to one acceptor; its accept is
 * the decision; it says so to the leader, two hops after the proposal, and
 * broadcasts LEARN to the others. */
PAPER(a_command_is_decided_by_one_accept_and_learned_by_all)
{
    cr_assert_eq(fx_submit(&a, "x"), QN_OK);
    fx_tick(&a);
    cr_assert_eq(fx_count(&a, QN_MSG_ACCEPT), 1u);
    cr_assert_eq(fx_to(&a, QN_MSG_ACCEPT, 0), 1u);
    accept_first();
    cr_assert_eq(fx_to(&b, QN_MSG_LEARN, 0), QN_NODES_MAX);
    cr_assert_eq(fx_to(&b, QN_MSG_ACCEPTED, 0), 0u);
    fx_recv(&a, 1, fx_sent(&b, QN_MSG_ACCEPTED, 0));
    fx_recv(&c, 1, fx_sent(&b, QN_MSG_LEARN, 0));
    cr_assert_str_eq(a.applied[0].text, "x");
    cr_assert_str_eq(b.applied[0].text, "x");
    cr_assert_str_eq(c.applied[0].text, "x");
    cr_assert(a.applied[0].mine && !b.applied[0].mine && !c.applied[0].mine);
}

/* 3.2: at the start node 0 is ACTIVE with next = 1, node 1 the acceptor. */
PAPER(node_0_leads_and_node_1_accepts_at_the_start)
{
    struct qn_onepaxos_status st = fx_status(&a);
    cr_assert(st.role == QN_ACTIVE && st.next == 1 && st.epoch == 0);
    cr_assert(st.leader == 0 && st.acceptor == 1);
    cr_assert_eq(fx_status(&b).role, QN_FOLLOWER);
    cr_assert_eq(fx_status(&c).role, QN_FOLLOWER);
}

/* 6.1: the leader does not apply what it has only proposed. */
PAPER(nothing_is_applied_before_it_is_decided)
{
    fx_submit(&a, "x");
    fx_tick(&a);
    fx_later(&a, QN_S);
    cr_assert_eq(a.applied_count, 0u);
    cr_assert_eq(fx_status(&a).learned_hi, 0u);
}

/* 3.3: SUBMIT elsewhere is forwarded to the leader. */
PAPER(a_follower_forwards_to_the_leader)
{
    fx_submit(&c, "x");
    cr_assert_eq(c.out.count, 0u);
    fx_tick(&c);
    cr_assert_eq(fx_to(&c, QN_MSG_REQUEST, 0), 0u);
    cr_assert_eq(fx_sent(&c, QN_MSG_REQUEST, 0)->slot, 1u);
    fx_recv(&a, 2, fx_sent(&c, QN_MSG_REQUEST, 0));
    fx_tick(&a);
    cr_assert_eq(fx_count(&a, QN_MSG_ACCEPT), 1u);
}

/* 3.1, Origins: only a leader says where to send; others drop a REQUEST. */
PAPER(a_request_at_a_follower_goes_nowhere)
{
    fx_submit(&c, "x");
    fx_tick(&c);
    cr_assert_eq(fx_recv(&b, 2, fx_sent(&c, QN_MSG_REQUEST, 0)), QN_OK);
    cr_assert_eq(b.out.count, 0u);
}

/* 6.1: equality with promised, not >=. */
PAPER(an_accept_of_another_epoch_is_refused)
{
    fx_submit(&a, "x");
    fx_tick(&a);
    struct qn_msg m = *fx_sent(&a, QN_MSG_ACCEPT, 0);
    m.epoch = 1;
    cr_assert_eq(fx_recv(&b, 0, &m), QN_OK);
    cr_assert_eq(fx_count(&b, QN_MSG_NACK), 1u);
    cr_assert_eq(fx_sent(&b, QN_MSG_NACK, 0)->epoch, 0u);
    cr_assert_eq(fx_status(&b).learned_hi, 0u);
}

/* 6.1: who is not the acceptor refuses. */
PAPER(an_accept_at_another_node_is_refused)
{
    fx_submit(&a, "x");
    fx_tick(&a);
    fx_recv(&c, 0, fx_sent(&a, QN_MSG_ACCEPT, 0));
    cr_assert_eq(fx_count(&c, QN_MSG_NACK), 1u);
    cr_assert_eq(c.applied_count, 0u);
}

/* 3.3: a deposed leader proposes nothing more. */
PAPER(a_nack_of_a_later_epoch_ends_leading)
{
    struct qn_msg nack = {.kind = QN_MSG_NACK, .epoch = 0, .slot = 1};
    fx_recv(&a, 1, &nack);
    cr_assert_eq(fx_status(&a).role, QN_ACTIVE);
    nack.epoch = 3;
    fx_recv(&a, 1, &nack);
    cr_assert_eq(fx_status(&a).role, QN_FOLLOWER);
    fx_submit(&a, "x");
    fx_tick(&a);
    cr_assert_eq(fx_count(&a, QN_MSG_ACCEPT), 0u);
    cr_assert_eq(fx_count(&a, QN_MSG_U_NEED), 1u); /* what has happened? */
}

/* 6.1: ACCEPTED decides the slot of the epoch that it names. To a node that
 * leads that epoch no more it only says that the slot is decided: what was
 * decided there need not be what this node has proposed. Of an epoch that is
 * not known here it says nothing until that is known. */
PAPER(accepted_counts_in_the_epoch_of_the_proposal_only)
{
    struct qn_msg m = {.kind = QN_MSG_ACCEPTED, .epoch = 1, .slot = 1};
    fx_submit(&a, "x");
    fx_tick(&a);
    fx_recv(&a, 1, &m);
    cr_assert_eq(fx_status(&a).learned_hi, 0u);
    cr_assert_eq(fx_status(&a).decided_hi, 0u);
    fx_tick(&a);
    cr_assert_eq(fx_count(&a, QN_MSG_U_NEED), 1u);
    m.epoch = 0;
    fx_recv(&a, 1, &m);
    cr_assert_eq(fx_status(&a).learned_hi, 1u);
    fx_recv(&c, 1, &m);
    cr_assert_eq(fx_status(&c).learned_hi, 0u);
    cr_assert_eq(fx_status(&c).decided_hi, 1u);
}

/* 3.1.2: only the acceptor of an epoch says ACCEPTED in it, only its leader
 * proposes, and a NACK comes from who was asked. */
PAPER(who_has_no_role_decides_nothing)
{
    struct qn_msg m = {.kind = QN_MSG_ACCEPTED, .epoch = 0, .slot = 1};
    fx_submit(&a, "x");
    fx_tick(&a);
    cr_assert_eq(fx_recv(&a, 2, &m), QN_OK);
    cr_assert_eq(fx_status(&a).learned_hi, 0u);
    cr_assert_eq(fx_status(&a).decided_hi, 0u);
    m = (struct qn_msg){.kind = QN_MSG_NACK, .epoch = 3, .slot = 1};
    cr_assert_eq(fx_recv(&a, 2, &m), QN_OK);
    cr_assert_eq(fx_status(&a).role, QN_ACTIVE);
    struct qn_refbuf *x = fx_slot_batch(1);
    m = fx_accept(1, x);
    cr_assert_eq(fx_recv(&b, 2, &m), QN_ECORRUPT);
    cr_assert_eq(fx_status(&b).learned_hi, 0u);
    qn_refbuf_unref(x);
}

/* The same after NACK: the deposed leader fetches. */
PAPER(a_deposed_leader_fetches_what_was_accepted)
{
    struct qn_msg nack = {.kind = QN_MSG_NACK, .epoch = 3};
    struct qn_msg m = {.kind = QN_MSG_ACCEPTED, .epoch = 0, .slot = 1};
    fx_submit(&a, "x");
    fx_tick(&a);
    fx_recv(&a, 1, &nack);
    fx_recv(&a, 1, &m);
    cr_assert_eq(a.applied_count, 0u);
    fx_later(&a, qn_params_default(true).t_gap);
    cr_assert_eq(fx_count(&a, QN_MSG_FETCH), 1u);
}

/* 6.1: ACCEPTED for slots not proposed, and again, changes nothing. */
PAPER(accepted_is_idempotent_and_never_ahead_of_the_leader)
{
    struct qn_msg m = {.kind = QN_MSG_ACCEPTED, .epoch = 0, .slot = 7};
    fx_submit(&a, "x");
    fx_tick(&a);
    fx_recv(&a, 1, &m);
    cr_assert_eq(fx_status(&a).learned_hi, 0u);
    m.slot = 1;
    fx_recv(&a, 1, &m);
    fx_recv(&a, 1, &m);
    cr_assert_eq(fx_status(&a).learned_hi, 1u);
    cr_assert_eq(a.applied_count, 1u);
}

/* 6.1: s <= acc_hi: ACCEPTED again, to the leader only. */
PAPER(a_repeated_accept_is_answered_to_the_leader_only)
{
    fx_submit(&a, "x");
    fx_tick(&a);
    accept_first();
    accept_first();
    cr_assert_eq(fx_count(&b, QN_MSG_LEARN), 0u);
    cr_assert_eq(fx_to(&b, QN_MSG_ACCEPTED, 0), 0u);
    cr_assert_eq(b.applied_count, 1u);
}

/* 5: no accepted slot is overwritten by another batch. */
Test(paper, a_slot_is_never_accepted_with_another_batch, .init = setup,
     .signal = SIGABRT)
{
    struct qn_refbuf *x = fx_batch(0, 1, TEXT("x"), 1);
    struct qn_refbuf *y = fx_batch(0, 1, TEXT("y"), 1);
    struct qn_msg m = fx_accept(1, x);
    fx_recv(&b, 0, &m);
    m = fx_accept(1, y);
    fx_recv(&b, 0, &m);
}

/* 6.1: the acceptor accepts in slot order; a gap cannot come from a FIFO
 * channel, so the peer is out of order and nothing changes. */
PAPER(an_accept_beyond_the_next_slot_is_refused_as_corrupt)
{
    struct qn_refbuf *x = fx_batch(0, 1, TEXT("x"), 1);
    struct qn_msg m = fx_accept(2, x);
    cr_assert_eq(fx_recv(&b, 0, &m), QN_ECORRUPT);
    m = fx_accept(1, x);
    cr_assert_eq(fx_recv(&b, 2, &m), QN_ECORRUPT); /* not the leader */
    cr_assert_eq(fx_recv(&b, 0, &m), QN_OK);
    qn_refbuf_unref(x);
}

/* 3.2: at the acceptor ACCEPTED and BCAST leave before APPLY is seen. */
PAPER(the_acceptor_tells_before_it_applies)
{
    fx_submit(&a, "x");
    fx_tick(&a);
    accept_first();
    cr_assert_eq(b.out.count, 3u);
    cr_assert_eq(b.out.out[0].msg.kind, QN_MSG_ACCEPTED);
    cr_assert_eq(b.out.out[1].kind, QN_OUT_BCAST);
    cr_assert_eq(b.out.out[2].kind, QN_OUT_APPLY);
}

/* 3.3: LEARNs come in any order; slots are applied in slot order. */
PAPER(slots_are_applied_in_order_whatever_order_they_come_in)
{
    struct qn_refbuf *x = fx_batch(0, 1, TEXT("1"), 1);
    struct qn_refbuf *y = fx_batch(0, 2, TEXT("2"), 1);
    struct qn_refbuf *z = fx_batch(0, 3, TEXT("3"), 1);
    struct qn_msg m = fx_learn(3, z, 3);
    fx_recv(&c, 1, &m);
    m = fx_learn(2, y, 2);
    fx_recv(&c, 1, &m);
    cr_assert_eq(c.applied_count, 0u);
    m = fx_learn(1, x, 1);
    fx_recv(&c, 1, &m);
    cr_assert_eq(c.applied_count, 3u);
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_eq(c.applied[i].slot, i + 1);
        cr_assert_eq(c.applied[i].text[0], (char)('1' + i));
    }
    qn_refbuf_unref(x);
    qn_refbuf_unref(y);
    qn_refbuf_unref(z);
}

/* 3.3: a LEARN counts whatever its epoch: an accept is final (T11). */
PAPER(a_late_learn_of_an_old_epoch_is_learned)
{
    struct qn_refbuf *x = fx_batch(0, 1, TEXT("x"), 1);
    struct qn_msg m = fx_learn(1, x, 1);
    m.epoch = 17;
    fx_recv(&c, 0, &m);
    cr_assert_eq(c.applied_count, 1u);
    fx_recv(&c, 1, &m); /* and again: nothing */
    cr_assert_eq(c.applied_count, 1u);
    qn_refbuf_unref(x);
}

/* 5, I1: two batches for one slot are never both learned. */
Test(paper, disagreement_stops_the_node, .init = setup, .signal = SIGABRT)
{
    struct qn_refbuf *x = fx_batch(0, 1, TEXT("x"), 1);
    struct qn_refbuf *y = fx_batch(0, 1, TEXT("y"), 1);
    struct qn_msg m = fx_learn(1, x, 1);
    fx_recv(&c, 1, &m);
    m = fx_learn(1, y, 1);
    fx_recv(&c, 1, &m);
}

/* 3.3: log[s] is P with another batch: deposed, and has not heard of it. */
PAPER(a_learn_against_an_own_proposal_ends_leading)
{
    struct qn_refbuf *y = fx_batch(2, 1, TEXT("y"), 1);
    fx_submit(&a, "x");
    fx_tick(&a);
    struct qn_msg m = fx_learn(1, y, 1);
    fx_recv(&a, 1, &m);
    cr_assert_eq(fx_status(&a).role, QN_FOLLOWER);
    cr_assert_str_eq(a.applied[0].text, "y");
    qn_refbuf_unref(y);
}

/* 3.4: exactly once: what a session has seen is skipped in apply. */
PAPER(a_command_in_two_slots_is_applied_once)
{
    struct qn_refbuf *x = fx_batch(2, 1, TEXT("1", "2"), 2);
    struct qn_refbuf *y = fx_batch(2, 2, TEXT("2", "3"), 2);
    struct qn_msg m = fx_learn(1, x, 1);
    fx_recv(&b, 1 - 1, &m);
    m = fx_learn(2, y, 2);
    fx_recv(&b, 0, &m);
    cr_assert_eq(b.applied_count, 3u);
    cr_assert_str_eq(b.applied[2].text, "3");
    cr_assert_eq(b.applied[2].seq, 3u);
    cr_assert_eq(b.slots, 2u);
    qn_refbuf_unref(x);
    qn_refbuf_unref(y);
}

static struct qn_refbuf *batch_of_life(uint64_t inc, uint64_t first,
                                       const char *text)
{
    struct qn_refbuf *list = qn_refbuf_create(&qn_alloc_malloc, 0);
    struct qn_slice part = {(const uint8_t *)text, strlen(text)};
    cr_assert_eq(qn_commands_add(&list, &part, 1), QN_OK);
    struct qn_refbuf *x = qn_batch_create(&qn_alloc_malloc, 0);
    struct qn_command_run g = {2, inc, first, 1, {list->bytes, list->len}};
    cr_assert_eq(qn_batch_add(&x, &g), QN_OK);
    qn_refbuf_unref(list);
    return x;
}

/* 3.1: apply drops commands of an incarnation older than the session's. */
PAPER(commands_of_an_older_life_are_dropped)
{
    struct qn_refbuf *old = batch_of_life(5, 1, "old");
    struct qn_refbuf *new = batch_of_life(6, 1, "new");
    struct qn_refbuf *late = batch_of_life(5, 2, "late");
    const struct qn_refbuf *all[] = {old, new, late};
    for (qn_slot_t s = 1; s <= 3; s++) {
        struct qn_msg m = fx_learn(s, all[s - 1], s);
        fx_recv(&b, 0, &m);
    }
    cr_assert_eq(b.applied_count, 2u);
    cr_assert_str_eq(b.applied[0].text, "old");
    cr_assert_str_eq(b.applied[1].text, "new");
    cr_assert_eq(b.slots, 3u);
    qn_refbuf_unref(old);
    qn_refbuf_unref(new);
    qn_refbuf_unref(late);
}

/* 3.3: the leader drops duplicates of what is queued or in its log. */
PAPER(a_repeated_request_gets_no_second_slot)
{
    struct qn_refbuf *own;
    struct qn_msg m = fx_request(1, TEXT("1", "2"), 2, &own);
    fx_recv(&a, 2, &m);
    fx_recv(&a, 2, &m); /* queued */
    cr_assert_eq(fx_status(&a).queued, 2u);
    fx_tick(&a);
    fx_recv(&a, 2, &m); /* proposed */
    fx_tick(&a);
    cr_assert_eq(fx_count(&a, QN_MSG_ACCEPT), 0u);
    qn_refbuf_unref(own);
}

/* 3.3: part of it may be new. */
PAPER(a_request_that_overlaps_is_cut)
{
    struct qn_refbuf *one, *two;
    struct qn_msg m = fx_request(1, TEXT("1", "2"), 2, &one);
    fx_recv(&a, 2, &m);
    m = fx_request(2, TEXT("2", "3"), 2, &two);
    fx_recv(&a, 2, &m);
    cr_assert_eq(fx_status(&a).queued, 3u);
    fx_tick(&a);
    accept_first();
    cr_assert_eq(b.applied_count, 3u);
    cr_assert_str_eq(b.applied[2].text, "3");
    qn_refbuf_unref(one);
    qn_refbuf_unref(two);
}

/* 3.3: a session accepts seq = last + 1 only; 3.1: and then the origin sends
 * everything unapplied again, in order. */
PAPER(a_request_with_a_gap_makes_the_origin_send_all_again)
{
    fx_submit(&c, "1");
    fx_tick(&c); /* the first request is lost */
    fx_submit(&c, "2");
    fx_tick(&c);
    cr_assert_eq(fx_sent(&c, QN_MSG_REQUEST, 0)->slot, 2u);
    cr_assert_eq(fx_recv(&a, 2, fx_sent(&c, QN_MSG_REQUEST, 0)), QN_OK);
    const struct qn_msg *m = fx_sent(&a, QN_MSG_REDIRECT, 0);
    cr_assert(m != NULL && m->redirect.leader == 0);
    fx_recv(&c, 0, m);
    fx_tick(&c);
    cr_assert_eq(fx_count(&c, QN_MSG_REQUEST), 2u);
    cr_assert_eq(fx_sent(&c, QN_MSG_REQUEST, 0)->slot, 1u);
    fx_recv(&a, 2, fx_sent(&c, QN_MSG_REQUEST, 0));
    fx_recv(&a, 2, fx_sent(&c, QN_MSG_REQUEST, 1));
    cr_assert_eq(fx_status(&a).queued, 2u);
}

PAPER(one_gap_is_answered_once)
{
    struct qn_refbuf *own;
    struct qn_msg m = fx_request(5, TEXT("5"), 1, &own);
    fx_recv(&a, 2, &m);
    cr_assert_eq(fx_count(&a, QN_MSG_REDIRECT), 1u);
    fx_recv(&a, 2, &m);
    cr_assert_eq(fx_count(&a, QN_MSG_REDIRECT), 0u);
    qn_refbuf_unref(own);
}

/* 3.4, Batching: a batch is whatever waits when a slot is free: no timer. */
PAPER(what_waits_shares_a_slot)
{
    struct qn_refbuf *own;
    struct qn_msg m = fx_request(1, TEXT("r1", "r2"), 2, &own);
    fx_submit(&a, "s1");
    fx_recv(&a, 2, &m);
    fx_tick(&a);
    cr_assert_eq(fx_count(&a, QN_MSG_ACCEPT), 1u);
    const struct qn_msg *accept = fx_sent(&a, QN_MSG_ACCEPT, 0);
    cr_assert_eq(qn_batch_count(accept->body), 3u);
    qn_refbuf_unref(own);
}

/* 3.4, 10: MAX_BATCH in commands (4 here) and in bytes. */
PAPER(a_batch_is_bounded_in_commands_and_in_bytes)
{
    struct qn_params v = fx_params();
    v.batch_bytes = 100;
    struct fx f;
    fx_make(&f, 0, 3, &v);
    fx_submit(&f, "forty bytes forty bytes forty bytes 40");
    fx_submit(&f, "forty bytes forty bytes forty bytes 40");
    fx_submit(&f, "forty bytes forty bytes forty bytes 40");
    fx_tick(&f);
    cr_assert_eq(fx_count(&f, QN_MSG_ACCEPT), 2u);
    fx_end(&f);
    for (int i = 0; i < 4; i++) {
        fx_submit(&a, "x");
        fx_submit(&c, "x");
    }
    fx_tick(&c);
    fx_recv(&a, 2, fx_sent(&c, QN_MSG_REQUEST, 0));
    fx_tick(&a);
    cr_assert_eq(fx_count(&a, QN_MSG_ACCEPT), 2u);
}

/* 3.4, Pipelining: WINDOW slots in flight (4 here). */
PAPER(the_window_bounds_slots_in_flight)
{
    for (int i = 0; i < 5; i++) {
        struct qn_refbuf *own;
        struct qn_msg m =
            fx_request(1 + 2 * (uint64_t)i, TEXT("1", "2"), 2, &own);
        fx_recv(&a, 2, &m);
        fx_tick(&a);
        cr_assert_eq(fx_count(&a, QN_MSG_ACCEPT), i < 4 ? 1u : 0u);
        if (i == 0) {
            accept_first();
        }
        qn_refbuf_unref(own);
    }
    fx_recv(&a, 1, fx_sent(&b, QN_MSG_ACCEPTED, 0));
    fx_tick(&a);
    cr_assert_eq(fx_sent(&a, QN_MSG_ACCEPT, 0)->slot, 5u);
}

/* 3.1: stamp = max(last stamp in the log, wall clock). */
PAPER(stamps_never_go_back)
{
    a.wall_ms = 5000;
    fx_submit(&a, "x");
    fx_tick(&a);
    accept_first();
    a.wall_ms = 4000; /* the clock was set back */
    fx_submit(&a, "y");
    fx_tick(&a);
    accept_first();
    cr_assert_eq(b.applied[0].stamp_ms, 5000u);
    cr_assert_eq(b.applied[1].stamp_ms, 5000u);
    a.wall_ms = 6000;
    fx_submit(&a, "z");
    fx_tick(&a);
    accept_first();
    cr_assert_eq(b.applied[2].stamp_ms, 6000u);
}

/* 3.1: a REQUEST without commands asks for a stamp. */
PAPER(time_can_pass_in_the_log_without_a_command)
{
    fx_stamp(&c);
    fx_tick(&c);
    const struct qn_msg *m = fx_sent(&c, QN_MSG_REQUEST, 0);
    cr_assert(m != NULL && m->body.len == 0);
    fx_recv(&a, 2, m);
    fx_tick(&a);
    accept_first();
    cr_assert_eq(b.slots, 1u);
    cr_assert_eq(b.applied_count, 0u);
    cr_assert_eq(fx_status(&b).applied, 1u);
    fx_stamp(&a); /* at the leader itself */
    fx_tick(&a);
    cr_assert_eq(fx_count(&a, QN_MSG_ACCEPT), 1u);
}

/* 3.1: an origin has at most QUEUE / N commands at the leader (4 here), and
 * nothing is started beyond. */
PAPER(credit_bounds_an_origin)
{
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(fx_submit(&c, "x"), QN_OK);
    }
    cr_assert_eq(fx_submit(&c, "x"), QN_EAGAIN);
    cr_assert_eq(fx_status(&c).seq, 4u);
    fx_tick(&c);
    struct qn_refbuf *x = fx_batch(2, 1, TEXT("x"), 1);
    struct qn_msg m = fx_learn(1, x, 1);
    fx_recv(&c, 1, &m);
    cr_assert(c.applied[0].mine);
    cr_assert_eq(fx_submit(&c, "x"), QN_OK);
    cr_assert_eq(fx_submit(&c, "x"), QN_EAGAIN);
    qn_refbuf_unref(x);
}

/* 3.1: LEARN carries decided_hi and the mask of nodes alive. */
PAPER(learn_says_who_is_believed_alive)
{
    fx_down(&b, 2);
    fx_submit(&a, "x");
    fx_tick(&a);
    accept_first();
    const struct qn_msg *m = fx_sent(&b, QN_MSG_LEARN, 0);
    cr_assert_eq(m->learn.hi, 1u);
    cr_assert_eq(m->learn.alive, 3u);
}

/* 3: messages of parts that this version lacks are refused, not swallowed. */
PAPER(snapshots_do_not_travel_as_messages_yet)
{
    const uint8_t kinds[] = {QN_MSG_SNAP_REQ, QN_MSG_SNAP};
    for (size_t i = 0; i < QN_ARRAY_COUNT(kinds); i++) {
        struct qn_msg m = {.kind = kinds[i]};
        cr_expect_eq(fx_recv(&c, 0, &m), QN_ENOSYS);
        cr_expect_eq(c.out.count, 0u);
    }
}

/* T8: a leader that is sealed proposes nothing any more, and says what it has
 * proposed. */
PAPER(seal_ends_leading_and_returns_what_was_proposed)
{
    fx_submit(&a, "x");
    fx_tick(&a);
    uint8_t ul[QN_UL_BYTES];
    const struct qn_ul_entry led = {.index = 1,
                                    .kind = QN_UL_LEADER,
                                    .leader = 2,
                                    .acceptor = 1,
                                    .leader_inc = 12,
                                    .acceptor_inc = 11};
    qn_ul_encode(&led, ul);
    struct qn_msg seal = {.kind = QN_MSG_SEAL, .epoch = 1, .slot = 1};
    seal.body = (struct qn_slice){ul, sizeof ul};
    fx_recv(&a, 2, &seal);
    cr_assert_eq(fx_status(&a).role, QN_FOLLOWER);
    fx_room(&a, 4);
    const struct qn_msg *m = fx_sent(&a, QN_MSG_SEALED, 0);
    cr_assert(m != NULL && m->flags == (QN_MSG_OK | QN_MSG_LAST));
    cr_assert(m->slot == 1 && m->body.len != 0 && m->sealed.hi == 1);
    fx_submit(&a, "y");
    fx_tick(&a);
    cr_assert_eq(fx_count(&a, QN_MSG_ACCEPT), 0u);
}

/* T12: an acceptor that has heard of no entry is adopted all the same. */
PAPER(prepare_brings_the_utility_log)
{
    uint8_t ul[QN_UL_BYTES];
    const struct qn_ul_entry led = {.index = 1,
                                    .kind = QN_UL_LEADER,
                                    .leader = 2,
                                    .acceptor = 1,
                                    .leader_inc = 12,
                                    .acceptor_inc = 11};
    qn_ul_encode(&led, ul);
    struct qn_msg prepare = {.kind = QN_MSG_PREPARE, .epoch = 1, .slot = 1};
    prepare.body = (struct qn_slice){ul, sizeof ul};
    fx_recv(&b, 2, &prepare);
    fx_room(&b, 4);
    cr_assert_eq(fx_count(&b, QN_MSG_PREPARED), 1u);
    cr_assert_eq(fx_sent(&b, QN_MSG_PREPARED, 0)->epoch, 1u);
}

/* T17: a candidate that was appointed, and hears of it only by the STAGE of
 * the next leader, keeps what was staged before. */
PAPER(stage_brings_the_utility_log_before_it_replaces_what_was_staged)
{
    struct qn_refbuf *x = fx_batch(0, 1, TEXT("x"), 1);
    struct qn_msg first = {.kind = QN_MSG_STAGE, .flags = QN_MSG_UL};
    first.stage.hi = 1;
    fx_recv(&c, 0, &first);
    struct qn_msg slot = {
        .kind = QN_MSG_STAGE, .flags = QN_MSG_LAST, .slot = 1};
    slot.stage.hi = 1;
    slot.body = (struct qn_slice){x->bytes, x->len};
    fx_recv(&c, 0, &slot);
    cr_assert_eq(fx_sent(&c, QN_MSG_STAGED, 0)->flags, QN_MSG_OK);
    /* Entry 1 appoints node 2; entry 2 makes node 1 leader, which stages an
     * empty log. */
    uint8_t ul[2 * QN_UL_BYTES];
    const struct qn_ul_entry appointed = {.index = 1,
                                          .tenure = 1,
                                          .kind = QN_UL_ACCEPTOR,
                                          .acceptor = 2,
                                          .leader_inc = 10,
                                          .acceptor_inc = 12};
    const struct qn_ul_entry led = {.index = 2,
                                    .tenure = 1,
                                    .kind = QN_UL_LEADER,
                                    .leader = 1,
                                    .acceptor = 2,
                                    .leader_inc = 11,
                                    .acceptor_inc = 12};
    qn_ul_encode(&appointed, ul);
    qn_ul_encode(&led, ul + QN_UL_BYTES);
    struct qn_msg second = {
        .kind = QN_MSG_STAGE, .flags = QN_MSG_UL, .epoch = 2};
    second.body = (struct qn_slice){ul, sizeof ul};
    fx_recv(&c, 1, &second);
    cr_assert_eq(fx_status(&c).learned_hi, 1u);
    cr_assert_eq(fx_count(&c, QN_MSG_LEARN), 1u);
    qn_refbuf_unref(x);
}

/* A group of one decides by itself: the same code, no messages. */
PAPER(a_group_of_one_decides_alone)
{
    struct qn_params v = fx_params();
    struct fx f;
    fx_make(&f, 0, 1, &v);
    cr_assert_eq(fx_submit(&f, "x"), QN_OK);
    fx_tick(&f);
    cr_assert_eq(f.out.count, 1u);
    cr_assert_eq(f.out.out[0].kind, QN_OUT_APPLY);
    cr_assert(f.applied[0].mine);
    fx_tick(&f);
    cr_assert_eq(fx_status(&f).log_lo, 2u);
    fx_end(&f);
}
