/*
 * Death on a device of words: what a sender had reserved, what it had sent, its
 * successor, and senders that wait at a dead core.
 */
#include "tests/unit/core/words/words_world.h"

static struct words_world w;

static void init(void)
{
    world_make(&w, &qn_words_shared);
}

static void fini(void)
{
    world_free(&w);
}

#define DEATH_TEST(name) Test(words_death, name, .init = init, .fini = fini)

static void tell_all(qn_node_t dead)
{
    for (uint32_t i = 0; i < NODES; i++) {
        if (i != dead) {
            qn_device_down(w.node[i], dead);
        }
    }
}

static uint32_t room_at(qn_node_t node)
{
    return qn_words_room(w.node[node == 1 ? 2 : 1],
                         (struct qn_words_target){node, 0});
}

static void room_is(qn_node_t node, uint32_t expected)
{
    uint32_t room = room_at(node);
    cr_assert_eq(room, expected, "%u, expected %u", room, expected);
}

/* ---- words of a dead sender ---- */

DEATH_TEST(what_a_dead_sender_had_reserved_is_padded_after_down)
{
    only_reserve(&w, 1, 0, 0, 5);
    cr_assert_eq(send_run(&w, 2, 0, 0, 70, 3), QN_OK);
    cr_assert_eq(receive_run(&w, 0, 0, 70, 3), QN_EAGAIN, "it may continue");
    qn_device_down(w.node[0], 1);
    cr_assert_eq(receive_run(&w, 0, 0, 70, 3), QN_OK);
    cr_assert_eq(port_of(&w, 0)->padded, 5);
    room_is(0, QN_WORDS_SHARED_MAX);
}

DEATH_TEST(a_sender_that_was_only_stopped_loses_nothing)
{
    const uint64_t words[2] = {50, 51};
    uint32_t at = only_reserve(&w, 1, 0, 0, 2);
    cr_assert_eq(send_run(&w, 2, 0, 0, 70, 1), QN_OK);
    qn_device_down(w.node[0], 3);
    cr_assert_eq(receive_run(&w, 0, 0, 50, 2), QN_EAGAIN);
    qn_words_publish(port_of(&w, 1), (struct qn_words_target){0, 0}, at, words,
                     2);
    cr_assert_eq(receive_run(&w, 0, 0, 50, 2), QN_OK);
    cr_assert_eq(receive_run(&w, 0, 0, 70, 1), QN_OK);
}

/* An intent does not tell whether the reservation was its writer's: a dead
 * one's names the range of a living one. */
DEATH_TEST(the_intent_of_a_dead_sender_is_not_followed)
{
    const uint64_t words[2] = {50, 51};
    const struct qn_words_target to = {0, 0};
    uint32_t at = only_reserve(&w, 1, 0, 0, 2);
    qn_store(&port_of(&w, 2)->own->intent, qn_words_intent(to, at, w.inc[2]),
             QN_RELAXED);
    tell_all(2);
    cr_assert_eq(receive_run(&w, 0, 0, 50, 2), QN_EAGAIN);
    qn_words_publish(port_of(&w, 1), to, at, words, 2);
    cr_assert_eq(receive_run(&w, 0, 0, 50, 2), QN_OK);
    cr_assert_eq(port_of(&w, 0)->padded, 0);
}

/* The other way round: a living sender that lost the race and has not come to
 * say so holds up the repair until it moves. */
DEATH_TEST(a_living_senders_intent_delays_the_repair)
{
    const struct qn_words_target to = {0, 0};
    uint32_t at = only_reserve(&w, 1, 0, 0, 2);
    qn_store(&port_of(&w, 2)->own->intent, qn_words_intent(to, at, w.inc[2]),
             QN_RELAXED);
    tell_all(1);
    cr_assert_eq(receive_run(&w, 0, 0, 70, 3), QN_EAGAIN);
    cr_assert_eq(port_of(&w, 0)->padded, 0);
    cr_assert_eq(send_run(&w, 2, 0, 0, 70, 3), QN_OK, "it moves");
    cr_assert_eq(receive_run(&w, 0, 0, 70, 3), QN_OK);
    cr_assert_eq(port_of(&w, 0)->padded, 2);
}

DEATH_TEST(ranges_of_dead_and_living_senders_alternate)
{
    const uint64_t words[3] = {50, 51, 52};
    const struct qn_words_target to = {0, 0};
    only_reserve(&w, 1, 0, 0, 4);
    uint32_t at = only_reserve(&w, 2, 0, 0, 3);
    only_reserve(&w, 3, 0, 0, 2);
    tell_all(1);
    tell_all(3);
    cr_assert_eq(receive_run(&w, 0, 0, 50, 3), QN_EAGAIN);
    cr_assert_eq(port_of(&w, 0)->padded, 4);
    qn_words_publish(port_of(&w, 2), to, at, words, 3);
    cr_assert_eq(receive_run(&w, 0, 0, 50, 3), QN_OK);
    cr_assert(qn_words_empty(w.node[0], 0));
    cr_assert_eq(port_of(&w, 0)->padded, 6);
    room_is(0, QN_WORDS_SHARED_MAX);
}

DEATH_TEST(a_dead_sender_in_each_queue_is_padded)
{
    for (uint32_t q = 0; q < 4; q++) {
        only_reserve(&w, 1, 0, q, 1 + q);
    }
    qn_device_down(w.node[0], 1);
    for (uint32_t q = 0; q < 4; q++) {
        cr_assert(qn_words_empty(w.node[0], q));
    }
    room_is(0, QN_WORDS_SHARED_MAX);
}

/* A successor overwrites the intent of the dead before the receiver is told of
 * the death. */
DEATH_TEST(a_successor_may_be_there_before_the_death_is_told)
{
    only_reserve(&w, 1, 0, 0, 5);
    world_successor(&w, 1);
    cr_assert_eq(send_run(&w, 1, 0, 0, 90, 2), QN_OK);
    cr_assert_eq(receive_run(&w, 0, 0, 90, 2), QN_EAGAIN);
    qn_device_down(w.node[0], 1);
    cr_assert_eq(receive_run(&w, 0, 0, 90, 2), QN_EAGAIN, "not named yet");
    qn_device_up(w.node[0], 1, w.inc[1]);
    cr_assert_eq(receive_run(&w, 0, 0, 90, 2), QN_OK);
    room_is(0, QN_WORDS_SHARED_MAX);
}

/* Being told late of a death must not clear the successor's intent. */
DEATH_TEST(a_late_down_leaves_the_successors_reservation_alone)
{
    const uint64_t words[2] = {50, 51};
    world_successor(&w, 1);
    uint32_t at = only_reserve(&w, 1, 0, 0, 2);
    tell_all(1);
    cr_assert_eq(receive_run(&w, 0, 0, 50, 2), QN_EAGAIN);
    cr_assert_eq(port_of(&w, 0)->padded, 0);
    qn_words_publish(port_of(&w, 1), (struct qn_words_target){0, 0}, at, words,
                     2);
    qn_device_up(w.node[0], 1, w.inc[1]);
    cr_assert_eq(receive_run(&w, 0, 0, 50, 2), QN_OK);
}

/* Node 1 comes back and ends again. Node 0 hears of the third incarnation, not
 * of the second. */
DEATH_TEST(what_an_incarnation_never_named_had_reserved_is_padded_after_up)
{
    tell_all(1);
    world_successor(&w, 1);
    only_reserve(&w, 1, 0, 0, 5);
    cr_assert_eq(send_run(&w, 2, 0, 0, 70, 3), QN_OK);
    qn_device_down(w.node[0], 1);
    cr_assert_eq(receive_run(&w, 0, 0, 70, 3), QN_EAGAIN);
    qn_device_up(w.node[0], 1, w.inc[1] + 1); /* which has not attached */
    cr_assert_eq(receive_run(&w, 0, 0, 70, 3), QN_OK);
    cr_assert_eq(port_of(&w, 0)->padded, 5);
    room_is(0, QN_WORDS_SHARED_MAX);
}

/* The same, and node 0 is new as well: attach names the third incarnation. */
DEATH_TEST(attach_knows_that_earlier_incarnations_of_peers_have_ended)
{
    only_reserve(&w, 1, 0, 0, 5);
    tell_all(0);
    w.inc[1]++;
    world_successor(&w, 0);
    qn_device_up(w.node[2], 0, w.inc[0]);
    cr_assert_eq(send_run(&w, 2, 0, 0, 70, 3), QN_OK);
    cr_assert_eq(receive_run(&w, 0, 0, 70, 3), QN_OK);
    cr_assert_eq(port_of(&w, 0)->padded, 5);
}

/* It ended before its attach came to the intent of its predecessor, which no
 * living node has known. */
DEATH_TEST(an_end_clears_the_intent_of_an_earlier_incarnation)
{
    only_reserve(&w, 1, 0, 0, 5);
    qn_device_up(w.node[0], 1, w.inc[1] + 1);
    qn_store(&port_of(&w, 1)->own->intent,
             qn_words_intent((struct qn_words_target){0, 0}, 0, w.inc[1]),
             QN_RELAXED);
    qn_device_down(w.node[0], 1);
    cr_assert(qn_words_empty(w.node[0], 0));
    cr_assert_eq(port_of(&w, 0)->padded, 5);
}

/* ---- nothing of another incarnation ---- */

DEATH_TEST(what_a_sender_sent_before_its_death_arrives)
{
    cr_assert_eq(send_run(&w, 1, 0, 0, 50, 2), QN_OK);
    tell_all(1);
    cr_assert_eq(receive_run(&w, 0, 0, 50, 2), QN_OK);
}

DEATH_TEST(up_drops_what_the_former_incarnation_sent)
{
    cr_assert_eq(send_run(&w, 1, 0, 0, 50, 2), QN_OK);
    cr_assert_eq(send_run(&w, 2, 0, 0, 60, 2), QN_OK);
    cr_assert_eq(send_run(&w, 1, 0, 0, 54, 2), QN_OK);
    cr_assert_eq(receive_run(&w, 0, 0, 50, 7), QN_EAGAIN, "all were copied");
    cr_assert_eq(send_run(&w, 1, 0, 0, 56, 2), QN_OK, "one was not");
    tell_all(1);
    world_successor(&w, 1);
    qn_device_up(w.node[0], 1, w.inc[1]);
    cr_assert_eq(send_run(&w, 1, 0, 0, 80, 1), QN_OK);
    cr_assert_eq(receive_run(&w, 0, 0, 60, 2), QN_OK);
    cr_assert_eq(receive_run(&w, 0, 0, 80, 1), QN_OK);
    cr_assert(qn_words_empty(w.node[0], 0));
    room_is(0, QN_WORDS_SHARED_MAX);
}

DEATH_TEST(the_rest_of_a_message_that_was_begun_arrives)
{
    cr_assert_eq(send_run(&w, 1, 0, 0, 50, 3), QN_OK);
    cr_assert_eq(send_run(&w, 1, 0, 0, 60, 3), QN_OK);
    cr_assert_eq(receive_run(&w, 0, 0, 50, 1), QN_OK);
    cr_assert_eq(receive_run(&w, 0, 0, 51, 6), QN_EAGAIN);
    tell_all(1);
    qn_device_up(w.node[0], 1, w.inc[1] + 1);
    cr_assert_eq(receive_run(&w, 0, 0, 51, 2), QN_OK);
    cr_assert(qn_words_empty(w.node[0], 0));
}

DEATH_TEST(what_is_not_named_yet_waits_and_lets_others_pass)
{
    tell_all(1);
    world_successor(&w, 1);
    cr_assert_eq(send_run(&w, 1, 0, 0, 50, 2), QN_OK);
    cr_assert_eq(send_run(&w, 2, 0, 0, 60, 2), QN_OK);
    cr_assert_eq(send_run(&w, 1, 0, 0, 52, 2), QN_OK);
    cr_assert_eq(receive_run(&w, 0, 0, 60, 2), QN_OK);
    cr_assert(qn_words_empty(w.node[0], 0));
    room_is(0, QN_WORDS_SHARED_MAX - 4);
    qn_device_up(w.node[0], 1, w.inc[1]);
    cr_assert_eq(receive_run(&w, 0, 0, 50, 4), QN_OK);
    room_is(0, QN_WORDS_SHARED_MAX);
}

DEATH_TEST(a_new_incarnation_gets_nothing_that_was_sent_to_the_former)
{
    cr_assert_eq(send_run(&w, 1, 0, 0, 50, 2), QN_OK);
    cr_assert_eq(send_run(&w, 1, 0, 1, 50, 9), QN_OK);
    cr_assert(!qn_words_empty(w.node[0], 1)); /* copied, and not taken */
    room_is(0, QN_WORDS_SHARED_MAX - 11);
    tell_all(0);
    world_successor(&w, 0);
    room_is(0, QN_WORDS_SHARED_MAX - 2);
    cr_assert(qn_words_empty(w.node[0], 0));
    room_is(0, QN_WORDS_SHARED_MAX);
    qn_device_up(w.node[1], 0, w.inc[0]);
    cr_assert_eq(send_run(&w, 1, 0, 0, 60, 2), QN_OK);
    cr_assert_eq(receive_run(&w, 0, 0, 60, 2), QN_OK);
}

/* A sender that was stopped writes into slots that no other sender has got. */
DEATH_TEST(a_stopped_sender_damages_nothing_of_the_next_incarnation)
{
    const uint64_t words[3] = {50, 51, 52};
    const struct qn_words_target to = {0, 0};
    uint32_t at = only_reserve(&w, 1, 0, 0, 3);
    for (uint32_t i = 2; i < 4; i++) {
        qn_device_down(w.node[i], 0);
    }
    world_successor(&w, 0);
    for (uint32_t i = 2; i < 4; i++) {
        qn_device_up(w.node[i], 0, w.inc[0]);
    }
    cr_assert_eq(send_run(&w, 2, 0, 0, 70, 115), QN_OK);
    cr_assert_eq(receive_run(&w, 0, 0, 70, 115), QN_EAGAIN);
    qn_words_publish(port_of(&w, 1), to, at, words, 3);
    cr_assert_eq(receive_run(&w, 0, 0, 70, 115), QN_OK);
    cr_assert(qn_words_empty(w.node[0], 0));
}

DEATH_TEST(a_new_incarnation_pads_what_it_finds_of_the_dead)
{
    only_reserve(&w, 1, 0, 0, 3);
    tell_all(1);
    tell_all(0);
    w.inc[1] = 0; /* and not back yet */
    world_successor(&w, 0);
    qn_device_up(w.node[2], 0, w.inc[0]);
    cr_assert_eq(send_run(&w, 2, 0, 0, 70, 2), QN_OK);
    cr_assert_eq(receive_run(&w, 0, 0, 70, 2), QN_OK);
    cr_assert_eq(port_of(&w, 0)->padded, 3);
}

/* ---- senders ---- */

DEATH_TEST(sending_to_a_dead_or_absent_node_says_so)
{
    qn_device_down(w.node[1], 0);
    cr_assert_eq(send_run(&w, 1, 0, 0, 0, 1), QN_EPEERDEAD);
    w.inc[2] = 0;
    world_successor(&w, 3);
    w.inc[2] = 13;
    cr_assert_eq(send_run(&w, 3, 2, 0, 0, 1), QN_EPEERDEAD);
    qn_device_up(w.node[3], 2, 13);
    cr_assert_eq(send_run(&w, 3, 2, 0, 0, 1), QN_OK);
}

/* Another node has been told; this one has not. */
DEATH_TEST(a_sender_without_room_learns_of_the_end_from_the_device)
{
    cr_assert_eq(send_run(&w, 1, 0, 0, 0, 118), QN_OK);
    cr_assert_eq(send_run(&w, 1, 0, 0, 0, 1), QN_EAGAIN);
    qn_device_down(w.node[2], 0);
    cr_assert_eq(send_run(&w, 1, 0, 0, 0, 1), QN_EPEERDEAD);
    world_successor(&w, 0);
    cr_assert_eq(send_run(&w, 1, 0, 0, 0, 1), QN_EPEERDEAD, "replaced");
    qn_device_down(w.node[1], 0);
    qn_device_up(w.node[1], 0, w.inc[0]);
    cr_assert(qn_words_empty(w.node[0], 0));
    cr_assert_eq(send_run(&w, 1, 0, 0, 0, 1), QN_OK);
}

/* It ended between being named and storing its life. */
DEATH_TEST(a_sender_without_room_learns_of_an_end_before_life)
{
    cr_assert_eq(send_run(&w, 1, 0, 0, 0, 118), QN_OK);
    tell_all(0);
    for (uint32_t i = 1; i < NODES; i++) {
        qn_device_up(w.node[i], 0, w.inc[0] + 1);
    }
    cr_assert_eq(send_run(&w, 1, 0, 0, 0, 1), QN_EAGAIN);
    qn_doorbell_arm(&w.doorbell[1]);
    uint32_t asleep = qn_load(&w.line[1].epoch, QN_SEQ_CST);
    qn_words_want_room(w.node[1], 0);
    qn_device_down(w.node[2], 0);
    cr_assert_neq(qn_load(&w.line[1].epoch, QN_SEQ_CST), asleep);
    cr_assert_eq(send_run(&w, 1, 0, 0, 0, 1), QN_EPEERDEAD);
    w.inc[0]++;
    world_successor(&w, 0);
    qn_device_down(w.node[3], 0); /* told late: the successor has attached */
    cr_assert_eq(qn_load(&port_of(&w, 0)->own->life, QN_RELAXED), w.inc[0]);
}

/* Named by up before it has attached: it will come. */
DEATH_TEST(a_sender_without_room_waits_for_a_node_that_is_on_its_way)
{
    cr_assert_eq(send_run(&w, 1, 0, 0, 0, 118), QN_OK);
    tell_all(0);
    qn_device_up(w.node[1], 0, w.inc[0] + 100);
    cr_assert_eq(send_run(&w, 1, 0, 0, 0, 1), QN_EAGAIN);
}

DEATH_TEST(a_failed_send_leaves_no_intent)
{
    cr_assert_eq(send_run(&w, 1, 0, 0, 0, 118), QN_OK);
    cr_assert_eq(send_run(&w, 1, 0, 0, 0, 1), QN_EAGAIN);
    cr_assert_eq(qn_load(&port_of(&w, 1)->own->intent, QN_RELAXED), 0);
}

/* The low 16 bits of incarnations decide: they wrap. */
DEATH_TEST(incarnations_wrap_in_their_low_bits)
{
    qn_device_detach(w.node[1]);
    w.inc[1] = 0x1ffff;
    world_attach(&w, 1);
    qn_device_up(w.node[0], 1, w.inc[1]);
    cr_assert_eq(send_run(&w, 1, 0, 0, 50, 2), QN_OK);
    cr_assert_eq(receive_run(&w, 0, 0, 50, 2), QN_OK);
    cr_assert_eq(send_run(&w, 1, 0, 0, 50, 2), QN_OK);
    tell_all(1);
    qn_device_up(w.node[0], 1, 0x20000);
    cr_assert(qn_words_empty(w.node[0], 0));
}

/* What its bell was in may be unmapped by now. */
DEATH_TEST(a_sender_that_has_ended_is_not_rung)
{
    cr_assert_eq(send_run(&w, 1, 0, 0, 1, QN_WORDS_SHARED_MAX), QN_OK);
    qn_doorbell_arm(&w.doorbell[2]);
    qn_doorbell_arm(&w.doorbell[3]);
    uint32_t asleep = qn_load(&w.line[2].epoch, QN_SEQ_CST);
    qn_words_want_room(w.node[2], 0);
    qn_words_want_room(w.node[3], 0);
    qn_device_down(w.node[0], 2);
    cr_assert_eq(receive_run(&w, 0, 0, 1, QN_WORDS_SHARED_MAX), QN_OK);
    cr_assert_eq(qn_load(&w.line[2].epoch, QN_SEQ_CST), asleep);
    cr_assert_neq(qn_load(&w.line[3].epoch, QN_SEQ_CST), asleep);
}

/* ---- wishes for room that a node clears which does not know their owner ----
 */

/* Node 1 comes back. The core of 0 is full, and it waits there. */
static uint32_t successor_waits_at_0(bool known)
{
    tell_all(1);
    world_successor(&w, 1);
    if (known) {
        qn_device_up(w.node[0], 1, w.inc[1]);
    }
    cr_assert_eq(send_run(&w, 3, 0, 0, 0, QN_WORDS_SHARED_MAX), QN_OK);
    qn_doorbell_arm(&w.doorbell[1]);
    uint32_t asleep = qn_load(&w.line[1].epoch, QN_SEQ_CST);
    qn_words_want_room(w.node[1], 0);
    cr_assert_eq(send_run(&w, 1, 0, 0, 0, 1), QN_EAGAIN);
    return asleep;
}

DEATH_TEST(a_wish_that_attach_of_another_node_clears_is_not_forgotten)
{
    uint32_t asleep = successor_waits_at_0(true);
    uint64_t inc = w.inc[1];
    w.inc[1] = 0; /* 2 comes back, too, and is told of 1 only later */
    world_successor(&w, 2);
    w.inc[1] = inc;
    qn_device_up(w.node[2], 1, inc);
    cr_assert_eq(receive_run(&w, 0, 0, 0, QN_WORDS_SHARED_MAX), QN_OK);
    cr_assert_neq(qn_load(&w.line[1].epoch, QN_SEQ_CST), asleep);
}

DEATH_TEST(a_wish_that_a_receiver_clears_before_up_is_not_forgotten)
{
    uint32_t asleep = successor_waits_at_0(false);
    cr_assert_eq(receive_run(&w, 0, 0, 0, QN_WORDS_SHARED_MAX), QN_OK);
    qn_device_up(w.node[0], 1, w.inc[1]);
    cr_assert_neq(qn_load(&w.line[1].epoch, QN_SEQ_CST), asleep);
}

DEATH_TEST(a_wish_that_down_clears_is_not_forgotten)
{
    uint32_t asleep = successor_waits_at_0(true);
    qn_device_up(w.node[3], 1, w.inc[1]);
    qn_device_down(w.node[2], 0);
    qn_device_down(w.node[3], 0); /* finds no wish any more */
    qn_device_up(w.node[2], 1, w.inc[1]);
    cr_assert_neq(qn_load(&w.line[1].epoch, QN_SEQ_CST), asleep);
}
