/*
 * The world of test_lane_*.c. `setup` lays messages into node 0's lane before
 * the run, so that a test begins where its question does: at a ring that is
 * full, at a sequence that is about to wrap.
 */
#include "tests/sim/lanes/lane_world.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "tests/support/test.h"

static const struct qn_device_opts device_opts = {.nodes = 2, .lanes = 1};

static const struct qn_device_type *device_type(void)
{
    return lane_kind.transport->device;
}

size_t lane_memory_bytes(void)
{
    return device_type() != NULL ? device_type()->bytes(&device_opts)
                                 : lane_kind.transport->lane_bytes(LANE_CELLS);
}

void lane_fill(uint8_t *msg, uint32_t bytes, uint32_t number)
{
    for (uint32_t i = 0; i < bytes; i++) {
        msg[i] = (uint8_t)(number * 31 + i);
    }
}

static void make_doorbells(struct lane_world *w)
{
    memset(w->line, 0, sizeof w->line);
    for (uint32_t i = 0; i < 2; i++) {
        int fd = w->futex ? -1 : (int)i;
        qn_doorbell_init(&w->doorbell[i], &w->line[i], fd);
        qn_doorbell_handle_init(&w->ringer[i], &w->line[i], fd);
    }
}

void lane_attach(struct lane_world *w, uint32_t i, uint64_t self_inc,
                 uint64_t peer_inc)
{
    uint64_t incarnation[2];
    incarnation[i] = self_inc;
    incarnation[1 - i] = peer_inc;
    const struct qn_device_attach_opts o = {.memory = w->lane[0],
                                            .opts = &device_opts,
                                            .self = i,
                                            .incarnation = incarnation,
                                            .doorbell = &w->doorbell[i],
                                            .ringer = w->ringer};
    if (device_type()->attach(&w->port[i], &o) != QN_OK) {
        abort();
    }
}

void lane_open(struct lane_world *w, uint32_t i, uint64_t self_inc,
               uint64_t peer_inc)
{
    const struct qn_qp_opts o = {.tx = w->lane[i],
                                 .rx = w->lane[1 - i],
                                 .device = w->port[i],
                                 .cells = LANE_CELLS,
                                 .msg_max = LANE_MESSAGE_MAX,
                                 .self = i,
                                 .peer = 1 - i,
                                 .self_inc = self_inc,
                                 .peer_inc = peer_inc,
                                 .doorbell = &w->doorbell[i],
                                 .ringer = &w->ringer[1 - i]};
    if (lane_kind.open_at(&w->qp[i], &o, w->start) != QN_OK) {
        abort();
    }
}

/* Both nodes as their first incarnations. */
static void begin(struct lane_world *w)
{
    memset(w->lane[0], 0, lane_memory_bytes());
    if (device_type() == NULL) {
        memset(w->lane[1], 0, lane_memory_bytes());
    } else {
        device_type()->format(w->lane[0], &device_opts);
        lane_attach(w, 0, 10, 11);
        lane_attach(w, 1, 11, 10);
    }
    lane_open(w, 0, 10, 11);
    lane_open(w, 1, 11, 10);
}

void lane_setup(void *ctx)
{
    struct lane_world *w = ctx;
    uint8_t msg[LANE_MESSAGE_MAX];
    make_doorbells(w);
    begin(w);
    w->received = 0;
    w->replies = 0;
    for (uint32_t n = 0; n < w->filled; n++) {
        lane_fill(msg, w->bytes, n);
        if (qn_qp_try_send(w->qp[0], msg, w->bytes) != QN_OK) {
            abort();
        }
    }
    if (w->flushed) {
        (void)qn_qp_flush(w->qp[0]);
    }
}

void lane_teardown(void *ctx)
{
    struct lane_world *w = ctx;
    for (uint32_t i = 0; i < 2; i++) {
        qn_qp_close(w->qp[i]);
        qn_device_detach(w->port[i]);
    }
}

/* Message number `received`, whole and right? */
void lane_take(struct lane_world *w, const uint8_t *msg, size_t len)
{
    uint8_t want[LANE_MESSAGE_MAX];
    lane_fill(want, w->bytes, w->received);
    if (len != w->bytes || memcmp(msg, want, len) != 0) {
        qn_sim_fail("torn, lost or doubled message");
    }
    w->received++;
}

void lane_sender(void *ctx)
{
    struct lane_world *w = ctx;
    uint8_t msg[LANE_MESSAGE_MAX];
    for (uint32_t n = 0; n < w->messages; n++) {
        lane_fill(msg, w->bytes, w->filled + n);
        if (qn_qp_send(w->qp[0], msg, w->bytes, QN_TIME_NEVER) != QN_OK) {
            qn_sim_fail("send");
        }
    }
    if (qn_qp_drain(w->qp[0], QN_TIME_NEVER) != QN_OK) {
        qn_sim_fail("drain");
    }
}

void lane_receiver(void *ctx)
{
    struct lane_world *w = ctx;
    uint8_t msg[LANE_MESSAGE_MAX];
    size_t len = 0;
    for (uint32_t n = 0; n < w->filled + w->messages; n++) {
        if (qn_qp_recv(w->qp[1], msg, sizeof msg, &len, QN_TIME_NEVER) !=
            QN_OK) {
            qn_sim_fail("recv");
        }
        lane_take(w, msg, len);
    }
}

/* Everybody ends, unless somebody was killed; nothing torn either way. */
static const char *all_received(void *ctx)
{
    const struct lane_world *w = ctx;
    if (qn_sim_end_of(0) == QN_SIM_KILLED ||
        qn_sim_end_of(1) == QN_SIM_KILLED) {
        return NULL;
    }
    if (qn_sim_end_of(0) != QN_SIM_DONE) {
        return "the sender sleeps for ever";
    }
    if (qn_sim_end_of(1) != QN_SIM_DONE) {
        return "the receiver sleeps for ever";
    }
    return w->received == w->filled + w->messages ? NULL : "messages missing";
}

const char *lane_nobody_asleep(void *ctx)
{
    (void)ctx;
    return qn_sim_end_of(0) == QN_SIM_DONE && qn_sim_end_of(1) == QN_SIM_DONE
               ? NULL
               : "asleep for ever";
}

void lane_make(struct lane_world *w)
{
    for (uint32_t i = 0; i < (device_type() == NULL ? 2 : 1); i++) {
        w->lane[i] = aligned_alloc(QN_CACHELINE, lane_memory_bytes());
        cr_assert_not_null(w->lane[i]);
    }
}

struct lane_search lane_search;

/* C11: 3 deviations with two nodes, 2 with more or with long messages, whose
 * many cells make it twenty times as many schedules; or what is asked for, of
 * which long messages take one less. */
static uint32_t least(uint32_t nodes, bool longer)
{
    const char *more = getenv("QN_EXPLORE_DEVIATIONS");
    uint32_t usual = nodes == 2 && !(longer && LANE_LESS == 0) ? 3 : 2;
    if (lane_search.on) {
        return lane_search.deviations;
    }
    if (more != NULL && nodes == 2) {
        const uint32_t asked = (uint32_t)atoi(more);
        return longer && asked > usual ? asked - 1 : asked;
    }
    return usual - 2 * LANE_LESS;
}

static bool chosen(enum qn_explore_memory m)
{
    const char *only = getenv("QN_SIM_MEMORY");
    if (lane_search.on) {
        return m == QN_EXPLORE_C11 && !lane_search.found;
    }
    if (only == NULL && LANE_LESS != 0) {
        return m == QN_EXPLORE_C11; /* the lanes' code is the same in both */
    }
    return only == NULL || (strcmp(only, "c11") == 0) == (m == QN_EXPLORE_C11);
}

static void explore_in(enum qn_explore_memory m, struct qn_explore_opts o,
                       bool longer)
{
    struct qn_explored out;
    const char *replay = getenv("QN_SIM_REPLAY");
    if (!chosen(m)) {
        return;
    }
    o.memory = m;
    o.all = o.all && !lane_search.on; /* a child may lose memory */
    o.deviations -= o.deviations > LANE_LESS ? LANE_LESS : 0;
    if (m == QN_EXPLORE_C11 && (lane_search.on || lane_kind.most == 0)) {
        uint32_t asked = least(o.nodes, longer);
        o.deviations = lane_search.on ? asked : QN_MAX(o.deviations, asked);
    }
    bool good = replay != NULL ? qn_explore_replay(&o, replay, &out)
                               : qn_explore(&o, &out);
    if (lane_search.on) {
        lane_search.found = !good;
        return;
    }
    const char *memory = m == QN_EXPLORE_C11 ? "c11" : "tso";
    cr_assert(good, "%s; QN_SIM_MEMORY=%s QN_SIM_REPLAY='%s'", out.fault,
              memory, out.choices);
    cr_assert(replay != NULL || out.complete);
}

static void explore_in_both(struct qn_explore_opts o, bool longer)
{
    explore_in(QN_EXPLORE_TSO, o, longer);
    explore_in(QN_EXPLORE_C11, o, longer);
}

void lane_explore_in_both(struct qn_explore_opts o)
{
    explore_in_both(o, false);
}

/* No more than a transport has time for, or what is asked for. */
static void bound(struct qn_explore_opts *o, const struct lane_world *w)
{
    const char *more = getenv("QN_EXPLORE_DEVIATIONS");
    bool heavy = o->kills > 0 || w->bytes > LANE_SHORT;
    uint32_t most = QN_MAX(lane_kind.most - heavy, 1u);
    if (more != NULL) {
        most = (uint32_t)atoi(more);
    }
    o->deviations = QN_MIN(o->deviations, most);
    o->kills = QN_MIN(o->kills, most);
}

void lane_explore(struct qn_explore_opts o, struct lane_world *w)
{
    if (lane_kind.most != 0) {
        bound(&o, w);
    }
    lane_make(w);
    o.nodes = 2;
    o.setup = lane_setup;
    o.teardown = lane_teardown;
    o.check = o.check != NULL ? o.check : all_received;
    o.ctx = w;
    explore_in_both(o, w->bytes > LANE_SHORT);
    free(w->lane[0]);
    free(w->lane[1]);
}

void lane_explore_traffic(struct lane_world w, uint32_t deviations,
                          uint32_t kills)
{
    lane_explore((struct qn_explore_opts){.node = {lane_sender, lane_receiver},
                                          .deviations = deviations,
                                          .kills = kills},
                 &w);
}
