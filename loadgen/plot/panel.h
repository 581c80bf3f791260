#ifndef QN_LOADGEN_SIMULATE_SCC_SCC_PANEL_H
#define QN_LOADGEN_SIMULATE_SCC_SCC_PANEL_H

/** A chart of some curves, several of which make a picture. Pure but for the
 *  FILE. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define QN_SCC_CURVES_MAX 6u
#define QN_SCC_POINTS_MAX 48u

#define QN_SCC_PANEL_WIDTH  500.0 /* pixels */
#define QN_SCC_PANEL_HEIGHT 290.0

struct qn_scc_curve {
    const char *name; /* constant */
    uint32_t color;   /* of the style sheet, 0 to 5 */
    bool dots;        /* measured on the hardware: no line, no name */
    uint32_t points;
    double x[QN_SCC_POINTS_MAX], y[QN_SCC_POINTS_MAX]; /* x ascending */
};

struct qn_scc_panel {
    const char *title, *x_name, *y_name; /* constants */
    bool log_x;
    double x_most, y_most; /* the axes' ends; y_most 0: a round number above all
                              curves. Points above it are left out */
    uint32_t curves;
    struct qn_scc_curve curve[QN_SCC_CURVES_MAX];
};

/** Begin a curve. */
struct qn_scc_curve *qn_scc_panel_curve(struct qn_scc_panel *p,
                                        const char *name);

/** Begin what was measured for the curve that was begun last. */
struct qn_scc_curve *qn_scc_panel_dots(struct qn_scc_panel *p);

void qn_scc_curve_point(struct qn_scc_curve *c, double x, double y);

/** Draw it into a picture that has begun; its corner is at left, top. */
void qn_scc_panel_draw(const struct qn_scc_panel *p, double left, double top,
                       FILE *to);

#endif
