#include "tests/unit/paxos/member/one_member.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/err.h"
#include "paxos/member/member_internal.h"
#include "tests/support/test.h"
#include "transports/registry.h"

struct one one;

void one_begin(void)
{
    const uint32_t seats =
        one.world.seats != 0 ? one.world.seats : (uint32_t)WORLD_NODES;
    one.world = (struct world){.transport = qn_transport_find("ump"),
                               .seats = seats,
                               .memory_acceptor = true};
    cr_assert_eq(
        qn_commons_create(&one.commons, seats, 0, true, &one.world.commons_fd),
        QN_OK);
    for (qn_node_t i = 0; i < seats; i++) {
        one.world.doorbell_fd[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    }
    one.o = world_opts(&one.world, 0, 1);
}

void one_end(void)
{
    qn_commons_destroy(one.commons);
    close(one.world.commons_fd);
    for (qn_node_t i = 0; i < one.world.seats; i++) {
        close(one.world.doorbell_fd[i]);
    }
}

struct qn_outbox *one_outbox_seats(struct qn_member *m, qn_node_t node,
                                   uint64_t incarnation, uint64_t seats)
{
    struct qn_outbox *o = NULL;
    struct qn_outbox_opts like = qn_member_shape(m);
    like.node = node;
    like.incarnation = incarnation;
    like.seats = seats;
    cr_assert_eq(qn_outbox_create(&o, &like), QN_OK);
    return o;
}

struct qn_outbox *one_outbox(struct qn_member *m, qn_node_t node,
                             uint64_t incarnation)
{
    return one_outbox_seats(m, node, incarnation, 0);
}

static struct qn_member_peer peer_with(struct qn_outbox *outbox, qn_node_t node,
                                       uint64_t incarnation)
{
    return (struct qn_member_peer){
        .node = node, .incarnation = incarnation, .fd = qn_outbox_fd(outbox)};
}

int one_meet(struct qn_member *m, struct qn_outbox *outbox, qn_node_t node,
             uint64_t incarnation)
{
    const struct qn_member_peer p = peer_with(outbox, node, incarnation);
    return qn_member_meet(m, &p);
}

int one_peer_up(struct qn_member *m, struct qn_outbox *outbox, qn_node_t node,
                uint64_t incarnation)
{
    const struct qn_member_peer p = peer_with(outbox, node, incarnation);
    return qn_member_peer_up(m, &p);
}

void one_ignores_recorder(void *ctx, qn_node_t node, uint64_t incarnation,
                          const void *flight)
{
    (void)ctx;
    (void)node;
    (void)incarnation;
    (void)flight;
}
