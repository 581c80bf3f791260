#ifndef QN_TESTS_UNIT_PAXOS_GROUP_GROUP_CASE_H
#define QN_TESTS_UNIT_PAXOS_GROUP_GROUP_CASE_H

/**
 * What the tests of a group share: its world, which is static in each file, the
 * states that are waited for (group_world_wait), and what they expect of all.
 */

#include "core/base/bits.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/group/group_world.h"

static struct group_world w;

static inline void init(void)
{
    group_world_begin(&w, 3);
}

static inline void fini(void)
{
    group_world_end(&w);
}

/** A test `name` of the suite: a group of three, unless it says otherwise. */
#define CASE(name) Test(group, name, .init = init, .fini = fini, .timeout = 100)

#define LONG ((uint64_t)60 * 1000000000)

/* ---- what is waited for -------------------------------------------------- */

static inline bool serves(const struct group_world_report *r, uint64_t arg)
{
    (void)arg;
    return r->status.phase == QN_GROUP_SERVING;
}

static inline bool has_commands(const struct group_world_report *r, uint64_t n)
{
    return r->state.commands == n;
}

static inline bool has_ended(const struct group_world_report *r, uint64_t n)
{
    return r->applied + r->unknown == n;
}

static inline bool has_members(const struct group_world_report *r,
                               uint64_t mask)
{
    return r->status.members == mask;
}

static inline bool has_failed(const struct group_world_report *r, uint64_t arg)
{
    (void)arg;
    return r->status.phase == QN_GROUP_ENDED;
}

static inline bool has_unknown(const struct group_world_report *r, uint64_t n)
{
    return r->unknown == n;
}

static inline bool has_barriers(const struct group_world_report *r, uint64_t n)
{
    return r->barriers == n;
}

static inline bool has_guests(const struct group_world_report *r, uint64_t n)
{
    return r->guests == n;
}

static inline bool has_copies(const struct group_world_report *r, uint64_t n)
{
    return (uint64_t)__builtin_popcountll(r->status.in_sync) == n;
}

static inline bool has_donor(const struct group_world_report *r, uint64_t arg)
{
    (void)arg;
    return r->status.donor != r->status.capacity;
}

static inline bool has_given(const struct group_world_report *r, uint64_t n)
{
    return r->status.snapshots_given == n &&
           r->status.joiner == r->status.capacity;
}

static inline void start_all(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (w.process[i].pid == 0) {
            group_world_start(&w, i);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        group_world_wait(&w, i, serves, 0);
    }
}

/* Which process has that seat. */
static inline uint32_t at_seat(uint32_t seat)
{
    for (uint32_t i = 0; i < GROUP_WORLD_MAX; i++) {
        if (w.process[i].pid != 0 &&
            group_world_report(&w, i).status.seat == seat) {
            return i;
        }
    }
    return GROUP_WORLD_MAX;
}

/* All have the same state. @return its commands. */
static inline uint64_t expect_alike(uint32_t n)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct group_world_report r = group_world_report(&w, i);
        most = QN_MAX(most, r.state.commands);
    }
    for (uint32_t i = 0; i < n; i++) {
        group_world_wait(&w, i, has_commands, most);
        const struct group_world_report r = group_world_report(&w, i),
                                        first = group_world_report(&w, 0);
        cr_expect_eq(r.state.digest, first.state.digest);
        cr_expect_eq(r.wrong, 0);
    }
    return most;
}

static inline void propose_everywhere(uint32_t n, uint64_t each)
{
    for (uint32_t i = 0; i < n; i++) {
        group_world_propose(&w, i, each, LONG);
    }
    for (uint32_t i = 0; i < n; i++) {
        group_world_wait(&w, i, has_ended, each);
    }
}

#endif
