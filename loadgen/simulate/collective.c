/*
 * Reductions, all-reductions, barriers and commits: what each node does. All
 * nodes begin at the same moment. Each contributes its number plus one and the
 * operation's number, so that a result tells whether all took part, and in the
 * right operation.
 */
#include "core/base/err.h"
#include "core/coll/coll.h"
#include "loadgen/simulate/virtual_internal.h"

static struct qn_virtual_world *const world = &qn_virtual_world;

int qn_collective_open(uint32_t node)
{
    const struct qn_coll_opts o = {.self = node,
                                   .down = world->o->tree,
                                   .qp = world->net.qp[node],
                                   .view = 1,
                                   .exchange = world->o->exchange};
    return qn_coll_create(&world->member[node].coll, &o);
}

void qn_collective_close(uint32_t node)
{
    qn_coll_destroy(world->member[node].coll);
}

/* Of commits every third is refused, by the members in turn. */
static bool is_refused(uint64_t number)
{
    return number % 3 == 2;
}

static int start(struct qn_coll *c, uint32_t node, uint64_t number,
                 uint64_t sum[2])
{
    const uint64_t word[2] = {node + 1, number};
    const uint64_t vote =
        !is_refused(number) || number / 3 % world->o->tree->n != node;
    struct qn_coll_call call = {.what = QN_COLL_REDUCE,
                                .op = &qn_sum_u64,
                                .in = word,
                                .out = sum,
                                .count = 2};
    switch (world->o->op) {
    case QN_VIRTUAL_BARRIER:
        return qn_coll_barrier(c, NULL);
    case QN_VIRTUAL_ALLREDUCE:
        call.what = QN_COLL_ALLREDUCE;
        break;
    case QN_VIRTUAL_2PC:
        call = (struct qn_coll_call){
            .what = QN_COLL_COMMIT, .in = &vote, .out = sum};
        break;
    default:
        break;
    }
    return qn_coll_start(c, &call, NULL);
}

/* The sum over all nodes, at the root or everywhere, or the decision. */
static bool right(const uint64_t sum[2], uint32_t node, uint64_t number)
{
    const uint64_t n = world->o->tree->n;
    if (world->o->op == QN_VIRTUAL_2PC) {
        return sum[0] == !is_refused(number);
    }
    bool has_result =
        world->o->op == QN_VIRTUAL_ALLREDUCE ||
        (world->o->op == QN_VIRTUAL_REDUCE && node == world->o->tree->root);
    return !has_result || (sum[0] == n * (n + 1) / 2 && sum[1] == n * number);
}

void qn_collective_node(uint32_t node)
{
    struct qn_coll *c = world->member[node].coll;
    for (uint64_t i = 0; i < world->total; i++) {
        uint64_t sum[2] = {UINT64_MAX, 0};
        int rc;
        qn_virtual_begin(i);
        world->r->wrong += start(c, node, i, sum) != QN_OK;
        while ((rc = qn_coll_poll(c)) == QN_EAGAIN) {
            (void)qn_coll_flush(c);
            if (!qn_coll_moved(c)) {
                qn_pause();
            }
        }
        (void)qn_coll_flush(c);
        world->r->wrong += rc != QN_OK || !right(sum, node, i);
        qn_virtual_end(i);
    }
}
