/*
 * Edges are bundled into one path per distance class and width, arrow heads
 * into one path per distance class, so that the file is small. route.h finds
 * the route of each edge.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/plot/plot.h"
#include "loadgen/topo/draw/picture_internal.h"
#include "loadgen/topo/draw/route.h"

#define WIDTHS      6u
#define WIDTH_LEAST 0.9
#define WIDTH_MOST  3.4
#define RADIUS      0.33 /* fraction of a core's square */

struct edge {
    uint16_t from, to;
    bool second; /* of a later pass that uses another tree */
    uint32_t width;
    enum qn_tie tie;
    double length; /* pixels, from center to center */
    struct qn_route way;
};

static enum qn_tie tie_of(const struct qn_machine *m, uint32_t u, uint32_t v)
{
    const struct qn_machine_core *a = &m->core[u], *b = &m->core[v];
    return a->phys == b->phys || a->cache == b->cache ? QN_TIE_CACHE
           : a->node == b->node                       ? QN_TIE_NODE
           : a->socket == b->socket                   ? QN_TIE_SOCKET
                                                      : QN_TIE_FAR;
}

void qn_picture_ties(const struct qn_picture *p, bool *seen)
{
    for (uint32_t i = 0; i < p->t->count; i++) {
        const struct qn_span *s = &p->t->span[i];
        seen[tie_of(p->m, s->core, s->peer)] = true;
    }
}

static double cost(const struct qn_machine *m, uint32_t u, uint32_t v)
{
    return qn_send_cost(m, u, v) + qn_receive_cost(m, u, v);
}

/* Each pair once, in the direction that comes first. @return the number of
 * edges. */
static uint32_t find_edges(const struct qn_picture *p, struct edge *edge,
                           bool *known)
{
    uint32_t count = 0, n = p->m->n;
    for (uint32_t i = 0; i < p->t->count; i++) {
        const struct qn_span *s = &p->t->span[i];
        if (s->send && !known[(size_t)s->core * n + s->peer]) {
            known[(size_t)s->core * n + s->peer] = true;
            known[(size_t)s->peer * n + s->core] = true;
            edge[count++] =
                (struct edge){.from = s->core,
                              .to = s->peer,
                              .second = s->phase > 0,
                              .tie = tie_of(p->m, s->core, s->peer)};
        }
    }
    return count;
}

/* Line widths by cost, between the cheapest and the most expensive edge of the
 * picture. */
static void weigh(const struct qn_picture *p, struct edge *edge, uint32_t count)
{
    double least = INFINITY, most = 0;
    for (uint32_t i = 0; i < count; i++) {
        double c = cost(p->m, edge[i].from, edge[i].to);
        least = QN_MIN(least, c);
        most = QN_MAX(most, c);
    }
    for (uint32_t i = 0; i < count; i++) {
        double c = cost(p->m, edge[i].from, edge[i].to);
        /* Costs within 10 % of each other count as equal. */
        double part = most > 1.1 * least ? (c - least) / (most - least) : 0.3;
        edge[i].width = (uint32_t)lround(part * (WIDTHS - 1));
    }
}

static int by_length(const void *a, const void *b)
{
    double x = ((const struct edge *)a)->length;
    double y = ((const struct edge *)b)->length;
    return (x > y) - (x < y);
}

/* Short edges first: they have the fewest alternatives. */
static int find_ways(const struct qn_layout *l, struct edge *edge,
                     uint32_t count)
{
    struct qn_router *r;
    int err = qn_router_create(&r, l, RADIUS * l->pitch);
    if (err != QN_OK) {
        return err;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct edge *e = &edge[i];
        edge[i].length =
            hypot(l->x[e->to] - l->x[e->from], l->y[e->to] - l->y[e->from]);
    }
    qsort(edge, count, sizeof *edge, by_length);
    for (uint32_t i = 0; i < count; i++) {
        (void)qn_router_find(r, edge[i].from, edge[i].to, &edge[i].way);
    }
    qn_router_destroy(r);
    return QN_OK;
}

static void draw_bows(const struct qn_layout *l, FILE *to,
                      const struct edge *edge, uint32_t count,
                      const struct edge *like)
{
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        const struct edge *e = &edge[i];
        if (e->tie != like->tie || e->width != like->width ||
            e->second != like->second) {
            continue;
        }
        if (!any) {
            double width = WIDTH_LEAST + like->width *
                                             (WIDTH_MOST - WIDTH_LEAST) /
                                             (WIDTHS - 1);
            fprintf(to, "<path class=\"edge %s%s\" stroke-width=\"%.1f\" d=\"",
                    qn_tie_class(like->tie), like->second ? " dash" : "",
                    width);
        }
        any = true;
        qn_route_write(&e->way, RADIUS * l->pitch, to);
    }
    fputs(any ? "\"/>\n" : "", to);
}

static void draw_heads(const struct qn_layout *l, FILE *to,
                       const struct edge *edge, uint32_t count, enum qn_tie tie)
{
    bool any = false;
    double size = QN_MIN(7.0, 0.17 * l->pitch);
    for (uint32_t i = 0; i < count; i++) {
        if (edge[i].tie != tie) {
            continue;
        }
        const struct qn_route *way = &edge[i].way;
        double x = way->x[way->count - 1], y = way->y[way->count - 1];
        double dx = x - way->x[way->count - 2];
        double dy = y - way->y[way->count - 2];
        double part = size / hypot(dx, dy);
        dx *= part;
        dy *= part;
        if (!any) {
            fprintf(to, "<path class=\"t%u\" d=\"", (unsigned)tie);
        }
        any = true;
        fprintf(to, "M%.1f %.1fL%.1f %.1f %.1f %.1fZ", x, y, x - dx - dy * 0.5,
                y - dy + dx * 0.5, x - dx + dy * 0.5, y - dy - dx * 0.5);
    }
    fputs(any ? "\"/>\n" : "", to);
}

/* Expensive edges first: the cheap ones, which are short, are drawn on top. */
static void draw_edges(const struct qn_layout *l, FILE *to,
                       const struct edge *edge, uint32_t count)
{
    for (uint32_t tie = QN_TIES; tie-- > 0;) {
        for (uint32_t width = WIDTHS; width-- > 0;) {
            struct edge like = {.tie = (enum qn_tie)tie, .width = width};
            draw_bows(l, to, edge, count, &like);
            like.second = true;
            draw_bows(l, to, edge, count, &like);
        }
    }
    for (uint32_t tie = QN_TIES; tie-- > 0;) {
        draw_heads(l, to, edge, count, (enum qn_tie)tie);
    }
}

/* As many of the names of a box as fit. */
static void draw_label(const struct qn_box *b, FILE *to)
{
    char text[QN_LAYOUT_LABEL];
    size_t fits = (size_t)QN_MAX((b->width - 12) / 5.6, 1);
    memcpy(text, b->label, sizeof text);
    while (strlen(text) > fits && strrchr(text, ',') != NULL) {
        *strrchr(text, ',') = '\0';
    }
    qn_svg_text(to, "label", b->x + 7, b->y + 14, text);
}

static void draw_boxes(const struct qn_layout *l, FILE *to)
{
    for (uint32_t i = 0; i < l->boxes; i++) {
        const struct qn_box *b = &l->box[i];
        fprintf(to,
                "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                "height=\"%.1f\" rx=\"%u\"/>\n",
                b->bare ? "bare" : "box", b->x, b->y, b->width, b->height,
                b->bare ? 12 : 5);
    }
}

static void draw_labels(const struct qn_layout *l, FILE *to)
{
    for (uint32_t i = 0; i < l->boxes; i++) {
        if (!l->box[i].bare) {
            draw_label(&l->box[i], to);
        }
    }
}

/* A core's number in its circle, with the time if it fits. */
static void draw_core(const struct qn_picture *p, const struct qn_layout *l,
                      FILE *to, uint32_t v)
{
    double r = RADIUS * l->pitch, x = l->x[v], y = l->y[v];
    double lo, hi;
    qn_picture_range(p, &lo, &hi);
    uint32_t step =
        qn_color_ramp_step(hi > lo ? (p->t->at[v] - lo) / (hi - lo) : 0);
    uint32_t os = p->m->core[v].os;
    double digits = os > 9999 ? 5 : os > 999 ? 4 : 3;
    bool times = r > 19;
    if (v == p->root) {
        fprintf(to,
                "<circle class=\"root\" cx=\"%.1f\" cy=\"%.1f\" "
                "r=\"%.1f\"/>\n",
                x, y, r + 2.6);
    }
    fprintf(to,
            "<circle class=\"core h%u\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>\n"
            "<text class=\"name o%u\" style=\"font-size:%.1fpx\" x=\"%.1f\" "
            "y=\"%.1f\">%u</text>\n",
            step, x, y, r, step, QN_MIN(13, 1.55 * r / (0.6 * digits)), x,
            y + (times ? -1 : 0.28 * r), os);
    if (times) {
        char label[QN_LABEL_MAX];
        qn_label_count(label, p->t->at[v]);
        fprintf(to,
                "<text class=\"when o%u\" style=\"font-size:9px\" x=\"%.1f\" "
                "y=\"%.1f\">%s</text>\n",
                step, x, y + 10, label);
    }
}

int qn_picture_tree(const struct qn_picture *p, const struct qn_layout *l,
                    FILE *to, double x, double y)
{
    uint32_t n = p->m->n;
    bool *known = calloc((size_t)n * n, sizeof *known);
    struct edge *edge = calloc((size_t)p->t->count + 1, sizeof *edge);
    if (known == NULL || edge == NULL) {
        free(known);
        free(edge);
        return QN_ENOMEM;
    }
    uint32_t count = find_edges(p, edge, known);
    weigh(p, edge, count);
    int err = find_ways(l, edge, count);
    if (err != QN_OK) {
        free(known);
        free(edge);
        return err;
    }
    fprintf(to, "<g transform=\"translate(%.1f %.1f)\">\n", x, y);
    draw_boxes(l, to);
    draw_edges(l, to, edge, count);
    draw_labels(l, to);
    for (uint32_t v = 0; v < n; v++) {
        draw_core(p, l, to, v);
    }
    fputs("</g>\n", to);
    free(known);
    free(edge);
    return QN_OK;
}
