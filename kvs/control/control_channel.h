#ifndef QN_KVS_CONTROL_CONTROL_CHANNEL_H
#define QN_KVS_CONTROL_CONTROL_CHANNEL_H

/**
 * Control messages over a Unix SEQPACKET socket, each with at most one
 * descriptor, and the replica's end of the dialogue.
 *
 * Received messages are checked by the table of kvs/control/control_protocol.h,
 * so a receiver need not check again. The descriptor of a refused message is
 * closed.
 *
 * Threads: each process uses its end from one thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "kvs/control/control_protocol.h"
#include "kvs/control/replica_spec.h"

/** Send one message. `fd` is borrowed, -1: none; it is asserted to be there
 *  if and only if the kind has one. Never blocks. @return QN_OK; QN_EAGAIN:
 *  no room; QN_EPEERDEAD: the other process has ended; QN_EIO. */
int qn_control_send(int control, const struct qn_control_msg *m, int fd);

/** Receive one message. *m is filled, and *fd: a descriptor to close
 *  (close-on-exec), or -1. Blocks only if `wait`. @return QN_OK; QN_EAGAIN:
 *  none; QN_EPEERDEAD; QN_ECORRUPT: *m says why (qn_control_fault_text), *fd
 *  is -1; also if this process may have no more descriptors. */
int qn_control_recv(int control, const struct qn_control_link *link,
                    struct qn_control_msg *m, int *fd, bool wait);

/* ---- in a replica -------------------------------------------------------- */

/** Called for one node during the exchange. PEER_UP: `fd` is the descriptor of
 *  its outbox (borrowed). PEER_DOWN: -1. An error ends the exchange. */
typedef int qn_control_heard_fn(void *ctx, const struct qn_control_msg *m,
                                int fd);

/**
 * Send the own outbox and receive those of the others. Blocks until START.
 *
 * @param own   Its descriptor, borrowed.
 * @return QN_OK; QN_EPEERDEAD: the supervisor has ended; QN_EABORTED: DRAIN or
 *         STOP came; QN_ECORRUPT; else as `heard`.
 */
int qn_control_exchange(const struct qn_replica_spec *spec, int own,
                        qn_control_heard_fn *heard, void *ctx);

/** Send READY, DRAINING, DRAINED to the supervisor. Never blocks. @return
 *  QN_OK; QN_EPEERDEAD: the supervisor has ended, and the replica continues. */
int qn_control_ready(const struct qn_replica_spec *spec);
int qn_control_draining(const struct qn_replica_spec *spec, uint32_t timeout_s);
int qn_control_drained(const struct qn_replica_spec *spec,
                       uint64_t unsent_replies, bool group_stopped);

/** Tell the supervisor why this replica cannot start. */
void qn_control_failed(const struct qn_replica_spec *spec, int err);

/** Receive the next message without blocking. As qn_control_recv; after
 *  QN_EPEERDEAD no message comes any more. */
int qn_control_next(const struct qn_replica_spec *spec,
                    struct qn_control_msg *m, int *fd);

#endif
