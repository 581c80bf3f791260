/*
 * S2: a barrier over a planned tree beside the dissemination and the MCS
 * barrier. (Smelt, table 3.)
 *
 * Print has them on three machines that there are no costs of. Each is stood
 * for by its nearest relative: as many threads, dealt round robin over the
 * memory nodes of four sockets. Print measures a loop, in cycles, with the
 * software; here one barrier is timed at a time, and only transfers are priced.
 * So orders and ratios are compared, no times.
 *
 * "parlibMCS" of print is called a dissemination barrier there; it is compared
 * with the tree barrier of Mellor-Crummey and Scott.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/barrier/selection/selection.h"
#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "core/sim/timed/coherent.h"
#include "loadgen/simulate/barrier/shared_barrier.h"
#include "loadgen/simulate/command.h"
#include "loadgen/simulate/replay.h"
#include "loadgen/topo/model/cores.h"
#include "transports/registry.h"

#define COUNT   3u  /* barriers over the tree: they repeat */
#define WARM    33u /* each line of a lane was used once */
#define WITHIN  0.35
/* On shared lines: they repeat but for the order at a line. */
#define SHARED  5u
#define EPISODE (100 * QN_US) /* more than one takes */
#define NODES   4u            /* of memory, of those that have more sockets */

/* Of a transfer: for how long it occupies a narrow link between sockets. */
#define NARROW 0.2

#define WIDE_LINKS                                                             \
    "links between sockets are wide here; with narrow ones (above) "           \
    "dissemination takes 1.42 of the tree's time"
#define OTHER_AMD                                                              \
    "two cores of print's machine share a module, and only there MCS is as "   \
    "fast as dissemination; what stands for it is of the generation before"

/* What one barrier takes. */
struct barriers {
    double tree, dissemination, mcs, central;
    double lines; /* over a tree as well, on shared lines */
    double narrow_lines, narrow_dissemination; /* with narrow links */
};

static const struct s2 {
    const char *print, *machine;
    uint32_t nodes; /* of memory, of the machine; 0: all */
    uint32_t threads;
    struct barriers published; /* cycles */
    const char *why;           /* rows do not hold */
} figure[] = {
    {"SB",
     "by_formula/xeon_e5_4640v2_4x10x2",
     0,
     32,
     {.tree = 4725, .dissemination = 6699, .mcs = 16718},
     WIDE_LINKS},
    {"SB",
     "by_formula/xeon_e5_4640v2_4x10x2",
     0,
     64,
     {.tree = 6348, .dissemination = 19762, .mcs = 38494},
     NULL},
    {"NL",
     "westmere_8x10x2",
     NODES,
     32,
     {.tree = 4035, .dissemination = 5777, .mcs = 13836},
     NULL},
    {"NL",
     "westmere_8x10x2",
     NODES,
     64,
     {.tree = 5755, .dissemination = 6333, .mcs = 15604},
     NULL},
    {"AMD",
     "by_formula/opteron_6176_4x12",
     0,
     16,
     {.tree = 4792, .dissemination = 4596, .mcs = 4288},
     OTHER_AMD},
    {"AMD",
     "by_formula/opteron_6176_4x12",
     0,
     32,
     {.tree = 7016, .dissemination = 5220, .mcs = 5989},
     OTHER_AMD},
};

/* ---- a machine of as many threads ---- */

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* @return n cores of the first `nodes` memory nodes, dealt; NULL: no memory. */
static struct qn_machine *part(const struct qn_machine *m, uint32_t nodes,
                               uint32_t n)
{
    static uint32_t index[QN_CORES_MAX];
    struct qn_machine *some = NULL;
    uint32_t taken = 0;
    qn_cores_deal(index, m);
    for (uint32_t i = 0; i < m->n && taken < n; i++) {
        if (nodes == 0 || m->core[index[i]].node < nodes) {
            index[taken++] = index[i];
        }
    }
    qsort(index, taken, sizeof index[0], by_value);
    return qn_machine_restrict(&some, m, index, taken) == QN_OK ? some : NULL;
}

/* ---- runs ---- */

static int run_tree(const struct qn_machine *m, double ghz, double *ns)
{
    struct qn_simulate *s = calloc(1, sizeof *s);
    struct qn_topology_spec_opts spec = {
        .goal = qn_simulate_goal(QN_VIRTUAL_BARRIER),
        .root = QN_ROOT_FREE,
        .q = 1,
        .seed = 1,
        .one_tree = true};
    if (s == NULL) {
        return 1;
    }
    *s = (struct qn_simulate){.program = "quoin sim replay",
                              .op = QN_VIRTUAL_BARRIER,
                              .transport = qn_transport_at(0),
                              .size = QN_VIRTUAL_SIZE_MIN,
                              .count = COUNT,
                              .warm = WARM,
                              .bare = true,
                              .alone = true,
                              .ghz = ghz,
                              .m = (struct qn_machine *)(uintptr_t)m};
    const int status = qn_simulate_add(s, "auto", &spec);
    if (status == 0) {
        *ns = s->row[0].median_ns;
        qn_timed_result_free(&s->row[0].run);
    }
    free(s);
    return status;
}

static int run_shared(const struct qn_machine *m,
                      struct qn_shared_barrier_opts *o, double ghz, double link,
                      double *ns)
{
    static uint32_t core[QN_CORES_MAX];
    const struct qn_coherent_opts c = {
        .clock_ghz = ghz, .bare = true, .link = link};
    struct qn_shared_barrier_result r;
    for (uint32_t i = 0; i < m->n; i++) {
        core[i] = i;
    }
    int err = qn_coherent_create(&o->prices, m, core, m->n, &c);
    if (err != QN_OK) {
        return err;
    }
    err = qn_shared_barrier_run(&r, o);
    qn_prices_destroy(o->prices);
    if (err != QN_OK) {
        return err;
    }
    qn_timed_result_free(&r.run);
    if (r.incomplete || r.wrong > 0) {
        return QN_ECORRUPT;
    }
    *ns = r.median_ns;
    return QN_OK;
}

int qn_replay_s2_shared(const struct qn_machine *m, const char *form,
                        double ghz, double link, double *ns)
{
    struct qn_barrier_selection c;
    const int err = m->n < 2 ? QN_EINVAL : qn_barrier_select(&c, m, m->n);
    if (err != QN_OK) {
        return err;
    }
    struct qn_shared_barrier_opts o = {.form = form != NULL ? form : c.form,
                                       .tree = &c.tree,
                                       .members = m->n,
                                       .episode_ns = EPISODE,
                                       .alone = true,
                                       .count = SHARED,
                                       .seed = 1};
    return run_shared(m, &o, ghz, link, ns);
}

static int run_all(const struct qn_machine *m, struct barriers *b)
{
    const double ghz =
        m->facts.clock_ghz > 0 ? m->facts.clock_ghz : QN_GHZ_USUAL;
    const int status = run_tree(m, ghz, &b->tree);
    int err =
        qn_replay_s2_shared(m, "dissemination", ghz, 0, &b->dissemination);
    err = err == QN_OK ? qn_replay_s2_shared(m, "mcs", ghz, 0, &b->mcs) : err;
    err = err == QN_OK ? qn_replay_s2_shared(m, "central", ghz, 0, &b->central)
                       : err;
    err =
        err == QN_OK ? qn_replay_s2_shared(m, "tree", ghz, 0, &b->lines) : err;
    err = err == QN_OK
              ? qn_replay_s2_shared(m, "tree", ghz, NARROW, &b->narrow_lines)
              : err;
    err = err == QN_OK ? qn_replay_s2_shared(m, "dissemination", ghz, NARROW,
                                             &b->narrow_dissemination)
                       : err;
    if (err != QN_OK) {
        fprintf(stderr, "quoin sim replay: %s: %s\n", m->name,
                qn_strerror(err));
        return 1;
    }
    return status;
}

/* ---- rows ---- */

/* The order of two. */
static void compare(const struct s2 *f, const char *what, double published,
                    double got, const struct qn_replay_opts *o,
                    uint32_t *missed)
{
    char text[24];
    struct qn_replay_row row = {.id = "S2",
                                .published = text,
                                .why = f->why,
                                .limit = 1,
                                .most = published < 1,
                                .got = got};
    snprintf(text, sizeof text, "%.2f", published);
    snprintf(row.what, sizeof row.what, "%s, %u threads (%s): %s", f->print,
             f->threads, f->machine, what);
    *missed += !qn_replay_row_print(&row, o->to);
}

/* The ratio. */
static void value(const struct s2 *f, const struct barriers *b,
                  const struct qn_replay_opts *o, uint32_t *missed)
{
    const double published = f->published.dissemination / f->published.tree;
    const double got = b->dissemination / b->tree;
    struct qn_replay_row row = {.id = "S2",
                                .published = "1",
                                .why = f->why,
                                .limit = WITHIN,
                                .most = true,
                                .got = got > published ? got / published - 1
                                                       : 1 - got / published};
    snprintf(row.what, sizeof row.what,
             "%s, %u threads: dissemination over tree, %.2f and %.2f; off by",
             f->print, f->threads, published, got);
    *missed += !qn_replay_row_print(&row, o->to);
}

static int one_figure(const struct s2 *f, const struct qn_machine *m,
                      const struct qn_replay_opts *o, uint32_t *missed)
{
    const struct barriers *p = &f->published;
    struct barriers b;
    const int status = run_all(m, &b);
    if (status != 0) {
        return status;
    }
    fprintf(
        o->to,
        "     %s, %u threads: tree %.0f ns, on shared lines %.0f; "
        "dissemination %.0f, mcs %.0f, central %.0f; with narrow links %.0f "
        "and %.0f\n",
        f->machine, m->n, b.tree, b.lines, b.dissemination, b.mcs, b.central,
        b.narrow_lines, b.narrow_dissemination);
    compare(f, "dissemination over tree", p->dissemination / p->tree,
            b.dissemination / b.tree, o, missed);
    compare(f, "mcs over dissemination", p->mcs / p->dissemination,
            b.mcs / b.dissemination, o, missed);
    if (f->threads == 32 && p->tree < p->dissemination) {
        value(f, &b, o, missed);
    }
    return 0;
}

int qn_replay_s2(const struct qn_replay_opts *o, uint32_t *missed)
{
    int status = 0;
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(figure) && status == 0; i++) {
        struct qn_parse_error bad = {""};
        struct qn_machine *m;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", o->machines[0], figure[i].machine);
        if (qn_machine_load(&m, path, &bad) != QN_OK) {
            fprintf(stderr, "quoin sim replay: %s\n", bad.text);
            return 2;
        }
        struct qn_machine *some = part(m, figure[i].nodes, figure[i].threads);
        status = some != NULL ? one_figure(&figure[i], some, o, missed) : 1;
        qn_machine_destroy(some);
        qn_machine_destroy(m);
    }
    return status;
}
