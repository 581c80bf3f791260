/* Charts of curves: what is drawn, and what is left out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/simulate/scc/scc_panel.h"
#include "tests/support/test.h"

static struct qn_scc_panel panel;
static char *picture;

static void draw(void)
{
    size_t bytes;
    FILE *to = open_memstream(&picture, &bytes);
    cr_assert_not_null(to);
    qn_scc_panel_draw(&panel, 100, 10, to);
    cr_assert_eq(fclose(to), 0);
    cr_assert_null(strstr(picture, "nan"));
    cr_assert_null(strstr(picture, "inf"));
}

static uint32_t count(const char *what)
{
    uint32_t n = 0;
    for (const char *at = picture; (at = strstr(at, what)) != NULL; at++) {
        n++;
    }
    return n;
}

Test(scc_panel, each_curve_is_named_and_dots_have_its_color)
{
    panel = (struct qn_scc_panel){
        .title = "A", .x_name = "b", .y_name = "c", .x_most = 10};
    struct qn_scc_curve *c = qn_scc_panel_curve(&panel, "first");
    qn_scc_curve_point(c, 1, 5);
    qn_scc_curve_point(c, 9, 8);
    c = qn_scc_panel_curve(&panel, "second");
    qn_scc_curve_point(c, 1, 6);
    c = qn_scc_panel_dots(&panel);
    qn_scc_curve_point(c, 2, 6);
    qn_scc_curve_point(c, 4, 7);
    c = qn_scc_panel_curve(&panel, "third");
    qn_scc_curve_point(c, 10, 3);
    draw();
    cr_assert_eq(count(">first<"), 1);
    cr_assert_eq(count(">second<"), 1);
    cr_assert_eq(count(">third<"), 1);
    cr_assert_eq(count("<circle class=\"c1\""), 2);
    cr_assert_eq(count("<circle"), 2);
    for (uint32_t i = 0; i < 3; i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "class=\"line c%u\"", i);
        cr_assert_eq(count(path), 1, "%s", path);
    }
    free(picture);
}

/* Above the end that was asked for, and right of it. */
Test(scc_panel, points_outside_are_left_out)
{
    panel = (struct qn_scc_panel){.title = "A",
                                  .x_name = "b",
                                  .y_name = "c",
                                  .log_x = true,
                                  .x_most = 100,
                                  .y_most = 50};
    (void)qn_scc_panel_curve(&panel, "none");
    struct qn_scc_curve *c = qn_scc_panel_dots(&panel);
    qn_scc_curve_point(c, 1, 50);
    qn_scc_curve_point(c, 2, 51);
    qn_scc_curve_point(c, 101, 1);
    draw();
    cr_assert_eq(count("<circle"), 1);
    free(picture);
}
