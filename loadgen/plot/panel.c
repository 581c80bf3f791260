/*
 * A curve is named at its end, in its colour, so no legend is needed. One of a
 * single point is a dot. Other dots are what stands beside a curve, as a figure
 * in print or a prediction.
 *
 * A logarithmic axis that follows from its points ends at round numbers; one
 * whose ticks are its points ends a tenth beside them.
 */
#include "loadgen/plot/panel.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "loadgen/base/output_path.h"
#include "loadgen/plot/plot.h"

#define LEFT   72.0
#define WIDTH  320.0 /* of the axes */
#define TOP    40.0
#define BOTTOM 50.0
#define HEAD   64.0 /* of the picture */
#define GAP    13.0 /* of names */

static const char *const line_class[] = {"line c0", "line c1", "line c2",
                                         "line c3", "line c4", "line c5"};
static const char *const text_class[] = {"c0", "c1", "c2", "c3", "c4", "c5"};

/* ---- curves ---- */

static struct qn_panel_curve *begin(struct qn_panel *p, const char *name,
                                    bool dots)
{
    QN_ASSERT(p->curves < QN_PANEL_CURVES_MAX);
    struct qn_panel_curve *c = &p->curve[p->curves];
    uint32_t lines = 0;
    for (uint32_t i = 0; i < p->curves; i++) {
        lines += !p->curve[i].dots;
    }
    *c = (struct qn_panel_curve){
        .name = name, .color = lines - dots, .dots = dots};
    p->curves++;
    return c;
}

struct qn_panel_curve *qn_panel_curve(struct qn_panel *p, const char *name)
{
    return begin(p, name, false);
}

struct qn_panel_curve *qn_panel_dots(struct qn_panel *p)
{
    QN_ASSERT(p->curves > 0);
    return begin(p, NULL, true);
}

void qn_panel_point(struct qn_panel_curve *c, double x, double y)
{
    QN_ASSERT(c->points < QN_PANEL_POINTS_MAX);
    c->x[c->points] = x;
    c->y[c->points] = y;
    c->points++;
}

static struct qn_panel_curve *find(struct qn_panel *p, const char *name)
{
    for (uint32_t i = 0; i < p->curves; i++) {
        struct qn_panel_curve *c = &p->curve[i];
        if (!c->dots && strcmp(c->name, name) == 0) {
            return c;
        }
    }
    return p->curves < QN_PANEL_CURVES_MAX ? begin(p, name, false) : NULL;
}

void qn_panel_add(struct qn_panel *p, const char *name, double x, double y)
{
    struct qn_panel_curve *c = y > 0 ? find(p, name) : NULL;
    if (c == NULL || c->points == QN_PANEL_POINTS_MAX) {
        return;
    }
    uint32_t i = c->points++;
    for (; i > 0 && c->x[i - 1] > x; i--) {
        c->x[i] = c->x[i - 1];
        c->y[i] = c->y[i - 1];
    }
    c->x[i] = x;
    c->y[i] = y;
}

/* ---- axes ---- */

struct frame {
    struct qn_scale x, y;
};

static void widen(double range[2], double value)
{
    range[0] = fmin(range[0], value);
    range[1] = fmax(range[1], value);
}

/* @param range  The least and the largest value. */
static struct qn_scale scale_of(const struct qn_panel_axis *a,
                                const double range[2], double from, double to)
{
    struct qn_scale s = {.log = a->log, .from = from, .to = to};
    s.lo = a->log ? 1 : 0;
    s.hi = a->most;
    if (a->most > 0) {
        return s;
    }
    if (!a->log) {
        s.hi = qn_axis_end(QN_MAX(range[1], 0.0));
        return s;
    }
    const bool any = range[0] > 0 && isfinite(range[0]);
    s.lo = any ? range[0] : 1;
    s.hi = any ? range[1] : 1;
    if (a->at_points) {
        s.lo *= 0.9;
        s.hi *= 1.1;
    } else {
        qn_axis_log(&s.lo, &s.hi);
    }
    return s;
}

/* The axes of panel `i`, where its corner is at left, top. */
static struct frame frame_of(const struct qn_panels *s, uint32_t i, double left,
                             double top)
{
    double x[2] = {INFINITY, 0}, y[2] = {INFINITY, 0};
    const uint32_t first = s->same_axes ? 0 : i;
    const uint32_t end = s->same_axes ? s->count : i + 1;
    for (uint32_t k = first; k < end; k++) {
        const struct qn_panel *p = &s->panel[k];
        for (uint32_t c = 0; c < p->curves; c++) {
            for (uint32_t j = 0; j < p->curve[c].points; j++) {
                widen(x, p->curve[c].x[j]);
                widen(y, p->curve[c].y[j]);
            }
        }
    }
    const struct qn_panel *p = &s->panel[i];
    return (struct frame){
        .x = scale_of(&p->x, x, left + LEFT, left + LEFT + WIDTH),
        .y = scale_of(&p->y, y, top + s->height - BOTTOM, top + TOP)};
}

/* Each x that a curve has, once. */
static void ticks_of_points(struct qn_ticks *t, const struct qn_panel *p)
{
    t->count = 0;
    for (uint32_t c = 0; c < p->curves; c++) {
        for (uint32_t j = 0; j < p->curve[c].points; j++) {
            const double x = p->curve[c].x[j];
            uint32_t i = 0;
            while (i < t->count && fabs(t->at[i] - x) > 0) {
                i++;
            }
            if (i == t->count && i < QN_TICKS_MAX) {
                t->at[t->count++] = x;
            }
        }
    }
}

static void draw_x(const struct qn_panel *p, const struct frame *f, FILE *to)
{
    struct qn_ticks t;
    if (p->x.at_points) {
        ticks_of_points(&t, p);
    } else if (p->x.log) {
        qn_ticks_log(&t, f->x.lo, f->x.hi, 7);
    } else {
        qn_ticks_linear(&t, 0, f->x.hi, 9);
    }
    for (uint32_t i = 0; i < t.count; i++) {
        char label[QN_LABEL_MAX];
        const double x = qn_scale_at(&f->x, t.at[i]);
        p->x.label(label, t.at[i]);
        qn_svg_line(to, "axis", x, f->y.from, x, f->y.from + 4);
        qn_svg_text(to, "tick mid", x, f->y.from + 17, label);
    }
    qn_svg_line(to, "axis", f->x.from, f->y.from, f->x.to, f->y.from);
    if (p->x.name != NULL) {
        qn_svg_text(to, "tick mid", (f->x.from + f->x.to) / 2, f->y.from + 33,
                    p->x.name);
    }
}

static void draw_y(const struct qn_panel *p, const struct frame *f, FILE *to)
{
    struct qn_ticks t;
    if (p->y.log) {
        qn_ticks_log(&t, f->y.lo, f->y.hi, 12);
    } else {
        qn_ticks_linear(&t, 0, f->y.hi, 7);
    }
    for (uint32_t i = 0; i < t.count; i++) {
        char label[QN_LABEL_MAX];
        const double y = qn_scale_at(&f->y, t.at[i]);
        p->y.label(label, t.at[i]);
        qn_svg_line(to, "grid", f->x.from, y, f->x.to, y);
        qn_svg_text(to, "tick end", f->x.from - 6, y + 4, label);
    }
    if (p->y.name != NULL) {
        qn_svg_text(to, "tick", f->x.from, f->y.to - 12, p->y.name);
    }
}

/* ---- drawing ---- */

/* @return the height of its end. */
static double draw_curve(const struct qn_panel_curve *c, const struct frame *f,
                         FILE *to)
{
    const uint32_t color = c->color % QN_ARRAY_COUNT(line_class);
    const bool line = !c->dots && c->points > 1;
    struct qn_svg_path path;
    double last = f->y.from;
    if (line) {
        qn_svg_path_begin(&path, to, line_class[color]);
    }
    for (uint32_t i = 0; i < c->points; i++) {
        if (c->y[i] > f->y.hi || c->x[i] > f->x.hi) {
            continue;
        }
        const double x = qn_scale_at(&f->x, c->x[i]);
        last = qn_scale_at(&f->y, c->y[i]);
        if (line) {
            qn_svg_path_point(&path, x, last);
        } else {
            qn_svg_dot(to, text_class[color], x, last);
        }
    }
    if (line) {
        qn_svg_path_end(&path);
    }
    return last;
}

static void draw_panel(const struct qn_panel *p, const struct frame *f,
                       FILE *to)
{
    double at[QN_PANEL_CURVES_MAX];
    const struct qn_panel_curve *named[QN_PANEL_CURVES_MAX];
    uint32_t names = 0;
    qn_svg_text(to, "head", f->x.from, f->y.to - 26, p->title);
    draw_y(p, f, to);
    draw_x(p, f, to);
    for (uint32_t i = 0; i < p->curves; i++) {
        const double y = draw_curve(&p->curve[i], f, to);
        if (!p->curve[i].dots) {
            at[names] = y;
            named[names++] = &p->curve[i];
        }
    }
    qn_labels_spread(at, names, GAP, f->y.to, f->y.from);
    for (uint32_t i = 0; i < names; i++) {
        qn_svg_text(to,
                    text_class[named[i]->color % QN_ARRAY_COUNT(text_class)],
                    f->x.to + 6, at[i] + 4, named[i]->name);
    }
}

void qn_panels_draw(const struct qn_panels *s, FILE *to)
{
    const uint32_t rows = (s->count + s->columns - 1) / s->columns;
    const double width = LEFT + WIDTH + s->names;
    qn_svg_begin(to, s->columns * width, HEAD + rows * s->height, s->title,
                 s->description);
    qn_svg_text(to, "title", 24, 32, s->title);
    if (s->note != NULL) {
        qn_svg_text(to, "note", 24, 50, s->note);
    }
    for (uint32_t i = 0; i < s->count; i++) {
        const uint32_t row = i / s->columns, column = i % s->columns;
        const struct frame f =
            frame_of(s, i, column * width, HEAD + row * s->height);
        draw_panel(&s->panel[i], &f, to);
    }
    qn_svg_end(to);
}

int qn_panels_write(const struct qn_panels *s, const char *path,
                    const char *program)
{
    FILE *to = qn_output_path_open(path);
    int error = errno;
    if (to != NULL) {
        qn_panels_draw(s, to);
        error = qn_output_path_close(to);
    }
    if (to == NULL || error != 0) {
        fprintf(stderr, "%s: cannot write %s: %s\n", program,
                qn_output_path_name(path), strerror(error));
        return 1;
    }
    return 0;
}
