#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/topo/draw/layout.h"
#include "tests/support/test.h"
#include "tests/unit/core/topo/world.h"

static bool inside(const struct qn_box *in, const struct qn_box *out)
{
    return in->x >= out->x && in->y >= out->y &&
           in->x + in->width <= out->x + out->width + 1e-6 &&
           in->y + in->height <= out->y + out->height + 1e-6;
}

static bool apart(const struct qn_box *a, const struct qn_box *b)
{
    return a->x + a->width <= b->x + 1e-6 || b->x + b->width <= a->x + 1e-6 ||
           a->y + a->height <= b->y + 1e-6 || b->y + b->height <= a->y + 1e-6;
}

/* The square of a core. */
static struct qn_box square(const struct qn_layout *l, uint32_t v)
{
    return (struct qn_box){.x = l->x[v] - l->pitch / 2,
                           .y = l->y[v] - l->pitch / 2,
                           .width = l->pitch,
                           .height = l->pitch};
}

static void must_be_tidy(const struct qn_layout *l)
{
    const struct qn_box page = {.width = l->width, .height = l->height};
    for (uint32_t i = 0; i < l->boxes; i++) {
        const struct qn_box *a = &l->box[i];
        cr_assert(inside(a, &page), "%s is on the page", a->label);
        cr_assert(inside(a, &l->box[a->parent]), "%s is in its box", a->label);
        for (uint32_t j = i + 1; j < l->boxes; j++) {
            const struct qn_box *b = &l->box[j];
            cr_assert(apart(a, b) || (inside(b, a) && b->depth > a->depth),
                      "%s and %s", a->label, b->label);
        }
    }
    for (uint32_t v = 0; v < l->n; v++) {
        struct qn_box a = square(l, v);
        cr_assert(inside(&a, &page), "core %u is on the page", v);
        for (uint32_t i = 0; i < l->boxes; i++) {
            cr_assert(apart(&a, &l->box[i]) || inside(&a, &l->box[i]),
                      "core %u crosses %s", v, l->box[i].label);
        }
        for (uint32_t u = 0; u < v; u++) {
            struct qn_box b = square(l, u);
            cr_assert(apart(&a, &b), "cores %u and %u", u, v);
        }
    }
}

static void try(const struct qn_machine *m, double width)
{
    struct qn_layout *l = NULL;
    cr_assert_eq(qn_layout_create(&l, m, width, 30), QN_OK);
    must_be_tidy(l);
    qn_layout_destroy(l);
}

Test(layout, nothing_overlaps_on_recorded_machines)
{
    for (uint32_t i = 0; i < RECORDED; i++) {
        struct qn_machine *m = recorded(recorded_names[i]);
        try(m, 1128);
        try(m, 200);
        qn_machine_destroy(m);
    }
}

Test(layout, nothing_overlaps_for_any_groups)
{
    uint32_t x = 1;
    for (uint32_t i = 0; i < 300; i++) {
        uint32_t n = 1 + i % 70;
        struct qn_machine *m = uniform(n, 1, 1, 1);
        for (uint32_t v = 0; v < n; v++) {
            x = x * 1664525U + 1013904223U;
            m->core[v].socket = (x >> 28) % (1 + i % 5);
            m->core[v].node = (x >> 20) % (1 + i % 7);
            m->core[v].cache = (x >> 12) % (1 + i % 9);
            m->core[v].phys = i % 2 ? v / 2 : (x >> 8) % n;
        }
        try(m, 1128);
        qn_machine_destroy(m);
    }
}

/* The innermost box that contains core v. */
static const char *home(const struct qn_layout *l, uint32_t v)
{
    const char *label = "";
    struct qn_box a = square(l, v);
    for (uint32_t i = 0; i < l->boxes; i++) {
        label = inside(&a, &l->box[i]) ? l->box[i].label : label;
    }
    return label;
}

Test(layout, levels_that_split_nothing_share_a_box)
{
    struct qn_machine *m = uniform(8, 1, 1, 4);
    struct qn_layout *l = NULL;
    for (uint32_t v = 0; v < 8; v++) {
        m->core[v].cache = v / 2;
        m->core[v].phys = v;
    }
    cr_assert_eq(qn_layout_create(&l, m, 1128, 30), QN_OK);
    cr_assert_eq(l->boxes, 6, "%u", l->boxes);
    cr_assert_str_eq(home(l, 0), "cache 0");
    cr_assert_str_eq(home(l, 7), "cache 3");
    cr_assert_str_eq(l->box[0].label, "socket 0, node 0");
    qn_layout_destroy(l);
    qn_machine_destroy(m);
}

Test(layout, the_coarser_level_is_outside)
{
    struct qn_machine *m = uniform(8, 1, 1, 8);
    struct qn_layout *l = NULL;
    for (uint32_t v = 0; v < 8; v++) {
        m->core[v].cache = v / 4; /* a cache spans two memory nodes */
        m->core[v].node = v / 2;
        m->core[v].phys = v;
    }
    cr_assert_eq(qn_layout_create(&l, m, 1128, 30), QN_OK);
    cr_assert_str_eq(l->box[0].label, "socket 0");
    cr_assert_str_eq(l->box[1].label, "cache 0");
    cr_assert_str_eq(home(l, 7), "node 3");
    qn_layout_destroy(l);
    qn_machine_destroy(m);
}
