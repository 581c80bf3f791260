/*
 * Both axes are logarithmic; better is left and up. Arities of one kind are
 * joined by a line, for rings one line per map. Names are written beside points
 * of the front and of known trees, arities at the first few points of a line. A
 * label that would cover another one, or that a line would cross, is left out.
 * Points of the front get the first choice of places.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "loadgen/plot/plot.h"
#include "loadgen/topo/draw/compare_picture.h"

#define WIDTH       900.0
#define HEIGHT      600.0
#define LEFT        64.0
#define RIGHT       (WIDTH - 40.0)
#define TOP         118.0
#define BOTTOM      (HEIGHT - 52.0)
#define TEXT        6.6 /* width of a character */
#define LINE        12.0
#define AIR         2.5 /* space between labels, and between labels and lines */
#define LABELS_MOST 512u
#define LINES_MOST  512u

struct chart {
    const struct qn_compare *c;
    FILE *to;
    struct qn_scale x, y;
    uint32_t labels;
    struct {
        double left, top, right, bottom;
    } label[LABELS_MOST];
    uint32_t lines;
    struct {
        double x1, y1, x2, y2;
    } line[LINES_MOST];
};

static const char *const colour[QN_COMPARE_KINDS] = {"c1", "c0", "c4", "c2",
                                                     "c5"};

/* Operations in a million cycles. */
static double rate(const struct qn_compare_point *p)
{
    return 1e6 / p->each;
}

static double at_x(const struct chart *h, const struct qn_compare_point *p)
{
    return qn_scale_at(&h->x, p->latency);
}

static double at_y(const struct chart *h, const struct qn_compare_point *p)
{
    return qn_scale_at(&h->y, rate(p));
}

static void scale(struct chart *h)
{
    double lo = INFINITY, hi = 0, slow = INFINITY, fast = 0;
    for (uint32_t i = 0; i < h->c->count; i++) {
        const struct qn_compare_point *p = &h->c->point[i];
        lo = QN_MIN(lo, p->latency);
        hi = QN_MAX(hi, p->latency);
        slow = QN_MIN(slow, rate(p));
        fast = QN_MAX(fast, rate(p));
    }
    h->x = (struct qn_scale){true, lo / 1.12, hi * 1.3, LEFT, RIGHT};
    h->y = (struct qn_scale){true, slow / 1.2, fast * 1.25, BOTTOM, TOP};
}

static void draw_axes(const struct chart *h)
{
    struct qn_ticks t;
    char text[QN_LABEL_MAX];
    qn_ticks_log(&t, h->x.lo, h->x.hi, 14);
    for (uint32_t i = 0; i < t.count; i++) {
        double x = qn_scale_at(&h->x, t.at[i]);
        qn_label_count(text, t.at[i]);
        qn_svg_line(h->to, "grid", x, TOP, x, BOTTOM);
        qn_svg_text(h->to, "tick mid", x, BOTTOM + 16, text);
    }
    qn_ticks_log(&t, h->y.lo, h->y.hi, 14);
    for (uint32_t i = 0; i < t.count; i++) {
        double y = qn_scale_at(&h->y, t.at[i]);
        qn_label_count(text, t.at[i]);
        qn_svg_line(h->to, "grid", LEFT, y, RIGHT, y);
        qn_svg_text(h->to, "tick end", LEFT - 8, y + 4, text);
    }
    qn_svg_text(h->to, "note mid", (LEFT + RIGHT) / 2, BOTTOM + 38,
                "latency of one operation alone, cycles");
    qn_svg_text(h->to, "note", LEFT - 46, TOP - 12,
                "operations per million cycles, 128 in a row");
}

/* ---- labels ---- */

/* Does a line cross the box? It does if a part remains after clipping at all
 * four sides. */
static bool crosses(double x1, double y1, double x2, double y2, double left,
                    double top, double right, double bottom)
{
    double dx = x2 - x1, dy = y2 - y1, from = 0, to = 1;
    const double slope[] = {-dx, dx, -dy, dy};
    const double room[] = {x1 - left, right - x1, y1 - top, bottom - y1};
    for (uint32_t i = 0; i < 4; i++) {
        double at = room[i] / slope[i];
        if (slope[i] < 0) {
            from = QN_MAX(from, at);
        } else if (slope[i] > 0) {
            to = QN_MIN(to, at);
        } else if (room[i] < 0) {
            return false;
        }
    }
    return from <= to;
}

static bool is_free(const struct chart *h, double left, double top,
                    double right, double bottom)
{
    bool in = left >= LEFT && right <= RIGHT + 36 && top >= TOP - 8 &&
              bottom <= BOTTOM;
    left -= AIR;
    right += AIR;
    for (uint32_t i = 0; in && i < h->labels; i++) {
        in = right <= h->label[i].left || left >= h->label[i].right ||
             bottom <= h->label[i].top || top >= h->label[i].bottom;
    }
    for (uint32_t i = 0; in && i < h->lines; i++) {
        in = !crosses(h->line[i].x1, h->line[i].y1, h->line[i].x2,
                      h->line[i].y2, left, top, right, bottom);
    }
    return in;
}

static void take(struct chart *h, double left, double top, double right,
                 double bottom)
{
    if (h->labels < LABELS_MOST) {
        h->label[h->labels].left = left;
        h->label[h->labels].top = top;
        h->label[h->labels].right = right;
        h->label[h->labels++].bottom = bottom;
    }
}

/* Draw a label beside a point where there is room: right, left, above, below,
 * at the corners, then the same a little farther away. */
static void draw_label(struct chart *h, const struct qn_compare_point *p,
                       const char *text)
{
    static const struct {
        int x, y;
    } side[] = {{1, 0},  {-1, 0}, {0, -1}, {0, 1},
                {1, -1}, {-1, 1}, {1, 1},  {-1, -1}};
    enum { SIDES = QN_ARRAY_COUNT(side), DISTANCES = 3 };
    double near = p->front ? 11 : 9;
    double x = at_x(h, p), y = at_y(h, p), width = TEXT * (double)strlen(text);
    for (uint32_t i = 0; i < SIDES * DISTANCES; i++) {
        uint32_t round = i / SIDES;
        double far = 4.5 * round;
        int sx = side[i % SIDES].x, sy = side[i % SIDES].y;
        double left = sx > 0   ? x + near + far
                      : sx < 0 ? x - near - far - width
                               : x - width / 2;
        double middle = y + sy * (near + (sx == 0 ? 5 : 0) + far);
        if (is_free(h, left, middle - LINE / 2, left + width,
                    middle + LINE / 2)) {
            char classes[40];
            (void)snprintf(classes, sizeof classes, "small halo %s",
                           colour[p->kind]);
            qn_svg_text(h->to, classes, left, middle + 4, text);
            take(h, left, middle - LINE / 2, left + width, middle + LINE / 2);
            return;
        }
    }
}

static const char *text_of(const struct qn_compare_point *p, char text[16])
{
    if (p->arity == 0) {
        return p->name;
    }
    (void)snprintf(text, 16, "k=%u", p->arity);
    return text;
}

static void draw_labels(struct chart *h)
{
    for (uint32_t i = 0; i < h->c->count; i++) {
        const struct qn_compare_point *p = &h->c->point[i];
        double r = p->front ? 7 : 4;
        take(h, at_x(h, p) - r, at_y(h, p) - r, at_x(h, p) + r, at_y(h, p) + r);
    }
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < h->c->count; i++) {
            const struct qn_compare_point *p = &h->c->point[i];
            char text[16];
            bool few = p->arity <= 4 || (p->arity & (p->arity - 1)) == 0;
            uint32_t turn = p->front ? 0 : p->arity == 0 ? 1 : few ? 2 : 3;
            bool between =
                p->kind == QN_COMPARE_PLANNED && strchr(p->name, ',') != NULL;
            if (turn == round && !between) {
                draw_label(h, p, text_of(p, text));
            }
        }
    }
}

/* ---- points ---- */

static void draw_line(struct chart *h, const char *classes,
                      const struct qn_compare_point *from,
                      const struct qn_compare_point *to)
{
    double x1 = at_x(h, from), y1 = at_y(h, from);
    double x2 = at_x(h, to), y2 = at_y(h, to);
    qn_svg_line(h->to, classes, x1, y1, x2, y2);
    if (h->lines < LINES_MOST) {
        h->line[h->lines].x1 = x1;
        h->line[h->lines].y1 = y1;
        h->line[h->lines].x2 = x2;
        h->line[h->lines++].y2 = y2;
    }
}

static void draw_lines(struct chart *h)
{
    for (uint32_t kind = 0; kind < QN_COMPARE_KNOWN; kind++) {
        const struct qn_compare_point *last = NULL;
        char classes[24];
        (void)snprintf(classes, sizeof classes, "%s %s",
                       kind == QN_COMPARE_PLANNED ? "bold" : "thin",
                       colour[kind]);
        for (uint32_t i = 0; i < h->c->count; i++) {
            const struct qn_compare_point *p = &h->c->point[i];
            if (p->kind != kind) {
                continue;
            }
            if (last != NULL && last->arity <= p->arity) {
                draw_line(h, classes, last, p);
            }
            last = p;
        }
    }
}

static void draw_points(const struct chart *h)
{
    for (uint32_t i = 0; i < h->c->count; i++) {
        const struct qn_compare_point *p = &h->c->point[i];
        if (p->front) {
            fprintf(h->to,
                    "<circle class=\"front\" cx=\"%.1f\" cy=\"%.1f\" "
                    "r=\"6\"/>\n",
                    at_x(h, p), at_y(h, p));
        }
        qn_svg_dot(h->to, colour[p->kind], at_x(h, p), at_y(h, p));
    }
}

static void draw_legend(const struct chart *h)
{
    double x = 18;
    for (uint32_t kind = 0; kind < QN_COMPARE_KINDS; kind++) {
        const char *name = qn_compare_kind_name(kind);
        qn_svg_dot(h->to, colour[kind], x + 4, 74);
        qn_svg_text(h->to, "note", x + 13, 78, name);
        x += 34 + 6.4 * (double)strlen(name);
    }
    fprintf(h->to, "<circle class=\"front\" cx=\"%.1f\" cy=\"74\" r=\"6\"/>\n",
            x + 4);
    qn_svg_text(h->to, "note", x + 15, 78, "none is better at both");
}

void qn_compare_write_svg(const struct qn_compare *c, FILE *to)
{
    struct chart *h = calloc(1, sizeof *h);
    if (h == NULL) {
        return;
    }
    h->c = c;
    h->to = to;
    qn_svg_begin(to, WIDTH, HEIGHT, "Latency against throughput",
                 "One point per topology: the latency of one acknowledged "
                 "broadcast and the rate of many in a row.");
    qn_svg_style(to,
                 ".small{font-size:10.5px}.front{fill:none;stroke:#222;"
                 "stroke-width:1.3}\n",
                 ".front{stroke:#e6e6e6}\n");
    qn_svg_printf(to, "title", 18, 34, "Acknowledged broadcasts on %s",
                  c->m->name);
    qn_svg_printf(to, "note", 18, 55,
                  "%u cores, predicted: left is low latency, up is high rate",
                  c->m->n);
    scale(h);
    draw_axes(h);
    draw_legend(h);
    draw_lines(h);
    draw_points(h);
    draw_labels(h);
    qn_svg_end(to);
    free(h);
}
