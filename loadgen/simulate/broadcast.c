/*
 * Broadcasts and acknowledged broadcasts: what each node does.
 */
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/group/group.h"
#include "loadgen/simulate/virtual_internal.h"

#define BUDGET 64u /* messages of a turn */

static struct qn_virtual_world *const world = &qn_virtual_world;

static void deliver(void *ctx, const void *msg, size_t len)
{
    struct qn_virtual_member *m = ctx;
    uint64_t number = UINT64_MAX;
    const uint8_t *byte = msg;
    memcpy(&number, msg, QN_MIN(len, sizeof number));
    if (len != world->o->size || number != m->got ||
        (len > sizeof number && byte[len - 1] != (uint8_t)number)) {
        world->r->wrong++;
        return;
    }
    qn_virtual_end(number);
    m->got++;
}

static void turn(struct qn_virtual_member *m)
{
    uint32_t found = qn_context_poll(m->context, BUDGET);
    (void)qn_context_flush(m->context);
    if (found == 0) {
        qn_pause();
    }
}

static void send(struct qn_virtual_member *m, uint64_t number)
{
    uint8_t message[QN_VIRTUAL_SIZE_MAX] = {0};
    const struct qn_slice part = {message, world->o->size};
    uint64_t given;
    message[world->o->size - 1] = (uint8_t)number;
    memcpy(message, &number, sizeof number);
    int rc = world->o->op == QN_VIRTUAL_ACK
                 ? qn_context_bcast_acked(m->context, &part, 1, &given)
                 : qn_context_bcast(m->context, &part, 1, NULL);
    world->r->wrong += rc != QN_OK;
    while (qn_context_flush(m->context)) {
        qn_pause(); /* a long message, as the children make room */
    }
}

static void root(struct qn_virtual_member *m)
{
    for (uint64_t i = 0; i < world->total; i++) {
        qn_virtual_begin(i);
        send(m, i);
        while (world->o->op == QN_VIRTUAL_ACK &&
               qn_context_acked(m->context) <= i) {
            turn(m);
        }
        qn_virtual_end(i);
    }
}

static bool has_all(const struct qn_virtual_member *m)
{
    return m->got == world->total &&
           (world->o->op != QN_VIRTUAL_ACK ||
            qn_context_acked(m->context) == world->total);
}

void qn_broadcast_node(uint32_t node)
{
    struct qn_virtual_member *m = &world->member[node];
    if (node == world->o->tree->root) {
        root(m);
        return;
    }
    while (!has_all(m)) {
        turn(m);
    }
    (void)qn_context_flush(m->context); /* the last acknowledgement */
}

int qn_broadcast_open(uint32_t node)
{
    const struct qn_context_opts c = {.self = node,
                                      .members = world->o->tree->n,
                                      .msg_max =
                                          QN_VIRTUAL_SIZE_MAX + QN_ACKED_EXTRA,
                                      .tree = world->o->tree,
                                      .qp = world->net.qp[node],
                                      .deliver = deliver,
                                      .ctx = &world->member[node],
                                      .acked = world->o->op == QN_VIRTUAL_ACK};
    return qn_context_create(&world->member[node].context, &c);
}

void qn_broadcast_close(uint32_t node)
{
    qn_context_destroy(world->member[node].context);
}
