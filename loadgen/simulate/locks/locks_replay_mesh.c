/*
 * L2 and L4 to L7 on the TILE-Gx 8036, as far as they need no messages of
 * words: a counter under locks and by delegation over its coherent memory. 36
 * threads under locks and combiners, 35 clients of a server; pauses of up to 50
 * empty turns.
 *
 * In print each thread has a core, and a server's and a combiner's data are
 * read by no other thread, so that fences are needed where a combiner hands
 * over, and not behind each operation. The rows take the options that say so.
 */
#include <stdio.h>

#include "core/base/bits.h"
#include "loadgen/simulate/locks/locks_replay_internal.h"

#define SERVER   "shm_server"
#define THREADS  36u
#define CLIENTS  35u
#define PAUSE    50u
#define LONG_NS  1000000u /* many batches of 200 */
#define EACH_NS  8000000u /* some 36 batches of 5000: of most threads one */
#define FOR_GOOD 1000000u /* operations: one combiner for longer than a run */

static struct qn_locks_result call(struct qn_locks_replay *r,
                                   const char *backend, uint32_t threads,
                                   uint32_t batch, uint64_t run_ns)
{
    return qn_locks_replay_run(
        r, (struct qn_locks_opts){.backend = backend,
                                  .threads = threads,
                                  .pause = PAUSE,
                                  .increments = 1,
                                  .batch = batch,
                                  .server = {.pause = QN_SERVER_NONE,
                                             .only_server_uses_data = true},
                                  .run_ns = run_ns});
}

static void saturation(struct qn_locks_replay *r)
{
    double usual = call(r, "cc_synch", THREADS, 200, EACH_NS).mops;
    double longer = call(r, "cc_synch", THREADS, 5000, EACH_NS).mops;
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L2 F", "saturated", NULL, true, 1.05},
        longer / usual, "CC-Synch: batches of 5000 over batches of 200");
}

static void beside_server(struct qn_locks_replay *r)
{
    double cc = call(r, "cc_synch", THREADS, 0, 0).mops;
    double shm = call(r, SERVER, CLIENTS, 0, 0).mops;
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L4", "1", NULL, true, 0.15},
        qn_locks_replay_off(cc / shm, 1),
        "CC-Synch over SHM-server, %.1f and %.1f M/s; off by", cc, shm);
}

/* ---- L5 ---- */

static void locks(struct qn_locks_replay *r)
{
    double mcs = call(r, "mcs", THREADS, 0, 0).mops;
    double clh = call(r, "clh", THREADS, 0, 0).mops;
    double tas = call(r, "tas", THREADS, 0, 0).mops;
    qn_locks_replay_row(r,
                        &(struct qn_replay_claim){"L5", "last", NULL, true, 1},
                        tas / QN_MIN(mcs, clh),
                        "36 threads: TAS over the lesser of MCS and CLH");
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L5", "alike", NULL, true, 0.1},
        qn_locks_replay_off(mcs, clh), "36 threads: MCS, %.2f M/s, beside CLH",
        mcs);
}

static void five_threads(struct qn_locks_replay *r)
{
    double lock = 0;
    static const char *const names[] = {"tas", "mcs", "clh"};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(names); i++) {
        lock = QN_MAX(lock, call(r, names[i], 5, 0, 0).mops);
    }
    double cc = call(r, "cc_synch", 5, 0, 0).mops;
    double shm = call(r, SERVER, 5, 0, 0).mops;
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L5", "above", NULL, false, 1}, shm / lock,
        "5 threads: SHM-server over the best of TAS, MCS and CLH");
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L5", "above", NULL, false, 1}, cc / lock,
        "5 threads: CC-Synch over the best of TAS, MCS and CLH");
}

/* ---- L6 ---- */

static void stalls(struct qn_locks_replay *r)
{
    double shm = call(r, SERVER, CLIENTS, 0, 0).stalled;
    double cc = call(r, "cc_synch", THREADS, FOR_GOOD, 0).stalled;
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L6", "above 1/2", NULL, false, 0.5}, shm,
        "SHM-server: share of its cycles that the server is stalled");
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L6", "above 1/2", NULL, false, 0.5}, cc,
        "CC-Synch: the same of one combiner for good");
}

static void combining(struct qn_locks_replay *r)
{
    uint32_t rise = 0;
    for (uint32_t n = 2; n <= THREADS && rise == 0; n++) {
        double got = call(r, "cc_synch", n, 0, LONG_NS).combined;
        rise = got > 2 * (n - 1) ? n : 0;
    }
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L6", "14 to 17", NULL, false, 7}, rise,
        "CC-Synch: threads from which more than one request of each is "
        "combined");
    double most = call(r, "cc_synch", THREADS, 0, LONG_NS).combined;
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L6", "200", NULL, true, 0.15},
        qn_locks_replay_off(most, 200),
        "CC-Synch, 36 threads: operations per combining, %.0f; off by", most);
}

void qn_locks_replay_mesh(struct qn_locks_replay *r)
{
    static const struct qn_locks_group group[] = {
        {"L4", true, beside_server}, {"L5", true, locks},
        {"L5", true, five_threads},  {"L6", true, stalls},
        {"L2", false, saturation},   {"L6", false, combining},
    };
    qn_locks_replay_groups(r, group, QN_ARRAY_COUNT(group));
    qn_locks_replay_words(r);
}
