#include "core/base/bits.h"
#include "loadgen/report/load_plot_internal.h"

/*
 * Throughput and latency over time, as steps: a value of a second applies to
 * the whole second. Events are drawn behind the lines.
 */

static void draw_time_axis(const struct qn_load_plot *f, double top, double end,
                           bool named)
{
    struct qn_ticks t;
    qn_ticks_linear(&t, 0, f->time.hi, 10);
    for (uint32_t i = 0; i < t.count; i++) {
        double x = qn_scale_at(&f->time, t.at[i]);
        qn_svg_line(f->to, "grid", x, top, x, end);
        qn_svg_printf(f->to, "tick mid", x, end + 16, "%g", t.at[i]);
    }
    qn_svg_line(f->to, "axis", QN_LOAD_PLOT_TIME_LEFT, end,
                QN_LOAD_PLOT_TIME_RIGHT, end);
    if (named) {
        qn_svg_printf(f->to, "note mid",
                      (QN_LOAD_PLOT_TIME_LEFT + QN_LOAD_PLOT_TIME_RIGHT) / 2,
                      end + 36, "time (%s)", f->unit_name);
    }
}

static void draw_rate_axis(const struct qn_load_plot *f)
{
    struct qn_ticks t;
    qn_ticks_linear(&t, 0, f->rate.hi, 6);
    for (uint32_t i = 0; i < t.count; i++) {
        char label[QN_LABEL_MAX];
        qn_label_count(label, t.at[i]);
        double y = qn_scale_at(&f->rate, t.at[i]);
        qn_svg_line(f->to, "grid", QN_LOAD_PLOT_TIME_LEFT, y,
                    QN_LOAD_PLOT_TIME_RIGHT, y);
        qn_svg_text(f->to, "tick end", QN_LOAD_PLOT_TIME_LEFT - 8, y + 4,
                    label);
    }
}

/* Behind the lines: seconds with errors, and the ends of runs. */
static void draw_events(const struct qn_load_plot *f, double top, double end)
{
    double offset = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        const struct qn_load_plot_second *s = &f->second[i];
        double before = offset;
        double at = qn_load_plot_end_of(f, i, &offset);
        double x = qn_scale_at(&f->time, (at - s->seconds) / f->unit);
        double x2 = qn_scale_at(&f->time, at / f->unit);
        if (s->trouble > 0) {
            qn_svg_rect(f->to, "alarm", x, top, QN_MAX(x2 - x, 1.0), end - top);
        }
        if (offset > before) {
            x = qn_scale_at(&f->time, offset / f->unit);
            qn_svg_line(f->to, "axis dash", x, top, x, end);
        }
    }
}

typedef double value_fn(const struct qn_load_plot_second *s);

static double rate_of(const struct qn_load_plot_second *s)
{
    return qn_report_rate(s->ops, s->seconds);
}

static double intended_of(const struct qn_load_plot_second *s)
{
    return s->intended;
}

static double p50_of(const struct qn_load_plot_second *s)
{
    return (double)s->p50_ns;
}

static double p99_of(const struct qn_load_plot_second *s)
{
    return (double)s->p99_ns;
}

static double max_of(const struct qn_load_plot_second *s)
{
    return (double)s->max_ns;
}

/* Steps of a value per second; on a logarithmic axis 0 is a gap. */
static void draw_steps(const struct qn_load_plot *f, const struct qn_scale *y,
                       value_fn *value, const char *classes)
{
    struct qn_svg_path p;
    qn_svg_path_begin(&p, f->to, classes);
    double offset = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        const struct qn_load_plot_second *s = &f->second[i];
        double at = qn_load_plot_end_of(f, i, &offset);
        double v = value(s);
        if (v <= 0 && y->log) {
            qn_svg_path_gap(&p);
            continue;
        }
        double level = qn_scale_at(y, v);
        qn_svg_path_point(
            &p, qn_scale_at(&f->time, (at - s->seconds) / f->unit), level);
        qn_svg_path_point(&p, qn_scale_at(&f->time, at / f->unit), level);
    }
    qn_svg_path_end(&p);
}

static void draw_rate_area(const struct qn_load_plot *f)
{
    struct qn_svg_path p;
    qn_svg_path_begin(&p, f->to, "fill");
    qn_svg_path_point(&p, QN_LOAD_PLOT_TIME_LEFT, QN_LOAD_PLOT_RATE_END);
    double offset = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        const struct qn_load_plot_second *s = &f->second[i];
        double at = qn_load_plot_end_of(f, i, &offset);
        double level = qn_scale_at(&f->rate, rate_of(s));
        qn_svg_path_point(
            &p, qn_scale_at(&f->time, (at - s->seconds) / f->unit), level);
        qn_svg_path_point(&p, qn_scale_at(&f->time, at / f->unit), level);
    }
    qn_svg_path_point(&p, qn_scale_at(&f->time, f->last_at / f->unit),
                      QN_LOAD_PLOT_RATE_END);
    qn_svg_path_end(&p);
}

void qn_load_plot_throughput(const struct qn_load_plot *f)
{
    qn_svg_text(f->to, "head", QN_LOAD_PLOT_TIME_LEFT,
                QN_LOAD_PLOT_RATE_TOP - 14,
                "Throughput (correct replies per second)");
    draw_events(f, QN_LOAD_PLOT_RATE_TOP, QN_LOAD_PLOT_RATE_END);
    draw_rate_axis(f);
    draw_rate_area(f);
    draw_time_axis(f, QN_LOAD_PLOT_RATE_TOP, QN_LOAD_PLOT_RATE_END, false);
    draw_steps(f, &f->rate, rate_of, "line c0");
    double mean = qn_report_rate(f->sum->ops, f->r->seconds);
    char number[QN_LABEL_MAX];
    qn_label_count(number, mean);
    char text[QN_LABEL_MAX + 8];
    snprintf(text, sizeof text, "mean %s", number);
    struct qn_load_plot_name name[2] = {{text, "c0 strong"},
                                        {"intended", "ink"}};
    double y[2] = {qn_scale_at(&f->rate, mean), 0};
    if (qn_load_plot_is_open(f)) {
        draw_steps(f, &f->rate, intended_of, "thin ink dash");
        y[1] = qn_scale_at(&f->rate, f->second[f->count - 1].intended);
    }
    qn_load_plot_names(f, name, y, qn_load_plot_is_open(f) ? 2 : 1,
                       QN_LOAD_PLOT_TIME_RIGHT + 8, QN_LOAD_PLOT_RATE_TOP,
                       QN_LOAD_PLOT_RATE_END);
}

void qn_load_plot_latency(const struct qn_load_plot *f)
{
    static const struct {
        struct qn_load_plot_name name;
        value_fn *value;
        const char *line;
    } line[] = {{{"max", "ink"}, max_of, "thin ink"},
                {{"p99", "ink"}, p99_of, "line ink"},
                {{"p50", "ink strong"}, p50_of, "bold ink"}};
    enum { LINES = QN_ARRAY_COUNT(line) };
    qn_svg_text(f->to, "head", QN_LOAD_PLOT_TIME_LEFT,
                QN_LOAD_PLOT_LAT_TOP - 14,
                qn_load_plot_is_open(f) ? "Response time over time (log scale)"
                                        : "Latency over time (log scale)");
    draw_events(f, QN_LOAD_PLOT_LAT_TOP, QN_LOAD_PLOT_LAT_END);
    qn_load_plot_latency_axis(f, QN_LOAD_PLOT_TIME_LEFT,
                              QN_LOAD_PLOT_TIME_RIGHT);
    draw_time_axis(f, QN_LOAD_PLOT_LAT_TOP, QN_LOAD_PLOT_LAT_END, true);
    struct qn_load_plot_name name[LINES];
    double y[LINES];
    uint32_t last = f->count;
    while (last > 0 && f->second[last - 1].ops == 0) {
        last--;
    }
    for (size_t i = 0; i < LINES; i++) {
        draw_steps(f, &f->latency, line[i].value, line[i].line);
        name[i] = line[i].name;
        y[i] = last > 0 ? qn_scale_at(&f->latency,
                                      line[i].value(&f->second[last - 1]))
                        : 0;
    }
    qn_load_plot_names(f, name, y, last > 0 ? LINES : 0,
                       QN_LOAD_PLOT_TIME_RIGHT + 8, QN_LOAD_PLOT_LAT_TOP,
                       QN_LOAD_PLOT_LAT_END);
}
