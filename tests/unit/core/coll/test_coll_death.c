/* Nodes that end in the middle of reductions and barriers. */
#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "tests/support/test.h"
#include "tests/unit/core/coll/coll_net.h"

static enum qn_coll_what kind_of(uint32_t k)
{
    return k % 3 == 1 ? QN_COLL_REDUCE : QN_COLL_ALLREDUCE;
}

/* A program of operations without end: each contribution is 1, so each result
 * is the number of members. */
struct run {
    struct coll_net *net;
    uint32_t started[COLL_NODES];
    bool refused[COLL_NODES]; /* no further start */
};

static void step(struct run *r, qn_node_t v)
{
    struct coll_node *node = &r->net->node[v];
    uint64_t word = 1;
    int rc = coll_turn(r->net, v);
    if (rc == QN_EAGAIN || r->refused[v]) {
        return;
    }
    uint32_t k = r->started[v] - 1;
    bool knows = kind_of(k) == QN_COLL_ALLREDUCE || v == r->net->tree.root;
    if (rc == QN_OK && r->started[v] > 0 && knows) {
        cr_assert_eq(node->out, r->net->tree.n);
    }
    const struct qn_coll_call call = {.what = kind_of(r->started[v]),
                                      .op = &qn_sum_u64,
                                      .in = &word,
                                      .out = &node->out,
                                      .count = 1};
    rc = qn_coll_start(node->c, &call, NULL);
    cr_assert(rc == QN_OK || rc == QN_EPEERDEAD);
    r->started[v] += rc == QN_OK;
    r->refused[v] = rc != QN_OK;
}

/* Random turns of living nodes. */
static void run_for(struct run *r, uint32_t turns)
{
    for (uint32_t i = 0; i < turns; i++) {
        qn_node_t v = coll_draw(r->net, r->net->tree.n);
        if (r->net->node[v].c != NULL) {
            step(r, v);
        }
    }
}

static void check_all_refuse(const struct run *r, uint64_t seed)
{
    for (qn_node_t v = 0; v < r->net->tree.n; v++) {
        cr_assert(r->net->node[v].c == NULL || r->refused[v],
                  "seed %llu: node %u hangs in operation %u",
                  (unsigned long long)seed, v, r->started[v]);
    }
}

Test(coll_death, no_living_node_hangs_wherever_nodes_die, .timeout = 100)
{
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        uint32_t n = 2 + (uint32_t)(seed % (COLL_NODES - 1));
        struct run r = {.net = coll_random(n, seed)};
        qn_node_t victim[2] = {coll_draw(r.net, n), coll_draw(r.net, n)};
        run_for(&r, coll_draw(r.net, 40 * n));
        coll_die(r.net, victim[0]);
        run_for(&r, coll_draw(r.net, 10 * n));
        if (seed % 2 == 0 && victim[1] != victim[0]) {
            coll_die(r.net, victim[1]);
            coll_tell(r.net, victim[1]);
        }
        run_for(&r, coll_draw(r.net, 10 * n));
        coll_tell(r.net, victim[0]);
        run_for(&r, 1000 * n);
        check_all_refuse(&r, seed);
        coll_free(r.net);
    }
}

/* A death is told to neighbours one after the other, and the node may die after
 * any number of its own turns. */
Test(coll_death, each_point_of_a_small_tree_ends_in_an_answer)
{
    static const char *const shapes[] = {"sequential", "tree:k=1", "binary"};
    for (uint32_t at = 0; at < 3 * 4 * 30; at++) {
        qn_node_t victim = at % 4;
        struct run r = {.net = coll_new(shapes[at / 4 % 3], 4)};
        r.net->random = at;
        run_for(&r, at / 12);
        coll_die(r.net, victim);
        coll_tell(r.net, victim);
        run_for(&r, 2000);
        check_all_refuse(&r, at);
        coll_free(r.net);
    }
}

Test(coll_death, what_was_taken_before_the_death_counts)
{
    struct coll_net *net = coll_new("sequential", 3);
    for (qn_node_t v = 0; v < 3; v++) {
        coll_start(net, v, QN_COLL_ALLREDUCE, v + 1);
    }
    coll_turn(net, 2);
    cr_assert_eq(coll_turn(net, 0), QN_EAGAIN);
    coll_die(net, 2);
    coll_tell(net, 2);
    coll_settle(net);
    cr_assert_eq(net->node[0].rc, QN_OK);
    cr_assert_eq(net->node[1].rc, QN_OK);
    cr_assert_eq(net->node[1].out, 6);
    cr_assert_eq(qn_coll_barrier(net->node[0].c, NULL), QN_EPEERDEAD);
    cr_assert_eq(qn_coll_barrier(net->node[1].c, NULL), QN_OK);
    coll_settle(net);
    cr_assert_eq(net->node[1].rc, QN_EPEERDEAD, "the root has said FAIL");
    coll_free(net);
}

Test(coll_death, what_was_not_taken_is_lost)
{
    struct coll_net *net = coll_new("sequential", 2);
    coll_start(net, 0, QN_COLL_REDUCE, 1);
    coll_start(net, 1, QN_COLL_REDUCE, 1);
    cr_assert_eq(coll_turn(net, 1), QN_OK);
    coll_die(net, 1);
    coll_tell(net, 1);
    cr_assert_eq(coll_turn(net, 0), QN_EPEERDEAD);
    cr_assert_eq(coll_turn(net, 0), QN_EPEERDEAD, "it says so again");
    coll_free(net);
}

Test(coll_death, a_node_that_is_no_neighbour_is_heard_of_through_the_tree)
{
    struct coll_net *net = coll_new("tree:k=1", 4);
    for (qn_node_t v = 0; v < 3; v++) {
        cr_assert_eq(qn_coll_barrier(net->node[v].c, NULL), QN_OK);
    }
    coll_die(net, 3);
    qn_coll_down(net->node[0].c, 3);
    coll_settle(net);
    cr_assert_eq(net->node[0].rc, QN_EAGAIN);
    coll_tell(net, 3);
    coll_settle(net);
    for (qn_node_t v = 0; v < 3; v++) {
        cr_assert_eq(net->node[v].rc, QN_EPEERDEAD);
    }
    coll_free(net);
}

Test(coll_death, a_dead_parent_ends_every_phase_but_the_last)
{
    struct coll_net *net = coll_new("tree:k=1", 3);
    cr_assert_eq(qn_coll_barrier(net->node[1].c, NULL), QN_OK); /* GATHER */
    coll_die(net, 0);
    coll_tell(net, 0);
    coll_settle(net);
    cr_assert_eq(net->node[1].rc, QN_EPEERDEAD);
    coll_free(net);

    net = coll_new("tree:k=1", 3);
    inmemory_allow(coll_qp(net, 1, 2), 0);
    for (qn_node_t v = 0; v < 3; v++) {
        coll_start(net, v, QN_COLL_ALLREDUCE, 1);
    }
    coll_settle(net); /* node 1: RELEASE */
    cr_assert_eq(net->node[1].rc, QN_EAGAIN);
    coll_die(net, 0);
    coll_tell(net, 0);
    inmemory_allow(coll_qp(net, 1, 2), INMEMORY_UNLIMITED);
    coll_settle(net);
    cr_assert_eq(net->node[1].rc, QN_OK);
    cr_assert_eq(net->node[2].rc, QN_OK);
    cr_assert_eq(qn_coll_barrier(net->node[1].c, NULL), QN_EPEERDEAD);
    coll_free(net);
}

Test(coll_death, a_dead_child_is_left_out_of_the_release)
{
    struct coll_net *net = coll_new("sequential", 4);
    inmemory_allow(coll_qp(net, 0, 1), 0);
    for (qn_node_t v = 0; v < 4; v++) {
        coll_start(net, v, QN_COLL_ALLREDUCE, 1);
    }
    coll_settle(net);
    cr_assert_eq(net->node[2].rc, QN_EAGAIN);
    coll_die(net, 1);
    coll_tell(net, 1);
    cr_assert_eq(qn_coll_state(net->node[0].c, 1), QN_OK);
    coll_settle(net);
    cr_assert_eq(net->node[0].rc, QN_OK);
    cr_assert_eq(net->node[3].rc, QN_OK);
    coll_free(net);
}

/* Node 0 has sent the first result to node 1 and waits for room in two lanes,
 * of which the other one is no more. */
Test(coll_death, what_is_complete_without_a_dead_child_has_its_output)
{
    static const qn_node_t order[] = {0, 1, 2};
    struct coll_net *net = coll_new("sequential", 3);
    net->window = 2;
    coll_again(net, order, 3, 2);
    inmemory_allow(coll_qp(net, 0, 1), 1);
    inmemory_allow(coll_qp(net, 0, 2), 0);
    for (uint32_t k = 1; k <= 2; k++) {
        for (qn_node_t v = 0; v < 3; v++) {
            coll_start(net, v, QN_COLL_ALLREDUCE, k);
        }
    }
    coll_settle(net);
    cr_assert_eq(qn_coll_state(net->node[0].c, 1), QN_EAGAIN);
    cr_assert_eq(net->node[0].out, 0);
    qn_coll_down(net->node[0].c, 2);
    cr_assert_eq(qn_coll_state(net->node[0].c, 1), QN_OK);
    cr_assert_eq(net->node[0].out, 3);
    cr_assert_eq(qn_coll_state(net->node[0].c, 2), QN_EAGAIN);
    coll_free(net);
}

/* The queuepair says it, because it was told and the collective was not. */
Test(coll_death, a_queuepair_that_is_down_ends_the_operation)
{
    struct coll_net *net = coll_new("sequential", 3);
    coll_start(net, 0, QN_COLL_REDUCE, 1);
    qn_qp_down(coll_qp(net, 0, 2));
    cr_assert_eq(coll_turn(net, 0), QN_EPEERDEAD);
    coll_start(net, 1, QN_COLL_REDUCE, 1);
    qn_qp_down(coll_qp(net, 1, 0));
    cr_assert_eq(coll_turn(net, 1), QN_EPEERDEAD);
    coll_free(net);
}

Test(coll_death, a_queuepair_that_is_down_is_left_out_of_the_release)
{
    struct coll_net *net = coll_new("sequential", 3);
    for (qn_node_t v = 0; v < 3; v++) {
        coll_start(net, v, QN_COLL_ALLREDUCE, 1);
    }
    cr_assert_eq(coll_turn(net, 1), QN_EAGAIN);
    cr_assert_eq(coll_turn(net, 0), QN_EAGAIN); /* has taken node 1's */
    qn_qp_down(coll_qp(net, 0, 1));
    coll_turn(net, 2);
    cr_assert_eq(coll_turn(net, 0), QN_OK);
    cr_assert_eq(coll_turn(net, 2), QN_OK);
    cr_assert_eq(qn_coll_barrier(net->node[0].c, NULL), QN_EPEERDEAD);
    coll_free(net);
}

Test(coll_death, fail_waits_for_room_and_arrives)
{
    struct coll_net *net = coll_new("sequential", 3);
    inmemory_allow(coll_qp(net, 0, 1), 0);
    cr_assert_eq(qn_coll_barrier(net->node[1].c, NULL), QN_OK);
    coll_die(net, 2);
    coll_tell(net, 2);
    cr_assert(qn_coll_flush(net->node[0].c), "FAIL waits");
    coll_settle(net);
    cr_assert(!qn_coll_pending(net->node[0].c));
    cr_assert_eq(net->node[1].rc, QN_EAGAIN);
    inmemory_allow(coll_qp(net, 0, 1), INMEMORY_UNLIMITED);
    cr_assert(qn_coll_pending(net->node[0].c));
    cr_assert(!qn_coll_flush(net->node[0].c));
    coll_settle(net);
    cr_assert_eq(net->node[1].rc, QN_EPEERDEAD);
    coll_free(net);
}

Test(coll_death, a_child_without_room_hears_that_its_parent_has_failed)
{
    struct coll_net *net = coll_new("sequential", 3);
    for (uint32_t k = 0; k <= COLL_CELLS; k++) {
        coll_start(net, 1, QN_COLL_REDUCE, 1);
        coll_turn(net, 1);
    }
    cr_assert_eq(net->node[1].rc, QN_EAGAIN);
    coll_die(net, 2);
    coll_tell(net, 2); /* the root, which has no operation in progress */
    cr_assert(qn_coll_pending(net->node[1].c));
    cr_assert_eq(coll_turn(net, 1), QN_EPEERDEAD);
    coll_free(net);
}

Test(coll_death, the_living_continue_with_the_next_view)
{
    static const qn_node_t order[] = {2, 0, 1, 4};
    struct coll_net *net = coll_new("sequential", 5);
    for (qn_node_t v = 0; v < 5; v++) {
        if (v != 3) {
            cr_assert_eq(qn_coll_barrier(net->node[v].c, NULL), QN_OK);
        }
    }
    coll_settle(net);
    coll_die(net, 3);
    coll_tell(net, 3);
    /* Nodes have not read FAIL: it lies in front of the new messages. */
    coll_again(net, order, 4, 2);
    for (uint32_t k = 0; k < 5; k++) {
        for (uint32_t i = 0; i < 4; i++) {
            coll_start(net, order[i], kind_of(k), order[i]);
        }
        coll_settle(net);
        cr_assert_eq(net->node[2].rc, QN_OK);
        cr_assert_eq(net->node[2].out, 7);
    }
    coll_free(net);
}

/* The view wraps, and a node of an earlier one meets a message of the next:
 * its peers have given it up. */
Test(coll_death, a_message_of_the_next_view_means_that_this_one_is_over)
{
    static const uint16_t views[] = {1, UINT16_MAX};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(views); i++) {
        static const qn_node_t order[] = {0, 1};
        struct coll_net *net = coll_new("sequential", 2);
        coll_again(net, order, 2, views[i]);
        const struct coll_head m = {.view = (uint16_t)(views[i] + 1),
                                    .number = 1};
        cr_assert_eq(qn_coll_barrier(net->node[0].c, NULL), QN_OK);
        cr_assert_eq(qn_qp_try_send(coll_qp(net, 1, 0), &m, 8), QN_OK);
        cr_assert_eq(coll_turn(net, 0), QN_EPEERDEAD);
        cr_assert_eq(inmemory_used(coll_qp(net, 1, 0)), 1, "left for it");
        coll_free(net);
    }
}
