/*
 * A group of core/coll as a team, in a child of its own: the mesh of queuepairs
 * starts its nodes there, as threads or as processes.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/place/place.h"
#include "loadgen/barrier/barrier_team_internal.h"
#include "loadgen/collective/collective_form.h"
#include "transports/registry.h"

#define TRANSPORT "ump"
#define TREE      "sequential" /* as quoin bench collectives */

struct job {
    struct qn_barrier_team *team;
    struct qn_collective_opts o;
};

static void pass(void *arg)
{
    struct qn_collective_node *n = arg;
    if (qn_collective_form(0)->run(n, 1) != QN_OK) { /* the barrier */
        abort(); /* the bench sees that the group has ended */
    }
}

static int run_node(struct qn_mesh_end *end, void *arg)
{
    const struct job *job = arg;
    struct qn_barrier_control *c = job->team->control;
    struct qn_collective_node n;
    int rc = qn_collective_node_init(&n, end, &job->o);
    while (rc == QN_OK && qn_barrier_next(c, end->self)) {
        rc = qn_collective_meet(&n); /* a new deadline for this round */
        qn_barrier_round(c, end->self, pass, &n);
    }
    while (rc == QN_OK && qn_mesh_flush(end)) {
        qn_pause();
    }
    qn_collective_node_fini(&n);
    return rc;
}

/* In the child. @return the exit status. */
static int run_group(struct qn_barrier_team *t, bool processes)
{
    static struct qn_tree tree; /* too large for the stack */
    static struct qn_places places;
    static struct qn_mesh mesh;
    qn_node_t order[QN_NODES_MAX];
    uint32_t core[QN_NODES_MAX];
    int rc = qn_places_discover(&places);
    for (uint32_t i = 0; rc == QN_OK && i < t->members; i++) {
        order[i] = (qn_node_t)i;
        core[i] = (uint32_t)qn_places_of(&places, i, QN_BIND_CORE).cpu;
    }
    rc = rc == QN_OK ? qn_tree_build(&tree, TREE, order, t->members) : rc;
    const struct qn_spin_opts spin = {.nodes = t->members,
                                      .cores = places.count,
                                      .quota_milli = places.quota_milli};
    struct job job = {.team = t,
                      .o = {.tree = &tree,
                            .size = 8,
                            .exchange = t->members <= QN_COLL_EXCHANGE_FEW,
                            .backoff = qn_backoff_of(&spin)}};
    const struct qn_mesh_opts o = {.transport = qn_transport_find(TRANSPORT),
                                   .nodes = t->members,
                                   .cells = QN_COLLECTIVE_CELLS,
                                   .processes = processes,
                                   .read_only = true,
                                   .core = core};
    rc = rc == QN_OK ? qn_mesh_create(&mesh, &o) : rc;
    if (rc == QN_OK) {
        rc = qn_mesh_run(&mesh, run_node, &job) == 0 ? QN_OK : QN_EIO;
        qn_mesh_destroy(&mesh);
    }
    return rc == QN_OK ? 0 : 1;
}

int qn_barrier_team_of_coll(struct qn_barrier_team *t, uint32_t members,
                            bool processes)
{
    int rc = qn_barrier_team_prepare(t, members);
    if (rc == QN_OK) {
        t->process[0] = fork();
        if (t->process[0] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(run_group(t, processes));
        }
        rc = qn_barrier_team_ready(t);
    }
    return rc;
}
