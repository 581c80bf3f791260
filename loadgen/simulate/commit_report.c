/*
 * The keys of JSON are those of the other operations where they mean the same.
 */
#include <jansson.h>

#include "core/base/err.h"
#include "loadgen/simulate/commit_command.h"
#include "loadgen/simulate/timeline/account.h"

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

static void write_text(const struct qn_commit_command *c,
                       const struct qn_sim_commit_result *r, FILE *to)
{
    const uint64_t ns = c->load_us * 1000;
    fprintf(to,
            "%s over %s on %s, %u replicas, %u bytes, %s acceptor, tree %s, %u "
            "clients each, seed %llu%s\n",
            c->broadcast ? "broadcast" : "commit", c->transport->name,
            c->m->name[0] != '\0' ? c->m->name : c->machine,
            (unsigned)c->replicas, (unsigned)c->size, c->acceptor, c->topology,
            (unsigned)c->clients, (unsigned long long)c->seed,
            c->m->facts.clock_ghz > 0 ? "" : ", clock unknown: 2 GHz");
    fprintf(to, "commit  median %llu ns, p99 %llu ns, %.0f per second\n",
            (unsigned long long)qn_histogram_quantile(r->commit, 0.5),
            (unsigned long long)qn_histogram_quantile(r->commit, 0.99),
            qn_sim_per_second(r->commits, ns));
    if (r->everywhere->count > 0) {
        fprintf(to, "applied by all replicas: median %llu ns\n",
                (unsigned long long)qn_histogram_quantile(r->everywhere, 0.5));
    }
    if (c->reads > 0) {
        fprintf(to, "read    median %llu ns, p99 %llu ns, %.0f per second\n",
                (unsigned long long)qn_histogram_quantile(r->read, 0.5),
                (unsigned long long)qn_histogram_quantile(r->read, 0.99),
                qn_sim_per_second(r->reads, ns));
    }
    fprintf(to,
            "slot    %.2f commands, %.1f lines moved, %.0f commands per second "
            "sustained, %llu missed\n",
            per_slot(r, r->commands), per_slot(r, transfers(&r->machine)),
            qn_sim_sustained(r), (unsigned long long)r->missed);
    if (!c->broadcast) {
        fprintf(to,
                "outage  %.1f us without a new command at any living replica, "
                "%llu changes of roles\nhistory %s\n",
                (double)r->outage_ns / 1000, (unsigned long long)r->failovers,
                r->broken == NULL ? "all invariants held" : r->broken);
    }
    qn_account_print(&r->machine, "the run", to);
    fprintf(to,
            "%llu accesses in %.2f s of this host: %.1f million per second; "
            "hash %016llx\n",
            (unsigned long long)r->machine.accesses, c->host_s,
            (double)r->machine.accesses / c->host_s / 1e6,
            (unsigned long long)r->machine.hash);
}

static int write_json(const struct qn_commit_command *c,
                      const struct qn_sim_commit_result *r, FILE *to)
{
    const uint64_t ns = c->load_us * 1000;
    const double ghz = c->m->facts.clock_ghz;
    const bool known = ghz > 0;
    char hash[20];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->machine.hash);
    json_t *all = json_pack(
        "{s:s, s:s, s:s, s:I, s:f, s:b, s:I, s:I, s:f, s:f, s:I, s:o, "
        "s:I, s:s, s:s, s:I, s:I, s:f, s:I, s:f, s:f, s:f, s:f, "
        "s:I, s:I, s:I, s:f, s:b, s:s, s:s}",
        "sim", c->broadcast ? "broadcast" : "commit", "transport",
        c->transport->name, "machine", c->m->name, "nodes",
        (json_int_t)c->replicas, "clock_ghz", known ? ghz : QN_GHZ_USUAL,
        "clock_known", known, "size", (json_int_t)c->size, "seed",
        (json_int_t)c->seed, "jitter", c->jitter, "host_seconds", c->host_s,
        "accesses", (json_int_t)r->machine.accesses, "node_ns",
        qn_account_json(&r->machine), "replicas", (json_int_t)c->replicas,
        "acceptor", c->acceptor, "topology", c->topology, "median_ns",
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
    bool bad = all == NULL || json_dumpf(all, to, JSON_INDENT(2)) != 0 ||
               fputc('\n', to) == EOF;
    json_decref(all);
    return bad ? QN_EIO : QN_OK;
}

int qn_commit_report(const struct qn_commit_command *c,
                     const struct qn_sim_commit_result *r, FILE *to)
{
    int err = QN_OK;
    if (c->json) {
        err = write_json(c, r, to);
    } else {
        write_text(c, r, to);
    }
    return fflush(to) != 0 || ferror(to) != 0 ? QN_EIO : err;
}
