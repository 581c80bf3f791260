/* Questions between replicas, over channels that the test opens and closes. */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/err.h"
#include "kvs/introspect/fanout_query.h"
#include "tests/support/test.h"

enum { NODES = 3 };

struct node {
    struct qn_fanout *fanout_query;
    qn_node_t self;
    size_t answer_bytes; /* 0: "node I: QUESTION" */
    bool closed;         /* its channels take nothing */
    int finished;
    int asked;
    struct qn_fanout_result last; /* lengths only are looked at after finish */
    size_t len[QN_NODES_MAX];
    char text[QN_NODES_MAX][64];
};

static struct node node[NODES];

static int tell(void *ctx, qn_node_t to, struct qn_slice bytes)
{
    struct node *n = ctx;
    if (n->closed) {
        return QN_EAGAIN;
    }
    qn_fanout_on_message(node[to].fanout_query, n->self, bytes);
    return QN_OK;
}

static void answer(void *ctx, uint8_t what, struct qn_slice q,
                   struct qn_buf *out)
{
    struct node *n = ctx;
    (void)what;
    n->asked++;
    if (n->answer_bytes > 0) {
        uint8_t *p = qn_buf_reserve(out, n->answer_bytes);
        memset(p, 'x', n->answer_bytes);
        out->len += n->answer_bytes;
        return;
    }
    char text[64];
    int len = snprintf(text, sizeof text, "node %u: %.*s", n->self, (int)q.len,
                       (const char *)q.data);
    qn_buf_append(out, text, (size_t)len);
}

static void finish(void *ctx, struct qn_fanout_result *done)
{
    struct node *n = ctx;
    n->finished++;
    n->last = *done;
    for (uint32_t i = 0; i < NODES; i++) {
        n->len[i] = done->answer[i].len;
        size_t cut = done->answer[i].len < 63 ? done->answer[i].len : 63;
        memcpy(n->text[i],
               done->answer[i].data != NULL ? (const char *)done->answer[i].data
                                            : "",
               cut);
        n->text[i][cut] = 0;
    }
}

static void start(void)
{
    for (uint32_t i = 0; i < NODES; i++) {
        node[i] = (struct node){.self = i};
        const struct qn_fanout_opts o = {.self = i,
                                         .nodes = NODES,
                                         .tell = tell,
                                         .answer = answer,
                                         .finish = finish,
                                         .ctx = &node[i]};
        cr_assert_eq(qn_fanout_create(&node[i].fanout_query, &o), QN_OK);
    }
}

static void stop(void)
{
    for (uint32_t i = 0; i < NODES; i++) {
        qn_fanout_destroy(node[i].fanout_query);
    }
}

static const struct qn_slice question = {(const uint8_t *)"who?", 4};

Test(fanout_query, every_replica_answers_and_the_asker_answers_itself,
     .init = start, .fini = stop)
{
    cr_assert_eq(qn_fanout_start(node[1].fanout_query, 7, question, 42, 0),
                 QN_OK);
    cr_assert_eq(node[1].finished, 1);
    cr_assert_eq(node[1].last.tag, 42);
    cr_assert_eq(node[1].last.what, 7);
    cr_assert_eq(node[1].last.missing, 0);
    cr_assert_str_eq(node[1].text[0], "node 0: who?");
    cr_assert_str_eq(node[1].text[1], "node 1: who?");
    cr_assert_str_eq(node[1].text[2], "node 2: who?");
}

Test(fanout_query, a_silent_replica_is_left_out_and_named, .init = start,
     .fini = stop)
{
    node[2].closed = true;
    qn_fanout_start(node[0].fanout_query, 1, question, 0, 1000);
    cr_assert_eq(qn_fanout_turn(node[0].fanout_query, 1000),
                 1000 + QN_FANOUT_TIMEOUT);
    cr_assert_eq(node[0].finished, 0);
    cr_assert_eq(qn_fanout_turn(node[0].fanout_query, 1000 + QN_FANOUT_TIMEOUT),
                 QN_TIME_NEVER);
    cr_assert_eq(node[0].finished, 1);
    cr_assert_eq(node[0].last.missing, 1u << 2);
    cr_assert_eq(node[0].len[2], 0);
}

Test(fanout_query, an_answer_that_comes_too_late_is_dropped, .init = start,
     .fini = stop)
{
    node[2].closed = true;
    qn_fanout_start(node[0].fanout_query, 1, question, 0, 0);
    qn_fanout_turn(node[0].fanout_query, QN_FANOUT_TIMEOUT);
    qn_fanout_start(node[0].fanout_query, 1, question, 1, QN_FANOUT_TIMEOUT);
    node[2].closed = false;
    qn_fanout_turn(node[2].fanout_query,
                   QN_FANOUT_TIMEOUT); /* late one, then the new one */
    cr_assert_eq(node[0].finished, 2);
    cr_assert_eq(node[0].last.tag, 1);
    cr_assert_str_eq(node[0].text[2], "node 2: who?");
}

Test(fanout_query, long_answers_travel_in_chunks, .init = start, .fini = stop)
{
    node[1].answer_bytes = 100000;
    node[2].answer_bytes = 16384; /* exactly one chunk */
    qn_fanout_start(node[0].fanout_query, 1, question, 0, 0);
    cr_assert_eq(node[0].finished, 1);
    cr_assert_eq(node[0].len[1], 100000);
    cr_assert_eq(node[0].len[2], 16384);
}

Test(fanout_query, what_finds_no_room_is_sent_later, .init = start,
     .fini = stop)
{
    node[0].closed = true;
    qn_fanout_start(node[0].fanout_query, 1, question, 0, 0);
    cr_assert_eq(node[0].finished, 0);
    node[0].closed = false;
    qn_fanout_turn(node[0].fanout_query, 1);
    cr_assert_eq(node[0].finished, 1);
}

Test(fanout_query, what_finds_no_room_in_time_is_not_sent, .init = start,
     .fini = stop)
{
    node[0].closed = true;
    for (uint32_t i = 0; i < 1000; i++) {
        const qn_time_t now = i * QN_FANOUT_TIMEOUT;
        qn_fanout_turn(node[0].fanout_query, now);
        cr_assert_eq(qn_fanout_start(node[0].fanout_query, 1, question, i, now),
                     QN_OK);
    }
    node[0].closed = false;
    qn_fanout_turn(node[0].fanout_query, 999 * QN_FANOUT_TIMEOUT + 1);
    cr_assert_eq(node[0].finished, 1000);
    cr_assert_eq(node[0].last.missing, 0);
    cr_assert_eq(node[1].asked, 1);
    cr_assert_eq(node[2].asked, 1);
    qn_fanout_start(node[0].fanout_query, 1, question, 0, 0);
    cr_assert_eq(node[2].asked, 2, "the list has another end");
}

Test(fanout_query, more_questions_than_slots_are_refused, .init = start,
     .fini = stop)
{
    node[0].closed = true;
    for (uint32_t i = 0; i < QN_FANOUT_MAX; i++) {
        cr_assert_eq(qn_fanout_start(node[0].fanout_query, 1, question, i, 0),
                     QN_OK);
    }
    cr_assert_eq(qn_fanout_start(node[0].fanout_query, 1, question, 99, 0),
                 QN_EBUSY);
}

Test(fanout_query, malformed_messages_are_dropped, .init = start, .fini = stop)
{
    uint8_t junk[16];
    memset(junk, 0xff, sizeof junk);
    for (size_t n = 0; n <= sizeof junk; n++) {
        qn_fanout_on_message(node[0].fanout_query, 1,
                             (struct qn_slice){junk, n});
        junk[0] = (uint8_t)n;
    }
    cr_assert_eq(node[0].finished, 0);
}

Test(fanout_query, who_is_down_is_named_and_asked_again_when_up, .init = start,
     .fini = stop)
{
    qn_fanout_peer_down(node[0].fanout_query, 2);
    qn_fanout_start(node[0].fanout_query, 1, question, 0, 0);
    cr_assert_eq(node[0].finished, 1);
    cr_assert_eq(node[0].last.missing, 1u << 2);
    qn_fanout_peer_up(node[0].fanout_query, 2);
    qn_fanout_start(node[0].fanout_query, 1, question, 1, 0);
    cr_assert_eq(node[0].finished, 2);
    cr_assert_eq(node[0].last.missing, 0);
    cr_assert_str_eq(node[0].text[2], "node 2: who?");
}

Test(fanout_query, a_vacant_seat_is_neither_asked_nor_missing)
{
    struct node n = {.self = 0, .closed = true};
    const struct qn_fanout_opts o = {.nodes = NODES,
                                     .vacant = 1u << 1 | 1u << 2,
                                     .tell = tell,
                                     .answer = answer,
                                     .finish = finish,
                                     .ctx = &n};
    cr_assert_eq(qn_fanout_create(&n.fanout_query, &o), QN_OK);
    cr_assert_eq(qn_fanout_start(n.fanout_query, 1, question, 0, 0), QN_OK);
    cr_expect_eq(n.finished, 1);
    cr_expect_eq(n.last.missing, 0);
    qn_fanout_destroy(n.fanout_query);
}

/* A newcomer was not asked, and one that is no member any more owes nothing. */
Test(fanout_query, members_come_and_go_while_a_question_is_open, .init = start,
     .fini = stop)
{
    struct qn_fanout *f = node[0].fanout_query;
    node[1].closed = node[2].closed = true;
    qn_fanout_vacant(f, 1u << 2);
    qn_fanout_start(f, 1, question, 0, 0);
    qn_fanout_vacant(f, 0); /* 2 comes */
    qn_fanout_turn(f, QN_FANOUT_TIMEOUT);
    cr_assert_eq(node[0].finished, 1);
    cr_expect_eq(node[0].last.members, 1u << 0 | 1u << 1);
    cr_expect_eq(node[0].last.missing, 1u << 1);
    qn_fanout_start(f, 1, question, 0, QN_FANOUT_TIMEOUT);
    qn_fanout_vacant(f, 1u << 1); /* 1 has left */
    qn_fanout_turn(f, 2 * QN_FANOUT_TIMEOUT);
    cr_assert_eq(node[0].finished, 2);
    cr_expect_eq(node[0].last.members, 1u << 0 | 1u << 2);
    cr_expect_eq(node[0].last.missing, 1u << 2);
    cr_expect_eq(node[1].asked, 2, "not the third time");
}

/* Its next incarnation knows nothing of what its former was asked. */
Test(fanout_query, one_that_went_and_came_back_while_asked_is_missing,
     .init = start, .fini = stop)
{
    node[1].closed = node[2].closed = true;
    qn_fanout_start(node[0].fanout_query, 1, question, 0, 0);
    qn_fanout_peer_down(node[0].fanout_query, 2);
    qn_fanout_peer_up(node[0].fanout_query, 2);
    node[1].closed = false;
    qn_fanout_turn(node[1].fanout_query, 1);
    cr_assert_eq(node[0].finished, 1);
    cr_assert_eq(node[0].last.missing, 1u << 2);
}
