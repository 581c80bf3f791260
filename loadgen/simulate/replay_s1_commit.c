/*
 * S1, commits: a command over the planned tree is never applied everywhere much
 * later than over the best static tree.
 *
 * A process acceptor, so that what is decided travels down the tree from the
 * acceptor, while the leader learns it by ACCEPTED. One client at the leader,
 * one command at a time, from its submission until all replicas have applied
 * it. All trees of a group have one root, that of the plan. Only transfers are
 * priced.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/simulate/command.h"
#include "loadgen/simulate/commit/commit.h"
#include "loadgen/simulate/replay.h"
#include "loadgen/topo/model/cores.h"

#define REPLICAS_LEAST 4u
#define COMMANDS       10u /* at most; they repeat */

/* Between two commands. After each, the replicas look at the read index, one
 * after the other, for its line moves; until the last of them has it the group
 * is not idle. After QN_SPIN_BUDGET (core/wait/spin.h), 25 us, they would
 * sleep. Most of the time of the host goes to idle replicas. */
#define GAP_LEAST_NS (5 * QN_US)
#define GAP_MOST_NS  (22 * QN_US)

struct group {
    const struct qn_machine *m;
    uint32_t core[QN_CORES_MAX]; /* of the leader; of the others, ascending */
    uint32_t n;                  /* replicas */
    uint64_t gap_ns;             /* between two commands */
    struct qn_machine *members;  /* the tree's: all but the leader */
};

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* What a line takes to each replica in turn, at most. */
static uint64_t row_ns(const struct group *g)
{
    double ghz =
        g->m->facts.clock_ghz > 0 ? g->m->facts.clock_ghz : QN_GHZ_USUAL;
    double dearest = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        for (uint32_t k = 0; k < g->n; k++) {
            double r = qn_receive_cost(g->m, g->core[i], g->core[k]);
            dearest = i != k ? QN_MAX(dearest, r) : dearest;
        }
    }
    return (uint64_t)(g->n * dearest / ghz);
}

static int group_make(struct group *g, const struct qn_machine *m, uint32_t n)
{
    *g = (struct group){.m = m, .n = n};
    qn_cores_deal(g->core, m);
    qsort(g->core, n, sizeof g->core[0], by_value);
    g->gap_ns = QN_MIN(QN_MAX(row_ns(g), GAP_LEAST_NS), GAP_MOST_NS);
    return qn_machine_restrict(&g->members, m, g->core + 1, n - 1);
}

/* Until a command is applied everywhere, the median. @return the exit status.
 */
static int run(const struct group *g, const struct qn_shape *shape, double *ns)
{
    const struct qn_coherent_opts bare = {.bare = true};
    struct qn_sim_commit_result r;
    const struct qn_sim_commit_opts o = {
        .machine = g->m,
        .prices = &bare,
        .core = g->core,
        .replicas = g->n,
        .tree = shape != NULL ? QN_SIM_TREE_SHAPE : QN_SIM_TREE_COSTS,
        .shape = shape,
        .load = 1,
        .clients = 1,
        .client_ns = g->gap_ns,
        .load_ns = COMMANDS * g->gap_ns,
        .seed = 1};
    int err = qn_sim_commit_run(&r, &o);
    if (err != QN_OK || r.broken != NULL) {
        fprintf(stderr, "quoin sim replay: %s, %u replicas: %s\n", g->m->name,
                g->n, err != QN_OK ? qn_strerror(err) : r.broken);
    }
    if (err != QN_OK) {
        return 1;
    }
    int status = r.broken == NULL ? 0 : 1;
    /* Nothing was: each command was overtaken by the end of the load. */
    *ns = r.everywhere->count > 0
              ? (double)qn_histogram_quantile(r.everywhere, 0.5)
              : (double)INFINITY;
    qn_sim_commit_free(&r);
    return status;
}

static int run_named(const struct group *g, const char *name,
                     struct qn_topology_spec_opts *o, double *ns)
{
    struct qn_topology_spec spec;
    struct qn_parse_error bad = {""};
    int err = qn_topology_spec_make(&spec, g->members, name, o, &bad);
    if (err != QN_OK) {
        fprintf(stderr, "quoin sim replay: %s\n",
                bad.text[0] != '\0' ? bad.text : qn_strerror(err));
        return 1;
    }
    o->root = spec.root;
    int status = run(g, &spec.down, ns);
    qn_topology_spec_fini(&spec);
    return status;
}

/* The driver's own tree, which may change with its members: the root is that of
 * the plan, the others are numbered by their cores. */
static int run_own(struct group *g, uint32_t root, double *ns)
{
    uint32_t core = g->core[1 + root];
    memmove(g->core + 2, g->core + 1, root * sizeof g->core[0]);
    g->core[1] = core;
    return run(g, NULL, ns);
}

/* One operation of a group: the best static tree over each of the others. */
static int one_group(struct group *g, const struct qn_replay_opts *o,
                     struct qn_replay_worst *w)
{
    struct qn_topology_spec_opts spec = {.goal = QN_GOAL_BROADCAST,
                                         .root = QN_ROOT_FREE,
                                         .q = 1,
                                         .seed = 1,
                                         .one_tree = true};
    double ns[QN_REPLAY_PLANS] = {0}, best = (double)INFINITY;
    const char *name;
    int status = run_named(g, "auto", &spec, &ns[QN_REPLAY_PLAN]);
    for (uint32_t i = 0;
         status == 0 && (name = qn_topology_spec_name_at(i)) != NULL; i++) {
        double each = (double)INFINITY;
        if (qn_replay_static(name)) {
            status = run_named(g, name, &spec, &each);
            best = QN_MIN(best, each);
        }
    }
    if (status == 0 && o->longer) {
        spec.moves = QN_REPLAY_LONGER_MOVES;
        status = run_named(g, "auto", &spec, &ns[QN_REPLAY_LONGER]);
    }
    if (status == 0) {
        status = run_own(g, spec.root, &ns[QN_REPLAY_OWN]);
    }
    qn_replay_worst_note(w, ns, best, g->n);
    return status;
}

int qn_replay_s1_commit(const struct qn_machine *m,
                        const struct qn_replay_opts *o,
                        struct qn_replay_worst *w)
{
    static struct group g;
    const uint32_t most = QN_MIN(m->n, QN_NODES_MAX);
    int status = 0;
    for (uint32_t n = REPLICAS_LEAST; n <= most && status == 0;
         n = o->every ? n + 1 : 2 * n) {
        status = group_make(&g, m, n) == QN_OK ? one_group(&g, o, w) : 1;
        qn_machine_destroy(g.members);
    }
    return status;
}
