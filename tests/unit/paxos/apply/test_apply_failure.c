/* A service that cannot apply: its cases, and groups whose services fail by a
 * seed. */
#include "paxos/apply/apply_failure.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "tests/support/test.h"

static struct qn_apply_failure f;
static qn_slot_t applied[QN_NODES_MAX];
static qn_time_t now;

static void setup(void)
{
    f = (struct qn_apply_failure){0};
    memset(applied, 0, sizeof applied);
    now = 5 * QN_S;
}

#define CASE(name) Test(apply_failure, name, .init = setup)

static enum qn_apply_verdict result(qn_slot_t slot, int err)
{
    return qn_apply_failure_result(&f, slot, err, now);
}

static void look(uint64_t living, uint64_t incomplete)
{
    const struct qn_apply_members m = {living, incomplete, applied};
    qn_apply_failure_look(&f, &m);
}

static void apply_slot(qn_slot_t slot)
{
    cr_assert_eq(result(slot, QN_OK), QN_APPLY_GO_ON);
    qn_apply_failure_slot_end(&f);
}

CASE(memory_that_comes_back_costs_nothing)
{
    cr_assert_eq(result(7, QN_ENOMEM), QN_APPLY_REPEAT);
    cr_assert_eq(f.again_at, now + QN_APPLY_AGAIN);
    cr_assert_eq(f.phase, QN_APPLY_SHORT);
    cr_assert_eq(f.slot, 7u);
    cr_assert_eq(f.error, QN_ENOMEM);
    cr_assert(qn_apply_failure_whole(&f));
    now += QN_APPLY_AGAIN_FOR - 1;
    cr_assert_eq(result(7, QN_ENOMEM), QN_APPLY_REPEAT);
    apply_slot(7);
    cr_assert_eq(f.phase, QN_APPLY_OK);
    cr_assert_eq(result(8, QN_ENOMEM), QN_APPLY_REPEAT, "a second anew");
    cr_assert_eq(f.since, now);
}

CASE(memory_that_stays_short_for_a_second_costs_the_state)
{
    cr_assert_eq(result(7, QN_ENOMEM), QN_APPLY_REPEAT);
    now += QN_APPLY_AGAIN_FOR;
    cr_assert_eq(result(7, QN_ENOMEM), QN_APPLY_DROP);
    cr_assert_eq(f.phase, QN_APPLY_LOST);
    cr_assert_not(qn_apply_failure_whole(&f));
    cr_assert_eq(f.lost, 7u);
}

CASE(any_other_error_costs_it_at_once_also_while_memory_is_short)
{
    cr_assert_eq(result(7, QN_EIO), QN_APPLY_DROP);
    cr_assert_eq(f.phase, QN_APPLY_LOST);
    cr_assert_eq(f.error, QN_EIO);
    setup();
    cr_assert_eq(result(7, QN_ENOMEM), QN_APPLY_REPEAT);
    cr_assert_eq(result(7, -4711), QN_APPLY_DROP);
    cr_assert_eq(f.error, -4711);
}

CASE(donors_are_those_with_a_state_behind_the_slot)
{
    cr_assert_eq(result(7, QN_EIO), QN_APPLY_DROP);
    applied[1] = 6;
    applied[2] = 7;
    applied[3] = 9;
    applied[4] = 9;
    look(0x0e, 0x08);
    cr_assert_eq(f.donors, UINT64_C(0x04));
    look(0x1a, 0x08);
    cr_assert_eq(f.donors, UINT64_C(0x10), "2 has ended");
    applied[63] = 100;
    look(UINT64_C(1) << 63, 0);
    cr_assert_eq(f.donors, UINT64_C(1) << 63);
}

CASE(a_member_that_may_yet_apply_the_slot_is_waited_for)
{
    cr_assert_eq(result(7, QN_EIO), QN_APPLY_DROP);
    applied[1] = 6;
    look(0x2, 0);
    cr_assert_eq(f.phase, QN_APPLY_LOST);
    cr_assert_eq(f.donors, UINT64_C(0));
    applied[1] = 7;
    look(0x2, 0);
    cr_assert_eq(f.donors, UINT64_C(0x2));
}

CASE(without_a_whole_state_anywhere_the_group_has_stopped_until_there_is_one)
{
    cr_assert_eq(result(7, QN_EIO), QN_APPLY_DROP);
    look(0x6, 0x6);
    cr_assert_eq(f.phase, QN_APPLY_STOPPED);
    cr_assert_not(qn_apply_failure_whole(&f));
    cr_assert_eq(f.slot, 7u);
    cr_assert_eq(f.error, QN_EIO);
    look(0, 0);
    cr_assert_eq(f.phase, QN_APPLY_STOPPED, "alone");
    applied[2] = 7;
    look(0x6, 0x2);
    cr_assert_eq(f.phase, QN_APPLY_LOST);
    cr_assert_eq(f.donors, UINT64_C(0x4));
    look(0x6, 0x6);
    qn_apply_failure_installed(&f);
    cr_assert_eq(f.phase, QN_APPLY_OK);
}

CASE(only_a_lost_state_looks_for_another_one)
{
    look(0, 0);
    cr_assert_eq(f.phase, QN_APPLY_OK);
    qn_apply_failure_gave_up(&f, QN_EIO);
    cr_assert_eq(f.phase, QN_APPLY_OK);
    cr_assert_eq(result(7, QN_ENOMEM), QN_APPLY_REPEAT);
    look(0, 0);
    qn_apply_failure_gave_up(&f, QN_EIO);
    cr_assert_eq(f.phase, QN_APPLY_SHORT);
}

CASE(the_second_loss_at_one_slot_ends_the_member)
{
    cr_assert_eq(result(7, QN_EIO), QN_APPLY_DROP);
    qn_apply_failure_installed(&f); /* of an older position */
    apply_slot(6);
    cr_assert_eq(result(7, QN_EIO), QN_APPLY_DROP);
    cr_assert_eq(f.phase, QN_APPLY_ENDED);
    cr_assert_eq(f.ended, QN_EAPPLY);
    cr_assert_eq(f.slot, 7u);
    look(0x2, 0);
    cr_assert_eq(f.phase, QN_APPLY_ENDED, "for ever");
}

CASE(so_does_a_loss_before_any_slot_was_applied)
{
    cr_assert_eq(result(7, QN_EIO), QN_APPLY_DROP);
    qn_apply_failure_installed(&f);
    cr_assert_eq(result(20, QN_OK), QN_APPLY_GO_ON, "a part of the slot");
    cr_assert_eq(result(20, QN_EIO), QN_APPLY_DROP);
    cr_assert_eq(f.phase, QN_APPLY_ENDED);
    cr_assert_eq(f.ended, QN_EAPPLY);
    cr_assert_eq(f.slot, 20u);
}

CASE(a_loss_later_in_the_log_is_a_first_one)
{
    apply_slot(1);
    cr_assert_eq(result(2, QN_EIO), QN_APPLY_DROP);
    qn_apply_failure_installed(&f);
    apply_slot(3);
    cr_assert_eq(result(4, QN_EIO), QN_APPLY_DROP);
    cr_assert_eq(f.phase, QN_APPLY_LOST);
    qn_apply_failure_installed(&f);
    cr_assert_eq(result(5, QN_EIO), QN_APPLY_DROP);
    cr_assert_eq(f.phase, QN_APPLY_ENDED);
}

CASE(a_state_transfer_that_gave_up_ends_the_member_with_its_error)
{
    cr_assert_eq(result(7, QN_EIO), QN_APPLY_DROP);
    qn_apply_failure_gave_up(&f, QN_ENOMEM);
    cr_assert_eq(f.phase, QN_APPLY_ENDED);
    cr_assert_eq(f.ended, QN_ENOMEM);
    setup();
    cr_assert_eq(result(7, QN_EIO), QN_APPLY_DROP);
    look(0, 0);
    qn_apply_failure_gave_up(&f, QN_ECORRUPT);
    cr_assert_eq(f.ended, QN_ECORRUPT, "also when stopped");
}

Test(apply_failure, nothing_is_applied_to_a_lost_state, .init = setup,
     .signal = SIGABRT)
{
    (void)result(7, QN_EIO);
    (void)result(8, QN_OK);
}

Test(apply_failure, the_command_that_is_repeated_is_the_same, .init = setup,
     .signal = SIGABRT)
{
    (void)result(7, QN_ENOMEM);
    (void)result(8, QN_OK);
}

/* ---- groups -------------------------------------------------------------- */

/* Members apply the slots 1..LOG, one command each. A state is the sum of what
 * was applied, so a skipped or repeated slot shows. */
enum { MEMBERS = 4, LOG = 60, STEPS = 4000 };

enum { FAILS_NEVER, FAILS_ONCE, FAILS_AT_A_SLOT, FAILS_FROM_A_SLOT, FAILS_BY };

static struct {
    struct qn_apply_failure f[MEMBERS];
    qn_slot_t applied[QN_NODES_MAX];
    uint64_t state[MEMBERS];
    int snapshots[MEMBERS];
    int fails[MEMBERS];          /* how */
    qn_slot_t fails_at[MEMBERS]; /* and where */
    bool whole[MEMBERS];
} group;

static uint64_t sum_to(qn_slot_t slot)
{
    return slot * (slot + 1) / 2;
}

static int service(int i, qn_slot_t slot, unsigned *seed)
{
    int how = group.fails[i];
    bool here = slot == group.fails_at[i];
    if (rand_r(seed) % 8 == 0) {
        return QN_ENOMEM;
    }
    if (how == FAILS_ONCE && here) {
        group.fails[i] = FAILS_NEVER;
        return QN_EIO;
    }
    return (how == FAILS_AT_A_SLOT && here) ||
                   (how == FAILS_FROM_A_SLOT && slot >= group.fails_at[i])
               ? QN_EIO
               : QN_OK;
}

static void member_apply(int i, unsigned *seed)
{
    qn_slot_t slot = group.applied[i] + 1;
    if (slot > LOG || group.f[i].again_at > now) {
        return;
    }
    enum qn_apply_verdict v =
        qn_apply_failure_result(&group.f[i], slot, service(i, slot, seed), now);
    if (v == QN_APPLY_GO_ON) {
        group.state[i] += slot;
        group.applied[i] = slot;
        qn_apply_failure_slot_end(&group.f[i]);
    }
    group.whole[i] = v != QN_APPLY_DROP;
}

static void member_fetch(int i, unsigned *seed)
{
    struct qn_apply_members m = {.applied = group.applied};
    for (int j = 0; j < MEMBERS; j++) {
        bool ended = group.f[j].phase == QN_APPLY_ENDED;
        m.living |= (uint64_t)(j != i && !ended) << j;
        m.incomplete |= (uint64_t)!group.whole[j] << j;
    }
    qn_apply_failure_look(&group.f[i], &m);
    int d = rand_r(seed) % MEMBERS;
    if ((group.f[i].donors >> d & 1) != 0) {
        cr_assert(group.whole[d]);
        cr_assert_geq(group.applied[d], group.f[i].slot);
        group.state[i] = group.state[d];
        group.applied[i] = group.applied[d];
        group.whole[i] = true;
        group.snapshots[i]++;
        qn_apply_failure_installed(&group.f[i]);
    }
}

static void group_begin(unsigned *seed)
{
    memset(&group, 0, sizeof group);
    for (int i = 0; i < MEMBERS; i++) {
        group.whole[i] = true;
        group.fails[i] = rand_r(seed) % FAILS_BY;
        group.fails_at[i] = 1 + (qn_slot_t)rand_r(seed) % (LOG - 10);
    }
}

/* How it must end, as each fails in its own way. */
static void group_check(int i)
{
    const struct qn_apply_failure *m = &group.f[i];
    if (group.whole[i]) {
        cr_assert_eq(group.state[i], sum_to(group.applied[i]), "%d", i);
        cr_assert_eq(group.applied[i], (qn_slot_t)LOG, "%d", i);
        cr_assert_leq(group.snapshots[i], 1);
    } else if (m->phase == QN_APPLY_STOPPED) {
        for (int j = 0; j < MEMBERS; j++) {
            cr_assert_not(group.whole[j], "%d is no reason to stop", j);
        }
        cr_assert_geq(m->slot, group.fails_at[i]);
        cr_assert_eq(m->error, QN_EIO);
    } else {
        cr_assert_eq(m->phase, QN_APPLY_ENDED, "%d waits for nothing", i);
        cr_assert_eq(group.fails[i], FAILS_FROM_A_SLOT);
        cr_assert_eq(m->ended, QN_EAPPLY);
        cr_assert_eq(group.snapshots[i], 1, "no cycle of snapshots");
    }
}

CASE(no_slot_is_skipped_and_no_member_fetches_states_for_ever)
{
    enum { SEEDS = 200 };
    int whole = 0, stopped = 0, ended = 0;
    for (unsigned k = 1; k <= SEEDS; k++) {
        unsigned seed = k;
        group_begin(&seed);
        for (int step = 0; step < STEPS; step++) {
            int i = rand_r(&seed) % MEMBERS;
            now += QN_MS / 4;
            if (qn_apply_failure_whole(&group.f[i])) {
                member_apply(i, &seed);
            } else {
                member_fetch(i, &seed);
            }
        }
        for (int i = 0; i < MEMBERS; i++) {
            group_check(i);
            whole += group.whole[i];
            stopped += group.f[i].phase == QN_APPLY_STOPPED;
            ended += group.f[i].phase == QN_APPLY_ENDED;
        }
    }
    cr_assert_gt(whole, SEEDS);
    cr_assert_gt(stopped, 10);
    cr_assert_gt(ended, SEEDS / 4);
}
