/*
 * Layout:
 *
 *     title, note
 *     send               receive
 *     +-----+-----+      +-----+-----+     group labels above and left
 *     | 0,0 | 0,1 |      |     |     |
 *     +-----+-----+      +-----+-----+
 *     |     |     |      |     |     |
 *     +-----+-----+      +-----+-----+
 *     [h0][h1]...[h8]    [h0] ... cycles   a legend per map, as ranges differ
 *
 * One path per step of the ramp, in cells as units: runs of equal steps in a
 * row are one rectangle. So 256 cores take a few hundred kilobytes, and a
 * machine with equal caches a tenth of that.
 *
 * Nine steps between least and most: equal ratios if the most is more than
 * three times the least, else equal differences. The legend shows the limits.
 */
#include "loadgen/machine/heatmap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/machine/grouping.h"
#include "loadgen/plot/plot.h"

enum {
    SIDE = 640,   /* approximate pixels of a map of many cores */
    LARGEST = 40, /* pixels of a cell, at most */
    LEFT = 78,
    TOP = 150,
    GAP = 92,  /* between the maps; holds the labels of the second */
    BELOW = 96 /* legend */
};

struct map {
    const struct qn_machine *m;
    const uint32_t *order; /* [n] */
    uint8_t *step;         /* [n*n] step of each cell; 255: the diagonal */
    const double *cost;
    const char *title, *note;
    double x, y, cell;
    double lo, hi;
    bool log;
};

#define NO_STEP 255u

/* Smallest ratio of most to least in a legend. A smaller ratio is noise and
 * must not look like a difference. */
#define LEAST_RANGE 1.25

static double cost_at(const struct map *p, uint32_t row, uint32_t column)
{
    return p->cost[(size_t)p->order[row] * p->m->n + p->order[column]];
}

static void find_range(struct map *p)
{
    p->lo = HUGE_VAL;
    p->hi = 0;
    for (uint32_t i = 0; i < p->m->n; i++) {
        for (uint32_t j = 0; j < p->m->n; j++) {
            if (i != j) {
                p->lo = QN_MIN(p->lo, cost_at(p, i, j));
                p->hi = QN_MAX(p->hi, cost_at(p, i, j));
            }
        }
    }
    p->hi = QN_MAX(p->hi, LEAST_RANGE * p->lo);
    p->log = p->hi > 3 * p->lo;
}

static double part_of(const struct map *p, double cost)
{
    return p->log ? log(cost / p->lo) / log(p->hi / p->lo)
                  : (cost - p->lo) / (p->hi - p->lo);
}

/* Cost at a fraction of the ramp. */
static double cost_of(const struct map *p, double part)
{
    return p->log ? p->lo * pow(p->hi / p->lo, part)
                  : p->lo + (p->hi - p->lo) * part;
}

static void find_steps(struct map *p)
{
    uint32_t n = p->m->n;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++) {
            p->step[(size_t)i * n + j] =
                i == j
                    ? NO_STEP
                    : (uint8_t)qn_color_ramp_step(part_of(p, cost_at(p, i, j)));
        }
    }
}

/* ---- cells ---- */

static void draw_runs(const struct map *p, uint32_t step, FILE *to)
{
    uint32_t n = p->m->n;
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *row = p->step + (size_t)i * n;
        for (uint32_t j = 0; j < n;) {
            uint32_t end = j + 1;
            while (end < n && row[end] == row[j]) {
                end++;
            }
            if (row[j] == step) {
                (void)fprintf(to, "M%u %uh%uv1h-%uz", j, i, end - j, end - j);
            }
            j = end;
        }
    }
}

static void draw_cells(const struct map *p, FILE *to)
{
    (void)fprintf(to,
                  "<g transform=\"translate(%.2f %.2f) scale(%.4f)\" "
                  "shape-rendering=\"crispEdges\">\n",
                  p->x, p->y, p->cell);
    for (uint32_t s = 0; s < QN_COLOR_RAMP_STEPS; s++) {
        size_t n = (size_t)p->m->n * p->m->n;
        if (memchr(p->step, (int)s, n) != NULL) {
            (void)fprintf(to, "<path class=\"h%u\" d=\"", s);
            draw_runs(p, s, to);
            (void)fputs("\"/>\n", to);
        }
    }
    (void)fputs("</g>\n", to);
}

static void draw_values(const struct map *p, FILE *to)
{
    for (uint32_t i = 0; i < p->m->n; i++) {
        for (uint32_t j = 0; j < p->m->n; j++) {
            char class[16];
            if (i == j) {
                continue;
            }
            (void)snprintf(class, sizeof class, "tick mid o%u",
                           p->step[(size_t)i * p->m->n + j]);
            qn_svg_printf(to, class, p->x + (j + 0.5) * p->cell,
                          p->y + (i + 0.5) * p->cell + 4, "%.0f",
                          cost_at(p, i, j));
        }
    }
}

/* Strike out each cell whose pair did not repeat. */
static void draw_unstable(const struct map *p, FILE *to)
{
    for (uint32_t i = 0; i < p->m->n; i++) {
        for (uint32_t j = 0; j < p->m->n; j++) {
            if (qn_machine_unstable(p->m, p->order[i], p->order[j])) {
                double x = p->x + j * p->cell, y = p->y + i * p->cell;
                qn_svg_line(to, "thin ink", x + 1, y + p->cell - 1,
                            x + p->cell - 1, y + 1);
            }
        }
    }
}

/* ---- groups ---- */

/* Coarsest level that differs between place i and the one before. */
enum border { NONE, CACHE, NODE, SOCKET };

static enum border border_at(const struct map *p, uint32_t i)
{
    const struct qn_machine_core *a = &p->m->core[p->order[i - 1]];
    const struct qn_machine_core *b = &p->m->core[p->order[i]];
    return a->socket != b->socket ? SOCKET
           : a->node != b->node   ? NODE
           : a->cache != b->cache ? CACHE
                                  : NONE;
}

static void draw_borders(const struct map *p, FILE *to)
{
    static const char *const classes[] = {"", "grid", "axis", "axis bold"};
    double end = p->m->n * p->cell;
    qn_svg_line(to, "axis", p->x, p->y, p->x + end, p->y);
    qn_svg_line(to, "axis", p->x, p->y, p->x, p->y + end);
    qn_svg_line(to, "axis", p->x + end, p->y, p->x + end, p->y + end);
    qn_svg_line(to, "axis", p->x, p->y + end, p->x + end, p->y + end);
    for (uint32_t i = 1; i < p->m->n; i++) {
        enum border b = border_at(p, i);
        if (b != NONE) {
            double at = i * p->cell;
            qn_svg_line(to, classes[b], p->x + at, p->y, p->x + at, p->y + end);
            qn_svg_line(to, classes[b], p->x, p->y + at, p->x + end, p->y + at);
        }
    }
}

/* Labels of groups of one kind, if there are several and they fit. */
static void label_groups(const struct map *p, enum border kind, double off,
                         FILE *to)
{
    static const char *const names[] = {"", "cache", "node", "socket"};
    static const char *const brief[] = {"", "c", "n", "s"};
    for (uint32_t i = 0; i < p->m->n;) {
        uint32_t end = i + 1;
        while (end < p->m->n && border_at(p, end) < kind) {
            end++;
        }
        const struct qn_machine_core *c = &p->m->core[p->order[i]];
        uint32_t label = kind == SOCKET ? c->socket
                         : kind == NODE ? c->node
                                        : c->cache;
        double size = (end - i) * p->cell, mid = (i + end) / 2.0 * p->cell;
        const char *name = size >= 62 ? names[kind] : brief[kind];
        if (size >= 22) {
            qn_svg_printf(to, "tick mid", p->x + mid, p->y - off, "%s %u", name,
                          label);
            qn_svg_printf(to, "tick end", p->x - off, p->y + mid + 4, "%s %u",
                          brief[kind], label);
        }
        i = end;
    }
}

static void label_cores(const struct map *p, FILE *to)
{
    for (uint32_t i = 0; i < p->m->n; i++) {
        double mid = (i + 0.5) * p->cell;
        uint32_t os = p->m->core[p->order[i]].os;
        qn_svg_printf(to, "tick mid", p->x + mid, p->y - 6, "%u", os);
        qn_svg_printf(to, "tick end", p->x - 6, p->y + mid + 4, "%u", os);
    }
}

static void draw_labels(const struct map *p, FILE *to)
{
    struct qn_grouping_counts c;
    double off = 6;
    qn_grouping_count(p->m, &c);
    if (p->cell >= 20) {
        label_cores(p, to);
        off += 22;
    }
    if (c.caches > 1 && c.caches != c.nodes) {
        label_groups(p, CACHE, off, to);
        off += 14;
    }
    if (c.nodes > 1 && c.nodes != c.sockets) {
        label_groups(p, NODE, off, to);
        off += 14;
    }
    if (c.sockets > 1) {
        label_groups(p, SOCKET, off, to);
    }
}

/* ---- the picture ---- */

static void draw_legend(const struct map *p, FILE *to)
{
    double width = QN_MAX(p->m->n * p->cell, 380.0) / QN_COLOR_RAMP_STEPS;
    double y = p->y + p->m->n * p->cell + 24;
    for (uint32_t s = 0; s < QN_COLOR_RAMP_STEPS; s++) {
        char class[8];
        (void)snprintf(class, sizeof class, "h%u", s);
        qn_svg_rect(to, class, p->x + s * width, y, width, 14);
    }
    for (uint32_t s = 0; s <= QN_COLOR_RAMP_STEPS; s++) {
        double cost = cost_of(p, (double)s / QN_COLOR_RAMP_STEPS);
        qn_svg_printf(to, "tick mid", p->x + s * width, y + 28, "%.*f",
                      cost < 99.95 ? 1 : 0, cost);
    }
    qn_svg_text(to, "tick", p->x, y + 44, p->note);
}

static int draw_map(struct map *p, FILE *to)
{
    p->step = malloc((size_t)p->m->n * p->m->n);
    if (p->step == NULL) {
        return QN_ENOMEM;
    }
    find_range(p);
    find_steps(p);
    qn_svg_text(to, "head", p->x, p->y - 66, p->title);
    draw_cells(p, to);
    if (p->cell >= 30) {
        draw_values(p, to);
    }
    if (p->cell >= 5) {
        draw_unstable(p, to);
    }
    draw_borders(p, to);
    draw_labels(p, to);
    draw_legend(p, to);
    free(p->step);
    return QN_OK;
}

static void draw_head(const struct qn_machine *m, FILE *to)
{
    struct qn_grouping_counts c;
    const struct qn_machine_facts *f = &m->facts;
    qn_grouping_count(m, &c);
    qn_svg_text(to, "title", 24, 32, m->name[0] != '\0' ? m->name : "machine");
    qn_svg_printf(to, "note", 24, 51,
                  "%s%scores %u, sockets %u, memory nodes %u, caches %u%s%s",
                  f->cpu, f->cpu[0] != '\0' ? "; " : "", m->n, c.sockets,
                  c.nodes, c.caches, f->measured[0] != '\0' ? "; " : "",
                  f->measured);
    uint32_t unstable = qn_machine_unstable_pairs(m);
    if (unstable > 0) {
        qn_svg_printf(to, "note strong", 24, 68,
                      "%u of %u pairs did not repeat%s", unstable,
                      m->n * (m->n - 1) / 2, ": crossed out");
    }
}

int qn_heatmap_write(const struct qn_machine *m, FILE *to)
{
    uint32_t *order = malloc(m->n * sizeof *order);
    if (order == NULL) {
        return QN_ENOMEM;
    }
    qn_grouping_order(m, order);
    double cell = QN_MIN((double)SIDE / m->n, (double)LARGEST);
    double side = QN_MAX(cell * m->n, 380.0);
    qn_svg_begin(to, 2 * side + LEFT + GAP + 40, TOP + cell * m->n + BELOW,
                 m->name,
                 "Cost of a message between each pair of cores: the time that "
                 "the sender and the receiver are busy with it.");
    qn_svg_color_ramp(to);
    draw_head(m, to);
    struct map p = {.m = m,
                    .order = order,
                    .cost = m->send,
                    .title = "send: from row to column",
                    .note = "cycles that the sender is busy per message",
                    .x = LEFT,
                    .y = TOP,
                    .cell = cell};
    int err = draw_map(&p, to);
    p.cost = m->receive;
    p.title = "receive: in column, from row";
    p.note = "cycles that the receiver is busy per message";
    p.x += side + GAP;
    err = err != QN_OK ? err : draw_map(&p, to);
    qn_svg_end(to);
    free(order);
    return err;
}
