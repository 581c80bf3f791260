/*
 * Two nodes, each the other's child. Only plain chips: strict ones have random
 * schedules in tests/unit/transports/mpb/ocbcast.
 */
#include "tests/sim/mpb/oc_explored.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "tests/sim/mpb/mpb_world.h"
#include "transports/mpb/chip.h"
#include "transports/mpb/ocbcast/oc_async.h"

#define LINES 10u
#define BYTES 40u /* two lines */

struct world {
    struct qn_device_opts opts;
    struct qn_mpb_chip *chip;
    struct qn_device *device[3];
    struct qn_device_bcast *bcast[3]; /* [2]: of a successor of node 0 */
    uint64_t incarnation[2];
    struct qn_doorbell_line line[2];
    struct qn_doorbell doorbell[2];
    struct qn_doorbell_handle ringer[2];
    uint32_t came[2];
};

static void must(bool so)
{
    if (!so) {
        abort();
    }
}

static struct world w;

/* All bytes of a message are its source's. */
static void deliver(void *ctx, qn_node_t source, const void *msg, size_t len)
{
    uint32_t self = *(const uint32_t *)ctx;
    const char *bytes = msg;
    if (len != BYTES || source == self) {
        qn_sim_fail("another message");
    }
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != (char)('a' + source)) {
            qn_sim_fail("torn, or of another incarnation");
        }
    }
    w.came[self]++;
}

static uint32_t number[2] = {0, 1};

static void attach(uint32_t place, qn_node_t node)
{
    const struct qn_device_attach_opts o = {.memory = w.chip,
                                            .opts = &w.opts,
                                            .self = node,
                                            .incarnation = w.incarnation,
                                            .doorbell = &w.doorbell[node],
                                            .ringer = w.ringer};
    must(qn_mpb_device.attach(&w.device[place], &o) == QN_OK);
    must(qn_oc_async_create(&w.bcast[place], &(struct qn_oc_async_opts){
                                                 .device = w.device[place],
                                                 .first = 100,
                                                 .lines = LINES,
                                                 .k = 1,
                                                 .msg_max = BYTES}) == QN_OK);
}

static void send(uint32_t place, char byte)
{
    uint8_t msg[BYTES];
    const struct qn_slice part = {msg, sizeof msg};
    memset(msg, byte, sizeof msg);
    if (qn_device_bcast_try_send(w.bcast[place], &part, 1) != QN_OK) {
        qn_sim_fail("send");
    }
}

static void setup(void *ctx)
{
    (void)ctx;
    memset(w.chip->core, 0, 2 * sizeof w.chip->core[0]);
    memset(w.line, 0, sizeof w.line);
    memset(w.came, 0, sizeof w.came);
    w.device[2] = NULL;
    w.bcast[2] = NULL;
    for (qn_node_t i = 0; i < 2; i++) {
        w.incarnation[i] = 10 + i;
        qn_doorbell_init(&w.doorbell[i], &w.line[i], (int)i);
        qn_doorbell_handle_init(&w.ringer[i], &w.line[i], (int)i);
    }
    attach(0, 0);
    attach(1, 1);
}

static void teardown(void *ctx)
{
    (void)ctx;
    for (uint32_t i = 0; i < 3; i++) {
        qn_device_bcast_destroy(w.bcast[i]);
        qn_device_detach(w.device[i]);
    }
}

static bool explore(struct qn_explore_opts o, struct qn_explored *out)
{
    memset(&w, 0, sizeof w);
    w.opts = (struct qn_device_opts){.nodes = 2, .lanes = 1};
    size_t bytes = qn_mpb_device.bytes(&w.opts);
    w.chip = aligned_alloc(4096, bytes);
    must(w.chip != NULL);
    memset(w.chip, 0, bytes);
    qn_mpb_device.format(w.chip, &w.opts);
    o.nodes = 2;
    o.teardown = teardown;
    bool good = true;
    if (mpb_search.deviations != 0) {
        o.deviations = QN_MIN(o.deviations, mpb_search.deviations);
    }
    for (int memory = mpb_search.c11; memory < 2 && good; memory++) {
        o.memory = memory == 0 ? QN_EXPLORE_TSO : QN_EXPLORE_C11;
        good = qn_explore(&o, out);
    }
    free(w.chip);
    return good;
}

/* ---- both broadcast ---- */

static void broadcasts(uint32_t i)
{
    send(i, (char)('a' + i));
    send(i, (char)('a' + i));
    while (w.came[i] < 2) {
        if (qn_device_bcast_poll(w.bcast[i], 4, deliver, &number[i]) > 0) {
            continue;
        }
        qn_doorbell_arm(&w.doorbell[i]);
        (void)qn_device_bcast_flush(w.bcast[i]);
        if (!qn_device_bcast_pending(w.bcast[i])) {
            (void)qn_doorbell_wait(&w.doorbell[i], QN_TIME_NEVER);
        }
        qn_doorbell_disarm(&w.doorbell[i]);
    }
    /* The other's last chunk may wait for the buffer here. */
    while (qn_device_bcast_flush(w.bcast[i])) {
        qn_pause();
    }
}

static void node_0(void *ctx)
{
    (void)ctx;
    broadcasts(0);
}

static void node_1(void *ctx)
{
    (void)ctx;
    broadcasts(1);
}

static const char *both_done(void *ctx)
{
    (void)ctx;
    return qn_sim_end_of(0) == QN_SIM_DONE && qn_sim_end_of(1) == QN_SIM_DONE
               ? NULL
               : "asleep for ever";
}

bool oc_both_broadcast(struct qn_explored *out)
{
    const struct qn_explore_opts o = {.node = {node_0, node_1},
                                      .setup = setup,
                                      .check = both_done,
                                      .deviations = 2};
    return explore(o, out);
}

/* ---- a successor ---- */

static void dead_setup(void *ctx)
{
    setup(ctx);
    send(0, 'a'); /* and dies; node 1 is not told */
}

static void comes_back(void *ctx)
{
    (void)ctx;
    w.incarnation[0] = 12;
    attach(2, 0);
    send(2, 'b'); /* what node 1 must not see: it expects 10 */
}

static void reads_the_dead(void *ctx)
{
    (void)ctx;
    for (uint32_t i = 0; i < 2; i++) {
        (void)qn_device_bcast_poll(w.bcast[1], 4, deliver, &number[1]);
    }
}

bool oc_a_successor_overwrites(struct qn_explored *out)
{
    const struct qn_explore_opts o = {
        .node = {comes_back, reads_the_dead},
        .setup = dead_setup,
        .check = both_done,
        .all = true, /* nodes allocate: no run is given up */
        .deviations = 3};
    return explore(o, out);
}
