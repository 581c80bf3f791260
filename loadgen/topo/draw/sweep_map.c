/*
 * The colour scale is logarithmic: each step is the same factor, and four times
 * the planner's cost or more has the last colour. Every cell also shows its
 * number, so nothing depends on the colours.
 */
#include <math.h>
#include <string.h>

#include "core/base/bits.h"
#include "loadgen/plot/plot.h"
#include "loadgen/topo/draw/sweep_map.h"

#define LEFT       24.0
#define TOP        110.0
#define CELL       37.0
#define ROW        19.0
#define NAMES      112.0 /* of rows */
#define HEADS      122.0 /* of columns that are machines */
#define HEADS_LOW  34.0  /* of columns that are sizes */
#define GAP_X      30.0
#define GAP_Y      30.0
#define MOST       4.0 /* times the cost of auto: the last colour */
#define SIZES_MOST 30u

struct map {
    const struct qn_sweep *s;
    FILE *to;
    uint32_t columns;
    uint32_t
        size[SIZES_MOST]; /* for a single machine: the size of each column */
    double width;         /* of a panel */
};

/* For a single machine the columns are sizes, at most SIZES_MOST of them. */
static void choose_columns(struct map *x)
{
    if (x->s->machines > 1) {
        x->columns = x->s->machines;
        return;
    }
    x->columns = QN_MIN(x->s->groups, SIZES_MOST);
    for (uint32_t i = 0; i < x->columns; i++) {
        uint32_t at =
            x->columns > 1 ? i * (x->s->groups - 1) / (x->columns - 1) : 0;
        x->size[i] = x->s->group[at].size;
    }
}

static double value(const struct map *x, uint32_t topo, uint32_t goal,
                    uint32_t column)
{
    return x->s->machines > 1
               ? qn_sweep_times(x->s, topo, goal, column, 0)
               : qn_sweep_times(x->s, topo, goal, 0, x->size[column]);
}

/* Rings support two operations only. */
static bool has_row(const struct map *x, uint32_t topo, uint32_t goal)
{
    return x->s->groups > 0 && !isnan(x->s->group[0].cost[topo][goal]);
}

static uint32_t count_rows(const struct map *x, uint32_t goal)
{
    uint32_t rows = 0;
    for (uint32_t t = 0; t < x->s->topos; t++) {
        rows += has_row(x, t, goal);
    }
    return rows;
}

/* All areas of one colour form one path. */
static void draw_areas(const struct map *x, uint32_t goal, double left,
                       double top, uint32_t step)
{
    bool any = false;
    for (uint32_t t = 0, row = 0; t < x->s->topos; t++) {
        for (uint32_t c = 0; c < x->columns && has_row(x, t, goal); c++) {
            double v = value(x, t, goal, c);
            if (isnan(v) || qn_color_ramp_step(log(v) / log(MOST)) != step) {
                continue;
            }
            if (!any) {
                fprintf(x->to, "<path class=\"h%u\" d=\"", step);
            }
            fprintf(x->to, "M%g %gh%gv%gh-%gz", left + c * CELL,
                    top + row * ROW, CELL - 1, ROW - 1, CELL - 1);
            any = true;
        }
        row += has_row(x, t, goal);
    }
    fputs(any ? "\"/>\n" : "", x->to);
}

static void draw_number(const struct map *x, double left, double top, double v)
{
    char classes[16], label[16];
    if (isnan(v)) {
        qn_svg_text(x->to, "tick mid", left + CELL / 2, top + 14, "-");
        return;
    }
    (void)snprintf(classes, sizeof classes, "cell o%u",
                   qn_color_ramp_step(log(v) / log(MOST)));
    (void)snprintf(label, sizeof label, v < 9.995 ? "%.2f" : "%.0f", v);
    qn_svg_text(x->to, classes, left + CELL / 2, top + 13, label);
}

static void draw_heads(const struct map *x, double left, double top)
{
    for (uint32_t c = 0; c < x->columns; c++) {
        char label[32];
        if (x->s->machines > 1) {
            (void)snprintf(label, sizeof label, "%.24s",
                           x->s->machine[c]->name);
        } else {
            (void)snprintf(label, sizeof label, "%u", x->size[c]);
        }
        fprintf(x->to, "<g transform=\"translate(%.1f %.1f) rotate(-50)\">\n",
                left + c * CELL + CELL / 2, top - 6);
        qn_svg_text(x->to, "tick", 0, 0, label);
        fputs("</g>\n", x->to);
    }
}

static void draw_panel(const struct map *x, uint32_t goal, double left,
                       double top)
{
    qn_svg_text(x->to, "head", left, top - 6, qn_goal_name(goal));
    draw_heads(x, left + NAMES, top);
    for (uint32_t i = 0; i < QN_COLOR_RAMP_STEPS; i++) {
        draw_areas(x, goal, left + NAMES, top, i);
    }
    double y = top;
    for (uint32_t t = 0; t < x->s->topos; t++) {
        if (!has_row(x, t, goal)) {
            continue;
        }
        qn_svg_text(x->to, "tick end", left + NAMES - 8, y + 13, x->s->topo[t]);
        for (uint32_t c = 0; c < x->columns; c++) {
            draw_number(x, left + NAMES + c * CELL, y, value(x, t, goal, c));
        }
        y += ROW;
    }
}

static void draw_title(const struct map *x)
{
    const struct qn_sweep *s = x->s;
    double at = LEFT;
    char classes[16];
    if (s->machines > 1) {
        qn_svg_printf(x->to, "title", LEFT, 34,
                      "%u topologies on %u machines: times the planner's cost",
                      s->topos, s->machines);
    } else {
        qn_svg_printf(x->to, "title", LEFT, 34,
                      "%u topologies on %s: times the planner's cost", s->topos,
                      s->machine[0]->name);
    }
    char some[32] = "";
    if (s->machines == 1 && x->columns < s->groups) {
        (void)snprintf(some, sizeof some, ", %u of them shown", x->columns);
    }
    qn_svg_printf(x->to, "note", LEFT, 56,
                  "%s, as predicted; %u groups, cores dealt round robin over "
                  "the memory nodes%s",
                  s->machines > 1 ? "Geometric mean over group sizes"
                                  : "By group size",
                  s->groups, some);
    for (uint32_t i = 0; i < QN_COLOR_RAMP_STEPS; i++) {
        bool last = i + 1 == QN_COLOR_RAMP_STEPS;
        (void)snprintf(classes, sizeof classes, "h%u", i);
        qn_svg_rect(x->to, classes, at, 70, 36, 12);
        qn_svg_printf(x->to, "tick mid", at, 95, "%.2f",
                      pow(MOST, (double)i / QN_COLOR_RAMP_STEPS));
        at += 36;
        if (last) {
            qn_svg_printf(x->to, "tick mid", at, 95, "%g", MOST);
        }
    }
}

/* Panels with few rows first, so that panels side by side have equal
 * heights. */
static const enum qn_goal panel[QN_SWEEP_GOALS] = {
    QN_GOAL_BROADCAST, QN_GOAL_REDUCE, QN_GOAL_BARRIER,
    QN_GOAL_2PC,       QN_GOAL_ACK,    QN_GOAL_THROUGHPUT};

void qn_sweep_write_svg(const struct qn_sweep *s, FILE *to)
{
    struct map x = {.s = s, .to = to};
    choose_columns(&x);
    uint32_t across = x.columns <= 18 ? 2 : 1;
    double heads = s->machines > 1 ? HEADS : HEADS_LOW;
    double top = TOP, y[QN_SWEEP_GOALS];
    for (uint32_t i = 0; i < QN_SWEEP_GOALS; i++) {
        y[i] = top + heads;
        if ((i + 1) % across == 0) {
            top += heads + count_rows(&x, panel[i]) * ROW + GAP_Y;
        }
    }
    /* The last column title leans out to the right. */
    x.width = NAMES + x.columns * CELL + 76;
    double width = 2 * LEFT + across * x.width + (across - 1) * GAP_X;
    qn_svg_begin(to, QN_MAX(width, 620.0), top, "Sweep of topologies",
                 "A heat map per operation: rows are topologies, columns are "
                 "machines or group sizes, numbers are times the planner's "
                 "cost.");
    qn_svg_style(to, ".cell{font-size:10.5px;text-anchor:middle}\n", "");
    qn_svg_color_ramp(to);
    draw_title(&x);
    for (uint32_t i = 0; i < QN_SWEEP_GOALS; i++) {
        draw_panel(&x, panel[i], LEFT + i % across * (x.width + GAP_X), y[i]);
    }
    qn_svg_end(to);
}
