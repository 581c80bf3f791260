/*
 * Requests by reference (PROTOCOL.md 3.1): an origin, node 2, and the leader,
 * node 0, of a group of three. What is decided is whole, whatever becomes of
 * the origin; what is lost comes again; a block ends when it is applied.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/machine/fixture.h"

#define CAPACITY 1024u
#define ORIGIN   2u

static struct fx leader, origin;
static uint8_t *memory;
static struct qn_arena own, seen;
static bool ended;

static const struct qn_arena *arena(void *ctx, qn_node_t node, uint64_t inc)
{
    (void)ctx;
    return node == ORIGIN && inc == 10 + ORIGIN && !ended ? &seen : NULL;
}

static const struct qn_uploads of_leader = {.arena = arena};
static const struct qn_uploads of_origin = {.own = &own, .arena = arena};

static void setup(void)
{
    struct qn_params v = fx_params();
    const struct qn_arena_opts o = {.capacity = CAPACITY};
    size_t bytes = qn_align_up(qn_arena_bytes(CAPACITY), QN_CACHELINE);
    v.upload_bytes = 10;
    memory = aligned_alloc(QN_CACHELINE, bytes);
    memset(memory, 0, bytes);
    cr_assert_eq(qn_arena_begin(&own, memory, &o), QN_OK);
    qn_arena_open(&seen, memory, CAPACITY);
    v.upload_bytes = UINT32_MAX; /* it has no arena of its own here */
    fx_make_uploads(&leader, 0, 3, &v, &of_leader);
    v.upload_bytes = 10;
    fx_make_uploads(&origin, ORIGIN, 3, &v, &of_origin);
}

static void teardown(void)
{
    fx_end(&leader);
    fx_end(&origin);
    cr_assert_eq(fx_refbufs, 0);
    qn_arena_end(&own);
    free(memory);
}

#define REFERENCE(name) Test(reference, name, .init = setup, .fini = teardown)

/* The REQUEST of the origin goes to the leader. */
static int hand_over(void)
{
    fx_tick(&origin);
    const struct qn_msg *m = fx_sent(&origin, QN_MSG_REQUEST, 0);
    cr_assert_neq(m, NULL);
    return fx_recv(&leader, ORIGIN, m);
}

/* The commands of the ACCEPT among the latest outputs, a space between. */
static const char *proposed(void)
{
    static char text[4 * CAPACITY];
    const struct qn_msg *m = fx_sent(&leader, QN_MSG_ACCEPT, 0);
    struct qn_command_run g;
    size_t n = 0;
    if (m == NULL) {
        return NULL;
    }
    cr_assert_eq(qn_batch_check(m->body), QN_OK);
    for (uint32_t at = 0; qn_batch_next(m->body, &at, &g);) {
        struct qn_slice c;
        while (qn_commands_next(&g.commands, &c)) {
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%.*s",
                                  n == 0 ? "" : " ", (int)c.len,
                                  (const char *)c.data);
        }
    }
    return text;
}

REFERENCE(a_long_command_stays_in_the_arena_until_its_slot_is_filled)
{
    fx_submit(&origin, "short");
    fx_submit(&origin, "a command that is long");
    cr_assert_eq(own.next - own.first, 1);
    cr_assert_eq(hand_over(), QN_OK);
    cr_assert_leq(fx_sent(&origin, QN_MSG_REQUEST, 0)->body.len, 12u);
    fx_tick(&leader);
    cr_assert_str_eq(proposed(), "short a command that is long");
}

REFERENCE(a_block_ends_when_its_command_is_applied)
{
    fx_submit(&origin, "a command that is long");
    cr_assert_eq(hand_over(), QN_OK);
    fx_tick(&leader);
    struct qn_msg m = *fx_sent(&leader, QN_MSG_ACCEPT, 0);
    const struct qn_msg learn = {
        .kind = QN_MSG_LEARN, .slot = 1, .learn = {.hi = 1}, .body = m.body};
    cr_assert_eq(own.used, 64);
    cr_assert_eq(fx_recv(&origin, 1, &learn), QN_OK);
    fx_tick(&origin);
    cr_assert_str_eq(origin.applied[0].text, "a command that is long");
    cr_assert_eq(own.used, 0);
    cr_assert_eq(fx_status(&origin).unapplied, 0);
}

REFERENCE(what_finds_no_place_goes_with_the_request)
{
    static char text[CAPACITY / 2 + 2];
    memset(text, 'x', sizeof text - 1);
    fx_submit(&origin, text);
    fx_submit(&origin, text);
    cr_assert_eq(own.next - own.first, 1, "the second has none");
    cr_assert_eq(hand_over(), QN_OK);
    fx_tick(&leader);
    cr_assert_eq(strlen(proposed()), 2 * strlen(text) + 1);
}

REFERENCE(without_memory_the_block_is_taken_back)
{
    origin.memory_left = 0;
    cr_assert_eq(fx_submit(&origin, "a command that is long"), QN_ENOMEM);
    cr_assert_eq(own.used, 0);
}

/* The leader finds the first block ended when it pulls, though it is not; so it
 * asks the origin to send again. */
static void lose_once(void)
{
    qn_store((qn_a64 *)(void *)memory, 2, QN_SEQ_CST); /* as if it had ended */
    fx_tick(&leader);
    cr_assert_eq(proposed(), NULL);
    const struct qn_msg *m = fx_sent(&leader, QN_MSG_REDIRECT, 0);
    cr_assert(m != NULL && fx_to(&leader, QN_MSG_REDIRECT, 0) == ORIGIN);
    cr_assert_eq(fx_status(&leader).queued, 0);
    qn_store((qn_a64 *)(void *)memory, 1, QN_SEQ_CST); /* it had not */
    fx_recv(&origin, 0, m);
}

REFERENCE(what_the_leader_finds_freed_comes_again)
{
    fx_submit(&origin, "a command that is long");
    cr_assert_eq(hand_over(), QN_OK);
    lose_once();
    cr_assert_eq(hand_over(), QN_OK);
    fx_tick(&leader);
    cr_assert_str_eq(proposed(), "a command that is long");
}

REFERENCE(what_an_origin_that_has_ended_asked_for_is_dropped)
{
    fx_submit(&origin, "a command that is long");
    cr_assert_eq(hand_over(), QN_OK);
    fx_submit(&origin, "s");
    cr_assert_eq(hand_over(), QN_OK);
    ended = true;
    fx_down(&leader, ORIGIN);
    fx_tick(&leader);
    cr_assert_eq(proposed(), NULL, "nor what follows it");
    cr_assert_eq(fx_count(&leader, QN_MSG_REDIRECT), 0);
    cr_assert_eq(fx_status(&leader).queued, 0);
}

REFERENCE(who_has_no_arenas_refuses_a_reference)
{
    struct fx other;
    struct qn_params v = fx_params();
    fx_make(&other, 0, 3, &v);
    fx_submit(&origin, "a command that is long");
    fx_tick(&origin);
    cr_assert_eq(fx_recv(&other, ORIGIN, fx_sent(&origin, QN_MSG_REQUEST, 0)),
                 QN_ECORRUPT);
    fx_end(&other);
}

/* A REQUEST of node 2 with `count` references to one place. */
static int recv_wild(uint64_t at, uint64_t len, int count)
{
    struct qn_refbuf *b = qn_refbuf_create(&qn_alloc_malloc, 64);
    const struct qn_arena_place p = {.index = 1, .at = at, .len = len};
    for (int i = 0; i < count; i++) {
        cr_assert_eq(qn_commands_refer(&b, &p), QN_OK);
    }
    const struct qn_msg m = {
        .kind = QN_MSG_REQUEST, .slot = 1, .body = {b->bytes, b->len}};
    int err = fx_recv(&leader, ORIGIN, &m);
    qn_refbuf_unref(b);
    return err;
}

REFERENCE(a_wild_request_is_refused_before_anything_is_made_for_it)
{
    struct qn_params v = fx_params();
    cr_assert_eq(recv_wild(CAPACITY - 9, 10, 1), QN_ECORRUPT);
    cr_assert_eq(recv_wild(0, CAPACITY + 1, 1), QN_ECORRUPT);
    cr_assert_eq(recv_wild(UINT64_MAX - 4, 10, 1), QN_ECORRUPT);
    cr_assert_eq(recv_wild(0, QN_COMMAND_MAX, 4), QN_ECORRUPT);
    cr_assert_eq(recv_wild(0, CAPACITY, (int)(v.batch_bytes / CAPACITY) + 1),
                 QN_ECORRUPT, "one block again and again");
    cr_assert_eq(fx_status(&leader).queued, 0);
    cr_assert_eq(recv_wild(0, CAPACITY, 1), QN_OK);
}

REFERENCE(two_requests_of_which_the_second_is_lost_come_again_in_order)
{
    fx_submit(&origin, "first");
    cr_assert_eq(hand_over(), QN_OK);
    fx_submit(&origin, "a command that is long");
    cr_assert_eq(hand_over(), QN_OK);
    lose_once();
    fx_tick(&origin);
    cr_assert_eq(fx_count(&origin, QN_MSG_REQUEST), 2);
    for (uint32_t i = 0; i < 2; i++) {
        fx_recv(&leader, ORIGIN, fx_sent(&origin, QN_MSG_REQUEST, i));
    }
    fx_tick(&leader);
    cr_assert_str_eq(proposed(), "first a command that is long");
}

REFERENCE(a_reference_is_never_decided)
{
    fx_submit(&origin, "a command that is long");
    fx_tick(&origin);
    struct qn_msg m = *fx_sent(&origin, QN_MSG_REQUEST, 0);
    const struct qn_command_run g = {.origin = ORIGIN,
                                     .inc = 10 + ORIGIN,
                                     .first = 1,
                                     .count = 1,
                                     .commands = m.body};
    struct qn_refbuf *b = qn_batch_create(&qn_alloc_malloc, 64);
    cr_assert_eq(qn_batch_add(&b, &g), QN_OK);
    cr_assert_eq(qn_batch_check((struct qn_slice){b->bytes, b->len}),
                 QN_ECORRUPT);
    qn_refbuf_unref(b);
}
