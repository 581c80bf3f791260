#ifndef QN_LOADGEN_SIMULATE_COMMAND_H
#define QN_LOADGEN_SIMULATE_COMMAND_H

/** `quoin sim OPERATION`: its options, its results, and the report
 *  (report.c). Times are those of `quoin bench`, whose programs run; of a
 *  channel and in replays those of virtual.h. One thread. */

#include <stdbool.h>
#include <stdio.h>

#include "core/sim/timed/tiled/tiled.h"
#include "loadgen/simulate/bench_run.h"
#include "loadgen/simulate/terms.h"
#include "loadgen/simulate/virtual.h"
#include "loadgen/topo/model/topology_names.h"
#include "loadgen/topo/model/topology_spec.h"

#define QN_SIMULATE_ROWS 64u /* topologies and forms */
#define QN_GHZ_USUAL     2.0 /* of machines whose clock is not known */

/** One topology. What is unknown is NAN. */
struct qn_simulate_row {
    char name[QN_TOPOLOGY_SPEC_NAME];
    double median_ns, p99_ns;
    double predicted_ns;
    double rate, bound; /* operations per second; bound by the busiest core */
    uint64_t operations, wrong;
    bool incomplete; /* a node was killed, or the time was over */
    bool chosen;     /* of the forms on shared lines */
    struct qn_timed_result run;
};

struct qn_simulate {
    /* options */
    const char *program; /* "quoin sim ack", first words of each line */
    enum qn_virtual op;
    const char *machine, *cores, *plot, *trace, *transport_name;
    const struct qn_transport *transport; /* of that name */
    struct qn_topology_names topologies;
    const char *forms; /* of a barrier: a list with commas. NULL: not given */
    uint64_t nodes, root, size, count, window, sources, seed;
    uint32_t warm; /* as in virtual.h; if alone */
    double jitter;
    bool software; /* library calls have their measured prices */
    struct qn_simulate_terms terms;
    bool json;
    bool bare;  /* only transfers are priced */
    bool alone; /* one operation at a time (virtual.h), as the prediction
                   has it; else as quoin bench measures */
    struct qn_sim_fault fault[8];
    uint32_t faults;
    /* state */
    struct qn_machine *m; /* index i is node i; own */
    bool is_tiled;        /* prices are of `tiled`; costs of m are for plans */
    struct qn_tiled tiled;
    double ghz;
    bool clock_known;
    struct qn_simulate_row row[QN_SIMULATE_ROWS];
    uint32_t rows;
    double host_s; /* of all runs */
};

/** Print the line. @return 2, the exit status. */
int qn_simulate_fail(const struct qn_simulate *s, const char *line);

/** What a topology for the operation is planned for. (topology.c) */
enum qn_goal qn_simulate_goal(enum qn_virtual op);

/** The queued factor (core/machine/machine.h) of the price
 *  list: 1 for coherent machines. (topology.c) */
double qn_simulate_queued(const struct qn_simulate *s);

/** Plan, predict and run one topology: the next row. The root that it chose is
 *  that of the next ones, in *o. @return the exit status. (topology.c) */
int qn_simulate_add(struct qn_simulate *s, const char *name,
                    struct qn_topology_spec_opts *o);

/** Prices of the group's machine, index i for node i. @param prices  Filled;
 *  qn_prices_destroy. @return QN_OK; QN_EINVAL, QN_ENOMEM. (topology.c) */
int qn_simulate_prices(const struct qn_simulate *s, struct qn_prices **prices);

/** Are all forms of a barrier that are named known? Else print the line.
 *  @return the exit status. (form.c) */
int qn_simulate_forms_check(const struct qn_simulate *s);

/** Predict and run the forms of a barrier on shared lines that are named, or
 *  all of them: the next rows. @return the exit status. (form.c) */
int qn_simulate_forms(struct qn_simulate *s);

/** @return QN_OK or QN_EIO. */
int qn_simulate_report(const struct qn_simulate *s, FILE *to);

/** "quoin sim broadcast ...": argv[1] is the operation. @return the exit
 *  status. */
int qn_simulate_command(int argc, char **argv);

/** "quoin sim replay ...": argv[1] is the group. */
int qn_replay_command(int argc, char **argv);

/** "quoin sim commit ...": argv[0] is the operation. */
int qn_commit_command(int argc, char **argv);

/** A fault as options spell it. @return false: it is none. (command.c) */
bool qn_simulate_fault(struct qn_sim_fault *out, const char *text);

/** Cycles of library calls, [QN_MARKS] filled. (topology.c) */
void qn_simulate_software(double *mark_cycles);

#endif
