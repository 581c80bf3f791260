/*
 * L1 to L7 on the TILE-Gx 8036, as far as they need messages of words: HybLock,
 * MP-Server and HybComb, beside what uses memory only. Threads and pauses as in
 * locks_replay_mesh.c.
 */
#include "core/base/bits.h"
#include "loadgen/simulate/locks/locks_replay_internal.h"

#define THREADS  36u
#define CLIENTS  35u /* of a server */
#define PAUSE    50u
#define LONG_NS  1000000u
#define FOR_GOOD 1000000u /* operations: one combiner for a whole run */

#define WHY_FEW                                                                \
    "a combiner finds one request of each other thread and hands over before " \
    "the next ones are there: its batches do not grow"
#define WHY_EXCHANGE                                                           \
    "CC-Synch hands each request back by an exchange, behind a fence; in "     \
    "print by a store"

static struct qn_locks_result run(struct qn_locks_replay *r,
                                  const char *backend, uint32_t threads,
                                  uint32_t increments, uint32_t batch)
{
    return qn_locks_replay_run(
        r, (struct qn_locks_opts){.backend = backend,
                                  .threads = threads,
                                  .pause = PAUSE,
                                  .increments = increments,
                                  .batch = batch,
                                  .server = {.pause = QN_SERVER_NONE,
                                             .only_server_uses_data = true},
                                  .run_ns = batch > 0 ? LONG_NS : 0});
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
        r, &(struct qn_locks_claim){"L1 F", "4.3", NULL, true, 0.15},
        qn_locks_replay_off(mp.mops / shm, 4.3),
        "MP-Server, %.1f M/s, over SHM-server, %.2f; off by", mp.mops,
        mp.mops / shm);
    qn_locks_replay_row(
        r, &(struct qn_locks_claim){"L6", "below 5 %", NULL, true, 0.05},
        mp.stalled,
        "MP-Server: share of its cycles that the server is stalled");
    qn_locks_replay_row(r,
                        &(struct qn_locks_claim){"L6", "1.1", NULL, true, 1.15},
                        mp.most_over_least,
                        "MP-Server: operations of a thread, most over least");
}

static void locks(struct qn_locks_replay *r)
{
    qn_locks_replay_row(
        r,
        &(struct qn_locks_claim){
            "L3 F", "2",
            "MCS here waits by a word that says whether the waiter sleeps, so "
            "that it hands over by an exchange; in print by a store",
            true, 0.15},
        qn_locks_replay_off(ratio(r, "hyblock", "mcs", 0), 2),
        "HybLock over MCS, empty critical section; off by");
    qn_locks_replay_row(
        r,
        &(struct qn_locks_claim){
            "L5", "1.35", "as in L3: MCS hands over by an exchange", true, 0.2},
        qn_locks_replay_off(ratio(r, "hyblock", "mcs", 1), 1.35),
        "HybLock over MCS, counter; off by");
    double longer = ratio(r, "hyblock", "mcs", 25);
    qn_locks_replay_row(
        r, &(struct qn_locks_claim){"L5", "1.18", NULL, false, 1.08}, longer,
        "HybLock over MCS, 25 increments, at least");
    qn_locks_replay_row(
        r, &(struct qn_locks_claim){"L5", "1.18", NULL, true, 1.28}, longer,
        "HybLock over MCS, 25 increments, at most");
}

static void one_thread(struct qn_locks_replay *r)
{
    static const char *const names[] = {"tas", "mcs", "clh", "hyblock",
                                        "cc_synch"};
    double mp = run(r, "mp_server", 1, 1, 0).latency_ns;
    double best = 1e9;
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(names); i++) {
        best = QN_MIN(best, run(r, names[i], 1, 1, 0).latency_ns);
    }
    qn_locks_replay_row(
        r, &(struct qn_locks_claim){"L5", "beats all", NULL, true, 1},
        mp / best, "one thread: MP-Server, %.0f ns, over the best other", mp);
}

static void combiners(struct qn_locks_replay *r)
{
    struct qn_locks_result usual = run(r, "hyb_comb", THREADS, 1, 200);
    double most = run(r, "hyb_comb", THREADS, 1, 5000).mops;
    double cc = run(r, "cc_synch", THREADS, 1, 200).mops;
    qn_locks_replay_row(
        r, &(struct qn_locks_claim){"L2 F", "88 M/s", WHY_FEW, true, 0.1},
        qn_locks_replay_off(most, 88),
        "HybComb, batches of 5000: %.1f M/s; off by", most);
    qn_locks_replay_row(
        r, &(struct qn_locks_claim){"L4", "2.5", WHY_EXCHANGE, true, 0.3},
        qn_locks_replay_off(usual.mops / cc, 2.5),
        "HybComb over CC-Synch, %.2f; off by", usual.mops / cc);
    qn_locks_replay_row(
        r, &(struct qn_locks_claim){"L6", "0.1", NULL, true, 0.15}, usual.cas,
        "HybComb, 36 threads: compare-and-swaps per operation");
    qn_locks_replay_row(
        r, &(struct qn_locks_claim){"L6", "1.2", NULL, true, 1.3},
        usual.most_over_least,
        "HybComb, 36 threads: operations of a thread, most over least");
    qn_locks_replay_row(
        r, &(struct qn_locks_claim){"L6", "below 5 %", WHY_FEW, true, 0.05},
        run(r, "hyb_comb", THREADS, 1, FOR_GOOD).stalled,
        "HybComb: share of its cycles that one combiner for good is stalled");
}

static void long_operations(struct qn_locks_replay *r)
{
    double mp = run(r, "mp_server", CLIENTS, 15, 0).mops;
    double worst = QN_MIN(run(r, "shm_server", CLIENTS, 15, 0).mops,
                          run(r, "hyb_comb", THREADS, 15, 0).mops);
    double cc = run(r, "cc_synch", THREADS, 15, 0).mops;
    qn_locks_replay_row(
        r, &(struct qn_locks_claim){"L7 F", "1.10", WHY_EXCHANGE, true, 1.25},
        mp / QN_MIN(worst, cc),
        "15 increments: MP-Server over the worst delegation");
    qn_locks_replay_row(
        r, &(struct qn_locks_claim){"L7", "1.10", NULL, true, 1.25}, mp / worst,
        "15 increments: MP-Server over the worst, but for CC-Synch");
}

void qn_locks_replay_words(struct qn_locks_replay *r)
{
    servers(r);
    locks(r);
    one_thread(r);
    if (!r->o->small) {
        combiners(r);
        long_operations(r);
    }
}
