/*
 * quoin bench calls: what the library's calls cost by themselves, in cycles.
 *
 * Both ends of a queuepair belong to one thread, so each line is in its cache:
 * what is left is the software. The simulated machine takes its prices of
 * library calls from here (`quoin sim --software`; docs/simulator.md): it
 * prices accesses itself, so those are taken off at HIT_CYCLES each.
 *
 * A batch is short enough to lie between two ticks; the least of many batches
 * is reported, since other load only adds.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/cycles.h"
#include "core/base/err.h"
#include "core/group/group.h"
#include "loadgen/base/options.h"
#include "loadgen/cli/quoin.h"
#include "transports/registry.h"

#define CELLS      1024u
#define BATCH      2000u
#define HIT_CYCLES 4.0

struct bench {
    uint64_t batches;
    void *lane[2];
    struct qn_qp *qp[2];
    struct qn_qp *peer[2][2]; /* as a context wants them */
    struct qn_context *context[2];
    uint64_t delivered;
};

static void send_receive(struct bench *b)
{
    uint64_t word = 7;
    size_t len;
    (void)qn_qp_try_send(b->qp[0], &word, sizeof word);
    (void)qn_qp_try_recv(b->qp[1], &word, sizeof word, &len);
}

static void send_receive_flush(struct bench *b)
{
    send_receive(b);
    (void)qn_qp_flush(b->qp[0]);
    (void)qn_qp_flush(b->qp[1]);
}

static void look(struct bench *b)
{
    uint64_t word;
    size_t len;
    (void)qn_qp_try_recv(b->qp[1], &word, sizeof word, &len);
}

static void broadcast(struct bench *b)
{
    const uint8_t message[8] = {7};
    const struct qn_slice part = {message, sizeof message};
    (void)qn_context_bcast(b->context[0], &part, 1, NULL);
    (void)qn_context_flush(b->context[0]);
    (void)qn_context_poll(b->context[1], 64);
    (void)qn_context_flush(b->context[1]);
}

static void empty_turn(struct bench *b)
{
    (void)qn_context_poll(b->context[1], 64);
    (void)qn_context_flush(b->context[1]);
}

static const struct call {
    const char *name;
    void (*run)(struct bench *b);
    uint32_t accesses; /* that the simulated machine prices */
} call[] = {
    {"send and receive", send_receive, 5},
    {"the same, both ends flushed", send_receive_flush, 5},
    {"look that finds nothing", look, 1},
    {"broadcast to one, delivered, both flushed", broadcast, 5},
    {"turn that finds nothing", empty_turn, 1},
};

/* Cycles per call, the least of all batches. */
static double measure(struct bench *b, const struct call *c)
{
    uint64_t least = UINT64_MAX;
    for (uint64_t i = 0; i < b->batches; i++) {
        uint64_t start = qn_cycles();
        for (uint32_t k = 0; k < BATCH; k++) {
            c->run(b);
        }
        least = QN_MIN(least, qn_cycles() - start);
    }
    return (double)least / BATCH;
}

static void deliver(void *ctx, const void *msg, size_t len)
{
    struct bench *b = ctx;
    (void)msg;
    b->delivered += len;
}

static int open_end(struct bench *b, uint32_t self)
{
    const struct qn_transport *t = qn_transport_at(0);
    const struct qn_qp_opts o = {.tx = b->lane[self],
                                 .rx = b->lane[1 - self],
                                 .cells = CELLS,
                                 .self = self,
                                 .peer = 1 - self,
                                 .self_inc = 1,
                                 .peer_inc = 1};
    int err = t->open(&b->qp[self], &o);
    b->peer[self][1 - self] = b->qp[self];
    return err;
}

static int open_context(struct bench *b, uint32_t self,
                        const struct qn_tree *tree)
{
    const struct qn_context_opts o = {.self = self,
                                      .members = 2,
                                      .tree = tree,
                                      .qp = b->peer[self],
                                      .deliver = deliver,
                                      .ctx = b};
    return qn_context_create(&b->context[self], &o);
}

static int prepare(struct bench *b)
{
    static const qn_node_t order[2] = {0, 1};
    struct qn_tree tree;
    size_t bytes = qn_transport_at(0)->lane_bytes(CELLS);
    bytes = (bytes + QN_CACHELINE - 1) / QN_CACHELINE * QN_CACHELINE;
    int err = qn_tree_build(&tree, "sequential", order, 2);
    for (uint32_t i = 0; i < 2 && err == QN_OK; i++) {
        b->lane[i] = aligned_alloc(QN_CACHELINE, bytes);
        err = b->lane[i] != NULL ? QN_OK : QN_ENOMEM;
        if (err == QN_OK) {
            memset(b->lane[i], 0, bytes);
        }
    }
    for (uint32_t i = 0; i < 2 && err == QN_OK; i++) {
        err = open_end(b, i);
    }
    for (uint32_t i = 0; i < 2 && err == QN_OK; i++) {
        err = open_context(b, i, &tree);
    }
    return err;
}

static void release(struct bench *b)
{
    for (uint32_t i = 0; i < 2; i++) {
        qn_context_destroy(b->context[i]);
        qn_qp_close(b->qp[i]);
        free(b->lane[i]);
    }
}

static int report(struct bench *b)
{
    json_t *rows = json_array();
    fprintf(stderr, "%-44s %8s %8s\n", "call", "cycles", "software");
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(call); i++) {
        double cycles = measure(b, &call[i]);
        double software = cycles - HIT_CYCLES * call[i].accesses;
        fprintf(stderr, "%-44s %8.1f %8.1f\n", call[i].name, cycles, software);
        json_array_append_new(rows, json_pack("{s:s, s:f, s:f}", "call",
                                              call[i].name, "cycles", cycles,
                                              "software_cycles", software));
    }
    json_t *all = json_pack("{s:s, s:I, s:o}", "bench", "calls", "batches",
                            (json_int_t)b->batches, "calls", rows);
    bool bad = all == NULL || json_dumpf(all, stdout, JSON_INDENT(2)) != 0 ||
               fputc('\n', stdout) == EOF || fflush(stdout) != 0;
    json_decref(all);
    return bad ? 1 : 0;
}

int qn_bench_calls(int argc, char **argv)
{
    static const struct qn_option table[] = {
        QN_OPTION_COUNT("batches", "N", offsetof(struct bench, batches),
                        "batches of 2000 calls; the least counts (2000)", 1,
                        10000000),
    };
    struct bench b = {.batches = 2000};
    const struct qn_options o = {
        "quoin bench calls",
        "Measure what calls of the library cost when all lines are in the "
        "caller's cache.\nJSON goes to stdout, a table to stderr.",
        table, QN_ARRAY_COUNT(table), &b};
    int status;
    if (!qn_options_parse(&o, argc, argv, &status)) {
        return status;
    }
    int err = prepare(&b);
    if (err != QN_OK) {
        fprintf(stderr, "quoin bench calls: %s\n", qn_strerror(err));
    }
    status = err == QN_OK ? report(&b) : 1;
    release(&b);
    return status;
}
