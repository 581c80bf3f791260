#ifndef QN_KVS_LISTEN_FD_PASSING_H
#define QN_KVS_LISTEN_FD_PASSING_H

/**
 * Passes connections of a Unix socket to the replica on which they should land.
 *
 * All replicas accept from one Unix socket, so the kernel cannot choose by the
 * client's core. The accepting replica looks up where the client runs, and
 * passes the descriptor to a near replica. Each replica receives from its own
 * datagram socket. All others hold both ends of it: they send to one end, and
 * receive from the other end what a dead or stalled owner does not receive
 * (kvs/server/server_accept.h).
 *
 * Threads: any, each with its own descriptors. Nothing blocks.
 */

/** Make a pair of sockets. @return QN_OK, both filled, non-blocking, closed
 *  on exec; QN_EMFILE, neither filled. */
int qn_fd_passing_open(int *from, int *to);

/** Pass a connection on. `fd` is borrowed: close it after QN_OK. @return
 *  QN_OK; QN_EAGAIN: the queue is full, keep it; QN_EPEERDEAD, QN_EIO: no
 * process receives there, keep it. */
int qn_fd_passing_send(int to, int fd);

/** Receive the next connection. @return a descriptor, closed on exec;
 *  QN_EAGAIN: none. */
int qn_fd_passing_recv(int from);

/** The core on which the process at the other end of a Unix connection ran
 *  last; -1: unknown (it has ended, or is in another PID namespace). About
 *  20 us. */
int qn_fd_passing_cpu(int connection);

#endif
