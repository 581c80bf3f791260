/*
 * Orders to change the voters in any schedule (PROTOCOL.md 4.4).
 */
#include "paxos/driver/driver_internal.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/driver/change/change_world.h"

static uint64_t living(const struct world *w)
{
    uint64_t mask = 0;
    for (qn_node_t i = 0; i < w->nodes; i++) {
        mask |= w->member[i].driver != NULL ? qn_driver_bit(i) : 0;
    }
    return mask;
}

/* As the member says that knows most. */
static uint64_t newest_voters(const struct world *w)
{
    uint32_t most = 0;
    uint64_t voters_now = 0;
    for (uint64_t m = living(w); m != 0; m &= m - 1) {
        const struct qn_driver *d = w->member[__builtin_ctzll(m)].driver;
        const struct qn_utility *u = qn_onepaxos_utility(d->machine);
        if (qn_utility_len(u) > most) {
            most = qn_utility_len(u);
            voters_now = qn_utility_voters(u);
        }
    }
    return voters_now;
}

/* Whatever change is under way, a majority is left, and of that one in sync. */
static bool may_end(const struct world *w, qn_node_t i)
{
    uint64_t all = newest_voters(w);
    uint64_t left = all & living(w) & ~qn_driver_bit(i);
    bool sync = false;
    for (uint64_t m = left; m != 0; m &= m - 1) {
        sync |= world_in_sync(w, (qn_node_t)__builtin_ctzll(m));
    }
    return w->member[i].driver != NULL && sync &&
           2 * __builtin_popcountll(left) > __builtin_popcountll(all) + 1;
}

static void removed_end(struct world *w)
{
    for (qn_node_t i = 0; i < w->nodes; i++) {
        if (w->member[i].driver != NULL &&
            qn_driver_removed(w->member[i].driver)) {
            world_lose(w, i);
        }
    }
}

static void something(struct world *w)
{
    qn_node_t i = (qn_node_t)world_random(w, w->nodes);
    qn_node_t at = (qn_node_t)world_random(w, w->nodes);
    bool lives = w->member[i].driver != NULL;
    switch (world_random(w, 6)) {
    case 0:
    case 1:
        if (w->member[at].driver != NULL) {
            (void)world_order_of(w, at, i, world_random(w, 2) == 0);
        }
        break;
    case 2:
        if (may_end(w, i)) {
            world_lose(w, i);
        }
        break;
    case 3:
        if (!lives) {
            world_restart(w, i);
        }
        break;
    default:
        world_load(w, (uint32_t)world_random(w, 10));
        break;
    }
    world_rounds(w, (uint32_t)world_random(w, 40));
    removed_end(w);
}

/* @return entries of the utility log. Orders, ends and beginnings, in any
 * order. Then all go on: each order has ended, all know the same voters, and
 * those go on. */
static uint32_t story(uint64_t seed)
{
    struct world *w = world_seats(6, 7);
    uint32_t entries = 0;
    w->seed = seed;
    for (uint32_t step = 0; step < 80; step++) {
        something(w);
    }
    for (uint64_t m = newest_voters(w) & ~living(w); m != 0; m &= m - 1) {
        world_restart(w, (qn_node_t)__builtin_ctzll(m));
    }
    world_rounds(w, 2000);
    change_waits(w, QN_DRIVER_ORDER_MAX + QN_S);
    removed_end(w);
    world_go_on(w);
    for (uint64_t m = living(w); m != 0; m &= m - 1) {
        struct qn_driver_status st =
            world_status(w, (qn_node_t)__builtin_ctzll(m));
        cr_assert_neq(st.change, QN_CHANGE_PENDING, "seed %lu", seed);
        cr_assert_eq(st.voters, newest_voters(w), "seed %lu", seed);
        cr_assert_not(st.non_voting && st.is_voter, "seed %lu", seed);
        entries =
            QN_MAX(entries, w->member[__builtin_ctzll(m)].driver->roles.ul_len);
    }
    world_end(w);
    return entries;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 5u
#else
#define SEEDS 20u
#endif

Test(driver_change_random,
     whatever_ends_and_begins_each_order_is_done_or_not_begun)
{
    uint64_t seeds = seeds_number("QN_DRIVER_SEEDS", SEEDS);
    uint64_t entries = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        entries += story(seed);
    }
    cr_assert_gt(entries, 5 * seeds, "few changes: %lu", entries);
}
