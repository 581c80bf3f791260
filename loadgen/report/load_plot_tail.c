#include "core/base/bits.h"
#include "loadgen/report/load_plot_internal.h"

#include <math.h>
#include <string.h>

/*
 * Latency by percentile. The curve is the histogram itself, bucket by bucket,
 * not a line through a few percentiles; the path drops what is not visible.
 */

/* Ticks 0, 50, 90, 99, 99.9 ... up to the number of requests. */
static void draw_tail_axis(const struct qn_load_plot *f)
{
    static const struct {
        double at;
        const char *label;
    } tick[] = {{1, "0"},          {2, "50"},        {10, "90"},
                {100, "99"},       {1e3, "99.9"},    {1e4, "99.99"},
                {1e5, "99.999"},   {1e6, "99.9999"}, {1e7, "99.99999"},
                {1e8, "99.999999"}};
    double taken = 0; /* right end of the last label */
    for (size_t i = 0; i < QN_ARRAY_COUNT(tick); i++) {
        if (tick[i].at > f->tail.hi) {
            break;
        }
        double x = qn_scale_at(&f->tail, tick[i].at);
        qn_svg_line(f->to, "grid", x, QN_LOAD_PLOT_LAT_TOP, x,
                    QN_LOAD_PLOT_LAT_END);
        double half = 3.2 * (double)strlen(tick[i].label);
        if (x - half > taken) {
            qn_svg_text(f->to, "tick mid", x, QN_LOAD_PLOT_LAT_END + 16,
                        tick[i].label);
            taken = x + half + 5;
        }
    }
    qn_svg_line(f->to, "axis", QN_LOAD_PLOT_TAIL_LEFT, QN_LOAD_PLOT_LAT_END,
                QN_LOAD_PLOT_TAIL_RIGHT, QN_LOAD_PLOT_LAT_END);
    qn_svg_text(f->to, "note mid",
                (QN_LOAD_PLOT_TAIL_LEFT + QN_LOAD_PLOT_TAIL_RIGHT) / 2,
                QN_LOAD_PLOT_LAT_END + 36,
                "percentile (% of requests that were no slower)");
}

#define MARK_CHAR 7.4 /* approximate width of a bold character, pixels */

/* For each bucket a step: the share of values before it and up to it. */
static void draw_curve(const struct qn_load_plot *f,
                       const struct qn_histogram *h, const char *classes)
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

/* Position of a label. */
struct place {
    double left;
    double right;
    double base;
};

/* First position at or below `want` that overlaps none of the n others. */
static double find_room(const struct place *taken, uint32_t n,
                        const struct place *want)
{
    double base = want->base;
    for (uint32_t i = 0; i < n; i++) {
        bool beside =
            want->left > taken[i].right + 4 || want->right < taken[i].left - 4;
        if (!beside &&
            fabs(base - taken[i].base) < QN_LOAD_PLOT_LABEL_GAP - 1) {
            base = taken[i].base + QN_LOAD_PLOT_LABEL_GAP;
            i = UINT32_MAX; /* check all again */
        }
    }
    return base;
}

/* A rising curve leaves room below on the right of a point; at the end of the
 * panel the label goes to the left, where it needs a little more distance. */
static struct place place_of(double x, double y, const char *label)
{
    double width = MARK_CHAR * (double)strlen(label);
    double left = QN_MIN(x + 7, QN_LOAD_PLOT_TAIL_RIGHT - 4 - width);
    double below =
        left < x ? QN_LOAD_PLOT_LABEL_GAP + 6 : QN_LOAD_PLOT_LABEL_GAP;
    return (struct place){left, left + width, y + below};
}

/* Mark percentiles on the bold curve: dots with values. */
static void draw_marks(const struct qn_load_plot *f,
                       const struct qn_histogram *h)
{
    static const struct {
        double q;
        const char *name;
    } mark[] = {
        {0.5, "p50"}, {0.99, "p99"}, {0.999, "p99.9"}, {0.9999, "p99.99"}};
    struct place taken[QN_ARRAY_COUNT(mark)];
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(mark); i++) {
        if ((double)h->count * (1 - mark[i].q) < 1) {
            break; /* it covers less than one request */
        }
        char value[QN_LABEL_MAX];
        char label[QN_LABEL_MAX + 8];
        double ns = (double)qn_histogram_quantile(h, mark[i].q);
        qn_label_time(value, ns);
        snprintf(label, sizeof label, "%s %s", mark[i].name, value);
        double x = qn_scale_at(&f->tail, 1 / (1 - mark[i].q));
        double y = qn_scale_at(&f->latency, QN_MAX(ns, 1.0));
        taken[i] = place_of(x, y, label);
        taken[i].base = find_room(taken, i, &taken[i]);
        qn_svg_dot(f->to, "ink", x, y);
        qn_svg_text(f->to, "ink strong halo", taken[i].left, taken[i].base,
                    label);
    }
}

static double last_y(const struct qn_load_plot *f, const struct qn_histogram *h)
{
    return qn_scale_at(&f->latency, QN_MAX((double)h->max, 1.0));
}

static enum qn_op only_kind(const struct qn_stats *total)
{
    int op = 0;
    while (total->op[op].ops == 0) {
        op++;
    }
    return (enum qn_op)op;
}

void qn_load_plot_percentiles(const struct qn_load_plot *f)
{
    struct qn_load_plot_name name[QN_OP_COUNT + 2];
    double y[QN_OP_COUNT + 2];
    uint32_t n = 0;
    bool single = qn_load_plot_kinds(f->r->total) <= 1;
    qn_svg_text(
        f->to, "head", QN_LOAD_PLOT_TAIL_LEFT, QN_LOAD_PLOT_LAT_TOP - 14,
        qn_load_plot_is_open(f) ? "Response time by percentile (log scales)"
                                : "Latency by percentile (log scales)");
    qn_load_plot_latency_axis(f, QN_LOAD_PLOT_TAIL_LEFT,
                              QN_LOAD_PLOT_TAIL_RIGHT);
    draw_tail_axis(f);
    if (f->sum->ops == 0) {
        return;
    }
    for (uint32_t op = 0, used = 0; op < QN_OP_COUNT && !single; op++) {
        const struct qn_op_stats *o = &f->r->total->op[op];
        if (o->ops > 0) {
            draw_curve(f, &o->latency, qn_load_plot_kind_line(used));
            name[n] = (struct qn_load_plot_name){qn_mix_op_name((enum qn_op)op),
                                                 qn_load_plot_kind_text(used)};
            y[n++] = last_y(f, &o->latency);
            used++;
        }
    }
    if (f->sum->service.count > 0) {
        draw_curve(f, &f->sum->service, "line ink dash");
        name[n] = (struct qn_load_plot_name){"service", "ink"};
        y[n++] = last_y(f, &f->sum->service);
    }
    draw_curve(f, &f->sum->latency, "bold ink");
    draw_marks(f, &f->sum->latency);
    const char *all = "all";
    if (qn_load_plot_is_open(f)) {
        all = "response";
    } else if (single) {
        all = qn_mix_op_name(only_kind(f->r->total));
    }
    name[n] = (struct qn_load_plot_name){all, "ink strong"};
    y[n++] = last_y(f, &f->sum->latency);
    qn_load_plot_names(f, name, y, n, QN_LOAD_PLOT_TAIL_RIGHT + 8,
                       QN_LOAD_PLOT_LAT_TOP, QN_LOAD_PLOT_LAT_END);
}
