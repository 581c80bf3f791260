/*
 * The root sends each message, or burst, when all have acknowledged the one
 * before. All other nodes receive until they have them all; between two
 * messages they look, as a node that owns its core does.
 */
#include "loadgen/simulate/net/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/coll/sequenced_broadcast.h"
#include "loadgen/simulate/net/edges.h"

#define CELLS 512u

struct pipeline_member {
    struct qn_sequenced_broadcast *b;
    struct qn_wiring *wiring;
    uint32_t delivered;
};

static struct {
    const struct qn_pipeline_opts *o;
    struct qn_edges_device device;
    struct qn_edges_net net;
    struct pipeline_member *member; /* [nodes] */
    struct qn_pipeline_times times;
    uint64_t wrong;
    uint32_t complete; /* nodes that came to their end */
} world;

static void deliver(void *ctx, uint32_t number, const void *msg, size_t len)
{
    struct pipeline_member *m = ctx;
    uint32_t word = 0;
    m->delivered++;
    memcpy(&word, msg, len < sizeof word ? len : sizeof word);
    world.wrong +=
        number != m->delivered || word != number || len != world.o->size;
}

static void turn(struct pipeline_member *m)
{
    const bool moved = qn_sequenced_broadcast_poll(m->b);
    (void)qn_sequenced_broadcast_flush(m->b);
    if (!moved) {
        qn_pause();
    }
}

/* @return the time until all have acknowledged. */
static qn_ps_t send(void *ctx, uint32_t count)
{
    struct pipeline_member *m = ctx;
    uint8_t msg[QN_INPLACE_MAX] = {0};
    const uint32_t first = m->delivered;
    const qn_ps_t start = qn_timed_clock();
    for (uint32_t i = 1; i <= count; i++) {
        const uint32_t word = first + i;
        memcpy(msg, &word, sizeof word);
        while (qn_sequenced_broadcast_send(m->b, msg, world.o->size, NULL) ==
               QN_EAGAIN) {
            turn(m);
        }
        (void)qn_sequenced_broadcast_flush(m->b);
        qn_timed_sleep_until(qn_timed_clock() +
                             world.o->operation_ns * QN_PS_PER_NS);
    }
    while (qn_sequenced_broadcast_acked(m->b) < first + count) {
        turn(m);
    }
    return qn_timed_clock() - start;
}

static void node(void *ctx, uint32_t self)
{
    struct pipeline_member *m = &world.member[self];
    (void)ctx;
    if (m->wiring->root) {
        qn_pipeline_times_run(&world.times, send, m);
    }
    while (qn_sequenced_broadcast_acked(m->b) < QN_PIPELINE_TOTAL) {
        turn(m);
    }
    while (qn_sequenced_broadcast_flush(m->b)) { /* the last message */
        qn_pause();
    }
    world.wrong += m->delivered != QN_PIPELINE_TOTAL;
    world.complete++;
}

static int make_wiring(struct qn_wiring **out, const struct qn_pipeline_opts *o,
                       uint32_t self)
{
    const struct qn_wiring_opts tree = {.kind = QN_WIRING_ACKNOWLEDGED,
                                        .down = o->tree,
                                        .up = o->tree,
                                        .self = self};
    const struct qn_wiring_ring_opts ring = {.ring = o->ring, .self = self};
    return o->tree != NULL ? qn_wiring_tree(out, &tree)
                           : qn_wiring_ring(out, &ring);
}

static int open_members(const struct qn_pipeline_opts *o)
{
    int err = QN_OK;
    for (uint32_t v = 0; v < o->nodes && err == QN_OK; v++) {
        struct pipeline_member *m = &world.member[v];
        err = make_wiring(&m->wiring, o, v);
        const struct qn_sequenced_broadcast_opts b = {.wiring = m->wiring,
                                                      .qp = world.net.qp[v],
                                                      .window =
                                                          QN_PIPELINE_BURST,
                                                      .bytes_max = o->size,
                                                      .view = 1,
                                                      .deliver = deliver,
                                                      .ctx = m};
        err = err == QN_OK ? qn_sequenced_broadcast_create(&m->b, &b) : err;
    }
    return err;
}

static int prepare(const struct qn_pipeline_opts *o)
{
    memset(&world, 0, sizeof world);
    world.o = o;
    world.member = calloc(o->nodes, sizeof *world.member);
    if (world.member == NULL) {
        return QN_ENOMEM;
    }
    int err = qn_edges_device_open(&world.device, o->transport, o->nodes);
    if (err == QN_OK) {
        err = qn_edges_net_open(
            &world.net, &(struct qn_edges_opts){.transport = o->transport,
                                                .device = &world.device,
                                                .tree = o->tree,
                                                .ring = o->ring,
                                                .cells = CELLS,
                                                .msg_max = QN_INPLACE_MAX});
    }
    return err == QN_OK ? open_members(o) : err;
}

static void release(void)
{
    for (uint32_t v = 0; world.member != NULL && v < world.o->nodes; v++) {
        qn_sequenced_broadcast_destroy(world.member[v].b);
        qn_wiring_destroy(world.member[v].wiring);
    }
    qn_edges_net_close(&world.net);
    qn_edges_device_close(&world.device);
    free(world.member);
    world.member = NULL;
}

int qn_pipeline_run(struct qn_pipeline_result *r,
                    const struct qn_pipeline_opts *o)
{
    struct qn_timed_result run;
    int err = prepare(o);
    if (err == QN_OK) {
        const struct qn_timed_opts t = {.nodes = o->nodes,
                                        .prices = o->prices,
                                        .main = node,
                                        .seed = o->seed};
        err = qn_timed_run(&t, &run);
    }
    if (err == QN_OK) {
        qn_timed_result_free(&run);
        *r = qn_pipeline_times_result(&world.times, world.wrong);
        err = world.complete == o->nodes ? QN_OK : QN_EIO;
    }
    release();
    return err;
}
