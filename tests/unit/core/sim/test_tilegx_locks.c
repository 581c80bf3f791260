/*
 * What handing a lock over costs on TILE-Gx: an MCS lock, whose next owner
 * spins on a line, beside HybLock, which hands over by a message. The critical
 * section is empty, so that what is measured is the lock; all 36 cores want it.
 *
 * Published: the overhead of HybLock is about half of that of MCS.
 */
#include "tests/unit/core/sim/tiled_world.h"

#define ROUNDS   200u
#define UNLOCKED UINT64_C(0)
#define ALLOW    UINT64_C(1000)

static struct mcs_node {
    alignas(QN_CACHELINE) qn_a64 next; /* a thread, from 1 */
    qn_a64 locked;
} mcs[37];

static qn_a64 *tail(void)
{
    return &world.line[0].x;
}

static void begin(void)
{
    load_machine("tilegx_8036");
    world.m.clock_ghz = 1;
    make_prices(36);
    cr_assert_eq(qn_udn_create(&world.udn, &world.m, 36), QN_OK);
    memset(mcs, 0, sizeof mcs);
}

static void end(void)
{
    qn_udn_destroy(world.udn);
    qn_prices_destroy(world.prices);
}

static uint32_t inside, entered;

static void critical_section(void)
{
    cr_assert_eq(inside, 0);
    inside++;
    entered++;
    qn_timed_work(1);
    inside--;
}

/* ---- MCS ---- */

static void await(qn_a64 *at, bool zero)
{
    while ((qn_load(at, QN_ACQUIRE) == 0) != zero) {
        qn_pause();
    }
}

static void mcs_acquire(uint64_t me)
{
    qn_store(&mcs[me].next, 0, QN_RELAXED);
    qn_store(&mcs[me].locked, 1, QN_RELAXED);
    uint64_t before = qn_exchange(tail(), me, QN_ACQ_REL);
    if (before != UNLOCKED) {
        qn_store(&mcs[before].next, me, QN_RELAXED);
        await(&mcs[me].locked, true);
    }
}

static void mcs_release(uint64_t me)
{
    uint64_t seen = me;
    if (qn_load(&mcs[me].next, QN_ACQUIRE) == 0) {
        if (qn_cas(tail(), &seen, UNLOCKED, QN_RELEASE)) {
            return;
        }
        await(&mcs[me].next, false);
    }
    qn_store(&mcs[qn_load(&mcs[me].next, QN_RELAXED)].locked, 0, QN_RELEASE);
}

static void use_mcs(void)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        mcs_acquire(qn_sim.self + 1);
        critical_section();
        mcs_release(qn_sim.self + 1);
        work_cycles(25);
    }
}

/* ---- HybLock ---- */

static uint64_t next_of[37];

static void hyb_send(uint64_t to, uint64_t word)
{
    qn_udn_send(world.udn, (uint32_t)to - 1, 0, &word, 1);
}

static uint64_t hyb_receive(void)
{
    uint64_t word;
    qn_udn_receive(world.udn, 0, &word, 1);
    return word;
}

static void hyb_acquire(uint64_t me)
{
    uint64_t before = qn_exchange(tail(), me, QN_ACQ_REL);
    next_of[me] = 0;
    if (before != UNLOCKED) {
        hyb_send(before, me);
        uint64_t word = hyb_receive();
        if (word != ALLOW) {
            next_of[me] = word;
            cr_assert_eq(hyb_receive(), ALLOW);
        }
    }
}

static void hyb_release(uint64_t me)
{
    uint64_t seen = me;
    if (next_of[me] == 0) {
        if (qn_udn_empty(world.udn, 0) &&
            qn_cas(tail(), &seen, UNLOCKED, QN_RELEASE)) {
            return;
        }
        next_of[me] = hyb_receive();
    }
    qn_fence(QN_RELEASE);
    hyb_send(next_of[me], ALLOW);
}

static void use_hyb(void)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        hyb_acquire(qn_sim.self + 1);
        critical_section();
        hyb_release(qn_sim.self + 1);
        work_cycles(25);
    }
}

/* @return cycles per critical section. */
static double each(void (*use)(void))
{
    entered = 0;
    atomic_store(tail(), UNLOCKED);
    for (uint32_t i = 0; i < 36; i++) {
        world.node[i] = use;
    }
    struct qn_timed_result r = run_world();
    double cycles = (double)r.clock / 1000 / (36 * ROUNDS);
    cr_assert_eq(entered, 36 * ROUNDS);
    cr_assert_eq(atomic_load(tail()), UNLOCKED);
    qn_timed_result_free(&r);
    return cycles;
}

Test(tilegx_locks, a_message_hands_a_lock_over_in_half_of_the_time,
     .init = begin, .fini = end)
{
    double by_line = each(use_mcs);
    double by_message = each(use_hyb);
    cr_assert(by_message > 0.85 * by_line / 2 &&
                  by_message < 1.15 * by_line / 2,
              "%f by message, %f by line", by_message, by_line);
}
