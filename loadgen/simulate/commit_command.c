/*
 * `quoin sim commit`: 1Paxos on a described machine, with clients and faults.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/options.h"
#include "loadgen/simulate/command.h"
#include "loadgen/simulate/commit/commit.h"
#include "loadgen/simulate/commit/profile.h"

struct commit {
    const char *machine, *acceptor, *topology;
    uint64_t replicas, clients, client_ns, size, batch, load_us, warm_us,
        death_us, seed;
    double reads, jitter;
    uint64_t origin; /* clients at this replica only; QN_NODES_MAX: at all */
    struct qn_simulate_terms terms;
    bool near, software, bare, json, broadcast, profile;
    struct qn_sim_fault fault[8];
    uint32_t faults;
};

static int fail(const char *line)
{
    fprintf(stderr, "quoin sim commit: %s\n", line);
    return 2;
}

static int take_fault(const struct qn_option *o, const char *text)
{
    struct commit *c = o->to;
    if (c->faults == QN_ARRAY_COUNT(c->fault)) {
        return QN_EINVAL;
    }
    return qn_simulate_fault(&c->fault[c->faults++], text) ? QN_OK : QN_EINVAL;
}

#define AT(member)       offsetof(struct commit, member)
#define AT_TERMS(member) offsetof(struct commit, terms.member)

static const struct qn_option table[] = {
    QN_OPTION("machine", "PATH", qn_option_string, AT(machine),
              "machine: a file or folder as in quoin tree (required)"),
    QN_OPTION_COUNT("replicas", "N", AT(replicas),
                    "replicas, each on a core of its own (3)", 2, QN_NODES_MAX),
    QN_OPTION("acceptor", "KIND", qn_option_string, AT(acceptor),
              "memory (default) or process"),
    QN_OPTION("topology", "NAME", qn_option_string, AT(topology),
              "tree of decided commands: auto (planned for latency; default), "
              "stream (for throughput), or sequential, binary, fibonacci"),
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
    QN_OPTION("reads", "PART", qn_option_double, AT(reads),
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
};

static uint64_t transfers(const struct qn_timed_result *m)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < m->nodes; i++) {
        sum += m->node[i].reads + m->node[i].writes;
    }
    return sum;
}

static double per_slot(const struct qn_sim_commit_result *r, uint64_t n)
{
    return r->slots == 0 ? 0 : (double)n / (double)r->slots;
}

static void write_text(const struct commit *c, const struct qn_machine *m,
                       const struct qn_sim_commit_result *r)
{
    const uint64_t ns = c->load_us * 1000;
    printf("%s on %s, %u replicas, %s acceptor, tree %s, %u clients each, "
           "seed %llu\n",
           c->broadcast ? "broadcast" : "commit", m->name,
           (unsigned)c->replicas, c->acceptor, c->topology,
           (unsigned)c->clients, (unsigned long long)c->seed);
    printf("commit  median %llu ns, p99 %llu ns, %.0f per second\n",
           (unsigned long long)qn_histogram_quantile(r->commit, 0.5),
           (unsigned long long)qn_histogram_quantile(r->commit, 0.99),
           qn_sim_per_second(r->commits, ns));
    if (r->everywhere->count > 0) {
        printf("applied by all replicas: median %llu ns\n",
               (unsigned long long)qn_histogram_quantile(r->everywhere, 0.5));
    }
    if (c->reads > 0) {
        printf("read    median %llu ns, p99 %llu ns, %.0f per second\n",
               (unsigned long long)qn_histogram_quantile(r->read, 0.5),
               (unsigned long long)qn_histogram_quantile(r->read, 0.99),
               qn_sim_per_second(r->reads, ns));
    }
    printf("slot    %.2f commands, %.1f lines moved, %.0f commands per second "
           "sustained, %llu missed\n",
           per_slot(r, r->commands), per_slot(r, transfers(&r->machine)),
           qn_sim_sustained(r), (unsigned long long)r->missed);
    if (c->broadcast) {
        printf("hash %016llx\n", (unsigned long long)r->machine.hash);
        return;
    }
    printf("outage  %.1f us without a new command at any living replica, %llu "
           "changes of roles\n",
           (double)r->outage_ns / 1000, (unsigned long long)r->failovers);
    printf("history %s; hash %016llx\n",
           r->broken == NULL ? "all invariants held" : r->broken,
           (unsigned long long)r->machine.hash);
}

static int write_json(const struct commit *c, const struct qn_machine *m,
                      const struct qn_sim_commit_result *r)
{
    const uint64_t ns = c->load_us * 1000;
    char hash[20];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->machine.hash);
    json_t *all = json_pack(
        "{s:s, s:s, s:I, s:s, s:s, s:I, s:I, s:f, s:I, s:f, s:f, s:f, s:f, "
        "s:I, s:I, s:I, s:f, s:b, s:s, s:s}",
        "sim", c->broadcast ? "broadcast" : "commit", "machine", m->name,
        "replicas", (json_int_t)c->replicas, "acceptor", c->acceptor,
        "topology", c->topology, "median_ns",
        (json_int_t)qn_histogram_quantile(r->commit, 0.5), "p99_ns",
        (json_int_t)qn_histogram_quantile(r->commit, 0.99), "per_second",
        qn_sim_per_second(r->commits, ns), "read_median_ns",
        (json_int_t)qn_histogram_quantile(r->read, 0.5), "reads_per_second",
        qn_sim_per_second(r->reads, ns), "commands_per_slot",
        per_slot(r, r->commands), "lines_per_slot",
        per_slot(r, transfers(&r->machine)), "outage_us",
        (double)r->outage_ns / 1000, "failovers", (json_int_t)r->failovers,
        "missed", (json_int_t)r->missed, "everywhere_median_ns",
        (json_int_t)qn_histogram_quantile(r->everywhere, 0.5),
        "sustained_per_second", qn_sim_sustained(r), "held", r->broken == NULL,
        "broken", r->broken == NULL ? "" : r->broken, "hash", hash);
    bool bad = all == NULL || json_dumpf(all, stdout, JSON_INDENT(2)) != 0 ||
               fputc('\n', stdout) == EOF;
    json_decref(all);
    return bad ? 1 : 0;
}

static bool fill(const struct commit *c, const struct qn_machine *m,
                 struct qn_sim_commit_opts *o)
{
    o->machine = m;
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

/* @return what is wrong with the options; NULL. */
static const char *wrong(const struct commit *c, const struct qn_machine *m)
{
    for (uint32_t i = 0; i < c->faults; i++) {
        if (c->fault[i].node >= c->replicas) {
            return "--fault: no such replica; they are numbered from 0";
        }
    }
    if (!qn_machine_has_costs(m) || m->n < c->replicas) {
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
    return qn_simulate_terms_wrong(&c->terms);
}

static int run(const struct commit *c, struct qn_sim_commit_opts *o,
               struct qn_sim_profile *profile)
{
    struct qn_sim_commit_result r;
    int err =
        c->broadcast ? qn_sim_broadcast_run(&r, o) : qn_sim_commit_run(&r, o);
    if (err != QN_OK) {
        return fail(err == QN_EINVAL ? "--topology is auto, stream, "
                                       "sequential, binary or fibonacci; "
                                       "--reads is 0 to 1"
                                     : qn_strerror(err));
    }
    int status = r.broken == NULL ? 0 : 1;
    if (c->json) {
        status |= write_json(c, o->machine, &r);
    } else {
        write_text(c, o->machine, &r);
    }
    if (profile != NULL) {
        qn_sim_profile_print(profile, &r, stdout);
    }
    qn_sim_commit_free(&r);
    return fflush(stdout) != 0 ? 1 : status;
}

static int run_on(const struct commit *c, const struct qn_machine *m)
{
    static uint32_t core[QN_CORES_MAX];
    struct qn_coherent_opts prices = {.bare = c->bare};
    struct qn_sim_commit_opts o = {.prices = &prices, .core = core};
    struct qn_sim_profile *profile = NULL;
    const char *line = wrong(c, m);
    qn_simulate_terms_take(&prices, &c->terms);
    if (c->software) {
        qn_simulate_software(prices.mark_cycles);
    }
    if (!fill(c, m, &o)) {
        line = "--acceptor is memory or process";
    }
    if (line == NULL && c->profile &&
        qn_sim_profile_create(&profile) != QN_OK) {
        line = qn_strerror(QN_ENOMEM);
    }
    if (line != NULL) {
        return fail(line);
    }
    qn_sim_cores(core, m, !c->near);
    o.event = profile != NULL ? qn_sim_profile_event : NULL;
    o.ctx = profile;
    int status = run(c, &o, profile);
    qn_sim_profile_destroy(profile);
    return status;
}

int qn_commit_command(int argc, char **argv)
{
    struct commit c = {.acceptor = "memory",
                       .topology = "auto",
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
    struct qn_parse_error bad = {""};
    struct qn_machine *m;
    int status;
    if (!qn_options_parse(&o, argc, argv, &status)) {
        return status;
    }
    if (c.machine == NULL) {
        return fail("--machine is required; for example --machine "
                    "machines/epyc_9754_1x128");
    }
    int err = qn_machine_load(&m, c.machine, &bad);
    if (err != QN_OK) {
        return fail(bad.text[0] != '\0' ? bad.text : qn_strerror(err));
    }
    status = run_on(&c, m);
    qn_machine_destroy(m);
    return status;
}
