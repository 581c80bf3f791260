/*
 * Each object under every schedule, in both memories: two threads with two
 * operations each and three deviations, three with one and two. The rings have
 * two cells, so that they are closed and used again.
 *
 * QN_EXPLORE_DEVIATIONS: that number for two threads, and one less for three.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/bits.h"
#include "tests/sim/explore/sync/object/object_world.h"
#include "tests/support/test.h"

#define LCRQ(name, ...)                                                        \
    {                                                                          \
        .type = (name), .capacity = 4, .ring = 2, __VA_ARGS__                  \
    }
#define OTHER(name, by, with, ...)                                             \
    {                                                                          \
        .type = (name), .backend = (by), .lock = (with), .capacity = 4,        \
        .batch = 1, __VA_ARGS__                                                \
    }

static const struct object_case cases[] = {
    LCRQ("lcrq", .node = {"pt", "pt"}),
    LCRQ("lcrq", .node = {"pp", "tt"}),
    LCRQ("lcrq", .before = "pp", .node = {"tp", "pt"}),
    LCRQ("lcrq", .before = "p", .node = {"p", "t", "t"}),
    LCRQ("lcrq", .before = "pp", .node = {"p", "p", "t"}),
    LCRQ("lcrq32", .node = {"pt", "pt"}),
    LCRQ("lcrq_numa", .node = {"pt", "pt"}),
    LCRQ("lcrq_numa", .before = "p", .node = {"p", "t", "t"}),
    LCRQ("lcrq32", .before = "pp", .node = {"p", "p", "t"}),
    OTHER("treiber", NULL, NULL, .node = {"pt", "pt"}),
    OTHER("treiber", NULL, NULL, .before = "pp", .node = {"tp", "tt"}),
    OTHER("treiber", NULL, NULL, .before = "pp", .node = {"t", "t", "p"}),
    OTHER("ms1", "lock", "tas", .node = {"pt", "pt"}),
    OTHER("ms1", "lock", "tas", .before = "p", .node = {"p", "t", "t"}),
    OTHER("ms2", "lock", "tas", .node = {"pt", "pt"}),
    OTHER("ms2", "lock", "tas", .node = {"pp", "tt"}),
    OTHER("ms2", "lock", "tas", .before = "p", .node = {"p", "t", "t"}),
    OTHER("list", "lock", "tas", .node = {"pt", "pt"}),
    OTHER("list", "lock", "tas", .before = "p", .node = {"p", "t", "t"}),
    OTHER(NULL, NULL, NULL, .node = {"aa", "aa"}),
    OTHER(NULL, NULL, NULL, .node = {"a", "a", "a"}),
    OTHER(NULL, "lock", "tas", .node = {"aa", "aa"}),
};

static void explore_all(enum qn_explore_memory m)
{
    const char *more = getenv("QN_EXPLORE_DEVIATIONS");
    uint32_t deviations = more == NULL ? 3 : (uint32_t)strtoul(more, NULL, 10);
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(cases); i++) {
        struct qn_explored out;
        uint32_t d = deviations - (cases[i].node[2] != NULL);
        cr_assert(object_explore(&cases[i], m, d, &out), "%s: %s at %s",
                  object_case_text(&cases[i]), out.fault, out.choices);
        if (getenv("QN_SHOW_RUNS") != NULL) {
            printf("%-30s %lu runs\n", object_case_text(&cases[i]),
                   (unsigned long)out.runs);
        }
    }
}

Test(object_explore, histories_are_linearizable_in_tso, .timeout = 100)
{
    explore_all(QN_EXPLORE_TSO);
}

Test(object_explore, histories_are_linearizable_in_c11, .timeout = 100)
{
    explore_all(QN_EXPLORE_C11);
}
