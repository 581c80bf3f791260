/*
 * Members of a group that have little more private memory than it takes to
 * begin (group_world.h). One of them is stalled, and a subscriber never reads.
 * The allocator is never asked for more than the limit, and commands go on:
 * what is kept for others gives way.
 */
#include "paxos/group/group.h"

#include "core/base/bits.h"
#include "core/base/err.h"
#include "paxos/wire/msg.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/group/group_world.h"

enum {
    MEMBERS = 3,
    HEADROOM = 512 << 10, /* bytes, beside what it takes to begin */
    LONG_BYTES = 64 << 10,
    LONG_COMMANDS = 24 /* of each member, three times what the headroom has */
};

#define LONG ((uint64_t)60 * 1000000000)

static struct group_world w;
static const struct qn_feed_opts feed = {
    .bytes = 128 << 10, .records = 256, .subscribers = 1, .retain = true};

static bool serves(const struct group_world_report *r, uint64_t arg)
{
    (void)arg;
    return r->status.phase == QN_GROUP_SERVING;
}

static bool has_ended(const struct group_world_report *r, uint64_t n)
{
    return r->applied + r->unknown == n; /* a snapshot may have it already */
}

static bool has_commands(const struct group_world_report *r, uint64_t n)
{
    return r->state.commands == n;
}

static void begin(uint64_t limit)
{
    group_world_begin(&w, MEMBERS);
    group_world_faults(&w);
    group_world_follow(&w, &feed);
    w.reads_no_feed = true;
    w.opts.capacity = MEMBERS;
    w.opts.command_max = LONG_BYTES;
    w.opts.alloc_limit = limit;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        group_world_start(&w, i);
    }
    for (uint32_t i = 0; i < MEMBERS; i++) {
        group_world_wait(&w, i, serves, 0);
    }
}

/* @return bytes that a member has begun with. */
static uint64_t needed(void)
{
    begin(0);
    const uint64_t bytes = w.faults[0].bytes_most;
    group_world_end(&w);
    return bytes;
}

/* Each is taken in the end, whatever is refused before. */
static void propose_long(uint32_t i)
{
    do {
        group_world_propose_once(&w, i, LONG_BYTES, LONG);
    } while (group_world_report(&w, i).last != QN_OK);
}

static uint32_t a_follower(void)
{
    for (uint32_t i = 0; i < MEMBERS; i++) {
        const struct qn_group_status s = group_world_report(&w, i).status;
        if (s.leader != s.seat) {
            return i;
        }
    }
    return 0;
}

Test(group_memory, work_goes_on_within_the_limit_beside_a_stalled_member,
     .timeout = 100)
{
    const uint64_t limit = needed() + HEADROOM;
    begin(limit);
    const uint32_t stalled = a_follower();
    const uint32_t other[] = {(stalled + 1) % MEMBERS, (stalled + 2) % MEMBERS};
    group_world_stop(&w, stalled, true);
    for (uint32_t k = 0; k < 2; k++) {
        group_world_propose(&w, other[k], 500, LONG);
    }
    for (uint32_t n = 0; n < 2 * LONG_COMMANDS; n++) {
        propose_long(other[n % 2]);
    }
    for (uint32_t k = 0; k < 2; k++) {
        group_world_wait(&w, other[k], has_ended, 500 + LONG_COMMANDS);
    }
    group_world_stop(&w, stalled, false);
    group_world_propose(&w, stalled, 1, LONG);
    group_world_wait(&w, stalled, has_ended, 1);
    group_world_wait(&w, 0, has_commands, 2 * (500 + LONG_COMMANDS) + 1);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        group_world_wait(&w, i, has_commands, 2 * (500 + LONG_COMMANDS) + 1);
        cr_expect_eq(group_world_report(&w, i).state.digest,
                     group_world_report(&w, 0).state.digest);
        cr_expect_leq(w.faults[i].bytes_most, limit, "%lu of %lu",
                      (unsigned long)w.faults[i].bytes_most,
                      (unsigned long)limit);
    }
    cr_expect_gt(w.faults[other[0]].bytes_most, limit - 2 * LONG_BYTES,
                 "it was reached");
    group_world_end(&w);
}

static bool is_over(const struct group_world_report *r, uint64_t arg)
{
    (void)arg;
    return r->status.phase == QN_GROUP_ENDED;
}

/* A lane is full, and there is no memory for its queue: the member ends, for a
 * hole in a channel is worse than a death. The next process of its seat is a
 * member. */
Test(group_memory, a_message_that_cannot_wait_ends_the_member, .timeout = 100)
{
    begin(0);
    const uint32_t i = a_follower();
    const uint32_t leader = group_world_report(&w, i).status.leader;
    uint32_t at = 0;
    while (group_world_report(&w, at).status.seat != leader) {
        at++;
    }
    w.faults[i].bytes_refused =
        16 * sizeof(struct qn_msg); /* its first queue, without a limit */
    group_world_stop(&w, at, true);
    group_world_propose(&w, i, 1000, LONG);
    group_world_wait(&w, i, is_over, 0);
    const struct group_world_report r = group_world_report(&w, i);
    cr_expect_eq(r.status.err, QN_ENOMEM);
    cr_expect_str_eq(r.why, "there is no memory for a message");
    group_world_leave(&w, i);
    cr_expect_eq(w.faults[i].blocks, 0);
    group_world_stop(&w, at, false);
    w.faults[i].bytes_refused = 0;
    group_world_start(&w, i);
    group_world_wait(&w, i, serves, 0);
    group_world_propose(&w, i, 10, LONG);
    group_world_wait(&w, i, has_ended, 10);
    group_world_end(&w);
}
