/*
 * quoin bench channel: the cost of a queuepair beside plain shared memory.
 *
 * Absolute results drift: a hypervisor moves virtual CPUs, and the same
 * ping-pong then takes five times as long for a while. So a turn runs every
 * form once, raw forms and queuepair forms interleaved, with a probe (the raw
 * round trip) before the first form and after each one. A form is compared with
 * its raw form of the same turn, and a turn counts for that ratio only if all
 * probes around the two are on one level. Medians are over the turns that
 * count; their number is printed.
 *
 * The spinning forms need one core per side. The blocking form (pairs of nodes
 * that send and sleep) runs with 2 to 16 nodes on any number of cores; it shows
 * that all of them progress, and what a message costs in CPU time.
 *
 * --transport all runs one transport after the other, and ends with a table of
 * all. Each has raw forms of its own in the same turns, so that its ratios are
 * comparable although the machine drifts from one transport to the next.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/bits.h"
#include "core/place/place.h"
#include "loadgen/base/options.h"
#include "loadgen/bench/channel.h"
#include "loadgen/bench/channel_report.h"
#include "loadgen/bench/channel_table.h"
#include "loadgen/cli/quoin.h"
#include "transports/registry.h"

struct bench {
    /* options */
    const char *transport_name;
    uint64_t cells;
    uint64_t turns;     /* maximum */
    double seconds;     /* maximum, for the turns of one kind of node */
    uint64_t endpoints; /* maximum of nodes of the blocking form */
    bool quick;
    bool processes_only;
    bool threads_only;
    bool writable; /* threads read lanes through writable pages */
    /* the machine */
    const struct qn_transport *transport;
    struct qn_places places;
    uint32_t core[QN_NODES_MAX];
    /* results; memory shared with the children */
    struct qn_channel_results *results;
    struct qn_raw_memory raw; /* likewise */
};

static uint64_t lines_of(const struct bench *b, const struct qn_channel_form *f)
{
    /* Half a millisecond each, so that a turn fits between two preemptions. */
    uint64_t lines = f->round_trip ? 4000 : 200000;
    return b->quick ? lines / 10 : lines;
}

/* Run a form once on both sides. Only the side that measures fills *ns. */
static int timed(struct qn_channel *c, const struct qn_channel_form *f,
                 uint64_t lines, double *ns)
{
    uint64_t count = lines / f->cells;
    uint8_t heard;
    int rc = qn_channel_meet(c, 0, &heard);
    if (rc != QN_OK) {
        return rc;
    }
    qn_time_t start = qn_clock_now();
    rc = f->run(c, count);
    qn_time_t end = qn_clock_now();
    if (c->end->self == (f->round_trip ? 0u : 1u)) {
        *ns = (double)(end - start) / (double)count;
    }
    return rc;
}

static int one_turn(struct bench *b, struct qn_channel *c, uint32_t turn)
{
    struct qn_channel_results *r = b->results;
    const struct qn_channel_form *probe = qn_channel_form(0);
    const struct qn_channel_form *f;
    uint64_t probe_lines = lines_of(b, probe) / 2;
    int rc = timed(c, probe, probe_lines, &r->probe[turn][0]);
    for (uint32_t i = 0; rc == QN_OK && (f = qn_channel_form(i)) != NULL; i++) {
        rc = timed(c, f, lines_of(b, f), &r->ns[turn][i]);
        if (rc == QN_OK) {
            rc = timed(c, probe, probe_lines, &r->probe[turn][i + 1]);
        }
    }
    return rc;
}

static int spin_node(struct qn_mesh_end *end, void *arg)
{
    struct bench *b = arg;
    struct qn_channel c;
    qn_channel_init(&c, end, (uint32_t)b->cells, &b->raw);
    int rc = one_turn(b, &c, 0); /* warm-up; its results are overwritten */
    qn_time_t stop = qn_clock_now() + (qn_time_t)(b->seconds * 1e9);
    uint32_t turn = 0;
    uint8_t over[2] = {0, 0}; /* sent by node 0, received by node 1 */
    while (rc == QN_OK && !over[end->self]) {
        rc = one_turn(b, &c, turn++);
        over[0] = turn == b->turns || qn_clock_now() > stop;
        if (rc == QN_OK) {
            rc = qn_channel_meet(&c, over[0], &over[1]);
        }
    }
    if (end->self == 1) {
        b->results->checksum = c.checksum;
        b->results->turns = turn;
    }
    return rc;
}

/* ---- blocking pairs ---- */

static int send_requests(struct bench *b, struct qn_qp *qp, qn_node_t self)
{
    uint8_t payload[56] = {0};
    size_t len;
    uint64_t trips = 0;
    qn_time_t start = qn_clock_now();
    qn_time_t end = start + (b->quick ? 10 : 200) * QN_MS;
    qn_time_t now = start;
    int rc = QN_OK;
    while (rc == QN_OK && now < end) {
        rc = qn_qp_send(qp, payload, sizeof payload, QN_TIME_NEVER);
        if (rc == QN_OK) {
            rc = qn_qp_recv(qp, payload, sizeof payload, &len, QN_TIME_NEVER);
        }
        trips++;
        now = qn_clock_now();
    }
    b->results->trips[self] = trips;
    b->results->seconds[self] = (double)(now - start) / (double)QN_S;
    return rc != QN_OK ? rc : qn_qp_send(qp, NULL, 0, QN_TIME_NEVER);
}

static int answer(struct qn_qp *qp)
{
    uint8_t payload[56];
    size_t len = 1;
    int rc = QN_OK;
    while (rc == QN_OK && len > 0) {
        rc = qn_qp_recv(qp, payload, sizeof payload, &len, QN_TIME_NEVER);
        if (rc == QN_OK && len > 0) {
            rc = qn_qp_send(qp, payload, len, QN_TIME_NEVER);
        }
    }
    return rc;
}

static int block_node(struct qn_mesh_end *end, void *arg)
{
    struct bench *b = arg;
    struct qn_qp *qp = end->qp[end->self ^ 1][QN_LANE_DIRECT];
    qn_time_t before = qn_clock_cpu();
    int rc = end->self % 2 == 0 ? send_requests(b, qp, end->self) : answer(qp);
    b->results->cpu_ns[end->self] = qn_clock_cpu() - before;
    return rc;
}

/* ---- the command ---- */

/* @return QN_OK; QN_EIO if a node failed, after an error line. */
static int run(struct bench *b, uint32_t nodes, bool processes, qn_mesh_fn *fn)
{
    struct qn_mesh m;
    const struct qn_mesh_opts o = {.transport = b->transport,
                                   .nodes = nodes,
                                   .cells = (uint32_t)b->cells,
                                   .processes = processes,
                                   .read_only = !b->writable,
                                   .core = b->core};
    memset(b->results, 0, sizeof *b->results);
    int rc = qn_mesh_create(&m, &o);
    if (rc != QN_OK) {
        fprintf(stderr, "quoin bench channel: %u nodes: %s\n", nodes,
                qn_strerror(rc));
        return rc;
    }
    uint32_t failed = qn_mesh_run(&m, fn, b);
    qn_mesh_destroy(&m);
    if (failed > 0) {
        fprintf(stderr, "quoin bench channel: %u of %u nodes failed\n", failed,
                nodes);
        return QN_EIO;
    }
    return QN_OK;
}

static int run_spin(struct bench *b, bool processes, json_t *to)
{
    const char *kind = processes ? "processes" : "threads";
    if (b->places.count < 2) {
        fprintf(stderr,
                "%s: only one core, so the spinning forms are skipped\n", kind);
        return QN_OK;
    }
    int rc = run(b, 2, processes, spin_node);
    if (rc != QN_OK) {
        return rc;
    }
    fprintf(stderr, "%s, 2 nodes, %u cells, medians of %u turns\n", kind,
            (unsigned)b->cells, b->results->turns);
    for (uint32_t i = 0; qn_channel_form(i) != NULL; i++) {
        json_t *o = qn_channel_report_form(b->results, i);
        json_object_set_new(o, "kind", json_string(kind));
        json_array_append_new(to, o);
    }
    return QN_OK;
}

/* Shared bytes of a group of `nodes`. */
static size_t bytes_of(const struct bench *b, uint32_t nodes)
{
    const struct qn_device_opts o = {.nodes = nodes, .lanes = QN_LANES};
    const struct qn_transport_bytes need =
        qn_transport_needs(b->transport, (uint32_t)b->cells, &o);
    return need.device + need.lane * nodes * (nodes - 1) * QN_LANES;
}

/* A device may be too small for them. */
static bool serves(const struct bench *b, uint32_t nodes)
{
    return bytes_of(b, nodes) > 0;
}

static int run_blocking(struct bench *b, bool processes, json_t *to)
{
    const char *kind = processes ? "processes" : "threads";
    for (uint32_t n = 2; n <= b->endpoints && serves(b, n); n *= 2) {
        int rc = run(b, n, processes, block_node);
        if (rc != QN_OK) {
            return rc;
        }
        json_array_append_new(to, qn_channel_report_pairs(b->results, n, kind));
    }
    return QN_OK;
}

#define AT(member) offsetof(struct bench, member)

static const struct qn_option table[] = {
    QN_OPTION("transport", "NAME", qn_option_string, AT(transport_name),
              "transport, or all of them and a table (ump)"),
    QN_OPTION_COUNT("cells", "N", AT(cells),
                    "cells of a lane, a power of two (1024)", 16, 65536),
    QN_OPTION_COUNT("turns", "N", AT(turns), "maximum of repetitions (1000)", 1,
                    QN_CHANNEL_TURNS_MAX),
    QN_OPTION("seconds", "S", qn_option_double, AT(seconds),
              "maximum of seconds for the repetitions, per kind (3)"),
    QN_OPTION_COUNT("endpoints", "N", AT(endpoints),
                    "maximum of nodes that send and sleep; 0: none (16)", 0,
                    QN_NODES_MAX),
    QN_OPTION("threads", NULL, qn_option_flag, AT(threads_only),
              "threads only"),
    QN_OPTION("processes", NULL, qn_option_flag, AT(processes_only),
              "processes only"),
    QN_OPTION("writable", NULL, qn_option_flag, AT(writable),
              "threads read lanes through writable pages: for comparison"),
    QN_OPTION("quick", NULL, qn_option_flag, AT(quick),
              "small counts, to test that the benchmark works"),
};

static bool parse_options(struct bench *b, int argc, char **argv, int *status)
{
    const struct qn_options o = {
        "quoin bench channel",
        "Measure a queuepair beside the plain shared memory it uses. JSON goes "
        "to\nstdout, a table to stderr.",
        table, QN_ARRAY_COUNT(table), b};
    return qn_options_parse(&o, argc, argv, status);
}

static bool all_transports(const struct bench *b)
{
    return strcmp(b->transport_name, "all") == 0;
}

static int complain_transport(const char *name)
{
    fprintf(stderr, "quoin bench channel: unknown transport '%s'; use all",
            name);
    for (uint32_t i = 0; qn_transport_at(i) != NULL; i++) {
        fprintf(stderr, ", %s", qn_transport_at(i)->name);
    }
    fputc('\n', stderr);
    return 2;
}

static int prepare(struct bench *b)
{
    b->transport = qn_transport_find(b->transport_name);
    if (b->transport == NULL && !all_transports(b)) {
        return complain_transport(b->transport_name);
    }
    if (!qn_is_pow2(b->cells)) {
        fprintf(stderr, "quoin bench channel: --cells must be a power of two, "
                        "for example 1024\n");
        return 2;
    }
    int rc = qn_places_discover(&b->places);
    if (rc != QN_OK) {
        fprintf(stderr, "quoin bench channel: cannot list the cores: %s\n",
                qn_strerror(rc));
        return 1;
    }
    for (uint32_t i = 0; i < QN_NODES_MAX; i++) {
        b->core[i] = (uint32_t)qn_places_of(&b->places, i, QN_BIND_CORE).cpu;
    }
    b->results = mmap(NULL, sizeof *b->results, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b->results == MAP_FAILED ||
        qn_raw_memory_create(&b->raw, (uint32_t)b->cells) != QN_OK) {
        fprintf(stderr, "quoin bench channel: not enough memory\n");
        return 1;
    }
    return 0;
}

/* All forms over b->transport. @return its results; NULL after an error line.
 */
static json_t *measure(struct bench *b)
{
    json_t *forms = json_array();
    json_t *pairs = json_array();
    bool joins = b->transport->memory != QN_TRANSPORT_BOTH_WRITE;
    int rc = QN_OK;
    for (int processes = 0; processes <= joins && rc == QN_OK; processes++) {
        if (processes ? b->threads_only : b->processes_only) {
            continue;
        }
        rc = run_spin(b, processes, forms);
        rc = rc != QN_OK ? rc : run_blocking(b, processes, pairs);
    }
    json_t *all = json_pack(
        "{s:s,s:s,s:i,s:i,s:i,s:s,s:o,s:o}", "bench", "channel", "transport",
        b->transport->name, "cells", (int)b->cells, "cores",
        (int)b->places.count, "bytes_of_two_nodes", (int)bytes_of(b, 2),
        "compiler", __VERSION__, "two_nodes", forms, "blocking", pairs);
    if (rc != QN_OK) {
        json_decref(all);
        return NULL;
    }
    return all;
}

static json_t *measure_all(struct bench *b)
{
    json_t *each = json_array();
    for (uint32_t i = 0; (b->transport = qn_transport_at(i)) != NULL; i++) {
        fprintf(stderr, "%s\n", b->transport->name);
        json_t *one = measure(b);
        if (one == NULL) {
            json_decref(each);
            return NULL;
        }
        json_array_append_new(each, one);
    }
    qn_channel_table(each, stderr);
    return json_pack("{s:s,s:o}", "bench", "channel", "transports", each);
}

int qn_bench_channel(int argc, char **argv)
{
    static struct bench b; /* too large for the stack */
    int status = 0;
    b = (struct bench){.transport_name = "ump",
                       .cells = QN_CELLS_DEFAULT,
                       .turns = QN_CHANNEL_TURNS_MAX,
                       .seconds = 3,
                       .endpoints = 16};
    if (!parse_options(&b, argc, argv, &status)) {
        return status;
    }
    if (b.quick) {
        b.turns = QN_MIN(b.turns, 3u);
    }
    status = prepare(&b);
    if (status != 0) {
        return status;
    }
    json_t *all = all_transports(&b) ? measure_all(&b) : measure(&b);
    bool written = all != NULL && json_dumpf(all, stdout, JSON_INDENT(2)) == 0;
    if (all != NULL && !written) {
        fprintf(stderr, "quoin bench channel: cannot write the result\n");
    }
    puts("");
    json_decref(all);
    qn_raw_memory_destroy(&b.raw);
    munmap(b.results, sizeof *b.results);
    return written ? 0 : 1;
}
