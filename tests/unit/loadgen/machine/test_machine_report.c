#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/discover/topology.h"
#include "loadgen/machine/describe.h"
#include "loadgen/machine/grouping.h"
#include "loadgen/machine/heatmap.h"
#include "loadgen/machine/machine_source.h"
#include "tests/support/test.h"

/* A made-up machine; a message costs 10 * (1 + distance) to send. */
static struct qn_machine *machine(const char *text)
{
    struct qn_machine *m = NULL;
    struct qn_parse_error f = {""};
    cr_assert_eq(qn_machine_synthetic(&m, text, &f), QN_OK, "%s", f.text);
    for (uint32_t u = 0; u < m->n; u++) {
        for (uint32_t v = 0; v < m->n; v++) {
            double d = 1 + (double)qn_distance_of(m, u, v);
            m->send[(size_t)u * m->n + v] = u == v ? 0 : 10 * d;
            m->receive[(size_t)u * m->n + v] = u == v ? 0 : 50 * d + u;
        }
    }
    return m;
}

static char *written(const struct qn_machine *m,
                     int (*write)(const struct qn_machine *m, FILE *to))
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    cr_assert_eq(write(m, f), QN_OK);
    fclose(f);
    return text;
}

static uint32_t times(const char *text, const char *what)
{
    uint32_t n = 0;
    for (; (text = strstr(text, what)) != NULL; text++) {
        n++;
    }
    return n;
}

Test(machine_report, a_distance_is_the_closest_shared_level)
{
    struct qn_machine *m = machine("package:2 numa:2 l3:2 core:2 pu:2");
    static const enum qn_distance want[] = {
        QN_SAME_CORE,   QN_SAME_CORE,   QN_SAME_CACHE,  QN_SAME_CACHE,
        QN_SAME_NODE,   QN_SAME_NODE,   QN_SAME_NODE,   QN_SAME_NODE,
        QN_SAME_SOCKET, QN_SAME_SOCKET, QN_SAME_SOCKET, QN_SAME_SOCKET};
    for (uint32_t v = 0; v < 12; v++) {
        cr_expect_eq(qn_distance_of(m, 0, v), want[v], "to %u", v);
    }
    cr_expect_eq(qn_distance_of(m, 31, 15), QN_OTHER_SOCKET);
    qn_machine_destroy(m);
}

Test(machine_report, costs_are_ranges_per_distance)
{
    struct qn_machine *m = machine("package:2 l3:1 core:2 pu:2");
    struct qn_distance_costs c[QN_DISTANCES];
    cr_assert_eq(qn_grouping_costs(m, c), QN_OK);
    cr_expect_eq(c[QN_SAME_CORE].pairs, 8);
    cr_expect_eq(c[QN_SAME_CACHE].pairs, 16);
    cr_expect_eq(c[QN_SAME_NODE].pairs, 0);
    cr_expect_eq(c[QN_OTHER_SOCKET].pairs, 32);
    cr_expect_eq(c[QN_SAME_CACHE].send.least, 20);
    cr_expect_eq(c[QN_SAME_CACHE].send.most, 20);
    cr_expect_eq(c[QN_OTHER_SOCKET].receive.least, 250);
    cr_expect_eq(c[QN_OTHER_SOCKET].receive.most, 257);
    cr_expect_eq(c[QN_OTHER_SOCKET].unstable, 0);
    qn_machine_destroy(m);
}

Test(machine_report, cores_dealt_round_robin_appear_with_their_group)
{
    struct qn_machine *m =
        machine("package:2 l3:1 core:3 pu:1(indexes=0,2,4,1,3,5)");
    uint32_t order[6];
    static const uint32_t want[] = {0, 2, 4, 1, 3, 5};
    qn_grouping_order(m, order);
    for (uint32_t i = 0; i < 6; i++) {
        cr_expect_eq(m->core[order[i]].os, want[i]);
    }
    char *text = written(m, qn_machine_describe);
    cr_assert_not_null(strstr(text, "socket 0\n  node 0\n"
                                    "    cache 0    cores 0 2 4\n"),
                       "%s", text);
    free(text);
    qn_machine_destroy(m);
}

Test(machine_report, text_names_threads_ranges_and_unstable_pairs)
{
    struct qn_machine *m = machine("package:1 l3:2 core:3 pu:1");
    cr_assert_eq(qn_machine_make_room(m), QN_OK);
    m->facts.unstable[1] = m->facts.unstable[6] = true;
    char *text = written(m, qn_machine_describe);
    cr_assert_not_null(strstr(text, "6 cores, 1 socket, 1 memory node, "
                                    "2 caches\n"),
                       "%s", text);
    cr_assert_not_null(strstr(text, "cores 0-2\n"));
    cr_assert_not_null(strstr(text, "1 of 15 pairs did not repeat"));
    cr_assert_not_null(strstr(text, "same cache        12 "));
    free(text);
    qn_machine_destroy(m);
    m = machine("core:2 pu:2");
    text = written(m, qn_machine_describe);
    cr_assert_not_null(strstr(text, "4 threads of 2 cores"), "%s", text);
    cr_assert_not_null(strstr(text, "cores 0+1 2+3\n"), "%s", text);
    free(text);
    qn_machine_destroy(m);
}

Test(machine_report, without_costs_the_text_says_how_to_measure_them)
{
    struct qn_machine *m = NULL;
    struct qn_parse_error f = {""};
    cr_assert_eq(qn_machine_source_open(&m, "core:2 pu:1", &f), QN_OK, "%s",
                 f.text);
    char *text = written(m, qn_machine_describe);
    cr_assert_not_null(strstr(text, "no costs: `quoin machine --measure`"));
    free(text);
    qn_machine_destroy(m);
    cr_assert_eq(qn_machine_source_open(&m, "pu:1", &f), QN_OK, "%s", f.text);
    text = written(m, qn_machine_describe);
    cr_assert_not_null(strstr(text, "the machine has one core"), "%s", text);
    free(text);
    qn_machine_destroy(m);
}

/* Every cell except the diagonal is covered once: the widths of all runs add
 * up, in both maps. */
Test(machine_report, a_heat_map_has_every_pair)
{
    static const char *const texts[] = {"core:2 pu:1", "package:2 core:5 pu:2",
                                        "package:4 numa:2 l3:4 core:8 pu:1"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct qn_machine *m = machine(texts[i]);
        char *text = written(m, qn_heatmap_write);
        uint32_t cells = 0;
        for (const char *at = text; (at = strstr(at, "v1h-")) != NULL; at++) {
            cells += (uint32_t)strtoul(at + 4, NULL, 10);
        }
        cr_expect_eq(cells, 2 * m->n * (m->n - 1), "%s: %u", texts[i], cells);
        cr_expect_eq(times(text, "</svg>"), 1);
        cr_assert_lt(strlen(text), 300000);
        free(text);
        qn_machine_destroy(m);
    }
}

Test(machine_report, a_heat_map_labels_groups_and_strikes_unstable_pairs)
{
    struct qn_machine *m = machine("package:2 numa:1 l3:2 core:2 pu:1");
    char *plain = written(m, qn_heatmap_write);
    cr_expect_eq(times(plain, ">socket 1<"), 2);
    cr_expect_eq(times(plain, ">cache 3<"), 2);
    cr_expect_eq(times(plain, ">node 1<"), 0, "nodes are sockets here");
    cr_expect_eq(times(plain, "thin ink"), 0);
    cr_assert_eq(qn_machine_make_room(m), QN_OK);
    m->facts.unstable[1] = m->facts.unstable[8] = true;
    char *marked = written(m, qn_heatmap_write);
    cr_expect_eq(times(marked, "thin ink"), 4);
    cr_assert_not_null(strstr(marked, "1 of 28 pairs did not repeat"));
    free(plain);
    free(marked);
    qn_machine_destroy(m);
}
