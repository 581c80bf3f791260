/*
 * A service whose `apply` fails, in processes that keep one state
 * (group_world.h): what waits for memory is applied, a state that is lost is
 * replaced, and a member that fails again ends.
 */
#include "paxos/group/group.h"

#include <string.h>

#include "core/base/err.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/group/group_world.h"

enum { MEMBERS = 3 };

#define LONG ((uint64_t)60 * 1000000000)

static struct group_world w;

static bool serves(const struct group_world_report *r, uint64_t arg)
{
    (void)arg;
    return r->status.phase == QN_GROUP_SERVING;
}

static bool has_ended(const struct group_world_report *r, uint64_t n)
{
    return r->applied + r->unknown == n;
}

static bool has_commands(const struct group_world_report *r, uint64_t n)
{
    return r->state.commands == n;
}

static bool has_failed(const struct group_world_report *r, uint64_t n)
{
    return r->failed >= n;
}

static bool is_over(uint32_t i)
{
    return group_world_report(&w, i).status.phase == QN_GROUP_ENDED;
}

static void init(void)
{
    group_world_begin(&w, MEMBERS);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        group_world_start(&w, i);
    }
    for (uint32_t i = 0; i < MEMBERS; i++) {
        group_world_wait(&w, i, serves, 0);
    }
}

static void fini(void)
{
    group_world_end(&w);
}

#define CASE(name)                                                             \
    Test(group_apply, name, .init = init, .fini = fini, .timeout = 100)

/* Process i is the leader, or is not. */
static uint32_t process_that(bool leads)
{
    for (uint32_t i = 0; i < MEMBERS; i++) {
        const struct qn_group_status s = group_world_report(&w, i).status;
        if ((s.leader == s.seat) == leads) {
            return i;
        }
    }
    cr_assert(false, "there is none");
    return 0;
}

static void all_have(uint64_t commands)
{
    for (uint32_t i = 0; i < MEMBERS; i++) {
        group_world_wait(&w, i, has_commands, commands);
        const struct group_world_report r = group_world_report(&w, i);
        cr_expect_eq(r.state.digest, group_world_report(&w, 0).state.digest);
        cr_expect_eq(r.wrong, 0);
        cr_expect_not(r.status.lost);
    }
}

CASE(what_waits_for_memory_is_applied_once)
{
    for (uint32_t i = 0; i < MEMBERS; i++) {
        group_world_fail(&w, i, QN_ENOMEM, 3);
        group_world_propose(&w, i, 50, LONG);
    }
    for (uint32_t i = 0; i < MEMBERS; i++) {
        group_world_wait(&w, i, has_ended, 50);
        const struct group_world_report r = group_world_report(&w, i);
        cr_expect_eq(r.applied, 50);
        cr_expect_eq(r.failed, 3);
        cr_expect_eq(r.status.snapshots_installed, 0);
    }
    all_have(150);
}

static void a_state_is_replaced(bool leader)
{
    const uint32_t i = process_that(leader), other = (i + 1) % MEMBERS;
    group_world_fail(&w, i, QN_EIO, 1);
    group_world_propose(&w, other, 100, LONG);
    group_world_wait(&w, other, has_ended, 100);
    group_world_wait(&w, i, has_failed, 1);
    group_world_wait(&w, i, serves, 0);
    const struct group_world_report r = group_world_report(&w, i);
    cr_expect_eq(r.failed, 1);
    cr_expect_neq(r.status.failed, 0);
    cr_expect_eq(r.status.failed_err, QN_EIO);
    cr_expect_eq(r.status.snapshots_installed, 1);
    all_have(100);
    group_world_propose(&w, i, 10, LONG);
    group_world_wait(&w, i, has_ended, 10);
    all_have(110);
}

CASE(a_state_that_is_lost_is_replaced)
{
    a_state_is_replaced(false);
}

CASE(the_leader_may_lose_its_state)
{
    a_state_is_replaced(true);
}

CASE(a_member_that_fails_again_ends_and_says_why)
{
    const uint32_t i = process_that(false), other = (i + 1) % MEMBERS;
    group_world_fail(&w, i, QN_EIO, UINT64_MAX);
    for (uint64_t n = 10; !is_over(i); n += 10) {
        group_world_propose(&w, other, 10, LONG);
        group_world_wait(&w, other, has_ended, n);
    }
    const struct group_world_report r = group_world_report(&w, i);
    cr_expect_eq(r.status.err, QN_EAPPLY);
    cr_expect_eq(r.turn, QN_EAPPLY);
    cr_expect_neq(r.status.failed, 0);
    cr_expect_eq(r.status.failed_err, QN_EIO);
    cr_expect(strstr(r.why, "cannot be applied") != NULL, "%s", r.why);
    group_world_kill(&w, i);
    group_world_start(&w, i); /* another service in its seat */
    group_world_wait(&w, i, serves, 0);
    all_have(group_world_report(&w, other).state.commands);
}

static bool has_stopped(const struct group_world_report *r, uint64_t arg)
{
    (void)arg;
    return r->status.stopped;
}

CASE(what_no_member_can_apply_stops_the_group)
{
    for (uint32_t i = 0; i < MEMBERS; i++) {
        group_world_fail(&w, i, QN_EIO, 1);
    }
    group_world_propose_once(&w, 1, 8, 1000000);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        group_world_wait(&w, i, has_stopped, 0);
    }
    const uint64_t slot = group_world_report(&w, 0).status.failed;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        group_world_propose_once(&w, i, 8, LONG);
        const struct group_world_report r = group_world_report(&w, i);
        cr_expect_eq(r.last, QN_EAGAIN);
        cr_expect_eq(r.reason, QN_GROUP_JOINS);
        cr_expect(r.status.lost);
        cr_expect_eq(r.status.phase, QN_GROUP_SYNCING);
        cr_expect_eq(r.status.failed, slot);
        cr_expect_eq(r.status.failed_err, QN_EIO);
        cr_expect_eq(r.status.snapshots_installed, 0);
        cr_expect_eq(r.status.in_sync, 0);
    }
}

CASE(a_state_that_cannot_be_read_ends_the_member)
{
    const uint32_t i = process_that(false), other = (i + 1) % MEMBERS;
    group_world_kill(&w, i);
    w.reads_nothing = true;
    group_world_start(&w, i);
    while (!is_over(i)) {
    }
    const struct group_world_report r = group_world_report(&w, i);
    cr_expect_eq(r.turn, QN_EIO);
    cr_expect(strstr(r.why, "no state came") != NULL, "%s", r.why);
    group_world_propose(&w, other, 10, LONG);
    group_world_wait(&w, other, has_ended, 10);
    cr_expect_eq(group_world_report(&w, other).applied, 10);
}

/* ---- the only member: it applies in its flush, and again in its turn ------
 */

static struct {
    struct qn_group *group;
    int answer[3]; /* of `apply`, one after the other */
    uint32_t asked;
} alone;

static int apply_alone(void *ctx, const struct qn_group_command *c,
                       uint64_t *result)
{
    (void)ctx;
    (void)c;
    (void)result;
    cr_assert_lt(alone.asked, 3);
    return alone.answer[alone.asked++];
}

static void tell_alone(void *ctx, int err, uint64_t result)
{
    int *told = ctx;
    (void)result;
    *told = err;
}

static struct qn_group_status turn_alone(void)
{
    struct qn_group_status s;
    cr_assert_geq(qn_group_turn(alone.group), 0, "%s",
                  qn_group_why(alone.group));
    qn_group_status(alone.group, &s);
    return s;
}

static void begin_alone(void)
{
    group_world_begin(&w, 1);
    w.opts.capacity = 1;
    w.opts.service = (struct qn_group_service){.apply = apply_alone};
    cr_assert_eq(qn_group_join(&alone.group, &w.opts), QN_OK);
    while (turn_alone().phase != QN_GROUP_SERVING) {
    }
}

#define ALONE(name) Test(group_apply, name, .fini = fini, .timeout = 100)

/* ... from the turn on in which it was lost. */
ALONE(nothing_is_asked_of_a_state_that_is_lost)
{
    int told = 1;
    alone.answer[0] = QN_EIO;
    begin_alone();
    cr_assert_eq(qn_group_propose(alone.group, "x", 1, LONG, tell_alone, &told),
                 QN_OK);
    while (alone.asked == 0) {
        (void)turn_alone();
    }
    struct qn_group_status s;
    qn_group_status(alone.group, &s);
    cr_expect(s.lost);
    cr_expect_eq(s.phase, QN_GROUP_SYNCING);
    cr_expect_eq(qn_group_barrier(alone.group, LONG, tell_alone, &told),
                 QN_EAGAIN);
    cr_expect_eq(qn_group_propose(alone.group, "x", 1, LONG, tell_alone, &told),
                 QN_EAGAIN);
    cr_expect_eq(told, 1);
    qn_group_leave(alone.group);
}

/* The turn in which it has reached what they wait for loses it, at the next
 * slot. */
ALONE(no_barrier_ends_well_on_a_state_that_is_lost)
{
    static const char bytes[900 << 10]; /* of which no slot has two */
    int told = 1, barrier = 1;
    alone.answer[0] = QN_ENOMEM;
    alone.answer[2] = QN_EIO;
    begin_alone();
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(qn_group_propose(alone.group, bytes, sizeof bytes, LONG,
                                      tell_alone, &told),
                     QN_OK);
    }
    while (alone.asked == 0) {
        (void)turn_alone();
    }
    cr_assert_eq(qn_group_barrier(alone.group, LONG, tell_alone, &barrier),
                 QN_OK);
    while (!turn_alone().lost) {
    }
    cr_expect_eq(alone.asked, 3);
    cr_expect_eq(told, QN_OK, "the first one is applied");
    cr_expect_eq(barrier, 1, "it waits");
    qn_group_leave(alone.group);
    cr_expect_eq(barrier, QN_EABORTED);
}
