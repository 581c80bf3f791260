/*
 * Processes that have too few descriptors (group_world.h): each is told so, and
 * none keeps its host in turns that do nothing.
 */
#include "core/base/bits.h"
#include "paxos/group/group.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/group/group_world.h"

static struct group_world w;

static void init(void)
{
    group_world_begin(&w, 2);
}

static void fini(void)
{
    group_world_end(&w);
}

#define CASE(name)                                                             \
    Test(group_descriptors, name, .init = init, .fini = fini, .timeout = 100)

#define LONG ((uint64_t)60 * 1000000000)

enum { SPARE_MAX = 64 };

static bool serves(const struct group_world_report *r, uint64_t arg)
{
    (void)arg;
    return r->status.phase == QN_GROUP_SERVING;
}

static bool serves_or_has_failed(const struct group_world_report *r,
                                 uint64_t arg)
{
    return serves(r, arg) || r->status.phase == QN_GROUP_ENDED;
}

static bool has_ended(const struct group_world_report *r, uint64_t n)
{
    return r->applied + r->unknown == n;
}

static bool has_commands(const struct group_world_report *r, uint64_t n)
{
    return r->state.commands == n;
}

/* One more each time, until it serves. */
CASE(a_guest_without_descriptors_is_told_at_each_number_of_them)
{
    uint32_t failed = 0;
    group_world_start(&w, 0);
    group_world_start(&w, 1);
    group_world_wait(&w, 0, serves, 0);
    for (w.spare = 1; w.spare < SPARE_MAX; w.spare++) {
        group_world_start(&w, 2);
        group_world_wait(&w, 2, serves_or_has_failed, 0);
        const struct group_world_report r = group_world_report(&w, 2);
        if (r.status.phase == QN_GROUP_SERVING) {
            break;
        }
        cr_expect_eq(r.turn, QN_EMFILE, "spare %u: %d, %s", w.spare - 1, r.turn,
                     r.why);
        failed++;
        group_world_kill(&w, 2);
    }
    cr_expect_gt(failed, 5);
    cr_expect_lt(w.spare, SPARE_MAX);
    group_world_propose(&w, 2, 10, LONG);
    group_world_wait(&w, 2, has_ended, 10);
    group_world_wait(&w, 0, has_commands, 10);
}

/* The one that founds meets guests until it has no more: then it ends, as do
 * the others when they cannot begin, and a process that has them founds. */
CASE(a_founder_without_descriptors_is_told)
{
    w.spare = 10; /* commons, doorbells, seat; and no more */
    for (; w.spare < SPARE_MAX; w.spare++) {
        group_world_start(&w, 0);
        (void)group_world_report(&w, 0);
        const uint32_t spare = w.spare;
        w.spare = 0;
        group_world_start(&w, 1);
        w.spare = spare;
        group_world_wait(&w, 0, serves_or_has_failed, 0);
        const struct group_world_report r = group_world_report(&w, 0);
        if (r.status.phase == QN_GROUP_SERVING) {
            break;
        }
        cr_expect_eq(r.turn, QN_EMFILE, "spare %u: %d, %s", w.spare - 1, r.turn,
                     r.why);
        group_world_kill(&w, 0);
        group_world_kill(&w, 1);
    }
    cr_expect_gt(w.spare, 10);
    cr_expect_lt(w.spare, SPARE_MAX);
    group_world_wait(&w, 1, serves, 0);
}

/* What waits at its socket stays there, and its turns end. */
CASE(a_member_without_descriptors_goes_on_and_hears_guests_later)
{
    group_world_start(&w, 0);
    group_world_start(&w, 1);
    group_world_wait(&w, 0, serves, 0);
    group_world_wait(&w, 1, serves, 0);
    group_world_limit(&w, 0, 0);
    group_world_start(&w, 2);
    group_world_wait(&w, 2, serves, 0);
    group_world_propose(&w, 0, 10, LONG);
    group_world_wait(&w, 0, has_ended, 10);
    group_world_unlimit(&w, 0);
    for (struct group_world_report r = group_world_report(&w, 0);
         r.status.voters != 7;) {
        r = group_world_report(&w, 0);
    }
    group_world_propose(&w, 2, 10, LONG);
    group_world_wait(&w, 2, has_ended, 10);
    group_world_wait(&w, 0, has_commands, 20);
}
