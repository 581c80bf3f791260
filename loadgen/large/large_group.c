/*
 * With a core for each, members are in the order of their cores' numbers, as
 * those of a machine are.
 */
#include "loadgen/large/large_group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

static int by_cpu(const void *x, const void *y)
{
    const int a = ((const struct qn_place *)x)->cpu;
    const int b = ((const struct qn_place *)y)->cpu;
    return (a > b) - (a < b);
}

static void take_places(struct qn_large_group *g, const struct qn_places *p)
{
    struct qn_place at[QN_NODES_MAX];
    const uint32_t n = g->members;
    QN_ASSERT(n <= QN_NODES_MAX);
    for (uint32_t i = 0; i < n; i++) {
        at[i] = qn_places_of(p, i, QN_BIND_CORE);
    }
    if (n <= p->count) {
        qsort(at, n, sizeof at[0], by_cpu);
    }
    for (uint32_t i = 0; i < n; i++) {
        g->core[i] = (uint32_t)at[i].cpu;
        g->place[i].node = 0;
        g->place[i].region = (uint16_t)QN_MAX(at[i].numa_node, 0);
    }
}

static int take_machine(struct qn_large_group *g,
                        const struct qn_machine *machine)
{
    uint32_t index[QN_NODES_MAX];
    for (uint32_t i = 0; i < g->members; i++) {
        index[i] = qn_machine_find(machine, g->core[i]);
        if (index[i] == machine->n) {
            return QN_ENOENT;
        }
    }
    int rc = qn_machine_restrict(&g->m, machine, index, g->members);
    if (rc == QN_OK) {
        qn_large_places(g->m, g->place);
        rc = qn_large_choices_make(&g->choices, g->m, g->place, g->push);
    }
    return rc;
}

int qn_large_group_make(struct qn_large_group *g, const struct qn_places *p,
                        const struct qn_machine *machine, uint32_t members,
                        bool push)
{
    *g = (struct qn_large_group){.members = members, .push = push};
    take_places(g, p);
    g->shares = machine != NULL && members > p->count;
    if (machine == NULL || g->shares) {
        return QN_OK;
    }
    const int rc = take_machine(g, machine);
    if (rc != QN_OK) {
        qn_large_group_fini(g);
    }
    return rc;
}

void qn_large_group_fini(struct qn_large_group *g)
{
    qn_machine_destroy(g->m);
    g->m = NULL;
}

static const struct qn_large_variant *by_regions(const struct qn_large_group *g,
                                                 enum qn_large_operation op)
{
    return qn_large_variant_choose(
        op, qn_large_tree_regions(g->place, g->members), g->push);
}

const struct qn_large_variant *qn_large_group_variant(
    const struct qn_large_group *g, enum qn_large_operation op, uint64_t bytes)
{
    return g->m != NULL ? qn_large_choices_of(&g->choices, op, bytes)
                        : by_regions(g, op);
}

void qn_large_group_why(const struct qn_large_group *g,
                        enum qn_large_operation op, uint64_t bytes, char *why)
{
    const struct qn_large_variant *v = qn_large_group_variant(g, op, bytes);
    const struct qn_large_variant *usual = by_regions(g, op);
    double ns = 0, usual_ns = 0;
    if (g->m == NULL) {
        const uint32_t regions = qn_large_tree_regions(g->place, g->members);
        snprintf(why, QN_LARGE_WHY_MAX, "%swithout prices, %u region%s%s",
                 g->shares ? "members share cores: " : "", regions,
                 regions == 1 ? "" : "s",
                 g->push ? "" : ", members are isolated");
        return;
    }
    /* They cannot fail but for memory, and were made before. */
    (void)qn_large_predict(g->m, g->place, v, 0, bytes, &ns);
    (void)qn_large_predict(g->m, g->place, usual, 0, bytes, &usual_ns);
    if (v == usual) {
        snprintf(why, QN_LARGE_WHY_MAX, "by prices, %.1f us, as without them",
                 ns / 1e3);
    } else {
        snprintf(why, QN_LARGE_WHY_MAX,
                 "by prices, %.1f us; without them %s, %.1f us", ns / 1e3,
                 usual->name, usual_ns / 1e3);
    }
}
