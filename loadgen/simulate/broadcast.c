/*
 * Broadcasts and acknowledged broadcasts: what each node does. The first are
 * those of core/group, the second those of core/coll/sequenced_broadcast.h.
 */
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/coll/sequenced_broadcast.h"
#include "core/group/group.h"
#include "loadgen/operation/operation.h"
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

/* The root's own copy does not count. */
static void deliver_sequenced(void *ctx, uint32_t number, const void *msg,
                              size_t len)
{
    const struct qn_virtual_member *m = ctx;
    if (!m->is_root) {
        world->r->wrong += number != (uint32_t)m->got + 1;
        deliver(ctx, msg, len);
    }
}

static bool is_acked(void)
{
    return world->o->op == QN_VIRTUAL_ACK;
}

static bool flush(struct qn_virtual_member *m)
{
    return is_acked() ? qn_sequenced_broadcast_flush(m->sequenced)
                      : qn_context_flush(m->context);
}

static void turn(struct qn_virtual_member *m)
{
    const bool found = is_acked() ? qn_sequenced_broadcast_poll(m->sequenced)
                                  : qn_context_poll(m->context, BUDGET) > 0;
    (void)flush(m);
    if (!found) {
        qn_pause();
    }
}

static void send(struct qn_virtual_member *m, uint64_t number)
{
    uint8_t message[QN_VIRTUAL_SIZE_MAX] = {0};
    const struct qn_slice part = {message, world->o->size};
    message[world->o->size - 1] = (uint8_t)number;
    memcpy(message, &number, sizeof number);
    int rc = is_acked() ? qn_sequenced_broadcast_send(m->sequenced, message,
                                                      part.len, NULL)
                        : qn_context_bcast(m->context, &part, 1, NULL);
    world->r->wrong += rc != QN_OK;
    while (flush(m)) {
        qn_pause(); /* a long message, as the children make room */
    }
}

static void root(struct qn_virtual_member *m)
{
    for (uint64_t i = 0; i < world->total; i++) {
        qn_virtual_begin(i);
        send(m, i);
        while (is_acked() && qn_sequenced_broadcast_acked(m->sequenced) <= i) {
            turn(m);
        }
        qn_virtual_end(i);
    }
}

static bool has_all(const struct qn_virtual_member *m)
{
    return m->got == world->total &&
           (!is_acked() ||
            qn_sequenced_broadcast_acked(m->sequenced) == world->total);
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
    (void)flush(m); /* the last acknowledgement */
}

static int open_sequenced(struct qn_virtual_member *m, uint32_t node)
{
    int rc =
        qn_operation_wiring(&m->wiring, world->o->tree, world->o->ring, node);
    if (rc != QN_OK) {
        return rc;
    }
    const struct qn_sequenced_broadcast_opts o = {.wiring = m->wiring,
                                                  .qp = world->net.qp[node],
                                                  .window = 1,
                                                  .bytes_max = world->o->size,
                                                  .view = 1,
                                                  .deliver = deliver_sequenced,
                                                  .ctx = m};
    m->is_root = m->wiring->root;
    return qn_sequenced_broadcast_create(&m->sequenced, &o);
}

int qn_broadcast_open(uint32_t node)
{
    struct qn_virtual_member *m = &world->member[node];
    const struct qn_context_opts c = {.self = node,
                                      .members = world->o->tree->n,
                                      .msg_max = QN_VIRTUAL_SIZE_MAX,
                                      .tree = world->o->tree,
                                      .qp = world->net.qp[node],
                                      .deliver = deliver,
                                      .ctx = m};
    return is_acked() ? open_sequenced(m, node)
                      : qn_context_create(&m->context, &c);
}

void qn_broadcast_close(uint32_t node)
{
    struct qn_virtual_member *m = &world->member[node];
    qn_context_destroy(m->context);
    qn_sequenced_broadcast_destroy(m->sequenced);
    qn_wiring_destroy(m->wiring);
}
