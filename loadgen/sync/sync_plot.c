/*
 * Two panels side by side, with the number of threads on a logarithmic axis of
 * base 2. Lines are named at their ends, their names moved apart; with one
 * number of threads there are dots.
 */
#include "loadgen/sync/sync_plot.h"

#include <math.h>
#include <string.h>

#include "core/base/bits.h"
#include "loadgen/plot/plot.h"
#include "loadgen/sync/sync_rows.h"

#define PANEL_WIDTH 300.0
#define PANEL_GAP   210.0
#define LEFT        80.0
#define TOP         70.0
#define HEIGHT      460.0
#define LABEL_GAP   13.0

/* What a panel shows of a subject. */
struct panel {
    const char *title;
    void (*label)(char label[QN_LABEL_MAX], double value);
    double (*of)(const json_t *subject); /* 0: nothing */
};

struct axes {
    struct qn_scale threads, value;
};

static double rate_of(const json_t *subject)
{
    return json_number_value(
        json_object_get(json_object_get(subject, "per_second"), "median"));
}

static double p999_of(const json_t *subject)
{
    return json_number_value(
        json_object_get(json_object_get(subject, "ns"), "p999"));
}

static const struct panel panels[] = {
    {"operations per second", qn_label_count, rate_of},
    {"p99.9 of an operation", qn_label_time, p999_of},
};

static double threads_of(const json_t *run)
{
    return json_number_value(json_object_get(run, "threads"));
}

static const json_t *subject_at(const json_t *run, size_t i)
{
    return json_array_get(json_object_get(run, "subjects"), i);
}

static void find_axes(struct axes *a, const json_t *runs, const struct panel *p)
{
    double lo = INFINITY, hi = 0, most = 2, least = INFINITY;
    size_t i, k;
    json_t *run, *subject;
    json_array_foreach(runs, i, run)
    {
        most = QN_MAX(most, threads_of(run));
        least = QN_MIN(least, threads_of(run));
        json_array_foreach(json_object_get(run, "subjects"), k, subject)
        {
            const double value = p->of(subject);
            lo = value > 0 ? QN_MIN(lo, value) : lo;
            hi = QN_MAX(hi, value);
        }
    }
    if (hi == 0) {
        lo = hi = 1;
    }
    qn_axis_log(&lo, &hi);
    a->threads = (struct qn_scale){
        .log = true, .lo = least * 0.9, .hi = most * 1.1, .to = PANEL_WIDTH};
    a->value = (struct qn_scale){
        .log = true, .lo = lo, .hi = hi, .from = TOP + HEIGHT, .to = TOP};
}

static void draw_grid(FILE *to, const struct axes *a, const json_t *runs,
                      const struct panel *p, double left)
{
    struct qn_ticks t;
    size_t i;
    json_t *run;
    qn_svg_text(to, "strong", left, TOP - 12, p->title);
    qn_ticks_log(&t, a->value.lo, a->value.hi, 12);
    for (uint32_t k = 0; k < t.count; k++) {
        char label[QN_LABEL_MAX];
        const double y = qn_scale_at(&a->value, t.at[k]);
        p->label(label, t.at[k]);
        qn_svg_line(to, "grid", left, y, left + PANEL_WIDTH, y);
        qn_svg_text(to, "tick end", left - 6, y + 4, label);
    }
    json_array_foreach(runs, i, run)
    {
        qn_svg_printf(to, "tick mid",
                      left + qn_scale_at(&a->threads, threads_of(run)),
                      TOP + HEIGHT + 18, "%.0f", threads_of(run));
    }
    qn_svg_text(to, "note mid", left + PANEL_WIDTH / 2, TOP + HEIGHT + 36,
                "threads");
}

/* @return the height of its end; NAN: there is nothing to draw. */
static double draw_line(FILE *to, const struct axes *a, const json_t *runs,
                        const struct panel *p, double left, size_t subject)
{
    static const char *const line[] = {"line c0", "line c1", "line c2",
                                       "line c3", "line c4", "line c5"};
    struct qn_svg_path path;
    double end = NAN;
    size_t i;
    json_t *run;
    qn_svg_path_begin(&path, to, line[subject % QN_ARRAY_COUNT(line)]);
    json_array_foreach(runs, i, run)
    {
        const double value = p->of(subject_at(run, subject));
        if (value > 0) {
            const double x = left + qn_scale_at(&a->threads, threads_of(run));
            end = qn_scale_at(&a->value, value);
            qn_svg_path_point(&path, x, end);
        }
    }
    qn_svg_path_end(&path);
    return end;
}

static void draw_panel(FILE *to, const json_t *runs, const struct panel *p,
                       double left)
{
    static const char *const text[] = {"c0", "c1", "c2", "c3", "c4", "c5"};
    struct axes a;
    double y[QN_SYNC_ROWS_MAX];
    size_t subject[QN_SYNC_ROWS_MAX];
    uint32_t n = 0;
    const json_t *first = json_array_get(runs, 0);
    find_axes(&a, runs, p);
    draw_grid(to, &a, runs, p, left);
    for (size_t i = 0; subject_at(first, i) != NULL; i++) {
        const double end = draw_line(to, &a, runs, p, left, i);
        if (isfinite(end)) {
            subject[n] = i;
            y[n++] = end;
        }
    }
    qn_labels_spread(y, n, LABEL_GAP, TOP, TOP + HEIGHT);
    for (uint32_t i = 0; i < n; i++) {
        qn_svg_text(to, text[subject[i] % QN_ARRAY_COUNT(text)],
                    left + PANEL_WIDTH + 6, y[i] + 4,
                    json_string_value(json_object_get(
                        subject_at(first, subject[i]), "subject")));
    }
}

void qn_sync_plot(const json_t *report, FILE *to)
{
    const json_t *runs = json_object_get(report, "runs");
    const char *machine = json_string_value(json_object_get(report, "machine"));
    qn_svg_begin(to, LEFT + 2 * (PANEL_WIDTH + PANEL_GAP), TOP + HEIGHT + 60,
                 "Locks, delegation and concurrent objects",
                 "Rate and latency of each over the number of threads");
    qn_svg_printf(to, "title", 20, 30, "quoin bench %s%s%s",
                  json_string_value(json_object_get(report, "bench")),
                  machine != NULL ? ", virtual time, " : "",
                  machine != NULL ? machine : "");
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(panels); i++) {
        draw_panel(to, runs, &panels[i], LEFT + i * (PANEL_WIDTH + PANEL_GAP));
    }
    qn_svg_end(to);
}
