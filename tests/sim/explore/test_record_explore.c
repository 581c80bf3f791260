/*
 * The voter's record under every kill: the writer dies in front of any of its
 * operations, or lives, and the next incarnation finds the record that was
 * finished last, or the one that was begun last. And a record that was damaged
 * stays so until all of it is written anew: what it said before never comes
 * back.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/atomic.h"
#include "core/sim/explore/explore.h"
#include "paxos/driver/vote_record.h"
#include "paxos/mutant.h"
#include "tests/support/test.h"

#define WRITES 4u

enum qn_mutant qn_mutant;

static void *area;
static struct qn_utility utility;
static uint32_t
    finished; /* index of the last vote that qn_vote_record_write took */

static struct qn_vote vote(uint32_t round)
{
    return (struct qn_vote){.index = 2, .bal = {round, 0, 1}};
}

static void setup(void *ctx)
{
    (void)ctx;
    static const struct qn_ul_entry log[2] = {{.kind = QN_UL_INIT},
                                              {.index = 1}};
    const struct qn_utility_opts o = {.nodes = 3,
                                      .self_inc = 1,
                                      .alloc = &qn_alloc_malloc,
                                      .log = log,
                                      .count = 2,
                                      .pause = 1};
    qn_utility_init(&utility, &o);
    memset(area, 0, QN_VOTE_RECORD_BYTES);
    const struct qn_vote first = vote(0);
    qn_vote_record_renew(area, QN_VOTE_RECORD_BYTES, &first, &utility);
    finished = 0;
}

static void writer(void *ctx)
{
    (void)ctx;
    for (uint32_t n = 1; n <= WRITES; n++) {
        const struct qn_vote v = vote(n);
        qn_vote_record_write(area, QN_VOTE_RECORD_BYTES, &v, &utility);
        finished = n;
    }
}

static const char *next_life(void *ctx)
{
    (void)ctx;
    struct qn_ul_entry log[QN_UL_KEPT];
    struct qn_vote v = {.index = 0};
    uint32_t count;
    int rc = qn_vote_record_read(area, QN_VOTE_RECORD_BYTES, &v, log,
                                 QN_UL_KEPT, &count);
    if (rc != QN_OK || count != 2) {
        return "the record is damaged";
    }
    return v.bal.round == finished || v.bal.round == finished + 1
               ? NULL
               : "an older record";
}

static void explore_in_both(struct qn_explore_opts *o, uint64_t least)
{
    area = aligned_alloc(QN_CACHELINE, QN_VOTE_RECORD_BYTES);
    for (enum qn_explore_memory m = QN_EXPLORE_TSO; m <= QN_EXPLORE_C11; m++) {
        struct qn_explored out;
        o->memory = m;
        cr_assert(qn_explore(o, &out), "memory %d: %s at %s", (int)m, out.fault,
                  out.choices);
        cr_assert(out.complete);
        cr_assert_gt(out.runs, least);
    }
    free(area);
}

Test(record_explore, a_kill_anywhere_leaves_a_record_that_is_whole,
     .timeout = 120)
{
    struct qn_explore_opts o = {.nodes = 1,
                                .node = {writer},
                                .setup = setup,
                                .check = next_life,
                                .deviations = 4,
                                .kills = 1};
    explore_in_both(&o, 3 * WRITES);
}

/* ---- begun anew ---------------------------------------------------------- */

#define OLD 1u
#define NEW 9u

static unsigned damaged; /* mask of copies */

static void setup_damaged(void *ctx)
{
    setup(ctx);
    for (uint32_t n = OLD; n <= 2; n++) {
        const struct qn_vote v = vote(n);
        qn_vote_record_write(area, QN_VOTE_RECORD_BYTES, &v, &utility);
    }
    for (unsigned i = 0; i < 2; i++) {
        if ((damaged >> i & 1) != 0) {
            memset((uint8_t *)area + i * (QN_VOTE_RECORD_BYTES / 2), 0x5a, 300);
        }
    }
}

static void renewer(void *ctx)
{
    (void)ctx;
    const struct qn_vote v = vote(NEW);
    qn_vote_record_renew(area, QN_VOTE_RECORD_BYTES, &v, &utility);
    finished = NEW;
}

static const char *next_life_anew(void *ctx)
{
    (void)ctx;
    struct qn_ul_entry log[QN_UL_KEPT];
    struct qn_vote v = {.index = 0};
    uint32_t count;
    int rc = qn_vote_record_read(area, QN_VOTE_RECORD_BYTES, &v, log,
                                 QN_UL_KEPT, &count);
    if (rc == QN_ECORRUPT) {
        return finished == 0 ? NULL : "it stays damaged";
    }
    return rc == QN_OK && v.bal.round == NEW ? NULL : "it speaks again";
}

Test(record_explore, a_damaged_record_says_nothing_until_it_is_written_anew,
     .timeout = 120)
{
    struct qn_explore_opts o = {.nodes = 1,
                                .node = {renewer},
                                .setup = setup_damaged,
                                .check = next_life_anew,
                                .deviations = 4,
                                .kills = 1};
    for (damaged = 1; damaged < 4; damaged++) {
        explore_in_both(&o, 4);
    }
}
