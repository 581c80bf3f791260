/* Charts of curves: what is drawn, and what is left out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/plot/panel.h"
#include "loadgen/plot/plot.h"
#include "tests/support/test.h"

static struct qn_panel panel[2];
static char *picture;

static void draw(bool same_axes, uint32_t panels)
{
    size_t bytes;
    FILE *to = open_memstream(&picture, &bytes);
    const struct qn_panels s = {.title = "all",
                                .description = "of them",
                                .panel = panel,
                                .count = panels,
                                .columns = 2,
                                .names = 100,
                                .height = 300,
                                .same_axes = same_axes};
    cr_assert_not_null(to);
    qn_panels_draw(&s, to);
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

static struct qn_panel linear(double x_most, double y_most)
{
    return (struct qn_panel){
        .title = "A",
        .x = {.name = "b", .label = qn_label_count, .most = x_most},
        .y = {.name = "c", .label = qn_label_count, .most = y_most}};
}

static struct qn_panel logarithmic(void)
{
    return (struct qn_panel){
        .title = "A",
        .x = {.label = qn_label_count, .log = true, .at_points = true},
        .y = {.label = qn_label_time, .log = true}};
}

Test(panel, each_curve_is_named_and_dots_have_its_color)
{
    panel[0] = linear(10, 0);
    struct qn_panel_curve *c = qn_panel_curve(&panel[0], "first");
    qn_panel_point(c, 1, 5);
    qn_panel_point(c, 9, 8);
    c = qn_panel_curve(&panel[0], "second");
    qn_panel_point(c, 1, 6);
    qn_panel_point(c, 5, 6);
    c = qn_panel_dots(&panel[0]);
    qn_panel_point(c, 2, 6);
    qn_panel_point(c, 4, 7);
    c = qn_panel_curve(&panel[0], "third");
    qn_panel_point(c, 8, 4);
    qn_panel_point(c, 10, 3);
    draw(false, 1);
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
Test(panel, points_outside_are_left_out)
{
    panel[0] = linear(100, 50);
    (void)qn_panel_curve(&panel[0], "none");
    struct qn_panel_curve *c = qn_panel_dots(&panel[0]);
    qn_panel_point(c, 1, 50);
    qn_panel_point(c, 2, 51);
    qn_panel_point(c, 101, 1);
    draw(false, 1);
    cr_assert_eq(count("<circle"), 1);
    free(picture);
}

Test(panel, points_come_in_any_order_and_begin_their_curve)
{
    panel[0] = logarithmic();
    qn_panel_add(&panel[0], "a", 16, 400);
    qn_panel_add(&panel[0], "b", 2, 30);
    qn_panel_add(&panel[0], "a", 2, 100);
    qn_panel_add(&panel[0], "a", 4, 200);
    qn_panel_add(&panel[0], "c", 4, 0); /* nothing was measured */
    cr_assert_eq(panel[0].curves, 2);
    cr_assert_eq(panel[0].curve[0].points, 3);
    for (uint32_t i = 0; i < 3; i++) {
        static const double x[] = {2, 4, 16}, y[] = {100, 200, 400};
        cr_expect_eq(panel[0].curve[0].x[i], x[i]);
        cr_expect_eq(panel[0].curve[0].y[i], y[i]);
    }
    draw(false, 1);
    cr_expect_eq(count("<circle"), 1); /* of b */
    cr_expect_eq(count(">16<"), 1);    /* a tick at each point, once */
    cr_expect_eq(count(">2<"), 1);
    cr_expect_eq(count(">8<"), 0);
    free(picture);
}

Test(panel, what_has_no_room_is_left_out)
{
    static char name[QN_PANEL_CURVES_MAX + 1][8];
    panel[0] = logarithmic();
    for (uint32_t i = 0; i <= QN_PANEL_CURVES_MAX; i++) {
        (void)snprintf(name[i], sizeof name[i], "n%u", i);
        for (uint32_t x = 0; x <= QN_PANEL_POINTS_MAX; x++) {
            qn_panel_add(&panel[0], name[i], x + 1, 7);
        }
    }
    cr_expect_eq(panel[0].curves, QN_PANEL_CURVES_MAX);
    cr_expect_eq(panel[0].curve[0].points, QN_PANEL_POINTS_MAX);
    draw(false, 1);
    free(picture);
}

/* The height of the first point of a path: "M80.0 123.4". */
static double height_of(const char *class)
{
    double x, y = 0;
    const char *at = strstr(picture, class);
    cr_assert_not_null(at);
    at = strstr(at, "M");
    cr_assert_not_null(at);
    cr_assert_eq(sscanf(at, "M%lf %lf", &x, &y), 2, "%.40s", at);
    return y;
}

Test(panel, panels_with_the_same_axes_compare)
{
    double y[2];
    for (int same = 0; same <= 1; same++) {
        panel[0] = logarithmic();
        panel[1] = logarithmic();
        qn_panel_add(&panel[0], "high", 2, 5000);
        qn_panel_add(&panel[0], "high", 4, 5000);
        qn_panel_add(&panel[1], "low", 2, 10);
        draw(same, 2);
        y[same] = height_of("line c0");
        free(picture);
    }
    cr_expect_lt(y[1], y[0] - 50, "%f, %f", y[0], y[1]);
}

Test(panel, without_a_point_there_are_axes)
{
    panel[0] = logarithmic();
    panel[1] = linear(0, 0);
    draw(false, 2);
    cr_expect_gt(count("class=\"grid\""), 2);
    free(picture);
}
