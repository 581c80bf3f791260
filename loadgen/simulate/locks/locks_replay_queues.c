/*
 * L8, and the queues of L10: Michael and Scott's queue over delegates, LCRQ and
 * stacks. Each thread puts and takes in turn. Threads and pauses as in the
 * files of the counters; each delegate with a server has a thread of its own
 * for it, and as many clients less.
 *
 * Where one delegate protects all data, these are used by its operations only,
 * as in print. With two, one at each end of the queue, they are not.
 */
#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/simulate/locks/locks_replay_internal.h"

#define WHY_NODES                                                              \
    "a node costs nothing here but its loads and stores, and print allocates " \
    "one; with 24 cycles more for each operation 2.0 and 1.8"
#define WHY_LINK                                                               \
    "with two locks a value is linked by a seq_cst store, which is two "       \
    "fences there; with a release 1.46"
#define WHY_ATOMIC                                                             \
    "a home serves an atomic operation in 10 cycles, which is assumed; with "  \
    "240 LCRQ has 8.8 M/s"
#define WHY_INTERVAL                                                           \
    "print does not say over which interval; over 2 ms it is 10.9"

static const struct qn_replay_claim last = {"L8", "last", NULL, true, 1};

/* ---- L8 ---- */

#define MESH_THREADS 36u
#define MESH_PAUSE   50u
#define MESH_NS      200000u

/* @param servers  Of these threads. */
static double on_mesh(struct qn_locks_replay *r, const char *type,
                      const char *backend, uint32_t servers)
{
    return qn_locks_replay_queue(
               r,
               (struct qn_locks_queue_opts){
                   .type = type,
                   .backend = backend,
                   .threads = MESH_THREADS - servers,
                   .pause = MESH_PAUSE,
                   .server = {.pause = QN_SERVER_NONE,
                              .only_server_uses_data = servers == 1},
                   .only_operations_use_data = true,
                   .run_ns = MESH_NS})
        .mops;
}

/* One delegate for all, over each backend. */
struct mesh {
    double mp, hybcomb, cc, shm, hyblock;
};

static struct mesh each_backend(struct qn_locks_replay *r, const char *type)
{
    return (struct mesh){
        on_mesh(r, type, "mp_server", 1), on_mesh(r, type, "hyb_comb", 0),
        on_mesh(r, type, "cc_synch", 0), on_mesh(r, type, "shm_server", 1),
        on_mesh(r, type, "hyblock", 0)};
}

static double third(const struct mesh *x)
{
    return QN_MAX(x->hyblock, QN_MAX(x->cc, x->shm));
}

static void one_lock(struct qn_locks_replay *r, const struct mesh *queue)
{
    const double best = third(queue);
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L8", "2", WHY_NODES, true, 0.25},
        qn_locks_replay_off(queue->mp / best, 2),
        "queue, one lock: MP-Server, %.1f M/s, over the third, %.2f; off by",
        queue->mp, queue->mp / best);
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L8", "1.5", WHY_NODES, true, 0.25},
        qn_locks_replay_off(queue->hybcomb / best, 1.5),
        "queue, one lock: HybComb over the third, %.2f; off by",
        queue->hybcomb / best);
}

static void two_locks(struct qn_locks_replay *r, const struct mesh *queue)
{
    const double hyblock = on_mesh(r, "ms2", "hyblock", 0);
    const double mp = on_mesh(r, "ms2", "mp_server", 2);
    const double lcrq = on_mesh(r, "lcrq32", NULL, 0);
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L8", "2", WHY_LINK, true, 0.25},
        qn_locks_replay_off(hyblock / queue->hyblock, 2),
        "queue: HybLock, two locks over one, %.2f; off by",
        hyblock / queue->hyblock);
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L8", "sooner", NULL, true, 1},
        mp / queue->mp, "queue: MP-Server, two locks over one");
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L8", "near", WHY_ATOMIC, true, 0.3},
        qn_locks_replay_off(lcrq, hyblock),
        "queue: LCRQ, %.0f M/s, beside HybLock with two locks, %.1f; off by",
        lcrq, hyblock);
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L8", "sooner", WHY_ATOMIC, true, 1},
        lcrq / queue->mp, "queue: LCRQ over MP-Server with one lock");
}

static void stacks(struct qn_locks_replay *r, const struct mesh *queue)
{
    const struct mesh stack = each_backend(r, "list");
    const double treiber = on_mesh(r, "treiber", NULL, 0);
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L8", "like", NULL, true, 0.3},
        qn_locks_replay_off(stack.mp, queue->mp),
        "stack: MP-Server beside its queue with one lock; off by");
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L8", "like", NULL, true, 0.3},
        qn_locks_replay_off(stack.hybcomb, queue->hybcomb),
        "stack: HybComb beside its queue with one lock; off by");
    qn_locks_replay_row(
        r, &last,
        treiber / QN_MIN(QN_MIN(stack.hyblock, stack.cc),
                         QN_MIN(stack.shm, QN_MIN(stack.mp, stack.hybcomb))),
        "stack: Treiber's, %.1f M/s, over the least of the others", treiber);
}

static void mesh(struct qn_locks_replay *r)
{
    const struct mesh queue = each_backend(r, "ms1");
    one_lock(r, &queue);
    two_locks(r, &queue);
    stacks(r, &queue);
}

void qn_locks_replay_mesh_queues(struct qn_locks_replay *r)
{
    static const struct qn_locks_group group = {"L8", false, mesh};
    qn_locks_replay_groups(r, &group, 1);
}

/* ---- L10 ---- */

#define SOCKETS_PAUSE   1000u
#define SOCKETS_WARM_NS 200000u
#define SOCKETS_NS      500000u
#define BATCHES_NS      1000000u /* batches of 200 take longer */
#define TURNS_NS        4000000u /* turns of all sockets */

struct sockets {
    const char *name;
    uint32_t clients, stride;          /* of one server */
    uint32_t cycles, streaming_cycles; /* of back-off, the best in print */
};

static struct qn_locks_queue_opts on_sockets(const struct sockets *m,
                                             const char *type,
                                             const char *backend)
{
    return (struct qn_locks_queue_opts){.type = type,
                                        .backend = backend,
                                        .threads = m->clients,
                                        .pause = SOCKETS_PAUSE,
                                        .server = {.pause = QN_SERVER_NONE},
                                        .warm_ns = SOCKETS_WARM_NS,
                                        .run_ns = SOCKETS_NS};
}

static double serve(struct qn_locks_replay *r, const struct sockets *m,
                    uint32_t servers, uint32_t cycles, bool streaming)
{
    struct qn_locks_queue_opts o =
        on_sockets(m, servers == 2 ? "ms2" : "ms1", "shm_server");
    o.threads = servers == 2 ? m->clients - m->stride : m->clients;
    o.server = (struct qn_server_opts){
        .pause = cycles > 0 ? QN_SERVER_FIXED : QN_SERVER_NONE,
        .pause_ns = (uint32_t)(cycles * r->machine.cycle / QN_PS_PER_NS),
        .stride = (uint8_t)m->stride,
        .only_server_uses_data = streaming};
    return qn_locks_replay_queue(r, o).mops;
}

static void helps(struct qn_locks_replay *r, const struct sockets *m,
                  const char *what, double two, double one)
{
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L10", "helps", NULL, false, 1.1},
        two / one, "%s, queue: %s, two locks, %.2f M/s, over one", m->name,
        what, two);
}

static void combiner(struct qn_locks_replay *r, const struct sockets *m,
                     const char *backend, const char *name)
{
    struct qn_locks_queue_opts one = on_sockets(m, "ms1", backend);
    struct qn_locks_queue_opts two = on_sockets(m, "ms2", backend);
    one.run_ns = two.run_ns = BATCHES_NS;
    helps(r, m, name, qn_locks_replay_queue(r, two).mops,
          qn_locks_replay_queue(r, one).mops);
}

/* @return the best server with one lock. */
static double each_queue(struct qn_locks_replay *r, const struct sockets *m)
{
    const double backoff = serve(r, m, 1, m->cycles, false);
    const double streaming = serve(r, m, 1, m->streaming_cycles, true);
    const double best = QN_MAX(backoff, streaming);
    helps(r, m, "base", serve(r, m, 2, 0, false), serve(r, m, 1, 0, false));
    combiner(r, m, "cc_synch", "CC-Synch");
    combiner(r, m, "h_synch", "H-Synch");
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L10", "little", NULL, true, 1.2},
        serve(r, m, 2, m->cycles, false) / best,
        "%s, queue: best server, two locks over one, %.1f M/s", m->name, best);
    return best;
}

static struct qn_locks_queue_result by_turns(struct qn_locks_replay *r,
                                             const struct sockets *m,
                                             uint64_t cycles)
{
    struct qn_locks_queue_opts o = on_sockets(m, "lcrq_numa", NULL);
    o.turn_ns = cycles * r->machine.cycle / QN_PS_PER_NS;
    o.warm_ns = TURNS_NS / 2;
    o.run_ns = TURNS_NS;
    return qn_locks_replay_queue(r, o);
}

static void xeon(struct qn_locks_replay *r)
{
    static const struct sockets m = {"Xeon", 158, 2, 5000, 3000};
    const double best = each_queue(r, &m);
    const double lcrq =
        qn_locks_replay_queue(r, on_sockets(&m, "lcrq", NULL)).mops;
    const struct qn_locks_queue_result x = by_turns(r, &m, 400000);
    const struct qn_locks_queue_result y = by_turns(r, &m, 1000000);
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L10", "first", NULL, false, 1},
        x.mops / QN_MAX(best, lcrq),
        "Xeon, queue: LCRQ by sockets, %.1f M/s, over the best other", x.mops);
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L10", "1.4", NULL, true, 1.8},
        x.most_over_least,
        "Xeon, queue: LCRQ by sockets: operations of a thread, most over "
        "least");
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L10", "above", NULL, false, 1},
        y.mops / x.mops,
        "Xeon, queue: LCRQ by sockets, pause of 1 million cycles over 400 000");
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L10", "4", WHY_INTERVAL, false, 2.5},
        y.most_over_least,
        "Xeon, queue: the same, 1 million: most over least, at least");
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L10", "4", WHY_INTERVAL, true, 6},
        y.most_over_least,
        "Xeon, queue: the same, 1 million: most over least, at most");
}

void qn_locks_replay_xeon_queues(struct qn_locks_replay *r)
{
    static const struct qn_locks_group group = {"L10", false, xeon};
    qn_locks_replay_groups(r, &group, 1);
}

static void opteron(struct qn_locks_replay *r)
{
    static const struct sockets m = {"Opteron", 47, 1, 1500, 0};
    (void)each_queue(r, &m);
}

void qn_locks_replay_opteron_queues(struct qn_locks_replay *r)
{
    static const struct qn_locks_group group = {"L10", false, opteron};
    qn_locks_replay_groups(r, &group, 1);
}
