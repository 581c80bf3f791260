#ifndef QN_PAXOS_MACHINE_PARAMS_H
#define QN_PAXOS_MACHINE_PARAMS_H

/**
 * Parameters (PROTOCOL.md 10). Time-outs are suspicion only: a wrong one costs
 * time, never data.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/clock.h"
#include "paxos/flow/flow.h"

struct qn_params {
    qn_time_t t_gap;     /* ns; a gap this old is fetched */
    qn_time_t t_fetch;   /* ns; a FETCH silent this long goes elsewhere */
    qn_time_t t_acc;     /* ns; T_ACC: PREPARE again */
    qn_time_t t_lead;    /* ns; T_LEAD: the next in rank waits half of it */
    qn_time_t jitter;    /* ns; a random part of it is added */
    qn_time_t t_rank;    /* ns; instead of both, if the leader has ended for
                            certain */
    qn_time_t t_read;    /* ns; T_READ: a question for the read index without
                            an answer is asked again */
    qn_time_t u_backoff; /* ns; U_BACKOFF: least pause of a proposer */
    uint32_t batch_commands; /* MAX_BATCH: commands of a batch ... */
    uint32_t batch_bytes;    /* ... or bytes; one command may be larger */
    uint32_t window;         /* WINDOW: slots in flight ... */
    uint64_t window_bytes;   /* ... or bytes; one batch may be larger */
    uint32_t queue;          /* QUEUE: commands waiting or in flight; each
                                origin has queue / nodes of them ... */
    uint64_t queue_bytes;    /* ... or bytes, shared likewise */
    uint32_t upload_bytes;   /* a command as long stays in its origin's arena */
    uint32_t ring;           /* RING: slots kept, a power of two */
    uint32_t learn_bytes;    /* memory acceptor: a longer batch is not sent in
                                its LEARN, but read from the ring */
    uint64_t log_bytes;      /* LOG_BYTES: bytes of batches kept */
    uint64_t ahead_bytes; /* AHEAD_BYTES: a leader decides nothing while it has
                             not applied this many bytes itself */
    struct qn_flow_limits flow; /* how far it may run ahead of the others */
    uint32_t copy_bytes; /* memory acceptor: bytes that one step copies into
                            a ring, or out of one; 0: any number */
};

/* RING and LOG_BYTES are upper bounds and no usual size: an entry is dropped
 * as soon as every node believed alive has applied it, so they matter only
 * for a laggard. A node that is stalled for 5 s while the others apply 500
 * 000 small SETs per second misses 39 000 full batches, 100 MB. It must find
 * them here, or it needs a snapshot. A slot's entry in the ring has 16
 * bytes, and its page is first touched when the slot is used. */
#define QN_RING      131072u
#define QN_LOG_BYTES (UINT64_C(256) << 20)

/** With the memory acceptor the slots that others lack lie in the ring. The
 *  log keeps what this node has not applied, and some for nodes that are
 *  behind a ring. */
#define QN_LOG_BYTES_MEMORY (UINT64_C(8) << 20)

#define QN_AHEAD_BYTES (UINT64_C(4) << 20)
#define QN_LAG_BYTES   (UINT64_C(32) << 20)
#define QN_LAG_TIMEOUT QN_S

/** `lag-timeout` and `min-replicas-to-write` (0, 1, 2 for 1, 3, 5 replicas) of
 *  a group of `nodes`, where `slots` and `bytes` are kept for those behind. */
static inline struct qn_flow_limits qn_flow_default(uint32_t nodes,
                                                    uint32_t slots,
                                                    uint64_t bytes)
{
    return (struct qn_flow_limits){
        .lag_bytes = bytes / 8 < QN_LAG_BYTES ? bytes / 8 : QN_LAG_BYTES,
        .stop_bytes = bytes / 4 * 3,
        .lag_slots = slots / 8,
        .stop_slots = slots / 4 * 3,
        .timeout = QN_LAG_TIMEOUT,
        .min_awaited = (nodes - 1) / 2,
    };
}

/** The column of one machine. @param own_cores  Every node owns its core. */
static inline struct qn_params qn_params_default(bool own_cores)
{
    return (struct qn_params){
        .t_gap = own_cores ? 100 * QN_US : 5 * QN_MS,
        .t_fetch = own_cores ? 5 * QN_MS : 50 * QN_MS,
        .t_acc = own_cores ? 1 * QN_MS : 50 * QN_MS,
        .t_lead = own_cores ? 3 * QN_MS : 50 * QN_MS,
        .jitter = own_cores ? 250 * QN_US : 5 * QN_MS,
        .t_read = own_cores ? 5 * QN_MS : 50 * QN_MS,
        .t_rank = own_cores ? 1 * QN_MS : 5 * QN_MS,
        .u_backoff = own_cores ? 50 * QN_US : 5 * QN_MS,
        .batch_commands = 64,
        .batch_bytes = 16u << 10,
        .window = 16,
        .window_bytes = 1u << 20,
        .queue = 4096,
        .queue_bytes = 24u << 20,
        .upload_bytes = 4u << 10,
        .ring = QN_RING,
        .learn_bytes = 8u << 10,
        .log_bytes = QN_LOG_BYTES,
        .ahead_bytes = QN_AHEAD_BYTES,
        .flow = qn_flow_default(1, QN_RING, QN_LOG_BYTES),
        .copy_bytes = 1u << 20,
    };
}

#endif
