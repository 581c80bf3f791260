/*
 * What the nodes tell each other beside the simulated memory (when an operation
 * began, when a node had it) stands in arrays with a place per operation: code
 * between two accesses runs ahead of the others' time, so a single variable
 * would be overwritten too early.
 */
#include "loadgen/simulate/operations.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/group/group.h"
#include "loadgen/simulate/edges.h"

#define CELLS  128u /* of a lane, used in runs of 16 */
#define WARM   64u  /* two runs, used twice */
#define BUDGET 64u  /* messages of a turn */

struct member {
    struct qn_context *context;
    uint64_t got; /* number of the next message */
};

static struct {
    const struct qn_operation_opts *o;
    struct qn_operation_result *r;
    struct qn_edges_net net;
    struct member *member; /* [n] */
    uint32_t total;        /* operations, warm ones counted in */
    qn_ps_t *began;        /* [total] */
    qn_ps_t *ended;        /* [total] at the node that was last */
    uint32_t *reached;     /* [total] nodes for which it has ended */
} world;

const char *qn_operation_name(uint32_t op)
{
    static const char *const name[] = {"broadcast", "ack"};
    return op < QN_OPERATIONS ? name[op] : NULL;
}

/* An operation has ended for the running node. */
static void end(uint64_t number)
{
    world.ended[number] = QN_MAX(world.ended[number], qn_timed_clock());
    world.reached[number]++;
}

/* The next operation, at its time. */
static void begin(uint64_t number)
{
    qn_timed_sleep_until((number + 1) * world.o->gap_ns * QN_PS_PER_NS);
    world.began[number] = qn_timed_clock();
    if (world.o->trace != NULL && number + 1 == world.total) {
        qn_trace_begin(world.o->trace, world.began[number]);
    }
}

/* ---- broadcasts ---- */

static void deliver(void *ctx, const void *msg, size_t len)
{
    struct member *m = ctx;
    uint64_t number = UINT64_MAX;
    const uint8_t *byte = msg;
    memcpy(&number, msg, QN_MIN(len, sizeof number));
    if (len != world.o->size || number != m->got ||
        (len > sizeof number && byte[len - 1] != (uint8_t)number)) {
        world.r->wrong++;
        return;
    }
    end(number);
    m->got++;
}

static void turn(struct member *m)
{
    uint32_t found = qn_context_poll(m->context, BUDGET);
    (void)qn_context_flush(m->context);
    if (found == 0) {
        qn_pause();
    }
}

static void send(struct member *m, uint64_t number)
{
    uint8_t message[QN_OPERATION_SIZE_MAX] = {0};
    const struct qn_slice part = {message, world.o->size};
    uint64_t given;
    message[world.o->size - 1] = (uint8_t)number;
    memcpy(message, &number, sizeof number);
    int rc = world.o->op == QN_OPERATION_ACK
                 ? qn_context_bcast_acked(m->context, &part, 1, &given)
                 : qn_context_bcast(m->context, &part, 1, NULL);
    world.r->wrong += rc != QN_OK;
    while (qn_context_flush(m->context)) {
        qn_pause(); /* a long message, as the children make room */
    }
}

static void root(struct member *m)
{
    for (uint64_t i = 0; i < world.total; i++) {
        begin(i);
        send(m, i);
        while (world.o->op == QN_OPERATION_ACK &&
               qn_context_acked(m->context) <= i) {
            turn(m);
        }
        end(i);
    }
}

static bool has_all(const struct member *m)
{
    return m->got == world.total &&
           (world.o->op != QN_OPERATION_ACK ||
            qn_context_acked(m->context) == world.total);
}

static void node(void *ctx, uint32_t i)
{
    struct member *m = &world.member[i];
    (void)ctx;
    if (i == world.o->tree->root) {
        root(m);
        return;
    }
    while (!has_all(m)) {
        turn(m);
    }
    (void)qn_context_flush(m->context); /* the last acknowledgement */
}

/* ---- a run ---- */

static int open_members(void)
{
    for (uint32_t v = 0; v < world.o->tree->n; v++) {
        const struct qn_context_opts c = {
            .self = v,
            .members = world.o->tree->n,
            .msg_max = QN_OPERATION_SIZE_MAX + QN_ACKED_EXTRA,
            .tree = world.o->tree,
            .qp = world.net.qp[v],
            .deliver = deliver,
            .ctx = &world.member[v],
            .acked = world.o->op == QN_OPERATION_ACK};
        int err = qn_context_create(&world.member[v].context, &c);
        if (err != QN_OK) {
            return err;
        }
    }
    return QN_OK;
}

static int prepare(struct qn_operation_result *r,
                   const struct qn_operation_opts *o)
{
    memset(&world, 0, sizeof world);
    *r = (struct qn_operation_result){0};
    world.o = o;
    world.r = r;
    world.total = (o->warm == 0 ? WARM : o->warm) + o->count;
    world.member = calloc(o->tree->n, sizeof *world.member);
    world.began = calloc(world.total, sizeof *world.began);
    world.ended = calloc(world.total, sizeof *world.ended);
    world.reached = calloc(world.total, sizeof *world.reached);
    r->took = calloc(o->count, sizeof *r->took);
    if (world.member == NULL || world.began == NULL || world.ended == NULL ||
        world.reached == NULL || r->took == NULL) {
        return QN_ENOMEM;
    }
    int err = qn_edges_net_open(&world.net, o->transport, o->tree, CELLS,
                                QN_OPERATION_SIZE_MAX + QN_ACKED_EXTRA);
    return err == QN_OK ? open_members() : err;
}

static void release(void)
{
    for (uint32_t v = 0; world.member != NULL && v < world.o->tree->n; v++) {
        qn_context_destroy(world.member[v].context);
    }
    qn_edges_net_close(&world.net);
    free(world.member);
    free(world.began);
    free(world.ended);
    free(world.reached);
}

static void on_event(void *ctx, const struct qn_timed_event *e)
{
    (void)ctx;
    qn_trace_add(world.o->trace, e);
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void collect(struct qn_operation_result *r)
{
    for (uint32_t i = world.total - world.o->count; i < world.total; i++) {
        if (world.reached[i] == world.o->tree->n) {
            r->took[r->count++] = world.ended[i] - world.began[i];
        }
    }
    r->incomplete = r->count < world.o->count;
    qsort(r->took, r->count, sizeof *r->took, by_size);
}

static bool opts_good(const struct qn_operation_opts *o)
{
    return o->op < QN_OPERATIONS && qn_tree_check(o->tree) == QN_OK &&
           o->tree->n > 1 && o->count >= 1 && o->gap_ns >= 1 &&
           o->size >= QN_OPERATION_SIZE_MIN && o->size <= QN_OPERATION_SIZE_MAX;
}

int qn_operation_run(struct qn_operation_result *r,
                     const struct qn_operation_opts *o)
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
            .until_ns = (world.total + 10) * o->gap_ns,
            .event = o->trace != NULL ? on_event : NULL,
        };
        err = qn_timed_run(&t, &r->run);
    }
    if (err == QN_OK) {
        collect(r);
    } else {
        qn_operation_result_free(r);
    }
    release();
    return err;
}

void qn_operation_result_free(struct qn_operation_result *r)
{
    free(r->took);
    qn_timed_result_free(&r->run);
    *r = (struct qn_operation_result){0};
}
