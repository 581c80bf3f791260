/*
 * Runs loadgen/simulate/commit once and prints a line: for tables, until a
 * subcommand of `quoin` does it.
 *
 *     commit_tool MACHINE key=value ...
 *
 * Keys: broadcast (1: the bare one), n, acceptor (memory, process), tree
 * (costs, stream, or a name), place (deal, near), load (mask), clients, reads,
 * bytes, batch, client_ns, warm_us, load_us, settle_us, seed, jitter, death_us,
 * kill (replica:us), stop (replica:us:us), step, turn, send, receive, flush
 * (cycles of library calls), nodes (1: a line per replica), lines (1: the lines
 * that took the most time).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/err.h"
#include "loadgen/simulate/commit/commit.h"

struct args {
    struct qn_sim_commit_opts o;
    struct qn_coherent_opts prices;
    struct qn_sim_fault fault[8];
    uint32_t core[QN_CORES_MAX];
    bool near;
    bool nodes, lines, broadcast;
};

/* ---- lines: which are transferred most? ---------------------------------- */

#define LINES_MAX   (1u << 20)
#define LINES_SHOWN 12u

struct line_use {
    uint32_t line;
    uint64_t kind[QN_SIM_KINDS]; /* transfers */
    uint64_t nodes;              /* mask */
    qn_ps_t took;
};

static struct line_use use[LINES_MAX];

static void on_event(void *ctx, const struct qn_timed_event *e)
{
    (void)ctx;
    if (e->kind == QN_TIMED_ACCESS && e->line < LINES_MAX &&
        (e->transfer == QN_TRANSFER_READ || e->transfer == QN_TRANSFER_WRITE)) {
        struct line_use *u = &use[e->line];
        u->line = e->line;
        u->kind[e->access]++;
        u->nodes |= UINT64_C(1) << e->node % 64;
        u->took += e->until - e->from;
    }
}

static int by_time(const void *a, const void *b)
{
    const struct line_use *x = a;
    const struct line_use *y = b;
    return (x->took < y->took) - (x->took > y->took);
}

static void print_lines(double slots)
{
    qsort(use, LINES_MAX, sizeof use[0], by_time);
    for (uint32_t i = 0; i < LINES_SHOWN && use[i].took > 0; i++) {
        const struct line_use *u = &use[i];
        printf("  line %6u: per slot %.2f loads %.2f stores %.2f rmw %.2f "
               "touched in %.2f out; %.1f ns; nodes %" PRIx64 "\n",
               u->line, (double)u->kind[QN_SIM_LOAD] / slots,
               (double)u->kind[QN_SIM_STORE] / slots,
               (double)u->kind[QN_SIM_RMW] / slots,
               (double)u->kind[QN_SIM_TOUCH_IN] / slots,
               (double)(u->kind[QN_SIM_TOUCH_OUT] + u->kind[QN_SIM_COPY_OUT]) /
                   slots,
               (double)u->took / 1000 / slots, u->nodes);
    }
}

/* ---- arguments ----------------------------------------------------------- */

static bool key_is(const char *arg, const char *key, const char **value)
{
    size_t n = strlen(key);
    *value = arg + n + 1;
    return strncmp(arg, key, n) == 0 && arg[n] == '=';
}

static void parse_fault(struct args *a, enum qn_sim_fault_kind kind,
                        const char *v)
{
    struct qn_sim_fault *f = &a->fault[a->o.faults++];
    double from = 0;
    double until = 0;
    *f = (struct qn_sim_fault){.kind = kind};
    (void)sscanf(v, "%u:%lf:%lf", &f->node, &from, &until);
    f->from_ns = (uint64_t)(from * 1000);
    f->until_ns = (uint64_t)(until * 1000);
}

static void parse(struct args *a, const char *arg)
{
    const char *v;
    struct qn_sim_commit_opts *o = &a->o;
    const struct {
        const char *key;
        uint64_t *at;
        double unit;
    } numbers[] = {{"load", &o->load, 1},
                   {"client_ns", &o->client_ns, 1},
                   {"warm_us", &o->warm_ns, 1000},
                   {"load_us", &o->load_ns, 1000},
                   {"settle_us", &o->settle_ns, 1000},
                   {"death_us", &o->death_ns, 1000},
                   {"seed", &o->seed, 1}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (key_is(arg, numbers[i].key, &v)) {
            *numbers[i].at = (uint64_t)(strtod(v, NULL) * numbers[i].unit);
        }
    }
    const struct {
        const char *key;
        uint32_t *at;
    } counts[] = {{"n", &o->replicas},
                  {"clients", &o->clients},
                  {"bytes", &o->command_bytes},
                  {"batch", &o->batch_commands}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (key_is(arg, counts[i].key, &v)) {
            *counts[i].at = (uint32_t)strtoul(v, NULL, 10);
        }
    }
    const struct {
        const char *key;
        double *at;
    } reals[] = {{"reads", &o->reads},
                 {"jitter", &o->jitter},
                 {"step", &a->prices.mark_cycles[QN_MARK_STEP]},
                 {"turn", &a->prices.mark_cycles[QN_MARK_TURN]},
                 {"flush", &a->prices.mark_cycles[QN_MARK_FLUSH]},
                 {"send", &a->prices.mark_cycles[QN_MARK_SEND]},
                 {"receive", &a->prices.mark_cycles[QN_MARK_RECEIVE]}};
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) {
        if (key_is(arg, reals[i].key, &v)) {
            *reals[i].at = strtod(v, NULL);
        }
    }
    if (key_is(arg, "acceptor", &v)) {
        o->memory = strcmp(v, "memory") == 0;
    } else if (key_is(arg, "tree", &v)) {
        o->tree = strcmp(v, "costs") == 0    ? QN_SIM_TREE_COSTS
                  : strcmp(v, "stream") == 0 ? QN_SIM_TREE_STREAM
                                             : QN_SIM_TREE_NAMED;
        o->topology = o->tree == QN_SIM_TREE_NAMED ? v : NULL;
    } else if (key_is(arg, "place", &v)) {
        a->near = strcmp(v, "near") == 0;
    } else if (key_is(arg, "kill", &v)) {
        parse_fault(a, QN_SIM_FAULT_KILL, v);
    } else if (key_is(arg, "stop", &v)) {
        parse_fault(a, QN_SIM_FAULT_STOP, v);
    } else if (key_is(arg, "broadcast", &v)) {
        a->broadcast = true;
    } else if (key_is(arg, "nodes", &v)) {
        a->nodes = true;
    } else if (key_is(arg, "lines", &v)) {
        a->lines = true;
        o->event = on_event;
    }
}

static void print(const struct args *a, const struct qn_sim_commit_result *r,
                  double host_s)
{
    const struct qn_timed_result *m = &r->machine;
    uint64_t transfers = 0;
    for (uint32_t i = 0; i < m->nodes; i++) {
        transfers += m->node[i].reads + m->node[i].writes;
    }
    printf("commit ns p50 %" PRIu64 " p99 %" PRIu64 " max %" PRIu64
           "; read p50 %" PRIu64
           "; commits/s %.0f reads/s %.0f sustained/s %.0f; %" PRIu64
           " slots in %.1f us; %.2f "
           "commands/slot; %.1f lines/slot; missed %" PRIu64
           "; turn us %.1f outage us %.1f failovers %" PRIu64
           "; %s; hash %016" PRIx64 "; %.1f M accesses, host %.2f s\n",
           qn_histogram_quantile(r->commit, 0.5),
           qn_histogram_quantile(r->commit, 0.99), r->commit->max,
           qn_histogram_quantile(r->read, 0.5),
           qn_sim_per_second(r->commits, a->o.load_ns),
           qn_sim_per_second(r->reads, a->o.load_ns), qn_sim_sustained(r),
           r->slots, (double)m->clock / 1e6,
           (double)r->commands / (double)(r->slots + (r->slots == 0)),
           (double)transfers / (double)(r->slots + (r->slots == 0)), r->missed,
           (double)r->turn_ns / 1000, (double)r->outage_ns / 1000, r->failovers,
           r->broken == NULL ? "all held" : r->broken, m->hash,
           (double)m->accesses / 1e6, host_s);
    for (uint32_t i = 0; i < m->nodes && a->nodes; i++) {
        const struct qn_timed_node *n = &m->node[i];
        double us = 1e6;
        printf("  %2u core %3u state %d clock %.1f us: hit %.1f read %.1f "
               "(%" PRIu64 ") write %.1f (%" PRIu64
               ") waited %.1f fenced %.1f library %.1f "
               "worked %.1f paused %.1f parked %.1f stopped %.1f%s\n",
               i, r->core[i], n->state, (double)n->clock / us,
               (double)n->hit / us, (double)n->read / us, n->reads,
               (double)n->write / us, n->writes, (double)n->waited / us,
               (double)n->fenced / us, (double)n->library / us,
               (double)n->worked / us, (double)n->paused / us,
               (double)n->parked / us, (double)n->stopped / us,
               n->spun ? " spun" : "");
    }
}

int main(int argc, char **argv)
{
    static struct args a;
    struct qn_parse_error bad;
    struct qn_machine *m;
    struct qn_sim_commit_result r;
    a.o = (struct qn_sim_commit_opts){.replicas = 3,
                                      .clients = 1,
                                      .tree = QN_SIM_TREE_COSTS,
                                      .warm_ns = 100 * QN_US,
                                      .load_ns = QN_MS,
                                      .seed = 1};
    for (int i = 2; i < argc; i++) {
        parse(&a, argv[i]);
    }
    if (argc < 2 || qn_machine_load(&m, argv[1], &bad) != QN_OK) {
        fprintf(stderr, "no machine\n");
        return 2;
    }
    qn_sim_cores(a.core, m, !a.near);
    a.o.machine = m;
    a.o.prices = &a.prices;
    a.o.core = a.core;
    a.o.fault = a.fault;
    clock_t from = clock();
    int err = a.broadcast ? qn_sim_broadcast_run(&r, &a.o)
                          : qn_sim_commit_run(&r, &a.o);
    if (err != QN_OK) {
        fprintf(stderr, "%s\n", qn_strerror(err));
        return 1;
    }
    print(&a, &r, (double)(clock() - from) / CLOCKS_PER_SEC);
    if (a.lines) {
        print_lines((double)r.slots);
    }
    bool held = r.broken == NULL;
    qn_sim_commit_free(&r);
    qn_machine_destroy(m);
    return held ? 0 : 1;
}
