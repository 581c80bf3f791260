/*
 * When all data is lost, and what is said then.
 */
#include "tests/unit/kvs/supervision/fixture.h"

#include <string.h>

#include "tests/support/test.h"

Test(verdict, the_last_complete_replica_takes_the_data_along)
{
    struct bench b;
    char text[512];
    bench_serve(&b, 1);
    b.facts.decided_upto = 77;
    killed(&b, 0);
    cr_expect_eq(count(&b, QN_DO_FINISH), 0, "the others are heard before");
    cr_expect_eq(b.out.deadline, b.now);
    timer(&b);
    cr_expect_eq(find(&b, QN_DO_FINISH, 0)->number, QN_SUPERVISOR_LOST);
    cr_assert(qn_supervision_last_words(&b.s, text, sizeof text));
    cr_expect_str_eq(
        text, "all data is lost: replica 0 (process 110) was ended by signal 9 "
              "(Killed), the last one that had it, and no complete replica is "
              "left. All positions up to 77 had been decided. Start quoind "
              "again: it begins empty");
}

/* Where replicas share no state, how far is not known. */
Test(verdict, an_unknown_position_is_not_invented)
{
    struct bench b;
    char text[512];
    bench_serve(&b, 1);
    killed(&b, 0);
    timer(&b);
    cr_assert(qn_supervision_last_words(&b.s, text, sizeof text));
    cr_expect_str_eq(
        text, "all data is lost: replica 0 (process 110) was ended by signal 9 "
              "(Killed), the last one that had it, and no complete replica is "
              "left. Start quoind again: it begins empty");
}

Test(verdict, one_complete_replica_is_enough)
{
    struct bench b;
    bench_serve(&b, 3);
    killed(&b, 0);
    killed(&b, 1);
    timer(&b);
    cr_expect_eq(count(&b, QN_DO_FINISH), 0);
}

/* READY that came before the end, and was read after it. */
Test(verdict, what_others_said_before_the_end_counts)
{
    struct bench b;
    bench_serve(&b, 3);
    killed(&b, 0);
    killed(&b, 1);
    timer(&b);
    comes(&b, 1);
    cr_expect_eq(count(&b, QN_DO_FINISH), 0);
    killed(&b, 2);
    timer(&b);
    cr_expect_eq(count(&b, QN_DO_FINISH), 0);
}

Test(verdict, loading_replicas_have_2_s_to_rebuild_the_state)
{
    struct bench b;
    bench_serve(&b, 3);
    killed(&b, 0);
    later(&b, 30);
    spawned(&b, 0);
    says_hello(&b, 0);
    killed(&b, 1);
    killed(&b, 2);
    timer(&b);
    cr_assert(logged(&b, "no replica holds the full state; loading replicas "
                         "have 2 s to rebuild it from the log"));
    cr_assert_eq(count(&b, QN_DO_FINISH), 0);
    later(&b, 1999);
    cr_assert_eq(count(&b, QN_DO_FINISH), 0);
    cr_assert_not(logged(&b, "loading"), "it is said once");
    later(&b, 1);
    cr_assert_eq(find(&b, QN_DO_FINISH, 0)->number, QN_SUPERVISOR_LOST);
}

Test(verdict, a_loading_replica_that_becomes_complete_saves_the_data)
{
    struct bench b;
    bench_serve(&b, 3);
    killed(&b, 0);
    later(&b, 30);
    spawned(&b, 0);
    says_hello(&b, 0);
    killed(&b, 1);
    killed(&b, 2);
    timer(&b);
    says_kind(&b, 0, QN_CTL_READY);
    later(&b, 5000);
    cr_expect_eq(count(&b, QN_DO_FINISH), 0);
    cr_expect_eq(b.s.lost_at, QN_TIME_NEVER);
}

Test(verdict, without_the_memory_acceptor_there_is_no_ring_to_rebuild_from)
{
    struct bench b;
    bench_serve(&b, 3);
    b.s.opts.memory_acceptor = false;
    killed(&b, 0);
    later(&b, 30);
    spawned(&b, 0);
    killed(&b, 1);
    killed(&b, 2);
    timer(&b);
    cr_expect_eq(find(&b, QN_DO_FINISH, 0)->number, QN_SUPERVISOR_LOST);
}

Test(verdict, it_names_the_last_complete_one_and_not_a_loading_one)
{
    struct bench b;
    char text[512];
    bench_serve(&b, 3);
    killed(&b, 0);
    later(&b, 30);
    spawned(&b, 0);
    killed(&b, 1);
    killed(&b, 2);
    ended(&b, 0, 1 << 8);
    timer(&b);
    cr_assert(qn_supervision_last_words(&b.s, text, sizeof text));
    cr_assert_not_null(strstr(text, "lost: replica 2 (process 132)"), "%s",
                       text);
}

Test(verdict, nothing_is_said_of_a_server_that_drained)
{
    struct bench b;
    char text[16] = "untouched";
    bench_serve(&b, 1);
    signalled(&b, 15);
    says_kind(&b, 0, QN_CTL_DRAINED);
    ended(&b, 0, 0);
    timer(&b);
    cr_assert_eq(find(&b, QN_DO_FINISH, 0)->number, QN_SUPERVISOR_DRAINED);
    cr_expect_not(qn_supervision_last_words(&b.s, text, sizeof text));
    cr_expect_str_eq(text, "untouched");
}
