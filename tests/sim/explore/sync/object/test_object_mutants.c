/*
 * Each defect of core/sync/object/mutant.h is found in one of the programs of
 * its object. Without a defect none of them finds anything.
 */
#include "core/base/bits.h"
#include "core/sync/object/mutant.h"
#include "tests/sim/explore/sync/object/object_world.h"
#include "tests/support/test.h"

enum object { COUNTER, LCRQ, TREIBER, MS, LIST };

enum qn_object_mutant qn_object_mutant;

static const struct {
    const char *name;
    enum object object;
} mutants[QN_OBJECT_MUTANT_COUNT] = {
#define X(id, by, text) [QN_OBJECT_MUTANT_##id] = {#id, by},
    QN_OBJECT_MUTANT_MAP(X)
#undef X
};

static const struct {
    enum object object;
    uint32_t deviations;
    struct object_case c;
} programs[] = {
    {COUNTER, 2, {.node = {"aa", "aa"}}},
    {LCRQ, 2, {.type = "lcrq", .ring = 2, .node = {"pp", "tt"}}},
    {LCRQ,
     2,
     {.type = "lcrq", .ring = 2, .before = "p", .node = {"t", "pttpp", "tp"}}},
    {LCRQ, 2, {.type = "lcrq", .ring = 2, .node = {"ppppp", "tttt"}}},
    {LCRQ, 2, {.type = "lcrq", .ring = 2, .node = {"pp", "pptttptpp"}}},
    {LCRQ,
     2,
     {.type = "lcrq",
      .ring = 2,
      .before = "pp",
      .node = {"p", "pptttytppppttt", "t"}}},
    {LCRQ,
     2,
     {.type = "lcrq",
      .ring = 2,
      .before = "pp",
      .node = {"p", "ptttpppppttt"}}},
    {LCRQ,
     2,
     {.type = "lcrq",
      .ring = 2,
      .before = "pp",
      .node = {"ttt", "ptttpppppttt"}}},
    {TREIBER,
     2,
     {.type = "treiber", .batch = 1, .before = "pp", .node = {"tt", "ttpp"}}},
    {TREIBER,
     2,
     {.type = "treiber", .batch = 1, .before = "ppp", .node = {"tt", "ttp"}}},
    {TREIBER, 2, {.type = "treiber", .batch = 1, .node = {"pp", "tttt"}}},
    {TREIBER, 0, {.type = "treiber", .batch = 1, .node = {"ptptptptpt"}}},
    {MS,
     2,
     {.type = "ms2", .backend = "lock", .lock = "tas", .node = {"pp", "tt"}}},
    {MS,
     2,
     {.type = "ms2",
      .backend = "lock",
      .lock = "tas",
      .before = "pppp",
      .node = {"tt", "p"}}},
    {MS,
     2,
     {.type = "ms2", .backend = "lock", .lock = "tas", .node = {"pp", "pp"}}},
    {LIST,
     0,
     {.type = "list",
      .backend = "lock",
      .lock = "tas",
      .node = {"pptt", "ptptpt"}}},
};

static bool found_in(enum object object, enum qn_explore_memory m)
{
    bool any = false;
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(programs) && !any; i++) {
        struct object_case c = programs[i].c;
        struct qn_explored out;
        c.capacity = 4;
        any = programs[i].object == object &&
              !object_explore(&c, m, programs[i].deviations, &out);
    }
    return any;
}

static bool found(enum object object)
{
    return found_in(object, QN_EXPLORE_TSO) || found_in(object, QN_EXPLORE_C11);
}

Test(object_mutants, each_object_has_three)
{
    uint32_t count[LIST + 1] = {0};
    for (int m = QN_OBJECT_MUTANT_NONE + 1; m < QN_OBJECT_MUTANT_COUNT; m++) {
        count[mutants[m].object]++;
    }
    for (enum object object = COUNTER; object <= LIST; object++) {
        cr_expect_geq(count[object], 3, "object %d", (int)object);
    }
}

Test(object_mutants, each_is_found, .timeout = 200)
{
    for (int m = QN_OBJECT_MUTANT_NONE + 1; m < QN_OBJECT_MUTANT_COUNT; m++) {
        qn_object_mutant = (enum qn_object_mutant)m;
        cr_expect(found(mutants[m].object), "%s", mutants[m].name);
    }
}

Test(object_mutants, without_one_there_is_no_fault, .timeout = 200)
{
    qn_object_mutant = QN_OBJECT_MUTANT_NONE;
    for (enum object object = COUNTER; object <= LIST; object++) {
        cr_expect(!found(object), "object %d", (int)object);
    }
}
