/*
 * Decisions of the picture:
 *
 * - Cores keep their places on the machine, so that pictures of several
 * topologies can be compared side by side.
 *
 * - The colour of an edge shows what its ends share, its width the cost of a
 * message; arrow heads point at the receiver. Cores are filled by the time at
 * which they have the result of the operation: early ones are pale.
 *
 * - The timeline has a row per core, in the order of that time. With more than
 * 64 cores it continues in further columns, so that labels stay legible on a
 * printed page.
 */
#include "loadgen/topo/draw/picture.h"

#include <ctype.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/plot/plot.h"
#include "loadgen/topo/draw/picture_internal.h"

/* Side of the square of a core: larger if there are few cores. */
static double pitch(uint32_t n)
{
    return n <= 24 ? 62 : n <= 64 ? 48 : n <= 128 ? 40 : 31;
}

#define PAGE_LEAST 860.0
#define PAGE_INNER 1128.0 /* width of drawings that need it */
#define PAGE_MOST  1260.0 /* width with more than 128 cores */
#define HEADER     128.0
#define TIME_TITLE 44.0

static const char light[] =
    ".box{fill:#7d8896;fill-opacity:.09;stroke:#9aa3ae;stroke-width:1}\n"
    ".bare{fill:none;stroke:#9aa3ae;stroke-width:1}\n"
    ".core{stroke:#333;stroke-width:.8}.root{fill:none;stroke:#222;"
    "stroke-width:2.2}\n"
    ".label{font-size:11px;fill:#555;paint-order:stroke;stroke:#fff;"
    "stroke-opacity:.7;stroke-width:3px}\n"
    ".name{text-anchor:middle;font-weight:600}.when{text-anchor:middle}\n"
    ".edge{stroke-linecap:round;stroke-opacity:.85}\n"
    ".busy{stroke-linecap:butt}.in{font-size:9px;fill:#fff;"
    "text-anchor:middle}\n"
    "path.t0{fill:#11805a}path.t1{fill:#1f5fae}path.t2{fill:#8a6a00}"
    "path.t3{fill:#c2500f}\n";

static const char dark[] =
    ".box{fill:#aab4c0;stroke:#4c545f}.bare{stroke:#4c545f}\n"
    ".label{fill:#a8a8a8;stroke:#16181d}.core{stroke:#0c0d10}.root{stroke:#"
    "e6e6e6}.in{fill:#16181d}\n"
    "path.t0{fill:#4fd0a0}path.t1{fill:#6cb0ff}path.t2{fill:#e3c04a}"
    "path.t3{fill:#ff9d5c}\n";

const char *qn_tie_class(enum qn_tie tie)
{
    static const char *const names[QN_TIES] = {"c2", "c0", "c4", "c1"};
    return names[tie];
}

const char *qn_tie_words(enum qn_tie tie)
{
    static const char *const words[QN_TIES] = {
        "within a cache", "within a node", "within a socket",
        "between sockets"};
    return words[tie];
}

void qn_picture_range(const struct qn_picture *p, double *lo, double *hi)
{
    *lo = p->t->at[0];
    *hi = p->t->at[0];
    for (uint32_t v = 0; v < p->t->n; v++) {
        *lo = QN_MIN(*lo, p->t->at[v]);
        *hi = QN_MAX(*hi, p->t->at[v]);
    }
}

/* Legend of the colours of edges; only of those that occur. */
static void draw_ties(const struct qn_picture *p, FILE *to, double y)
{
    bool seen[QN_TIES] = {false};
    double x = QN_PICTURE_LEFT;
    qn_picture_ties(p, seen);
    for (uint32_t i = 0; i < QN_TIES; i++) {
        if (seen[i]) {
            char classes[32];
            (void)snprintf(classes, sizeof classes, "bold %s",
                           qn_tie_class((enum qn_tie)i));
            qn_svg_line(to, classes, x, y - 4, x + 20, y - 4);
            qn_svg_text(to, "note", x + 26, y, qn_tie_words((enum qn_tie)i));
            x += 138;
        }
    }
    if (p->t->count > 0) {
        qn_svg_text(to, "note", x, y, "wider: higher cost");
    }
}

/* Legend of the ramp of times. */
static void draw_ramp(const struct qn_picture *p, FILE *to, double y)
{
    double step = 16, x = QN_PICTURE_LEFT, lo, hi;
    char from[QN_LABEL_MAX], end[QN_LABEL_MAX];
    qn_picture_range(p, &lo, &hi);
    for (uint32_t i = 0; i < QN_COLOR_RAMP_STEPS; i++) {
        char classes[16];
        (void)snprintf(classes, sizeof classes, "h%u", i);
        qn_svg_rect(to, classes, x + i * step, y - 11, step, 12);
    }
    qn_label_count(from, lo);
    qn_label_count(end, hi);
    qn_svg_printf(to, "note", x + QN_COLOR_RAMP_STEPS * step + 8, y,
                  "%s after %s to %s cycles", p->t->at_means, from, end);
}

static void draw_header(const struct qn_picture *p, FILE *to)
{
    char goal[40];
    (void)snprintf(goal, sizeof goal, "%s", p->goal);
    goal[0] = (char)toupper((unsigned char)goal[0]);
    qn_svg_printf(to, "title", QN_PICTURE_LEFT, 34, "%s on %s", goal,
                  p->m->name[0] != '\0' ? p->m->name : "a machine");
    char cycles[80];
    if (p->busiest > 0) {
        (void)snprintf(cycles, sizeof cycles,
                       "busiest core %.0f cycles per operation, one alone %.0f",
                       p->busiest, p->t->end);
    } else {
        (void)snprintf(cycles, sizeof cycles, "%.0f cycles", p->t->end);
    }
    qn_svg_printf(to, "note", QN_PICTURE_LEFT, 56,
                  "%s, %u cores, root %u: %s%s%s", p->name, p->m->n,
                  p->m->core[p->root].os, cycles,
                  p->note[0] != '\0' ? "; " : "", p->note);
    draw_ties(p, to, 84);
    draw_ramp(p, to, 108);
}

int qn_picture_write(const struct qn_picture *p, FILE *to)
{
    struct qn_layout *l = NULL;
    int err = qn_layout_create(&l, p->m, p->m->n > 128 ? PAGE_MOST : PAGE_INNER,
                               pitch(p->m->n));
    if (err != QN_OK) {
        return err;
    }
    double width =
        QN_MAX(l->width, p->m->n > 64 ? PAGE_INNER : 0) + 2 * QN_PICTURE_LEFT;
    width = QN_MAX(width, PAGE_LEAST);
    double time_y =
        HEADER + l->height + TIME_TITLE + (p->t->phases > 1 ? 18 : 0);
    double height = time_y + qn_picture_time_height(p) + 20;
    char title[200];
    (void)snprintf(title, sizeof title, "%s: %s on %s", p->name, p->goal,
                   p->m->name);
    qn_svg_begin(
        to, width, height, title,
        "Cores in boxes of sockets, memory nodes and caches; edges from "
        "sender to receiver; below, when each core is busy.");
    qn_svg_style(to, light, dark);
    qn_svg_color_ramp(to);
    draw_header(p, to);
    err = qn_picture_tree(p, l, to, (width - l->width) / 2, HEADER);
    qn_picture_time(p, to, width, time_y);
    qn_svg_end(to);
    qn_layout_destroy(l);
    return err;
}
