/*
 * Replicas on the simulated manycore: they commit, also when some are killed or
 * stopped at moments that a seed chooses, and the same run gives the same hash.
 * The invariants are those of loadgen/simulate/commit/commit.h.
 *
 * QN_TIMED_SEEDS=n runs n seeds. QN_TIMED_SEED=s runs the seed s only. A run
 * that fails prints the command that replays it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sim/timed/time_queue.h"
#include "core/topo/static_trees.h"
#include "loadgen/simulate/commit/commit.h"
#include "tests/support/replay.h"
#include "tests/support/test.h"

#if defined(__SANITIZE_ADDRESS__)
#define SEEDS_USUAL 10u
#define FAILOVERS   2u
#else
#define SEEDS_USUAL 200u
#define FAILOVERS   20u
#endif

static struct qn_machine *machine(void)
{
    struct qn_machine *m;
    cr_assert_eq(qn_machine_load(&m, QN_MACHINES "/syn_8x4x1", NULL), QN_OK);
    return m;
}

static struct qn_sim_commit_opts usual(bool memory)
{
    return (struct qn_sim_commit_opts){.replicas = 3,
                                       .memory = memory,
                                       .tree = QN_SIM_TREE_COSTS,
                                       .clients = 2,
                                       .reads = 0.5,
                                       .warm_ns = 10 * QN_US,
                                       .load_ns = 200 * QN_US,
                                       .seed = 1,
                                       .jitter = 0.05};
}

typedef int run_fn(struct qn_sim_commit_result *out,
                   const struct qn_sim_commit_opts *o);

static struct qn_sim_commit_result run_by(run_fn *runner,
                                          struct qn_sim_commit_opts o)
{
    uint32_t core[QN_CORES_MAX];
    struct qn_sim_commit_result r;
    struct qn_machine *m = machine();
    qn_sim_cores(core, m, true);
    o.machine = m;
    o.core = core;
    cr_assert_eq(runner(&r, &o), QN_OK);
    qn_machine_destroy(m);
    return r;
}

static struct qn_sim_commit_result run(struct qn_sim_commit_opts o)
{
    return run_by(qn_sim_commit_run, o);
}

static void check_held(struct qn_sim_commit_result *r)
{
    cr_assert(r->broken == NULL, "%s\n%s", r->broken, replay_line());
    cr_assert_eq(r->machine.fault, NULL);
    for (uint32_t i = 0; i < r->machine.nodes; i++) {
        cr_assert(!r->machine.node[i].spun, "replica %u looks without a pause",
                  i);
    }
}

static void check_commits(bool memory)
{
    struct qn_sim_commit_result r = run(usual(memory));
    check_held(&r);
    cr_assert_gt(r.commits, 100);
    cr_assert_gt(r.reads, 100);
    /* A write waits for others, unless it is the leader's own. */
    cr_assert_geq(r.commit->max, 100);
    cr_assert_lt(qn_histogram_quantile(r.commit, 0.5), 2 * QN_US);
    cr_assert_eq(r.failovers, 0);
    cr_assert_lt(r.outage_ns, 10 * QN_US);
    qn_sim_commit_free(&r);
}

Test(sim_commit, three_replicas_commit_by_memory)
{
    check_commits(true);
}

Test(sim_commit, three_replicas_commit_by_a_process)
{
    check_commits(false);
}

/* ---- seeds --------------------------------------------------------------- */

static uint64_t draw(uint64_t *seed, uint64_t below)
{
    *seed += UINT64_C(0x9e3779b97f4a7c15);
    return qn_time_queue_mix(*seed) % below;
}

static uint32_t number_of(const char *name, uint32_t usually)
{
    const char *text = getenv(name);
    return text != NULL ? (uint32_t)strtoul(text, NULL, 10) : usually;
}

/* A group, its load and its tree. */
static struct qn_sim_commit_opts drawn_group(uint64_t *seed)
{
    static const uint32_t sizes[] = {3, 3, 4, 5, 7};
    struct qn_sim_commit_opts o = usual(draw(seed, 2) == 0);
    uint64_t tree = draw(seed, 3);
    o.replicas = sizes[draw(seed, 5)];
    o.tree = tree == 0   ? QN_SIM_TREE_COSTS
             : tree == 1 ? QN_SIM_TREE_STREAM
                         : QN_SIM_TREE_NAMED;
    o.topology = draw(seed, 2) == 0 ? "sequential" : "binary";
    o.clients = 1 + (uint32_t)draw(seed, 8);
    o.reads = (double)draw(seed, 10) / 10;
    o.command_bytes = 16 + (uint32_t)draw(seed, 200);
    o.death_ns = draw(seed, 2) * draw(seed, 20) * QN_US;
    o.seed = draw(seed, UINT64_MAX);
    return o;
}

static struct qn_sim_commit_result run_seed(uint64_t seed, bool kills)
{
    struct qn_sim_fault fault[2];
    replay_by("QN_TIMED_SEED=%" PRIu64 " test_sim_commit", seed);
    struct qn_sim_commit_opts o = drawn_group(&seed);
    /* No incarnation follows one that ended, so a majority must live; with the
     * process acceptor leader and acceptor must not be lost together. Stops may
     * hit any. */
    bool two = !kills || (o.memory && o.replicas >= 5);
    o.faults = two ? 1 + (uint32_t)draw(&seed, 2) : 1;
    uint32_t first = (uint32_t)draw(&seed, o.replicas);
    for (uint32_t i = 0; i < o.faults; i++) {
        uint64_t from = draw(&seed, 200 * QN_US);
        fault[i] = (struct qn_sim_fault){
            .kind = kills ? QN_SIM_FAULT_KILL : QN_SIM_FAULT_STOP,
            .node = (first + i) % o.replicas,
            .access = kills && draw(&seed, 2) == 0 ? 1 + draw(&seed, 3000) : 0,
            .from_ns = from,
            .until_ns = kills ? 0 : from + 1 + draw(&seed, 15 * QN_MS)};
    }
    o.fault = fault;
    return run(o);
}

static void run_seeds(bool kills)
{
    uint64_t first = number_of("QN_TIMED_SEED", 0);
    uint64_t count = first != 0 ? 1 : number_of("QN_TIMED_SEEDS", SEEDS_USUAL);
    uint64_t failovers = 0;
    for (uint64_t s = first + (first == 0); s < first + count + (first == 0);
         s++) {
        struct qn_sim_commit_result r = run_seed(s, kills);
        cr_assert(r.broken == NULL, "%s\n%s", r.broken, replay_line());
        failovers += r.failovers;
        qn_sim_commit_free(&r);
    }
    cr_assert(first != 0 || failovers >= count / 20,
              "%" PRIu64 " fail-overs in %" PRIu64 " runs", failovers, count);
}

Test(sim_commit, kills_by_seed_break_nothing, .timeout = 300)
{
    run_seeds(true);
}

Test(sim_commit, stops_by_seed_break_nothing, .timeout = 300)
{
    run_seeds(false);
}

/* ---- one command at a time ----------------------------------------------- */

/* Clients at the leader, which pause for less than replicas spin. */
static struct qn_sim_commit_opts alone(uint32_t replicas)
{
    static const struct qn_coherent_opts bare = {.bare = true};
    struct qn_sim_commit_opts o = usual(false);
    o.prices = &bare;
    o.replicas = replicas;
    o.load = 1;
    o.clients = 1;
    o.client_ns = 20 * QN_US;
    o.reads = 0;
    o.jitter = 0;
    return o;
}

static uint64_t everywhere(struct qn_sim_commit_opts o, const char *name)
{
    struct qn_shape s;
    struct qn_edges e;
    cr_assert_eq(qn_static_ranks(&e, name, o.replicas - 1), QN_OK);
    cr_assert_eq(qn_shape_from_edges(&s, &e, 0), QN_OK);
    o.tree = QN_SIM_TREE_SHAPE;
    o.shape = &s;
    struct qn_sim_commit_result r = run(o);
    check_held(&r);
    cr_assert_geq(r.everywhere->count, 5);
    uint64_t median = qn_histogram_quantile(r.everywhere, 0.5);
    cr_assert_gt(median, qn_histogram_quantile(r.commit, 0.5),
                 "the leader learns it first");
    qn_sim_commit_free(&r);
    return median;
}

Test(sim_commit, a_command_is_everywhere_as_soon_as_the_tree_allows)
{
    uint64_t star = everywhere(alone(9), "sequential");
    uint64_t chain = everywhere(alone(9), "tree:k=1");
    cr_assert_gt(chain, 2 * star, "%" PRIu64 " and %" PRIu64, chain, star);
}

/* A slot that is published moves the line of the read index. Whoever looks at
 * it without need waits there while its LEARN comes. */
Test(sim_commit, idle_replicas_do_not_wait_for_the_read_index, .timeout = 100)
{
    struct qn_sim_commit_result r = run(alone(28));
    check_held(&r);
    uint64_t median = qn_histogram_quantile(r.everywhere, 0.5);
    cr_assert_lt(median, 2 * QN_US, "%" PRIu64 " ns; 2307 when all look",
                 median);
    qn_sim_commit_free(&r);
}

/* Few slots, and three replicas that are stopped for a while: the tree leaves
 * out some that have caught up since, and the last slot may be one that they
 * have missed. */
static struct qn_sim_commit_result run_little_load(uint64_t seed)
{
    struct qn_sim_fault fault[3];
    replay_by("QN_TIMED_SEED=%" PRIu64 " test_sim_commit", seed);
    struct qn_sim_commit_opts o = drawn_group(&seed);
    o.replicas = 4 + (uint32_t)draw(&seed, 4);
    o.load_ns = 20 * QN_MS;
    o.client_ns = 100 * QN_US;
    uint32_t first = (uint32_t)draw(&seed, o.replicas);
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t from = draw(&seed, o.load_ns);
        fault[i] = (struct qn_sim_fault){.kind = QN_SIM_FAULT_STOP,
                                         .node = (first + i) % o.replicas,
                                         .from_ns = from,
                                         .until_ns = from + 1 +
                                                     draw(&seed, 40 * QN_MS)};
    }
    o.fault = fault;
    o.faults = 3;
    return run(o);
}

Test(sim_commit, stops_under_little_load_leave_no_replica_behind,
     .timeout = 300)
{
    uint64_t one = number_of("QN_TIMED_SEED", 0);
    uint64_t seeds = number_of("QN_TIMED_SEEDS", SEEDS_USUAL) / 5;
    for (uint64_t s = one != 0 ? one : 1; s <= (one != 0 ? one : seeds); s++) {
        struct qn_sim_commit_result r = run_little_load(s);
        cr_assert(r.broken == NULL, "%s\n%s", r.broken, replay_line());
        qn_sim_commit_free(&r);
    }
}

/* ---- fail-over ----------------------------------------------------------- */

/* Found in a turn 10 us later at most, then two round trips of votes. Clients
 * at all replicas, or at one that is not the next leader. */
static void check_failover(bool memory, uint64_t load)
{
    uint64_t one = number_of("QN_TIMED_SEED", 0);
    for (uint64_t s = one != 0 ? one : 1; s <= (one != 0 ? one : FAILOVERS);
         s++) {
        replay_by("QN_TIMED_SEED=%" PRIu64 " test_sim_commit", s);
        const struct qn_sim_fault kill = {.kind = QN_SIM_FAULT_KILL,
                                          .from_ns = (50 + 3 * s) * QN_US};
        struct qn_sim_commit_opts o = usual(memory);
        o.replicas = 5;
        o.load = load;
        o.reads = 0;
        o.load_ns = QN_MS;
        o.seed = s;
        o.death_ns = 5 * QN_US;
        o.fault = &kill;
        o.faults = 1;
        struct qn_sim_commit_result r = run(o);
        check_held(&r);
        cr_assert_eq(r.failovers, 1);
        cr_assert_lt(r.outage_ns, 100 * QN_US, "%s", replay_line());
        qn_sim_commit_free(&r);
    }
}

Test(sim_commit, a_dead_leader_costs_less_than_100_us_by_memory)
{
    check_failover(true, 0);
    check_failover(true, 1 << 4);
}

Test(sim_commit, a_dead_leader_costs_less_than_100_us_by_a_process)
{
    check_failover(false, 0);
    check_failover(false, 1 << 4);
}

/* ---- the same again ------------------------------------------------------ */

Test(sim_commit, the_same_seed_gives_the_same_run)
{
    struct qn_sim_commit_result a = run_seed(7, true);
    struct qn_sim_commit_result b = run_seed(7, true);
    struct qn_sim_commit_result c = run_seed(8, true);
    cr_assert_eq(a.machine.hash, b.machine.hash);
    cr_assert_eq(a.machine.clock, b.machine.clock);
    cr_assert_eq(a.commits, b.commits);
    cr_assert_neq(a.machine.hash, c.machine.hash);
    qn_sim_commit_free(&a);
    qn_sim_commit_free(&b);
    qn_sim_commit_free(&c);
}

/* ---- throughput ---------------------------------------------------------- */

/* One command per slot, the pipeline full, clients at the leader. */
static struct qn_sim_commit_opts full(enum qn_sim_tree tree)
{
    struct qn_sim_commit_opts o = usual(false);
    o.replicas = 28;
    o.tree = tree;
    o.topology = "sequential";
    o.load = 1;
    o.clients = 64;
    o.reads = 0;
    o.batch_commands = 1;
    o.jitter = 0;
    return o;
}

static double sustained(struct qn_sim_commit_result *r)
{
    cr_assert(r->broken == NULL, "%s", r->broken);
    cr_assert_eq(r->missed, 0);
    double per_second = qn_sim_sustained(r);
    qn_sim_commit_free(r);
    return per_second;
}

/* Without prices of software: what messages cost decides. */
Test(sim_commit, a_planned_tree_sustains_more_than_sequential_sending,
     .timeout = 100)
{
    struct qn_sim_commit_result r = run(full(QN_SIM_TREE_STREAM));
    cr_assert_eq(r.slots, r.commands, "one command per slot");
    double planned = sustained(&r);
    r = run(full(QN_SIM_TREE_NAMED));
    double sequential = sustained(&r);
    cr_assert_geq(planned, 2.5 * sequential, "%f and %f", planned, sequential);
}

Test(sim_commit, consensus_sustains_nine_tenths_of_a_bare_broadcast,
     .timeout = 100)
{
    struct qn_sim_commit_result r = run(full(QN_SIM_TREE_STREAM));
    double consensus = sustained(&r);
    r = run_by(qn_sim_broadcast_run, full(QN_SIM_TREE_STREAM));
    double broadcast = sustained(&r);
    cr_assert_geq(consensus, 0.9 * broadcast, "%f and %f", consensus,
                  broadcast);
}

struct writes {
    uint64_t count, median_ns;
};

/* A replica on each of 8 memory nodes, 80 % reads. */
static struct writes write_load(enum qn_sim_tree tree, uint32_t clients)
{
    struct qn_sim_commit_opts o = full(tree);
    o.replicas = 8;
    o.load = 0;
    o.clients = clients;
    o.reads = 0.8;
    o.warm_ns = 200 * QN_US;
    struct qn_sim_commit_result r = run(o);
    cr_assert(r.broken == NULL, "%s", r.broken);
    struct writes w = {r.commits, qn_histogram_quantile(r.commit, 0.5)};
    qn_sim_commit_free(&r);
    return w;
}

Test(sim_commit, growing_clients_gain_from_a_planned_tree, .timeout = 100)
{
    static const uint32_t clients[] = {1, 4, 16};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(clients); i++) {
        struct writes planned = write_load(QN_SIM_TREE_STREAM, clients[i]);
        struct writes sequential = write_load(QN_SIM_TREE_NAMED, clients[i]);
        cr_assert_geq(10 * planned.count, 11 * sequential.count,
                      "%u clients: %" PRIu64 " and %" PRIu64 " writes",
                      clients[i], planned.count, sequential.count);
        cr_assert_geq(4 * sequential.median_ns, 5 * planned.median_ns,
                      "%u clients: %" PRIu64 " and %" PRIu64 " ns", clients[i],
                      sequential.median_ns, planned.median_ns);
    }
}

/* A leader that outruns its tree, as with the memory acceptor it can: replicas
 * with a gap receive what they cannot apply. */
Test(sim_commit, a_turn_is_bounded_though_nothing_can_be_applied,
     .timeout = 100)
{
    const struct qn_coherent_opts software = {
        .mark_cycles = {[QN_MARK_TURN] = 300,
                        [QN_MARK_STEP] = 400,
                        [QN_MARK_SEND] = 40,
                        [QN_MARK_RECEIVE] = 40,
                        [QN_MARK_FLUSH] = 40}};
    struct qn_sim_commit_opts o = full(QN_SIM_TREE_STREAM);
    o.memory = true;
    o.replicas = 20;
    o.load_ns = QN_MS;
    o.prices = &software;
    struct qn_sim_commit_result r = run(o);
    cr_assert(r.broken == NULL, "%s", r.broken);
    cr_assert_gt(r.machine.clock, 1500 * QN_US * QN_PS_PER_NS,
                 "some cannot follow: they apply after the load");
    cr_assert_lt(r.turn_ns, 400 * QN_US, "%" PRIu64, r.turn_ns);
    qn_sim_commit_free(&r);
}

/* ---- what must be found -------------------------------------------------- */

/* The leader and the acceptor end together: no group survives that. */
Test(sim_commit, a_group_that_cannot_continue_is_found)
{
    const struct qn_sim_fault fault[] = {
        {.kind = QN_SIM_FAULT_KILL, .node = 0, .from_ns = 50 * QN_US},
        {.kind = QN_SIM_FAULT_KILL, .node = 1, .from_ns = 50 * QN_US}};
    struct qn_sim_commit_opts o = usual(false);
    o.fault = fault;
    o.faults = 2;
    o.settle_ns = 100 * QN_MS;
    struct qn_sim_commit_result r = run(o);
    cr_assert_str_eq(r.broken, "what was begun is not applied everywhere");
    qn_sim_commit_free(&r);
}

Test(sim_commit, impossible_options_are_refused)
{
    struct qn_sim_commit_result r;
    struct qn_machine *m = machine();
    uint32_t core[QN_CORES_MAX];
    qn_sim_cores(core, m, false);
    struct qn_sim_commit_opts o = usual(true);
    o.machine = m;
    o.core = core;
    o.load = 8; /* replica 3 of three */
    cr_assert_eq(qn_sim_commit_run(&r, &o), QN_EINVAL);
    o.load = 0;
    o.command_bytes = 8;
    cr_assert_eq(qn_sim_commit_run(&r, &o), QN_EINVAL);
    o.command_bytes = 0;
    o.tree = QN_SIM_TREE_SHAPE;
    cr_assert_eq(qn_sim_commit_run(&r, &o), QN_EINVAL, "no shape");
    struct qn_edges e;
    struct qn_shape s;
    qn_edges_init(&e, 2);
    qn_edges_add(&e, 0, 1);
    cr_assert_eq(qn_shape_from_edges(&s, &e, 0), QN_OK);
    o.shape = &s;
    cr_assert_eq(qn_sim_commit_run(&r, &o), QN_EINVAL, "2 of 3 replicas");
    o.tree = QN_SIM_TREE_COSTS;
    core[1] = core[0];
    cr_assert_eq(qn_sim_commit_run(&r, &o), QN_EINVAL);
    qn_machine_destroy(m);
}

Test(sim_commit, cores_are_dealt_over_the_nodes_or_taken_node_by_node)
{
    uint32_t spread[QN_CORES_MAX];
    uint32_t near[QN_CORES_MAX];
    struct qn_machine *m = machine();
    qn_sim_cores(spread, m, true);
    qn_sim_cores(near, m, false);
    for (uint32_t i = 1; i < 4; i++) {
        cr_assert_eq(m->core[near[i]].node, m->core[near[0]].node);
        cr_assert_neq(m->core[spread[i]].node, m->core[spread[0]].node);
    }
    qn_machine_destroy(m);
}
