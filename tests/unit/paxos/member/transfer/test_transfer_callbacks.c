/* Callbacks that fail: each at its n-th call, for each n until a run needs no
 * more; and for ever, at one member and at all. The world's end checks that no
 * cut is left open and nothing half built remains. */
#include "core/base/err.h"
#include "tests/unit/paxos/member/transfer/transfer_world.h"

enum { COUNT = 40000 /* numbers: 5 chunks */, LONG = 20000 /* steps */ };

static struct node *const joiner = &w.node[2];

static void joins(void)
{
    loses_all(joiner);
    qn_state_transfer_begin(joiner->x, 0, w.now);
}

static const struct of {
    enum call call;
    bool donor; /* one of its callbacks */
    int err;
    uint64_t attempts; /* that a join takes then */
    bool named;        /* the joiner's status has named it */
} table[] = {
    /* Nothing has changed: the call is repeated. */
    {BEGIN, true, QN_EAGAIN, 1, false},
    {NEXT, true, QN_EAGAIN, 1, false},
    {NEXT, true, QN_ENOMEM, 1, false},
    {READ, false, QN_ENOMEM, 1, false},
    {FINISH, false, QN_ENOMEM, 1, false},
    {RESUME, false, QN_EAGAIN, 1, false},
    /* Another donor is asked. */
    {BEGIN, true, QN_ENOMEM, 2, true},
    {BEGIN, true, QN_EIO, 2, true},
    {NEXT, true, QN_EIO, 2, true},
    {READ, false, QN_EIO, 2, true},
    {READ, false, QN_ECORRUPT, 2, true},
    {READ, false, QN_EAGAIN, 2, true}, /* not one that it may say */
    {FINISH, false, QN_ECORRUPT, 2, true},
    {RESUME, false, QN_EINVAL, 2, true},
    /* The same donor begins a new cut. */
    {NEXT, true, QN_EABORTED, 2, false},
    {PROGRESS, true, QN_EABORTED, 2, false},
};

/* One join with a failure of the n-th call. @return false: it made fewer. */
static bool joins_with(const struct of *f, uint32_t n)
{
    world_begin(COUNT);
    struct node *at = f->donor ? &w.node[0] : joiner;
    fail_at(at, f->call, n, f->err, 0);
    joins();
    bool named = false;
    for (uint32_t i = 0; status_of(joiner).joined == 0; i++) {
        cr_assert_lt(i, LONG, "call %d, error %d, n %u", (int)f->call, f->err,
                     n);
        world_step(2);
        struct qn_state_transfer_status st = status_of(joiner);
        if (st.error != QN_OK) {
            named = true;
            cr_assert_eq(st.error, f->err);
            cr_assert_eq(st.error_node, at->self);
        }
    }
    world_step(0);
    bool met = at->fail[f->call].met != 0;
    struct qn_state_transfer_status st = status_of(joiner);
    expect_same(joiner, &w.node[1]);
    cr_assert_eq(st.error, QN_OK, "it has installed since");
    cr_assert(!st.gave_up);
    /* `progress` after the last chunk's `next` is too late to matter. */
    if (met && f->call != PROGRESS) {
        cr_assert_eq(st.attempts, f->attempts, "call %d, error %d, n %u",
                     (int)f->call, f->err, n);
        cr_assert_eq(named, f->named, "call %d, error %d, n %u", (int)f->call,
                     f->err, n);
    }
    cr_assert_leq(st.attempts, f->attempts);
    const bool own = met && f->donor && f->named;
    cr_assert_eq(status_of(&w.node[0]).give_error, own ? f->err : QN_OK);
    world_end();
    return met;
}

Test(transfer_callbacks, each_may_fail_at_any_call, .timeout = 60)
{
    for (uint32_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        uint32_t n = 1;
        while (joins_with(&table[i], n)) {
            n++;
            cr_assert_lt(n, 200);
        }
        cr_assert_gt(n, 1, "case %u: it was never called", i);
    }
}

/* A message that finds no room: the joiner, or the donor, says it again, or the
 * other one learns it from the silence. */
Test(transfer_callbacks, each_message_may_find_no_room, .timeout = 60)
{
    for (uint32_t end = 0; end < 2; end++) {
        bool met = true;
        for (uint32_t n = 1; met; n++) {
            world_begin(COUNT);
            struct node *at = end == 0 ? joiner : &w.node[0];
            fail_at(at, TELL, n, QN_EAGAIN, 0);
            joins();
            run_until_joined(joiner, LONG);
            expect_same(joiner, &w.node[1]);
            cr_assert_eq(status_of(joiner).error, QN_OK,
                         "no callback of state");
            met = at->fail[TELL].met != 0;
            world_end();
        }
    }
}

/* ---- for long ---- */

/* What is under way at the donor takes time: its loop may sleep meanwhile. */
Test(transfer_callbacks, a_donor_that_is_asked_again_sleeps_a_millisecond)
{
    static const enum call call[] = {BEGIN, NEXT};
    struct node *donor = &w.node[0];
    for (uint32_t i = 0; i < 2; i++) {
        world_begin(COUNT);
        fail_at(donor, call[i], 1, QN_EAGAIN, 1);
        joins();
        while (donor->fail[call[i]].met < 100) {
            world_step(1);
            if (donor->fail[call[i]].met > 1) {
                cr_assert_eq(donor->at, w.now, "the step's begin and 1 ms");
            }
        }
        donor->fail[call[i]].at = 0;
        run_until_joined(joiner, LONG);
        expect_same(joiner, &w.node[1]);
        cr_assert_eq(status_of(joiner).attempts, 1);
        world_end();
    }
}

/* What a user prepares may take long: its donor says so. */
Test(transfer_callbacks, a_donor_that_is_not_ready_for_10_s_is_waited_for)
{
    static const enum call call[] = {BEGIN, NEXT};
    struct node *donor = &w.node[0];
    for (uint32_t i = 0; i < 2; i++) {
        world_begin(COUNT);
        fail_at(donor, call[i], 1 + i, QN_EAGAIN, 1);
        joins();
        const qn_time_t since = w.now;
        while (w.now - since < 10 * QN_S) {
            world_step(0);
        }
        cr_assert_geq(donor->fail[TELL].calls, 39, "four times a second");
        cr_assert_leq(donor->fail[TELL].calls, 45, "and no more");
        cr_assert_eq(status_of(joiner).attempts, 1);
        donor->fail[call[i]].at = 0;
        run_until_joined(joiner, LONG);
        expect_same(joiner, &w.node[1]);
        cr_assert_eq(status_of(joiner).attempts, 1);
        world_end();
    }
}

Test(transfer_callbacks, a_donor_that_is_never_ready_costs_a_minute)
{
    static const enum call call[] = {BEGIN, NEXT};
    struct node *donor = &w.node[0];
    for (uint32_t i = 0; i < 2; i++) {
        world_begin(COUNT);
        fail_at(donor, call[i], 1, QN_EAGAIN, 1);
        joins();
        const qn_time_t since = w.now;
        while (status_of(joiner).attempts < 2) {
            world_step(0);
        }
        cr_assert_geq(w.now - since, QN_STATE_TRANSFER_WAIT);
        cr_assert_leq(w.now - since, QN_STATE_TRANSFER_WAIT + 50 * QN_MS);
        cr_assert_eq(status_of(joiner).error, QN_EAGAIN);
        cr_assert_eq(status_of(joiner).error_node, donor->self);
        cr_assert_leq(donor->fail[TELL].calls, 245, "four times a second");
        run_until_joined(joiner, LONG); /* from the other one */
        expect_same(joiner, &w.node[1]);
        cr_assert(!donor->cuts, "it was told");
        world_end();
    }
}

/* Each chunk may take a minute. */
Test(transfer_callbacks, a_donor_that_is_ready_now_and_then_is_waited_for)
{
    struct node *donor = &w.node[0];
    world_begin(COUNT);
    joins();
    const qn_time_t since = w.now;
    for (uint32_t n = 1; status_of(joiner).joined == 0; n++) {
        fail_at(donor, NEXT, 2, QN_EAGAIN, 1);
        for (uint32_t i = 0; i < 20000 && status_of(joiner).joined == 0; i++) {
            world_step(0);
        }
        donor->fail[NEXT].calls = 0; /* one more */
        cr_assert_lt(n, 20);
    }
    cr_assert_gt(w.now - since, QN_STATE_TRANSFER_WAIT);
    cr_assert_eq(status_of(joiner).attempts, 1);
    expect_same(joiner, &w.node[1]);
    world_end();
}

/* Its one thread is in a call: it says nothing, and was to take no longer. What
 * a user says beyond QN_STATE_TRANSFER_CALL is cut. */
static void call_takes(qn_time_t said, qn_time_t waited)
{
    struct node *donor = &w.node[0];
    w.call = said;
    world_begin(COUNT);
    fail_at(donor, BEGIN, 1, QN_EAGAIN, 0);
    joins();
    while (donor->fail[BEGIN].calls == 0) {
        world_step(0);
    }
    donor->stopped = true; /* as if it were in there */
    const qn_time_t since = w.now;
    while (w.now - since < waited) {
        world_step(0);
    }
    cr_assert_eq(status_of(joiner).attempts, 1);
    donor->stopped = false;
    while (status_of(joiner).chunks == 0) {
        world_step(0);
    }
    donor->stopped = true;
    const qn_time_t stop = w.now;
    while (status_of(joiner).attempts == 1) {
        world_step(0);
    }
    cr_assert_geq(w.now - stop, waited + QN_STATE_TRANSFER_SILENCE / 2);
    cr_assert_leq(w.now - stop, waited + QN_STATE_TRANSFER_SILENCE + 9 * QN_MS);
    donor->stopped = false;
    run_until_joined(joiner, LONG);
    expect_same(joiner, &w.node[1]);
    world_end();
}

Test(transfer_callbacks, a_call_may_take_as_long_as_its_user_has_said)
{
    call_takes(3 * QN_S, 3 * QN_S);
    call_takes(10 * QN_STATE_TRANSFER_CALL, QN_STATE_TRANSFER_CALL);
}

/* It has taken all that was sent: the donor waits for its own user. When there
 * is more, a second of silence begins anew. */
Test(transfer_callbacks, a_joiner_that_lacks_no_chunk_is_not_given_up)
{
    struct node *donor = &w.node[0];
    world_begin(5 * COUNT); /* more than a window */
    fail_at(donor, NEXT, 2, QN_EAGAIN, 1);
    joins();
    while (donor->fail[NEXT].met < 10) {
        world_step(1);
    }
    joiner->stopped = true;
    for (uint32_t i = 0; i < 3000; i++) {
        world_step(0);
    }
    cr_assert(status_of(donor).giving);
    donor->fail[NEXT].at = 0;
    for (uint32_t i = 0; i < 900; i++) {
        world_step(0);
    }
    cr_assert(status_of(donor).giving);
    joiner->stopped = false;
    run_until_joined(joiner, 100);
    expect_same(joiner, &w.node[1]);
    cr_assert_eq(status_of(joiner).attempts, 1);
    world_end();
}

/* It was given up, and asks the same donor, which begins anew at once. */
Test(transfer_callbacks, a_joiner_that_goes_on_is_served_again)
{
    struct node *donor = &w.node[0];
    world_begin(10 * COUNT);
    w.leaders = 2; /* the other one */
    joins();
    while (status_of(joiner).chunks < 2) {
        world_step(1);
    }
    joiner->stopped = true;
    while (status_of(donor).giving) {
        world_step(1);
    }
    joiner->stopped = false;
    const qn_time_t since = w.now;
    run_until_joined(joiner, LONG);
    cr_assert_lt(w.now - since, QN_STATE_TRANSFER_SILENCE);
    cr_assert_eq(status_of(donor).given, 1);
    cr_assert_eq(status_of(joiner).attempts, 2);
    expect_same(joiner, &w.node[1]);
    world_end();
}

/* Its lane is full, since it takes nothing. */
Test(transfer_callbacks, a_joiner_whose_channel_has_no_room_is_given_up)
{
    struct node *donor = &w.node[0];
    world_begin(COUNT);
    fail_at(donor, TELL, 1, QN_EAGAIN, 1);
    joins();
    while (donor->begins == 0) {
        world_step(1);
    }
    joiner->stopped = true;
    for (uint32_t i = 0; i < 1100; i++) {
        cr_assert(i > 900 || status_of(donor).giving);
        world_step(0);
    }
    cr_assert(!status_of(donor).giving);
    donor->fail[TELL].at = 0;
    joiner->stopped = false;
    run_until_joined(joiner, LONG);
    world_end();
}

/* ---- for ever ---- */

Test(transfer_callbacks, one_donor_that_always_fails_costs_one_attempt)
{
    static const enum call call[] = {BEGIN, NEXT};
    for (uint32_t i = 0; i < 2; i++) {
        world_begin(COUNT);
        fail_at(&w.node[0], call[i], 1, QN_EIO, 1);
        joins();
        run_until_joined(joiner, 200);
        cr_assert_eq(status_of(joiner).attempts, 2);
        world_end();
    }
}

/* QN_ENOMEM is asked again, and not for longer than a second. */
Test(transfer_callbacks, memory_that_stays_short_costs_a_second)
{
    static const struct {
        enum call call;
        bool donor;
    } f[] = {{NEXT, true}, {READ, false}, {FINISH, false}};
    for (uint32_t i = 0; i < 3; i++) {
        world_begin(COUNT);
        struct node *at = f[i].donor ? &w.node[0] : joiner;
        fail_at(at, f[i].call, 1, QN_ENOMEM, 1);
        joins();
        qn_time_t since = w.now;
        while (status_of(joiner).attempts < 2) {
            world_step(1);
        }
        cr_assert_geq(w.now - since, QN_STATE_TRANSFER_SILENCE);
        cr_assert_leq(w.now - since, QN_STATE_TRANSFER_SILENCE + 50 * QN_MS);
        cr_assert_gt(at->fail[f[i].call].met, 100, "it was asked again");
        at->fail[f[i].call].at = 0;
        run_until_joined(joiner, LONG);
        expect_same(joiner, &w.node[1]);
        world_end();
    }
}

/* The second counts from the last success. */
Test(transfer_callbacks, memory_that_is_short_now_and_then_ends_nothing)
{
    for (uint32_t donor = 0; donor < 2; donor++) {
        world_begin(5 * COUNT);
        struct node *at = donor != 0 ? &w.node[0] : joiner;
        enum call call = donor != 0 ? NEXT : READ;
        fail_at(at, call, 1, QN_ENOMEM, 5);
        joins();
        for (uint32_t i = 0; status_of(joiner).joined == 0; i++) {
            cr_assert_lt(i, 100);
            world_step(1);
            w.now += 300 * QN_MS;
        }
        cr_assert_geq(at->fail[call].met, 4);
        cr_assert_eq(status_of(joiner).attempts, 1);
        world_end();
    }
}

/* Everything is tried `rounds_max` times; then the status says what failed, and
 * the joiner is at rest until it is told to forget. */
Test(transfer_callbacks, after_some_rounds_the_caller_gets_the_error)
{
    enum { ROUNDS = 3 };
    static const struct {
        enum call call;
        bool donor;
        int err;
    } f[] = {{BEGIN, true, QN_EIO},        {BEGIN, true, QN_ENOMEM},
             {NEXT, true, QN_EIO},         {READ, false, QN_EIO},
             {FINISH, false, QN_ECORRUPT}, {RESUME, false, QN_EINVAL}};
    for (uint32_t i = 0; i < sizeof f / sizeof f[0]; i++) {
        w.rounds_max = ROUNDS;
        world_begin(COUNT);
        for (uint32_t k = 0; k < NODES; k++) {
            if ((&w.node[k] != joiner) == f[i].donor) {
                fail_at(&w.node[k], f[i].call, 1, f[i].err, 1);
            }
        }
        joins();
        for (uint32_t k = 0; !status_of(joiner).gave_up; k++) {
            cr_assert_lt(k, LONG);
            world_step(1);
        }
        struct qn_state_transfer_status st = status_of(joiner);
        cr_assert_eq(st.error, f[i].err, "case %u", i);
        cr_assert(!st.joining);
        cr_assert_eq(st.attempts, ROUNDS * (NODES - 1));
        cr_assert_eq(st.error_node == joiner->self, !f[i].donor);
        /* It asks no more, though the log still lacks what it needs. */
        qn_state_transfer_begin(joiner->x, w.slots, w.now);
        for (uint32_t k = 0; k < 300; k++) {
            world_step(1);
        }
        cr_assert_eq(status_of(joiner).attempts, st.attempts);
        cr_assert_eq(joiner->at, QN_TIME_NEVER);
        for (uint32_t k = 0; k < NODES; k++) {
            w.node[k].fail[f[i].call].at = 0;
        }
        qn_state_transfer_forget(joiner->x);
        qn_state_transfer_begin(joiner->x, 0, w.now);
        run_until_joined(joiner, LONG);
        expect_same(joiner, &w.node[1]);
        cr_assert_eq(status_of(joiner).error, QN_OK);
        world_end();
    }
}

/* Rounds without a failed callback are no such rounds: donors that have no
 * state yet will have one. */
Test(transfer_callbacks, refusals_alone_never_end_a_join)
{
    w.rounds_max = 2;
    world_begin(COUNT);
    struct toy *kept = w.node[0].toy;
    w.node[0].toy = NULL;
    loses_all(&w.node[1]);
    joins();
    for (uint32_t i = 0; i < 5000; i++) {
        world_step(0);
    }
    cr_assert(!status_of(joiner).gave_up);
    cr_assert_geq(status_of(joiner).attempts, 20);
    cr_assert_leq(status_of(joiner).attempts, 80, "and without haste");
    w.node[0].toy = kept;
    run_until_joined(joiner, LONG);
    world_end();
}

/* Also when whole snapshots arrive each time: each costs its donor a cut. */
Test(transfer_callbacks, without_a_bound_it_asks_for_ever_and_without_haste)
{
    for (uint32_t late = 0; late < 2; late++) {
        const enum call call = late != 0 ? FINISH : READ;
        world_begin(COUNT);
        fail_at(joiner, call, 1, QN_EIO, 1);
        joins();
        for (uint32_t i = 0; i < 10000; i++) {
            world_step(1);
        }
        struct qn_state_transfer_status st = status_of(joiner);
        cr_assert(st.joining && !st.gave_up);
        cr_assert_eq(st.error, QN_EIO);
        cr_assert_eq(st.error_node, joiner->self);
        cr_assert_geq(st.attempts, 50);
        cr_assert_leq(st.attempts, 120, "%llu",
                      (unsigned long long)st.attempts);
        joiner->fail[call].at = 0;
        run_until_joined(joiner, LONG);
        expect_same(joiner, &w.node[0]);
        world_end();
    }
}
