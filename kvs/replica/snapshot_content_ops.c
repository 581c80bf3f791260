/*
 * The operations that the content of snapshots needs, on a real replica.
 */
#include "kvs/replica/snapshot_content_ops.h"

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

struct qn_snapshot_content_ops qn_snapshot_content_ops_of(
    struct qn_replica *replica)
{
    return (struct qn_snapshot_content_ops){.store = store,
                                            .facts = facts,
                                            .install = install,
                                            .discard = discard,
                                            .ctx = replica};
}
