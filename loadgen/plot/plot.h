#ifndef QN_LOADGEN_PLOT_PLOT_H
#define QN_LOADGEN_PLOT_PLOT_H

/**
 * What any chart of ours needs: scales, ticks at round numbers, labels with
 * units, and SVG that reads well in print and on dark screens.
 *
 * The classes of the style sheet are the only way to colours and sizes, so that
 * all charts look alike:
 *
 *     text    title head note tick strong; end and mid move the anchor; halo
 *             keeps it readable upon lines
 *     lines   grid axis thin line bold dash
 *     areas   back fill alarm
 *     c0..c5  colours of series (both `line` and text), told apart by people
 *             with any colour vision; ink is the plain one
 *
 * Coordinates are pixels from the top left. Everything but the FILE is pure;
 * one thread. The caller checks ferror().
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* ---- scales and ticks ---- */

/** Values lo..hi on pixels from..to. */
struct qn_scale {
    bool log;
    double lo; /* < hi; > 0 if log */
    double hi;
    double from;
    double to;
};

/** The pixel of a value; values outside lie on the edge. */
double qn_scale_at(const struct qn_scale *s, double value);

#define QN_TICKS_MAX 24

struct qn_ticks {
    uint32_t count;
    double at[QN_TICKS_MAX]; /* rising */
};

/**
 * Multiples of 1, 2 or 5 times a power of ten within lo..hi.
 *
 * @param most  How many at most, 2..QN_TICKS_MAX. There are at least 2 if
 *              lo is 0.
 */
void qn_ticks_linear(struct qn_ticks *t, double lo, double hi, uint32_t most);

/** Powers of ten within lo..hi, with 2 and 5 between them where at most `most`
 *  come out of it, with steps over powers where more would. lo > 0. */
void qn_ticks_log(struct qn_ticks *t, double lo, double hi, uint32_t most);

/** Where an axis from 0 ends that has to show `value`: a round number, 1 if
 *  value is 0. */
double qn_axis_end(double value);

/** Widen a range to the next 1, 2 or 5 times a power of ten on both sides, at
 *  least one step apart. 0 < *lo <= *hi. */
void qn_axis_log(double *lo, double *hi);

/* ---- labels ---- */

#define QN_LABEL_MAX 24

/** "0" "250" "1.5k" "20M": three digits, no trailing zeros. */
void qn_label_count(char label[QN_LABEL_MAX], double value);

/** "500 ns" "1.5 us" (with a real mu) "20 ms" "2 s": the same for a time. */
void qn_label_time(char label[QN_LABEL_MAX], double ns);

/**
 * Move labels that lie too close apart, as little as possible and without
 * changing their order.
 *
 * @param y    [n] Pixels, in any order; moved.
 * @param gap  Least distance. n * gap should fit into lo..hi.
 */
void qn_labels_spread(double *y, uint32_t n, double gap, double lo, double hi);

/* ---- SVG ---- */

/** Begin a picture; title and description are for those who cannot see it. */
void qn_svg_begin(FILE *to, double width, double height, const char *title,
                  const char *description);

void qn_svg_end(FILE *to);

/** Any bytes: what XML cannot hold, or is no UTF-8, becomes "?". */
void qn_svg_text(FILE *to, const char *classes, double x, double y,
                 const char *text);

/** The same, made like printf; cut after 300 bytes. */
void qn_svg_printf(FILE *to, const char *classes, double x, double y,
                   const char *format, ...)
    __attribute__((format(printf, 5, 6)));

void qn_svg_line(FILE *to, const char *classes, double x1, double y1, double x2,
                 double y2);

void qn_svg_rect(FILE *to, const char *classes, double x, double y,
                 double width, double height);

void qn_svg_dot(FILE *to, const char *classes, double x, double y);

/** More rules for the style sheet; `dark` may be "". Before what uses them. */
void qn_svg_style(FILE *to, const char *light, const char *dark);

/* ---- heat ---- */

#define QN_HEAT_STEPS 9u

/**
 * Rules for areas by a quantity, for a picture that has begun: `h0` to `h8`
 * fill, `o0` to `o8` are text upon them. More is farther from the paper, in
 * print and on dark screens; steps differ in lightness, so they survive a
 * photocopy.
 */
void qn_svg_heat(FILE *to);

/** The step of a part 0..1 of the whole; what lies outside is on the edge. */
uint32_t qn_heat_step(double part);

/**
 * A line through any number of points with rising x. Of the points that fall
 * into half a pixel it keeps the first, least, largest and last, which draws
 * the same picture: a file's size depends on its width, not on its data.
 */
struct qn_svg_path {
    FILE *to;
    bool down;       /* the pen is on the paper */
    bool alone;      /* and has not moved yet */
    uint32_t points; /* in the column that is open; 0: none is */
    double column;
    double x;
    double first;
    double least;
    double largest;
    double last;
};

void qn_svg_path_begin(struct qn_svg_path *p, FILE *to, const char *classes);

void qn_svg_path_point(struct qn_svg_path *p, double x, double y);

/** The next point is not joined to the last. */
void qn_svg_path_gap(struct qn_svg_path *p);

void qn_svg_path_end(struct qn_svg_path *p);

#endif
