/*
 * Messages say their source, incarnation, number and length, so that what
 * arrives can be judged by itself: of one source in order, once, and without a
 * gap. Nodes sleep when nothing is pending and are scheduled again when they
 * were rung. They end and come back, and each of the others is told of that end
 * and of that beginning at times of its own.
 *
 * While a node gets something from a buffer, puts something there or moves it,
 * others may take a turn between any two words, so what it reads may change
 * under its hands.
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
    struct qn_device_bcast *bcast; /* NULL: it has ended */
    uint32_t sent;
    uint64_t knows[NODES]; /* incarnation that it was told of; 0: none */
    uint32_t owed[NODES];  /* number of the first message that it owes */
    uint32_t came[NODES];  /* how many came, of the one that it knows */
    uint32_t last[NODES];  /* number of the last one */
    bool asleep;
    bool stopped; /* takes nothing */
    bool busy;    /* in a call */
};

static struct mpb_world w;
static struct member member[NODES];
static uint64_t rng;
static const char *wrong;
static uint32_t to_send; /* messages of each */
static const struct qn_mpb_access *strict_access;
static struct qn_mpb_access with_turns; /* as strict_access, and others run */

static void turn(qn_node_t i);
static bool tell_some(void);

static uint32_t draw(uint32_t n)
{
    rng = rng * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(rng >> 33) % n;
}

static uint32_t length_of(uint32_t number)
{
    return (uint32_t)sizeof(struct note) + number * 97 % 800;
}

/* A message that comes first, or behind a gap: should another one have come
 * before it? Only if the source was told of this node when it sent that. */
static bool is_owed(const struct member *source, qn_node_t self,
                    const struct note *note)
{
    return source->bcast != NULL &&
           w.incarnation[source - member] == note->incarnation &&
           source->knows[self] == w.incarnation[self] &&
           note->number > source->owed[self];
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
    if (m->came[source] > 0 && note.number <= m->last[source]) {
        wrong = "twice, or out of order";
    }
    bool follows = m->came[source] > 0 && note.number == m->last[source] + 1;
    if (!follows && is_owed(&member[source], self, &note)) {
        wrong = "a message is lost";
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

static void others(void)
{
    while (draw(8) == 0 && wrong == NULL) {
        (void)tell_some();
        turn(draw(NODES));
    }
}

/* Between two words that a node gets, puts or moves others run. */
static void get(struct qn_mpb *m, void *to, uint32_t core, uint32_t first,
                uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes; at += 8) {
        uint64_t v = strict_access->load(m, core, first + at / 32, at / 8 % 4);
        memcpy((uint8_t *)to + at, &v, QN_MIN(8u, bytes - at));
        others();
    }
}

static void put(struct qn_mpb *m, uint32_t core, uint32_t first,
                const void *from, uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes; at += 8) {
        uint64_t v = 0;
        memcpy(&v, (const uint8_t *)from + at, QN_MIN(8u, bytes - at));
        strict_access->store(m, core, first + at / 32, at / 8 % 4, v);
        others();
    }
}

static void move(struct qn_mpb *m, uint32_t to, uint32_t core, uint32_t first,
                 uint32_t lines)
{
    for (uint32_t at = 0; at < lines * 32; at += 8) {
        uint64_t v = strict_access->load(m, core, first + at / 32, at / 8 % 4);
        others();
        strict_access->store(m, m->self, to + at / 32, at / 8 % 4, v);
        others();
    }
}

static void join(qn_node_t i, uint32_t k, uint32_t start)
{
    struct qn_mpb_layout l;
    cr_assert(qn_mpb_layout(&l, NODES, 1));
    strict_access = mpb_core(&w, i)->access;
    with_turns = *strict_access;
    with_turns.get = get;
    with_turns.put = put;
    with_turns.move = move;
    mpb_core(&w, i)->access = &with_turns;
    member[i] = (struct member){.sent = 0};
    for (qn_node_t j = 0; j < NODES; j++) {
        member[i].knows[j] = mpb_core(&w, i)->incarnation[j];
    }
    cr_assert_eq(
        qn_oc_async_create(&member[i].bcast,
                           &(struct qn_oc_async_opts){.device = w.node[i],
                                                      .first = l.broadcast,
                                                      .lines = 20,
                                                      .k = k,
                                                      .msg_max = BYTES,
                                                      .start = start}),
        QN_OK);
}

static void open_world(uint64_t seed, uint32_t k, uint32_t start)
{
    mpb_open_world(&w, NODES, true, seed);
    rng = seed;
    wrong = NULL;
    to_send = 0;
    for (qn_node_t i = 0; i < NODES; i++) {
        join(i, k, start);
    }
}

static const char *close_world(void)
{
    for (qn_node_t i = 0; i < NODES; i++) {
        wrong = wrong == NULL && member[i].bcast != NULL
                    ? qn_mpb_fault(w.node[i])
                    : wrong;
        qn_device_bcast_destroy(member[i].bcast);
    }
    mpb_close_world(&w);
    return wrong;
}

static void sleep_if_idle(qn_node_t i)
{
    struct member *m = &member[i];
    qn_doorbell_arm(&w.doorbell[i]);
    bool waits = qn_device_bcast_flush(m->bcast);
    m->asleep =
        !qn_device_bcast_pending(m->bcast) && (m->sent >= to_send || waits);
    if (!m->asleep) {
        qn_doorbell_disarm(&w.doorbell[i]);
    }
}

static void turn(qn_node_t i)
{
    struct member *m = &member[i];
    if (m->bcast == NULL || m->stopped || m->busy ||
        (m->asleep && qn_load(&w.line[i].epoch, QN_SEQ_CST) % 2 != 0)) {
        return;
    }
    m->asleep = false;
    m->busy = true;
    switch (draw(3)) {
    case 0:
        if (m->sent < to_send) {
            (void)send(i);
        }
        break;
    case 1:
        (void)qn_device_bcast_poll(m->bcast, 1 + draw(3), deliver, m);
        break;
    default:
        sleep_if_idle(i);
    }
    m->busy = false;
}

/* ---- ends and beginnings ---- */

static void die(qn_node_t i)
{
    qn_device_bcast_destroy(member[i].bcast);
    qn_device_detach(w.node[i]);
    w.node[i] = NULL;
    member[i].bcast = NULL;
}

/* It knows those that live, and is told of the others when they come. */
static void come_back(qn_node_t i, uint32_t k, uint32_t start)
{
    uint64_t all[NODES];
    memcpy(all, w.incarnation, sizeof all);
    all[i] += 100;
    for (qn_node_t j = 0; j < NODES; j++) {
        bool there = j == i || member[j].bcast != NULL;
        w.incarnation[j] = there ? all[j] : 0;
    }
    memset(&w.line[i], 0, sizeof w.line[i]);
    mpb_attach(&w, i);
    memcpy(w.incarnation, all, sizeof all);
    join(i, k, start);
}

/* Tell j of what has become of i, one thing at a time. @return whether there is
 * more to tell. */
static bool tell(qn_node_t j, qn_node_t i)
{
    struct member *m = &member[j];
    uint64_t now = member[i].bcast != NULL ? w.incarnation[i] : 0;
    if (i == j || m->bcast == NULL || m->knows[i] == now) {
        return false;
    }
    if (draw(64) != 0 || m->busy) {
        return true;
    }
    if (m->knows[i] != 0) {
        qn_device_down(w.node[j], i);
        m->knows[i] = 0;
    } else {
        qn_device_up(w.node[j], i, now);
        m->knows[i] = now;
        m->owed[i] = m->sent;
        m->came[i] = 0;
    }
    qn_doorbell_disarm(&w.doorbell[j]); /* told by a message */
    return true;
}

static bool tell_some(void)
{
    bool more = false;
    for (qn_node_t i = 0; i < NODES; i++) {
        for (qn_node_t j = 0; j < NODES; j++) {
            more |= tell(j, i);
        }
    }
    return more;
}

/* i has all that s has sent to it. */
static bool has_all(qn_node_t i, qn_node_t s)
{
    const struct member *m = &member[i];
    return (m->came[s] > 0 && m->last[s] + 1 == member[s].sent) ||
           member[s].owed[i] == member[s].sent;
}

static bool complete(void)
{
    for (qn_node_t i = 0; i < NODES; i++) {
        for (qn_node_t s = 0; s < NODES; s++) {
            if (member[s].sent < to_send || (s != i && !has_all(i, s))) {
                return false;
            }
        }
    }
    return true;
}

static void run(void)
{
    for (uint32_t step = 0; wrong == NULL && !complete(); step++) {
        turn(draw(NODES));
        wrong = step == STEPS && wrong == NULL ? "no progress" : wrong;
    }
}

static void all_came(void)
{
    for (qn_node_t i = 0; i < NODES; i++) {
        for (qn_node_t s = 0; s < NODES && wrong == NULL; s++) {
            if (s != i && member[i].came[s] != member[s].sent) {
                wrong = "a message is missing";
            }
        }
    }
}

static void take_turns(uint32_t steps)
{
    for (; steps > 0 && wrong == NULL; steps--) {
        turn(draw(NODES));
        (void)tell_some();
    }
}

/* All are told of all, some say something meanwhile, and then nothing more. */
static void settle(void)
{
    to_send += draw(4);
    while (wrong == NULL && tell_some()) {
        turn(draw(NODES));
    }
    run();
}

const char *oc_async_traffic(uint64_t seed, uint32_t deaths)
{
    uint32_t k = 1 + (uint32_t)seed % 4;
    uint32_t start = seed % 3 == 0 ? UINT32_MAX - 9 : 0; /* numbers wrap */
    open_world(seed, k, start);
    to_send = deaths == 0 ? MESSAGES : 2;
    for (uint32_t d = 0; d < deaths; d++) {
        take_turns(100 + draw(400));
        qn_node_t dead = draw(NODES);
        die(dead);
        take_turns(draw(200));
        come_back(dead, k, start);
        to_send += draw(4);
        if (draw(2) == 0) {
            settle();
        }
    }
    settle();
    to_send += draw(2) * draw(4);
    run();
    if (wrong == NULL && deaths == 0) {
        all_came();
    }
    return close_world();
}

/* ---- a member that stalls ---- */

static void nothing_ran_ahead(uint32_t already)
{
    for (qn_node_t i = 0; i < NODES; i++) {
        /* Those in the window, and one that is staged. */
        if (member[i].sent > already + QN_OC_WINDOW + 1 && wrong == NULL) {
            wrong = "a source ran ahead of a member that takes nothing";
        }
    }
}

const char *oc_async_stall(uint64_t seed)
{
    open_world(seed, 2, 0);
    member[3].stopped = true;
    to_send = 300;
    take_turns(3000);
    to_send = 0;
    take_turns(1000);
    nothing_ran_ahead(0);
    return close_world();
}

/* A chain, in which all that the others send goes through the one in front of
 * the member that stalls; others end and come back meanwhile. */
const char *oc_async_stall_and_deaths(uint64_t seed, uint32_t *most)
{
    const qn_node_t stalled = 3;
    open_world(seed, 1, 0);
    member[stalled].stopped = true;
    to_send = 300;
    take_turns(3000);
    for (uint32_t d = 0; d < 6; d++) {
        qn_node_t dead = d % 2;
        die(dead);
        take_turns(200);
        come_back(dead, 1, 0);
        take_turns(1500);
        nothing_ran_ahead(0);
    }
    *most = qn_oc_async_queued(member[stalled - 1].bcast).most;
    member[stalled].stopped = false;
    to_send = 0;
    for (qn_node_t i = 0; i < NODES; i++) {
        to_send = QN_MAX(to_send, member[i].sent);
    }
    settle();
    return close_world();
}
