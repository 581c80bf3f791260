/*
 * A group of processes (group_world.h) in which a callback fails, or memory is
 * refused, at each call of one member, while one is added, each is killed and
 * comes back with a snapshot, and one is removed (group_faults.h). The outcome
 * is that of group.h: the member goes on; or it ends and says why, and another
 * process takes its seat. All apply the same, nothing that was told as applied
 * is missing, and a process that leaves has given all back.
 *
 * QN_GROUP_FAULTS=1 runs every call; else each kind has one run.
 */
#include "paxos/group/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/base/err.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/group/group_world.h"

enum { FIRST = 3, MEMBERS = 4 };

#define LONG     ((uint64_t)60 * 1000000000)
#define PATIENCE (60 * QN_S)
#define SHORTAGE (300 * QN_MS)

static struct group_world w;
static struct group_world_report now[MEMBERS]; /* of each that is there */
static uint64_t wanted[MEMBERS];               /* of its proposals */
static uint64_t told[MEMBERS]; /* applied, by processes that are no more */
static uint64_t asked;         /* changes that have ended before */
static uint32_t ends;          /* processes that have ended, but for removal */

static bool there(uint32_t i)
{
    return w.process[i].pid != 0;
}

/* What went wrong, and with which fault. */
static const char *fault(void)
{
    static char text[256];
    size_t len = 0;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        const struct group_fault_plan *p = &w.faults[i];
        len += (size_t)snprintf(text + len, sizeof text - len,
                                "%u: call %d, %s at %lu%s; ", i, (int)p->call,
                                qn_strerror(p->err), (unsigned long)p->at,
                                p->for_ever ? " and on" : "");
    }
    return text;
}

/* ---- processes that end -------------------------------------------------- */

static void leave(uint32_t i)
{
    const struct group_fault_plan *p = &w.faults[i];
    now[i] = group_world_report(&w, i);
    group_world_leave(&w, i);
    told[i] += now[i].applied;
    wanted[i] = 0;
    cr_expect_eq(now[i].wrong, 0, "%s", fault());
    cr_expect_eq(p->wrong, 0, "%s", fault());
    cr_expect_eq(p->blocks, 0, "%lu blocks; %s", (unsigned long)p->blocks,
                 fault());
    cr_expect_eq(p->cuts, 0, "%s", fault());
    cr_expect_eq(p->builds, 0, "%s", fault());
}

static void start(uint32_t i)
{
    memset(&now[i], 0, sizeof now[i]);
    group_world_start(&w, i);
}

static void lose(uint32_t i)
{
    told[i] += group_world_report(&w, i).applied;
    wanted[i] = 0;
    group_world_kill(&w, i);
}

/* Is that how a process may end? A newcomer may hear that a member has no
 * memory for it. */
static bool is_documented(uint32_t i, int err)
{
    const struct group_fault_plan *p = &w.faults[i];
    bool memory = false;
    for (uint32_t k = 0; k < MEMBERS; k++) {
        memory = memory || w.faults[k].call == GROUP_FAULT_MEMORY;
    }
    if (memory) {
        return err == QN_ENOMEM;
    }
    return p->for_ever &&
           err == (p->call == GROUP_FAULT_APPLY ? QN_EAPPLY : p->err);
}

/* One that has ended has its reason, and is replaced. */
static void replace(uint32_t i)
{
    const int err = now[i].turn;
    cr_expect_eq(err, now[i].status.err);
    cr_expect_neq(now[i].why[0], 0);
    cr_expect(is_documented(i, err), "%s: %s: %s", qn_strerror(err), now[i].why,
              fault());
    ends++;
    leave(i);
    w.faults[i].at = 0;
    start(i);
}

/* ---- what is waited for -------------------------------------------------- */

static void look(void)
{
    for (uint32_t i = 0; i < MEMBERS; i++) {
        if (!there(i)) {
            continue;
        }
        now[i] = group_world_report(&w, i);
        if (now[i].status.phase == QN_GROUP_ENDED &&
            now[i].turn != QN_EREMOVED) {
            replace(i);
        }
    }
}

/* Those that get no memory get some after a while. */
static void relent(void)
{
    for (uint32_t i = 0; i < MEMBERS; i++) {
        if (w.faults[i].call == GROUP_FAULT_MEMORY && w.faults[i].failed > 0) {
            w.faults[i].at = 0;
        }
    }
}

static void until(bool (*is)(uint32_t arg), uint32_t arg)
{
    const struct timespec pause = {.tv_nsec = 500000};
    const qn_time_t begin = qn_clock_now();
    look();
    while (!is(arg)) {
        const qn_time_t waited = qn_clock_now() - begin;
        cr_assert_lt(waited, PATIENCE, "%s", fault());
        if (waited > SHORTAGE) {
            relent();
        }
        nanosleep(&pause, NULL);
        look();
    }
}

static bool all_serve(uint32_t arg)
{
    (void)arg;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        if (there(i) && now[i].status.phase != QN_GROUP_SERVING) {
            return false;
        }
    }
    return true;
}

static bool all_vote(uint32_t arg)
{
    for (uint32_t i = 0; i < MEMBERS; i++) {
        if (there(i) && (now[i].status.phase != QN_GROUP_SERVING ||
                         now[i].status.voters != (1u << MEMBERS) - 1)) {
            return false;
        }
    }
    return arg == 0;
}

static bool all_told(uint32_t arg)
{
    for (uint32_t i = 0; i < MEMBERS; i++) {
        if (there(i) && now[i].applied + now[i].unknown < wanted[i]) {
            return false;
        }
    }
    return arg == 0;
}

static bool is_removed(uint32_t i)
{
    return now[i].turn == QN_EREMOVED;
}

static bool removed_or_all_serve(uint32_t i)
{
    return is_removed(i) || all_serve(0);
}

/* Of those that were asked for at `at`, one more has ended; or its process. */
static bool has_change(uint32_t at)
{
    return now[at].changes != asked;
}

static bool all_alike(uint32_t arg)
{
    uint32_t first = 0;
    while (!there(first)) {
        first++;
    }
    for (uint32_t i = first + 1; i < MEMBERS; i++) {
        if (there(i) && (now[i].state.commands != now[first].state.commands ||
                         now[i].state.digest != now[first].state.digest)) {
            return false;
        }
    }
    return all_serve(0) && arg == 0;
}

/* ---- a run --------------------------------------------------------------- */

static void propose(uint64_t n)
{
    for (uint32_t i = 0; i < MEMBERS; i++) {
        if (there(i)) {
            wanted[i] += n;
            group_world_propose(&w, i, n, LONG);
        }
    }
    until(all_told, 0);
}

static void come_back(uint32_t i)
{
    lose(i);
    propose(1);
    start(i);
    until(all_alike, 0);
}

/* Ordered again and again at `at`, whatever becomes of it. */
static void remove_member(uint32_t at, uint32_t i)
{
    for (;;) {
        until(removed_or_all_serve, i);
        if (is_removed(i)) {
            return;
        }
        const struct qn_group_change c = {.seat = now[i].status.seat};
        asked = now[at].changes;
        group_world_ask(&w, at, &c, QN_S);
        until(has_change, at);
    }
}

/* Process `of` is the one that the fault is at, or any. */
static void story(uint32_t of)
{
    for (uint32_t i = 0; i < FIRST; i++) {
        start(i);
    }
    until(all_serve, 0);
    propose(2);
    until(all_alike, 0);
    start(FIRST); /* it becomes a voter */
    until(all_vote, 0);
    for (uint32_t k = 0; k < MEMBERS; k++) {
        come_back((of + k) % MEMBERS);
    }
    const uint32_t removed = (of + 2) % MEMBERS;
    remove_member((of + 3) % MEMBERS, removed);
    leave(removed);
    propose(2);
    until(all_alike, 0);
}

static void finish(void)
{
    uint64_t commands = 0, most = 0;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        if (there(i)) {
            commands = now[i].state.commands;
            leave(i);
        }
        most += told[i];
    }
    /* Without memory all may end at once, and with them what was told. */
    const struct group_fault_plan *p = &w.faults[0];
    const bool all_ended = p->call == GROUP_FAULT_MEMORY && p->for_ever &&
                           w.faults[1].call == GROUP_FAULT_MEMORY;
    cr_expect(commands >= most || all_ended, "%s", fault());
}

/* Each run is a group of its own. @return how often it has failed. */
static uint64_t run(uint32_t of, uint32_t mask,
                    const struct group_fault_plan *plan)
{
    uint64_t failed = 0;
    group_world_begin(&w, FIRST);
    w.opts.capacity = MEMBERS;
    group_world_faults(&w);
    memset(wanted, 0, sizeof wanted);
    memset(told, 0, sizeof told);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        if ((mask >> i & 1) != 0) {
            w.faults[i] = *plan;
        }
    }
    story(of);
    finish();
    for (uint32_t i = 0; i < MEMBERS; i++) {
        failed += w.faults[i].failed;
    }
    group_world_end(&w);
    return failed;
}

static bool all_runs(void)
{
    return getenv("QN_GROUP_FAULTS") != NULL;
}

static void report(const struct group_fault_plan *plan, bool at_all,
                   uint64_t runs, uint64_t failed)
{
    static const char *const name[] = {"apply", "begin",  "next",
                                       "read",  "finish", "memory"};
    fprintf(stderr, "%s, %s%s%s: %lu runs, %lu fail, %u processes end\n",
            name[plan->call], qn_strerror(plan->err),
            plan->for_ever ? ", for ever" : "", at_all ? ", at all" : "",
            (unsigned long)runs, (unsigned long)failed, ends);
}

static struct group_fault_plan once(enum group_fault_call call, int err)
{
    return (struct group_fault_plan){.call = call, .err = err};
}

static struct group_fault_plan for_ever(enum group_fault_call call, int err)
{
    return (struct group_fault_plan){
        .call = call, .err = err, .for_ever = true};
}

/* At each n-th call of one member after the other, or of all members. Or else
 * in one run, at that call of the first one. */
static void each_call(struct group_fault_plan plan, bool at_all,
                      uint64_t sample)
{
    const uint32_t all = (1u << MEMBERS) - 1;
    uint64_t runs = 0, failed = 0;
    ends = 0;
    if (!all_runs()) {
        plan.at = sample;
        cr_expect_gt(run(0, at_all ? all : 1, &plan), 0);
        return;
    }
    for (uint32_t of = 0; of < (at_all ? 1 : MEMBERS); of++) {
        uint64_t hits = 1;
        for (plan.at = 1; hits != 0; plan.at++) {
            hits = run(of, at_all ? all : 1u << of, &plan);
            failed += hits;
            runs++;
        }
    }
    report(&plan, at_all, runs, failed);
    cr_expect_gt(failed, 0);
}

#define CASE(name) Test(group_faults, name, .timeout = 3000)

CASE(apply_that_lacks_memory_is_asked_again)
{
    each_call(once(GROUP_FAULT_APPLY, QN_ENOMEM), false, 2);
    cr_expect_eq(ends, 0);
}

CASE(a_state_that_apply_has_lost_is_replaced)
{
    each_call(once(GROUP_FAULT_APPLY, QN_EIO), false, 5);
    cr_expect_eq(ends, 0);
}

CASE(a_member_that_can_apply_nothing_more_ends)
{
    each_call(for_ever(GROUP_FAULT_APPLY, QN_EIO), false, 3);
    cr_expect_gt(ends, 0);
}

static void begin(const struct group_fault_plan *plan)
{
    group_world_begin(&w, FIRST);
    w.opts.capacity = MEMBERS;
    group_world_faults(&w);
    memset(wanted, 0, sizeof wanted);
    memset(told, 0, sizeof told);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        w.faults[i] = *plan;
    }
    for (uint32_t i = 0; i < FIRST; i++) {
        start(i);
    }
    until(all_serve, 0);
}

/* The newcomer ends after some seconds; the others go on, and another one is
 * taken when the callback works. */
static void gets_none(enum group_fault_call call)
{
    struct group_fault_plan plan = for_ever(call, QN_EIO);
    plan.at = 1;
    begin(&plan);
    start(FIRST);
    ends = 0;
    while (ends == 0) { /* it is replaced */
        propose(1);
    }
    for (uint32_t i = 0; i < MEMBERS; i++) {
        w.faults[i].at = 0;
    }
    until(all_vote, 0);
    propose(1);
    until(all_alike, 0);
    finish();
    cr_expect_eq(ends, 1);
    group_world_end(&w);
}

/* A callback of snapshots that fails costs an attempt, at one member or at all:
 * then it is made again. */
static void each_error(enum group_fault_call call)
{
    static const int error[] = {QN_EIO, QN_ENOMEM, QN_EAGAIN};
    const bool gives = call == GROUP_FAULT_BEGIN || call == GROUP_FAULT_NEXT;
    const uint32_t errors = !all_runs() ? 1 : gives ? 3 : 2;
    for (uint32_t k = 0; k < errors; k++) {
        each_call(once(call, error[k]), true, 1);
        cr_expect_eq(ends, 0);
        if (all_runs()) {
            each_call(once(call, error[k]), false, 1);
            cr_expect_eq(ends, 0);
        }
    }
    if (all_runs()) {
        gets_none(call);
    }
}

CASE(a_snapshot_that_does_not_begin_is_taken_again)
{
    each_error(GROUP_FAULT_BEGIN);
}

CASE(a_snapshot_that_does_not_go_on_is_taken_again)
{
    each_error(GROUP_FAULT_NEXT);
}

CASE(a_snapshot_that_cannot_be_read_is_taken_again)
{
    each_error(GROUP_FAULT_READ);
}

CASE(a_snapshot_that_is_not_whole_is_taken_again)
{
    each_error(GROUP_FAULT_FINISH);
}

CASE(memory_that_is_refused_costs_at_most_the_process)
{
    each_call(once(GROUP_FAULT_MEMORY, QN_ENOMEM), false, 28);
}

CASE(a_process_that_gets_no_memory_goes_on_when_there_is_some_or_ends)
{
    each_call(for_ever(GROUP_FAULT_MEMORY, QN_ENOMEM), false, 24);
    each_call(for_ever(GROUP_FAULT_MEMORY, QN_ENOMEM), true, 25);
}

/* ---- for ever, at all ---------------------------------------------------- */

static bool all_stopped(uint32_t arg)
{
    for (uint32_t i = 0; i < FIRST; i++) {
        if (!now[i].status.stopped) {
            return false;
        }
    }
    return arg == 0;
}

static bool is_member(uint32_t i)
{
    return now[i].status.phase == QN_GROUP_SYNCING;
}

/* No state goes on, nor that of a newcomer. */
static void stops(int err)
{
    struct group_fault_plan plan = for_ever(GROUP_FAULT_APPLY, err);
    plan.at = 3;
    begin(&plan);
    group_world_propose(&w, 1, 6, LONG);
    until(all_stopped, 0);
    start(FIRST);
    until(is_member, FIRST);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        cr_expect_eq(now[i].status.phase, QN_GROUP_SYNCING);
        cr_expect_leq(now[i].state.commands, 2);
        if (i < FIRST) {
            cr_expect_eq(now[i].status.failed, now[0].status.failed);
            cr_expect_eq(now[i].status.failed_err, err);
            cr_expect(now[i].status.lost);
        }
        leave(i);
    }
    group_world_end(&w);
}

CASE(what_no_member_can_ever_apply_stops_the_group)
{
    stops(QN_EIO);
    stops(QN_ENOMEM); /* a second later */
}
