/*
 * A message is in its queue from the moment it is sent, with the time at which
 * it arrives. Queues are in the order of arrival: a message of a near sender
 * overtakes one that a far sender sent before. What has arrived by the time of
 * a receive was sent earlier, so it is there.
 *
 * Room is taken when a message is sent and given back when its words are
 * received.
 */
#include "core/sim/timed/tiled/udn.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sim/timed/timed.h"

#define ROOM_MAX 4096u

struct word {
    uint64_t value;
    qn_ps_t arrives; /* one time for all words of a message */
};

struct queue {
    uint32_t count;
    struct word *word; /* [room], by arrival */
};

struct core {
    uint32_t used; /* words of its room */
    struct queue queue[QN_UDN_QUEUES];
    uint32_t waiting; /* senders without room */
    uint32_t *sender; /* [nodes] the first [waiting], in order */
};

struct qn_udn {
    uint32_t nodes, room;
    qn_ps_t look; /* at a queue */
    struct core *core;
};

/* ---- a queue ---- */

static void insert(struct queue *q, const uint64_t *words, uint32_t n,
                   qn_ps_t arrives)
{
    uint32_t at = q->count;
    while (at > 0 && q->word[at - 1].arrives > arrives) {
        at--;
    }
    memmove(q->word + at + n, q->word + at, (q->count - at) * sizeof *q->word);
    for (uint32_t i = 0; i < n; i++) {
        q->word[at + i] = (struct word){words[i], arrives};
    }
    q->count += n;
}

static void take(struct queue *q, uint64_t *words, uint32_t n)
{
    QN_DASSERT(n <= q->count);
    for (uint32_t i = 0; i < n; i++) {
        words[i] = q->word[i].value;
    }
    q->count -= n;
    memmove(q->word, q->word + n, q->count * sizeof *q->word);
}

/* ---- room ---- */

static void let_next_sender_in(const struct core *c, qn_ps_t at)
{
    if (c->waiting > 0) {
        qn_timed_signal(c->sender[0], at);
    }
}

/* Wait for n words of room at a core, behind those that asked before. */
static void reserve(struct qn_udn *u, struct core *c, uint32_t n)
{
    qn_timed_turn();
    if (c->waiting > 0 || c->used + n > u->room) {
        QN_ASSERT(c->waiting < u->nodes);
        c->sender[c->waiting++] = qn_sim.self;
        do {
            (void)qn_timed_wait(QN_PS_NEVER);
        } while (c->sender[0] != qn_sim.self || c->used + n > u->room);
        c->waiting--;
        memmove(c->sender, c->sender + 1, c->waiting * sizeof *c->sender);
    }
    c->used += n;
    let_next_sender_in(c, qn_timed_clock());
}

/* ---- operations ---- */

void qn_udn_send(struct qn_udn *u, uint32_t to, uint32_t queue,
                 const uint64_t *words, uint32_t n)
{
    QN_ASSERT(to < u->nodes && queue < QN_UDN_QUEUES);
    QN_ASSERT(n >= 1 && n <= u->room);
    struct core *c = &u->core[to];
    reserve(u, c, n);
    struct qn_price p = qn_timed_device(&(struct qn_device_access){
        .kind = QN_DEVICE_SEND, .peer = to, .words = n});
    insert(&c->queue[queue], words, n, p.visible);
    qn_timed_signal(to, p.visible);
}

void qn_udn_receive(struct qn_udn *u, uint32_t queue, uint64_t *words,
                    uint32_t n)
{
    QN_ASSERT(queue < QN_UDN_QUEUES && n >= 1 && n <= u->room);
    struct core *c = &u->core[qn_sim.self];
    struct queue *q = &c->queue[queue];
    qn_timed_turn();
    for (;;) {
        qn_ps_t there = n <= q->count ? q->word[n - 1].arrives : QN_PS_NEVER;
        if (there <= qn_timed_clock()) {
            break;
        }
        (void)qn_timed_wait(there);
    }
    struct qn_price p = qn_timed_device(&(struct qn_device_access){
        .kind = QN_DEVICE_RECEIVE, .peer = qn_sim.self, .words = n});
    take(q, words, n);
    QN_ASSERT(c->used >= n);
    c->used -= n;
    let_next_sender_in(c, p.end);
}

bool qn_udn_empty(struct qn_udn *u, uint32_t queue)
{
    QN_ASSERT(queue < QN_UDN_QUEUES);
    const struct queue *q = &u->core[qn_sim.self].queue[queue];
    qn_timed_turn();
    bool empty = q->count == 0 || q->word[0].arrives > qn_timed_clock();
    if (empty && q->count > 0) {
        qn_timed_expect(q->word[0].arrives);
    }
    qn_timed_work(u->look);
    return empty;
}

/* ---- the device ---- */

static int make_core(struct core *c, uint32_t nodes, uint32_t room)
{
    c->sender = calloc(nodes, sizeof *c->sender);
    bool made = c->sender != NULL;
    for (uint32_t i = 0; i < QN_UDN_QUEUES; i++) {
        c->queue[i].word = calloc(room, sizeof *c->queue[i].word);
        made = made && c->queue[i].word != NULL;
    }
    return made ? QN_OK : QN_ENOMEM;
}

int qn_udn_create(struct qn_udn **out, const struct qn_tiled *m, uint32_t nodes)
{
    if (m->kind != QN_TILED_TILEGX || nodes < 1 || nodes > QN_SIM_NODES_MAX) {
        return QN_EINVAL;
    }
    double room = qn_tiled_value(m, QN_TILEGX_UDN_ROOM);
    if (room > ROOM_MAX || room != (uint32_t)room) {
        return QN_EINVAL;
    }
    struct qn_udn *u = calloc(1, sizeof *u);
    if (u == NULL) {
        return QN_ENOMEM;
    }
    u->nodes = nodes;
    u->room = (uint32_t)room;
    u->look = QN_MAX(qn_tiled_ps(m, QN_TILEGX_UDN_CALL), 1u);
    u->core = calloc(nodes, sizeof *u->core);
    int err = u->core != NULL ? QN_OK : QN_ENOMEM;
    for (uint32_t i = 0; err == QN_OK && i < nodes; i++) {
        err = make_core(&u->core[i], nodes, u->room);
    }
    if (err != QN_OK) {
        qn_udn_destroy(u);
        return err;
    }
    *out = u;
    return QN_OK;
}

void qn_udn_destroy(struct qn_udn *u)
{
    if (u == NULL) {
        return;
    }
    for (uint32_t i = 0; u->core != NULL && i < u->nodes; i++) {
        free(u->core[i].sender);
        for (uint32_t k = 0; k < QN_UDN_QUEUES; k++) {
            free(u->core[i].queue[k].word);
        }
    }
    free(u->core);
    free(u);
}
