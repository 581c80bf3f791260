/*
 * Two tables: the questions that this replica has asked (a slot each, found by
 * id), and the messages that wait for room in a channel (a list per peer, so
 * that a full channel does not delay the others). An id has the table index in
 * its low bits, so an answer finds its question without a search, and a late
 * answer finds another id in its slot.
 */
#include "kvs/introspect/fanout_query.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

enum { ASK = 1, ANSWER = 2 };
enum { CHUNK_BYTES = 16384 }; /* of one ANSWER */

struct head {
    uint8_t kind;
    uint8_t what;
    uint8_t last; /* ANSWER: no further chunk */
    uint8_t zero;
    uint32_t id;
};

struct question {
    bool open;
    uint32_t id;
    uint64_t members;  /* mask, when it was asked */
    uint64_t waiting;  /* mask of peers */
    uint64_t answered; /* mask of peers, completely */
    qn_time_t deadline;
    struct qn_fanout_result asked;
};

struct outgoing {
    struct outgoing *next;
    struct head head;
    struct qn_buf bytes;
    size_t at; /* sent so far */
};

struct qn_fanout {
    struct qn_fanout_opts o;
    uint32_t next_id;
    uint64_t down; /* mask of peers that have ended */
    struct question q[QN_FANOUT_MAX];
    struct outgoing *out[QN_NODES_MAX]; /* oldest first */
    struct outgoing **out_end[QN_NODES_MAX];
};

static void outgoing_free(struct outgoing *g)
{
    qn_buf_free(&g->bytes);
    free(g);
}

static void outgoing_drop(struct qn_fanout *a, qn_node_t to)
{
    while (a->out[to] != NULL) {
        struct outgoing *g = a->out[to];
        a->out[to] = g->next;
        outgoing_free(g);
    }
    a->out_end[to] = &a->out[to];
}

/* Send chunks to `to` while there is room. */
static void outgoing_send(struct qn_fanout *a, qn_node_t to)
{
    while (a->out[to] != NULL) {
        struct outgoing *g = a->out[to];
        uint8_t msg[sizeof(struct head) + CHUNK_BYTES];
        size_t n = QN_MIN(g->bytes.len - g->at, (size_t)CHUNK_BYTES);
        g->head.last = g->at + n == g->bytes.len;
        memcpy(msg, &g->head, sizeof g->head);
        if (n != 0) {
            memcpy(msg + sizeof g->head, g->bytes.data + g->at, n);
        }
        struct qn_slice s = {msg, sizeof g->head + n};
        if (a->o.tell(a->o.ctx, to, s) != QN_OK) {
            return;
        }
        g->at += n;
        if (g->head.last) {
            a->out[to] = g->next;
            if (g->next == NULL) {
                a->out_end[to] = &a->out[to];
            }
            outgoing_free(g);
        }
    }
}

static void outgoing_add(struct qn_fanout *a, qn_node_t to, struct outgoing *g)
{
    *a->out_end[to] = g;
    a->out_end[to] = &g->next;
    outgoing_send(a, to);
}

/* A copy of `text` behind `head`; dropped for lack of memory. */
static void message_send(struct qn_fanout *a, qn_node_t to,
                         const struct head *head, struct qn_slice text)
{
    struct outgoing *g = calloc(1, sizeof *g);
    if (g == NULL) {
        return;
    }
    g->head = *head;
    qn_buf_append(&g->bytes, text.data, text.len);
    if (g->bytes.oom) {
        outgoing_free(g);
        return;
    }
    outgoing_add(a, to, g);
}

/* Remove the question `id` where it waits for room. A waiting question is
 * whole, because a question has one chunk. */
static void outgoing_take_back(struct qn_fanout *a, qn_node_t to, uint32_t id)
{
    struct outgoing **at = &a->out[to];
    while (*at != NULL) {
        struct outgoing *g = *at;
        if (g->head.kind == ASK && g->head.id == id) {
            *at = g->next;
            outgoing_free(g);
        } else {
            at = &g->next;
        }
    }
    a->out_end[to] = at;
}

static void question_free(struct question *q)
{
    for (uint32_t i = 0; i < QN_NODES_MAX; i++) {
        qn_buf_free(&q->asked.answer[i]);
    }
    q->open = false;
}

static uint64_t members(const struct qn_fanout *a)
{
    return (qn_low_bits(a->o.nodes) & ~a->o.vacant) | (uint64_t)1 << a->o.self;
}

static uint64_t others(const struct qn_fanout *a, uint64_t of)
{
    return of & ~((uint64_t)1 << a->o.self);
}

/* Peers to which the question was not sent by now are not asked any more.
 * Otherwise questions to a stalled peer would accumulate without bound, and
 * would take effect long after the client had its reply. */
static void question_finish(struct qn_fanout *a, struct question *q)
{
    for (uint64_t m = q->waiting; m != 0; m &= m - 1) {
        outgoing_take_back(a, (qn_node_t)__builtin_ctzll(m), q->id);
    }
    q->asked.members = q->members & members(a);
    q->asked.missing = others(a, q->asked.members) & ~q->answered;
    a->o.finish(a->o.ctx, &q->asked);
    question_free(q);
}

static struct question *question_new(struct qn_fanout *a)
{
    for (uint32_t i = 0; i < QN_FANOUT_MAX; i++) {
        struct question *q = &a->q[i];
        if (!q->open) {
            *q = (struct question){.open = true};
            q->id = a->next_id++ * QN_FANOUT_MAX + i;
            return q;
        }
    }
    return NULL;
}

/* An answer may come back from inside tell, so all peers are marked before
 * the first is asked. If there is no memory for a peer's message, the peer
 * stays marked and is reported as missing. */
static void question_send(struct qn_fanout *a, const struct question *q,
                          struct qn_slice text)
{
    const struct head head = {.kind = ASK, .what = q->asked.what, .id = q->id};
    for (qn_node_t to = 0; to < a->o.nodes; to++) {
        if ((q->waiting >> to & 1) != 0) {
            message_send(a, to, &head, text);
        }
    }
}

int qn_fanout_start(struct qn_fanout *a, uint8_t what, struct qn_slice text,
                    uint64_t tag, qn_time_t now)
{
    if (text.len > CHUNK_BYTES) {
        return QN_EMSGSIZE;
    }
    struct question *q = question_new(a);
    if (q == NULL) {
        return QN_EBUSY;
    }
    q->asked.what = what;
    q->asked.tag = tag;
    q->deadline = now + QN_FANOUT_TIMEOUT;
    a->o.answer(a->o.ctx, what, text, &q->asked.answer[a->o.self]);
    q->members = members(a);
    q->waiting = others(a, q->members) & ~a->down;
    if (q->waiting == 0) {
        question_finish(a, q);
        return QN_OK;
    }
    question_send(a, q, text);
    return QN_OK;
}

static void on_ask(struct qn_fanout *a, qn_node_t from, const struct head *h,
                   struct qn_slice text)
{
    struct outgoing *g = calloc(1, sizeof *g);
    if (g == NULL) {
        return; /* the asker reports this replica as missing */
    }
    g->head = (struct head){.kind = ANSWER, .what = h->what, .id = h->id};
    a->o.answer(a->o.ctx, h->what, text, &g->bytes);
    if (g->bytes.oom) {
        outgoing_free(g);
        return;
    }
    outgoing_add(a, from, g);
}

static void on_answer(struct qn_fanout *a, qn_node_t from, const struct head *h,
                      struct qn_slice bytes)
{
    struct question *q = &a->q[h->id % QN_FANOUT_MAX];
    uint64_t bit = (uint64_t)1 << from;
    if (!q->open || q->id != h->id || (q->waiting & bit) == 0) {
        return; /* too late */
    }
    qn_buf_append(&q->asked.answer[from], bytes.data, bytes.len);
    if (h->last) {
        q->waiting &= ~bit;
        q->answered |= bit;
        if (q->waiting == 0) {
            question_finish(a, q);
        }
    }
}

void qn_fanout_peer_down(struct qn_fanout *a, qn_node_t peer)
{
    uint64_t bit = (uint64_t)1 << peer;
    a->down |= bit;
    outgoing_drop(a, peer);
    for (uint32_t i = 0; i < QN_FANOUT_MAX; i++) {
        struct question *q = &a->q[i];
        if (q->open && (q->waiting & bit) != 0) {
            q->waiting &= ~bit;
            if (q->waiting == 0) {
                question_finish(a, q);
            }
        }
    }
}

void qn_fanout_vacant(struct qn_fanout *a, uint64_t vacant)
{
    a->o.vacant = vacant;
}

void qn_fanout_peer_up(struct qn_fanout *a, qn_node_t peer)
{
    a->down &= ~((uint64_t)1 << peer);
}

void qn_fanout_on_message(struct qn_fanout *a, qn_node_t from,
                          struct qn_slice bytes)
{
    struct head h;
    if (bytes.len < sizeof h || from >= a->o.nodes) {
        return;
    }
    memcpy(&h, bytes.data, sizeof h);
    struct qn_slice rest = {bytes.data + sizeof h, bytes.len - sizeof h};
    if (h.kind == ASK) {
        on_ask(a, from, &h, rest);
    } else if (h.kind == ANSWER) {
        on_answer(a, from, &h, rest);
    }
}

qn_time_t qn_fanout_turn(struct qn_fanout *a, qn_time_t now)
{
    for (qn_node_t to = 0; to < a->o.nodes; to++) {
        outgoing_send(a, to);
    }
    qn_time_t next = QN_TIME_NEVER;
    for (uint32_t i = 0; i < QN_FANOUT_MAX; i++) {
        struct question *q = &a->q[i];
        if (q->open && q->deadline <= now) {
            question_finish(a, q);
        } else if (q->open) {
            next = QN_MIN(next, q->deadline);
        }
    }
    return next;
}

int qn_fanout_create(struct qn_fanout **out, const struct qn_fanout_opts *o)
{
    QN_ASSERT(o->self < o->nodes && o->nodes <= QN_NODES_MAX);
    struct qn_fanout *a = calloc(1, sizeof *a);
    if (a == NULL) {
        return QN_ENOMEM;
    }
    a->o = *o;
    for (uint32_t i = 0; i < QN_NODES_MAX; i++) {
        a->out_end[i] = &a->out[i];
    }
    *out = a;
    return QN_OK;
}

void qn_fanout_destroy(struct qn_fanout *a)
{
    if (a == NULL) {
        return;
    }
    for (uint32_t i = 0; i < QN_FANOUT_MAX; i++) {
        if (a->q[i].open) {
            question_free(&a->q[i]);
        }
    }
    for (uint32_t i = 0; i < QN_NODES_MAX; i++) {
        outgoing_drop(a, i);
    }
    free(a);
}
