/*
 * A run: programs for all nodes, their queuepairs, and the times that they
 * note.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/coll/coll_lanes.h"
#include "loadgen/simulate/virtual_internal.h"

#define CELLS 128u /* of a lane, used in runs of 16 */
#define WARM  64u  /* two runs, used twice */

struct qn_virtual_world qn_virtual_world;

static struct qn_virtual_world *const world = &qn_virtual_world;

static const struct program {
    const char *name;
    int (*open)(uint32_t node);
    void (*close)(uint32_t node);
    void (*node)(uint32_t node);
} program[QN_VIRTUALS] = {
    [QN_VIRTUAL_BROADCAST] = {"broadcast", qn_broadcast_open,
                              qn_broadcast_close, qn_broadcast_node},
    [QN_VIRTUAL_ACK] = {"ack", qn_broadcast_open, qn_broadcast_close,
                        qn_broadcast_node},
    [QN_VIRTUAL_REDUCE] = {"reduce", qn_collective_open, qn_collective_close,
                           qn_collective_node},
    [QN_VIRTUAL_BARRIER] = {"barrier", qn_collective_open, qn_collective_close,
                            qn_collective_node},
    [QN_VIRTUAL_CHANNEL] = {"channel", qn_channel_open, qn_channel_close,
                            qn_channel_node},
    [QN_VIRTUAL_ALLREDUCE] = {"allreduce", qn_collective_open,
                              qn_collective_close, qn_collective_node},
    [QN_VIRTUAL_2PC] = {"2pc", qn_collective_open, qn_collective_close,
                        qn_collective_node},
};

const char *qn_virtual_name(uint32_t op)
{
    return op < QN_VIRTUALS ? program[op].name : NULL;
}

void qn_virtual_end(uint64_t number)
{
    world->ended[number] = QN_MAX(world->ended[number], qn_timed_clock());
    world->reached[number]++;
}

void qn_virtual_begin(uint64_t number)
{
    qn_ps_t at = (number + 1) * world->o->gap_ns * QN_PS_PER_NS;
    qn_timed_sleep_until(at);
    if (world->began[number] == 0) {
        world->began[number] = qn_timed_clock();
        if (world->o->trace != NULL && number + 1 == world->total) {
            qn_trace_begin(world->o->trace, at, QN_PS_NEVER);
        }
    }
}

static void node(void *ctx, uint32_t i)
{
    (void)ctx;
    program[world->o->op].node(i);
}

/* ---- a run ---- */

static int open_members(void)
{
    int err = QN_OK;
    for (uint32_t v = 0; v < world->o->tree->n && err == QN_OK; v++) {
        err = program[world->o->op].open(v);
    }
    return err;
}

static int prepare(struct qn_virtual_result *r, const struct qn_virtual_opts *o)
{
    memset(world, 0, sizeof *world);
    *r = (struct qn_virtual_result){0};
    world->o = o;
    world->r = r;
    world->total = (o->warm == 0 ? WARM : o->warm) + o->count;
    world->member = calloc(o->tree->n, sizeof *world->member);
    world->began = calloc(world->total, sizeof *world->began);
    world->ended = calloc(world->total, sizeof *world->ended);
    world->reached = calloc(world->total, sizeof *world->reached);
    r->took = calloc(o->count, sizeof *r->took);
    if (world->member == NULL || world->began == NULL || world->ended == NULL ||
        world->reached == NULL || r->took == NULL) {
        return QN_ENOMEM;
    }
    int err = qn_edges_device_open(&world->device, o->transport, o->tree->n);
    if (err == QN_OK) {
        err = qn_edges_net_open(
            &world->net,
            &(struct qn_edges_opts){.transport = o->transport,
                                    .device = &world->device,
                                    .tree = o->ring == NULL ? o->tree : NULL,
                                    .ring = o->ring,
                                    .all = o->exchange,
                                    .cells = CELLS,
                                    .msg_max = QN_VIRTUAL_SIZE_MAX +
                                               QN_COLL_HEAD_BYTES});
    }
    return err == QN_OK ? open_members() : err;
}

static void release(void)
{
    for (uint32_t v = 0; world->member != NULL && v < world->o->tree->n; v++) {
        program[world->o->op].close(v);
    }
    qn_edges_net_close(&world->net);
    qn_edges_device_close(&world->device);
    free(world->member);
    free(world->began);
    free(world->ended);
    free(world->reached);
}

static void on_event(void *ctx, const struct qn_timed_event *e)
{
    (void)ctx;
    qn_trace_add(world->o->trace, e);
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void collect(struct qn_virtual_result *r)
{
    for (uint32_t i = world->total - world->o->count; i < world->total; i++) {
        if (world->reached[i] == world->o->tree->n) {
            r->took[r->count++] = world->ended[i] - world->began[i];
        }
    }
    r->incomplete = r->count < world->o->count;
    qsort(r->took, r->count, sizeof *r->took, by_size);
}

static bool opts_good(const struct qn_virtual_opts *o)
{
    return o->op < QN_VIRTUALS && qn_tree_check(o->tree) == QN_OK &&
           o->tree->n > 1 && (o->ring == NULL || o->op == QN_VIRTUAL_ACK) &&
           o->count >= 1 && o->gap_ns >= 1 && o->size >= QN_VIRTUAL_SIZE_MIN &&
           o->size <= QN_VIRTUAL_SIZE_MAX;
}

int qn_virtual_run(struct qn_virtual_result *r, const struct qn_virtual_opts *o)
{
    if (!opts_good(o)) {
        return QN_EINVAL;
    }
    int err = prepare(r, o);
    if (err == QN_OK) {
        const struct qn_timed_opts t = {
            .nodes = o->tree->n,
            .prices = o->prices,
            .main = node,
            .seed = o->seed,
            .jitter = o->jitter,
            .fault = o->fault,
            .faults = o->faults,
            .until_ns = (world->total + 10) * o->gap_ns,
            .event = o->trace != NULL ? on_event : NULL,
        };
        err = qn_timed_run(&t, &r->run);
    }
    if (err == QN_OK) {
        collect(r);
    } else {
        qn_virtual_result_free(r);
    }
    release();
    return err;
}

void qn_virtual_result_free(struct qn_virtual_result *r)
{
    free(r->took);
    qn_timed_result_free(&r->run);
    *r = (struct qn_virtual_result){0};
}
