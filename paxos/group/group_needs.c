/* What a group takes, told before there is one. */
#include "core/base/bits.h"
#include "core/base/err.h"
#include "paxos/feed/feed.h"
#include "paxos/group/group_internal.h"
#include "paxos/member/member_needs.h"

/* Beside the doorbells: epoll, timer, commons, file and socket of the name. */
enum { DESCRIPTORS = 5 };

int qn_group_needs(const struct qn_group_opts *o, struct qn_group_needs *out)
{
    struct qn_dialogue_layout l;
    struct qn_group_opts full = *o;
    qn_group_defaults(&full);
    int err = qn_group_layout(&full, &l);
    if (err == QN_OK && o->feed != NULL && !qn_feed_valid(o->feed)) {
        err = QN_EINVAL;
    }
    if (err != QN_OK) {
        return err;
    }
    const struct qn_device_opts d = qn_group_device(&l);
    const struct qn_member_size size = {
        .nodes = l.nodes,
        .memory_acceptor = qn_group_by_memory(&l),
        .ring_bytes = qn_group_ring_bytes(&l),
        .arena_bytes = qn_group_arena_bytes(&l),
        .backlog_bytes = l.log_bytes,
        .channels = qn_transport_needs(o->transport, l.cells, &d)};
    const struct qn_member_needs n = qn_member_needs(&size);
    *out = (struct qn_group_needs){
        .shared = n.outbox + n.ring + qn_group_arena_bytes(&l),
        .commons = n.commons,
        .log = n.log,
        .feed = o->feed != NULL ? qn_feed_bytes(o->feed) : 0,
        /* of each other member one that has ended, too */
        .mapped = 2 * n.commons + (2 * (uint64_t)l.nodes - 1) * n.mapped,
        .descriptors = DESCRIPTORS + 3 * l.nodes - 1,
    };
    return QN_OK;
}
