#ifndef QN_KVS_LISTEN_PROTECTED_MODE_H
#define QN_KVS_LISTEN_PROTECTED_MODE_H

/**
 * Protected mode: there is no password, so only clients on this machine are
 * served. This module tells local clients from remote ones, and writes the line
 * of the log at start.
 *
 * Threads: any; both functions are pure except for the log. Nothing blocks.
 */

#include <stdbool.h>
#include <sys/socket.h>

#include "kvs/config/config.h"

/** True if the peer is on this machine: `sa`, the peer's address of a TCP
 * connection, is a loopback address of IPv4, of IPv6, or of IPv4 mapped into
 * IPv6. Any other family: false.
 */
bool qn_protected_mode_is_local(const struct sockaddr *sa);

/** At start: log one line if other machines can reach the address. */
void qn_protected_mode_log(const struct qn_config *c);

#endif
