/*
 * L1 to L7 on the TILE-Gx 8036, as far as they need messages of words: HybLock,
 * MP-Server and HybComb, beside what uses memory only. Threads and pauses as in
 * locks_replay_mesh.c.
 */
#include "core/base/bits.h"
#include "loadgen/simulate/locks/locks_replay_internal.h"

#define THREADS    36u
#define CLIENTS    35u /* of a server */
#define PAUSE      50u
#define LONG_NS    2000000u
#define FOR_GOOD   1000000u /* operations: one combiner for a whole run */
#define PLACEMENTS 4u       /* of lines at homes; print does not tell its own */
#define PLACED_NS  500000u  /* of a run of each */

#define WHY_OPENING                                                            \
    "a node is opened without a fence here, so that batches fill; with the "   \
    "opening a release 61 M/s, and 2.6"

static struct qn_locks_opts opts(const char *backend, uint32_t threads,
                                 uint32_t increments, uint32_t batch)
{
    return (struct qn_locks_opts){
        .backend = backend,
        .threads = threads,
        .pause = PAUSE,
        .increments = increments,
        .batch = batch,
        .server = {.pause = QN_SERVER_NONE, .only_server_uses_data = true},
        .run_ns = batch > 0 ? LONG_NS : 0};
}

static struct qn_locks_result run(struct qn_locks_replay *r,
                                  const char *backend, uint32_t threads,
                                  uint32_t increments, uint32_t batch)
{
    return qn_locks_replay_run(r, opts(backend, threads, increments, batch));
}

static double ratio(struct qn_locks_replay *r, const char *over,
                    const char *under, uint32_t increments)
{
    return run(r, over, THREADS, increments, 0).mops /
           run(r, under, THREADS, increments, 0).mops;
}

static void servers(struct qn_locks_replay *r)
{
    struct qn_locks_result mp = run(r, "mp_server", CLIENTS, 1, 0);
    double shm = run(r, "shm_server", CLIENTS, 1, 0).mops;
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L1 F", "4.3", NULL, true, 0.15},
        qn_locks_replay_off(mp.mops / shm, 4.3),
        "MP-Server, %.1f M/s, over SHM-server, %.2f; off by", mp.mops,
        mp.mops / shm);
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L6", "below 5 %", NULL, true, 0.05},
        mp.stalled,
        "MP-Server: share of its cycles that the server is stalled");
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L6", "1.1", NULL, true, 1.15},
        mp.most_over_least,
        "MP-Server: operations of a thread, most over least");
}

static void locks(struct qn_locks_replay *r)
{
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L3 F", "2", NULL, true, 0.15},
        qn_locks_replay_off(ratio(r, "hyblock", "mcs", 0), 2),
        "HybLock over MCS, empty critical section; off by");
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L5", "1.35", NULL, true, 0.2},
        qn_locks_replay_off(ratio(r, "hyblock", "mcs", 1), 1.35),
        "HybLock over MCS, counter; off by");
    double longer = ratio(r, "hyblock", "mcs", 25);
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L5", "1.18", NULL, false, 1.08}, longer,
        "HybLock over MCS, 25 increments, at least");
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L5", "1.18", NULL, true, 1.28}, longer,
        "HybLock over MCS, 25 increments, at most");
}

static double alone(struct qn_locks_replay *r, const char *backend)
{
    return run(r, backend, 1, 1, 0).latency_ns;
}

static void one_thread(struct qn_locks_replay *r)
{
    const double tas = alone(r, "tas");
    const double queue = QN_MIN(alone(r, "mcs"), alone(r, "clh"));
    const double hyblock = alone(r, "hyblock");
    const double mp = alone(r, "mp_server");
    const double cc = alone(r, "cc_synch");
    const double best = QN_MIN(QN_MIN(tas, queue), QN_MIN(hyblock, cc));
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L5", "beats all", NULL, true, 1},
        mp / best, "one thread: MP-Server, %.0f ns, over the best other", mp);
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L5", "below", NULL, true, 1},
        hyblock / queue, "one thread: HybLock, %.0f ns, over MCS and CLH",
        hyblock);
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L5", "below", NULL, true, 1},
        tas / hyblock, "one thread: TAS, %.0f ns, over HybLock", tas);
    qn_locks_replay_row(r,
                        &(struct qn_replay_claim){"L5", "below", NULL, true, 1},
                        cc / alone(r, "hyb_comb"),
                        "one thread: CC-Synch, %.0f ns, over HybComb", cc);
}

/* ---- HybComb ---- */

static void combiners(struct qn_locks_replay *r)
{
    struct qn_locks_result usual = run(r, "hyb_comb", THREADS, 1, 200);
    double most = run(r, "hyb_comb", THREADS, 1, 5000).mops;
    double cc = run(r, "cc_synch", THREADS, 1, 200).mops;
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L2 F", "88 M/s", NULL, true, 0.1},
        qn_locks_replay_off(most, 88),
        "HybComb, batches of 5000: %.1f M/s; off by", most);
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L4", "2.5", WHY_OPENING, true, 0.3},
        qn_locks_replay_off(usual.mops / cc, 2.5),
        "HybComb over CC-Synch, %.2f; off by", usual.mops / cc);
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L6", "0.1", NULL, true, 0.15}, usual.cas,
        "HybComb, 36 threads: compare-and-swaps per operation");
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L6", "below 200", NULL, true, 0.5},
        qn_locks_replay_off(usual.combined, 200),
        "HybComb, 36 threads: operations per combining, %.0f; off by",
        usual.combined);
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L6", "below 5 %", NULL, true, 0.05},
        run(r, "hyb_comb", THREADS, 1, FOR_GOOD).stalled,
        "HybComb: share of its cycles that one combiner for good is stalled");
}

/* HybComb, the mean of some placements of lines: a thread that is far from the
 * home of the line which names the combiner has fewer operations. */
static struct qn_locks_result placed(struct qn_locks_replay *r,
                                     uint32_t threads)
{
    struct qn_locks_result mean = {0};
    for (uint32_t i = 0; i < PLACEMENTS; i++) {
        struct qn_locks_opts o = opts("hyb_comb", threads, 1, 200);
        o.homes = i;
        o.run_ns = PLACED_NS;
        const struct qn_locks_result x = qn_locks_replay_run(r, o);
        mean.combined += x.combined / PLACEMENTS;
        mean.cas += x.cas / PLACEMENTS;
        mean.most_over_least += x.most_over_least / PLACEMENTS;
    }
    return mean;
}

static void by_threads(struct qn_locks_replay *r)
{
    uint32_t rise = 0;
    double cas = 0;
    double unfair = 0;
    double sum = 0;
    for (uint32_t n = 2; n <= THREADS; n += 2) {
        const struct qn_locks_result x = placed(r, n);
        rise = rise == 0 && x.combined > 2 * (n - 1) ? n : rise;
        cas = QN_MAX(cas, x.cas);
        unfair = QN_MAX(unfair, x.most_over_least);
        sum += x.most_over_least;
    }
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L6", "14 to 24", NULL, false, 7}, rise,
        "HybComb: threads from which more than one request of each is "
        "combined");
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L6", "0.7", NULL, true, 0.9}, cas,
        "HybComb, 2 to 36 threads: compare-and-swaps per operation, the most");
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L6", "1.2", NULL, true, 1.3}, unfair,
        "HybComb: operations of a thread, most over least, the most");
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L6", "1.16", NULL, true, 1.2},
        2 * sum / THREADS,
        "HybComb: operations of a thread, most over least, the mean");
}

static void long_operations(struct qn_locks_replay *r)
{
    double mp = run(r, "mp_server", CLIENTS, 15, 0).mops;
    double worst = QN_MIN(run(r, "shm_server", CLIENTS, 15, 0).mops,
                          QN_MIN(run(r, "hyb_comb", THREADS, 15, 0).mops,
                                 run(r, "cc_synch", THREADS, 15, 0).mops));
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L7 F", "1.10", NULL, true, 1.25},
        mp / worst, "15 increments: MP-Server over the worst delegation");
}

void qn_locks_replay_words(struct qn_locks_replay *r)
{
    static const struct qn_locks_group group[] = {
        {"L1 L6", true, servers},  {"L3 L5", true, locks},
        {"L5", true, one_thread},  {"L2 L4 L6", false, combiners},
        {"L6", false, by_threads}, {"L7", false, long_operations},
    };
    qn_locks_replay_groups(r, group, QN_ARRAY_COUNT(group));
    qn_locks_replay_mesh_queues(r);
}
