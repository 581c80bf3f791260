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
 * that all of them progress.
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
#include "loadgen/cli/quoin.h"
#include "transports/registry.h"

#define TURNS_MAX    1000u
#define FORMS_MAX    8u
#define LEVEL_SPREAD 1.3 /* probes within this factor are on one level */

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
    /* the machine */
    const struct qn_transport *transport;
    struct qn_places places;
    uint32_t core[QN_NODES_MAX];
    /* results; memory shared with the children */
    struct results *results;
};

struct results {
    /* ns per operation; [t][0] is unused, since form 0 is the probe. */
    double ns[TURNS_MAX][FORMS_MAX];
    /* [t][f], [t][f + 1]: ns of the probes around form f. */
    double probe[TURNS_MAX][FORMS_MAX + 1];
    uint32_t turns;
    uint64_t
        trips[QN_NODES_MAX]; /* blocking form: by the first node of the pair */
    double seconds[QN_NODES_MAX];
    uint64_t checksum;
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
    struct results *r = b->results;
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
    qn_channel_init(&c, end, (uint32_t)b->cells);
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
    struct qn_qp *qp = end->qp[end->self ^ 1][QN_LANE_DIRECT];
    return end->self % 2 == 0 ? send_requests(arg, qp, end->self) : answer(qp);
}

/* ---- report ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The q-quantile of v [n]; sorts v. n > 0. */
static double quantile(double *v, uint32_t n, double q)
{
    qsort(v, n, sizeof v[0], by_value);
    return v[(uint32_t)(q * (n - 1) + 0.5)];
}

static uint32_t index_of(const char *name)
{
    uint32_t i = 0;
    while (strcmp(qn_channel_form(i)->name, name) != 0) {
        i++;
    }
    return i;
}

/* Are the probes around forms `a` and `b` of a turn on one level? */
static bool on_one_level(const double *probe, uint32_t a, uint32_t b)
{
    double low = probe[a];
    double high = probe[a];
    for (uint32_t i = QN_MIN(a, b); i <= QN_MAX(a, b) + 1; i++) {
        low = QN_MIN(low, probe[i]);
        high = QN_MAX(high, probe[i]);
    }
    return high <= low * LEVEL_SPREAD;
}

/* A form relative to another one, by payload: above 1 is better for streams
 * (throughput) and worse for round trips (time). */
static double ratio(const struct qn_channel_form *f,
                    const struct qn_channel_form *raw, double ns, double raw_ns)
{
    double per_byte = ns / f->bytes;
    double raw_per_byte = raw_ns / raw->bytes;
    return f->round_trip ? per_byte / raw_per_byte : raw_per_byte / per_byte;
}

static json_t *spread(double *v, uint32_t n)
{
    return json_pack("{s:f,s:f,s:f}", "median", quantile(v, n, 0.5), "p10",
                     quantile(v, n, 0.1), "p90", quantile(v, n, 0.9));
}

static void report_ratio(const struct bench *b, uint32_t i, json_t *to)
{
    const struct qn_channel_form *f = qn_channel_form(i);
    uint32_t raw = index_of(f->ratio_to);
    const struct results *r = b->results;
    double v[TURNS_MAX];
    uint32_t n = 0; /* turns that count */
    for (uint32_t t = 0; t < r->turns; t++) {
        if (on_one_level(r->probe[t], raw, i)) {
            v[n++] = ratio(f, qn_channel_form(raw), r->ns[t][i], r->ns[t][raw]);
        }
    }
    json_object_set_new(to, "ratio_to", json_string(f->ratio_to));
    json_object_set_new(to, "ratio_turns", json_integer(n));
    if (n == 0) {
        fprintf(stderr, "   (no turn with probes on one level)");
        return;
    }
    json_object_set_new(to, "ratio", spread(v, n));
    fprintf(stderr, "   %5.2f of %s (%u turns)", quantile(v, n, 0.5),
            f->ratio_to, n);
}

static json_t *report_form(const struct bench *b, uint32_t i)
{
    const struct qn_channel_form *f = qn_channel_form(i);
    const struct results *r = b->results;
    double ns[TURNS_MAX];
    double probes[2 * TURNS_MAX];
    uint32_t n = r->turns;
    for (uint32_t t = 0; t < n; t++) {
        ns[t] = r->ns[t][i];
        probes[2 * t] = r->probe[t][i];
        probes[2 * t + 1] = r->probe[t][i + 1];
    }
    double median = quantile(ns, n, 0.5);
    fprintf(stderr, "  %-16s %9.1f ns %9.2f M/s %8.2f GB/s   probes %.0f-%.0f",
            f->name, median, 1e3 / median, f->bytes / median,
            quantile(probes, 2 * n, 0.1), quantile(probes, 2 * n, 0.9));
    json_t *o = json_pack("{s:s,s:s,s:i,s:o,s:o}", "form", f->name, "what",
                          f->text, "bytes", (int)f->bytes, "ns", spread(ns, n),
                          "probe_ns", spread(probes, 2 * n));
    if (f->ratio_to != NULL) {
        report_ratio(b, i, o);
    }
    fputc('\n', stderr);
    return o;
}

static json_t *report_pairs(const struct bench *b, uint32_t nodes,
                            const char *kind)
{
    double each[QN_NODES_MAX];
    double sum = 0;
    uint32_t pairs = nodes / 2;
    for (uint32_t i = 0; i < pairs; i++) {
        double s = b->results->seconds[2 * i];
        each[i] = s > 0 ? (double)b->results->trips[2 * i] / s : 0;
        sum += each[i];
    }
    double low = quantile(each, pairs, 0);
    double high = quantile(each, pairs, 1);
    fprintf(stderr,
            "  %2u %-9s %9.0f round trips/s, slowest pair %.0f, fastest %.0f\n",
            nodes, kind, sum, low, high);
    return json_pack("{s:i,s:s,s:f,s:f,s:f}", "endpoints", (int)nodes, "kind",
                     kind, "round_trips_per_s", sum, "slowest_pair", low,
                     "fastest_pair", high);
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
        json_t *o = report_form(b, i);
        json_object_set_new(o, "kind", json_string(kind));
        json_array_append_new(to, o);
    }
    return QN_OK;
}

static int run_blocking(struct bench *b, bool processes, json_t *to)
{
    const char *kind = processes ? "processes" : "threads";
    for (uint32_t n = 2; n <= b->endpoints; n *= 2) {
        int rc = run(b, n, processes, block_node);
        if (rc != QN_OK) {
            return rc;
        }
        json_array_append_new(to, report_pairs(b, n, kind));
    }
    return QN_OK;
}

#define AT(member) offsetof(struct bench, member)

static const struct qn_option table[] = {
    QN_OPTION("transport", "NAME", qn_option_string, AT(transport_name),
              "transport (ump)"),
    QN_OPTION_COUNT("cells", "N", AT(cells),
                    "cells of a lane, a power of two (1024)", 16, 65536),
    QN_OPTION_COUNT("turns", "N", AT(turns), "maximum of repetitions (1000)", 1,
                    TURNS_MAX),
    QN_OPTION("seconds", "S", qn_option_double, AT(seconds),
              "maximum of seconds for the repetitions, per kind (3)"),
    QN_OPTION_COUNT("endpoints", "N", AT(endpoints),
                    "maximum of nodes that send and sleep; 0: none (16)", 0,
                    QN_NODES_MAX),
    QN_OPTION("threads", NULL, qn_option_flag, AT(threads_only),
              "threads only"),
    QN_OPTION("processes", NULL, qn_option_flag, AT(processes_only),
              "processes only"),
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

static int prepare(struct bench *b)
{
    b->transport = qn_transport_find(b->transport_name);
    if (b->transport == NULL) {
        fprintf(stderr,
                "quoin bench channel: unknown transport '%s'; use ump\n",
                b->transport_name);
        return 2;
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
    if (b->results == MAP_FAILED) {
        fprintf(stderr, "quoin bench channel: not enough memory\n");
        return 1;
    }
    return 0;
}

int qn_bench_channel(int argc, char **argv)
{
    static struct bench b; /* too large for the stack */
    int status = 0;
    b = (struct bench){.transport_name = "ump",
                       .cells = QN_CELLS_DEFAULT,
                       .turns = TURNS_MAX,
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
    json_t *forms = json_array();
    json_t *pairs = json_array();
    int rc = QN_OK;
    for (int processes = 0; processes <= 1 && rc == QN_OK; processes++) {
        if (processes ? b.threads_only : b.processes_only) {
            continue;
        }
        rc = run_spin(&b, processes, forms);
        rc = rc != QN_OK ? rc : run_blocking(&b, processes, pairs);
    }
    json_t *all = json_pack(
        "{s:s,s:s,s:i,s:i,s:s,s:o,s:o}", "bench", "channel", "transport",
        b.transport->name, "cells", (int)b.cells, "cores", (int)b.places.count,
        "compiler", __VERSION__, "two_nodes", forms, "blocking", pairs);
    if (rc == QN_OK &&
        (all == NULL || json_dumpf(all, stdout, JSON_INDENT(2)))) {
        fprintf(stderr, "quoin bench channel: cannot write the result\n");
        rc = QN_EIO;
    }
    puts("");
    json_decref(all);
    munmap(b.results, sizeof *b.results);
    return rc == QN_OK ? 0 : 1;
}
