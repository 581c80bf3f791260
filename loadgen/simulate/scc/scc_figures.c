/*
 * Each figure fills a panel. A figure that was measured by averages over many
 * calls has one run here, for the simulation has no noise. Dots are the values
 * that are in print as numbers.
 */
#include "loadgen/simulate/scc/scc_figures.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/plot/panel.h"
#include "loadgen/plot/plot.h"
#include "loadgen/simulate/scc/scc_bcast.h"
#include "loadgen/simulate/scc/scc_probe.h"

#define COLUMNS 2u

struct figures {
    struct qn_tiled machine;
    int rc; /* the first run that failed */
};

static void note(struct figures *f, int rc)
{
    f->rc = f->rc == QN_OK ? rc : f->rc;
}

/* ---- broadcasts ---- */

static const struct {
    const char *name;
    enum qn_scc_bcast_kind kind;
    uint32_t k;
} bcast[] = {
    {"k = 2", QN_SCC_IN_TURN, 2},
    {"k = 7", QN_SCC_IN_TURN, 7},
    {"k = 47", QN_SCC_IN_TURN, 47},
    {"binomial", QN_SCC_BINOMIAL, 0},
    {"scatter-allgather", QN_SCC_SCATTER_ALLGATHER, 0},
};
enum { K2, K7, K47, BINOMIAL, SCATTER_ALLGATHER };

static struct qn_scc_bcast_result run(struct figures *f,
                                      const struct qn_scc_bcast_opts *o)
{
    struct qn_scc_bcast_result r = {0};
    struct qn_scc_bcast_opts x = *o;
    x.machine = &f->machine;
    x.cores = QN_SCC_CORES;
    int rc = qn_scc_bcast_run(&r, &x);
    note(f, rc == QN_OK && !r.complete ? QN_ECORRUPT : rc);
    return r;
}

static struct qn_scc_bcast_result call(struct figures *f, uint32_t which,
                                       uint32_t lines, uint32_t calls)
{
    return run(f, &(struct qn_scc_bcast_opts){.kind = bcast[which].kind,
                                              .k = bcast[which].k,
                                              .lines = lines,
                                              .calls = calls});
}

static void latency(struct figures *f, struct qn_panel *p)
{
    static const uint32_t lines[] = {1,  16,  32,  48,  64,  80,  96, 97,
                                     98, 112, 128, 144, 160, 176, 192};
    static const double in_print[][2] = {
        {1, 44.1}, {32, 75.8}, {64, 112.7}, {128, 198.6}};
    *p = (struct qn_panel){
        .title = "Latency of short messages (3.2a)",
        .x = {.name = "lines of 32 bytes",
              .label = qn_label_count,
              .most = 192},
        .y = {.name = "us, until the last core has it; dots: in print",
              .label = qn_label_count,
              .most = 500}};
    for (uint32_t i = K2; i <= BINOMIAL; i++) {
        struct qn_panel_curve *c = qn_panel_curve(p, bcast[i].name);
        for (uint32_t j = 0; j < QN_ARRAY_COUNT(lines); j++) {
            qn_panel_point(c, lines[j], call(f, i, lines[j], 1).us);
        }
        if (i == K47) {
            c = qn_panel_dots(p);
            for (uint32_t j = 0; j < QN_ARRAY_COUNT(in_print); j++) {
                qn_panel_point(c, in_print[j][0], in_print[j][1]);
            }
        }
    }
}

static void throughput(struct figures *f, struct qn_panel *p)
{
    static const uint32_t lines[] = {1,   4,   16,  48,   96,   97,   128,
                                     192, 193, 384, 1000, 2304, 4608, 8192};
    *p = (struct qn_panel){.title = "Throughput (3.2b)",
                           .x = {.name = "lines of 32 bytes",
                                 .label = qn_label_count,
                                 .log = true,
                                 .most = 10000},
                           .y = {.name = "MB/s of messages in a row",
                                 .label = qn_label_count,
                                 .most = 40}};
    for (uint32_t i = K2; i <= SCATTER_ALLGATHER; i++) {
        if (i == BINOMIAL) {
            continue;
        }
        struct qn_panel_curve *c = qn_panel_curve(p, bcast[i].name);
        for (uint32_t j = 0; j < QN_ARRAY_COUNT(lines); j++) {
            uint32_t calls = QN_MIN(QN_MAX(2000 / lines[j], 1u), 20u);
            qn_panel_point(c, lines[j], call(f, i, lines[j], calls).mb_s);
        }
    }
}

static void many_sources(struct figures *f, struct qn_panel *p)
{
    static const uint32_t ks[] = {2, 3, 4, 5, 7, 9, 12, 16, 24, 32, 40, 47};
    static const uint32_t sources[] = {1, 5, 48};
    static const char *const names[] = {"1 source", "5 sources", "48 sources"};
    *p = (struct qn_panel){
        .title = "By interrupts, 128 lines, many sources (3.4)",
        .x = {.name = "k", .label = qn_label_count, .most = 48},
        .y = {.name = "MB/s of all sources", .label = qn_label_count}};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(sources); i++) {
        struct qn_panel_curve *c = qn_panel_curve(p, names[i]);
        for (uint32_t j = 0; j < QN_ARRAY_COUNT(ks); j++) {
            qn_panel_point(
                c, ks[j],
                run(f, &(struct qn_scc_bcast_opts){.kind = QN_SCC_BY_INTERRUPTS,
                                                   .k = ks[j],
                                                   .lines = 128,
                                                   .calls = 5 + 20 / sources[i],
                                                   .sources = sources[i]})
                    .mb_s);
        }
    }
}

/* ---- single operations ---- */

static void interrupts(struct figures *f, struct qn_panel *p)
{
    struct qn_tiled free_registers = f->machine;
    const struct qn_tiled *machine[] = {&f->machine, &free_registers};
    static const char *const names[] = {"as it is", "no queue"};
    free_registers.parameter[QN_SCC_GIC_HOLDS].value = 1000;
    *p = (struct qn_panel){
        .title = "A core interrupts all and itself (3.3a, 3.3b)",
        .x = {.name = "core", .label = qn_label_count, .most = 48},
        .y = {.name = "core cycles until it is interrupted itself",
              .label = qn_label_count,
              .most = 7000}};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(machine); i++) {
        struct qn_panel_curve *c = qn_panel_curve(p, names[i]);
        for (uint32_t v = 0; v < QN_SCC_CORES; v++) {
            double cycles[QN_SCC_CORES] = {0};
            note(f,
                 qn_scc_probe_interrupts(cycles, machine[i], v, QN_SCC_CORES));
            qn_panel_point(c, v, cycles[v]);
        }
    }
}

static void put_and_get(struct figures *f, struct qn_panel *p)
{
    static const struct {
        const char *name;
        struct qn_scc_transfer t;
    } what[] = {
        {"get, 1 router", {.peer = 1}},
        {"get, 9 routers", {.peer = 47}},
        {"put, 1 router", {.peer = 1, .put = true}},
        {"put, 9 routers", {.peer = 47, .put = true}},
        {"get to memory", {.peer = 1, .memory = true}},
        {"put from memory", {.peer = 1, .memory = true, .put = true}},
    };
    *p = (struct qn_panel){.title = "Put and get over lines (4.2)",
                           .x = {.name = "lines of 32 bytes",
                                 .label = qn_label_count,
                                 .most = 128},
                           .y = {.name = "us", .label = qn_label_count}};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(what); i++) {
        struct qn_panel_curve *c = qn_panel_curve(p, what[i].name);
        for (uint32_t lines = 1; lines <= 128; lines += 127) {
            double us = 0;
            struct qn_scc_transfer t = what[i].t;
            t.lines = lines;
            note(f, qn_scc_probe_transfer(&us, &f->machine, &t));
            qn_panel_point(c, lines, us);
        }
    }
}

/* From core 0: along the row, then up the last column. */
static uint32_t core_at(const struct qn_tiled *m, uint32_t routers)
{
    uint32_t right = QN_MIN(routers - 1, m->grid.columns - 1);
    uint32_t up = routers - 1 - right;
    return (up * m->grid.columns + right) * m->grid.cores_per_tile;
}

static void distance(struct figures *f, struct qn_panel *p)
{
    static const char *const names[] = {"get", "put"};
    *p = (struct qn_panel){
        .title = "128 lines over distance (4.2)",
        .x = {.name = "routers", .label = qn_label_count, .most = 10},
        .y = {.name = "us, alone", .label = qn_label_count, .most = 50}};
    for (uint32_t put = 0; put < 2; put++) {
        struct qn_panel_curve *c = qn_panel_curve(p, names[put]);
        uint32_t most = f->machine.grid.columns + f->machine.grid.rows - 1;
        for (uint32_t routers = 1; routers <= most; routers++) {
            double us = 0;
            note(f, qn_scc_probe_transfer(
                        &us, &f->machine,
                        &(struct qn_scc_transfer){
                            .put = put != 0,
                            .peer = core_at(&f->machine, routers),
                            .lines = 128}));
            qn_panel_point(c, routers, us);
        }
    }
}

/* The inputs of the buffer's router have equal shares, which spreads cores. */
static void crowd(struct figures *f, struct qn_panel *p, bool put)
{
    struct qn_tiled fair = f->machine;
    const struct qn_scc_transfer t = {.put = put, .lines = put ? 1 : 128};
    static const char *const names[] = {"fastest", "mean", "slowest"};
    struct qn_panel_curve *c[QN_ARRAY_COUNT(names)];
    fair.parameter[QN_SCC_FAIR].value = 1;
    *p = (struct qn_panel){
        .title = put ? "All put a line into one buffer (4.3b)"
                     : "All get 128 lines from one buffer (4.3a)",
        .x = {.name = "cores", .label = qn_label_count, .most = 48},
        .y = {.name = "us of a core; fair_ports", .label = qn_label_count}};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(names); i++) {
        c[i] = qn_panel_curve(p, names[i]);
    }
    for (uint32_t n = 4; n <= QN_SCC_CORES; n += 4) {
        double us[QN_SCC_CORES] = {0};
        double least = INFINITY;
        double most = 0;
        double mean = 0;
        note(f, qn_scc_probe_crowd(us, &fair, n, &t));
        for (uint32_t i = 0; i < n; i++) {
            least = fmin(least, us[i]);
            most = fmax(most, us[i]);
            mean += us[i] / n;
        }
        qn_panel_point(c[0], n, least);
        qn_panel_point(c[1], n, mean);
        qn_panel_point(c[2], n, most);
    }
}

/* ---- the picture ---- */

#define PANELS 8u

static void draw(const struct qn_panel *panel, FILE *to)
{
    qn_panels_draw(
        &(struct qn_panels){
            .title = "A simulated SCC of 48 cores",
            .description =
                "Latency and throughput of broadcasts over message size, "
                "fan-out and sources; interrupts; put and get, alone and in "
                "a crowd.",
            .note = "quoin sim replay scc --plot; numbers of figures: D. "
                    "Petrovic, EPFL thesis",
            .panel = panel,
            .count = PANELS,
            .columns = COLUMNS,
            .names = 108,
            .height = 290},
        to);
}

int qn_scc_figures(const char *path, FILE *to,
                   struct qn_parse_error *parse_error)
{
    struct figures f = {.rc = QN_OK};
    int rc = qn_tiled_load(&f.machine, path, parse_error);
    if (rc != QN_OK) {
        return rc;
    }
    if (f.machine.kind != QN_TILED_SCC) {
        return QN_EINVAL;
    }
    struct qn_panel *panel = calloc(PANELS, sizeof *panel);
    if (panel == NULL) {
        return QN_ENOMEM;
    }
    latency(&f, &panel[0]);
    throughput(&f, &panel[1]);
    interrupts(&f, &panel[2]);
    many_sources(&f, &panel[3]);
    put_and_get(&f, &panel[4]);
    distance(&f, &panel[5]);
    crowd(&f, &panel[6], false);
    crowd(&f, &panel[7], true);
    if (f.rc == QN_OK) {
        draw(panel, to);
    }
    free(panel);
    return f.rc;
}
