/*
 * R1: diamond rings (the paper on them, section 5): latency of a single
 * acknowledged broadcast and rate of a burst, by arity, beside balanced trees.
 *
 * The paper's broadcasts are tasks. So are those of core/tasks, in its three
 * variants: DR, SDR and BT. Sequenced broadcasts over queuepairs are replayed
 * beside them.
 *
 * Machines: the TILE-Gx 8072 by its documented prices; the Xeon E5-4640v2 (4 x
 * 10 cores, 2 threads) and the Xeon Phi 5110P (60 cores, 4 threads) by formula,
 * from published figures of relatives (machines/by_formula). Threads of a core
 * share its cache and its issue.
 *
 * Two prices are fitted per machine: what the paper's code adds to a message,
 * where it is sent and where it is received, and to an operation at the root.
 * On the TILE-Gx the paper's tasks go through queues of words, as our
 * queuepairs do: values in print are compared with these. Our tasks go through
 * memory: their orders are looked for.
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
#include "loadgen/simulate/net/task_pipeline.h"
#include "loadgen/simulate/replay.h"
#include "loadgen/topo/model/cores.h"
#include "transports/registry.h"

#define NEAR      1.35 /* times, up or down */
#define SIZE      8u   /* bytes: a pointer */
#define ARITY_MAX 6u
#define MACHINES  3u
#define FORMS     5u

/** What is run. */
enum form {
    DR = QN_TASK_DR, /* tasks */
    SDR = QN_TASK_SDR,
    BT = QN_TASK_BT,
    RING, /* over queuepairs */
    TREE,
};

static const char *const form_name[FORMS] = {"DR", "SDR", "BT", "ring", "tree"};

/** Fitted to the values in print: rates first, which are made of these two and
 *  of the messages of the busiest member; latencies bound the first. */
struct rings_fitted {
    uint32_t message_ns, operation_ns;
};

/** A machine, and what is run there. */
struct rings_machine {
    const char *name, *file, *transport;
    struct rings_fitted fitted;
    uint32_t arity[FORMS]; /* mask */
};

#define K(k) (1u << (k))

static const struct rings_machine machines[MACHINES] = {
    {"TILE-Gx 8072",
     "tilegx_8072.json",
     "udn",
     {60, 450},
     {K(2) | K(1), K(2), K(2), K(6) | K(2) | K(1), K(2)}},
    {"Xeon 4x10x2",
     "by_formula/xeon_e5_4640v2_4x10x2",
     "ump",
     {95, 0},
     {K(2) | K(1), K(6) | K(2), K(2), K(6) | K(2) | K(1), K(2)}},
    {"Phi 60x4",
     "by_formula/xeon_phi_5110p_1x60x4",
     "ump",
     {140, 0},
     {K(3) | K(2) | K(1), K(2), K(2), K(3) | K(2), K(2)}},
};

/** What came out on one machine. */
struct rings {
    const struct rings_machine *machine;
    struct qn_machine *costs; /* coherent */
    struct qn_tiled tiled;
    bool is_tiled;
    uint32_t nodes;
    struct qn_pipeline_result got[FORMS][ARITY_MAX + 1]; /* by arity */
    const struct qn_replay_opts *o;
    uint32_t *missed;
};

/* ---- machines ---- */

static int open_machine(struct rings *r)
{
    char path[4096];
    struct qn_parse_error bad = {""};
    (void)snprintf(path, sizeof path, "%s/%s", r->o->machines[0],
                   r->machine->file);
    r->is_tiled = qn_tiled_is(path);
    int err = r->is_tiled ? qn_tiled_load(&r->tiled, path, &bad)
                          : qn_machine_load(&r->costs, path, &bad);
    if (err == QN_OK && r->is_tiled) {
        err = qn_tiled_machine(&r->costs, &r->tiled);
    }
    if (err != QN_OK) {
        fprintf(stderr, "quoin sim replay: %s\n", bad.text);
        return err;
    }
    r->nodes = r->costs->n;
    return QN_OK;
}

static int make_prices(struct qn_prices **out, const struct rings *r)
{
    const uint32_t message_ns = r->machine->fitted.message_ns;
    static uint32_t core[QN_CORES_MAX];
    const struct qn_coherent_opts c = {.clock_ghz = r->costs->facts.clock_ghz,
                                       .hyper_threads = true};
    for (uint32_t i = 0; i < r->nodes; i++) {
        core[i] = r->is_tiled ? r->costs->core[i].os : i;
    }
    int err = r->is_tiled
                  ? qn_tiled_prices(out, &r->tiled, core, r->nodes)
                  : qn_coherent_create(out, r->costs, core, r->nodes, &c);
    if (err == QN_OK) {
        (*out)->mark[QN_MARK_SEND] = message_ns * QN_PS_PER_NS;
        (*out)->mark[QN_MARK_RECEIVE] = message_ns * QN_PS_PER_NS;
    }
    return err;
}

/* ---- runs ---- */

static int run_tasks(struct rings *r, enum form form,
                     const struct qn_tree *tree,
                     const struct qn_diamond_ring *ring,
                     struct qn_pipeline_result *out)
{
    struct qn_task_pipeline_opts o = {.kind = (enum qn_task_broadcast_kind)form,
                                      .tree = tree,
                                      .ring = ring,
                                      .nodes = r->nodes,
                                      .operation_ns =
                                          r->machine->fitted.operation_ns,
                                      .seed = 1};
    int err = make_prices(&o.prices, r);
    if (err == QN_OK) {
        err = qn_task_pipeline_run(out, &o);
        qn_prices_destroy(o.prices);
    }
    return err;
}

static int run_queuepairs(struct rings *r, const struct qn_tree *tree,
                          const struct qn_diamond_ring *ring,
                          struct qn_pipeline_result *out)
{
    struct qn_pipeline_opts o = {
        .transport = qn_transport_find(r->machine->transport),
        .tree = tree,
        .ring = ring,
        .nodes = r->nodes,
        .size = SIZE,
        .operation_ns = r->machine->fitted.operation_ns,
        .seed = 1};
    int err = make_prices(&o.prices, r);
    if (err == QN_OK) {
        err = qn_pipeline_run(out, &o);
        qn_prices_destroy(o.prices);
    }
    return err;
}

static int run_form(struct rings *r, enum form form, uint32_t arity)
{
    static struct qn_tree tree;
    static qn_node_t order[QN_CORES_MAX];
    char name[16];
    struct qn_diamond_ring *ring = NULL;
    struct qn_pipeline_result *out = &r->got[form][arity];
    const struct qn_diamond_ring_opts o = {.n = r->nodes, .k = arity};
    const bool over_tree = form == BT || form == TREE;
    for (uint32_t i = 0; i < r->nodes; i++) {
        order[i] = (qn_node_t)i;
    }
    (void)snprintf(name, sizeof name, "tree:k=%u", arity);
    int err = over_tree ? qn_tree_build(&tree, name, order, r->nodes)
                        : qn_diamond_ring_create(&ring, &o);
    if (err == QN_OK && (form == RING || form == TREE)) {
        err = run_queuepairs(r, over_tree ? &tree : NULL, ring, out);
    } else if (err == QN_OK) {
        err = run_tasks(r, form, over_tree ? &tree : NULL, ring, out);
    }
    qn_diamond_ring_destroy(ring);
    return err == QN_OK && out->wrong > 0 ? QN_EIO : err;
}

static int run_all(struct rings *r)
{
    int err = open_machine(r);
    for (uint32_t form = 0; form < FORMS; form++) {
        for (uint32_t k = 1; k <= ARITY_MAX && err == QN_OK; k++) {
            if ((r->machine->arity[form] & K(k)) != 0) {
                err = run_form(r, (enum form)form, k);
            }
        }
    }
    qn_machine_destroy(r->costs);
    r->costs = NULL;
    return err;
}

/* ---- rows ---- */

static void print(const struct rings *r, struct qn_replay_row *row)
{
    *r->missed += !qn_replay_row_print(row, r->o->to);
}

static double latency_us(const struct rings *r, enum form form, uint32_t arity)
{
    return r->got[form][arity].latency_ns / 1000;
}

/* How many times larger or smaller than in print. */
static void off(const struct rings *r, enum form form, uint32_t arity,
                const char *unit, double got, double published)
{
    char text[32];
    struct qn_replay_row row = {.id = "R1",
                                .limit = NEAR,
                                .most = true,
                                .published = text,
                                .got =
                                    QN_MAX(got / published, published / got)};
    (void)snprintf(text, sizeof text, "%g %s", published, unit);
    (void)snprintf(row.what, sizeof row.what, "%s: %s k=%u, %.2f %s, times off",
                   r->machine->name, form_name[form], arity, got, unit);
    print(r, &row);
}

static void values(const struct rings *r, enum form form, uint32_t arity,
                   double us, double per_us)
{
    off(r, form, arity, "us", latency_us(r, form, arity), us);
    if (per_us > 0) {
        off(r, form, arity, "per us", r->got[form][arity].per_us, per_us);
    }
}

/** One end of an order. */
struct of {
    enum form form;
    uint32_t arity;
};

static void order(const struct rings *r, const char *what, struct of a,
                  struct of b, double ratio, const char *why)
{
    struct qn_replay_row row = {
        .id = "R1", .limit = 1, .got = ratio, .why = why};
    (void)snprintf(row.what, sizeof row.what, "%s: %s, %s k=%u over %s k=%u",
                   r->machine->name, what, form_name[a.form], a.arity,
                   form_name[b.form], b.arity);
    print(r, &row);
}

static void higher_rate(const struct rings *r, struct of a, struct of b,
                        const char *why)
{
    order(r, "rate", a, b,
          r->got[a.form][a.arity].per_us / r->got[b.form][b.arity].per_us, why);
}

static void longer(const struct rings *r, struct of a, struct of b)
{
    order(r, "latency", a, b,
          latency_us(r, a.form, a.arity) / latency_us(r, b.form, b.arity),
          NULL);
}

/* Along the front one has more of both. */
static void front(const struct rings *r, struct of more, struct of less)
{
    longer(r, more, less);
    higher_rate(r, more, less, NULL);
}

static const struct of dr1 = {DR, 1}, dr2 = {DR, 2}, dr3 = {DR, 3},
                       sdr2 = {SDR, 2}, sdr6 = {SDR, 6}, bt2 = {BT, 2},
                       ring1 = {RING, 1}, ring2 = {RING, 2}, ring3 = {RING, 3},
                       ring6 = {RING, 6}, tree2 = {TREE, 2};

static void beside_trees(const struct rings *r)
{
    longer(r, bt2, dr2);
    higher_rate(r, dr2, bt2, NULL);
    longer(r, tree2, ring2);
    higher_rate(r, ring2, tree2,
                "over queuepairs a tree acknowledges all operations of a turn "
                "with one message");
}

static void rows_gx(const struct rings *r)
{
    values(r, RING, 6, 1.6, 0.7);
    values(r, RING, 2, 1.8, 1.5);
    values(r, RING, 1, 8, 2);
    front(r, ring2, ring6);
    front(r, ring1, ring2);
    front(r, dr1, dr2);
    beside_trees(r);
    higher_rate(r, dr2, sdr2, NULL);
    higher_rate(
        r, bt2, sdr2,
        "in print they are similar, and so are the messages of an inner "
        "node, which here decide: 6, and 3 in the ring");
}

static void rows_xeon(const struct rings *r)
{
    values(r, SDR, 6, 5.4, 0.35);
    values(r, SDR, 2, 6, 0.65);
    values(r, DR, 1, 17, 1.45);
    front(r, sdr2, sdr6);
    front(r, dr1, sdr2);
    front(r, ring2, ring6);
    front(r, ring1, ring2);
    beside_trees(r);
    higher_rate(r, sdr2, dr2,
                "a member that works in order waits for tasks which newer ones "
                "overtook; links that carry one transfer at a time change that "
                "to 0.98, oldest first to 1.00");
}

static void rows_phi(const struct rings *r)
{
    values(r, DR, 3, 15, 0.37);
    values(r, DR, 2, 17, 0.55);
    values(r, BT, 2, 24, 0);
    front(r, dr2, dr3);
    front(r, ring2, ring3);
    higher_rate(r, dr2, dr1, NULL);
    beside_trees(r);
    higher_rate(r, dr2, sdr2, NULL);
    higher_rate(r, sdr2, bt2, NULL);
}

static int replay(const struct qn_replay_opts *o, uint32_t i, uint32_t *missed)
{
    static void (*const rows[MACHINES])(const struct rings *) = {
        rows_gx, rows_xeon, rows_phi};
    static struct rings r; /* a price list is large */
    r = (struct rings){.machine = &machines[i], .o = o, .missed = missed};
    int err = run_all(&r);
    if (err != QN_OK) {
        fprintf(stderr, "quoin sim replay: %s: %s\n", machines[i].name,
                qn_strerror(err));
        return 2;
    }
    rows[i](&r);
    return 0;
}

int qn_replay_rings(const struct qn_replay_opts *o, uint32_t *missed)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < MACHINES; i++) {
        if (o->only != NULL && strstr(machines[i].name, o->only) == NULL) {
            continue;
        }
        int status = replay(o, i, missed);
        if (status != 0) {
            return status;
        }
        count++;
    }
    if (count == 0) {
        fprintf(stderr,
                "quoin sim replay: --only %s names no machine of rings; choose "
                "Gx, Xeon or Phi\n",
                o->only);
        return 2;
    }
    return 0;
}
