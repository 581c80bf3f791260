#include "core/plan/exact/transfer_edges.h"

#include <math.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/topo/predict.h"
#include "tests/support/test.h"
#include "tests/unit/core/topo/world.h"

/* Naive second version: every ordered tree, priced as a broadcast is. */
#define CORES 6u

struct all {
    const struct qn_machine *m;
    uint32_t root;
    double tail[CORES];
    double limit;
    double least;       /* until all tails are over */
    double idle[CORES]; /* least, of the trees within the limit */
};

static void examine(struct all *x, const struct qn_edges *e)
{
    struct qn_shape s;
    double idle[CORES], worst = 0;
    cr_assert_eq(qn_shape_from_edges(&s, e, x->root), QN_OK);
    (void)qn_predict_broadcast(x->m, &s, NULL, idle);
    for (uint32_t v = 0; v < x->m->n; v++) {
        worst = fmax(worst, idle[v] + x->tail[v]);
    }
    x->least = fmin(x->least, worst);
    for (uint32_t v = 0; v < x->m->n && worst <= x->limit; v++) {
        x->idle[v] = fmin(x->idle[v], idle[v]);
    }
}

/* The lowest core that may still send informs somebody, or stops. */
static void every_tree(struct all *x, struct qn_edges *e, uint32_t in,
                       uint32_t stopped)
{
    uint32_t senders = in & ~stopped;
    if (in == (1U << x->m->n) - 1) {
        examine(x, e);
    }
    if (senders == 0 || in == (1U << x->m->n) - 1) {
        return;
    }
    uint32_t u = (uint32_t)__builtin_ctz(senders);
    for (uint32_t v = 0; v < x->m->n; v++) {
        if ((in >> v & 1) == 0) {
            qn_edges_add(e, u, v);
            every_tree(x, e, in | 1U << v, stopped);
            e->count--;
        }
    }
    every_tree(x, e, in, stopped | 1U << u);
}

static void enumerate(struct all *x)
{
    struct qn_edges e;
    qn_edges_init(&e, x->m->n);
    x->least = HUGE_VAL;
    for (uint32_t v = 0; v < x->m->n; v++) {
        x->idle[v] = HUGE_VAL;
    }
    every_tree(x, &e, 1U << x->root, 0);
}

static void expect_close(double got, double wanted)
{
    cr_expect(fabs(got - wanted) <= 1e-9 * wanted, "%g, should be %g", got,
              wanted);
}

/* The tree that was priced costs what it was priced at. */
static void expect_tree(const struct all *x, const struct qn_transfer_edges *h,
                        const struct qn_transfer_edge_list *list, double price,
                        const double *idle)
{
    struct qn_shape s;
    double real[CORES], worst = 0;
    qn_transfer_edge_tree(h, list, x->root, &s);
    (void)qn_predict_broadcast(x->m, &s, NULL, real);
    for (uint32_t v = 0; v < x->m->n; v++) {
        expect_close(idle[v], real[v]);
        worst = fmax(worst, real[v] + x->tail[v]);
    }
    expect_close(worst, price);
}

/* One step: what is left is priced, trimmed, and a tail grows. @return Whether
 * anything was left. */
static bool step(struct all *x, struct qn_transfer_edges *h,
                 struct qn_transfer_edge_list *list, double factor)
{
    double idle[CORES], before = x->limit;
    enumerate(x);
    double price = qn_transfer_edge_price(h, list, x->tail, idle);
    if (x->least > before) {
        cr_expect_gt(price, before);
        return false;
    }
    expect_close(price, x->least);
    expect_tree(x, h, list, price, idle);
    x->limit = fmin(x->least * factor, before);
    enumerate(x);
    qn_transfer_edge_trim(h, list, x->limit, idle);
    for (uint32_t v = 0; v < x->m->n; v++) {
        expect_close(idle[v], x->idle[v]);
    }
    return true;
}

/* Tails grow and limits fall, each list is made from the one before. */
static void compare(const struct qn_machine *m, uint32_t root)
{
    struct all x = {.m = m, .root = root};
    struct qn_subset_dp s;
    struct qn_transfer_edges h;
    struct qn_transfer_edge_list list;
    cr_assert_eq(qn_subset_dp_init(&s, m), QN_OK);
    cr_assert_eq(qn_transfer_edge_init(&h, m), QN_OK);
    qn_subset_dp_fill(&s, root, x.tail, NULL);
    x.limit = 2 * qn_subset_dp_value(&s, root);
    double grow = x.limit / 20;
    qn_transfer_edge_collect(&h, &s, root, x.limit, &list);
    for (uint32_t i = 0; i < 6 && step(&x, &h, &list, 1.8 - 0.15 * i); i++) {
        x.tail[(i * 5 + 1) % m->n] += grow;
    }
    qn_transfer_edge_fini(&h);
    qn_subset_dp_fini(&s);
}

Test(transfer_edges, prices_and_idle_times_are_those_of_all_trees)
{
    for (uint32_t seed = 1; seed <= 20; seed++) {
        struct qn_machine *m = scattered(2 + seed % 4, seed);
        for (uint32_t root = 0; root < m->n; root++) {
            compare(m, root);
        }
        qn_machine_destroy(m);
    }
    struct qn_machine *m = scattered(CORES, 1);
    compare(m, 2);
    qn_machine_destroy(m);
}

/* Lists that lose no more than a quarter stay where they are. */
Test(transfer_edges, no_more_room_is_used_than_there_is)
{
    struct qn_machine *m = uniform(8, 10, 30, 8);
    struct qn_subset_dp s;
    struct qn_transfer_edges h;
    struct qn_transfer_edge_list list;
    double idle[8], tail[8] = {0};
    cr_assert_eq(qn_subset_dp_init(&s, m), QN_OK);
    cr_assert_eq(qn_transfer_edge_init(&h, m), QN_OK);
    qn_subset_dp_fill(&s, 0, tail, NULL);
    qn_transfer_edge_collect(&h, &s, 0, 1e6, &list);
    struct qn_transfer_edge *first = list.at, *end = list.room;
    size_t all = list.count;
    for (double limit = 1e6; limit > 100; limit *= 0.99) {
        (void)qn_transfer_edge_price(&h, &list, tail, idle);
        size_t before = list.count;
        qn_transfer_edge_trim(&h, &list, limit, idle);
        cr_expect(list.count == before || list.count < before - before / 4);
        cr_assert_eq(list.at + list.count, list.room);
        end = list.count < before ? list.room : end;
    }
    cr_expect_leq((size_t)(end - first), 4 * all);
    qn_transfer_edge_fini(&h);
    qn_subset_dp_fini(&s);
    qn_machine_destroy(m);
}
