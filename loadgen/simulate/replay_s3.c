/*
 * S3: 1Paxos over a tree planned for throughput against sequential sending, and
 * beside a bare broadcast with client, request and reply at its root (Smelt,
 * figure 12). A process acceptor, clients at the leader, one command per slot,
 * the pipeline full; sustained, that is until all replicas have applied.
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

static const uint32_t sizes[] = {8, 16, 28};
static const char *const names[] = {"xeon_8375c_2x32", "epyc_7742_2x64",
                                    "epyc_9754_1x128", "graviton3_1x64",
                                    "haswell_4x12x2"};

typedef int run_fn(struct qn_sim_commit_result *out,
                   const struct qn_sim_commit_opts *o);

/* Slots per second. @return the exit status. */
static int sustained(run_fn *run, const struct qn_sim_commit_opts *o,
                     double *per_second)
{
    struct qn_sim_commit_result r;
    int err = run(&r, o);
    if (err != QN_OK) {
        fprintf(stderr, "quoin sim replay: %s\n", qn_strerror(err));
        return 1;
    }
    *per_second = qn_sim_sustained(&r);
    int status = r.broken == NULL ? 0 : 1;
    if (status != 0) {
        fprintf(stderr, "quoin sim replay: %s\n", r.broken);
    }
    qn_sim_commit_free(&r);
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
    struct qn_replay_row row = {.id = "S3", .got = planned / sequential};
    row.limit = n == 28 ? RATIO_LEAST : 1;
    snprintf(row.what, sizeof row.what,
             "%s, %u replicas, planned over sequential (%.2f M slots/s)",
             m->name, n, planned / 1e6);
    *missed += !qn_replay_row_print(&row, o->to);
    row.limit = BROADCAST_LEAST;
    row.got = planned / broadcast;
    snprintf(row.what, sizeof row.what,
             "%s, %u replicas, consensus over a bare broadcast", m->name, n);
    *missed += !qn_replay_row_print(&row, o->to);
    return 0;
}

int qn_replay_s3(const struct qn_replay_opts *o, uint32_t *missed)
{
    int status = 0;
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(names) && status == 0; i++) {
        struct qn_parse_error bad = {""};
        struct qn_machine *m;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", o->machines[0], names[i]);
        if (qn_machine_load(&m, path, &bad) != QN_OK) {
            fprintf(stderr, "quoin sim replay: %s\n", bad.text);
            return 2;
        }
        for (uint32_t k = 0; k < QN_ARRAY_COUNT(sizes) && status == 0; k++) {
            status = one_size(m, sizes[k], o, missed);
        }
        qn_machine_destroy(m);
    }
    return status;
}
