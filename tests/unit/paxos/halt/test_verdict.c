/* When a group with the memory acceptor cannot go on: paxos/halt/verdict.h.
 */
#include "paxos/halt/verdict.h"

#include "tests/support/test.h"

/* Node 0 owned the ring, which keeps 151 to 900, and has ended; 1 and 2 have
 * read what it had sent, and lack 101. */
static struct qn_verdict_in lost(void)
{
    struct qn_verdict_in in = {.ended = true, .lo = 151, .hi = 900, .nodes = 3};
    for (qn_node_t i = 1; i < 3; i++) {
        in.member[i] = (struct qn_verdict_member){
            .lives = true, .heard = true, .learned = 100};
    }
    return in;
}

static void is(const struct qn_verdict_in *in, enum qn_verdict_kind kind,
               uint64_t awaited)
{
    struct qn_verdict v = qn_verdict_find(in);
    cr_assert_eq(v.kind, kind, "%d, expected %d", v.kind, kind);
    cr_assert_eq(v.awaited, awaited, "%lx, expected %lx",
                 (unsigned long)v.awaited, (unsigned long)awaited);
}

Test(verdict, stopped_says_what_is_kept_and_what_lies_in_the_ring)
{
    struct qn_verdict_in in = lost();
    struct qn_verdict v = qn_verdict_find(&in);
    cr_assert_eq(v.kind, QN_VERDICT_STOPPED);
    cr_assert_eq(v.longest, 1);
    cr_assert_eq(v.kept, 100);
    cr_assert_eq(v.lo, 151);
    cr_assert_eq(v.hi, 900);
    cr_assert_eq(v.awaited, 0);
}

/* Only a voter can lead the group that goes on by force. */
Test(verdict, of_equals_a_voter_goes_on)
{
    struct qn_verdict_in in = lost();
    in.member[2].votes = true;
    in.member[2].late = true;
    cr_assert_eq(qn_verdict_find(&in).longest, 2);
    in.member[1].votes = true;
    cr_assert_eq(qn_verdict_find(&in).longest, 1, "one that is not late");
    in.member[1].votes = false;
    in.member[1].learned = 101;
    cr_assert_eq(qn_verdict_find(&in).longest, 1,
                 "what is learned comes first");
}

Test(verdict, an_owner_that_lives_goes_on)
{
    struct qn_verdict_in in = lost();
    in.ended = false;
    is(&in, QN_VERDICT_NONE, 0);
}

/* The ring begins right behind what it has: it takes over. */
Test(verdict, one_that_the_ring_helps_is_enough)
{
    struct qn_verdict_in in = lost();
    in.member[2].learned = 149;
    is(&in, QN_VERDICT_WAITING, 1 << 1 | 1 << 2);
    in.member[2].learned = 150;
    is(&in, QN_VERDICT_NONE, 0);
    in.member[2].learned = 899;
    is(&in, QN_VERDICT_NONE, 0);
    in.member[2].lives = false;
    is(&in, QN_VERDICT_STOPPED, 0);
}

/* What the group lacks may lie unread in its lane. */
Test(verdict, who_has_not_read_what_the_ended_had_sent_is_waited_for)
{
    struct qn_verdict_in in = lost();
    in.member[2].heard = false;
    is(&in, QN_VERDICT_WAITING, 1 << 2);
    in.member[2].lives = false;
    is(&in, QN_VERDICT_STOPPED, 0);
}

/* It may have what lies behind its gap. */
Test(verdict, who_has_learned_less_is_waited_for)
{
    struct qn_verdict_in in = lost();
    in.member[1].learned = 50;
    struct qn_verdict v = qn_verdict_find(&in);
    cr_assert_eq(v.longest, 2);
    is(&in, QN_VERDICT_WAITING, 1 << 1 | 1 << 2);
    in.member[2].heard = false; /* it comes first */
    is(&in, QN_VERDICT_WAITING, 1 << 2);
    in.member[2].heard = true;
    in.member[1].learned = 100;
    is(&in, QN_VERDICT_STOPPED, 0);
}

Test(verdict, a_snapshot_is_waited_for_if_the_ring_goes_on_behind_it)
{
    struct qn_verdict_in in = lost();
    in.member[1].coming = 149;
    is(&in, QN_VERDICT_STOPPED, 0);
    in.member[1].coming = 150;
    is(&in, QN_VERDICT_WAITING, 1 << 1);
    in.member[1].late = true;
    is(&in, QN_VERDICT_WAITING, 1 << 1);
}

Test(verdict, a_life_that_began_later_has_nothing_of_its_own)
{
    struct qn_verdict_in in = lost();
    in.member[0] = (struct qn_verdict_member){.lives = true, .late = true};
    is(&in, QN_VERDICT_STOPPED, 0);
    in.member[0].late = false;
    is(&in, QN_VERDICT_WAITING, 1 << 0);
    in.member[0].heard = true;
    is(&in, QN_VERDICT_WAITING, 1 << 0 | 1 << 1);
    in.member[0].late = true;
    in.member[0].learned = 100; /* a snapshot of another */
    is(&in, QN_VERDICT_STOPPED, 0);
    cr_assert_eq(qn_verdict_find(&in).longest, 1);
    in.member[0].learned = 150; /* it has got it from somewhere */
    is(&in, QN_VERDICT_NONE, 0);
}

/* Of nothing but a snapshot of the first slot nobody needs anything. */
Test(verdict, a_ring_that_keeps_all_stops_nobody)
{
    struct qn_verdict_in in = lost();
    in.lo = 1;
    in.member[1].learned = in.member[2].learned = 0;
    is(&in, QN_VERDICT_NONE, 0);
}

Test(verdict, nobody_left_is_a_group_that_has_stopped)
{
    struct qn_verdict_in in = lost();
    in.member[1].lives = in.member[2].lives = false;
    struct qn_verdict v = qn_verdict_find(&in);
    cr_assert_eq(v.kind, QN_VERDICT_STOPPED);
    cr_assert_eq(v.kept, 0);
}

/* All small cases of two members, against the sentence in words. */
Test(verdict, all_small_cases)
{
    for (uint32_t x = 0; x < 1u << 14; x++) {
        struct qn_verdict_in in = {.ended = true, .lo = 3, .hi = 5, .nodes = 2};
        bool goes_on = false;
        bool waits = false;
        qn_slot_t most = 0;
        for (qn_node_t i = 0; i < 2; i++) {
            uint32_t y = x >> (7 * i);
            struct qn_verdict_member *m = &in.member[i];
            *m = (struct qn_verdict_member){.lives = y & 1,
                                            .heard = y >> 1 & 1,
                                            .late = y >> 2 & 1,
                                            .learned = y >> 3 & 3,
                                            .coming = y >> 5 & 3};
            goes_on |= m->lives && m->learned >= 2;
            most = m->lives && m->learned > most ? m->learned : most;
        }
        for (qn_node_t i = 0; i < 2; i++) {
            const struct qn_verdict_member *m = &in.member[i];
            bool unread = !m->late && !m->heard;
            bool behind = !m->late && m->learned < most;
            waits |= m->lives && (unread || behind || m->coming >= 2);
        }
        enum qn_verdict_kind expected = goes_on ? QN_VERDICT_NONE
                                        : waits ? QN_VERDICT_WAITING
                                                : QN_VERDICT_STOPPED;
        cr_assert_eq(qn_verdict_find(&in).kind, expected, "case %x", x);
    }
}
