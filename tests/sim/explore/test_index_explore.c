/*
 * The read index (PROTOCOL.md 8.2) and the accept register, as the words that
 * they are: two replicas publish what they have applied, and a client that has
 * a reply of one asks a third, which must not read by an older index; and a
 * pair is loaded as it was at one moment.
 */
#include "core/sim/explore/explore.h"
#include "core/wait/park.h"
#include "tests/sim/explore/orders.h"
#include "tests/support/test.h"

#define REPLY 0 /* descriptor */

static qn_a64 read_index;
static struct qn_pair word;

static void setup(void *ctx)
{
    (void)ctx;
    qn_store(&read_index, 0, QN_SEQ_CST);
    word = (struct qn_pair){0};
}

static const char *all_end(void *ctx)
{
    (void)ctx;
    return qn_sim_end_of(0) == QN_SIM_DONE && qn_sim_end_of(1) == QN_SIM_DONE
               ? NULL
               : "a node waits";
}

/* ---- the read index ---- */

static void publishes_and_replies(void *ctx)
{
    (void)ctx;
    qn_fetch_max(&read_index, 1);
    qn_unpark_fd(REPLY);
}

static void publishes_more(void *ctx)
{
    (void)ctx;
    qn_fetch_max(&read_index, 2);
    if (qn_load(&read_index, QN_SEQ_CST) < 2) {
        qn_sim_fail("the index fell");
    }
}

/* The client's reply came from the one, its read goes to the other. */
static void reads(void *ctx)
{
    (void)ctx;
    (void)qn_park_fd(REPLY, QN_TIME_NEVER);
    uint64_t first = qn_load(&read_index, QN_SEQ_CST);
    uint64_t second = qn_load(&read_index, QN_SEQ_CST);
    if (first < 1 || second < first) {
        qn_sim_fail("a read by an index older than a reply");
    }
}

/* ---- a pair ---- */

static void moves(void *ctx)
{
    (void)ctx;
    (void)qn_cas_pair(&word, 0, 0, 1, 5);
    (void)qn_cas_pair(&word, 1, 5, 1, 6);
    (void)qn_cas_pair(&word, 1, 6, 2, 8);
}

static void loads(void *ctx)
{
    uint64_t first;
    uint64_t second;
    (void)ctx;
    qn_load_pair(&word, &first, &second);
    bool was = (first == 0 && second == 0) || (first == 1 && second == 5) ||
               (first == 1 && second == 6) || (first == 2 && second == 8);
    if (!was) {
        qn_sim_fail("a pair that never was");
    }
}

static bool clean_in(enum qn_explore_memory m, uint32_t deviations,
                     struct qn_explored *out)
{
    struct qn_explore_opts o = {
        .nodes = 3,
        .node = {publishes_and_replies, publishes_more, reads},
        .setup = setup,
        .check = all_end,
        .memory = m,
        .deviations = deviations};
    if (!qn_explore(&o, out) || !out->complete) {
        return false;
    }
    o.nodes = 2;
    o.node[0] = moves;
    o.node[1] = loads;
    return qn_explore(&o, out) && out->complete;
}

Test(index_explore, no_read_is_older_than_a_reply_and_no_pair_is_torn)
{
    for (enum qn_explore_memory m = QN_EXPLORE_TSO; m <= QN_EXPLORE_C11; m++) {
        struct qn_explored out;
        cr_assert(clean_in(m, 4, &out), "memory %d: %s at %s", (int)m,
                  out.fault, out.choices);
    }
}

/* ---- orders, one at a time weaker ---- */

static bool explore_all(uint32_t level)
{
    struct qn_explored out;
    return !clean_in(QN_EXPLORE_C11, 1 + level, &out);
}

static const char *const files[] = {"core/base/atomic.h", NULL};

static const struct unfound unfound[] = {
    {"qn_load_pair load 3", 1, "the two before it have acquired all"},
    {"qn_fetch_max ", 4, "a reply that is ordered carries the index along"},
    {NULL, 0, NULL},
};

Test(index_orders, what_no_exploration_finds_is_known)
{
    orders_judge(&(struct orders){.files = files,
                                  .explore = explore_all,
                                  .levels = 4,
                                  .unfound = unfound,
                                  .least = 7});
}
