#ifndef QN_KVS_LISTEN_PROTECTED_MODE_H
#define QN_KVS_LISTEN_PROTECTED_MODE_H

/**
 * Protected mode: there is no password, so only clients on this machine are
 * served. Here: who is on this machine, and what the log says at start.
 *
 * Threads: any; both functions are pure but for the log.
 */

#include <stdbool.h>
#include <sys/socket.h>

#include "kvs/config/config.h"

/** Is the peer on this machine? `sa` is that of a TCP connection: true if it is
 *  a loopback address, IPv4, IPv6 or one in the other. Any other family: false.
 */
bool qn_protected_mode_is_local(const struct sockaddr *sa);

/** Say so, in one line, if other machines can reach the address that is
 *  listened on; at start. */
void qn_protected_mode_log(const struct qn_config *c);

#endif
