#ifndef QN_LOADGEN_SIMULATE_COMMIT_COMMAND_H
#define QN_LOADGEN_SIMULATE_COMMIT_COMMAND_H

/** `quoin sim commit`: its options, what it runs on, and its report. One
 * thread.
 */

#include "loadgen/simulate/command.h"
#include "loadgen/simulate/commit/commit.h"
#include "loadgen/simulate/terms.h"

struct qn_commit_command {
    /* options */
    const char *machine, *acceptor, *topology, *transport_name, *plot, *trace;
    uint64_t replicas, clients, client_ns, size, batch, load_us, warm_us,
        death_us, seed;
    double reads, jitter;
    uint64_t origin; /* clients at this replica only; QN_NODES_MAX: at all */
    struct qn_simulate_terms terms;
    bool near, software, bare, json, broadcast, profile;
    struct qn_sim_fault fault[8];
    uint32_t faults;
    /* state */
    struct qn_machine *m; /* own */
    bool is_tiled;        /* prices are of `tiled`; costs of m are for plans */
    struct qn_tiled tiled;
    const struct qn_transport *transport;
    double host_s; /* of the run */
};

/** The text, or the JSON object. @return QN_OK or QN_EIO. (commit_report.c) */
int qn_commit_report(const struct qn_commit_command *c,
                     const struct qn_sim_commit_result *r, FILE *to);

#endif
