/*
 * Every lock under every schedule, in both memories; QN_EXPLORE_DEVIATIONS is
 * another bound for two nodes, and one less is that of three. And locks with a
 * rule taken out, each of which is found.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/err.h"
#include "core/wait/park.h"
#include "tests/sim/explore/sync/lock_world.h"
#include "tests/support/test.h"

static uint32_t deviations_of(const struct lock_program *p)
{
    const char *more = getenv("QN_EXPLORE_DEVIATIONS");
    const uint32_t most = more != NULL ? (uint32_t)atoi(more) : 4;
    return p->node[2] == NULL ? most : most - 1;
}

static void explore(const struct qn_lock_type *type,
                    const struct lock_program *p)
{
    for (enum qn_explore_memory m = QN_EXPLORE_TSO; m <= QN_EXPLORE_C11; m++) {
        struct qn_explored out;
        const bool clean = lock_is_clean(type, p, m, deviations_of(p), &out);
        if (getenv("QN_SHOW_RUNS") != NULL) {
            printf("%s %s: memory %d, %llu runs\n", type->name, p->node[0],
                   (int)m, (unsigned long long)out.runs);
        }
        cr_expect(clean, "%s, memory %d: %s at %s", type->name, (int)m,
                  out.fault, out.choices);
    }
}

static void explore_each(const struct lock_program *p, bool timed)
{
    for (uint32_t i = 0; qn_lock_types[i] != NULL; i++) {
        const struct qn_lock_type *type = qn_lock_types[i];
        if (!type->words && (type->timed || !timed)) {
            explore(type, p);
        }
    }
}

Test(lock_explore, two_nodes_of_two_operations, .timeout = 300)
{
    explore_each(&lock_of_two, false);
}

Test(lock_explore, three_nodes_of_one_operation, .timeout = 300)
{
    explore_each(&lock_of_three, false);
}

Test(lock_explore, a_node_that_only_tries, .timeout = 300)
{
    explore_each(&lock_of_tries, false);
}

Test(lock_explore, nodes_with_cores_of_their_own, .timeout = 300)
{
    explore(&qn_lock_mcs, &lock_of_own_cores);
    explore(&qn_lock_clh, &lock_of_own_cores);
    explore(&qn_lock_tas, &lock_of_own_cores);
    explore(&qn_lock_ttas, &lock_of_own_cores);
}

Test(lock_explore, a_deadline_that_passes_loses_no_sleeper, .timeout = 300)
{
    explore_each(&lock_of_deadlines, true);
}

/* ---- rules that are broken on purpose ---- */

static bool is_found(const struct qn_lock_type *type,
                     const struct lock_program *p)
{
    struct qn_explored out;
    return !lock_is_clean(type, p, QN_EXPLORE_C11, 2, &out);
}

/* A thread that has slept takes the lock as if there were no other sleeper. */
static void tas_forgets_sleepers(struct qn_lock_client *c)
{
    qn_a32 *word = &c->memory->word;
    uint32_t seen = 0;
    while (!qn_cas(word, &seen, 1, QN_ACQUIRE)) {
        seen = 1;
        if (qn_cas(word, &seen, 2, QN_ACQUIRE) || seen == 2) {
            (void)qn_park_word(word, 2, QN_TIME_NEVER);
        }
        seen = 0;
    }
}

Test(lock_explore, a_sleeper_that_forgets_the_others_is_found)
{
    struct qn_lock_type type = qn_lock_tas;
    type.acquire = tas_forgets_sleepers;
    cr_assert(is_found(&type, &lock_of_three));
}

static void tas_wakes_none(struct qn_lock_client *c)
{
    qn_store(&c->memory->word, 0, QN_SEQ_CST);
}

Test(lock_explore, a_release_that_wakes_no_sleeper_is_found)
{
    struct qn_lock_type type = qn_lock_tas;
    type.release = tas_wakes_none;
    cr_assert(is_found(&type, &lock_of_two));
}

/* The link is stored, and a predecessor that sleeps on it is not woken. */
static void mcs_stores_its_link(struct qn_lock_client *c)
{
    struct qn_lock_node *n = &c->nodes[c->node];
    qn_baton_init(&n->go);
    qn_baton_init(&n->link);
    const uint32_t before =
        qn_exchange(&c->memory->word, c->node + 1, QN_ACQ_REL);
    if (before != 0) {
        qn_store(&c->nodes[before - 1].link.word, QN_BATON_GO + c->node,
                 QN_RELEASE);
        (void)qn_baton_wait(&n->go, &c->stats.waits);
    }
}

Test(lock_explore, a_link_that_wakes_no_predecessor_is_found)
{
    struct qn_lock_type type = qn_lock_mcs;
    type.acquire = mcs_stores_its_link;
    cr_assert(is_found(&type, &lock_of_two));
}

/* It compares the tail's node only, as if there were no version. */
static bool clh_tries_without_version(struct qn_lock_client *c)
{
    const uint64_t mask = (1u << 11) - 1;
    const uint32_t before =
        (uint32_t)(qn_load(&c->memory->tail, QN_ACQUIRE) & mask);
    uint32_t go;
    if (!qn_baton_is_go(&c->nodes[before].go, &go)) {
        return false;
    }
    uint64_t now = qn_load(&c->memory->tail, QN_ACQUIRE);
    qn_baton_init(&c->nodes[c->node].go);
    if ((now & mask) != before ||
        !qn_cas(&c->memory->tail, &now, c->node, QN_ACQ_REL)) {
        return false;
    }
    c->before = before;
    return true;
}

Test(lock_explore, a_tail_without_a_version_is_found)
{
    struct qn_lock_type type = qn_lock_clh;
    type.try_acquire = clh_tries_without_version;
    cr_assert(is_found(&type, &lock_of_tries));
}
