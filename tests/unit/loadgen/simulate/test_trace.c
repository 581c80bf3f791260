/*
 * A timeline has a bound in events.
 */
#include "loadgen/simulate/timeline/trace.h"
#include "tests/support/test.h"

Test(sim_trace, events_beyond_the_bound_are_counted_and_left_out)
{
    struct qn_trace t;
    qn_trace_init(&t);
    qn_trace_begin(&t, 0, QN_PS_NEVER);
    for (size_t i = 0; i < QN_TRACE_MAX + 3; i++) {
        qn_trace_add(&t, &(struct qn_timed_event){.kind = QN_TIMED_WORK,
                                                  .node = (uint32_t)(i % 7),
                                                  .from = i,
                                                  .until = i + 1});
    }
    cr_assert_eq(t.count, QN_TRACE_MAX);
    cr_assert_eq(t.room, QN_TRACE_MAX, "it takes no more memory than that");
    cr_assert_eq(t.left_out, 3);
    cr_assert_eq(t.event[QN_TRACE_MAX - 1].from, QN_TRACE_MAX - 1);
    cr_assert_leq(QN_TRACE_MAX * sizeof t.event[0], (size_t)64 << 20);
    qn_trace_begin(&t, 0, QN_PS_NEVER);
    qn_trace_add(&t,
                 &(struct qn_timed_event){.kind = QN_TIMED_WORK, .until = 1});
    cr_assert_eq(t.count, 1, "there is room again");
    cr_assert_eq(t.left_out, 0);
    qn_trace_fini(&t);
}
