/*
 * The operations of a state transfer, and of its content, on a real replica.
 */
#include "kvs/replica/state_transfer_ops.h"
#include "paxos/machine/params.h"

static int tell(void *ctx, qn_node_t to, struct qn_slice bytes)
{
    return qn_replica_send_peer_message(ctx, to, bytes);
}

static struct qn_store *store(void *ctx)
{
    return qn_replica_store(ctx);
}

static void facts(void *ctx, struct qn_snapshot_meta *m)
{
    qn_replica_facts(ctx, m);
}

static void install(void *ctx, struct qn_store *s,
                    const struct qn_snapshot_meta *m)
{
    qn_replica_install(ctx, s, m);
}

static void discard(void *ctx, struct qn_store *s)
{
    qn_replica_discard(ctx, s);
}

static bool cut(void *ctx, struct qn_library_state *s)
{
    return qn_replica_cut(ctx, s);
}

static int resume(void *ctx, const struct qn_library_state *s, qn_time_t now)
{
    return qn_replica_resume(ctx, s, now);
}

/* The leader has the most work. */
static uint64_t busy(void *ctx)
{
    struct qn_driver_status st;
    qn_driver_status(qn_replica_driver(ctx), &st);
    return st.leader < QN_NODES_MAX ? UINT64_C(1) << st.leader : 0;
}

static uint32_t log_used(void *ctx, qn_slot_t position)
{
    struct qn_driver_status st;
    qn_driver_status(qn_replica_driver(ctx), &st);
    uint64_t slots = st.applied > position ? st.applied - position : 0;
    uint64_t bytes = qn_driver_bytes_above(qn_replica_driver(ctx), position);
    uint64_t backlog = qn_replica_config(ctx)->repl_backlog_size;
    uint64_t most = backlog != QN_BACKLOG_AUTO ? backlog : QN_LOG_BYTES;
    const struct qn_flow_limits l = qn_flow_default(2, QN_RING, most);
    uint64_t used =
        QN_MAX(100 * bytes / l.stop_bytes, 100 * slots / l.stop_slots);
    return (uint32_t)QN_MIN(used, 100u);
}

static void hold(void *ctx, qn_node_t joiner, qn_slot_t position, uint32_t done)
{
    qn_driver_hold(qn_replica_driver(ctx), joiner, position, done);
}

static void release(void *ctx, qn_node_t joiner)
{
    (void)joiner; /* a donor serves one joiner at a time */
    qn_driver_release(qn_replica_driver(ctx));
}

struct qn_state_transfer_ops qn_state_transfer_ops_of(
    struct qn_replica *replica)
{
    return (struct qn_state_transfer_ops){.tell = tell,
                                          .busy = busy,
                                          .cut = cut,
                                          .resume = resume,
                                          .log_used = log_used,
                                          .hold = hold,
                                          .release = release,
                                          .cpu = qn_clock_cpu,
                                          .ctx = replica};
}

struct qn_snapshot_content_ops qn_snapshot_content_ops_of(
    struct qn_replica *replica)
{
    return (struct qn_snapshot_content_ops){.store = store,
                                            .facts = facts,
                                            .install = install,
                                            .discard = discard,
                                            .ctx = replica};
}
