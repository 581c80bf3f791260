/*
 * With two nodes a chunk has 32 cells, too many to fill in every schedule; with
 * 20 nodes and two lanes it has one. Then only the parts of the two cores are
 * cleared between runs.
 */
#include "tests/sim/mpb/mpb_world.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "transports/mpb/chip.h"
#include "transports/mpb/layout.h"

#define ONE_CELL  20u /* nodes */
#define BYTES_MAX 200u

struct world {
    /* the scenario */
    uint32_t nodes;
    bool strict;
    uint32_t before;   /* messages sent before the run */
    uint32_t messages; /* sent in it */
    uint32_t bytes;
    /* the machine */
    struct qn_device_opts opts;
    struct qn_mpb_chip *chip;
    struct qn_device *device[3];
    uint64_t incarnation[QN_MPB_CORES];
    struct qn_doorbell_line line[2];
    struct qn_doorbell doorbell[2];
    struct qn_doorbell_handle ringer[QN_MPB_CORES];
    struct qn_qp *qp[3]; /* [2]: of a successor */
    uint32_t received;
};

/* A sanitizer makes each run several times slower, and has seen all code. */
#ifdef __SANITIZE_ADDRESS__
struct mpb_search mpb_search = {.deviations = 2};
#else
struct mpb_search mpb_search;
#endif

static void fill(uint8_t *msg, uint32_t bytes, uint32_t number)
{
    for (uint32_t i = 0; i < bytes; i++) {
        msg[i] = (uint8_t)(number * 31 + i);
    }
}

static void must(bool so)
{
    if (!so) {
        abort();
    }
}

static void attach(struct world *w, uint32_t place, qn_node_t node)
{
    const struct qn_device_attach_opts o = {.memory = w->chip,
                                            .opts = &w->opts,
                                            .self = node,
                                            .incarnation = w->incarnation,
                                            .doorbell = &w->doorbell[node],
                                            .ringer = w->ringer};
    must(qn_mpb_device.attach(&w->device[place], &o) == QN_OK);
}

static int open_end(struct world *w, uint32_t place, qn_node_t node)
{
    const struct qn_qp_opts o = {.device = w->device[place],
                                 .lane = QN_LANE_DIRECT,
                                 .self = node,
                                 .peer = 1 - node,
                                 .msg_max = BYTES_MAX,
                                 .self_inc = w->incarnation[node],
                                 .peer_inc = w->incarnation[1 - node],
                                 .doorbell = &w->doorbell[node],
                                 .ringer = &w->ringer[1 - node]};
    return qn_mpb.open(&w->qp[place], &o);
}

static void setup(void *ctx)
{
    struct world *w = ctx;
    uint8_t msg[BYTES_MAX];
    memset(w->chip->core, 0, 2 * sizeof w->chip->core[0]);
    memset(w->line, 0, sizeof w->line);
    w->qp[2] = NULL;
    w->device[2] = NULL;
    w->incarnation[0] = 10;
    w->incarnation[1] = 11;
    for (qn_node_t i = 0; i < 2; i++) {
        qn_doorbell_init(&w->doorbell[i], &w->line[i], (int)i);
        qn_doorbell_handle_init(&w->ringer[i], &w->line[i], (int)i);
        attach(w, i, i);
    }
    must(open_end(w, 0, 0) == QN_OK && open_end(w, 1, 1) == QN_OK);
    w->received = 0;
    for (uint32_t n = 0; n < w->before; n++) {
        fill(msg, w->bytes, n);
        must(qn_qp_try_send(w->qp[0], msg, w->bytes) == QN_OK);
    }
}

static void teardown(void *ctx)
{
    struct world *w = ctx;
    for (uint32_t i = 0; i < 3; i++) {
        qn_qp_close(w->qp[i]);
        qn_device_detach(w->device[i]);
    }
}

static void take(struct world *w, const uint8_t *msg, size_t len)
{
    uint8_t want[BYTES_MAX];
    fill(want, w->bytes, w->received);
    if (len != w->bytes || memcmp(msg, want, len) != 0) {
        qn_sim_fail("torn, lost or doubled message");
    }
    w->received++;
}

static void sender(void *ctx)
{
    struct world *w = ctx;
    uint8_t msg[BYTES_MAX];
    for (uint32_t n = 0; n < w->messages; n++) {
        fill(msg, w->bytes, w->before + n);
        if (qn_qp_send(w->qp[0], msg, w->bytes, QN_TIME_NEVER) != QN_OK) {
            qn_sim_fail("send");
        }
    }
    if (qn_qp_drain(w->qp[0], QN_TIME_NEVER) != QN_OK) {
        qn_sim_fail("drain");
    }
}

static void receiver(void *ctx)
{
    struct world *w = ctx;
    uint8_t msg[BYTES_MAX];
    size_t len = 0;
    for (uint32_t n = 0; n < w->before + w->messages; n++) {
        if (qn_qp_recv(w->qp[1], msg, sizeof msg, &len, QN_TIME_NEVER) !=
            QN_OK) {
            qn_sim_fail("recv");
        }
        take(w, msg, len);
    }
}

static const char *all_received(void *ctx)
{
    const struct world *w = ctx;
    for (uint32_t i = 0; i < 2; i++) {
        if (qn_mpb_fault(w->device[i]) != NULL) {
            return qn_mpb_fault(w->device[i]);
        }
        if (qn_sim_end_of(i) == QN_SIM_KILLED) {
            return NULL;
        }
    }
    if (qn_sim_end_of(0) != QN_SIM_DONE || qn_sim_end_of(1) != QN_SIM_DONE) {
        return "asleep for ever";
    }
    return w->received == w->before + w->messages ? NULL : "messages missing";
}

static bool explore(struct world w, struct qn_explore_opts o,
                    struct qn_explored *out)
{
    w.opts = (struct qn_device_opts){
        .nodes = w.nodes, .lanes = 2, .strict = w.strict, .seed = 1};
    size_t bytes = qn_mpb_device.bytes(&w.opts);
    w.chip = aligned_alloc(4096, bytes);
    must(bytes != 0 && w.chip != NULL);
    memset(w.chip, 0, bytes);
    qn_mpb_device.format(w.chip, &w.opts);
    o.nodes = 2;
    o.setup = setup;
    o.teardown = teardown;
    o.ctx = &w;
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

static bool explore_traffic(struct world w, uint32_t deviations, uint32_t kills,
                            struct qn_explored *out)
{
    const struct qn_explore_opts o = {.node = {sender, receiver},
                                      .check = all_received,
                                      .deviations = deviations,
                                      .kills = kills};
    return explore(w, o, out);
}

bool mpb_messages_pass_between_sleepers(struct qn_explored *out)
{
    return explore_traffic(
        (struct world){.nodes = 2, .messages = 2, .bytes = 8}, 4, 0, out);
}

bool mpb_a_sender_that_waits_for_room_is_woken(struct qn_explored *out)
{
    return explore_traffic(
        (struct world){
            .nodes = ONE_CELL, .before = 1, .messages = 2, .bytes = 8},
        3, 0, out);
}

bool mpb_a_long_message_passes_a_chunk_of_one_cell(struct qn_explored *out)
{
    return explore_traffic(
        (struct world){.nodes = ONE_CELL, .messages = 1, .bytes = 150}, 2, 0,
        out);
}

/* Flushes twice before it sleeps, as a node with a broadcast context does: the
 * second flush pushes into the room that the first one found. */
static void looks_for_room(void *ctx)
{
    struct world *w = ctx;
    struct qn_qp *qp = w->qp[0];
    uint8_t msg[BYTES_MAX];
    while (qn_qp_room(qp) == 0) {
        qn_doorbell_arm(&w->doorbell[0]);
        (void)qn_qp_flush(qp);
        (void)qn_qp_flush(qp);
        if (qn_qp_room(qp) == 0) {
            (void)qn_doorbell_wait(&w->doorbell[0], QN_TIME_NEVER);
        }
        qn_doorbell_disarm(&w->doorbell[0]);
    }
    fill(msg, w->bytes, w->before);
    if (qn_qp_try_send(qp, msg, w->bytes) != QN_OK ||
        qn_qp_drain(qp, QN_TIME_NEVER) != QN_OK) {
        qn_sim_fail("room, but refused");
    }
}

bool mpb_who_looks_for_room_behind_a_staged_message_is_woken(
    struct qn_explored *out)
{
    return explore(
        (struct world){
            .nodes = ONE_CELL, .before = 1, .messages = 1, .bytes = 80},
        (struct qn_explore_opts){.node = {looks_for_room, receiver},
                                 .check = all_received,
                                 .deviations = 2},
        out);
}

bool mpb_a_strict_chip_passes_them_too(struct qn_explored *out)
{
    return explore_traffic(
        (struct world){
            .nodes = 2, .strict = true, .before = 1, .messages = 2, .bytes = 8},
        2, 0, out);
}

bool mpb_death_in_front_of_every_operation_tears_nothing(
    struct qn_explored *out)
{
    return explore_traffic(
        (struct world){
            .nodes = ONE_CELL, .before = 1, .messages = 1, .bytes = 80},
        1, 1, out);
}

/* ---- successors ---- */

/* Node 0 was incarnation 10, is dead, and comes back as 12 while node 1, which
 * was not told yet, still reads what 10 had sent. */
static void comes_back(void *ctx)
{
    struct world *w = ctx;
    w->incarnation[0] = 12;
    attach(w, 2, 0);
    if (open_end(w, 2, 0) != QN_OK ||
        qn_qp_try_send(w->qp[2], "newer", 5) != QN_OK) {
        qn_sim_fail("come back");
    }
}

static void reads_the_dead(void *ctx)
{
    struct world *w = ctx;
    uint8_t msg[BYTES_MAX];
    size_t len;
    for (uint32_t i = 0; i < 3; i++) {
        int rc = qn_qp_try_recv(w->qp[1], msg, sizeof msg, &len);
        if (rc == QN_OK) {
            take(w, msg, len);
        } else if (rc != QN_EAGAIN) {
            qn_sim_fail("damage");
        }
    }
}

static const char *both_done(void *ctx)
{
    (void)ctx;
    return qn_sim_end_of(0) == QN_SIM_DONE && qn_sim_end_of(1) == QN_SIM_DONE
               ? NULL
               : "asleep for ever";
}

static bool explore_successor(struct world w, void (*other)(void *),
                              struct qn_explored *out)
{
    const struct qn_explore_opts o = {
        .node = {comes_back, other},
        .check = both_done,
        .all = true, /* nodes allocate: no run is given up */
        .deviations = 3};
    return explore(w, o, out);
}

bool mpb_a_reader_of_the_dead_gets_nothing_of_the_successor(
    struct qn_explored *out)
{
    return explore_successor(
        (struct world){.nodes = ONE_CELL, .before = 1, .bytes = 5},
        reads_the_dead, out);
}

/* Node 1 was told, and opens again toward 12. */
static void opens_again(void *ctx)
{
    struct world *w = ctx;
    uint8_t msg[BYTES_MAX];
    size_t len;
    qn_device_down(w->device[1], 0);
    qn_device_up(w->device[1], 0, 12);
    w->incarnation[0] = 12;
    qn_qp_close(w->qp[1]);
    w->qp[1] = NULL;
    if (open_end(w, 1, 1) != QN_OK) {
        qn_sim_fail("open again");
    }
    if (qn_qp_room(w->qp[1]) != 1) {
        qn_sim_fail("another incarnation's room counted");
    }
    int rc;
    while ((rc = qn_qp_try_recv(w->qp[1], msg, sizeof msg, &len)) ==
           QN_EAGAIN) {
        qn_pause();
    }
    if (rc != QN_OK || len != 5 || memcmp(msg, "newer", 5) != 0) {
        qn_sim_fail("a message of another incarnation");
    }
}

bool mpb_incarnations_never_mix_in_any_order(struct qn_explored *out)
{
    return explore_successor(
        (struct world){.nodes = ONE_CELL, .before = 1, .bytes = 5}, opens_again,
        out);
}
