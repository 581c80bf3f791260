/*
 * Text for a terminal: 80 columns if the machine permits it.
 *
 *     amd_epyc_1x2: AMD EPYC
 *     2 cores, 1 socket, 1 memory node, 1 cache
 *
 *     socket 0
 *       node 0
 *         cache 0   cores 0-1
 *
 * Threads of a physical core are shown together, "0+8 1+9"; other cores as
 * ranges of numbers.
 */
#include "loadgen/machine/describe.h"

#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/machine/grouping.h"

static void put_count(uint32_t n, const char *one, const char *before, FILE *to)
{
    (void)fprintf(to, "%s%u %s%s", before, n, one, n == 1 ? "" : "s");
}

static void put_head(const struct qn_machine *m, FILE *to)
{
    struct qn_grouping_counts c;
    qn_grouping_count(m, &c);
    (void)fputs(m->name[0] != '\0' ? m->name : "(no name)", to);
    if (m->facts.cpu[0] != '\0') {
        (void)fputs(": ", to);
        (void)fputs(m->facts.cpu, to);
    }
    (void)fputc('\n', to);
    if (c.phys < m->n) {
        put_count(m->n, "thread", "", to);
        put_count(c.phys, "core", " of ", to);
    } else {
        put_count(m->n, "core", "", to);
    }
    put_count(c.sockets, "socket", ", ", to);
    put_count(c.nodes, "memory node", ", ", to);
    put_count(c.caches, "cache", ", ", to);
    (void)fputc('\n', to);
}

static void put_measurement(const struct qn_machine *m, FILE *to)
{
    const struct qn_machine_facts *f = &m->facts;
    if (f->measured[0] != '\0') {
        (void)fputs("measured ", to);
        (void)fputs(f->measured, to);
        (void)fputs(f->transport[0] != '\0' ? " over " : "", to);
        (void)fputs(f->transport, to);
        (void)fputc('\n', to);
    }
    if (f->clock_ghz > 0) {
        (void)fprintf(to, "a cycle is %.3f ns\n", 1 / f->clock_ghz);
    }
    if (f->queued_factor > 0) {
        (void)fprintf(to,
                      "receiving a queued message costs %.2f of a receive\n",
                      f->queued_factor);
    }
    uint32_t unstable = qn_machine_unstable_pairs(m);
    if (unstable > 0) {
        (void)fprintf(to, "%u of %u pairs did not repeat; measure them again\n",
                      unstable, m->n * (m->n - 1) / 2);
    }
}

/* ---- the tree ---- */

/* Does the cache order[from, end) have a physical core with two threads? */
static bool has_threads(const struct qn_machine *m, const uint32_t *order,
                        uint32_t from, uint32_t end)
{
    for (uint32_t i = from + 1; i < end; i++) {
        if (m->core[order[i]].phys == m->core[order[i - 1]].phys) {
            return true;
        }
    }
    return false;
}

static void put_threads(const struct qn_machine *m, const uint32_t *order,
                        uint32_t from, uint32_t end, FILE *to)
{
    for (uint32_t i = from; i < end; i++) {
        bool same =
            i > from && m->core[order[i]].phys == m->core[order[i - 1]].phys;
        (void)fprintf(to, "%s%u", same ? "+" : " ", m->core[order[i]].os);
    }
}

static void put_ranges(const struct qn_machine *m, const uint32_t *order,
                       uint32_t from, uint32_t end, FILE *to)
{
    for (uint32_t i = from; i < end;) {
        uint32_t last = i;
        while (last + 1 < end &&
               m->core[order[last + 1]].os == m->core[order[last]].os + 1) {
            last++;
        }
        (void)fprintf(to, " %u", m->core[order[i]].os);
        if (last > i) {
            (void)fprintf(to, "-%u", m->core[order[last]].os);
        }
        i = last + 1;
    }
}

static void put_tree(const struct qn_machine *m, const uint32_t *order,
                     FILE *to)
{
    const struct qn_machine_core *before = NULL;
    for (uint32_t i = 0; i < m->n;) {
        const struct qn_machine_core *c = &m->core[order[i]];
        bool socket = before == NULL || before->socket != c->socket;
        if (socket) {
            (void)fprintf(to, "socket %u\n", c->socket);
        }
        if (socket || before->node != c->node) {
            (void)fprintf(to, "  node %u\n", c->node);
        }
        uint32_t end = i + 1;
        while (end < m->n && m->core[order[end]].cache == c->cache &&
               m->core[order[end]].node == c->node &&
               m->core[order[end]].socket == c->socket) {
            end++;
        }
        (void)fprintf(to, "    cache %-4u cores", c->cache);
        (has_threads(m, order, i, end) ? put_threads : put_ranges)(m, order, i,
                                                                   end, to);
        (void)fputc('\n', to);
        before = c;
        i = end;
    }
}

/* ---- costs ---- */

/* Print three digits, without an exponent. */
static void put_range(const struct qn_range *r, FILE *to)
{
    const double x[] = {r->least, r->median, r->most};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(x); i++) {
        (void)fprintf(to, " %6.*f", x[i] < 99.95 ? 1 : 0, x[i]);
    }
    (void)fputs("  ", to);
}

static int put_costs(const struct qn_machine *m, FILE *to)
{
    struct qn_distance_costs costs[QN_DISTANCES];
    int err = qn_grouping_costs(m, costs);
    if (err != QN_OK) {
        return err;
    }
    bool trips = m->facts.round_trip != NULL;
    (void)fprintf(to,
                  "\ncycles, least median most\n"
                  "distance       pairs   send                   receive       "
                  "         %s\n",
                  trips ? "round trip" : "");
    for (uint32_t d = 0; d < QN_DISTANCES; d++) {
        const struct qn_distance_costs *c = &costs[d];
        if (c->pairs == 0) {
            continue;
        }
        (void)fprintf(to, "%-12s %7u ", qn_distance_name(d), c->pairs);
        put_range(&c->send, to);
        put_range(&c->receive, to);
        if (trips) {
            put_range(&c->round_trip, to);
        }
        if (c->unstable > 0) {
            (void)fprintf(to, "(%u unstable)", c->unstable);
        }
        (void)fputc('\n', to);
    }
    return QN_OK;
}

int qn_machine_describe(const struct qn_machine *m, FILE *to)
{
    uint32_t *order = malloc(m->n * sizeof *order);
    if (order == NULL) {
        return QN_ENOMEM;
    }
    qn_grouping_order(m, order);
    put_head(m, to);
    put_measurement(m, to);
    (void)fputc('\n', to);
    put_tree(m, order, to);
    free(order);
    if (m->n == 1) {
        (void)fputs("\nno costs: the machine has one core, so there are no "
                    "pairs\n",
                    to);
        return QN_OK;
    }
    if (!qn_machine_has_costs(m)) {
        (void)fputs(
            "\nno costs: `quoin machine --measure` measures those of the "
            "machine it runs on\n",
            to);
        return QN_OK;
    }
    return put_costs(m, to);
}
