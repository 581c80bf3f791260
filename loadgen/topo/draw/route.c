/*
 * The plane is a grid of small squares. Each one records which circle covers it
 * and how many edges run through it. A route is evaluated point by point, so
 * its cost is a count of squares. That is coarse and simple, and independent of
 * the number of edges and cores.
 */
#include "loadgen/topo/draw/route.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"

#define CELL    2.0 /* pixels, side of a square */
#define CLEAR   2.5 /* pixels around a circle that belong to it */
#define MARGIN  8.0 /* pixels around everything */
#define NO_CORE UINT16_MAX

/* Costs, in pixels of detour. */
#define COST_CIRCLE 400.0
#define COST_EDGE   6.0
#define COST_OUT    400.0
#define COST_ROUTE  40.0 /* a bow is easier to follow */

struct qn_router {
    const struct qn_layout *l;
    double radius;
    uint32_t columns, rows;
    uint16_t *core; /* index of the core whose circle covers it; NO_CORE */
    uint8_t *edge;  /* number of edges through it */
};

struct point {
    double x, y;
};

/* The square at a point; false if the point is outside the grid. */
static bool cell_at(const struct qn_router *r, struct point p, size_t *cell)
{
    double x = (p.x + MARGIN) / CELL, y = (p.y + MARGIN) / CELL;
    if (x < 0 || y < 0 || x >= r->columns || y >= r->rows) {
        return false;
    }
    *cell = (size_t)y * r->columns + (size_t)x;
    return true;
}

static void mark_circle(struct qn_router *r, uint32_t v)
{
    double reach = r->radius + CLEAR;
    int steps = (int)(reach / (CELL / 2));
    for (int i = -steps; i <= steps; i++) {
        for (int k = -steps; k <= steps; k++) {
            double dx = k * CELL / 2, dy = i * CELL / 2;
            size_t cell;
            struct point p = {r->l->x[v] + dx, r->l->y[v] + dy};
            if (hypot(dx, dy) <= reach && cell_at(r, p, &cell)) {
                r->core[cell] = (uint16_t)v;
            }
        }
    }
}

int qn_router_create(struct qn_router **out, const struct qn_layout *l,
                     double radius)
{
    struct qn_router *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return QN_ENOMEM;
    }
    r->l = l;
    r->radius = radius;
    r->columns = (uint32_t)((l->width + 2 * MARGIN) / CELL) + 1;
    r->rows = (uint32_t)((l->height + 2 * MARGIN) / CELL) + 1;
    size_t cells = (size_t)r->columns * r->rows;
    r->core = malloc(cells * sizeof *r->core);
    r->edge = calloc(cells, sizeof *r->edge);
    if (r->core == NULL || r->edge == NULL) {
        qn_router_destroy(r);
        return QN_ENOMEM;
    }
    for (size_t i = 0; i < cells; i++) {
        r->core[i] = NO_CORE;
    }
    for (uint32_t v = 0; v < l->n; v++) {
        mark_circle(r, v);
    }
    *out = r;
    return QN_OK;
}

void qn_router_destroy(struct qn_router *r)
{
    if (r != NULL) {
        free(r->core);
        free(r->edge);
        free(r);
    }
}

/* ---- cost of a route ---- */

static struct point point_of(const struct qn_route *way, uint32_t i)
{
    return (struct point){way->x[i], way->y[i]};
}

static double distance(struct point a, struct point b)
{
    return hypot(b.x - a.x, b.y - a.y);
}

static struct point between(struct point a, struct point b, double part)
{
    return (struct point){a.x + (b.x - a.x) * part, a.y + (b.y - a.y) * part};
}

/* State of a walk along a route. */
struct walk {
    struct qn_router *r;
    uint32_t from, to;
    bool marks;       /* record the route in the grid, else only evaluate */
    uint16_t last;    /* third circle that the walk is in; NO_CORE */
    size_t cell;      /* square of the last point */
    uint32_t circles; /* third circles entered */
    double cost;
};

static void look(struct walk *w, size_t cell, struct point p)
{
    struct qn_router *r = w->r;
    const struct qn_layout *l = r->l;
    uint16_t core = r->core[cell];
    bool third = core != NO_CORE && core != w->from && core != w->to;
    /* Edges of one core inevitably meet beside it. */
    struct point a = {l->x[w->from], l->y[w->from]};
    struct point b = {l->x[w->to], l->y[w->to]};
    bool near = QN_MIN(distance(p, a), distance(p, b)) < 1.5 * r->radius;
    if (third && core != w->last) {
        w->circles++;
        w->cost += COST_CIRCLE;
    }
    w->last = third ? core : NO_CORE;
    w->cost += near ? 0 : COST_EDGE * QN_MIN(r->edge[cell], 4);
    if (w->marks && r->edge[cell] < UINT8_MAX) {
        r->edge[cell]++;
    }
}

static void step_to(struct walk *w, struct point p)
{
    size_t cell;
    if (!cell_at(w->r, p, &cell)) {
        w->cost += COST_OUT;
    } else if (cell != w->cell) {
        look(w, cell, p);
        w->cell = cell;
    }
}

static void walk_line(struct walk *w, struct point a, struct point b)
{
    double len = distance(a, b);
    uint32_t steps = (uint32_t)(len / (CELL / 2)) + 1;
    w->cost += len;
    for (uint32_t i = 0; i < steps; i++) {
        step_to(w, between(a, b, (double)i / steps));
    }
}

static void walk(struct walk *w, const struct qn_route *way)
{
    w->last = NO_CORE;
    w->cell = SIZE_MAX;
    if (way->count > 3) {
        w->cost += COST_ROUTE;
        for (uint32_t i = 1; i < way->count; i++) {
            walk_line(w, point_of(way, i - 1), point_of(way, i));
        }
        return;
    }
    struct point a = point_of(way, 0), b = point_of(way, 1);
    struct point c = point_of(way, 2), before = a;
    enum { PIECES = 12 };
    for (uint32_t i = 1; i <= PIECES; i++) {
        double t = (double)i / PIECES;
        struct point p = between(between(a, b, t), between(b, c, t), t);
        walk_line(w, before, p);
        before = p;
    }
}

/* ---- candidates ---- */

/* A route between two centers through other points; its ends move to the edges
 * of the circles. */
static struct qn_route make(const struct qn_router *r, uint32_t from,
                            uint32_t to, const struct point *via,
                            uint32_t count)
{
    struct qn_route way = {.count = count + 2};
    struct point a = {r->l->x[from], r->l->y[from]};
    struct point b = {r->l->x[to], r->l->y[to]};
    struct point first = between(a, via[0], r->radius / distance(a, via[0]));
    struct point last = between(
        b, via[count - 1], (r->radius + 1.5) / distance(b, via[count - 1]));
    way.x[0] = first.x;
    way.y[0] = first.y;
    for (uint32_t i = 0; i < count; i++) {
        way.x[i + 1] = via[i].x;
        way.y[i + 1] = via[i].y;
    }
    way.x[count + 1] = last.x;
    way.y[count + 1] = last.y;
    return way;
}

/* The best route so far. */
struct best {
    struct qn_router *r;
    uint32_t from, to;
    double cost;
    uint32_t circles;
    struct qn_route way;
};

static void offer(struct best *b, const struct point *via, uint32_t count)
{
    struct qn_route way = make(b->r, b->from, b->to, via, count);
    struct walk w = {.r = b->r, .from = b->from, .to = b->to};
    walk(&w, &way);
    if (w.cost < b->cost) {
        b->cost = w.cost;
        b->circles = w.circles;
        b->way = way;
    }
}

/* Left of the direction first, so that the two edges between the same rows do
 * not overlap. */
static void offer_bows(struct best *b, struct point p, struct point q)
{
    static const double part[] = {0.14, 0.24, 0.36, 0.5};
    double dx = q.x - p.x, dy = q.y - p.y, len = hypot(dx, dy);
    for (uint32_t i = 0; i < 2 * QN_ARRAY_COUNT(part); i++) {
        uint32_t nth = i / 2;
        double off = QN_MIN(part[nth] * len, 46.0 + 12 * nth);
        off *= i % 2 == 0 ? 1 : -1;
        struct point via = {(p.x + q.x) / 2 + dy / len * off,
                            (p.y + q.y) / 2 - dx / len * off};
        offer(b, &via, 1);
    }
}

static struct point swap(struct point p, bool is)
{
    return is ? (struct point){p.y, p.x} : p;
}

/* Out of a row into the gutter beside it, along it, and in again; into another
 * row through a gutter between columns. `turned`: rows are columns. */
static void offer_gutters(struct best *b, struct point p, struct point q,
                          double pitch, bool turned)
{
    static const double lane[] = {0.5, 0.42, 0.58};
    p = swap(p, turned);
    q = swap(q, turned);
    double way = q.x >= p.x ? 1 : -1, slant = 0.3 * pitch;
    for (uint32_t i = 0; i < 4 * QN_ARRAY_COUNT(lane); i++) {
        double off = lane[i / 4] * pitch;
        double y = p.y + (i % 2 == 0 ? -off : off);
        double x = q.x + (i % 4 < 2 ? -off : off) * way;
        double in = q.y >= y ? -slant : slant;
        bool same = fabs(q.y - p.y) < 1;
        struct point via[3] = {{p.x + way * slant, y},
                               {same ? q.x - way * slant : x, y},
                               {x, q.y + in}};
        for (uint32_t k = 0; k < 3; k++) {
            via[k] = swap(via[k], turned);
        }
        offer(b, via, same ? 2 : 3);
    }
}

uint32_t qn_router_find(struct qn_router *r, uint32_t from, uint32_t to,
                        struct qn_route *out)
{
    const struct qn_layout *l = r->l;
    struct point p = {l->x[from], l->y[from]}, q = {l->x[to], l->y[to]};
    struct best b = {.r = r, .from = from, .to = to, .cost = INFINITY};
    offer_bows(&b, p, q);
    offer_gutters(&b, p, q, l->pitch, false);
    offer_gutters(&b, p, q, l->pitch, true);
    struct walk w = {.r = r, .from = from, .to = to, .marks = true};
    walk(&w, &b.way);
    *out = b.way;
    return b.circles;
}

void qn_route_write(const struct qn_route *way, double radius, FILE *to)
{
    uint32_t last = way->count - 1;
    fprintf(to, "M%.1f %.1f", way->x[0], way->y[0]);
    for (uint32_t i = 1; i < last; i++) {
        struct point a = point_of(way, i - 1), b = point_of(way, i);
        struct point c = point_of(way, i + 1);
        double in = distance(a, b), on = distance(b, c);
        double round = QN_MIN(QN_MIN(in, on) / 2, 0.7 * radius);
        struct point from = between(b, a, round / in);
        struct point end = way->count == 3 ? c : between(b, c, round / on);
        if (way->count > 3) {
            fprintf(to, "L%.1f %.1f", from.x, from.y);
        }
        fprintf(to, "Q%.1f %.1f %.1f %.1f", b.x, b.y, end.x, end.y);
    }
    if (way->count > 3) {
        fprintf(to, "L%.1f %.1f", way->x[last], way->y[last]);
    }
}
