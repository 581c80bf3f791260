/*
 * Ends of processes, seen by members that have nothing to do (group_world.h).
 */
#include "paxos/group/group.h"

#include <signal.h>

#include "tests/support/test.h"
#include "tests/unit/paxos/group/group_world.h"

static struct group_world w;

static void init(void)
{
    group_world_begin(&w, 3);
}

static void fini(void)
{
    group_world_end(&w);
}

#define CASE(name)                                                             \
    Test(group_ends, name, .init = init, .fini = fini, .timeout = 100)

static bool serves(const struct group_world_report *r, uint64_t arg)
{
    (void)arg;
    return r->status.phase == QN_GROUP_SERVING;
}

static bool has_members(const struct group_world_report *r, uint64_t mask)
{
    return r->status.members == mask;
}

static void start_all(void)
{
    for (uint32_t i = 0; i < 3; i++) {
        group_world_start(&w, i);
    }
    for (uint32_t i = 0; i < 3; i++) {
        group_world_wait(&w, i, serves, 0);
    }
}

/* Nothing is under way, and no member turns but for what it is told. Its child
 * has all of the dead one's descriptors. */
static void kill_among_idle(uint32_t victim)
{
    const uint64_t seat = group_world_report(&w, victim).status.seat;
    cr_expect_eq(group_world_fork(&w, victim), 0);
    const pid_t child = w.process[victim].child;
    group_world_kill(&w, victim);
    for (uint32_t i = 0; i < 3; i++) {
        if (i != victim) {
            group_world_wait(&w, i, has_members, 7 & ~(UINT64_C(1) << seat));
        }
    }
    cr_expect_eq(kill(child, 0), 0, "it lives");
    kill(child, SIGKILL);
    w.process[victim].child = 0;
}

static void kill_each_among_idle(void)
{
    start_all();
    for (uint32_t i = 0; i < 3; i++) {
        kill_among_idle(i);
        group_world_start(&w, i);
        group_world_wait(&w, i, serves, 0);
        for (uint32_t k = 0; k < 3; k++) {
            group_world_wait(&w, k, has_members, 7);
        }
    }
}

CASE(idle_members_see_a_death)
{
    kill_each_among_idle();
}

CASE(idle_members_see_a_death_by_the_list_of_its_thread)
{
    w.opts.robust_list = true;
    kill_each_among_idle();
}

CASE(idle_members_see_a_death_without_descriptors_of_processes)
{
    w.no_pidfd = true;
    kill_each_among_idle();
}

/* What is closed here is open in its child. It rests all the same: it makes no
 * turn between two questions. */
CASE(a_member_with_a_child_rests_after_a_death)
{
    start_all();
    const uint64_t seat = group_world_report(&w, 1).status.seat;
    cr_expect_eq(group_world_fork(&w, 0), 0);
    group_world_kill(&w, 1);
    group_world_wait(&w, 0, has_members, 7 & ~(UINT64_C(1) << seat));
    uint64_t turns = 0, before;
    do {
        before = turns;
        turns = group_world_report(&w, 0).turns;
    } while (turns != before);
}

/* Its process lives on, and no doorbell is rung. */
CASE(idle_members_see_that_one_calls_exec)
{
    start_all();
    const uint64_t seat = group_world_report(&w, 1).status.seat;
    group_world_exec(&w, 1);
    group_world_wait(&w, 0, has_members, 7 & ~(UINT64_C(1) << seat));
    group_world_wait(&w, 2, has_members, 7 & ~(UINT64_C(1) << seat));
    cr_expect_eq(kill(w.process[1].pid, 0), 0, "it lives");
}

CASE(idle_members_see_that_one_leaves)
{
    start_all();
    const uint64_t seat = group_world_report(&w, 1).status.seat;
    group_world_part(&w, 1);
    group_world_wait(&w, 0, has_members, 7 & ~(UINT64_C(1) << seat));
    group_world_wait(&w, 2, has_members, 7 & ~(UINT64_C(1) << seat));
}
