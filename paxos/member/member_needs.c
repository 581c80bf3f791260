/*
 * Of the log a member keeps the backlog: in its ring and, not applied yet, in
 * private memory (memory acceptor); or in private memory only.
 */
#include "paxos/member/member_needs.h"

#include "core/place/commons.h"
#include "core/place/outbox.h"
#include "paxos/log/arena.h"
#include "paxos/log/ring.h"
#include "paxos/machine/params.h"

struct qn_member_needs qn_member_needs(const struct qn_member_size *s)
{
    const struct qn_outbox_opts all = {.nodes = s->nodes,
                                       .lane_bytes = s->channels.lane};
    struct qn_outbox_opts outbox = all;
    const bool ring = s->memory_acceptor && s->nodes > 1;
    const uint64_t backlog = s->nodes > 1 ? s->backlog_bytes : 0;
    outbox.seats = 1; /* the owner's */
    const uint64_t none = qn_outbox_bytes_fixed(&outbox);
    outbox.seats = s->seats;
    struct qn_member_needs n = {
        .commons = qn_commons_bytes(s->nodes, s->channels.device),
        .outbox = qn_outbox_bytes_fixed(&outbox),
        .seat = s->nodes > 1
                    ? (qn_outbox_bytes_fixed(&all) - none) / (s->nodes - 1)
                    : 0,
        .log = backlog,
    };
    n.mapped = qn_outbox_bytes_fixed(&all) +
               (s->nodes > 1 ? qn_arena_bytes(s->arena_bytes) : 0);
    if (ring) {
        n.ring = backlog + qn_ring_bytes(QN_RING, 0);
        n.log = QN_LOG_BYTES_MEMORY + QN_AHEAD_BYTES;
        n.mapped += qn_ring_bytes(QN_RING, s->ring_bytes);
    }
    return n;
}
