/* Orders of the objects, each made weaker: is it found? */
#include "core/base/bits.h"
#include "tests/sim/explore/orders.h"
#include "tests/sim/explore/sync/object/object_world.h"
#include "tests/support/test.h"

static const char *const unreached[] = {NULL};

/* Why some are not found, and stay. */
#define LATER                                                                  \
    "orders a load in front of what another thread stores later: no load of "  \
    "the explorer takes a value that is stored later"
#define FIRST                                                                  \
    "orders what a ring begins with in front of the fetch_adds of others, "    \
    "which take the newest value in any case here; a machine's may not"
#define PINS                                                                   \
    "the last use of a ring must meet the next one, and an old end a new "     \
    "pin: four switches and two old loads at least"
#define UNSAFE                                                                 \
    "the enqueue of an unsafe cell and a dequeue that was before it: three "   \
    "dequeues, and a lap between them"

static const struct object_case *cases;
static uint32_t case_count;

static bool explore(uint32_t level)
{
    bool fault = false;
    for (uint32_t i = 0; i < case_count && !fault; i++) {
        struct qn_explored out;
        fault = !object_explore(&cases[i], QN_EXPLORE_C11, 1 + level, &out);
    }
    return fault;
}

#define FILES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void judge(const char *const *files, const struct object_case *c,
                  uint32_t count, const struct unfound *unfound, uint32_t least)
{
    cases = c;
    case_count = count;
    orders_judge(&(struct orders){.files = files,
                                  .explore = explore,
                                  .levels = 2,
                                  .unfound = unfound,
                                  .least = least,
                                  .unreached = unreached});
}

Test(object_orders, of_the_two_lock_queue, .timeout = 100)
{
    static const struct object_case c[] = {
        {.type = "ms2",
         .backend = "lock",
         .lock = "tas",
         .capacity = 2,
         .node = {"pp", "tt"}},
        {.type = "ms2",
         .backend = "lock",
         .lock = "tas",
         .capacity = 2,
         .before = "pp",
         .node = {"tt", "p"}},
        {.type = "ms1",
         .backend = "lock",
         .lock = "tas",
         .capacity = 2,
         .node = {"p", "t"}},
    };
    static const struct unfound unfound[] = {
        {"enqueue load 2", 1, LATER},
        {"move_head store 2", 1, LATER},
        {NULL, 0, NULL},
    };
    judge(FILES("object/ms_queue.c"), c, QN_ARRAY_COUNT(c), unfound, 4);
}

Test(object_orders, of_treibers_stack, .timeout = 100)
{
    static const struct object_case c[] = {
        {.type = "treiber",
         .batch = 1,
         .capacity = 4,
         .before = "pp",
         .node = {"tp", "tt"}},
        {.type = "treiber", .batch = 1, .capacity = 4, .node = {"pt", "pt"}},
        {.type = "treiber", .batch = 1, .capacity = 4, .node = {"p", "t"}},
    };
    static const struct unfound unfound[] = {
        {"stack_pop load 1", 1,
         "three threads: a node that was pushed twice, with two links, while "
         "the tag is new, and its number and link are old"},
        {NULL, 0, NULL},
    };
    judge(FILES("object/treiber.c"), c, QN_ARRAY_COUNT(c), unfound, 3);
}

Test(object_orders, of_the_counter, .timeout = 100)
{
    static const struct object_case c[] = {{.node = {"aa", "aa"}}};
    static const struct unfound unfound[] = {
        {"add_once rmw 1", 2,
         "a read-modify-write takes the newest value in any order; what else "
         "the caller has written is its own affair"},
        {NULL, 0, NULL},
    };
    judge(FILES("object/counter.c"), c, QN_ARRAY_COUNT(c), unfound, 2);
}

Test(object_orders, of_lcrq, .timeout = 200)
{
    static const struct object_case c[] = {
        {.type = "lcrq", .ring = 2, .capacity = 4, .node = {"pp", "tt"}},
        {.type = "lcrq",
         .ring = 2,
         .capacity = 4,
         .before = "pp",
         .node = {"p", "ttt"}},
        {.type = "lcrq",
         .ring = 2,
         .capacity = 4,
         .before = "pp",
         .node = {"p", "tttt", "pp"}},
        {.type = "lcrq",
         .ring = 2,
         .capacity = 4,
         .before = "pp",
         .node = {"tp", "ptt"}},
        {.type = "lcrq32", .ring = 2, .capacity = 4, .node = {"pp", "tt"}},
        {.type = "lcrq_numa", .ring = 2, .capacity = 4, .node = {"p", "t"}},
    };
    static const struct unfound unfound[] = {
        {"lcrq_leave store 1", 1, "clients leave behind the run"},
        {"pin", 6, "rule 1: " PINS},
        {"claim cas 1", 1, LATER},
        {"append store 1", 1, LATER},
        {"leave_ring cas 1", 2, "rule 1: " PINS},
        {"leave_ring store 1", 1, LATER},
        {"follow cas 1", 2, FIRST},
        {"append load 1", 1, FIRST},
        {"lcrq_cell_load load 1", 1, UNSAFE},
        {"lcrq_cell_swap cas 1: seq_cst to acq_rel", 1,
         "as qn_cas_pair of the wide form, which has this order only"},
        {"await_turn cas 1", 1,
         "a turn says nothing else; the weakest compare-and-swap"},
        {"lcrq_put_at load 1", 2, UNSAFE},
        {"lcrq_ring_take rmw 1", 2, UNSAFE},
        {"lcrq_ring_fix cas 1", 1, "the weakest that a failure allows"},
        {"lcrq_ring_empty load 1", 1,
         "nodes run their loads in sequence; a machine may not"},
        {NULL, 0, NULL},
    };
    judge(FILES("object/lcrq.c", "object/lcrq_ring_internal.h"), c,
          QN_ARRAY_COUNT(c), unfound, 20);
}
