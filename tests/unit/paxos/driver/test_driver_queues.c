/*
 * What waits for a peer that stands still: no more after a long time than after
 * a short one.
 */
#include <string.h>

#include "paxos/driver/driver_internal.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/driver/driver_world.h"

enum {
    WAITING_MAX = 16, /* one of each question, and what was said once */
    LONG_TIME = 5000, /* rounds; a question is asked again after 10 or so */
};

static uint32_t waiting(const struct qn_sendq *q)
{
    return q->tail - q->head;
}

static bool in(uint64_t mask, qn_node_t i)
{
    return (mask >> i & 1) != 0;
}

/* In the longest queue of control messages. */
static uint32_t waiting_most(const struct world *w)
{
    uint32_t most = 0;
    for (qn_node_t i = 0; i < w->nodes; i++) {
        const struct qn_driver *d = w->member[i].driver;
        for (qn_node_t p = 0; d != NULL && p < w->nodes; p++) {
            most = QN_MAX(most, waiting(&d->peer[p].control));
        }
    }
    return most;
}

/* Without those who stand still nobody can be elected, so they are asked all
 * the time; and when they go on, all is as ever. @param stand, die  masks. */
static void nobody_is_elected(bool memory, uint32_t nodes, uint64_t stand,
                              uint64_t die)
{
    struct world *w = world_begin(nodes, memory);
    world_go_on(w);
    for (qn_node_t i = 0; i < nodes; i++) {
        w->member[i].stopped = in(stand, i);
        if (in(die, i)) {
            world_lose(w, i);
        }
    }
    world_suspect(w, stand);
    world_rounds(w, LONG_TIME);
    uint32_t most = waiting_most(w);
    cr_assert_gt(most, 0, "nobody is asked");
    cr_assert_leq(most, WAITING_MAX, "%u messages wait", most);
    for (qn_node_t i = 0; i < nodes; i++) {
        w->member[i].stopped = false;
    }
    world_suspect(w, 0);
    world_go_on(w);
    world_end(w);
}

Test(driver_queues, who_stands_still_is_asked_once_process)
{
    nobody_is_elected(false, 3, 2, 1);
    nobody_is_elected(false, 5, 12, 1);
}

Test(driver_queues, who_stands_still_is_asked_once_memory)
{
    nobody_is_elected(true, 3, 3, 0);
    nobody_is_elected(true, 5, 14, 1);
}

/* ---- one queue ----------------------------------------------------------- */

static void push(struct qn_sendq *q, uint8_t kind, qn_slot_t slot,
                 struct qn_refbuf *body)
{
    struct qn_msg m = {.kind = kind, .slot = slot};
    if (body != NULL) {
        m.refbuf = body;
        m.body = (struct qn_slice){body->bytes, body->len};
        m.total = body->len;
    }
    cr_assert_eq(qn_sendq_push(q, &m), QN_OK);
}

static void expect_next(struct qn_sendq *q, uint8_t kind, qn_slot_t slot)
{
    struct qn_msg piece;
    cr_assert(!qn_sendq_empty(q));
    qn_sendq_fragment(q, &piece);
    cr_assert_eq(piece.kind, kind);
    cr_assert_eq(piece.slot, slot);
    qn_sendq_sent(q, &piece);
}

Test(sendq, dropping_a_kind_keeps_the_others_in_order)
{
    struct qn_sendq q = {0};
    struct qn_refbuf *b = qn_refbuf_copy(&qn_alloc_malloc, "body", 4);
    qn_sendq_drop(&q, QN_MSG_FETCH);
    for (qn_slot_t s = 0; s < 20; s++) { /* over the end of the ring */
        push(&q, QN_MSG_NACK, s, NULL);
        expect_next(&q, QN_MSG_NACK, s);
    }
    push(&q, QN_MSG_FETCH, 1, b);
    push(&q, QN_MSG_PREPARE, 2, b);
    push(&q, QN_MSG_FETCH, 3, NULL);
    push(&q, QN_MSG_SEAL, 4, NULL);
    qn_sendq_drop(&q, QN_MSG_FETCH);
    cr_assert_eq(b->refs, 2);
    expect_next(&q, QN_MSG_PREPARE, 2);
    expect_next(&q, QN_MSG_SEAL, 4);
    cr_assert(qn_sendq_empty(&q));
    cr_assert_eq(b->refs, 1);
    qn_refbuf_unref(b);
    qn_sendq_free(&q);
}

Test(sendq, what_has_begun_to_leave_is_not_dropped)
{
    struct qn_sendq q = {0};
    struct qn_msg piece;
    struct qn_refbuf *b =
        qn_refbuf_create(&qn_alloc_malloc, 2 * QN_FRAGMENT_MAX);
    b->len = 2 * QN_FRAGMENT_MAX;
    memset(b->bytes, 0, b->len);
    push(&q, QN_MSG_PREPARE, 1, b);
    push(&q, QN_MSG_PREPARE, 2, NULL);
    qn_sendq_fragment(&q, &piece);
    qn_sendq_sent(&q, &piece);
    qn_sendq_drop(&q, QN_MSG_PREPARE);
    cr_assert_eq(waiting(&q), 1);
    qn_sendq_fragment(&q, &piece);
    cr_assert_eq(piece.slot, 1);
    cr_assert_neq(piece.offset, 0);
    qn_sendq_free(&q);
    cr_assert_eq(b->refs, 1);
    qn_refbuf_unref(b);
}

Test(sendq, without_memory_it_is_as_it_was)
{
    struct qn_alloc_limit l;
    const struct qn_msg m = {.kind = QN_MSG_NACK};
    qn_slot_t n = 0;
    qn_alloc_limit_init(&l, &qn_alloc_malloc, 4096);
    struct qn_sendq q = {.alloc = &l.alloc};
    while (qn_sendq_push(&q, &m) == QN_OK) {
        n++;
    }
    cr_assert_gt(n, 8u);
    cr_assert_eq(qn_sendq_count(&q), n);
    expect_next(&q, QN_MSG_NACK, 0);
    cr_assert_eq(qn_sendq_push(&q, &m), QN_OK, "there is room again");
    qn_sendq_free(&q);
    cr_assert_eq(l.used, 0);
}
