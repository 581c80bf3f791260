#ifndef QN_LOADGEN_PLOT_PANEL_H
#define QN_LOADGEN_PLOT_PANEL_H

/**
 * A picture of panels, each a chart of some curves with their names at their
 * ends. All benchmarks that draw curves draw them so.
 *
 *     struct qn_panel panel[2] = {{.title = "threads", ...}, ...};
 *     qn_panel_add(&panel[0], "reduce", 4, 1200);
 *     qn_panels_write(&(struct qn_panels){.panel = panel, .count = 2, ...},
 *                     "reduce.svg", "quoin bench collectives");
 *
 * Pure but for files; one thread.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define QN_PANEL_CURVES_MAX 64u
#define QN_PANEL_POINTS_MAX 48u

struct qn_panel_curve {
    const char *name; /* kept */
    uint32_t color;   /* the curve's number; colours come round */
    bool dots;        /* beside the curve before it: no line, no name */
    uint32_t points;
    double x[QN_PANEL_POINTS_MAX], y[QN_PANEL_POINTS_MAX]; /* x ascending */
};

struct qn_panel_axis {
    const char *name;                         /* kept; NULL: none */
    void (*label)(char *label, double value); /* of plot.h, or alike */
    bool log;                                 /* else it begins at 0 */
    bool at_points; /* x: a tick at each point; else at round numbers */
    double most;    /* its end; one with `log` then begins at 1. 0: the end, and
                       with `log` the begin, follow from the points */
};

struct qn_panel {
    const char *title;
    struct qn_panel_axis x, y;
    uint32_t curves;
    struct qn_panel_curve curve[QN_PANEL_CURVES_MAX];
};

/** Begin a curve. Asserted: there is room. */
struct qn_panel_curve *qn_panel_curve(struct qn_panel *p, const char *name);

/** Begin dots in the colour of the curve that was begun last. */
struct qn_panel_curve *qn_panel_dots(struct qn_panel *p);

/** The next point; x ascends. Asserted: there is room. */
void qn_panel_point(struct qn_panel_curve *c, double x, double y);

/** A point of the curve of that name, which begins if there is none; in any
 *  order of x. Nothing with y = 0, and what has no room is left out. */
void qn_panel_add(struct qn_panel *p, const char *name, double x, double y);

struct qn_panels {
    const char *title, *description; /* the latter is for screen readers */
    const char *note;                /* below the title; NULL: none */
    const struct qn_panel *panel;    /* [count] */
    uint32_t count, columns;
    double names;   /* pixels beside each panel for the names of curves */
    double height;  /* pixels of each panel, with its texts */
    bool same_axes; /* that all fit into; else each panel has its own */
};

/** Write the picture; the caller checks ferror(). Points that do not fit an
 *  axis with `most` are left out. */
void qn_panels_draw(const struct qn_panels *s, FILE *to);

/** The same into a file, or to standard output ("-").
 *  @return the exit status: 0, or 1 after a line of `program`. */
int qn_panels_write(const struct qn_panels *s, const char *path,
                    const char *program);

#endif
