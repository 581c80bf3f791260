#ifndef QN_TRANSPORTS_MPB_MUTANT_H
#define QN_TRANSPORTS_MPB_MUTANT_H

/**
 * Defects that the tests must find (positive controls): each invalidate and
 * each drain of code on a chip taken out, and each correction of a published
 * form. In the product QN_MPB_MUTANT(x) is the constant false; for the tests
 * the folder is compiled a second time with QN_MUTANTS set and chooses one by
 * `qn_mpb_mutant`.
 *
 * X(name, the test that finds it, text). STRICT: test_mpb_mutants, a strict
 * chip, within 100 seeds. LIVES: test_mpb_lives_mutants, incarnations in every
 * order. OC, ASYNC: test_ocbcast_mutants, broadcasts on strict chips. TWO:
 * test_rivals_mutants, the same.
 */

#include <stdbool.h>

#define QN_MPB_MUTANT_MAP(X)                                                   \
    X(SENT_STALE, STRICT, "what was sent is looked at without invalidating")   \
    X(READY_STALE, STRICT, "what was read is looked at without invalidating")  \
    X(WANT_STALE, STRICT, "that room is wanted, without invalidating")         \
    X(SENT_KEPT, STRICT, "what was sent is not drained")                       \
    X(READY_KEPT, STRICT, "what was read is not drained")                      \
    X(WANT_KEPT, STRICT, "that room is wanted is not drained")                 \
    X(SENT_LEFT, LIVES, "open leaves what its predecessor had sent")           \
    X(NO_SECOND_LOOK, LIVES, "a cell counts whichever incarnation wrote it")   \
    X(OC_STALE, OC, "OC-Bcast looks at flags without invalidating")            \
    X(OC_KEPT, OC, "OC-Bcast does not drain its flags")                        \
    X(OC_NO_BARRIER, OC, "as printed: the root changes without a barrier")     \
    X(OC_NO_RENEWAL, OC, "lines that were not written for long count")         \
    X(TWO_STALE, TWO, "two-sided flags are looked at without invalidating")    \
    X(TWO_KEPT, TWO, "two-sided flags are not drained")                        \
    X(ASYNC_HEAD_STALE, ASYNC, "a head is looked at without invalidating")     \
    X(ASYNC_DONE_STALE, ASYNC, "done is looked at without invalidating")       \
    X(ASYNC_WINDOW_STALE, ASYNC, "received, without invalidating")             \
    X(ASYNC_KEPT, ASYNC, "done and received are not drained")                  \
    X(ASYNC_NUDGE_KEPT, ASYNC, "that a view has changed is not drained")       \
    X(ASYNC_SECOND_STALE, ASYNC, "the second look, without invalidating")      \
    X(ASYNC_LOST_COPY, ASYNC, "as printed: no copy of what goes on at once")   \
    X(ASYNC_MASKED, ASYNC, "no interrupts while children are waited for")      \
    X(ASYNC_NO_WINDOW, ASYNC, "as printed: any number of chunks on their way") \
    X(ASYNC_NO_NUDGE, ASYNC, "a source is not told that a view has changed")   \
    X(ASYNC_USE_WRAPS, ASYNC, "the use of a buffer may be 0")                  \
    X(ASYNC_HASTY, ASYNC, "done, for a head that was bad at the first look")   \
    X(ASYNC_HASTY_CLAIM, ASYNC, "a place is claimed before the second look")   \
    X(ASYNC_PASS_UNSEEN, ASYNC, "what is passed on is not looked at again")    \
    X(ASYNC_LEAF, ASYNC, "a leaf does not note the version")                   \
    X(ASYNC_ANY_POSITION, ASYNC, "a position of long ago counts")              \
    X(ASYNC_NOTED_STAYS, ASYNC, "changes are counted through incarnations")    \
    X(ASYNC_JUMP_OPEN, ASYNC, "a jump to the floor leaves a message open")     \
    X(ASYNC_ONE_VERSION, ASYNC, "what is sent again has the same version")     \
    X(ASYNC_USE_STAYS, ASYNC, "the head of a buffer stays while it changes")   \
    X(ASYNC_NO_SECOND_LOOK, LIVES, "a chunk counts whichever incarnation's")

enum qn_mpb_mutant {
    QN_MPB_MUTANT_NONE,
#define X(name, by, text) QN_MPB_MUTANT_##name,
    QN_MPB_MUTANT_MAP(X)
#undef X
        QN_MPB_MUTANT_COUNT
};

#ifdef QN_MUTANTS
extern enum qn_mpb_mutant qn_mpb_mutant;
#define QN_MPB_MUTANT(name) (qn_mpb_mutant == QN_MPB_MUTANT_##name)
#else
#define QN_MPB_MUTANT(name) ((void)QN_MPB_MUTANT_##name, false)
#endif

#endif
