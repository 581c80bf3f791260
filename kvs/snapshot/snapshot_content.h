#ifndef QN_KVS_SNAPSHOT_SNAPSHOT_CONTENT_H
#define QN_KVS_SNAPSHOT_SNAPSHOT_CONTENT_H

/**
 * A replica's state as the content of a state transfer: the callbacks of
 * paxos/member/transfer/state_transfer.h for a store.
 *
 * The donor's half begins a cut of the store and writes its chunks
 * (snapshot.h). It keeps old versions up to a quarter of the store's logical
 * size (`log_bytes` at least); beyond that the cut is given up. The joiner's
 * half reads chunks into a new store, beside the one from which the replica
 * serves, and gives it to the replica at the end.
 *
 * Threads: one. Nothing blocks.
 */

#include "kvs/snapshot/snapshot.h"
#include "paxos/member/transfer/state_transfer.h"

/** What it needs of its replica. */
struct qn_snapshot_content_ops {
    /** The store, complete; NULL: there is none to give, and none to serve. */
    struct qn_store *(*store)(void *ctx);
    /** Fill in config, refused, applied_ms, nodes, as of the store now. */
    void (*facts)(void *ctx, struct qn_snapshot_meta *m);
    /** Replace the store and the facts. @param store  Taken. */
    void (*install)(void *ctx, struct qn_store *store,
                    const struct qn_snapshot_meta *m);
    /** Free a store in steps. Taken. */
    void (*discard)(void *ctx, struct qn_store *store);
    void *ctx;
};

struct qn_snapshot_content_opts {
    uint32_t nodes;
    const struct qn_config *config; /* start configuration; kept */
    uint64_t log_bytes;             /* that old versions may have at least */
    struct qn_snapshot_content_ops ops;
};

/** Figures for INFO. */
struct qn_snapshot_content_status {
    uint64_t keys, keys_total; /* read of the snapshot under way, and announced
                                  by it */
    uint64_t cut_bytes;        /* giving: old versions kept, */
    uint64_t cut_bytes_max;    /* and how many may be */
    uint64_t cut_bytes_most;   /* the most kept by a cut of this store */
};

struct qn_snapshot_content; /* opaque */

/** Create one; `o` is copied, what it points to is kept. @return QN_OK;
 *  QN_ENOMEM, *out untouched. */
int qn_snapshot_content_create(struct qn_snapshot_content **out,
                               const struct qn_snapshot_content_opts *o);
/** Free it, after the state transfer that uses it. NULL is allowed. */
void qn_snapshot_content_destroy(struct qn_snapshot_content *c);

/** Its callbacks; `c` is kept. */
struct qn_state_transfer_user qn_snapshot_content_user(
    struct qn_snapshot_content *c);

/** Fill *out with the present figures. */
void qn_snapshot_content_status(const struct qn_snapshot_content *c,
                                struct qn_snapshot_content_status *out);

#endif
