#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/topo/draw/route.h"
#include "tests/support/test.h"

#define RADIUS 20.0
#define PITCH  62.0

/* Rows of cores only: the layout has no boxes. */
static void rows(struct qn_layout *l, uint32_t columns, uint32_t count)
{
    *l = (struct qn_layout){.pitch = PITCH, .n = columns * count};
    l->width = columns * PITCH;
    l->height = count * PITCH;
    for (uint32_t v = 0; v < l->n; v++) {
        uint32_t row = v / columns, column = v % columns;
        l->x[v] = (column + 0.5) * PITCH;
        l->y[v] = (row + 0.5) * PITCH;
    }
}

static double distance_to(const struct qn_layout *l, uint32_t v, double x,
                          double y)
{
    return hypot(x - l->x[v], y - l->y[v]);
}

Test(route, no_edge_runs_behind_a_third_core)
{
    static struct qn_layout l;
    static const uint32_t shape[][2] = {{2, 1}, {10, 1}, {1, 10},
                                        {5, 4}, {10, 2}, {8, 8}};
    for (size_t s = 0; s < QN_ARRAY_COUNT(shape); s++) {
        rows(&l, shape[s][0], shape[s][1]);
        for (uint32_t i = 0; i<l.n * l.n; i += l.n> 20 ? 13 : 1) {
            uint32_t from = i / l.n, to = i % l.n;
            struct qn_router *r;
            struct qn_route way;
            if (from == to) {
                continue;
            }
            cr_assert_eq(qn_router_create(&r, &l, RADIUS), QN_OK);
            cr_assert_eq(qn_router_find(r, from, to, &way), 0,
                         "%u x %u: %u to %u", shape[s][0], shape[s][1], from,
                         to);
            qn_router_destroy(r);
        }
    }
}

/* Checks the points of the path itself, not the result of the router. */
Test(route, ends_are_on_the_circles_and_corners_outside_all_circles)
{
    static struct qn_layout l;
    struct qn_router *r;
    struct qn_route way;
    rows(&l, 10, 2);
    cr_assert_eq(qn_router_create(&r, &l, RADIUS), QN_OK);
    cr_assert_eq(qn_router_find(r, 0, 9, &way), 0);
    uint32_t last = way.count - 1;
    cr_assert_gt(way.count, 3, "no bow is free");
    cr_assert_float_eq(distance_to(&l, 0, way.x[0], way.y[0]), RADIUS, 0.01);
    cr_assert_float_eq(distance_to(&l, 9, way.x[last], way.y[last]),
                       RADIUS + 1.5, 0.01);
    for (uint32_t i = 0; i < last; i++) {
        for (int k = 0; k <= 100; k++) {
            double t = k / 100.0;
            double x = way.x[i] + t * (way.x[i + 1] - way.x[i]);
            double y = way.y[i] + t * (way.y[i + 1] - way.y[i]);
            for (uint32_t v = 1; v < l.n; v++) {
                cr_assert(v == 9 || distance_to(&l, v, x, y) > RADIUS,
                          "core %u at %.0f %.0f", v, x, y);
            }
        }
    }
    qn_router_destroy(r);
}

Test(route, neighbours_are_joined_by_a_bow)
{
    static struct qn_layout l;
    struct qn_router *r;
    struct qn_route way;
    rows(&l, 3, 3);
    cr_assert_eq(qn_router_create(&r, &l, RADIUS), QN_OK);
    cr_assert_eq(qn_router_find(r, 4, 5, &way), 0);
    cr_assert_eq(way.count, 3);
    qn_router_destroy(r);
}

/* Nine edges of one core to the others of its row: no two share a route. */
Test(route, edges_do_not_overlap)
{
    static struct qn_layout l;
    struct qn_router *r;
    struct qn_route way[3];
    rows(&l, 10, 3);
    cr_assert_eq(qn_router_create(&r, &l, RADIUS), QN_OK);
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_eq(qn_router_find(r, 10, 17 + i, &way[i]), 0);
        for (uint32_t k = 0; k < i; k++) {
            cr_assert_gt(fabs(way[i].y[1] - way[k].y[1]), 2,
                         "%u and %u leave core 10 on one route", i, k);
        }
    }
    qn_router_destroy(r);
}

Test(route, is_written_as_one_path)
{
    const struct qn_route bow = {3, {0, 10, 20}, {0, 10, 0}};
    const struct qn_route way = {4, {0, 100, 100, 200}, {0, 0, 100, 100}};
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    qn_route_write(&bow, 10, out);
    fputc(' ', out);
    qn_route_write(&way, 10, out);
    fclose(out);
    cr_assert_str_eq(text,
                     "M0.0 0.0Q10.0 10.0 20.0 0.0 "
                     "M0.0 0.0L93.0 0.0Q100.0 0.0 100.0 7.0"
                     "L100.0 93.0Q100.0 100.0 107.0 100.0L200.0 100.0",
                     "%s", text);
    free(text);
}
