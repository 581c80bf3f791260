#ifndef QN_RENDEZVOUS_FD_MESSAGE_H
#define QN_RENDEZVOUS_FD_MESSAGE_H

/**
 * Messages with descriptors over a Unix socket that keeps message borders
 * (SEQPACKET or DGRAM): unix(7), SCM_RIGHTS.
 *
 * Threads: a socket may be used by one thread at each end. Nothing blocks,
 * unless it says so.
 */

#include <stdbool.h>

#include "core/base/bits.h"

#define QN_FD_MESSAGE_MAX 128u /* descriptors of one message */

/** Send one message of at least a byte. `bytes` and `fds` are borrowed. No
 *  signal is raised.
 *
 *  @param fds  [count], count at most QN_FD_MESSAGE_MAX.
 *  @return QN_OK; QN_EAGAIN: no room, or too many descriptors are under way;
 *          QN_EPEERDEAD: the other end is closed; QN_EIO. */
int qn_fd_message_send(int socket, struct qn_slice bytes, const int *fds,
                       uint32_t count);

/** A received message. */
struct qn_fd_message {
    uint8_t *bytes; /* [cap], the caller's */
    size_t cap;
    size_t len;     /* as it was sent; more than `cap`: the rest is lost */
    uint32_t count; /* descriptors, close-on-exec */
    int fds[QN_FD_MESSAGE_MAX]; /* the caller's to close */
};

/** Receive the next message into *m, whose `bytes` and `cap` are given. Blocks
 *  only if `wait`.
 *
 *  @return QN_OK; QN_EAGAIN: none; QN_EPEERDEAD: the other end is closed, and
 *          all that it sent was received; QN_ECORRUPT: a message with more
 *          than `most` descriptors, which are closed; QN_EMFILE: this process
 * may have no more of them, and the message is lost; QN_EIO. Only with QN_OK
 * there are descriptors. */
int qn_fd_message_recv(int socket, struct qn_fd_message *m, uint32_t most,
                       bool wait);

/** Close the descriptors of a message. */
void qn_fd_message_close(struct qn_fd_message *m);

#endif
