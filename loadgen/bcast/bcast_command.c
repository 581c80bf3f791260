/*
 * quoin bench broadcast|ack|reduce|allreduce|barrier|commit: measures trees and
 * compares them with the model; barriers with pthread_barrier, too, in the same
 * turns.
 *
 * All topologies share the group, its core mapping and the machine they are
 * planned on. A hypervisor moves CPUs, and other load varies, so the time of
 * each topology is split over PASSES through all of them, and the results are
 * merged.
 *
 * Without --root, the planner and the adaptive generator would each choose a
 * root. Here all topologies have the same root, the one of the first of them;
 * otherwise the ranks would compare different things. A topology from a file
 * has its own root.
 */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/coll/coll.h"
#include "core/place/place.h"
#include "core/plan/search/objective.h"
#include "core/wait/spin.h"
#include "loadgen/base/options.h"
#include "loadgen/base/output_path.h"
#include "loadgen/bcast/bcast_internal.h"
#include "loadgen/cli/quoin.h"
#include "loadgen/machine/measure_progress.h"
#include "loadgen/topo/model/cores.h"
#include "transports/registry.h"

#define PASSES    3u
#define ROOT_FREE UINT64_MAX

static qn_a32 stopped;

static void on_interrupt(int signal)
{
    (void)signal;
    qn_store(&stopped, 1, QN_SEQ_CST);
}

static int fail(const struct qn_bcast *b, const char *line)
{
    fprintf(stderr, "%s: %s\n", b->kind->program, line);
    return 2;
}

/* ---- options ---- */

static int take_algos(const struct qn_option *o, const char *text)
{
    struct qn_bcast *b = o->to;
    return qn_topology_names_add(&b->algos, text);
}

static int take_format(const struct qn_option *o, const char *text)
{
    static const char *const formats[] = {"text", "json", "csv"};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(formats); i++) {
        if (strcmp(formats[i], text) == 0) {
            *(const char **)o->to = formats[i];
            return QN_OK;
        }
    }
    return QN_EINVAL;
}

#define AT(member) offsetof(struct qn_bcast, member)

static const struct qn_option table[] = {
    QN_OPTION_COUNT("nodes", "N", AT(nodes),
                    "nodes of the group (as many as the machine has cores)", 2,
                    QN_NODES_MAX),
    QN_OPTION("cores", "LIST", qn_option_string, AT(cores),
              "one node on each of these cores, by number: 0-7,16"),
    QN_OPTION("algo", "NAME,...", take_algos, 0,
              "topologies, as in quoin tree; rings for ack (all of them)"),
    QN_OPTION_COUNT("root", "N", AT(root),
                    "core at the root; with more nodes than cores: node", 0,
                    QN_CORE_NUMBER_MAX),
    QN_OPTION("machine", "WHAT", qn_option_string, AT(machine),
              "machine for plans and predictions: live (default; measured "
              "now), or a file or folder as in quoin tree"),
    QN_OPTION("seconds", "S", qn_option_double, AT(seconds),
              "per topology, half for latency, half for throughput (1)"),
    QN_OPTION_COUNT("size", "BYTES", AT(size), "bytes of a message (8)",
                    QN_OPERATION_SIZE_MIN, QN_OPERATION_SIZE_MAX),
    QN_OPTION_COUNT("window", "W", AT(window),
                    "outstanding operations of the throughput part (16)", 1,
                    QN_OPERATION_WINDOW_MAX),
    QN_OPTION_COUNT("sources", "N", AT(sources),
                    "nodes that submit, the first of the group; all deliver in "
                    "one order (the root alone)",
                    1, QN_NODES_MAX),
    QN_OPTION("format", "NAME", take_format, AT(format),
              "text (default), json or csv"),
    QN_OPTION("plot", "FILE.svg", qn_option_string, AT(plot),
              "draw measured and predicted latencies"),
};

/* Not every operation has all options. */
static bool applies(const struct qn_bcast_kind *k, const struct qn_option *o)
{
    return (o->at != AT(size) || k->size_max > 0) &&
           (o->at != AT(window) || k->window) &&
           (o->at != AT(sources) || k->op == QN_COLLECTIVE_ACK);
}

static bool parse_options(struct qn_bcast *b, int argc, char **argv,
                          int *status)
{
    struct qn_option chosen[QN_ARRAY_COUNT(table)];
    size_t count = 0;
    for (size_t i = 0; i < QN_ARRAY_COUNT(table); i++) {
        if (applies(b->kind, &table[i])) {
            chosen[count++] = table[i];
        }
    }
    const struct qn_options o = {b->kind->program, b->kind->summary, chosen,
                                 count, b};
    return qn_options_parse(&o, argc, argv, status);
}

/* ---- mapping of nodes to cores ---- */

static int choose_cores(struct qn_bcast *b, struct qn_machine **m)
{
    struct qn_parse_error parse_error = {""};
    uint32_t index[QN_CORES_MAX], count = 0;
    struct qn_machine *part = NULL;
    int err = qn_cores_parse(index, &count, *m, b->cores, &parse_error);
    if (err != QN_OK) {
        return fail(b, parse_error.text);
    }
    if (count < 2 || count > QN_NODES_MAX) {
        return fail(b, "--cores needs 2 to 64 cores");
    }
    err = qn_machine_restrict(&part, *m, index, count);
    if (err != QN_OK) {
        return fail(b, qn_strerror(err));
    }
    qn_machine_destroy(*m);
    *m = part;
    b->nodes = count;
    return 0;
}

static int assign_cores(struct qn_bcast *b)
{
    static struct qn_places places; /* too large for the stack */
    uint32_t usable[QN_PLACES_MAX];
    int err = qn_places_discover(&places);
    if (err != QN_OK) {
        fprintf(stderr, "%s: cannot list the cores: %s\n", b->kind->program,
                qn_strerror(err));
        return 1;
    }
    for (uint32_t i = 0; i < places.count; i++) {
        usable[i] = (uint32_t)places.place[i].cpu;
    }
    b->usable = places.count;
    qn_core_mapping_assign(&b->mapping, usable, places.count);
    const struct qn_spin_opts spin = {.nodes = b->mapping.nodes,
                                      .cores = b->mapping.cores,
                                      .quota_milli = places.quota_milli};
    b->shared = qn_doorbell_spin_budget(&spin) == 0;
    if (b->shared) {
        fprintf(stderr,
                "%s: %u nodes share %u cores%s: latencies show the scheduler, "
                "not the cost of messages\n",
                b->kind->program, b->mapping.nodes, b->mapping.cores,
                b->mapping.cores < b->mapping.nodes ? "" : " and a CPU quota");
    }
    return 0;
}

static int map_cores(struct qn_bcast *b)
{
    struct qn_machine *m = NULL;
    int status = qn_measure_progress_open(&m, b->machine, b->kind->program);
    if (status != 0) {
        return status;
    }
    status = b->cores != NULL ? choose_cores(b, &m) : 0;
    if (status == 0) {
        uint32_t all = QN_MIN(m->n, QN_NODES_MAX);
        uint32_t nodes = b->nodes > 0 ? (uint32_t)b->nodes : QN_MAX(all, 2u);
        int err = qn_core_mapping_make(&b->mapping, m, nodes);
        status = err == QN_OK ? assign_cores(b) : fail(b, qn_strerror(err));
        if (status == 0 && b->sources > nodes) {
            status = fail(b, "--sources: the group has fewer nodes");
        }
    }
    qn_machine_destroy(m);
    return status;
}

/* ---- topologies ---- */

/* The request that a leaf of a broadcast sends first is counted, too. Of
 * several sources there is no prediction. */
static void predict(const struct qn_bcast *b, struct qn_bcast_row *r, double q)
{
    const struct qn_machine *m = b->mapping.m;
    const struct qn_shape *s = &r->plan.down;
    const enum qn_collective op = b->kind->op;
    r->cycles = r->occupancy = (double)NAN;
    if (!b->mapping.costs_known || b->sources > 0) {
        return;
    }
    if (r->plan.ring != NULL) {
        r->cycles = qn_topology_spec_cost(&r->plan, m, QN_GOAL_ACK, q);
        r->occupancy = qn_diamond_ring_occupancy(m, r->plan.ring);
        return;
    }
    r->cycles = op == QN_COLLECTIVE_BROADCAST
                    ? qn_predict_published(m, s, op, q)
                    : qn_predict(m, s, op, q);
    r->occupancy = qn_plan_occupancy(m, s, s, (enum qn_goal)op);
}

/* The nodes of the topology: core i of the machine is node i. */
static int place(const struct qn_bcast *b, struct qn_bcast_row *r)
{
    qn_node_t node[QN_NODES_MAX];
    for (uint32_t i = 0; i < b->mapping.m->n; i++) {
        node[i] = (qn_node_t)i;
    }
    return r->plan.ring != NULL
               ? qn_operation_ring_members(&r->tree, r->plan.ring)
               : qn_tree_place(&r->tree, &r->plan.down, node);
}

static bool runs(const struct qn_bcast *b, const char *name)
{
    return b->kind->op == QN_COLLECTIVE_ACK || strncmp(name, "ring", 4) != 0;
}

static int add(struct qn_bcast *b, const char *name,
               struct qn_topology_spec_opts *o)
{
    struct qn_parse_error parse_error = {""};
    const struct qn_machine *m = b->mapping.m;
    if (!runs(b, name)) {
        return fail(b, "rings carry acknowledged broadcasts only (quoin bench "
                       "ack); name trees");
    }
    if (b->count == QN_BCAST_MAX) {
        return fail(b, "too many topologies in --algo; give at most 64");
    }
    struct qn_bcast_row *r = &b->row[b->count];
    int err = qn_topology_spec_make(&r->plan, m, name, o, &parse_error);
    if (err != QN_OK) {
        return fail(b, parse_error.text[0] != '\0' ? parse_error.text
                                                   : qn_strerror(err));
    }
    b->count++;
    err = place(b, r);
    if (err == QN_OK) {
        err = qn_operation_result_init(&r->d, &r->tree, b->kind->op,
                                       (uint32_t)b->sources);
    }
    predict(b, r, o->q);
    o->root = r->plan.root; /* the other topologies use it, too */
    return err == QN_OK ? 0 : fail(b, qn_strerror(err));
}

static int add_all(struct qn_bcast *b)
{
    struct qn_topology_spec_opts o = {.goal = (enum qn_goal)b->kind->op,
                                      .root = QN_ROOT_FREE,
                                      .q = 1,
                                      .seed = 1,
                                      .one_tree = true};
    if (b->root != ROOT_FREE) {
        o.root = qn_machine_find(b->mapping.m, (uint32_t)b->root);
        if (o.root == b->mapping.m->n) {
            return fail(b, "--root: no node runs on that core; choose one of "
                           "--cores, or see quoin machine");
        }
    }
    const char *name = NULL;
    const bool all = qn_topology_names_next(&b->algos, NULL) == NULL;
    int status = all ? add(b, "auto", &o) : 0;
    while (status == 0 &&
           (name = qn_topology_names_next(&b->algos, name)) != NULL) {
        status = add(b, name, &o);
    }
    for (uint32_t i = 0;
         all && status == 0 && (name = qn_topology_spec_name_at(i)) != NULL;
         i++) {
        status = runs(b, name) ? add(b, name, &o) : 0;
    }
    return status;
}

/* ---- measuring ---- */

static int measure_row(struct qn_bcast *b, struct qn_bcast_row *r)
{
    bool pthread = r == &b->pthread;
    const char *name = pthread ? "pthread_barrier" : r->plan.name;
    const struct qn_bcast_run_opts o = {
        .transport = qn_transport_find(QN_MEASURE_DEFAULT_TRANSPORT),
        .core = b->mapping.core,
        .operation = {.op = b->kind->op,
                      .tree = pthread ? &b->row[0].tree : &r->tree,
                      .ring = r->plan.ring,
                      .shared = b->shared,
                      .size = b->kind->size_max > 0 ? (uint32_t)b->size : 0,
                      .window = (uint32_t)b->window,
                      .sources = (uint32_t)b->sources,
                      .seconds = b->seconds / PASSES,
                      .stop = &stopped},
        .pthread = pthread};
    int err = qn_bcast_run_measure(&r->d, &o);
    if (err != QN_OK) {
        fprintf(stderr, "%s: %s: %s\n", b->kind->program, name,
                err == QN_EIO ? "a node did not start, or no message arrived "
                                "for 20 s"
                              : qn_strerror(err));
        return 1;
    }
    if (r->d.wrong > 0) {
        fprintf(stderr, "%s: %s: %llu messages lost, duplicated or damaged\n",
                b->kind->program, name, (unsigned long long)r->d.wrong);
        return 1;
    }
    r->known =
        qn_operation_latency(&r->d, 0.5) > 0 && qn_operation_rate(&r->d) > 0;
    return 0;
}

/* The yardstick has its turn after the topologies of each pass. */
static int measure_turn(struct qn_bcast *b, uint32_t turn)
{
    uint32_t each = b->count + b->kind->pthread;
    uint32_t i = turn % each;
    return measure_row(b, i < b->count ? &b->row[i] : &b->pthread);
}

static int measure(struct qn_bcast *b)
{
    struct sigaction act = {.sa_handler = on_interrupt}, before[2];
    int status = 0;
    sigaction(SIGINT, &act, &before[0]);
    sigaction(SIGTERM, &act, &before[1]);
    uint32_t turns = PASSES * (b->count + b->kind->pthread);
    for (uint32_t i = 0; i < turns && status == 0; i++) {
        if (qn_load(&stopped, QN_SEQ_CST) != 0) {
            break;
        }
        status = measure_turn(b, i);
    }
    sigaction(SIGINT, &before[0], NULL);
    sigaction(SIGTERM, &before[1], NULL);
    b->interrupted = qn_load(&stopped, QN_SEQ_CST) != 0;
    if (b->interrupted) {
        fprintf(stderr, "%s: interrupted; the results so far follow\n",
                b->kind->program);
    }
    return status;
}

/* ---- the command ---- */

static int check(const struct qn_bcast *b)
{
    if (b->nodes > 0 && b->cores != NULL) {
        return fail(
            b, "--nodes and --cores exclude each other; remove one of them");
    }
    if (b->kind->size_max > 0 && b->size > b->kind->size_max) {
        return fail(b, "--size must be at most 48");
    }
    if (b->kind->size_max == 8 * QN_COLL_WORDS && b->size % 8 != 0) {
        return fail(b, "--size must be a multiple of 8");
    }
    if (b->window * (b->size + 8) > QN_OPERATION_LANE_BYTES) {
        return fail(b, "--window times --size exceeds 16 KiB; reduce one of "
                       "them");
    }
    return 0;
}

static int draw(const struct qn_bcast *b)
{
    FILE *to = qn_output_path_open(b->plot);
    if (to != NULL) {
        qn_bcast_plot(b, to);
    }
    if (to == NULL || qn_output_path_close(to) != 0) {
        fprintf(stderr, "%s: cannot write the picture\n", b->kind->program);
        return 1;
    }
    return 0;
}

static int run(struct qn_bcast *b)
{
    int status = check(b);
    if (status == 0 && b->plot != NULL) {
        status = qn_output_path_check(b->kind->program, "plot", b->plot,
                                      "name a file in it");
    }
    status = status == 0 ? map_cores(b) : status;
    status = status == 0 ? add_all(b) : status;
    if (status != 0) {
        return status;
    }
    status = measure(b);
    if (qn_bcast_report(b, stdout) != QN_OK) {
        fprintf(stderr, "%s: cannot write the result\n", b->kind->program);
        return 1;
    }
    return b->plot != NULL && draw(b) != 0 ? 1 : status;
}

static void finish(struct qn_bcast *b)
{
    for (uint32_t i = 0; i < b->count; i++) {
        qn_topology_spec_fini(&b->row[i].plan);
        qn_operation_result_fini(&b->row[i].d);
    }
    qn_operation_result_fini(&b->pthread.d);
    qn_core_mapping_fini(&b->mapping);
    qn_topology_names_fini(&b->algos);
    free(b->row);
}

static int command(const char *name, int argc, char **argv)
{
    struct qn_bcast b = {.kind = qn_bcast_kind(name),
                         .machine = "live",
                         .format = "text",
                         .root = ROOT_FREE,
                         .size = QN_OPERATION_SIZE_MIN,
                         .window = 16,
                         .seconds = 1};
    int status = 1;
    b.row = calloc(QN_BCAST_MAX, sizeof *b.row);
    b.pthread.d.latency = calloc(1, sizeof *b.pthread.d.latency);
    b.pthread.d.histograms = 1;
    b.pthread.cycles = b.pthread.occupancy = (double)NAN;
    if (b.row == NULL || b.pthread.d.latency == NULL) {
        (void)fail(&b, qn_strerror(QN_ENOMEM));
    } else if (parse_options(&b, argc, argv, &status)) {
        status = run(&b);
    }
    finish(&b);
    return status;
}

int qn_bench_broadcast(int argc, char **argv)
{
    return command("broadcast", argc, argv);
}

int qn_bench_ack(int argc, char **argv)
{
    return command("ack", argc, argv);
}

int qn_bench_reduce(int argc, char **argv)
{
    return command("reduce", argc, argv);
}

int qn_bench_tree_barrier(int argc, char **argv)
{
    return command("tree-barrier", argc, argv);
}

int qn_bench_allreduce(int argc, char **argv)
{
    return command("allreduce", argc, argv);
}

int qn_bench_2pc(int argc, char **argv)
{
    return command("2pc", argc, argv);
}
