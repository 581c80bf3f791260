/*
 * `quoin sim commit`: 1Paxos on a described machine, with clients and faults.
 */
#include <string.h>
#include <time.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/options.h"
#include "loadgen/base/output_path.h"
#include "loadgen/simulate/commit/profile.h"
#include "loadgen/simulate/commit_command.h"
#include "loadgen/simulate/timeline/trace.h"

static int fail(const char *line)
{
    fprintf(stderr, "quoin sim commit: %s\n", line);
    return 2;
}

static int take_fault(const struct qn_option *o, const char *text)
{
    struct qn_commit_command *c = o->to;
    if (c->faults == QN_ARRAY_COUNT(c->fault)) {
        return QN_EINVAL;
    }
    return qn_simulate_fault(&c->fault[c->faults++], text) ? QN_OK : QN_EINVAL;
}

#define AT(member)       offsetof(struct qn_commit_command, member)
#define AT_TERMS(member) offsetof(struct qn_commit_command, terms.member)

static const struct qn_option table[] = {
    QN_OPTION("machine", "PATH", qn_option_string, AT(machine),
              "machine: a file or folder as in quoin tree (required)"),
    QN_OPTION_COUNT("replicas", "N", AT(replicas),
                    "replicas, each on a core of its own (3)", 2, QN_NODES_MAX),
    QN_OPTION_COUNT("nodes", "N", AT(replicas),
                    "the same, as other operations have it", 2, QN_NODES_MAX),
    QN_OPTION("acceptor", "KIND", qn_option_string, AT(acceptor),
              "memory (default) or process"),
    QN_OPTION(
        "topology", "NAME", qn_option_string, AT(topology),
        "tree of decided commands: auto (planned for latency; default), "
        "stream (for throughput), or sequential, binary, fibonacci, ring:k=N"),
    QN_OPTION("transport", "NAME", qn_option_string, AT(transport_name),
              "what carries messages: ump, ffq, ffq_shared (ump)"),
    QN_OPTION("near", NULL, qn_option_flag, AT(near),
              "cores beside each other; else dealt over the memory nodes"),
    QN_OPTION_COUNT("clients", "N", AT(clients),
                    "clients of each replica, closed loops (1)", 1,
                    QN_SIM_CLIENTS_MAX),
    QN_OPTION_COUNT("origin", "REPLICA", AT(origin),
                    "clients at this replica only; the first leader is 0 (all)",
                    0, QN_NODES_MAX - 1),
    QN_OPTION_COUNT("client-ns", "NS", AT(client_ns),
                    "a replica's work for each operation (0)", 0, 1000000000),
    QN_OPTION("reads", "PART", qn_option_part, AT(reads),
              "share of linearizable reads: 0.8 (0)"),
    QN_OPTION_COUNT("size", "BYTES", AT(size), "bytes of a command (24)", 16,
                    QN_SIM_COMMAND_MAX),
    QN_OPTION_COUNT("batch", "N", AT(batch),
                    "commands of a slot, at most (as shipped)", 1, 64),
    QN_OPTION_COUNT("load-us", "US", AT(load_us),
                    "virtual time that is measured (1000)", 1, 10000000),
    QN_OPTION_COUNT("warm-us", "US", AT(warm_us), "and before it (100)", 0,
                    10000000),
    QN_OPTION_COUNT("death-us", "US", AT(death_us),
                    "from a death until its mark can be seen (5)", 0, 10000000),
    QN_OPTION("software", NULL, qn_option_flag, AT(software),
              "library calls cost what they do on a real machine"),
    QN_OPTION("bare", NULL, qn_option_flag, AT(bare),
              "only transfers have a price"),
    QN_SIMULATE_TERMS(AT_TERMS),
    QN_OPTION_COUNT("seed", "N", AT(seed), "of everything random (1)", 0, 0),
    QN_OPTION("jitter", "PART", qn_option_double, AT(jitter),
              "each price is up to this part larger: 0.05 (0)"),
    QN_OPTION("fault", "SPEC", take_fault, 0,
              "as in quoin sim: kill:REPLICA@TIMEus, ...; may be repeated"),
    QN_OPTION("broadcast", NULL, qn_option_flag, AT(broadcast),
              "no consensus: a bare broadcast from replica 1, which replica 0 "
              "requests; to compare with"),
    QN_OPTION("profile", NULL, qn_option_flag, AT(profile),
              "also where the time of each replica went, and the cache lines "
              "that took the most"),
    QN_OPTION("json", NULL, qn_option_flag, AT(json), "print a JSON object"),
    QN_OPTION("plot", "FILE.svg", qn_option_string, AT(plot),
              "draw the first 3 us that are measured; with faults, those that "
              "begin 1 us before the first of them"),
    QN_OPTION("trace", "FILE.json", qn_option_string, AT(trace),
              "write all that is measured as a trace file for Perfetto or "
              "chrome://tracing"),
};

static bool fill(struct qn_commit_command *c, struct qn_sim_commit_opts *o)
{
    o->machine = c->m;
    o->tiled = c->is_tiled ? &c->tiled : NULL;
    o->transport = c->transport;
    o->replicas = (uint32_t)c->replicas;
    o->memory = strcmp(c->acceptor, "memory") == 0;
    o->tree = strcmp(c->topology, "auto") == 0     ? QN_SIM_TREE_COSTS
              : strcmp(c->topology, "stream") == 0 ? QN_SIM_TREE_STREAM
                                                   : QN_SIM_TREE_NAMED;
    o->topology = o->tree == QN_SIM_TREE_NAMED ? c->topology : NULL;
    o->load = c->origin < c->replicas ? UINT64_C(1) << c->origin : 0;
    o->client_ns = c->client_ns;
    o->clients = (uint32_t)c->clients;
    o->reads = c->reads;
    o->command_bytes = (uint32_t)c->size;
    o->batch_commands = (uint32_t)c->batch;
    o->warm_ns = c->warm_us * QN_US;
    o->load_ns = c->load_us * QN_US;
    o->death_ns = c->death_us * QN_US;
    o->fault = c->fault;
    o->faults = c->faults;
    o->seed = c->seed;
    o->jitter = c->jitter;
    return o->memory || strcmp(c->acceptor, "process") == 0;
}

/* Lanes need coherent memory and nothing else. */
static const char *find_transport(struct qn_commit_command *c)
{
    c->transport = qn_transport_find(c->transport_name);
    return c->transport != NULL && c->transport->device == NULL
               ? NULL
               : "--transport: replicas commit over lanes here; choose ump, "
                 "ffq "
                 "or ffq_shared";
}

/* @return what is wrong with the options; NULL. */
static const char *wrong(const struct qn_commit_command *c)
{
    for (uint32_t i = 0; i < c->faults; i++) {
        if (c->fault[i].node >= c->replicas) {
            return "--fault: no such replica; they are numbered from 0";
        }
    }
    if (!qn_machine_has_costs(c->m) || c->m->n < c->replicas) {
        return "the machine has fewer cores than replicas, or no costs";
    }
    if (c->origin >= c->replicas && c->origin != QN_NODES_MAX) {
        return "--origin: no such replica; they are numbered from 0";
    }
    if (c->broadcast && (c->replicas < 3 || c->faults > 0)) {
        return "--broadcast needs 3 replicas, and has no faults";
    }
    if (c->profile && c->json) {
        return "--profile is a text; leave --json out";
    }
    if (c->is_tiled && (c->bare || qn_simulate_terms_any(&c->terms))) {
        return "--bare and the optional terms are for coherent machines; leave "
               "them out";
    }
    return qn_simulate_terms_wrong(&c->terms);
}

static int check_paths(const struct qn_commit_command *c)
{
    static const char program[] = "quoin sim commit",
                      what[] = "name a file in it";
    int status = c->plot == NULL
                     ? 0
                     : qn_output_path_check(program, "plot", c->plot, what);
    return status != 0 || c->trace == NULL
               ? status
               : qn_output_path_check(program, "trace", c->trace, what);
}

/* ---- what is recorded ---- */

#define PLOTTED (3000 * QN_PS_PER_NS)
#define BEFORE  (1000 * QN_PS_PER_NS) /* a fault */

struct recorded {
    struct qn_sim_profile *profile; /* NULL: not wanted */
    bool plots, traces;
    struct qn_trace plot, trace;
};

static void record(void *ctx, const struct qn_timed_event *e)
{
    struct recorded *r = ctx;
    if (r->profile != NULL) {
        qn_sim_profile_event(r->profile, e);
    }
    if (r->plots) {
        qn_trace_add(&r->plot, e);
    }
    if (r->traces) {
        qn_trace_add(&r->trace, e);
    }
}

static void begin_traces(struct recorded *r, const struct qn_sim_commit_opts *o)
{
    qn_ps_t from = o->warm_ns * QN_PS_PER_NS, first = QN_PS_NEVER;
    for (uint32_t i = 0; i < o->faults; i++) {
        first = QN_MIN(first, o->fault[i].from_ns * QN_PS_PER_NS);
    }
    qn_trace_init(&r->plot);
    qn_trace_init(&r->trace);
    qn_trace_begin(&r->trace, from, from + o->load_ns * QN_PS_PER_NS);
    if (o->faults > 0) {
        from = first > BEFORE ? first - BEFORE : 0;
    }
    qn_trace_begin(&r->plot, from, from + PLOTTED);
}

static int write_traces(const struct qn_commit_command *c,
                        const struct recorded *r,
                        const struct qn_sim_commit_result *result)
{
    uint32_t name[QN_NODES_MAX], n = (uint32_t)c->replicas;
    int err = 0;
    for (uint32_t i = 0; i < n; i++) {
        name[i] = c->m->core[result->core[i]].os;
    }
    if (c->plot != NULL) {
        char title[256];
        FILE *to = qn_output_path_open(c->plot);
        snprintf(title, sizeof title, "%s over %s, %u replicas of %s",
                 c->broadcast ? "broadcast" : "commits", c->topology, n,
                 c->m->name);
        if (to != NULL) {
            qn_trace_svg(&r->plot, n, name, title, to);
        }
        err |= to == NULL ? 1 : qn_output_path_close(to);
    }
    if (c->trace != NULL) {
        FILE *to = qn_output_path_open(c->trace);
        err |= to == NULL || qn_trace_json(&r->trace, n, name, to) != QN_OK;
        err |= to == NULL ? 1 : qn_output_path_close(to);
    }
    return err == 0 ? QN_OK : QN_EIO;
}

/* ---- the run ---- */

static int run(struct qn_commit_command *c, struct qn_sim_commit_opts *o,
               struct recorded *recorded)
{
    struct qn_sim_commit_result r;
    clock_t before = clock();
    int err =
        c->broadcast ? qn_sim_broadcast_run(&r, o) : qn_sim_commit_run(&r, o);
    if (err != QN_OK) {
        return fail(err == QN_EINVAL ? "--topology is auto, stream, "
                                       "sequential, binary or fibonacci"
                                     : qn_strerror(err));
    }
    c->host_s = (double)(clock() - before) / CLOCKS_PER_SEC;
    err = qn_commit_report(c, &r, stdout);
    if (recorded->profile != NULL) {
        qn_sim_profile_print(recorded->profile, &r, stdout);
    }
    if (write_traces(c, recorded, &r) != QN_OK || err != QN_OK ||
        fflush(stdout) != 0) {
        fprintf(stderr, "quoin sim commit: cannot write the result\n");
        err = QN_EIO;
    }
    int status = r.broken != NULL || err != QN_OK ? 1 : 0;
    qn_sim_commit_free(&r);
    return status;
}

static int run_on(struct qn_commit_command *c)
{
    static uint32_t core[QN_CORES_MAX];
    struct qn_coherent_opts prices = {.bare = c->bare};
    struct qn_sim_commit_opts o = {.prices = &prices, .core = core};
    struct recorded recorded = {.plots = c->plot != NULL,
                                .traces = c->trace != NULL};
    const char *line = find_transport(c);
    line = line == NULL ? wrong(c) : line;
    qn_simulate_terms_take(&prices, &c->terms);
    if (c->software) {
        qn_simulate_software(prices.mark_cycles);
    }
    if (!fill(c, &o)) {
        line = "--acceptor is memory or process";
    }
    if (line == NULL && c->profile &&
        qn_sim_profile_create(&recorded.profile) != QN_OK) {
        line = qn_strerror(QN_ENOMEM);
    }
    if (line != NULL) {
        return fail(line);
    }
    qn_sim_cores(core, c->m, !c->near);
    begin_traces(&recorded, &o);
    if (c->profile || recorded.plots || recorded.traces) {
        o.event = record;
        o.ctx = &recorded;
    }
    int status = check_paths(c);
    status = status == 0 ? run(c, &o, &recorded) : status;
    qn_trace_fini(&recorded.plot);
    qn_trace_fini(&recorded.trace);
    qn_sim_profile_destroy(recorded.profile);
    return status;
}

/* ---- the command ---- */

static int load_machine(struct qn_commit_command *c)
{
    struct qn_parse_error bad = {""};
    int err;
    c->is_tiled = qn_tiled_is(c->machine);
    if (c->is_tiled) {
        err = qn_tiled_load(&c->tiled, c->machine, &bad);
        if (err == QN_OK && c->tiled.kind == QN_TILED_SCC) {
            return fail("an scc has no coherent memory, which replicas share; "
                        "choose another machine");
        }
        err = err == QN_OK ? qn_tiled_machine(&c->m, &c->tiled) : err;
    } else {
        err = qn_machine_load(&c->m, c->machine, &bad);
    }
    return err == QN_OK
               ? 0
               : fail(bad.text[0] != '\0' ? bad.text : qn_strerror(err));
}

int qn_commit_command(int argc, char **argv)
{
    static struct qn_commit_command c;
    c = (struct qn_commit_command){.acceptor = "memory",
                                   .topology = "auto",
                                   .transport_name = "ump",
                                   .replicas = 3,
                                   .clients = 1,
                                   .size = 24,
                                   .load_us = 1000,
                                   .warm_us = 100,
                                   .death_us = 5,
                                   .origin = QN_NODES_MAX,
                                   .seed = 1};
    const struct qn_options o = {
        "quoin sim commit",
        "Run replicas of 1Paxos on a described machine, in virtual time, and "
        "check their\nhistory.",
        table, QN_ARRAY_COUNT(table), &c};
    int status;
    if (!qn_options_parse_needing(&o, argc, argv, &status, "machine",
                                  "machines/epyc_9754_1x128")) {
        return status;
    }
    status = load_machine(&c);
    status = status == 0 ? run_on(&c) : status;
    qn_machine_destroy(c.m);
    return status;
}
