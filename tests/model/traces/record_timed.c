/*
 * Runs of the drivers on the timed machine (loadgen/simulate/commit), written
 * as traces (tests/sim/paxos/run_trace.h).
 *
 *     record_timed process FROM COUNT       the next COUNT seeds with that
 *     record_timed memory FROM COUNT        acceptor
 *     record_timed run SEED                 its trace, to stdout
 *     record_timed_mutants run SEED MUTANT  the same, with a defect of
 *                                           paxos/mutant.h
 *
 * The drivers are those that ship, and so is all around them: lanes, tree,
 * doorbells, the failure detector. The linker leads each call of
 * qn_onepaxos_step through this file (--wrap), which writes down what it did.
 *
 * A step is one event here: it waits for its turn, and then no other node
 * runs and nothing costs time until it has ended. The model's actions
 * are events, too. So a replica is killed or stopped in front of a step, or
 * anywhere between two; what lies between two accesses of one step is the
 * explorer's (tests/sim/explore).
 *
 * Exit status: 0, all invariants of a run held; 1, one did not; 2, usage.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/sim/machine.h"
#include "core/sim/timed/time_queue.h"
#include "loadgen/simulate/commit/commit.h"
#include "paxos/machine/onepaxos_internal.h"
#include "tests/model/traces/mutant_name.h"
#include "tests/sim/paxos/run_trace.h"

#define REPLICAS_MAX 5u
#define LOAD_NS      (80 * QN_MS)
#define STOP_NS      (40 * QN_MS)  /* a suspicion takes 10 of them */
#define WORK_NS      (200 * QN_US) /* of an operation: few slots, many roles */

static struct run_trace *trace;
static const struct qn_onepaxos *machine_of[REPLICAS_MAX];

/* ---- what is wrapped ----------------------------------------------------- */

struct qn_onepaxos *__real_qn_onepaxos_init(void *mem,
                                            const struct qn_onepaxos_opts *o);
struct qn_onepaxos *__wrap_qn_onepaxos_init(void *mem,
                                            const struct qn_onepaxos_opts *o);
int __real_qn_onepaxos_step(struct qn_onepaxos *p, const struct qn_input *in,
                            qn_time_t now, uint64_t wall_ms,
                            struct qn_step_out *out);
int __wrap_qn_onepaxos_step(struct qn_onepaxos *p, const struct qn_input *in,
                            qn_time_t now, uint64_t wall_ms,
                            struct qn_step_out *out);
void __real_qn_sim_replica_ended(void *ctx, uint32_t node, bool killed);
void __wrap_qn_sim_replica_ended(void *ctx, uint32_t node, bool killed);

struct qn_onepaxos *__wrap_qn_onepaxos_init(void *mem,
                                            const struct qn_onepaxos_opts *o)
{
    struct qn_onepaxos *p = __real_qn_onepaxos_init(mem, o);
    QN_ASSERT(p->self < REPLICAS_MAX);
    machine_of[p->self] = p;
    run_trace_begins(trace, p);
    return p;
}

int __wrap_qn_onepaxos_step(struct qn_onepaxos *p, const struct qn_input *in,
                            qn_time_t now, uint64_t wall_ms,
                            struct qn_step_out *out)
{
    const uint32_t node = qn_sim.self;
    if (node != QN_SIM_NO_NODE) {
        qn_timed_turn();
    }
    qn_sim.self = QN_SIM_NO_NODE; /* what it accesses, it accesses at once */
    int err = __real_qn_onepaxos_step(p, in, now, wall_ms, out);
    run_trace_step(trace, p, in, err);
    qn_sim.self = node;
    return err;
}

void __wrap_qn_sim_replica_ended(void *ctx, uint32_t node, bool killed)
{
    if (killed) {
        run_trace_ends(trace, machine_of[node]);
    }
    __real_qn_sim_replica_ended(ctx, node, killed);
}

/* ---- a run by its seed --------------------------------------------------- */

static uint64_t draw(uint64_t *seed, uint64_t below)
{
    *seed += UINT64_C(0x9e3779b97f4a7c15);
    return qn_time_queue_mix(*seed) % below;
}

static bool is_memory(uint64_t seed)
{
    return draw(&seed, 2) == 0;
}

/* The model of the memory acceptor has three nodes. */
static struct qn_sim_commit_opts drawn_group(uint64_t *seed)
{
    static const struct qn_coherent_opts software = {
        .mark_cycles = {[QN_MARK_TURN] = 300, [QN_MARK_STEP] = 400}};
    struct qn_sim_commit_opts o = {.memory = draw(seed, 2) == 0,
                                   .prices = &software,
                                   .warm_ns = 10 * QN_US,
                                   .load_ns = LOAD_NS,
                                   .settle_ns = 300 * QN_MS,
                                   .jitter = 0.05};
    o.replicas = o.memory ? 3 : 3 + (uint32_t)draw(seed, REPLICAS_MAX - 2);
    o.tree = draw(seed, 2) == 0 ? QN_SIM_TREE_COSTS : QN_SIM_TREE_NAMED;
    o.topology = draw(seed, 2) == 0 ? "sequential" : "binary";
    o.clients = 1 + (uint32_t)draw(seed, 4);
    o.reads = 0.3;
    o.client_ns = WORK_NS;
    o.death_ns = draw(seed, 20) * QN_US;
    o.seed = draw(seed, UINT64_MAX);
    return o;
}

/* Two or three stops of replicas, each once; or one or two and a death. No
 * incarnation follows one that ended, so a majority must live. */
static uint32_t drawn_faults(struct qn_sim_fault *fault, uint64_t *seed,
                             uint32_t replicas)
{
    uint32_t count = 2 + (uint32_t)draw(seed, 2);
    uint32_t first = (uint32_t)draw(seed, 2); /* it has a role at first */
    bool kills = draw(seed, 2) == 0;
    for (uint32_t i = 0; i < count; i++) {
        bool kill = kills && i + 1 == count;
        uint64_t from = draw(seed, LOAD_NS);
        fault[i] = (struct qn_sim_fault){
            .kind = kill ? QN_SIM_FAULT_KILL : QN_SIM_FAULT_STOP,
            .node = (first + i) % replicas,
            .access = kill && draw(seed, 2) == 0 ? 1 + draw(seed, 20000) : 0,
            .from_ns = from,
            .until_ns = kill ? 0 : from + 1 + draw(seed, STOP_NS)};
    }
    return count;
}

/* @return whether all invariants held. */
static bool record(uint64_t seed)
{
    struct qn_sim_fault fault[3];
    uint32_t core[QN_CORES_MAX];
    struct qn_machine *m;
    struct qn_sim_commit_result r;
    int err = qn_machine_load(&m, QN_MACHINES "/syn_8x4x1", NULL);
    QN_ASSERT(err == QN_OK);
    qn_sim_cores(core, m, true);
    struct qn_sim_commit_opts o = drawn_group(&seed);
    o.faults = drawn_faults(fault, &seed, o.replicas);
    o.fault = fault;
    o.machine = m;
    o.core = core;
    trace = run_trace_open(stdout);
    err = qn_sim_commit_run(&r, &o);
    QN_ASSERT(err == QN_OK);
    run_trace_close(trace);
    bool held = r.broken == NULL;
    if (!held) {
        fprintf(stderr, "record_timed: %s\n", r.broken);
    }
    qn_sim_commit_free(&r);
    qn_machine_destroy(m);
    return held;
}

static void print_seeds(bool memory, uint64_t from, uint64_t count)
{
    for (uint64_t seed = from; count > 0; seed++) {
        if (is_memory(seed) == memory) {
            printf("%" PRIu64 "\n", seed);
            count--;
        }
    }
}

int main(int argc, char **argv)
{
    bool memory = argc == 4 && strcmp(argv[1], "memory") == 0;
    if (memory || (argc == 4 && strcmp(argv[1], "process") == 0)) {
        print_seeds(memory, strtoull(argv[2], NULL, 10),
                    strtoull(argv[3], NULL, 10));
        return 0;
    }
    bool run = (argc == 3 || argc == 4) && strcmp(argv[1], "run") == 0;
    if (!run || (argc == 4 && !mutant_choose(argv[3]))) {
        fprintf(stderr,
                "usage: record_timed process|memory FROM COUNT | run SEED\n"
                "       record_timed_mutants run SEED MUTANT\n");
        return 2;
    }
    return record(strtoull(argv[2], NULL, 10)) ? 0 : 1;
}
