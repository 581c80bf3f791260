/* Pictures of large collectives: which panels and curves there are. */
#include "loadgen/large/large_plot.h"

#include <string.h>

#include "tests/support/test.h"

Test(large_plot, each_operation_of_a_group_has_a_panel_with_memcpy)
{
    struct qn_large_plot p = {.panel = NULL};
    for (uint64_t bytes = 1024; bytes <= 2048; bytes *= 2) {
        const double ns = (double)bytes;
        qn_large_plot_add(&p, "2 threads", "memcpy", bytes, ns);
        qn_large_plot_add(&p, "2 threads", "broadcast/pull/flat", bytes,
                          2 * ns);
        qn_large_plot_add(&p, "2 threads", "broadcast/push/flat", bytes,
                          4 * ns);
        qn_large_plot_add(&p, "2 threads", "reduce/pull/flat", bytes, 5 * ns);
    }
    qn_large_plot_add(&p, "4 threads", "reduce/pull/flat", 64, 5);
    cr_assert_eq(p.count, 3);
    cr_expect_str_eq(p.title[0], "broadcast, 2 threads");
    cr_expect_str_eq(p.title[1], "reduce, 2 threads");
    cr_expect_str_eq(p.title[2], "reduce, 4 threads");
    const struct qn_panel *panel = &p.panel[0];
    static const char *const names[] = {"memcpy", "pull/flat", "push/flat"};
    static const double mb_s[] = {1000, 500, 250};
    cr_assert_eq(panel->curves, 3);
    for (uint32_t i = 0; i < 3; i++) {
        cr_expect_str_eq(panel->curve[i].name, names[i]);
        cr_assert_eq(panel->curve[i].points, 2);
        cr_assert_float_eq(panel->curve[i].y[1], mb_s[i], 1e-6);
    }
    qn_large_plot_free(&p);
    cr_expect_eq(p.count, 0);
}
