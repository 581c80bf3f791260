/*
 * All bars of one kind are one path of horizontal strokes as thick as a row.
 * Each is a little shorter than its message, so that messages can be counted.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "loadgen/plot/plot.h"
#include "loadgen/topo/draw/picture_internal.h"

#define COLUMN_ROWS 64u
#define COLUMNS     4u
#define NAME_WIDTH  32.0
#define AXIS_HEIGHT 22.0
#define COLUMN_GAP  26.0

struct grid {
    uint32_t columns, rows; /* rows of a column */
    double row;             /* height */
    double column;          /* width, name included */
    double y;
    double last;               /* cycles at the right edge */
    uint16_t at[QN_CORES_MAX]; /* [n] row of each core */
};

static double row_height(uint32_t n)
{
    return n <= 32 ? 16 : n <= COLUMN_ROWS ? 14 : 12;
}

static uint32_t column_count(uint32_t n)
{
    return QN_MIN((n + COLUMN_ROWS - 1) / COLUMN_ROWS, COLUMNS);
}

double qn_picture_time_height(const struct qn_picture *p)
{
    uint32_t n = p->m->n, columns = column_count(n);
    uint32_t rows = (n + columns - 1) / columns;
    return AXIS_HEIGHT + rows * row_height(n);
}

struct rank {
    double at;
    double first; /* begin of its first message */
    uint16_t core;
};

static int by_time(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;
    if (x->at != y->at) {
        return x->at < y->at ? -1 : 1;
    }
    if (x->first != y->first) {
        return x->first < y->first ? -1 : 1;
    }
    return (x->core > y->core) - (x->core < y->core);
}

static void sort_rows(const struct qn_timeline *t, struct grid *g)
{
    struct rank rank[QN_CORES_MAX];
    for (uint32_t v = 0; v < t->n; v++) {
        rank[v] = (struct rank){t->at[v], t->end, (uint16_t)v};
    }
    for (uint32_t i = 0; i < t->count; i++) {
        struct rank *r = &rank[t->span[i].core];
        r->first = QN_MIN(r->first, t->span[i].begin);
    }
    qsort(rank, t->n, sizeof *rank, by_time);
    for (uint32_t i = 0; i < t->n; i++) {
        g->at[rank[i].core] = (uint16_t)i;
    }
}

static double column_x(const struct grid *g, uint32_t column)
{
    return QN_PICTURE_LEFT + column * (g->column + COLUMN_GAP);
}

static struct qn_scale scale(const struct grid *g, uint32_t column)
{
    double x = column_x(g, column);
    return (struct qn_scale){false, 0, g->last, x + NAME_WIDTH, x + g->column};
}

/* Middle of the row of a core; fills the scale of its column. */
static double row_y(const struct grid *g, uint32_t core, struct qn_scale *s)
{
    *s = scale(g, g->at[core] / g->rows);
    return g->y + AXIS_HEIGHT + (g->at[core] % g->rows + 0.5) * g->row;
}

static void draw_axes(const struct qn_picture *p, const struct grid *g,
                      FILE *to)
{
    for (uint32_t c = 0; c < g->columns; c++) {
        struct qn_scale s = scale(g, c);
        struct qn_ticks t;
        uint32_t rows = QN_MIN(g->rows, p->m->n - c * g->rows);
        double top = g->y + AXIS_HEIGHT - 4;
        double bottom = g->y + AXIS_HEIGHT + rows * g->row;
        qn_ticks_linear(&t, 0, g->last,
                        QN_MAX((uint32_t)((s.to - s.from) / 62), 2u));
        for (uint32_t i = 0; i < t.count; i++) {
            char label[QN_LABEL_MAX];
            double x = qn_scale_at(&s, t.at[i]);
            qn_label_count(label, t.at[i]);
            qn_svg_line(to, "grid", x, top, x, bottom);
            qn_svg_text(to, "tick mid", x, top - 5, label);
        }
        for (uint32_t i = 1; i < p->t->phases; i++) {
            if (p->t->phase[i].begin >= p->t->phase[i - 1].end) {
                double x = qn_scale_at(&s, p->t->phase[i].begin);
                qn_svg_line(to, "axis dash", x, top, x, bottom);
            }
        }
    }
}

static void draw_names(const struct qn_picture *p, const struct grid *g,
                       FILE *to)
{
    for (uint32_t v = 0; v < p->m->n; v++) {
        struct qn_scale s;
        double y = row_y(g, v, &s);
        qn_svg_printf(to, v == p->root ? "tick end strong" : "tick end",
                      s.from - 6, y + 4, "%u", p->m->core[v].os);
    }
}

static void draw_bars(const struct qn_picture *p, const struct grid *g,
                      FILE *to, bool send)
{
    double thick = g->row - 3;
    fprintf(to, "<path class=\"busy %s\" stroke-width=\"%.1f\" d=\"",
            send ? "c0" : "c1", thick);
    for (uint32_t i = 0; i < p->t->count; i++) {
        const struct qn_span *b = &p->t->span[i];
        struct qn_scale s;
        double y = row_y(g, b->core, &s);
        double from = qn_scale_at(&s, b->begin), end = qn_scale_at(&s, b->end);
        if (b->send == send) {
            double long_enough = end - from > 1.6 ? 0.7 : 0;
            fprintf(to, "M%.1f %.1fh%.1f", from, y,
                    QN_MAX(end - from - long_enough, 0.4));
        }
    }
    fputs("\"/>\n", to);
}

/* Write the number of the peer into each bar that has room for it. */
static void draw_peers(const struct qn_picture *p, const struct grid *g,
                       FILE *to)
{
    for (uint32_t i = 0; p->m->n <= 64 && i < p->t->count; i++) {
        const struct qn_span *b = &p->t->span[i];
        struct qn_scale s;
        double y = row_y(g, b->core, &s);
        double from = qn_scale_at(&s, b->begin), end = qn_scale_at(&s, b->end);
        if (end - from >= 17) {
            qn_svg_printf(to, "in", (from + end) / 2, y + 3.2, "%u",
                          p->m->core[b->peer].os);
        }
    }
}

static void draw_legend(const struct qn_picture *p, FILE *to, double width,
                        double y)
{
    double x = width - QN_PICTURE_LEFT;
    qn_svg_text(to, "head", QN_PICTURE_LEFT, y,
                "Busy cores over time (cycles)");
    qn_svg_text(to, "note end", x, y,
                p->m->n <= 64 ? "receives, with the other core's number"
                              : "receives");
    x -= p->m->n <= 64 ? 268 : 78;
    qn_svg_line(to, "bold c1", x, y - 4, x + 16, y - 4);
    x -= 14;
    qn_svg_text(to, "note end", x, y, "sends");
    x -= 60;
    qn_svg_line(to, "bold c0", x, y - 4, x + 16, y - 4);
}

/* Write the phases: "prepare 0 to 744, votes 345 to 1.91k, ..." */
static void draw_phases(const struct qn_picture *p, FILE *to, double y)
{
    char text[200] = "";
    for (uint32_t i = 0; i < p->t->phases; i++) {
        char from[QN_LABEL_MAX], end[QN_LABEL_MAX];
        size_t used = strlen(text);
        qn_label_count(from, p->t->phase[i].begin);
        qn_label_count(end, p->t->phase[i].end);
        (void)snprintf(text + used, sizeof text - used, "%s%s %s to %s",
                       i > 0 ? ", " : "", p->t->phase[i].name, from, end);
    }
    qn_svg_text(to, "note", QN_PICTURE_LEFT, y, text);
}

void qn_picture_time(const struct qn_picture *p, FILE *to, double width,
                     double y)
{
    struct grid g = {.columns = column_count(p->m->n),
                     .row = row_height(p->m->n),
                     .y = y,
                     .last = p->t->end > 0 ? p->t->end : 1};
    g.rows = (p->m->n + g.columns - 1) / g.columns;
    g.column = (width - 2 * QN_PICTURE_LEFT - (g.columns - 1) * COLUMN_GAP) /
               g.columns;
    sort_rows(p->t, &g);
    bool several = p->t->phases > 1;
    draw_legend(p, to, width, y - (several ? 26 : 8));
    if (several) {
        draw_phases(p, to, y - 7);
    }
    draw_axes(p, &g, to);
    draw_bars(p, &g, to, true);
    draw_bars(p, &g, to, false);
    draw_names(p, &g, to);
    draw_peers(p, &g, to);
}
