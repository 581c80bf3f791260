#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/report/load_plot_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/*
 * Decisions of the plot:
 *
 * - Latency has one logarithmic axis for both lower panels, so that a stall on
 * the left is found at the same height in the tail on the right.
 *
 * - Seconds are drawn as steps: a rate is that of the whole second. A second
 * without an answer is a gap in the latencies and 0 in the throughput, whose
 * axis begins at 0.
 *
 * - The percentile axis is 1/(1-p), logarithmic, so each nine has the same
 * width. A percentile that covers less than one request does not exist: the
 * curve ends at 1 - 1/n, at the largest value.
 *
 * - Lines are named at their ends. Errors are an area behind the lines, so that
 * they are visible without colours, too.
 *
 * - All operations together are drawn bold in ink, single kinds thinner in
 * colours.
 */

struct qn_load_plot_second qn_load_plot_second(const struct qn_report_second *s)
{
    return (struct qn_load_plot_second){
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

/* ---- shared by the panels ---- */

double qn_load_plot_end_of(const struct qn_load_plot *f, uint32_t i,
                           double *offset)
{
    if (i > 0 && f->second[i].run != f->second[i - 1].run) {
        *offset += f->second[i - 1].at;
    }
    return *offset + f->second[i].at;
}

static const char *const kind_line[] = {"line c0", "line c1", "line c2",
                                        "line c3", "line c4", "line c5"};
static const char *const kind_text[] = {"c0", "c1", "c2", "c3", "c4", "c5"};

const char *qn_load_plot_kind_line(uint32_t used)
{
    return kind_line[used % QN_ARRAY_COUNT(kind_line)];
}

const char *qn_load_plot_kind_text(uint32_t used)
{
    return kind_text[used % QN_ARRAY_COUNT(kind_text)];
}

uint32_t qn_load_plot_kinds(const struct qn_stats *total)
{
    uint32_t n = 0;
    for (int op = 0; op < QN_OP_COUNT; op++) {
        n += total->op[op].ops > 0;
    }
    return n;
}

bool qn_load_plot_is_open(const struct qn_load_plot *f)
{
    return f->count > 0 && f->second[f->count - 1].intended > 0;
}

void qn_load_plot_latency_axis(const struct qn_load_plot *f, double left,
                               double right)
{
    struct qn_ticks t;
    qn_ticks_log(&t, f->latency.lo, f->latency.hi, 17);
    for (uint32_t i = 0; i < t.count; i++) {
        char label[QN_LABEL_MAX];
        qn_label_time(label, t.at[i]);
        double y = qn_scale_at(&f->latency, t.at[i]);
        qn_svg_line(f->to, "grid", left, y, right, y);
        qn_svg_text(f->to, "tick end", left - 8, y + 4, label);
    }
}

void qn_load_plot_names(const struct qn_load_plot *f,
                        const struct qn_load_plot_name *name, double *y,
                        uint32_t n, double x, double top, double end)
{
    qn_labels_spread(y, n, QN_LOAD_PLOT_LABEL_GAP, top, end);
    for (uint32_t i = 0; i < n; i++) {
        qn_svg_text(f->to, name[i].classes, x, y[i] + 4, name[i].text);
    }
}

/* ---- scales ---- */

static void scale_time(struct qn_load_plot *f)
{
    double offset = 0;
    double end = 0;
    double rate = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        const struct qn_load_plot_second *s = &f->second[i];
        end = qn_load_plot_end_of(f, i, &offset);
        rate = QN_MAX(rate, qn_report_rate(s->ops, s->seconds));
        rate = QN_MAX(rate, s->intended);
    }
    f->last_at = end > 0 ? end : 1;
    f->unit = f->last_at <= 300 ? 1 : f->last_at <= 3 * 3600 ? 60 : 3600;
    f->unit_name = f->unit == 1 ? "s" : f->unit == 60 ? "min" : "h";
    /* Rounds the end, so that runs of 9.998 s and of 10.002 s both end at
     * 10. */
    double last = QN_MAX(ceil(f->last_at / f->unit * 20 - 0.1) / 20, 0.05);
    f->time = (struct qn_scale){false, 0, last, QN_LOAD_PLOT_TIME_LEFT,
                                QN_LOAD_PLOT_TIME_RIGHT};
    f->rate = (struct qn_scale){false, 0, qn_axis_end(rate),
                                QN_LOAD_PLOT_RATE_END, QN_LOAD_PLOT_RATE_TOP};
}

static void scale_latency(struct qn_load_plot *f)
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
    f->latency = (struct qn_scale){true, least, most, QN_LOAD_PLOT_LAT_END,
                                   QN_LOAD_PLOT_LAT_TOP};
    double nines = QN_MAX((double)h->count, 100);
    f->tail = (struct qn_scale){true, 1, nines, QN_LOAD_PLOT_TAIL_LEFT,
                                QN_LOAD_PLOT_TAIL_RIGHT};
}

/* ---- text ---- */

static void draw_title(const struct qn_load_plot *f)
{
    const struct qn_report *r = f->r;
    char keys[QN_LABEL_MAX];
    qn_label_count(keys, (double)r->keys);
    qn_svg_printf(f->to, "title", QN_LOAD_PLOT_TIME_LEFT, 38,
                  "quoin load \302\267 %.200s", r->addresses);
    char model[QN_REPORT_MODEL_MAX];
    char connections[QN_REPORT_CONNECTIONS_MAX];
    qn_report_model(r, model);
    qn_report_connections(r, connections);
    qn_svg_printf(f->to, "note", QN_LOAD_PLOT_TIME_LEFT, 60,
                  "%.120s \302\267 %.60s \302\267 %s \302\267 pipeline "
                  "%" PRIu64 " \302\267 %" PRIu64 " thread%s",
                  r->mix, model, connections, r->pipeline, r->threads,
                  r->threads == 1 ? "" : "s");
    qn_svg_printf(f->to, "note", QN_LOAD_PLOT_TIME_LEFT, 77,
                  "%s keys (%.40s) of %.40s bytes, values of %.40s bytes "
                  "\302\267 seed %" PRIu64 " \302\267 %.1f s",
                  keys, r->dist, r->key_size, r->value_size, r->seed,
                  r->seconds);
}

/* Columns of the table, given by their right ends. */
static const struct {
    const char *name;
    double x;
    enum qn_quantile q;
} column[] = {{"p50", 892, QN_QUANTILE_P50},
              {"p99", 958, QN_QUANTILE_P99},
              {"p99.9", 1024, QN_QUANTILE_P999},
              {"max", QN_LOAD_PLOT_TABLE_RIGHT, QN_QUANTILE_MAX}};
#define OPS_RIGHT 826.0

static void draw_table_row(const struct qn_load_plot *f, double y,
                           const char *name, const char *colour,
                           const struct qn_op_stats *o)
{
    struct qn_report_row row;
    qn_report_row(&row, o);
    char text[QN_LABEL_MAX];
    char classes[32];
    qn_svg_text(f->to, colour, QN_LOAD_PLOT_TAIL_LEFT, y, name);
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

/* Unavailability of reads and writes over all addresses: the cost of a
 * fail-over. */
static void draw_unavailability(const struct qn_load_plot *f, double y)
{
    char text[QN_LABEL_MAX];
    const char *what[2] = {"reads", "writes"};
    for (uint32_t i = 0; i < 2 && f->r->unavailability != NULL; i++) {
        struct qn_unavailability_row row =
            qn_unavailability_get(f->r->unavailability, f->r->address_count,
                                  QN_UNAVAILABILITY_READ + i);
        if (row.asked) {
            qn_label_time(text, (double)row.longest);
            qn_svg_printf(f->to, "note", QN_LOAD_PLOT_TAIL_LEFT, y,
                          "Longest time without a success: %s %s, from %.2f s",
                          what[i], text, (double)row.began / 1e9);
            y += QN_LOAD_PLOT_ROW_HEIGHT;
        }
    }
}

static void draw_troubles(const struct qn_load_plot *f, double y)
{
    const struct qn_stats *t = f->r->total;
    uint64_t errors = f->sum->errors + f->sum->wrong;
    uint64_t missing = qn_report_missing(f->r);
    if (errors + t->unanswered + t->disconnects + missing == 0) {
        qn_svg_text(f->to, "note", QN_LOAD_PLOT_TAIL_LEFT, y,
                    "No errors, no lost connections, every request answered.");
        return;
    }
    char never[64] = "";
    if (missing > 0) {
        snprintf(never, sizeof never, ", never opened: %" PRIu64, missing);
    }
    qn_svg_rect(f->to, "alarm", QN_LOAD_PLOT_TAIL_LEFT, y - 10, 12, 12);
    qn_svg_printf(f->to, "note", QN_LOAD_PLOT_TAIL_LEFT + 18, y,
                  "errors: %" PRIu64 ", requests lost: %" PRIu64
                  ", connections lost: %" PRIu64 "%s",
                  errors, t->unanswered, t->disconnects, never);
}

static void draw_table(const struct qn_load_plot *f)
{
    double y = QN_LOAD_PLOT_RATE_TOP;
    qn_svg_text(f->to, "note end", OPS_RIGHT, y - 14, "ops/s");
    for (size_t i = 0; i < QN_ARRAY_COUNT(column); i++) {
        qn_svg_text(f->to, "note end", column[i].x, y - 14, column[i].name);
    }
    qn_svg_line(f->to, "grid", QN_LOAD_PLOT_TAIL_LEFT, y - 7,
                QN_LOAD_PLOT_TABLE_RIGHT, y - 7);
    y += 10;
    bool single = qn_load_plot_kinds(f->r->total) <= 1;
    for (uint32_t op = 0, used = 0; op < QN_OP_COUNT; op++) {
        const struct qn_op_stats *o = &f->r->total->op[op];
        if (o->ops > 0) {
            draw_table_row(f, y, qn_mix_op_name((enum qn_op)op),
                           single ? "strong" : qn_load_plot_kind_text(used), o);
            y += QN_LOAD_PLOT_ROW_HEIGHT;
            used++;
        }
    }
    if (!single) {
        draw_table_row(f, y, "all", "strong", f->sum);
        y += QN_LOAD_PLOT_ROW_HEIGHT;
    }
    draw_troubles(f, y + 8);
    draw_unavailability(f, y + 8 + QN_LOAD_PLOT_ROW_HEIGHT);
}

int qn_load_plot_write(FILE *to, const struct qn_report *r,
                       const struct qn_load_plot_second *second, uint32_t count)
{
    struct qn_op_stats *sum = calloc(1, sizeof *sum);
    if (sum == NULL) {
        return QN_ENOMEM;
    }
    qn_stats_sum(r->total, sum);
    struct qn_load_plot f = {
        .to = to, .r = r, .second = second, .count = count, .sum = sum};
    scale_time(&f);
    scale_latency(&f);
    char about[QN_REPORT_ABOUT_MAX];
    qn_report_about(r, about);
    qn_svg_begin(to, QN_LOAD_PLOT_WIDTH, QN_LOAD_PLOT_HEIGHT, "quoin load",
                 about);
    draw_title(&f);
    draw_table(&f);
    qn_load_plot_throughput(&f);
    qn_load_plot_latency(&f);
    qn_load_plot_percentiles(&f);
    qn_svg_end(to);
    free(sum);
    return QN_OK;
}
