/*
 * Collective operations of threads: each opens a queuepair to each other one,
 * makes a collective over a tree, and calls the same operations as all others.
 */
#include <pthread.h>
#include <stdio.h>

#include "core/coll/coll.h"
#include "core/place/outbox.h"
#include "transports/registry.h"

#define NODES 4u
#define CELLS 64u /* of a lane */
#define LANE  QN_LANE_TREE
static struct qn_outbox *box[NODES]; /* the memory that each node writes */
static struct qn_tree tree;
static qn_a32 right; /* nodes */

/* A node writes its own outbox, reads that of the peer, and rings its bell. */
static struct qn_qp *open_qp(qn_node_t self, qn_node_t peer,
                             struct qn_doorbell *bell,
                             struct qn_doorbell_handle *ringer)
{
    struct qn_qp *qp = NULL;
    struct qn_qp_opts o = {.cells = CELLS, .self_inc = 1, .peer_inc = 1};
    o.tx = qn_outbox_lane(box[o.self = self], o.peer = peer, o.lane = LANE);
    o.rx = qn_outbox_lane(box[peer], self, LANE);
    qn_doorbell_handle_init(ringer, qn_outbox_doorbell(box[peer]), -1);
    o.doorbell = bell, o.ringer = ringer;
    return qn_transport_find("ump")->open(&qp, &o) == QN_OK ? qp : NULL;
}

/* A sum, a barrier, and messages of the root, under way at once, in order. */
static bool operate(struct qn_coll *c, qn_node_t self)
{
    uint64_t mine = self + 1, sum = 0, sent[3] = {7, 8, 9}, got[3] = {0};
    uint32_t last;
    struct qn_coll_call call = {.what = QN_COLL_ALLREDUCE, .op = &qn_sum_u64};
    call.in = &mine, call.out = &sum, call.count = 1;
    bool good = qn_coll_start(c, &call, &last) == QN_OK &&
                qn_coll_wait(c, last, QN_TIME_NEVER) == QN_OK &&
                qn_coll_barrier(c, &last) == QN_OK;
    for (uint32_t i = 0; i < 3 && good; i++) {
        call = (struct qn_coll_call){.what = QN_COLL_ACKNOWLEDGED,
                                     .in = &sent[i],
                                     .out = &got[i],
                                     .count = sizeof got[i]};
        good = qn_coll_start(c, &call, &last) == QN_OK;
    }
    good = good && qn_coll_wait(c, last, QN_TIME_NEVER) == QN_OK;
    return good && sum == 10 && got[0] == 7 && got[1] == 8 && got[2] == 9;
}

static void *node(void *arg)
{
    const qn_node_t self = (qn_node_t)((struct qn_outbox **)arg - box);
    struct qn_doorbell bell;
    struct qn_doorbell_handle ringer[NODES];
    struct qn_qp *qp[NODES] = {NULL};
    struct qn_coll *c = NULL;
    struct qn_coll_opts o = {
        .self = self, .down = &tree, .qp = qp, .window = 4};
    qn_doorbell_init(o.doorbell = &bell, qn_outbox_doorbell(box[self]), -1);
    for (qn_node_t v = 0; v < NODES; v++) {
        qp[v] = v != self ? open_qp(self, v, &bell, &ringer[v]) : NULL;
    }
    bool good = qn_coll_create(&c, &o) == QN_OK && operate(c, self);
    while (good && qn_coll_flush(c)) { /* until the last message has gone */
        qn_pause();
    }
    qn_fetch_add(&right, good, QN_SEQ_CST);
    qn_coll_destroy(c);
    for (qn_node_t v = 0; v < NODES; v++) {
        qn_qp_close(qp[v]);
    }
    return NULL;
}

int main(void)
{
    pthread_t thread[NODES];
    struct qn_outbox_opts o = {
        .nodes = NODES, .incarnation = 1, .numa_node = -1};
    o.lane_bytes = qn_transport_find("ump")->lane_bytes(CELLS);
    bool good = qn_tree_build(&tree, "binary", (qn_node_t[]){0, 1, 2, 3},
                              NODES) == QN_OK;
    for (o.node = 0; o.node < NODES && good; o.node++) {
        good = qn_outbox_create(&box[o.node], &o) == QN_OK;
    }
    for (qn_node_t v = 0; v < NODES && good; v++) {
        pthread_create(&thread[v], NULL, node, &box[v]);
    }
    for (qn_node_t v = 0; v < NODES && good; v++) {
        pthread_join(thread[v], NULL);
    }
    good = good && qn_load(&right, QN_SEQ_CST) == NODES;
    puts(good ? "all nodes are right" : "some node is wrong");
    return good ? 0 : 1;
}
