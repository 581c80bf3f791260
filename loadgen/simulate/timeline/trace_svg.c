/*
 * A row per node, in the order of their numbers; time runs to the right. A span
 * that moves a line is a bar; a read has an arrow from the row of the node that
 * wrote the line. Time without a bar is time in which the node looked at what
 * it had, or paused.
 */
#include <math.h>

#include "core/base/bits.h"
#include "loadgen/plot/plot.h"
#include "loadgen/simulate/timeline/trace.h"

#define LEFT   64.0
#define RIGHT  24.0
#define WIDTH  1000.0
#define TOP    78.0
#define ROW    16.0
#define BAR    9.0
#define ARROWS 2000u /* more are a grey area */

enum bar { READ, WRITE, WORK, WAIT, STOP, BARS };

static const char *const bar_class[BARS] = {"c1", "c0", "c2", "c4", "c5"};
static const char *const bar_name[BARS] = {"read", "write", "work", "parked",
                                           "stopped or killed"};

/* @return false: no bar. */
static bool bar_of(const struct qn_timed_event *e, enum bar *bar)
{
    switch (e->kind) {
    case QN_TIMED_ACCESS:
        *bar = e->transfer == QN_TRANSFER_READ ? READ : WRITE;
        return e->transfer != QN_TRANSFER_HIT;
    case QN_TIMED_WORK:
        *bar = WORK;
        return true;
    case QN_TIMED_PARKED:
        *bar = WAIT;
        return true;
    case QN_TIMED_STOPPED:
    case QN_TIMED_KILLED:
        *bar = STOP;
        return true;
    default:
        return false;
    }
}

static struct qn_scale scale_of(const struct qn_trace *t)
{
    qn_ps_t last = t->from + 1;
    for (size_t i = 0; i < t->count; i++) {
        enum bar bar;
        if (bar_of(&t->event[i], &bar)) {
            last = QN_MAX(last, t->event[i].until);
        }
    }
    return (struct qn_scale){.lo = 0,
                             .hi = (double)(last - t->from) / 1000,
                             .from = LEFT,
                             .to = WIDTH - RIGHT};
}

static double x_of(const struct qn_trace *t, const struct qn_scale *s,
                   qn_ps_t at)
{
    return qn_scale_at(s, (double)(QN_MAX(at, t->from) - t->from) / 1000);
}

static double y_of(uint32_t node)
{
    return TOP + (node + 0.5) * ROW;
}

static void draw_axis(const struct qn_scale *s, uint32_t nodes, FILE *to)
{
    struct qn_ticks ticks;
    qn_ticks_linear(&ticks, s->lo, s->hi, 12);
    for (uint32_t i = 0; i < ticks.count; i++) {
        char label[QN_LABEL_MAX];
        double x = qn_scale_at(s, ticks.at[i]);
        qn_label_time(label, ticks.at[i]);
        qn_svg_line(to, "grid", x, TOP, x, TOP + nodes * ROW);
        qn_svg_text(to, "tick mid", x, TOP - 6, label);
    }
}

static void draw_arrows(const struct qn_trace *t, const struct qn_scale *s,
                        FILE *to)
{
    size_t drawn = 0;
    for (size_t i = 0; i < t->count && drawn < ARROWS; i++) {
        const struct qn_timed_event *e = &t->event[i];
        if (e->kind == QN_TIMED_ACCESS && e->transfer == QN_TRANSFER_READ &&
            e->peer != QN_SIM_NO_NODE) {
            qn_svg_line(to, "axis", x_of(t, s, e->from), y_of(e->peer),
                        x_of(t, s, e->until), y_of(e->node));
            drawn++;
        }
    }
}

/* All bars of a kind are one path, so that files stay small. */
static void draw_bars(const struct qn_trace *t, const struct qn_scale *s,
                      enum bar which, FILE *to)
{
    fprintf(to, "<path class=\"busy %s\" stroke-width=\"%.0f\" d=\"",
            bar_class[which], BAR);
    for (size_t i = 0; i < t->count; i++) {
        const struct qn_timed_event *e = &t->event[i];
        enum bar bar;
        if (bar_of(e, &bar) && bar == which) {
            double from = x_of(t, s, e->from);
            double width = x_of(t, s, e->until) - from;
            fprintf(to, "M%.1f %.1fh%.1f", from, y_of(e->node),
                    QN_MAX(width, 0.4));
        }
    }
    fputs("\"/>\n", to);
}

static void draw_legend(FILE *to)
{
    double x = LEFT;
    for (uint32_t i = 0; i < BARS; i++) {
        fprintf(to,
                "<path class=\"busy %s\" stroke-width=\"%.0f\" "
                "d=\"M%.1f %.1fh14\"/>\n",
                bar_class[i], BAR, x, 48.0);
        qn_svg_text(to, "note", x + 20, 52, bar_name[i]);
        x += i == WAIT ? 90 : 76;
    }
}

void qn_trace_svg(const struct qn_trace *t, uint32_t nodes,
                  const uint32_t *name, const char *title, FILE *to)
{
    struct qn_scale s = scale_of(t);
    qn_svg_begin(to, WIDTH, TOP + nodes * ROW + 24, title,
                 "A row per node, time to the right: which node read, wrote "
                 "and waited when. Lines lead from the writer of a cache line "
                 "to its reader.");
    qn_svg_style(to, ".busy{fill:none;stroke:currentColor}", "");
    qn_svg_text(to, "title", LEFT, 26, title);
    draw_legend(to);
    draw_axis(&s, nodes, to);
    for (uint32_t v = 0; v < nodes; v++) {
        qn_svg_printf(to, "tick end", LEFT - 8, y_of(v) + 4, "%u", name[v]);
    }
    draw_arrows(t, &s, to);
    for (enum bar bar = 0; bar < BARS; bar++) {
        draw_bars(t, &s, bar, to);
    }
    if (t->left_out > 0) {
        qn_svg_printf(to, "note", LEFT, TOP + nodes * ROW + 16,
                      "%zu later events are left out", t->left_out);
    }
    qn_svg_end(to);
}
