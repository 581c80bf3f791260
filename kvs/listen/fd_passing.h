#ifndef QN_KVS_LISTEN_FD_PASSING_H
#define QN_KVS_LISTEN_FD_PASSING_H

/**
 * Connections of a Unix socket, passed on to the replica they should land on.
 *
 * The kernel does not choose among sockets by the client's core there, as all
 * replicas accept from one. So who accepts asks where the client runs, and
 * passes the descriptor to a near replica. Each replica receives from a socket
 * of datagrams of its own, whose both ends all others hold: they send to one
 * end, and receive from the other what its owner, dead or standing still, does
 * not (kvs/server/server_accept.h).
 *
 * Threads: any, each with its own descriptors. Nothing blocks.
 */

/** A pair to pass through. @return QN_OK; QN_EMFILE. Both filled, non-blocking,
 *  closed on exec. */
int qn_fd_passing_open(int *from, int *to);

/** Pass on. `fd` is borrowed: close it. @return QN_OK; QN_EAGAIN: there is no
 *  room, keep it; QN_EIO: nobody receives there. */
int qn_fd_passing_send(int to, int fd);

/** The next one. @return a descriptor, closed on exec; QN_EAGAIN: none. */
int qn_fd_passing_recv(int from);

/** The core on which the process at the other end of a Unix connection ran
 *  last; -1: unknown (it has ended, or is in another PID namespace). About
 *  20 us. */
int qn_fd_passing_cpu(int connection);

#endif
