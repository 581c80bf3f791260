/* What is promised holds in any schedule. */

#include "flow_world.h"

#include <string.h>

#include "core/base/bits.h"
#include "tests/support/test.h"

/* A small ring, members that apply, are slow, stop, die and come
 * back with a snapshot, and after each step what is promised. */
enum { RING = 64, STEPS = 4000 };

static uint64_t rng;

static uint64_t any(uint64_t n)
{
    rng = rng * 6364136223846793005u + 1442695040888963407u;
    return (rng >> 33) % n;
}

static struct {
    bool dead;
    uint64_t share; /* applies in one of `share` steps; 0: stopped */
    uint64_t most;  /* it may lack */
} member[QN_NODES_MAX];

static bool fits(void)
{
    return fw.decided - fw.lo + 1 < RING || qn_flow_first(&fw.f) > fw.lo;
}

/* The leader, with a ring that overwrites what no awaited member needs. */
static void leader_turn(uint64_t most)
{
    for (uint64_t k = 0; k < most; k++) {
        struct qn_flow_by by;
        do {
            by = qn_flow_shuts(&fw.f, fw.now, BATCH);
            if (by.members == 0 && by.holds == 0 && !fits()) {
                by = qn_flow_oldest(&fw.f);
            }
        } while (qn_flow_look(&fw.f, fw.now, by));
        if (by.members != 0 || by.holds != 0) {
            return;
        }
        fw.decided++;
        qn_flow_decided(&fw.f, BATCH);
        fw.lo = fw.decided - fw.lo >= RING ? fw.lo + 1 : fw.lo;
    }
}

static void member_turn(qn_node_t n)
{
    if (any(300) == 0) {
        member[n].dead = !member[n].dead;
        if (member[n].dead) {
            qn_flow_down(&fw.f, fw.now, n);
        } else {
            fw.applied[n] = 0;
        }
    }
    if (any(60) == 0) {
        member[n].share = any(3) == 0 ? 0 : 1 + any(8);
    }
    if (member[n].dead || member[n].share == 0 || any(member[n].share) != 0) {
        return;
    }
    if (fw.applied[n] + 1 < fw.lo) {
        fw.applied[n] = fw.decided; /* a snapshot */
        qn_flow_heard(&fw.f, fw.now, n, flow_place(n));
        return;
    }
    flow_applies(n, 1 + any(10));
}

static uint32_t awaited_or_dead(uint32_t nodes)
{
    uint32_t count = 0;
    for (qn_node_t n = 1; n < nodes; n++) {
        count += fw.f.member[n].awaited || member[n].dead;
    }
    return count;
}

static void check(uint32_t nodes, uint64_t seed)
{
    for (qn_node_t n = 1; n < nodes; n++) {
        const struct qn_flow_member *m = &fw.f.member[n];
        if (m->awaited) {
            cr_assert(fw.applied[n] + 1 >= fw.lo,
                      "seed %llu: an awaited member lacks what is gone",
                      (unsigned long long)seed);
            uint64_t lacks = fw.decided - fw.applied[n];
            member[n].most =
                QN_MAX(QN_MIN(lacks, member[n].most), STOP / BATCH);
            cr_assert(lacks <= member[n].most, "seed %llu: the leader ran away",
                      (unsigned long long)seed);
        } else {
            member[n].most = RING; /* that it comes back with */
        }
    }
}

static void schedule(uint64_t seed)
{
    rng = seed;
    uint32_t nodes = 3 + (uint32_t)any(3);
    uint32_t min = (uint32_t)any(nodes);
    flow_begin(nodes, min);
    memset(member, 0, sizeof member);
    for (uint32_t k = 0; k < STEPS; k++) {
        flow_passes(any(20) * QN_MS);
        for (qn_node_t n = 1; n < nodes; n++) {
            uint64_t given = fw.f.given;
            member_turn(n);
            cr_assert_eq(fw.f.given, given);
        }
        uint32_t before = awaited_or_dead(nodes);
        uint64_t given = fw.f.given;
        leader_turn(any(30));
        check(nodes, seed);
        if (fw.f.given != given) {
            uint32_t dead = 0;
            for (qn_node_t n = 1; n < nodes; n++) {
                dead += member[n].dead;
            }
            cr_assert(
                awaited_or_dead(nodes) - dead >= QN_MIN(min, nodes - 1 - dead),
                "seed %llu: too few are awaited", (unsigned long long)seed);
            cr_assert(awaited_or_dead(nodes) < before);
        }
    }
    /* All go on: nothing holds a member. */
    for (qn_node_t n = 1; n < nodes; n++) {
        member[n].share = 1;
        if (!member[n].dead) {
            fw.applied[n] =
                fw.applied[n] + 1 < fw.lo ? fw.decided : fw.applied[n];
            flow_applies(n, 1000);
        }
    }
    qn_slot_t at = fw.decided;
    leader_turn(5);
    cr_assert(fw.decided == at + 5, "seed %llu: writes wait for ever",
              (unsigned long long)seed);
}

Test(flow, any_schedule_keeps_what_is_promised)
{
    for (uint64_t seed = 1; seed <= 500; seed++) {
        schedule(seed);
    }
}
