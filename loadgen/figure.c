#include "loadgen/figure.h"

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/plot.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * Decisions of the picture:
 *
 * - Latency has one logarithmic axis for both lower panels, so that the stall
 *   on the left is found at the same height in the tail on the right.
 * - Seconds are drawn as steps: a rate is that of its whole second. A second
 *   without an answer is a gap in the latencies and 0 in the throughput, whose
 *   axis begins at 0.
 * - The percentile axis is 1/(1-p), logarithmic, so each nine has the same
 *   width. A percentile that less than one request stands for does not exist:
 *   the curve ends at 1 - 1/n, at the largest value.
 * - Lines are named at their ends. Trouble is an area behind the lines, so that
 *   it is seen without colours, too.
 * - All kinds together are drawn boldly in ink, single kinds thinner in
 * colours.
 */

/* Pixels. */
#define WIDTH       1100.0
#define HEIGHT      640.0
#define TIME_LEFT   66.0 /* both panels over time */
#define TIME_RIGHT  586.0
#define TAIL_LEFT   714.0 /* the percentiles */
#define TAIL_RIGHT  1034.0
#define TABLE_RIGHT 1090.0
#define RATE_TOP    122.0
#define RATE_END    292.0
#define LAT_TOP     352.0 /* both lower panels */
#define LAT_END     588.0
#define LABEL_GAP   14.0

struct figure {
    FILE *to;
    const struct qn_report *r;
    const struct qn_figure_second *second;
    uint32_t count;
    const struct qn_op_stats *sum; /* all kinds */
    double last_at;                /* s; where the time ends */
    double unit;                   /* s per unit of the time axis */
    const char *unit_name;
    struct qn_scale time;
    struct qn_scale rate;
    struct qn_scale latency;
    struct qn_scale tail; /* 1/(1-p) */
};

struct qn_figure_second qn_figure_second(const struct qn_report_second *s)
{
    return (struct qn_figure_second){
        .run = s->run,
        .at = s->at,
        .seconds = s->seconds,
        .intended = s->intended,
        .ops = s->all.ops,
        .trouble =
            s->all.errors + s->all.wrong + s->unanswered + s->disconnects,
        .p50_ns = s->all.ns[QN_QUANTILE_P50],
        .p99_ns = s->all.ns[QN_QUANTILE_P99],
        .max_ns = s->all.ns[QN_QUANTILE_MAX],
    };
}

/* ---- scales ---- */

/* Repetitions follow one another on the axis: `*offset` moves on by a run's
 * length. @return where second i ends. */
static double end_of(const struct figure *f, uint32_t i, double *offset)
{
    if (i > 0 && f->second[i].run != f->second[i - 1].run) {
        *offset += f->second[i - 1].at;
    }
    return *offset + f->second[i].at;
}

static void scale_time(struct figure *f)
{
    double offset = 0;
    double end = 0;
    double rate = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        const struct qn_figure_second *s = &f->second[i];
        end = end_of(f, i, &offset);
        rate = QN_MAX(rate, qn_report_rate(s->ops, s->seconds));
        rate = QN_MAX(rate, s->intended);
    }
    f->last_at = end > 0 ? end : 1;
    f->unit = f->last_at <= 300 ? 1 : f->last_at <= 3 * 3600 ? 60 : 3600;
    f->unit_name = f->unit == 1 ? "s" : f->unit == 60 ? "min" : "h";
    f->time = (struct qn_scale){false, 0, f->last_at / f->unit, TIME_LEFT,
                                TIME_RIGHT};
    f->rate =
        (struct qn_scale){false, 0, qn_axis_end(rate), RATE_END, RATE_TOP};
}

static void scale_latency(struct figure *f)
{
    const struct qn_histogram *h = &f->sum->latency;
    double least = h->count > 0 ? (double)qn_histogram_quantile(h, 1e-9) : 1e3;
    double most = h->count > 0 ? (double)h->max : 1e6;
    if (f->sum->service.count > 0) {
        uint64_t ns = qn_histogram_quantile(&f->sum->service, 1e-9);
        least = QN_MIN(least, (double)ns);
    }
    least = QN_MAX(least, 1);
    most = QN_MAX(most, least);
    qn_axis_log(&least, &most);
    f->latency = (struct qn_scale){true, least, most, LAT_END, LAT_TOP};
    double nines = QN_MAX((double)h->count, 100);
    f->tail = (struct qn_scale){true, 1, nines, TAIL_LEFT, TAIL_RIGHT};
}

/* ---- axes ---- */

static void draw_time_axis(const struct figure *f, double top, double end,
                           bool named)
{
    struct qn_ticks t;
    qn_ticks_linear(&t, 0, f->time.hi, 10);
    for (uint32_t i = 0; i < t.count; i++) {
        double x = qn_scale_at(&f->time, t.at[i]);
        qn_svg_line(f->to, "grid", x, top, x, end);
        qn_svg_printf(f->to, "tick mid", x, end + 16, "%g", t.at[i]);
    }
    qn_svg_line(f->to, "axis", TIME_LEFT, end, TIME_RIGHT, end);
    if (named) {
        qn_svg_printf(f->to, "note mid", (TIME_LEFT + TIME_RIGHT) / 2, end + 36,
                      "time (%s)", f->unit_name);
    }
}

static void draw_rate_axis(const struct figure *f)
{
    struct qn_ticks t;
    qn_ticks_linear(&t, 0, f->rate.hi, 6);
    for (uint32_t i = 0; i < t.count; i++) {
        char label[QN_LABEL_MAX];
        qn_label_count(label, t.at[i]);
        double y = qn_scale_at(&f->rate, t.at[i]);
        qn_svg_line(f->to, "grid", TIME_LEFT, y, TIME_RIGHT, y);
        qn_svg_text(f->to, "tick end", TIME_LEFT - 8, y + 4, label);
    }
}

static void draw_latency_axis(const struct figure *f, double left, double right)
{
    struct qn_ticks t;
    qn_ticks_log(&t, f->latency.lo, f->latency.hi, 14);
    for (uint32_t i = 0; i < t.count; i++) {
        char label[QN_LABEL_MAX];
        qn_label_time(label, t.at[i]);
        double y = qn_scale_at(&f->latency, t.at[i]);
        qn_svg_line(f->to, "grid", left, y, right, y);
        qn_svg_text(f->to, "tick end", left - 8, y + 4, label);
    }
}

/* 0, 50, 90, 99, 99.9 ... as far as there are requests. */
static void draw_tail_axis(const struct figure *f)
{
    static const struct {
        double at;
        const char *label;
    } tick[] = {{1, "0"},          {2, "50"},        {10, "90"},
                {100, "99"},       {1e3, "99.9"},    {1e4, "99.99"},
                {1e5, "99.999"},   {1e6, "99.9999"}, {1e7, "99.99999"},
                {1e8, "99.999999"}};
    double taken = 0; /* until here there are labels */
    for (size_t i = 0; i < QN_ARRAY_COUNT(tick); i++) {
        if (tick[i].at > f->tail.hi) {
            break;
        }
        double x = qn_scale_at(&f->tail, tick[i].at);
        qn_svg_line(f->to, "grid", x, LAT_TOP, x, LAT_END);
        double half = 3.2 * (double)strlen(tick[i].label);
        if (x - half > taken) {
            qn_svg_text(f->to, "tick mid", x, LAT_END + 16, tick[i].label);
            taken = x + half + 5;
        }
    }
    qn_svg_line(f->to, "axis", TAIL_LEFT, LAT_END, TAIL_RIGHT, LAT_END);
    qn_svg_text(f->to, "note mid", (TAIL_LEFT + TAIL_RIGHT) / 2, LAT_END + 36,
                "percentile (% of requests that were no slower)");
}

/* ---- over time ---- */

/* Behind the lines: where something went wrong, and where a run ends. */
static void draw_events(const struct figure *f, double top, double end)
{
    double offset = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        const struct qn_figure_second *s = &f->second[i];
        double before = offset;
        double at = end_of(f, i, &offset);
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

typedef double value_fn(const struct qn_figure_second *s);

static double rate_of(const struct qn_figure_second *s)
{
    return qn_report_rate(s->ops, s->seconds);
}

static double intended_of(const struct qn_figure_second *s)
{
    return s->intended;
}

static double p50_of(const struct qn_figure_second *s)
{
    return (double)s->p50_ns;
}

static double p99_of(const struct qn_figure_second *s)
{
    return (double)s->p99_ns;
}

static double max_of(const struct qn_figure_second *s)
{
    return (double)s->max_ns;
}

/* Steps of a value per second; on a logarithmic axis 0 is a gap. */
static void draw_steps(const struct figure *f, const struct qn_scale *y,
                       value_fn *value, const char *classes)
{
    struct qn_svg_path p;
    qn_svg_path_begin(&p, f->to, classes);
    double offset = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        const struct qn_figure_second *s = &f->second[i];
        double at = end_of(f, i, &offset);
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

static void draw_rate_area(const struct figure *f)
{
    struct qn_svg_path p;
    qn_svg_path_begin(&p, f->to, "fill");
    qn_svg_path_point(&p, TIME_LEFT, RATE_END);
    double offset = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        const struct qn_figure_second *s = &f->second[i];
        double at = end_of(f, i, &offset);
        double level = qn_scale_at(&f->rate, rate_of(s));
        qn_svg_path_point(
            &p, qn_scale_at(&f->time, (at - s->seconds) / f->unit), level);
        qn_svg_path_point(&p, qn_scale_at(&f->time, at / f->unit), level);
    }
    qn_svg_path_point(&p, qn_scale_at(&f->time, f->time.hi), RATE_END);
    qn_svg_path_end(&p);
}

struct name {
    const char *text;
    const char *classes;
};

/* Names at the right ends of lines, none upon another. */
static void draw_names(const struct figure *f, const struct name *name,
                       double *y, uint32_t n, double x, double top, double end)
{
    qn_labels_spread(y, n, LABEL_GAP, top, end);
    for (uint32_t i = 0; i < n; i++) {
        qn_svg_text(f->to, name[i].classes, x, y[i] + 4, name[i].text);
    }
}

static bool is_open(const struct figure *f)
{
    return f->count > 0 && f->second[f->count - 1].intended > 0;
}

static void draw_throughput(const struct figure *f)
{
    qn_svg_text(f->to, "head", TIME_LEFT, RATE_TOP - 14,
                "Throughput (right answers per second)");
    draw_events(f, RATE_TOP, RATE_END);
    draw_rate_axis(f);
    draw_rate_area(f);
    draw_time_axis(f, RATE_TOP, RATE_END, false);
    draw_steps(f, &f->rate, rate_of, "line c0");
    double mean = qn_report_rate(f->sum->ops, f->r->seconds);
    char number[QN_LABEL_MAX];
    qn_label_count(number, mean);
    char text[QN_LABEL_MAX + 8];
    snprintf(text, sizeof text, "mean %s", number);
    struct name name[2] = {{text, "c0 strong"}, {"intended", "ink"}};
    double y[2] = {qn_scale_at(&f->rate, mean), 0};
    if (is_open(f)) {
        draw_steps(f, &f->rate, intended_of, "thin ink dash");
        y[1] = qn_scale_at(&f->rate, f->second[f->count - 1].intended);
    }
    draw_names(f, name, y, is_open(f) ? 2 : 1, TIME_RIGHT + 8, RATE_TOP,
               RATE_END);
}

static void draw_latency(const struct figure *f)
{
    static const struct {
        struct name name;
        value_fn *value;
        const char *line;
    } line[] = {{{"max", "ink"}, max_of, "thin ink"},
                {{"p99", "ink"}, p99_of, "line ink"},
                {{"p50", "ink strong"}, p50_of, "bold ink"}};
    enum { LINES = QN_ARRAY_COUNT(line) };
    qn_svg_text(f->to, "head", TIME_LEFT, LAT_TOP - 14,
                is_open(f) ? "Response time over time (log scale)"
                           : "Latency over time (log scale)");
    draw_events(f, LAT_TOP, LAT_END);
    draw_latency_axis(f, TIME_LEFT, TIME_RIGHT);
    draw_time_axis(f, LAT_TOP, LAT_END, true);
    struct name name[LINES];
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
    draw_names(f, name, y, last > 0 ? LINES : 0, TIME_RIGHT + 8, LAT_TOP,
               LAT_END);
}

/* ---- percentiles ---- */

/* The share of values before each bucket and up to it, as a step. */
static void draw_curve(const struct figure *f, const struct qn_histogram *h,
                       const char *classes)
{
    struct qn_svg_path p;
    qn_svg_path_begin(&p, f->to, classes);
    double n = (double)h->count;
    uint64_t seen = 0;
    for (uint32_t i = 0; seen < h->count; i++) {
        if (h->bucket[i] == 0) {
            continue;
        }
        double ns = (double)QN_MIN(qn_histogram_upper(i), h->max);
        double y = qn_scale_at(&f->latency, QN_MAX(ns, 1.0));
        double left = n / (n - (double)seen);
        seen += h->bucket[i];
        double right = seen < h->count ? n / (n - (double)seen) : n;
        qn_svg_path_point(&p, qn_scale_at(&f->tail, left), y);
        qn_svg_path_point(&p, qn_scale_at(&f->tail, right), y);
    }
    qn_svg_path_end(&p);
}

/* Dots with their values on the bold curve. */
static void draw_marks(const struct figure *f, const struct qn_histogram *h)
{
    static const struct {
        double q;
        const char *name;
    } mark[] = {
        {0.5, "p50"}, {0.99, "p99"}, {0.999, "p99.9"}, {0.9999, "p99.99"}};
    for (size_t i = 0; i < QN_ARRAY_COUNT(mark); i++) {
        if ((double)h->count * (1 - mark[i].q) < 1) {
            break;
        }
        char label[QN_LABEL_MAX];
        double ns = (double)qn_histogram_quantile(h, mark[i].q);
        qn_label_time(label, ns);
        double x = qn_scale_at(&f->tail, 1 / (1 - mark[i].q));
        double y = qn_scale_at(&f->latency, QN_MAX(ns, 1.0));
        qn_svg_dot(f->to, "ink", x, y);
        /* The curve rises: above it is room on the left, below on the right;
         * the median has no room on its left. */
        bool below = mark[i].q == 0.5;
        qn_svg_printf(f->to, below ? "ink strong halo" : "ink strong end halo",
                      below ? x + 7 : x - 6, below ? y + 14 : y - 7, "%s %s",
                      mark[i].name, label);
    }
}

static const char *const kind_line[] = {"line c0", "line c1", "line c2",
                                        "line c3", "line c4", "line c5"};
static const char *const kind_text[] = {"c0", "c1", "c2", "c3", "c4", "c5"};
enum { COLOURS = QN_ARRAY_COUNT(kind_text) };

static double last_y(const struct figure *f, const struct qn_histogram *h)
{
    return qn_scale_at(&f->latency, QN_MAX((double)h->max, 1.0));
}

static uint32_t kinds_answered(const struct qn_stats *total)
{
    uint32_t n = 0;
    for (int op = 0; op < QN_OP_COUNT; op++) {
        n += total->op[op].ops > 0;
    }
    return n;
}

static void draw_percentiles(const struct figure *f)
{
    struct name name[QN_OP_COUNT + 2];
    double y[QN_OP_COUNT + 2];
    uint32_t n = 0;
    bool single = kinds_answered(f->r->total) <= 1;
    qn_svg_text(f->to, "head", TAIL_LEFT, LAT_TOP - 14,
                is_open(f) ? "Response time by percentile (log scales)"
                           : "Latency by percentile (log scales)");
    draw_latency_axis(f, TAIL_LEFT, TAIL_RIGHT);
    draw_tail_axis(f);
    if (f->sum->ops == 0) {
        return;
    }
    for (uint32_t op = 0, used = 0; op < QN_OP_COUNT && !single; op++) {
        const struct qn_op_stats *o = &f->r->total->op[op];
        if (o->ops > 0) {
            draw_curve(f, &o->latency, kind_line[used % COLOURS]);
            name[n] = (struct name){qn_op_name((enum qn_op)op),
                                    kind_text[used % COLOURS]};
            y[n++] = last_y(f, &o->latency);
            used++;
        }
    }
    if (f->sum->service.count > 0) {
        draw_curve(f, &f->sum->service, "line ink dash");
        name[n] = (struct name){"service", "ink"};
        y[n++] = last_y(f, &f->sum->service);
    }
    draw_curve(f, &f->sum->latency, "bold ink");
    draw_marks(f, &f->sum->latency);
    name[n] = (struct name){is_open(f) ? "response" : "all", "ink strong"};
    y[n++] = last_y(f, &f->sum->latency);
    draw_names(f, name, y, n, TAIL_RIGHT + 8, LAT_TOP, LAT_END);
}

/* ---- words ---- */

static void draw_title(const struct figure *f)
{
    const struct qn_report *r = f->r;
    char keys[QN_LABEL_MAX];
    qn_label_count(keys, (double)r->keys);
    qn_svg_printf(f->to, "title", TIME_LEFT, 38, "quoin load \302\267 %.200s",
                  r->addresses);
    qn_svg_printf(f->to, "note", TIME_LEFT, 60,
                  "%.120s \302\267 %" PRIu64 " connections \302\267 pipeline "
                  "%" PRIu64 " \302\267 %" PRIu64 " thread%s",
                  r->mix, r->connections, r->pipeline, r->threads,
                  r->threads == 1 ? "" : "s");
    qn_svg_printf(f->to, "note", TIME_LEFT, 77,
                  "%s keys of %" PRIu64 " bytes, values of %" PRIu64
                  " bytes \302\267 seed %" PRIu64 " \302\267 %.1f s",
                  keys, r->key_size, r->value_size, r->seed, r->seconds);
}

/* Columns of the table, at their right ends. */
static const struct {
    const char *name;
    double x;
    enum qn_quantile q;
} column[] = {{"p50", 892, QN_QUANTILE_P50},
              {"p99", 958, QN_QUANTILE_P99},
              {"p99.9", 1024, QN_QUANTILE_P999},
              {"max", TABLE_RIGHT, QN_QUANTILE_MAX}};
#define OPS_RIGHT 826.0

static void draw_table_row(const struct figure *f, double y, const char *name,
                           const char *colour, const struct qn_op_stats *o)
{
    struct qn_report_row row;
    qn_report_row(&row, o);
    char text[QN_LABEL_MAX];
    char classes[32];
    qn_svg_text(f->to, colour, TAIL_LEFT, y, name);
    snprintf(classes, sizeof classes, "%s end", colour);
    qn_label_count(text, qn_report_rate(o->ops, f->r->seconds));
    qn_svg_text(f->to, classes, OPS_RIGHT, y, text);
    for (size_t i = 0; i < QN_ARRAY_COUNT(column); i++) {
        if (o->ops > 0) {
            qn_label_time(text, (double)row.ns[column[i].q]);
            qn_svg_text(f->to, classes, column[i].x, y, text);
        }
    }
}

static void draw_troubles(const struct figure *f, double y)
{
    const struct qn_stats *t = f->r->total;
    uint64_t errors = f->sum->errors + f->sum->wrong;
    if (errors + t->unanswered + t->disconnects == 0) {
        qn_svg_text(f->to, "note", TAIL_LEFT, y,
                    "No errors, no lost connections, every request answered.");
        return;
    }
    qn_svg_rect(f->to, "alarm", TAIL_LEFT, y - 10, 12, 12);
    qn_svg_printf(f->to, "note", TAIL_LEFT + 18, y,
                  "%" PRIu64 " errors, %" PRIu64 " requests lost, %" PRIu64
                  " connections lost",
                  errors, t->unanswered, t->disconnects);
}

static void draw_table(const struct figure *f)
{
    double step = 17;
    double y = RATE_TOP;
    qn_svg_text(f->to, "note end", OPS_RIGHT, y - 14, "ops/s");
    for (size_t i = 0; i < QN_ARRAY_COUNT(column); i++) {
        qn_svg_text(f->to, "note end", column[i].x, y - 14, column[i].name);
    }
    qn_svg_line(f->to, "grid", TAIL_LEFT, y - 7, TABLE_RIGHT, y - 7);
    y += 10;
    bool single = kinds_answered(f->r->total) <= 1;
    for (uint32_t op = 0, used = 0; op < QN_OP_COUNT; op++) {
        const struct qn_op_stats *o = &f->r->total->op[op];
        if (o->ops > 0) {
            draw_table_row(f, y, qn_op_name((enum qn_op)op),
                           single ? "strong" : kind_text[used % COLOURS], o);
            y += step;
            used++;
        }
    }
    if (!single) {
        draw_table_row(f, y, "all", "strong", f->sum);
        y += step;
    }
    draw_troubles(f, y + 8);
}

int qn_figure_write(FILE *to, const struct qn_report *r,
                    const struct qn_figure_second *second, uint32_t count)
{
    struct qn_op_stats *sum = calloc(1, sizeof *sum);
    if (sum == NULL) {
        return QN_ENOMEM;
    }
    qn_stats_sum(r->total, sum);
    struct figure f = {
        .to = to, .r = r, .second = second, .count = count, .sum = sum};
    scale_time(&f);
    scale_latency(&f);
    char about[QN_REPORT_ABOUT_MAX];
    qn_report_about(r, about);
    qn_svg_begin(to, WIDTH, HEIGHT, "quoin load", about);
    draw_title(&f);
    draw_table(&f);
    draw_throughput(&f);
    draw_latency(&f);
    draw_percentiles(&f);
    qn_svg_end(to);
    free(sum);
    return QN_OK;
}
