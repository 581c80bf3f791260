/*
 * Real drivers under load and faults that a seed decides: kills, of several at
 * once with the memory acceptor, new incarnations, nodes that stand still,
 * suspicions right and wrong, deaths and new incarnations of which the others
 * hear at different times, orders to lead, nodes that apply nothing for a
 * while. Then everything heals, and what every living node has submitted must
 * be applied everywhere: once, in order, in one order (driver_world.c checks
 * that with each command).
 *
 * QN_DRIVER_SEEDS=n runs n seeds and names each before it begins,
 * QN_DRIVER_SEED=n runs one and says what happens.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/test.h"
#include "tests/unit/paxos/driver/driver_world.h"
#include "transports/registry.h"

enum { STEPS = 600, BIG = 20000, HEAL_ROUNDS = 200000 };

/** The acceptor; and whether nodes read each other's outboxes. */
enum by { PROCESS, MEMORY, MESSAGES };

struct faults {
    struct world *w;
    bool loud;
    bool kills, stops, suspects, big, late;
    uint64_t aside;  /* a sequence of its own, for `late` and arenas */
    qn_node_t fresh; /* has come back last */
    uint32_t untold[WORLD_NODES];    /* mask: who has not heard of its death */
    qn_time_t back_at[WORLD_NODES];  /* of the dead */
    qn_time_t go_at[WORLD_NODES];    /* of who stands still */
    qn_time_t hears_at[WORLD_NODES]; /* of who is deaf */
    uint64_t paused; /* a sequence of its own; 0: no node does */
    qn_time_t pause_end[WORLD_NODES];
    uint64_t epoch; /* newest that any node has known */
    uint32_t deaths;
};

static bool chance(struct faults *f, uint32_t percent)
{
    return world_random(f->w, 100) < percent;
}

static bool lives(const struct faults *f, qn_node_t i)
{
    return f->w->member[i].driver != NULL;
}

static void say(const struct faults *f, const char *what, qn_node_t i)
{
    if (f->loud) {
        fprintf(stderr, "%8.4f s  %s %u\n",
                (double)f->w->now / (double)QN_S - 1, what, i);
    }
}

/* ---- deaths -------------------------------------------------------------- */

/* Process acceptor: the last change of roles is over, and a majority stays. */
static bool settled(struct faults *f)
{
    uint32_t dead = 0;
    bool good = false;
    for (qn_node_t i = 0; i < f->w->nodes; i++) {
        if (!lives(f, i)) {
            dead++;
            continue;
        }
        struct qn_driver_status st = world_status(f->w, i);
        good |= st.role == QN_ACTIVE && st.epoch == f->epoch &&
                lives(f, st.acceptor) && (st.in_sync >> st.acceptor & 1) != 0;
    }
    return good && 2 * (dead + 1) < f->w->nodes;
}

static bool one_stays(const struct faults *f, qn_node_t dying)
{
    for (qn_node_t i = 0; i < f->w->nodes; i++) {
        if (i != dying && world_in_sync(f->w, i)) {
            return true;
        }
    }
    return false;
}

static void kill_one(struct faults *f)
{
    struct world *w = f->w;
    qn_node_t i = (qn_node_t)world_random(w, w->nodes);
    if (chance(f, 60) && lives(f, i)) { /* one that matters */
        struct qn_driver_status st = world_status(w, i);
        i = chance(f, 50) ? st.leader : st.acceptor;
    }
    if (!lives(f, i) || !(w->memory ? one_stays(f, i) : settled(f))) {
        return;
    }
    say(f, "kill", i);
    world_kill(w, i);
    f->deaths++;
    f->untold[i] = (1u << w->nodes) - 1;
    f->back_at[i] = w->now + world_random(w, 30 * QN_MS);
}

static uint64_t aside(struct faults *f, uint64_t n)
{
    f->aside = f->aside * UINT64_C(6364136223846793005) +
               UINT64_C(1442695040888963407);
    return (f->aside >> 33) % n;
}

/* Somebody hears late of the incarnation that comes now: it has not mapped its
 * ring, and the incarnation may be told to lead meanwhile (M11). */
static void deafen(struct faults *f, qn_node_t fresh)
{
    qn_node_t i = (qn_node_t)aside(f, f->w->nodes);
    f->fresh = fresh;
    if (f->late && i != fresh && lives(f, i)) {
        say(f, "deaf", i);
        f->w->member[i].deaf = true;
        f->hears_at[i] = f->w->now + aside(f, 30 * QN_MS);
    }
}

static void late(struct faults *f)
{
    struct world *w = f->w;
    for (qn_node_t i = 0; i < w->nodes; i++) {
        if (lives(f, i) && w->member[i].deaf && w->now >= f->hears_at[i]) {
            say(f, "hears", i);
            world_catch_up(w, i);
        }
    }
    bool order = f->late && lives(f, f->fresh) && aside(f, 25) == 0;
    for (qn_node_t i = 0; i < w->nodes && order; i++) {
        if (lives(f, i) && !w->member[i].stopped) {
            qn_driver_lead(w->member[i].driver, f->fresh, w->now);
        }
    }
}

static void deaths(struct faults *f)
{
    struct world *w = f->w;
    for (qn_node_t i = 0; i < w->nodes; i++) {
        for (qn_node_t k = 0; k < w->nodes && !lives(f, i); k++) {
            if ((f->untold[i] >> k & 1) != 0 && chance(f, 20)) {
                f->untold[i] &= ~(1u << k);
                world_tell(w, k, i);
            }
        }
        if (!lives(f, i) && w->now >= f->back_at[i]) {
            say(f, "restart", i);
            deafen(f, i);
            world_restart(w, i);
        }
    }
    if (f->kills && chance(f, 2)) {
        uint64_t n = w->memory ? 1 + world_random(w, w->nodes - 1) : 1;
        while (n-- > 0) {
            kill_one(f);
        }
    }
}

/* ---- the rest ------------------------------------------------------------ */

static void stops(struct faults *f)
{
    struct world *w = f->w;
    for (qn_node_t i = 0; i < w->nodes; i++) {
        struct world_member *m = &w->member[i];
        if (lives(f, i) && !m->stopped && f->stops && chance(f, 1)) {
            say(f, "stop", i);
            m->stopped = true;
            f->go_at[i] = w->now + world_random(w, 40 * QN_MS);
        } else if (m->stopped && w->now >= f->go_at[i]) {
            say(f, "go on", i);
            m->stopped = false;
        }
    }
}

/* As if each gave snapshots now and then, without a consistent cut. */
static void pauses(struct faults *f)
{
    struct world *w = f->w;
    for (qn_node_t i = 0; i < w->nodes && f->paused != 0; i++) {
        f->paused = f->paused * UINT64_C(6364136223846793005) +
                    UINT64_C(1442695040888963407);
        if (!lives(f, i)) {
            continue;
        }
        const struct world_member *m = &w->member[i];
        if (m->suspended && w->now >= f->pause_end[i]) {
            say(f, "applies again", i);
            (void)world_suspend_apply(w, i, false);
        } else if (!m->suspended && f->paused >> 57 == 0 &&
                   world_suspend_apply(w, i, true)) {
            say(f, "pause", i);
            f->pause_end[i] = w->now + (f->paused >> 33) % (20 * QN_MS);
        }
    }
}

static void suspicions(struct faults *f)
{
    struct world *w = f->w;
    qn_node_t i = (qn_node_t)world_random(w, w->nodes);
    if (!f->suspects || !lives(f, i) || w->member[i].stopped ||
        !chance(f, 10)) {
        return;
    }
    uint64_t mask = 0;
    if (chance(f, 20)) {
        mask = UINT64_C(1) << world_random(w, w->nodes);
        say(f, "suspicious", i);
    } else if (chance(f, 50)) { /* as a program would */
        for (qn_node_t k = 0; k < w->nodes; k++) {
            mask |= w->member[k].stopped ? UINT64_C(1) << k : 0;
        }
        mask &= qn_driver_waits_for(w->member[i].driver);
    }
    qn_driver_suspect(w->member[i].driver, mask, w->now);
}

static void submits(struct faults *f)
{
    static uint8_t bytes[BIG];
    struct world *w = f->w;
    qn_node_t i = (qn_node_t)world_random(w, w->nodes);
    uint64_t n = world_random(w, 12);
    while (n-- > 0 && lives(f, i)) {
        size_t len = f->big && chance(f, 5) ? world_random(w, BIG) : 20;
        if (w->arena_bytes != 0 && aside(f, 4) == 0) {
            len = aside(f, BIG);
        }
        (void)world_submit(w, i, bytes, len + 1);
    }
}

static void epochs(struct faults *f)
{
    for (qn_node_t i = 0; i < f->w->nodes; i++) {
        if (lives(f, i)) {
            uint64_t e = world_status(f->w, i).epoch;
            f->epoch = e > f->epoch ? e : f->epoch;
        }
    }
}

/* Whom anybody calls in sync could go on alone (M5, M11). */
static void promises(struct faults *f)
{
    struct world *w = f->w;
    bool sure[WORLD_NODES];
    for (qn_node_t i = 0; i < w->nodes; i++) {
        sure[i] = world_in_sync(w, i);
    }
    for (qn_node_t i = 0; i < w->nodes; i++) {
        uint64_t said = lives(f, i) ? world_status(w, i).in_sync : 0;
        for (qn_node_t k = 0; k < w->nodes; k++) {
            bool known = w->member[i].heard[k] == w->member[k].inc;
            bool told = known && lives(f, k) && (said >> k & 1) != 0;
            cr_assert(!told || sure[k], "node %u calls %u in sync", i, k);
        }
    }
}

static void heal(struct faults *f)
{
    struct world *w = f->w;
    f->kills = f->stops = f->suspects = f->late = false;
    for (qn_node_t i = 0; i < w->nodes; i++) {
        w->member[i].stopped = false;
        if (w->member[i].suspended && lives(f, i)) {
            (void)world_suspend_apply(w, i, false);
        }
        if (w->member[i].deaf) {
            world_catch_up(w, i);
        }
        if (!lives(f, i)) {
            world_restart(w, i);
        }
    }
    world_suspect(w, 0);
    world_settle(w, HEAL_ROUNDS);
}

/* Costs of which no two are alike, so that each root has its own tree. */
static struct qn_machine *costs_make(struct world *w)
{
    struct qn_machine *m = NULL;
    cr_assert_eq(qn_machine_create(&m, w->nodes), QN_OK);
    for (uint32_t i = 0; i < w->nodes * w->nodes; i++) {
        bool self = i % (w->nodes + 1) == 0;
        m->send[i] = self ? 0 : 1 + (double)world_random(w, 300);
        m->receive[i] = self ? 0 : 1 + (double)world_random(w, 100);
    }
    return m;
}

/* A tree that was made once: each hangs below somebody who comes before it. */
static void plan_make(struct world *w)
{
    struct qn_edges e;
    struct qn_shape s;
    qn_node_t node[QN_NODES_MAX];
    qn_edges_init(&e, w->nodes);
    for (uint32_t i = 0; i < w->nodes; i++) {
        node[i] = i;
        if (i > 0) {
            qn_edges_add(&e, (uint32_t)world_random(w, i), i);
        }
    }
    cr_assert_eq(qn_shape_from_edges(&s, &e, 0), QN_OK);
    cr_assert_eq(qn_tree_place(&w->plan, &s, node), QN_OK);
}

/* @return failovers that the seed had. */
static uint64_t run(uint64_t seed, enum by by, const char *transport, bool loud)
{
    bool memory = by == MEMORY;
    struct world *w = world_make(3, memory);
    struct faults f = {.w = w, .loud = loud};
    w->messages = by == MESSAGES;
    w->transport = qn_transport_find(transport);
    w->seed = seed;
    w->nodes = 3 + (uint32_t)world_random(w, WORLD_NODES - 2);
    static const char *const names[] = {"binary", "sequential", "fibonacci",
                                        "tree:k=1"};
    w->topology = names[world_random(w, 4)];
    w->ring_slots = chance(&f, 30) ? 16 : 4096;
    w->ring_bytes = chance(&f, 30) ? 1u << 17 : 1u << 22;
    w->shared_cores = seed % 4 == 3;
    f.kills = chance(&f, 70);
    f.stops = chance(&f, 50);
    f.suspects = chance(&f, 50);
    f.big = chance(&f, 30);
    f.late = memory && seed % 3 == 0;
    f.aside = seed;
    f.paused = seed % 5 == 1 ? seed : 0;
    /* In half of them long commands stay in arenas, which have place for few.
     */
    w->arena_bytes =
        seed % 4 < 2 && !w->messages ? (uint64_t)16384 << seed % 3 : 0;
    w->costs = seed % 3 == 2 ? costs_make(w) : NULL;
    if (seed % 6 == 4) {
        plan_make(w);
    }
    if (seed % 2 == 1) { /* beside each of these trees */
        w->ring = 1 + (uint32_t)(seed / 2 % 3);
        w->ring_from = seed % 8 == 5 ? 2 : 1;
    }
    world_start(w);
    while (w->ring != 0 && w->now < QN_S + QN_RING_CALM + 10 * QN_MS) {
        world_submit_number(w, 0, 0);
        world_rounds(w, 20); /* the faults find a ring */
    }
    cr_assert(w->ring_from != 1 ||
              world_status(w, w->memory ? 0 : 1).ring != 0);
    for (uint32_t s = 0; s < STEPS; s++) {
        submits(&f);
        world_rounds(w, 1 + (uint32_t)world_random(w, 4));
        epochs(&f);
        deaths(&f);
        late(&f);
        stops(&f);
        pauses(&f);
        suspicions(&f);
        if (memory) {
            promises(&f);
        }
    }
    heal(&f);
    epochs(&f);
    if (loud) {
        fprintf(stderr, "%u commands, %u deaths, epoch %lu, %u snapshots\n",
                w->history_count, f.deaths, (unsigned long)f.epoch,
                w->installs);
    }
    world_end(w);
    return f.epoch;
}

#if defined(__SANITIZE_ADDRESS__) /* has seen all code in few of them */
#define SEEDS 4u
#else
#define SEEDS 40u
#endif

static void run_over(const char *transport, enum by by)
{
    const char *one = getenv("QN_DRIVER_SEED");
    const char *many = getenv("QN_DRIVER_SEEDS");
    uint64_t seeds = many != NULL ? strtoull(many, NULL, 10) : SEEDS;
    uint64_t changes = 0;
    if (one != NULL) {
        run(strtoull(one, NULL, 10), by, transport, true);
        return;
    }
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        if (many != NULL) {
            fprintf(stderr, "seed %lu\n", (unsigned long)seed);
        }
        changes += run(seed, by, transport, false);
    }
    cr_assert_gt(changes, seeds, "few changes of roles: %lu in %lu runs",
                 (unsigned long)changes, (unsigned long)seeds);
}

/* A former leader was still answering SEAL, for a slow asker, when it led again
 * and forgot what it had proposed. */
Test(driver_random, what_is_forgotten_is_sent_to_nobody)
{
    run(454, PROCESS, "ump", false);
}

/* A node ended while it proposed itself, and a vote for its entry stayed; when
 * the acceptor ended, the leader had to finish that entry first (LEFT_OPEN). */
Test(driver_random, what_a_dead_proposer_left_open_deposes_no_leader)
{
    run(42, MESSAGES, "udn", false);
}

Test(driver_random, logs_are_equal_process, .timeout = 600)
{
    run_over("ump", PROCESS);
}

Test(driver_random, logs_are_equal_messages, .timeout = 600)
{
    run_over("ump", MESSAGES);
}

Test(driver_random, logs_are_equal_memory, .timeout = 600)
{
    run_over("ump", MEMORY);
}

/* Over each other transport. A device is strict, and tells of no position of
 * which a message does not. */
Test(driver_random, logs_are_equal_over_ffq, .timeout = 600)
{
    run_over("ffq", PROCESS);
}

Test(driver_random, logs_are_equal_over_mpb, .timeout = 600)
{
    run_over("mpb", MESSAGES);
}

Test(driver_random, logs_are_equal_over_udn, .timeout = 600)
{
    run_over("udn", MESSAGES);
}
