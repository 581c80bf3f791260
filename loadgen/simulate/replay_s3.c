/*
 * S3: 1Paxos over a tree planned for throughput against sequential sending,
 * with a process acceptor and one command per slot.
 *
 * Figure 12 of Smelt: clients at the leader, the pipeline full; sustained, that
 * is until all replicas have applied. Also beside a bare broadcast with client,
 * request and reply at its root.
 *
 * Figure 13: a replica on each of 8 memory nodes, more and more clients at
 * each, 80 % linearizable reads. Writes per second, and the median time of a
 * write.
 *
 * Only accesses are priced: with the software of a driver the acceptor's step
 * costs as much as its sends (docs/measurements.md).
 */
#include <stdio.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/simulate/commit/commit.h"
#include "loadgen/simulate/replay.h"

#define RATIO_LEAST     2.5
#define BROADCAST_LEAST 0.9
#define UP_TO_3         "up to 3"

#define NODES 8u
#define READS 0.8

static const uint32_t sizes[] = {8, 16, 28};
static const uint32_t clients[] = {1, 4, 16};
static const char *const nodes_names[] = {"westmere_8x10x2", "uv2000_24x8"};
static const char *const names[] = {"xeon_8375c_2x32", "epyc_7742_2x64",
                                    "epyc_9754_1x128", "graviton3_1x64",
                                    "haswell_4x12x2"};

typedef int run_fn(struct qn_sim_commit_result *out,
                   const struct qn_sim_commit_opts *o);

static int run_one(run_fn *run, const struct qn_sim_commit_opts *o,
                   struct qn_sim_commit_result *r)
{
    int err = run(r, o);
    if (err != QN_OK) {
        fprintf(stderr, "quoin sim replay: %s\n", qn_strerror(err));
        return 1;
    }
    if (r->broken != NULL) {
        fprintf(stderr, "quoin sim replay: %s, %u replicas: %s\n",
                o->machine->name, o->replicas, r->broken);
        qn_sim_commit_free(r);
        return 1;
    }
    return 0;
}

/* ---- figure 12 ----------------------------------------------------------- */

/* Slots per second. @return the exit status. */
static int sustained(run_fn *run, const struct qn_sim_commit_opts *o,
                     double *per_second)
{
    struct qn_sim_commit_result r;
    int status = run_one(run, o, &r);
    if (status == 0) {
        *per_second = qn_sim_sustained(&r);
        qn_sim_commit_free(&r);
    }
    return status;
}

static int one_size(const struct qn_machine *m, uint32_t n,
                    const struct qn_replay_opts *o, uint32_t *missed)
{
    static uint32_t core[QN_CORES_MAX];
    double planned, sequential, broadcast;
    struct qn_sim_commit_opts c = {.machine = m,
                                   .core = core,
                                   .replicas = n,
                                   .tree = QN_SIM_TREE_STREAM,
                                   .topology = "sequential",
                                   .load = 1,
                                   .clients = 64,
                                   .batch_commands = 1,
                                   .warm_ns = 100 * QN_US,
                                   .load_ns = QN_MS,
                                   .seed = 1};
    qn_sim_cores(core, m, true);
    int status = sustained(qn_sim_commit_run, &c, &planned);
    status =
        status == 0 ? sustained(qn_sim_broadcast_run, &c, &broadcast) : status;
    c.tree = QN_SIM_TREE_NAMED;
    status =
        status == 0 ? sustained(qn_sim_commit_run, &c, &sequential) : status;
    if (status != 0) {
        return status;
    }
    struct qn_replay_row row = {
        .id = "S3", .published = UP_TO_3, .got = planned / sequential};
    row.limit = n == 28 ? RATIO_LEAST : 1;
    snprintf(row.what, sizeof row.what,
             "%s, %u replicas, planned over sequential (%.2f M slots/s)",
             m->name, n, planned / 1e6);
    *missed += !qn_replay_row_print(&row, o->to);
    row.limit = BROADCAST_LEAST;
    row.published = "similar";
    row.got = planned / broadcast;
    snprintf(row.what, sizeof row.what,
             "%s, %u replicas, consensus over a bare broadcast", m->name, n);
    *missed += !qn_replay_row_print(&row, o->to);
    return 0;
}

static int figure_12(const struct qn_machine *m, const struct qn_replay_opts *o,
                     uint32_t *missed)
{
    int status = 0;
    for (uint32_t k = 0; k < QN_ARRAY_COUNT(sizes) && status == 0; k++) {
        status = one_size(m, sizes[k], o, missed);
    }
    return status;
}

/* ---- figure 13 ----------------------------------------------------------- */

struct writes {
    double per_second, median_ns;
};

static int write_load(const struct qn_sim_commit_opts *o, struct writes *w)
{
    struct qn_sim_commit_result r;
    int status = run_one(qn_sim_commit_run, o, &r);
    if (status == 0) {
        w->per_second = qn_sim_per_second(r.commits, o->load_ns);
        w->median_ns = (double)qn_histogram_quantile(r.commit, 0.5);
        qn_sim_commit_free(&r);
    }
    return status;
}

static int one_load(const struct qn_machine *m, uint32_t n_clients,
                    const struct qn_replay_opts *o, uint32_t *missed)
{
    static uint32_t core[QN_CORES_MAX];
    struct writes planned, sequential;
    struct qn_sim_commit_opts c = {.machine = m,
                                   .core = core,
                                   .replicas = NODES,
                                   .tree = QN_SIM_TREE_STREAM,
                                   .topology = "sequential",
                                   .clients = n_clients,
                                   .reads = READS,
                                   .batch_commands = 1,
                                   .warm_ns = 500 * QN_US,
                                   .load_ns = QN_MS,
                                   .seed = 1};
    qn_sim_cores(core, m, true);
    int status = write_load(&c, &planned);
    c.tree = QN_SIM_TREE_NAMED;
    status = status == 0 ? write_load(&c, &sequential) : status;
    if (status != 0) {
        return status;
    }
    struct qn_replay_row row = {.id = "S3", .limit = 1, .published = UP_TO_3};
    row.got = planned.per_second / sequential.per_second;
    snprintf(row.what, sizeof row.what,
             "%s, %u nodes, %u clients each, writes/s (%.2f M)", m->name, NODES,
             n_clients, planned.per_second / 1e6);
    *missed += !qn_replay_row_print(&row, o->to);
    row.got = sequential.median_ns / planned.median_ns;
    snprintf(row.what, sizeof row.what,
             "%s, %u nodes, %u clients each, time of a write (%.1f us)",
             m->name, NODES, n_clients, planned.median_ns / 1000);
    *missed += !qn_replay_row_print(&row, o->to);
    return 0;
}

static int figure_13(const struct qn_machine *m, const struct qn_replay_opts *o,
                     uint32_t *missed)
{
    int status = 0;
    for (uint32_t k = 0; k < QN_ARRAY_COUNT(clients) && status == 0; k++) {
        status = one_load(m, clients[k], o, missed);
    }
    return status;
}

/* ---- both ---------------------------------------------------------------- */

static int on_machines(const char *const *name, uint32_t count,
                       int (*figure)(const struct qn_machine *m,
                                     const struct qn_replay_opts *o,
                                     uint32_t *missed),
                       const struct qn_replay_opts *o, uint32_t *missed)
{
    int status = 0;
    for (uint32_t i = 0; i < count && status == 0; i++) {
        struct qn_parse_error bad = {""};
        struct qn_machine *m;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", o->machines[0], name[i]);
        if (qn_machine_load(&m, path, &bad) != QN_OK) {
            fprintf(stderr, "quoin sim replay: %s\n", bad.text);
            return 2;
        }
        status = figure(m, o, missed);
        qn_machine_destroy(m);
    }
    return status;
}

int qn_replay_s3(const struct qn_replay_opts *o, uint32_t *missed)
{
    int status =
        on_machines(names, QN_ARRAY_COUNT(names), figure_12, o, missed);
    return status != 0 ? status
                       : on_machines(nodes_names, QN_ARRAY_COUNT(nodes_names),
                                     figure_13, o, missed);
}
