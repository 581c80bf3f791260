/*
 * R1: diamond rings (the paper on them, section 5.2): latency of a single
 * acknowledged broadcast and rate of a burst, by arity, beside balanced trees.
 *
 * What is replayed are our sequenced broadcasts, which take a tenth of the time
 * by themselves: the paper's rings run on a runtime of tasks, with a scheduler
 * and allocation. So each machine has two fitted prices: what that runtime adds
 * to a message, where it is sent and where it is received, and to an operation
 * at the root. Values in print are compared on the TILE-Gx 8072. Of the Xeon
 * E5-4640v2 (4 x 10 cores, 2 threads) and the Xeon Phi 5110P there are no
 * costs: their orders are looked for on the nearest machines that have some.
 *
 * The map is the identity, as there.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/base/mark.h"
#include "core/sim/timed/coherent.h"
#include "loadgen/simulate/command.h"
#include "loadgen/simulate/net/pipeline.h"
#include "loadgen/simulate/replay.h"
#include "loadgen/topo/model/cores.h"
#include "transports/registry.h"

#define NEAR      1.35 /* times, up or down */
#define SIZE      8u   /* bytes: a pointer */
#define ARITY_MAX 6u
#define GHZ_USUAL 2.2 /* of a machine whose clock is not known */

/** Fitted to the values in print: rates first, which are made of these two and
 *  of the messages of the busiest member; latencies bound the first. */
struct rings_fitted {
    uint32_t message_ns, operation_ns;
};
static const struct rings_fitted fitted_gx = {60, 450},
                                 fitted_xeon = {100, 450},
                                 fitted_phi = {420, 100};

/** What came out on one machine. */
struct rings {
    const char *machine;
    const struct rings_fitted *fitted;
    struct qn_prices *prices;
    const struct qn_transport *transport;
    uint32_t nodes;
    struct qn_pipeline_result ring[ARITY_MAX + 1]; /* by arity */
    struct qn_pipeline_result tree;                /* binary */
    const struct qn_replay_opts *o;
    uint32_t *missed;
};

/* ---- machines ---- */

static int open_tiled(struct rings *r, const char *path)
{
    static struct qn_tiled tiled;
    static uint32_t core[QN_CORES_MAX];
    struct qn_parse_error bad = {""};
    int err = qn_tiled_load(&tiled, path, &bad);
    struct qn_machine *m = NULL;
    err = err == QN_OK ? qn_tiled_machine(&m, &tiled) : err;
    if (err != QN_OK) {
        fprintf(stderr, "quoin sim replay: %s\n", bad.text);
        return err;
    }
    r->nodes = m->n;
    for (uint32_t i = 0; i < m->n; i++) {
        core[i] = m->core[i].os;
    }
    err = qn_tiled_prices(&r->prices, &tiled, core, m->n);
    qn_machine_destroy(m);
    return err;
}

/* The first `nodes` cores, dealt over the memory nodes; 0: all. */
static int open_coherent(struct rings *r, const char *path, uint32_t nodes)
{
    static uint32_t core[QN_CORES_MAX];
    struct qn_parse_error bad = {""};
    struct qn_machine *all = NULL, *m = NULL;
    int err = qn_machine_load(&all, path, &bad);
    if (err != QN_OK) {
        fprintf(stderr, "quoin sim replay: %s\n", bad.text);
        return err;
    }
    r->nodes = nodes > 0 ? QN_MIN(nodes, all->n) : all->n;
    qn_cores_deal(core, all);
    err = qn_machine_restrict(&m, all, core, r->nodes);
    if (err == QN_OK) {
        const double ghz = m->facts.clock_ghz;
        struct qn_coherent_opts c = {.clock_ghz = ghz > 0 ? ghz : GHZ_USUAL};
        for (uint32_t i = 0; i < r->nodes; i++) {
            core[i] = i;
        }
        err = qn_coherent_create(&r->prices, m, core, r->nodes, &c);
    }
    qn_machine_destroy(all);
    qn_machine_destroy(m);
    return err;
}

/* ---- runs ---- */

static int run(struct rings *r, const struct qn_tree *tree,
               const struct qn_diamond_ring *ring,
               struct qn_pipeline_result *out)
{
    const struct qn_pipeline_opts o = {.transport = r->transport,
                                       .prices = r->prices,
                                       .tree = tree,
                                       .ring = ring,
                                       .nodes = r->nodes,
                                       .size = SIZE,
                                       .operation_ns = r->fitted->operation_ns,
                                       .seed = 1};
    int err = qn_pipeline_run(out, &o);
    return err == QN_OK && out->wrong > 0 ? QN_EIO : err;
}

static int run_ring(struct rings *r, uint32_t arity)
{
    struct qn_diamond_ring *ring;
    const struct qn_diamond_ring_opts o = {.n = r->nodes, .k = arity};
    int err = qn_diamond_ring_create(&ring, &o);
    if (err == QN_OK) {
        err = run(r, NULL, ring, &r->ring[arity]);
        qn_diamond_ring_destroy(ring);
    }
    return err;
}

static int run_tree(struct rings *r)
{
    static struct qn_tree tree;
    static qn_node_t order[QN_CORES_MAX];
    for (uint32_t i = 0; i < r->nodes; i++) {
        order[i] = (qn_node_t)i;
    }
    int err = qn_tree_build(&tree, "tree:k=2", order, r->nodes);
    return err == QN_OK ? run(r, &tree, NULL, &r->tree) : err;
}

/* ---- rows ---- */

static void print(const struct rings *r, struct qn_replay_row *row)
{
    *r->missed += !qn_replay_row_print(row, r->o->to);
}

/* How many times larger or smaller than in print. */
static void value(const struct rings *r, uint32_t arity, bool rate,
                  double published)
{
    char text[32];
    const double got =
        rate ? r->ring[arity].per_us : r->ring[arity].latency_ns / 1000;
    struct qn_replay_row row = {.id = "R1",
                                .limit = NEAR,
                                .most = true,
                                .published = text,
                                .got =
                                    QN_MAX(got / published, published / got)};
    (void)snprintf(text, sizeof text, rate ? "%g/us" : "%g us", published);
    (void)snprintf(row.what, sizeof row.what,
                   "%s: ring k=%u, %s %.2f, times off", r->machine, arity,
                   rate ? "per us" : "us", got);
    print(r, &row);
}

static void order(const struct rings *r, const char *what, double larger,
                  double smaller)
{
    struct qn_replay_row row = {
        .id = "R1", .limit = 1, .got = larger / smaller};
    (void)snprintf(row.what, sizeof row.what, "%s: %s", r->machine, what);
    print(r, &row);
}

/* Along the front: a smaller arity has more of both. */
static void front(const struct rings *r, uint32_t large, uint32_t small)
{
    char what[64];
    (void)snprintf(what, sizeof what, "latency, k=%u over k=%u", small, large);
    order(r, what, r->ring[small].latency_ns, r->ring[large].latency_ns);
    (void)snprintf(what, sizeof what, "rate, k=%u over k=%u", small, large);
    order(r, what, r->ring[small].per_us, r->ring[large].per_us);
}

static void beside_trees(const struct rings *r)
{
    order(r, "latency, binary tree over ring k=2", r->tree.latency_ns,
          r->ring[2].latency_ns);
    order(r, "rate, ring k=2 over binary tree", r->ring[2].per_us,
          r->tree.per_us);
}

/* ---- the group ---- */

static int measure(struct rings *r, const uint32_t *arity, uint32_t count)
{
    const qn_ps_t message = r->fitted->message_ns * QN_PS_PER_NS;
    r->prices->mark[QN_MARK_SEND] = message;
    r->prices->mark[QN_MARK_RECEIVE] = message;
    int err = run_tree(r);
    for (uint32_t i = 0; i < count && err == QN_OK; i++) {
        err = run_ring(r, arity[i]);
    }
    qn_prices_destroy(r->prices);
    return err;
}

static int replay_gx(struct rings *r, const char *path)
{
    static const uint32_t arity[] = {6, 2, 1};
    static const double us[] = {1.6, 1.8, 8}, per_us[] = {0.7, 1.5, 2};
    r->transport = qn_transport_find("udn");
    int err = open_tiled(r, path);
    err = err == QN_OK ? measure(r, arity, QN_ARRAY_COUNT(arity)) : err;
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(arity) && err == QN_OK; i++) {
        value(r, arity[i], false, us[i]);
        value(r, arity[i], true, per_us[i]);
    }
    if (err == QN_OK) {
        front(r, 6, 2);
        front(r, 2, 1);
        beside_trees(r);
    }
    return err;
}

static int replay_coherent(struct rings *r, const char *path, uint32_t nodes,
                           const uint32_t *arity, uint32_t count)
{
    r->transport = qn_transport_find("ump");
    int err = open_coherent(r, path, nodes);
    err = err == QN_OK ? measure(r, arity, count) : err;
    for (uint32_t i = 1; i < count && err == QN_OK; i++) {
        front(r, arity[i - 1], arity[i]);
    }
    if (err == QN_OK) {
        beside_trees(r);
    }
    return err;
}

int qn_replay_rings(const struct qn_replay_opts *o, uint32_t *missed)
{
    static const uint32_t xeon[] = {6, 2, 1}, phi[] = {3, 2};
    char path[4096];
    struct rings r = {.machine = "TILE-Gx 8072",
                      .fitted = &fitted_gx,
                      .o = o,
                      .missed = missed};
    (void)snprintf(path, sizeof path, "%s/tilegx_8072.json", o->machines[0]);
    int err = replay_gx(&r, path);
    if (err == QN_OK) {
        r.machine = "Xeon 4x12, 80 threads";
        r.fitted = &fitted_xeon;
        (void)snprintf(path, sizeof path, "%s/haswell_4x12x2", o->machines[0]);
        err = replay_coherent(&r, path, 80, xeon, QN_ARRAY_COUNT(xeon));
    }
    if (err == QN_OK) {
        r.machine = "Xeon Phi 7210";
        r.fitted = &fitted_phi;
        (void)snprintf(path, sizeof path, "%s/xeon_phi_7210_1x64",
                       o->machines[0]);
        err = replay_coherent(&r, path, 0, phi, QN_ARRAY_COUNT(phi));
    }
    if (err != QN_OK) {
        fprintf(stderr, "quoin sim replay: %s\n", qn_strerror(err));
    }
    return err == QN_OK ? 0 : 2;
}
