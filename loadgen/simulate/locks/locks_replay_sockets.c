/*
 * L9 and L10: a counter behind a server of slots, on machines of sockets joined
 * by links. 158 clients on the Xeon 8x10x2 and 47 on the Opteron 4x12, dealt
 * round robin; pauses of up to 1000 cycles.
 *
 * The server reads slots in order, so that a prefetcher runs ahead of it; a
 * client that looks at its reply all the time takes the line away from that.
 * Two ways out: back-off, that is to keep away for a fixed time between looks,
 * and streaming stores of the replies.
 */
#include "core/base/bits.h"
#include "loadgen/simulate/locks/locks_replay_internal.h"

#define SERVER  "shm_server"
#define PAUSE   1000u
#define WARM_NS 200000u
#define RUN_NS  500000u
#define LONG    200u /* increments */

#define WHY_BASE                                                               \
    "a store to a shared line takes 246 cycles or more here, by a table that " \
    "is from memory; with half of it base has 7.3 M/s, and this row holds"

struct machine {
    const char *name;
    uint32_t clients, stride;
    uint32_t one_cycles; /* of one client: back-off, and streaming? */
    bool one_streaming;
    double backoff, streaming; /* published, over base */
    const char *backoff_text, *streaming_text;
    double both_least, both_most; /* back-off on top of streaming */
    double long_least, long_most;
    const char *long_text;
};

static const uint32_t backoff_cycles[] = {1500, 3000, 5000};

static struct qn_locks_result call(struct qn_locks_replay *r,
                                   const char *backend, uint32_t threads,
                                   struct qn_server_opts server,
                                   uint32_t increments)
{
    return qn_locks_replay_run(r,
                               (struct qn_locks_opts){.backend = backend,
                                                      .threads = threads,
                                                      .pause = PAUSE,
                                                      .increments = increments,
                                                      .server = server,
                                                      .warm_ns = WARM_NS,
                                                      .run_ns = RUN_NS});
}

static struct qn_server_opts slots(const struct qn_locks_replay *r,
                                   const struct machine *m, uint32_t cycles,
                                   bool streaming)
{
    return (struct qn_server_opts){
        .pause = cycles > 0 ? QN_SERVER_FIXED : QN_SERVER_NONE,
        .pause_ns = (uint32_t)(cycles * r->machine.cycle / QN_PS_PER_NS),
        .stride = (uint8_t)m->stride,
        .only_server_uses_data = streaming};
}

static double serve(struct qn_locks_replay *r, const struct machine *m,
                    uint32_t cycles, bool streaming)
{
    return call(r, SERVER, m->clients, slots(r, m, cycles, streaming), 1).mops;
}

static double best_backoff(struct qn_locks_replay *r, const struct machine *m,
                           bool streaming)
{
    double best = 0;
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(backoff_cycles); i++) {
        best = QN_MAX(best, serve(r, m, backoff_cycles[i], streaming));
    }
    return best;
}

/* The prefetcher cannot follow the server. */
static void shuffled(struct qn_locks_replay *r, const struct machine *m,
                     double base, double backoff)
{
    struct qn_server_opts o = slots(r, m, 0, false);
    o.scattered = true;
    const double none = call(r, SERVER, m->clients, o, 1).mops;
    double best = 0;
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(backoff_cycles); i++) {
        o = slots(r, m, backoff_cycles[i], false);
        o.scattered = true;
        best = QN_MAX(best, call(r, SERVER, m->clients, o, 1).mops);
    }
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L10", "no effect", NULL, true, 0.1},
        qn_locks_replay_off(none, base),
        "%s: base with shuffled slots, %.2f M/s, beside base; off by", m->name,
        none);
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L10", "much less", NULL, true, 0.5},
        (best - base) / (backoff - base),
        "%s: gain of back-off with shuffled slots, %.2f M/s, of that without",
        m->name, best);
}

/* ---- one client ---- */

static double latency(struct qn_locks_replay *r, const struct machine *m,
                      uint32_t cycles, bool streaming)
{
    return call(r, SERVER, 1, slots(r, m, cycles, streaming), 1).latency_ns;
}

/* Those that the figure in print has, but for the longest back-off. */
static void one_client(struct qn_locks_replay *r, const struct machine *m)
{
    double base = latency(r, m, 0, false);
    double first = latency(r, m, m->one_cycles, m->one_streaming);
    double second = latency(r, m, 0, true);
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L10", "fastest", NULL, false, 1},
        QN_MIN(first, second) / base,
        "%s, one client: latency of the best other over base, %.0f ns", m->name,
        base);
    qn_locks_replay_row(
        r,
        &(struct qn_replay_claim){
            "L10", "1.6",
            "a call of one client is short here, so that a back-off of a fixed "
            "length, or the way to memory and back, is most of its time",
            true, 1.8},
        QN_MAX(first, second) / base,
        "%s, one client: latency of the worst but the longest back-off",
        m->name);
}

/* ---- long operations ---- */

static void long_operations(struct qn_locks_replay *r, const struct machine *m)
{
    double base = call(r, SERVER, m->clients, slots(r, m, 0, false), LONG).mops;
    double stream =
        call(r, SERVER, m->clients, slots(r, m, 0, true), LONG).mops;
    qn_locks_replay_row(r,
                        &(struct qn_replay_claim){"L10", m->long_text, NULL,
                                                  false, m->long_least},
                        stream / base,
                        "%s, 200 increments: streaming over base, at least",
                        m->name);
    qn_locks_replay_row(r,
                        &(struct qn_replay_claim){"L10", m->long_text, WHY_BASE,
                                                  true, m->long_most},
                        stream / base,
                        "%s, 200 increments: streaming over base, at most",
                        m->name);
}

/* ---- both machines ---- */

struct rates {
    double base, backoff, streaming, both;
};

static double best_of(const struct rates *x)
{
    return QN_MAX(QN_MAX(x->backoff, x->streaming), x->both);
}

static struct rates common(struct qn_locks_replay *r, const struct machine *m)
{
    struct rates x = {.base = serve(r, m, 0, false),
                      .backoff = best_backoff(r, m, false),
                      .streaming = serve(r, m, 0, true),
                      .both = serve(r, m, 3000, true)};
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L9 F", m->backoff_text, NULL, true, 0.15},
        qn_locks_replay_off(x.backoff / x.base, m->backoff),
        "%s: back-off over base, %.2f (base %.2f M/s); off by", m->name,
        x.backoff / x.base, x.base);
    qn_locks_replay_row(
        r,
        &(struct qn_replay_claim){"L9 F", m->streaming_text, NULL, true, 0.15},
        qn_locks_replay_off(x.streaming / x.base, m->streaming),
        "%s: streaming over base, %.2f; off by", m->name, x.streaming / x.base);
    qn_locks_replay_row(
        r,
        &(struct qn_replay_claim){"L10", "helps", NULL, false, m->both_least},
        x.both / x.streaming,
        "%s: back-off of 3000 on top of streaming, at least", m->name);
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L10", "20 M/s", WHY_BASE, true, 0.35},
        qn_locks_replay_off(best_of(&x), 20),
        "%s: best server, %.1f M/s; off by", m->name, best_of(&x));
    if (!r->o->small) {
        shuffled(r, m, x.base, x.backoff);
    }
    if (m->both_most > 0) {
        qn_locks_replay_row(r,
                            &(struct qn_replay_claim){"L10", "no effect", NULL,
                                                      true, m->both_most},
                            x.both / x.streaming,
                            "%s: back-off of 3000 on top of streaming, at most",
                            m->name);
    }
    return x;
}

/* Longer: a batch of 200 takes a fifth of the other runs. */
static double combine(struct qn_locks_replay *r, const char *backend,
                      uint32_t threads)
{
    return qn_locks_replay_run(
               r, (struct qn_locks_opts){.backend = backend,
                                         .threads = threads,
                                         .pause = PAUSE,
                                         .increments = 1,
                                         .warm_ns = WARM_NS,
                                         .run_ns = 4 * (uint64_t)RUN_NS})
        .mops;
}

/* @return the rate of CC-Synch. */
static double combiner(struct qn_locks_replay *r, const struct machine *m,
                       double base)
{
    const double cc = combine(r, "cc_synch", m->clients);
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L10", "alike", NULL, true, 0.25},
        qn_locks_replay_off(cc, base),
        "%s: CC-Synch, %.2f M/s, beside base; off by", m->name, cc);
    return cc;
}

/* ---- machines ---- */

static const struct machine xeon = {.name = "Xeon",
                                    .clients = 158,
                                    .stride = 2,
                                    .one_cycles = 3000,
                                    .one_streaming = true,
                                    .backoff = 6,
                                    .backoff_text = "6",
                                    .streaming = 3.5,
                                    .streaming_text = "3.5",
                                    .both_least = 1.1,
                                    .long_text = "1.84",
                                    .long_least = 1.4,
                                    .long_most = 2.3};

static const struct machine opteron = {.name = "Opteron",
                                       .clients = 47,
                                       .stride = 1,
                                       .one_cycles = 1500,
                                       .backoff = 2,
                                       .backoff_text = "2",
                                       .streaming = 1.7,
                                       .streaming_text = "1.7",
                                       .both_least = 0.9,
                                       .both_most = 1.1,
                                       .long_text = "1.19",
                                       .long_least = 1.05,
                                       .long_most = 1.35};

static void xeon_counters(struct qn_locks_replay *r)
{
    const struct qn_server_opts none = {0};
    const struct rates x = common(r, &xeon);
    const double best = best_of(&x);
    const double cc = combiner(r, &xeon, x.base);
    const double h = combine(r, "h_synch", xeon.clients);
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L10", "above", NULL, false, 1.1}, h / cc,
        "Xeon: H-Synch, %.2f M/s, over CC-Synch", h);
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L10", "below", NULL, true, 0.95},
        h / best, "Xeon: H-Synch over the best server");
    const double add = call(r, QN_LOCKS_FETCH_ADD, 160, none, 1).mops;
    const double half = call(r, QN_LOCKS_FETCH_ADD, 80, none, 1).mops;
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L10", "below 1/2", NULL, true, 0.5},
        add / best, "Xeon: fetch-and-add, %.2f M/s, over the best server", add);
    qn_locks_replay_row(
        r, &(struct qn_replay_claim){"L10", "rises", NULL, false, 1.1},
        add / half, "Xeon: fetch-and-add, 160 threads over 80");
}

static void xeon_calls(struct qn_locks_replay *r)
{
    long_operations(r, &xeon);
    one_client(r, &xeon);
}

static void opteron_servers(struct qn_locks_replay *r)
{
    (void)common(r, &opteron);
}

static void opteron_calls(struct qn_locks_replay *r)
{
    (void)combiner(r, &opteron, serve(r, &opteron, 0, false));
    long_operations(r, &opteron);
    one_client(r, &opteron);
}

void qn_locks_replay_xeon(struct qn_locks_replay *r)
{
    static const struct qn_locks_group group[] = {
        {"L9 L10", false, xeon_counters},
        {"L10", false, xeon_calls},
    };
    qn_locks_replay_groups(r, group, QN_ARRAY_COUNT(group));
    qn_locks_replay_xeon_queues(r);
}

void qn_locks_replay_opteron(struct qn_locks_replay *r)
{
    static const struct qn_locks_group group[] = {
        {"L9 L10", true, opteron_servers},
        {"L10", false, opteron_calls},
    };
    qn_locks_replay_groups(r, group, QN_ARRAY_COUNT(group));
    qn_locks_replay_opteron_queues(r);
}
