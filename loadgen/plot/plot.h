#ifndef QN_LOADGEN_PLOT_PLOT_H
#define QN_LOADGEN_PLOT_PLOT_H

/**
 * Common parts of all charts: scales, ticks at round numbers, labels with
 * units, and SVG that is readable in print and on dark screens.
 *
 * Colours and sizes are set only by the classes of the style sheet, so that all
 * charts look alike:
 *
 *     text    title head note tick strong; end and mid move the anchor; halo
 *             keeps text readable on lines
 *     lines   grid axis thin line bold dash
 *     areas   back fill alarm
 *     c0..c5  colours of series (both `line` and text), distinguishable with
 *             any colour vision; ink is the plain one
 *
 * Coordinates are pixels from the top left. Everything except the FILE is pure;
 * one thread. The caller checks ferror().
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* ---- scales and ticks ---- */

/** Maps values lo..hi to pixels from..to. */
struct qn_scale {
    bool log;
    double lo; /* < hi; > 0 if log */
    double hi;
    double from;
    double to;
};

/** Pixel of a value; a value out of range is mapped to the edge. */
double qn_scale_at(const struct qn_scale *s, double value);

#define QN_TICKS_MAX 24

struct qn_ticks {
    uint32_t count;
    double at[QN_TICKS_MAX]; /* rising */
};

/**
 * Multiples of 1, 2 or 5 times a power of ten within lo..hi.
 *
 * @param most  Maximum number of ticks, 2..QN_TICKS_MAX. There are at least 2
 *              if lo is 0.
 */
void qn_ticks_linear(struct qn_ticks *t, double lo, double hi, uint32_t most);

/** Powers of ten within lo..hi; with 2 and 5 between them if this gives at most
 *  `most` ticks, with powers left out if there would be more. lo > 0. */
void qn_ticks_log(struct qn_ticks *t, double lo, double hi, uint32_t most);

/** End of an axis from 0 that shows `value`: a round number; 1 if value is
 *  0. */
double qn_axis_end(double value);

/** Widen a range to the next 1, 2 or 5 times a power of ten on both sides, at
 *  least one step apart. 0 < *lo <= *hi. */
void qn_axis_log(double *lo, double *hi);

/* ---- labels ---- */

#define QN_LABEL_MAX 24

/** "0" "250" "1.5k" "20M": three digits, no trailing zeros. */
void qn_label_count(char label[QN_LABEL_MAX], double value);

/** "500 ns" "1.5 us" (with a real mu) "20 ms" "2 s": the same for times. */
void qn_label_time(char label[QN_LABEL_MAX], double ns);

/**
 * Move labels that are too close apart, as little as possible and without
 * changing their order.
 *
 * @param y    [n] Pixels, in any order; changed.
 * @param gap  Smallest distance. n * gap should fit into lo..hi.
 */
void qn_labels_spread(double *y, uint32_t n, double gap, double lo, double hi);

/* ---- SVG ---- */

/** Begin a picture; title and description are for screen readers. */
void qn_svg_begin(FILE *to, double width, double height, const char *title,
                  const char *description);

void qn_svg_end(FILE *to);

/** Accepts any bytes: characters that XML does not allow, and invalid UTF-8,
 *  become "?". */
void qn_svg_text(FILE *to, const char *classes, double x, double y,
                 const char *text);

/** The same with a format; cut after 300 bytes. */
void qn_svg_printf(FILE *to, const char *classes, double x, double y,
                   const char *format, ...)
    __attribute__((format(printf, 5, 6)));

void qn_svg_line(FILE *to, const char *classes, double x1, double y1, double x2,
                 double y2);

void qn_svg_rect(FILE *to, const char *classes, double x, double y,
                 double width, double height);

void qn_svg_dot(FILE *to, const char *classes, double x, double y);

/** More rules for the style sheet; `dark` may be "". Must precede their use. */
void qn_svg_style(FILE *to, const char *light, const char *dark);

/* ---- colour ramp ---- */

#define QN_COLOR_RAMP_STEPS 9u

/**
 * Rules for areas coloured by a quantity, for a picture that has begun: `h0` to
 * `h8` fill, `o0` to `o8` are text on them. Higher steps are farther from the
 * background, in print and on dark screens; steps differ in lightness, so they
 * survive a photocopy.
 */
void qn_svg_color_ramp(FILE *to);

/** Step of a fraction 0..1; a value out of range is mapped to the edge. */
uint32_t qn_color_ramp_step(double part);

/**
 * A line through any number of points with ascending x. Of the points within
 * half a pixel it keeps the first, least, largest and last, which gives the
 * same picture: the size of the file depends on its width, not on the data.
 */
struct qn_svg_path {
    FILE *to;
    bool down;       /* the pen is down */
    bool alone;      /* the pen is down and has not moved yet */
    uint32_t points; /* points in the open column; 0: no column is open */
    double column;
    double x;
    double first;
    double least;
    double largest;
    double last;
};

void qn_svg_path_begin(struct qn_svg_path *p, FILE *to, const char *classes);

void qn_svg_path_point(struct qn_svg_path *p, double x, double y);

/** The next point is not connected with the last one. */
void qn_svg_path_gap(struct qn_svg_path *p);

void qn_svg_path_end(struct qn_svg_path *p);

#endif
