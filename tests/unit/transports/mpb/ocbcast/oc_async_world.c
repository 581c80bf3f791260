/*
 * Messages say their source, incarnation, number and length, so that what
 * arrives can be judged by itself: of one source in order and once. Nodes sleep
 * when nothing is pending and are scheduled again when they were rung.
 */
#include "core/base/bits.h"
#include "tests/unit/transports/mpb/mpb_world.h"
#include "tests/unit/transports/mpb/ocbcast/oc_world.h"
#include "transports/mpb/ocbcast/oc_async.h"

#define NODES    5u
#define MESSAGES 20u
#define BYTES    900u
#define STEPS    60000u

struct note {
    uint64_t incarnation;
    uint32_t source, number, len;
};

struct member {
    struct qn_device_bcast *bcast;
    uint32_t sent;
    uint32_t last[NODES]; /* number of the last message that came */
    uint32_t came[NODES]; /* how many came, of this incarnation */
    bool asleep;
    bool stopped; /* takes nothing */
};

static struct mpb_world w;
static struct member member[NODES];
static uint64_t rng;
static const char *wrong;

static uint32_t draw(uint32_t n)
{
    rng = rng * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(rng >> 33) % n;
}

static uint32_t length_of(uint32_t number)
{
    return (uint32_t)sizeof(struct note) + number * 97 % 800;
}

static void deliver(void *ctx, qn_node_t source, const void *msg, size_t len)
{
    struct member *m = ctx;
    struct note note;
    memcpy(&note, msg, sizeof note);
    qn_node_t self = (qn_node_t)(m - member);
    if (note.source != source || note.len != len ||
        note.incarnation != mpb_core(&w, self)->incarnation[source]) {
        wrong = "a message of another source or incarnation";
        return;
    }
    if (note.number <= m->last[source] && m->came[source] > 0) {
        wrong = "twice, or out of order";
    }
    for (size_t b = sizeof note; b < len; b++) {
        if (((const uint8_t *)msg)[b] != (uint8_t)(note.number + source)) {
            wrong = "other bytes";
        }
    }
    m->last[source] = note.number;
    m->came[source]++;
}

static bool send(qn_node_t i)
{
    uint8_t msg[BYTES];
    struct member *m = &member[i];
    const struct note note = {.incarnation = w.incarnation[i],
                              .source = i,
                              .number = m->sent,
                              .len = length_of(m->sent)};
    memset(msg, (int)(m->sent + i), sizeof msg);
    memcpy(msg, &note, sizeof note);
    const struct qn_slice part = {msg, note.len};
    if (qn_device_bcast_try_send(m->bcast, &part, 1) != QN_OK) {
        return false;
    }
    m->sent++;
    return true;
}

static void join(qn_node_t i, uint32_t k)
{
    struct qn_mpb_layout l;
    cr_assert(qn_mpb_layout(&l, NODES, 1));
    member[i] = (struct member){.sent = 0};
    cr_assert_eq(
        qn_oc_async_create(&member[i].bcast,
                           &(struct qn_oc_async_opts){.device = w.node[i],
                                                      .first = l.broadcast,
                                                      .lines = 20,
                                                      .k = k,
                                                      .msg_max = BYTES}),
        QN_OK);
}

static void open_world(uint64_t seed, uint32_t k)
{
    mpb_open_world(&w, NODES, true, seed);
    rng = seed;
    wrong = NULL;
    for (qn_node_t i = 0; i < NODES; i++) {
        join(i, k);
    }
}

static const char *close_world(void)
{
    for (qn_node_t i = 0; i < NODES; i++) {
        wrong = wrong == NULL ? qn_mpb_fault(w.node[i]) : wrong;
        qn_device_bcast_destroy(member[i].bcast);
    }
    mpb_close_world(&w);
    return wrong;
}

static void sleep_if_idle(qn_node_t i, uint32_t messages)
{
    struct member *m = &member[i];
    qn_doorbell_arm(&w.doorbell[i]);
    bool waits = qn_device_bcast_flush(m->bcast);
    m->asleep =
        !qn_device_bcast_pending(m->bcast) && (m->sent >= messages || waits);
    if (!m->asleep) {
        qn_doorbell_disarm(&w.doorbell[i]);
    }
}

static void turn(qn_node_t i, uint32_t messages)
{
    struct member *m = &member[i];
    if (m->stopped ||
        (m->asleep && qn_load(&w.line[i].epoch, QN_SEQ_CST) % 2 != 0)) {
        return;
    }
    m->asleep = false;
    switch (draw(3)) {
    case 0:
        if (m->sent < messages) {
            (void)send(i);
        }
        break;
    case 1:
        (void)qn_device_bcast_poll(m->bcast, 1 + draw(3), deliver, m);
        break;
    default:
        sleep_if_idle(i, messages);
    }
}

/* It ends and comes back at once; the others are told, each a little later. */
static uint32_t untold[NODES]; /* of node i: bits of those that do not know */

static void die(qn_node_t i, uint32_t k)
{
    qn_device_bcast_destroy(member[i].bcast);
    qn_device_detach(w.node[i]);
    w.incarnation[i] += 100;
    memset(&w.line[i], 0, sizeof w.line[i]);
    mpb_attach(&w, i);
    join(i, k);
    untold[i] = 31u & ~(1u << i);
}

static void tell_some(void)
{
    for (qn_node_t i = 0; i < NODES; i++) {
        for (qn_node_t j = 0; j < NODES; j++) {
            if ((untold[i] >> j & 1) != 0 && draw(8) == 0) {
                untold[i] &= ~(1u << j);
                qn_device_down(w.node[j], i);
                qn_device_up(w.node[j], i, w.incarnation[i]);
                member[j].came[i] = 0;
                qn_doorbell_disarm(&w.doorbell[j]); /* told by a message */
            }
        }
    }
}

/* All have all that was sent: without deaths of all, else the last ones. */
static bool complete(void)
{
    for (qn_node_t i = 0; i < NODES; i++) {
        for (qn_node_t s = 0; s < NODES; s++) {
            if (s != i && (member[i].came[s] == 0 ||
                           member[i].last[s] + 1 != member[s].sent)) {
                return false;
            }
        }
    }
    return true;
}

static void run(uint32_t messages)
{
    for (uint32_t step = 0; wrong == NULL; step++) {
        bool sent = true;
        for (qn_node_t i = 0; i < NODES; i++) {
            sent = sent && member[i].sent >= messages;
        }
        if (sent && complete()) {
            return;
        }
        turn(draw(NODES), messages);
        wrong = step == STEPS && wrong == NULL ? "no progress" : wrong;
    }
}

static void all_came(void)
{
    for (qn_node_t i = 0; i < NODES; i++) {
        struct qn_oc_queued q = qn_oc_async_queued(member[i].bcast);
        if (q.most > QN_OC_WINDOW * NODES) {
            wrong = "the window does not bound the queue";
        }
        for (qn_node_t s = 0; s < NODES && wrong == NULL; s++) {
            if (s != i && member[i].came[s] != member[s].sent) {
                wrong = "a message is missing";
            }
        }
    }
}

const char *oc_async_traffic(uint64_t seed, uint32_t deaths)
{
    uint32_t k = 1 + (uint32_t)seed % 4;
    open_world(seed, k);
    memset(untold, 0, sizeof untold);
    for (uint32_t d = 0; d < deaths && wrong == NULL; d++) {
        for (uint32_t step = 200 + draw(400); step > 0; step--) {
            turn(draw(NODES), MESSAGES);
            tell_some();
        }
        die(draw(NODES), k);
    }
    for (uint32_t left = 1; left != 0 && wrong == NULL;) {
        turn(draw(NODES), MESSAGES);
        tell_some();
        left = 0;
        for (qn_node_t i = 0; i < NODES; i++) {
            left |= untold[i];
        }
    }
    run(MESSAGES + 3); /* each says something behind the last death */
    if (wrong == NULL && deaths == 0) {
        all_came();
    }
    return close_world();
}

const char *oc_async_stall(uint64_t seed)
{
    open_world(seed, 2);
    member[3].stopped = true;
    for (uint32_t step = 0; step < 4000; step++) {
        turn(draw(NODES), step < 3000 ? 300 : 0);
    }
    for (qn_node_t i = 0; i < NODES; i++) {
        struct qn_oc_queued q = qn_oc_async_queued(member[i].bcast);
        /* Those in the window, and one that is staged. */
        if (member[i].sent > QN_OC_WINDOW + 1 && wrong == NULL) {
            wrong = "a source ran ahead of a member that takes nothing";
        }
        if (q.now == q.limit) {
            wrong = "a queue is full";
        }
    }
    member[3].stopped = false;
    return close_world();
}
