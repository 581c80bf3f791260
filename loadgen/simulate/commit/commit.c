/* See commit.h. */
#include "loadgen/simulate/commit/commit.h"

#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/simulate/commit/commit_internal.h"

#define CELLS_USUAL   256u
#define COMMAND_USUAL 24u
#define COMMAND_LEAST 16u

/* ---- options ------------------------------------------------------------- */

static struct qn_sim_commit_opts complete(const struct qn_sim_commit_opts *o)
{
    struct qn_sim_commit_opts all = *o;
    all.cells = o->cells != 0 ? o->cells : CELLS_USUAL;
    all.command_bytes =
        o->command_bytes != 0 ? o->command_bytes : COMMAND_USUAL;
    all.settle_ns = o->settle_ns != 0 ? o->settle_ns : QN_S;
    return all;
}

static bool shape_good(const struct qn_sim_commit_opts *o)
{
    return o->shape != NULL && o->shape->n + !o->memory == o->replicas &&
           qn_shape_check(o->shape) == QN_OK;
}

static bool opts_good(const struct qn_sim_commit_opts *o)
{
    return o->replicas >= 2 && o->replicas <= QN_NODES_MAX &&
           o->machine != NULL && o->core != NULL && o->clients >= 1 &&
           o->clients <= QN_SIM_CLIENTS_MAX && o->reads >= 0 && o->reads <= 1 &&
           o->command_bytes >= COMMAND_LEAST &&
           o->command_bytes <= QN_SIM_COMMAND_MAX && o->load_ns > 0 &&
           (o->load == 0 || o->load >> (o->replicas - 1) >> 1 == 0) &&
           (o->tree != QN_SIM_TREE_NAMED || o->topology != NULL) &&
           (o->tree != QN_SIM_TREE_SHAPE || shape_good(o));
}

/* ---- a run --------------------------------------------------------------- */

static int make_result(struct qn_sim_commit_result *out)
{
    *out = (struct qn_sim_commit_result){0};
    out->commit = calloc(1, sizeof *out->commit);
    out->everywhere = calloc(1, sizeof *out->everywhere);
    out->read = calloc(1, sizeof *out->read);
    return out->commit == NULL || out->everywhere == NULL || out->read == NULL
               ? QN_ENOMEM
               : QN_OK;
}

/* Of a machine of tiles: its own, but for library calls. */
static int tiled_prices(struct qn_prices **out, const struct qn_sim_group *g)
{
    uint32_t core[QN_NODES_MAX];
    const struct qn_sim_commit_opts *o = &g->o;
    for (uint32_t i = 0; i < o->replicas; i++) {
        core[i] = o->machine->core[g->out->core[i]].os;
    }
    int err = qn_tiled_prices(out, o->tiled, core, o->replicas);
    for (uint32_t i = 0; err == QN_OK && o->prices != NULL && i < QN_MARKS;
         i++) {
        (*out)->mark[i] = (qn_ps_t)(o->prices->mark_cycles[i] * 1000 /
                                    o->machine->facts.clock_ghz);
    }
    return err;
}

static int make_prices(struct qn_prices **out, const struct qn_sim_group *g)
{
    static const struct qn_coherent_opts usual;
    const struct qn_sim_commit_opts *o = &g->o;
    return o->tiled != NULL
               ? tiled_prices(out, g)
               : qn_coherent_create(out, o->machine, g->out->core, o->replicas,
                                    o->prices != NULL ? o->prices : &usual);
}

int qn_sim_group_run(struct qn_sim_group *g,
                     void (*node)(void *ctx, uint32_t node), void *ctx,
                     void (*ended)(void *ctx, uint32_t node, bool killed))
{
    const struct qn_sim_commit_opts *o = &g->o;
    struct qn_prices *prices;
    int err = make_prices(&prices, g);
    if (err != QN_OK) {
        return err;
    }
    const struct qn_timed_opts t = {
        .nodes = o->replicas,
        .prices = prices,
        .main = node,
        .ctx = ctx,
        .seed = o->seed,
        .jitter = o->jitter,
        .until_ns = o->warm_ns + o->load_ns + o->settle_ns,
        .fault = o->fault,
        .faults = o->faults,
        .ended = ended,
        .event = o->event,
        .event_ctx = o->ctx,
    };
    err = qn_timed_run(&t, &g->out->machine);
    qn_prices_destroy(prices);
    return err;
}

/* What only the drivers know. */
static void ask_drivers(struct qn_sim_group *g)
{
    for (qn_node_t i = 0; i < g->o.replicas; i++) {
        struct qn_driver_status st;
        const struct qn_sim_replica *r = &g->replica[i];
        if (r->ended) {
            continue;
        }
        qn_driver_status(r->driver, &st);
        g->out->failovers = QN_MAX(g->out->failovers, st.failovers);
        g->out->commands = QN_MAX(g->out->commands, st.commands);
        g->out->slots = QN_MAX(g->out->slots, st.batches);
        g->out->missed += st.fetches;
    }
}

static int run_group(struct qn_sim_group *g)
{
    int err = qn_sim_group_plan(g);
    if (err == QN_OK) {
        err = qn_sim_group_open(g);
    }
    if (err == QN_OK) {
        err = qn_sim_group_open_drivers(g);
    }
    if (err == QN_OK) {
        err = qn_sim_group_run(g, qn_sim_replica_main, g, qn_sim_replica_ended);
    }
    if (err == QN_OK) {
        g->out->broken = qn_sim_history_check(g);
        ask_drivers(g);
    }
    return err;
}

int qn_sim_group_begin(struct qn_sim_group *g, struct qn_sim_commit_result *out,
                       const struct qn_sim_commit_opts *o)
{
    *g = (struct qn_sim_group){.o = complete(o), .out = out};
    if (!opts_good(&g->o)) {
        return QN_EINVAL;
    }
    g->load_from = g->o.warm_ns * QN_PS_PER_NS;
    g->load_until = g->load_from + g->o.load_ns * QN_PS_PER_NS;
    int err = make_result(out);
    if (err != QN_OK) {
        qn_sim_commit_free(out);
    }
    return err;
}

void qn_sim_group_end(struct qn_sim_group *g)
{
    qn_sim_group_close(g);
    qn_machine_destroy(g->costs);
    free(g->history);
    free(g->seen);
}

int qn_sim_commit_run(struct qn_sim_commit_result *out,
                      const struct qn_sim_commit_opts *o)
{
    struct qn_sim_group g;
    int err = qn_sim_group_begin(&g, out, o);
    if (err != QN_OK) {
        return err;
    }
    err = run_group(&g);
    qn_sim_group_end(&g);
    if (err != QN_OK) {
        qn_sim_commit_free(out);
    }
    return err;
}

void qn_sim_commit_free(struct qn_sim_commit_result *r)
{
    free(r->commit);
    free(r->everywhere);
    free(r->read);
    qn_timed_result_free(&r->machine);
    *r = (struct qn_sim_commit_result){0};
}
