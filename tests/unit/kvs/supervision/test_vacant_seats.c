/*
 * Vacant seats: none has a process, and none is waited for or counted.
 */
#include "tests/unit/kvs/supervision/fixture.h"

#include "tests/support/test.h"

/* Nodes 0 .. n - 1 of `seats`. */
static struct qn_supervision_opts seats_of(uint32_t n, uint32_t seats)
{
    struct qn_supervision_opts o = opts_of(seats);
    o.taken = ((uint64_t)1 << n) - 1;
    return o;
}

static void begin(struct bench *b, uint32_t n, uint32_t seats)
{
    const struct qn_supervision_opts o = seats_of(n, seats);
    bench_init(b, seats);
    qn_supervision_init(&b->s, &o);
    step(b, (struct qn_supervision_event){.kind = QN_ON_START});
    cr_assert_eq(count(b, QN_DO_SPAWN), n);
    for (qn_node_t i = 0; i < n; i++) {
        spawned(b, i);
    }
    for (qn_node_t i = 0; i < n; i++) {
        says_hello(b, i);
    }
}

Test(vacant_seats, a_group_is_ready_without_them)
{
    struct bench b;
    begin(&b, 3, 5);
    cr_expect_eq(told(&b, 0, QN_CTL_START), 1);
    says_kind(&b, 0, QN_CTL_READY);
    says_kind(&b, 1, QN_CTL_READY);
    cr_expect_eq(count(&b, QN_DO_ANNOUNCE), 0);
    says_kind(&b, 2, QN_CTL_READY);
    cr_expect_eq(count(&b, QN_DO_ANNOUNCE), 1);
}

/* Two of three are a majority, though not of seven. */
Test(vacant_seats, a_majority_is_of_those_that_are_taken)
{
    struct bench b;
    begin(&b, 3, 7);
    for (qn_node_t i = 0; i < 3; i++) {
        says_kind(&b, i, QN_CTL_READY);
    }
    killed(&b, 1);
    cr_expect(logged(&b, "2 of 3 go on"));
    cr_expect_gt(restart_in_ms(&b, 1), 0);
    killed(&b, 2);
    cr_expect_eq(restart_in_ms(&b, 1), 0);
    for (qn_node_t i = 3; i < 7; i++) {
        cr_expect_eq(restart_in_ms(&b, i), -1);
    }
}

/* A replica that comes back hears of each seat; a vacant one had no incarnation
 * (0). */
Test(vacant_seats, a_later_incarnation_hears_that_they_are_vacant)
{
    struct bench b;
    begin(&b, 3, 4);
    for (qn_node_t i = 0; i < 3; i++) {
        says_kind(&b, i, QN_CTL_READY);
    }
    killed(&b, 2);
    later(&b, 100);
    spawned(&b, 2);
    says_hello(&b, 2);
    cr_expect_eq(told(&b, 2, QN_CTL_PEER_UP), 2);
    cr_assert_eq(told(&b, 2, QN_CTL_PEER_DOWN), 1);
    cr_expect_eq(message(&b, 2, QN_CTL_PEER_DOWN)->u.peer_down.node, 3);
    cr_expect_eq(message(&b, 2, QN_CTL_PEER_DOWN)->u.peer_down.incarnation, 0);
}

/* Nor does one that takes the group over. */
Test(vacant_seats, an_adopter_starts_nothing_there)
{
    struct bench b;
    const struct qn_supervision_opts o = seats_of(2, 3);
    bench_init(&b, 1);
    step(&b, (struct qn_supervision_event){
                 .kind = QN_ON_ORPHAN_MET, .node = 0, .pid = 100});
    says_kind(&b, 0, QN_CTL_START);
    step(&b,
         (struct qn_supervision_event){.kind = QN_ON_TAKE_OVER, .opts = &o});
    for (qn_node_t i = 1; i < 3; i++) {
        step(&b,
             (struct qn_supervision_event){.kind = QN_ON_VACANT, .node = i});
    }
    cr_expect_eq(restart_in_ms(&b, 1), 0);
    cr_expect_eq(restart_in_ms(&b, 2), -1);
}
