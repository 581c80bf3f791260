/* What a member needs, against what the parts say that it takes. */
#include "paxos/member/member_needs.h"

#include "core/place/commons.h"
#include "core/place/outbox.h"
#include "paxos/log/arena.h"
#include "paxos/log/ring.h"
#include "paxos/machine/params.h"
#include "tests/support/test.h"

#define MIB (UINT64_C(1) << 20)

static struct qn_member_size size_of(uint32_t nodes, bool memory_acceptor)
{
    return (struct qn_member_size){
        .nodes = nodes,
        .memory_acceptor = memory_acceptor,
        .ring_bytes = 300 * MIB,
        .arena_bytes = 20 * MIB,
        .backlog_bytes = 40 * MIB,
        .channels = {.lane = (size_t)64 << 10, .device = 4096}};
}

/* All that is mapped of an outbox as the member makes it. */
Test(member_needs, what_is_mapped_is_what_an_outbox_takes)
{
    for (uint32_t nodes = 1; nodes <= 4; nodes++) {
        const struct qn_member_size s = size_of(nodes, true);
        const struct qn_member_needs n = qn_member_needs(&s);
        const struct qn_outbox_opts o = {
            .nodes = nodes,
            .incarnation = 1,
            .lane_bytes = s.channels.lane,
            .ring_bytes = nodes > 1 ? qn_ring_bytes(QN_RING, s.ring_bytes) : 0,
            .arena_bytes = nodes > 1 ? qn_arena_bytes(s.arena_bytes) : 0,
            .numa_node = -1};
        struct qn_outbox *outbox = NULL;
        cr_assert_eq(qn_outbox_create(&outbox, &o), 0);
        cr_expect_geq(n.mapped + 3 * 4096, qn_outbox_bytes(outbox),
                      "%u nodes: pages of three parts", nodes);
        cr_expect_leq(n.mapped, qn_outbox_bytes(outbox), "%u nodes", nodes);
        cr_expect_eq(n.outbox, qn_outbox_bytes_fixed(&o));
        cr_expect_eq(n.commons, qn_commons_bytes(nodes, 4096));
        qn_outbox_destroy(outbox);
    }
}

/* A vacant seat is address space. */
Test(member_needs, seats_that_are_taken_later_are_told_apart)
{
    struct qn_member_size s = size_of(64, true);
    const struct qn_member_needs all = qn_member_needs(&s);
    s.seats = 7;
    const struct qn_member_needs three = qn_member_needs(&s);
    cr_expect_eq(three.mapped, all.mapped);
    cr_expect_eq(three.seat, all.seat);
    cr_expect_eq(three.seat, 2 * s.channels.lane);
    cr_expect_eq(three.outbox + 61 * three.seat, all.outbox);
}

Test(member_needs, the_log_is_in_the_ring_or_in_private_memory)
{
    const struct qn_member_size memory = size_of(3, true);
    const struct qn_member_size process = size_of(3, false);
    const struct qn_member_needs m = qn_member_needs(&memory);
    const struct qn_member_needs p = qn_member_needs(&process);
    cr_expect_eq(m.ring, 40 * MIB + qn_ring_bytes(QN_RING, 0));
    cr_expect_eq(m.log, QN_LOG_BYTES_MEMORY + QN_AHEAD_BYTES);
    cr_expect_eq(p.ring, 0);
    cr_expect_eq(p.log, 40 * MIB);
    cr_expect_gt(m.mapped, p.mapped + 300 * MIB - 1);
}

Test(member_needs, one_node_keeps_no_log)
{
    static const bool memory_acceptor[] = {true, false};
    for (int i = 0; i < 2; i++) {
        const struct qn_member_size s = size_of(1, memory_acceptor[i]);
        const struct qn_member_needs n = qn_member_needs(&s);
        cr_expect_eq(n.ring, 0);
        cr_expect_eq(n.log, 0);
        cr_expect_eq(n.mapped, n.outbox);
    }
}
