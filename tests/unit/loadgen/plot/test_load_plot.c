#include "loadgen/plot/plot.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (1 + fabs(b));
}

/* ---- scales ---- */

Test(plot, a_linear_scale_is_a_line_and_ends_at_its_edges)
{
    struct qn_scale s = {false, 0, 10, 300, 100};
    cr_assert(near(qn_scale_at(&s, 0), 300));
    cr_assert(near(qn_scale_at(&s, 2.5), 250));
    cr_assert(near(qn_scale_at(&s, 10), 100));
    cr_assert(near(qn_scale_at(&s, -5), 300));
    cr_assert(near(qn_scale_at(&s, 11), 100));
}

Test(plot, a_logarithmic_scale_gives_each_decade_the_same_width)
{
    struct qn_scale s = {true, 1, 1000, 0, 300};
    cr_assert(near(qn_scale_at(&s, 1), 0));
    cr_assert(near(qn_scale_at(&s, 10), 100));
    cr_assert(near(qn_scale_at(&s, 100), 200));
    cr_assert(near(qn_scale_at(&s, 0), 0));
    cr_assert(near(qn_scale_at(&s, 1e9), 300));
}

/* ---- ticks ---- */

static void expect_ticks(const struct qn_ticks *t, const double *want,
                         uint32_t count)
{
    cr_assert_eq(t->count, count, "%u ticks, not %u", t->count, count);
    for (uint32_t i = 0; i < count; i++) {
        cr_assert(near(t->at[i], want[i]), "tick %u is %g, not %g", i, t->at[i],
                  want[i]);
    }
}

#define EXPECT_TICKS(t, ...)                                                   \
    expect_ticks(&(t), (const double[]){__VA_ARGS__},                          \
                 sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

Test(plot, linear_ticks_are_round_and_include_both_ends)
{
    struct qn_ticks t;
    qn_ticks_linear(&t, 0, 10, 6);
    EXPECT_TICKS(t, 0, 2, 4, 6, 8, 10);
    qn_ticks_linear(&t, 0, 0.3, 4);
    EXPECT_TICKS(t, 0, 0.1, 0.2, 0.3);
    qn_ticks_linear(&t, 37, 63, 3);
    EXPECT_TICKS(t, 40, 50, 60);
    qn_ticks_linear(&t, 0, 150000, 6);
    EXPECT_TICKS(t, 0, 50000, 100000, 150000);
    cr_assert(!signbit(t.at[0]), "not -0");
}

/* Any range: at least two ticks, at most as many as wanted, inside the range,
 * in equal steps of 1, 2 or 5 times a power of ten. */
Test(plot, linear_ticks_have_their_properties_for_any_range)
{
    for (double hi = 1e-6; hi < 1e12; hi *= 1.37) {
        for (uint32_t most = 2; most <= QN_TICKS_MAX; most++) {
            struct qn_ticks t;
            qn_ticks_linear(&t, 0, hi, most);
            cr_assert(t.count >= 2 || most < 4, "%g, %u", hi, most);
            cr_assert(t.count >= 1 && t.count <= most, "%g, %u", hi, most);
            cr_assert(t.at[t.count - 1] <= hi * (1 + 1e-6));
            for (uint32_t i = 1; i < t.count; i++) {
                double step = t.at[i] - t.at[i - 1];
                double digit = step / pow(10, floor(log10(step * 1.0001)));
                cr_assert(fabs(digit - 1) < 1e-6 || fabs(digit - 2) < 1e-6 ||
                              fabs(digit - 5) < 1e-6,
                          "step %g", step);
            }
        }
    }
}

Test(plot, logarithmic_ticks_thin_out_as_decades_grow)
{
    struct qn_ticks t;
    qn_ticks_log(&t, 10, 100, 14);
    EXPECT_TICKS(t, 10, 20, 50, 100);
    qn_ticks_log(&t, 20, 5000, 14);
    EXPECT_TICKS(t, 20, 50, 100, 200, 500, 1000, 2000, 5000);
    qn_ticks_log(&t, 20, 5000, 4);
    EXPECT_TICKS(t, 100, 1000);
    qn_ticks_log(&t, 1, 1e9, 5);
    EXPECT_TICKS(t, 1, 100, 1e4, 1e6, 1e8);
    qn_ticks_log(&t, 0.05, 2, 14);
    EXPECT_TICKS(t, 0.05, 0.1, 0.2, 0.5, 1, 2);
}

Test(plot, axes_end_at_round_numbers)
{
    cr_assert(near(qn_axis_end(0), 1));
    cr_assert(near(qn_axis_end(147000), 150000));
    cr_assert(near(qn_axis_end(150000), 150000), "no wider than needed");
    cr_assert(near(qn_axis_end(3), 3));
    cr_assert(near(qn_axis_end(0.07), 0.08));
    double lo = 49;
    double hi = 18400;
    qn_axis_log(&lo, &hi);
    cr_assert(near(lo, 20));
    cr_assert(near(hi, 20000));
    lo = hi = 100; /* a single value has an axis, too */
    qn_axis_log(&lo, &hi);
    cr_assert(near(lo, 100));
    cr_assert(near(hi, 200));
}

/* ---- labels ---- */

static void expect_count(double value, const char *want)
{
    char text[QN_LABEL_MAX];
    qn_label_count(text, value);
    cr_assert_str_eq(text, want, "%g: '%s', not '%s'", value, text, want);
}

static void expect_time(double ns, const char *want)
{
    char text[QN_LABEL_MAX];
    qn_label_time(text, ns);
    cr_assert_str_eq(text, want, "%g: '%s', not '%s'", ns, text, want);
}

Test(plot, labels_have_three_digits_and_a_unit)
{
    expect_count(0, "0");
    expect_count(0.5, "0.5");
    expect_count(20, "20");
    expect_count(100, "100");
    expect_count(1000, "1k");
    expect_count(1500, "1.5k");
    expect_count(98804, "98.8k");
    expect_count(999600, "1M");
    expect_count(9.996, "10");
    expect_count(3e13, "30000G");
    expect_time(1, "1 ns");
    expect_time(20000, "20 \302\265s");
    expect_time(1498000, "1.5 ms");
    expect_time(2e9, "2 s");
}

Test(plot, labels_that_collide_move_apart_and_keep_their_order)
{
    double y[] = {100, 102, 300, 101};
    qn_labels_spread(y, 4, 14, 0, 400);
    cr_assert(y[3] - y[0] >= 14 - 1e-6, "%g %g", y[0], y[3]);
    cr_assert(y[1] - y[3] >= 14 - 1e-6, "%g %g", y[3], y[1]);
    cr_assert(near(y[2], 300), "%g is alone and stays", y[2]);
    double end[] = {398, 399, 400};
    qn_labels_spread(end, 3, 14, 0, 400);
    cr_assert(near(end[2], 400) && end[0] <= 372 + 1e-6, "inside");
}

/* ---- SVG ---- */

static char *text;
static size_t size;
static FILE *out;

static void begin(void)
{
    text = NULL;
    out = open_memstream(&text, &size);
}

static void expect_text(const char *want)
{
    fclose(out);
    cr_assert_str_eq(text, want, "got: %s", text);
    free(text);
}

Test(plot, color_ramp_has_equal_steps_and_keeps_to_its_edges)
{
    cr_assert_eq(qn_color_ramp_step(0), 0);
    cr_assert_eq(qn_color_ramp_step(0.5), QN_COLOR_RAMP_STEPS / 2);
    cr_assert_eq(qn_color_ramp_step(1), QN_COLOR_RAMP_STEPS - 1);
    cr_assert_eq(qn_color_ramp_step(-3), 0);
    cr_assert_eq(qn_color_ramp_step(7), QN_COLOR_RAMP_STEPS - 1);
    cr_assert_eq(qn_color_ramp_step(NAN), 0);
}

Test(svg, text_is_escaped_and_always_utf8)
{
    begin();
    qn_svg_text(out, "tick", 1, 2.25,
                "a<b> & \"c\" \302\265\t\377 \355\240\200");
    expect_text("<text class=\"tick\" x=\"1.0\" y=\"2.2\">a&lt;b&gt; &amp; "
                "\"c\" \302\265?? ??\?</text>\n");
}

Test(svg, a_cut_text_does_not_end_inside_a_character)
{
    char many[400] = {0};
    for (int i = 0; i < 198; i++) {
        memcpy(many + 2 * i, "\302\265", 2);
    }
    begin();
    qn_svg_printf(out, "note", 0, 0, "x%s", many);
    fclose(out);
    cr_assert_null(strchr(text, '?'));
    cr_assert(strlen(text) < 380);
    free(text);
}

Test(svg, a_path_lifts_the_pen_at_gaps)
{
    struct qn_svg_path p;
    begin();
    qn_svg_path_begin(&p, out, "line");
    qn_svg_path_point(&p, 0, 5);
    qn_svg_path_point(&p, 10, 5);
    qn_svg_path_gap(&p);
    qn_svg_path_gap(&p);
    qn_svg_path_point(&p, 20, 6);
    qn_svg_path_end(&p);
    expect_text("<path class=\"line\" d=\"M0.0 5.0L10.0 5.0M20.0 6.0h.5\"/>\n");
}

/* Of a million points in 100 pixels few are kept, including the peaks. */
Test(svg, a_path_is_as_small_as_its_picture)
{
    struct qn_svg_path p;
    begin();
    qn_svg_path_begin(&p, out, "line");
    for (int i = 0; i < 1000000; i++) {
        double y = i == 123456 ? 7 : i == 123457 ? 93 : 50 + i % 3;
        qn_svg_path_point(&p, i / 1e4, y);
    }
    qn_svg_path_end(&p);
    fclose(out);
    cr_assert(size < 200 * 4 * 12, "%zu bytes", size);
    cr_assert_not_null(strstr(text, " 7.0"));
    cr_assert_not_null(strstr(text, " 93.0"));
    free(text);
}
