/*
 * A channel: a message from the root to the other node and back, over one
 * queuepair.
 */
#include <string.h>

#include "core/base/err.h"
#include "loadgen/simulate/virtual_internal.h"

static struct qn_virtual_world *const world = &qn_virtual_world;

int qn_channel_open(uint32_t node)
{
    (void)node;
    return world->o->tree->n == 2 ? QN_OK : QN_EINVAL;
}

void qn_channel_close(uint32_t node)
{
    (void)node; /* the queuepairs belong to the net */
}

static void send(struct qn_qp *qp, uint64_t number)
{
    uint8_t message[QN_VIRTUAL_SIZE_MAX] = {0};
    message[world->o->size - 1] = (uint8_t)number;
    memcpy(message, &number, sizeof number);
    world->r->wrong += qn_qp_try_send(qp, message, world->o->size) != QN_OK;
    while (qn_qp_flush(qp)) {
        qn_pause(); /* a long message, as the peer makes room */
    }
}

static void receive(struct qn_qp *qp, uint64_t number)
{
    uint8_t message[QN_VIRTUAL_SIZE_MAX];
    uint64_t got;
    size_t len;
    while (qn_qp_try_recv(qp, message, sizeof message, &len) == QN_EAGAIN) {
        (void)qn_qp_flush(qp);
        qn_pause();
    }
    memcpy(&got, message, sizeof got);
    world->r->wrong += len != world->o->size || got != number;
}

void qn_channel_node(uint32_t node)
{
    struct qn_qp *qp = world->net.qp[node][1 - node];
    bool root = node == world->o->tree->root;
    for (uint64_t i = 0; i < world->total; i++) {
        if (root) {
            qn_virtual_begin(i);
            send(qp, i);
        }
        receive(qp, i);
        if (!root) {
            send(qp, i);
        }
        qn_virtual_end(i);
    }
}
