/*
 * One row per topology: the measured median and the predicted latency, on a
 * logarithmic axis. Without a prediction there is one dot.
 */
#include <math.h>

#include "core/base/bits.h"
#include "loadgen/bcast/bcast_internal.h"
#include "loadgen/plot/plot.h"

#define LEFT   170.0
#define WIDTH  460.0
#define RIGHT  40.0
#define TOP    90.0
#define ROW    22.0
#define BOTTOM 50.0

static double measured_ns(const struct qn_bcast_row *r)
{
    return r->known ? (double)qn_operation_latency(&r->d, 0.5) : 0;
}

static void widen(double *lo, double *hi, double ns)
{
    if (isfinite(ns) && ns > 0) {
        *lo = QN_MIN(*lo, ns);
        *hi = QN_MAX(*hi, ns);
    }
}

static struct qn_scale find_axis(const struct qn_bcast *b)
{
    double lo = INFINITY, hi = 0;
    for (uint32_t i = 0; i < b->count; i++) {
        widen(&lo, &hi, measured_ns(&b->row[i]));
        widen(&lo, &hi, qn_bcast_ns(b, b->row[i].cycles));
    }
    widen(&lo, &hi, measured_ns(&b->pthread));
    if (hi == 0) {
        lo = hi = 1;
    }
    qn_axis_log(&lo, &hi);
    return (struct qn_scale){
        .log = true, .lo = lo, .hi = hi, .from = LEFT, .to = LEFT + WIDTH};
}

static void draw_axis(FILE *to, const struct qn_scale *s, double bottom)
{
    struct qn_ticks t;
    qn_ticks_log(&t, s->lo, s->hi, 12);
    for (uint32_t i = 0; i < t.count; i++) {
        char label[QN_LABEL_MAX];
        const double x = qn_scale_at(s, t.at[i]);
        qn_label_time(label, t.at[i]);
        qn_svg_line(to, "grid", x, TOP - 10, x, bottom);
        qn_svg_text(to, "tick mid", x, bottom + 18, label);
    }
}

static void dot(FILE *to, const struct qn_scale *s, const char *classes,
                double ns, double y)
{
    if (isfinite(ns) && ns > 0) {
        qn_svg_dot(to, classes, qn_scale_at(s, ns), y);
    }
}

static void draw_row(FILE *to, const struct qn_bcast *b,
                     const struct qn_scale *s, const struct qn_bcast_row *r,
                     const char *name, double y)
{
    const double predicted = qn_bcast_ns(b, r->cycles), own = measured_ns(r);
    qn_svg_text(to, "note end", LEFT - 10, y + 4, name);
    if (isfinite(predicted) && own > 0) {
        qn_svg_line(to, "thin", qn_scale_at(s, own), y,
                    qn_scale_at(s, predicted), y);
    }
    dot(to, s, "c0", own, y);
    dot(to, s, "c1", predicted, y);
}

void qn_bcast_plot(const struct qn_bcast *b, FILE *to)
{
    const uint32_t rows = b->count + b->kind->pthread;
    const double bottom = TOP + ROW * rows;
    const struct qn_scale s = find_axis(b);
    qn_svg_begin(to, LEFT + WIDTH + RIGHT, bottom + BOTTOM, b->kind->title,
                 "Measured and predicted latency of each topology");
    qn_svg_printf(to, "title", 20, 30, "%s, %u nodes on %u cores",
                  b->kind->title, b->mapping.nodes, b->mapping.cores);
    qn_svg_text(to, "c0", 20, 56, "measured, median");
    qn_svg_text(to, "c1", 150, 56, "predicted");
    draw_axis(to, &s, bottom);
    for (uint32_t i = 0; i < b->count; i++) {
        draw_row(to, b, &s, &b->row[i], b->row[i].plan.name,
                 TOP + ROW * (i + 0.5));
    }
    if (b->kind->pthread) {
        draw_row(to, b, &s, &b->pthread, "pthread_barrier",
                 TOP + ROW * (b->count + 0.5));
    }
    qn_svg_end(to);
}
