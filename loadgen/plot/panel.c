/*
 * A curve is named at its end, in its colour, so no legend is needed. What was
 * measured on the hardware are dots in the colour of the curve beside them.
 */
#include "loadgen/simulate/scc/scc_panel.h"

#include <math.h>
#include <stdio.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "loadgen/plot/plot.h"

#define LEFT   56.0
#define RIGHT  116.0 /* for names */
#define TOP    34.0
#define BOTTOM 48.0
#define GAP    13.0 /* of names */

static const char *const line_class[] = {"line c0", "line c1", "line c2",
                                         "line c3", "line c4", "line c5"};
static const char *const text_class[] = {"c0", "c1", "c2", "c3", "c4", "c5"};

struct qn_scc_curve *qn_scc_panel_curve(struct qn_scc_panel *p,
                                        const char *name)
{
    QN_ASSERT(p->curves < QN_SCC_CURVES_MAX);
    struct qn_scc_curve *c = &p->curve[p->curves];
    uint32_t lines = 0;
    for (uint32_t i = 0; i < p->curves; i++) {
        lines += !p->curve[i].dots;
    }
    *c = (struct qn_scc_curve){.name = name, .color = lines};
    p->curves++;
    return c;
}

struct qn_scc_curve *qn_scc_panel_dots(struct qn_scc_panel *p)
{
    QN_ASSERT(p->curves > 0 && p->curves < QN_SCC_CURVES_MAX);
    struct qn_scc_curve *c = &p->curve[p->curves];
    *c = (struct qn_scc_curve){.color = c[-1].color, .dots = true};
    p->curves++;
    return c;
}

void qn_scc_curve_point(struct qn_scc_curve *c, double x, double y)
{
    QN_ASSERT(c->points < QN_SCC_POINTS_MAX);
    c->x[c->points] = x;
    c->y[c->points] = y;
    c->points++;
}

struct frame {
    struct qn_scale x, y;
};

static struct frame frame_of(const struct qn_scc_panel *p, double left,
                             double top)
{
    double most = 0;
    for (uint32_t i = 0; i < p->curves; i++) {
        for (uint32_t j = 0; j < p->curve[i].points; j++) {
            most = fmax(most, p->curve[i].y[j]);
        }
    }
    double bottom = top + QN_SCC_PANEL_HEIGHT - BOTTOM;
    return (struct frame){
        .x = {.log = p->log_x,
              .lo = p->log_x ? 1 : 0,
              .hi = p->x_most,
              .from = left + LEFT,
              .to = left + QN_SCC_PANEL_WIDTH - RIGHT},
        .y = {.lo = 0,
              .hi = p->y_most > 0 ? p->y_most : qn_axis_end(most),
              .from = bottom,
              .to = top + TOP}};
}

static void draw_axes(const struct qn_scc_panel *p, const struct frame *f,
                      FILE *to)
{
    struct qn_ticks t;
    char label[QN_LABEL_MAX];
    qn_ticks_linear(&t, 0, f->y.hi, 7);
    for (uint32_t i = 0; i < t.count; i++) {
        double y = qn_scale_at(&f->y, t.at[i]);
        qn_label_count(label, t.at[i]);
        qn_svg_line(to, "grid", f->x.from, y, f->x.to, y);
        qn_svg_text(to, "tick end", f->x.from - 6, y + 4, label);
    }
    if (p->log_x) {
        qn_ticks_log(&t, f->x.lo, f->x.hi, 7);
    } else {
        qn_ticks_linear(&t, 0, f->x.hi, 9);
    }
    for (uint32_t i = 0; i < t.count; i++) {
        double x = qn_scale_at(&f->x, t.at[i]);
        qn_label_count(label, t.at[i]);
        qn_svg_line(to, "axis", x, f->y.from, x, f->y.from + 4);
        qn_svg_text(to, "tick mid", x, f->y.from + 17, label);
    }
    qn_svg_line(to, "axis", f->x.from, f->y.from, f->x.to, f->y.from);
    qn_svg_text(to, "tick mid", (f->x.from + f->x.to) / 2, f->y.from + 33,
                p->x_name);
}

/* @return the last point of it that was drawn, in pixels. */
static double draw_curve(const struct qn_scc_curve *c, const struct frame *f,
                         FILE *to)
{
    struct qn_svg_path path;
    double last = f->y.from;
    if (!c->dots) {
        qn_svg_path_begin(&path, to, line_class[c->color]);
    }
    for (uint32_t i = 0; i < c->points; i++) {
        double x = qn_scale_at(&f->x, c->x[i]);
        double y = qn_scale_at(&f->y, c->y[i]);
        bool out = c->y[i] > f->y.hi || c->x[i] > f->x.hi;
        if (!out && c->dots) {
            qn_svg_dot(to, text_class[c->color], x, y);
        } else if (!out) {
            qn_svg_path_point(&path, x, y);
            last = y;
        }
    }
    if (!c->dots) {
        qn_svg_path_end(&path);
    }
    return last;
}

void qn_scc_panel_draw(const struct qn_scc_panel *p, double left, double top,
                       FILE *to)
{
    const struct frame f = frame_of(p, left, top);
    double at[QN_SCC_CURVES_MAX];
    const struct qn_scc_curve *named[QN_SCC_CURVES_MAX];
    uint32_t names = 0;
    qn_svg_text(to, "head", left + LEFT, top + 14, p->title);
    qn_svg_text(to, "tick", left + LEFT, top + 28, p->y_name);
    draw_axes(p, &f, to);
    for (uint32_t i = 0; i < p->curves; i++) {
        double y = draw_curve(&p->curve[i], &f, to);
        if (!p->curve[i].dots) {
            at[names] = y;
            named[names] = &p->curve[i];
            names++;
        }
    }
    qn_labels_spread(at, names, GAP, f.y.to, f.y.from);
    for (uint32_t i = 0; i < names; i++) {
        qn_svg_text(to, text_class[named[i]->color], f.x.to + 6, at[i] + 4,
                    named[i]->name);
    }
}
