/*
 * Reductions and barriers: what each node does. All nodes begin at the same
 * moment. Each contributes its number plus one and the operation's number, so
 * that a result tells whether all took part, and in the right operation.
 */
#include <stdlib.h>

#include "core/base/err.h"
#include "core/coll/coll.h"
#include "core/coll/operators.h"
#include "loadgen/simulate/virtual_internal.h"

static struct qn_virtual_world *const world = &qn_virtual_world;

int qn_collective_open(uint32_t node)
{
    struct qn_virtual_member *m = &world->member[node];
    const struct qn_coll_opts o = {.self = node,
                                   .tree = world->o->tree,
                                   .qp = world->net.qp[node],
                                   .instance = 1};
    m->coll = malloc(qn_coll_bytes(world->o->tree, node));
    return m->coll == NULL ? QN_ENOMEM : qn_coll_init(m->coll, &o);
}

void qn_collective_close(uint32_t node)
{
    free(world->member[node].coll);
}

static int start(struct qn_coll *c, uint32_t node, uint64_t number)
{
    const uint64_t word[2] = {node + 1, number};
    return world->o->op == QN_VIRTUAL_BARRIER
               ? qn_coll_barrier(c)
               : qn_coll_start(c, QN_COLL_REDUCE, qn_coll_sum, word, 2);
}

/* The sum over all nodes, at the root. */
static bool right(const struct qn_coll *c, uint32_t node, uint64_t number)
{
    const uint64_t n = world->o->tree->n;
    if (world->o->op == QN_VIRTUAL_BARRIER || node != world->o->tree->root) {
        return true;
    }
    const uint64_t *sum = qn_coll_value(c);
    return sum[0] == n * (n + 1) / 2 && sum[1] == n * number;
}

void qn_collective_node(uint32_t node)
{
    struct qn_coll *c = world->member[node].coll;
    for (uint64_t i = 0; i < world->total; i++) {
        int rc;
        qn_virtual_begin(i);
        world->r->wrong += start(c, node, i) != QN_OK;
        while ((rc = qn_coll_poll(c)) == QN_EAGAIN) {
            (void)qn_coll_flush(c);
            qn_pause();
        }
        (void)qn_coll_flush(c);
        world->r->wrong += rc != QN_OK || !right(c, node, i);
        qn_virtual_end(i);
    }
}
