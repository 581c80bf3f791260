#ifndef QN_KVS_ADMIT_H
#define QN_KVS_ADMIT_H

/**
 * Who may be a client: at most `maxclients` in the whole server, and in
 * protected mode only who is on this machine.
 *
 * Each replica publishes in its outbox how many clients it serves; the sum over
 * those that live decides, so that the clients of one that has died find room
 * at the others at once. Several replicas that admit at the same moment may
 * exceed the bound by one each.
 *
 * Threads: one, the loop's; qn_admit_is_local is pure.
 */

#include <stdbool.h>
#include <sys/socket.h>

#include "kvs/config.h"

struct qn_conn;

/** Where a replica publishes how many clients it serves: an index of
 *  `counters` in struct qn_outbox_state. */
enum { QN_COUNTER_CLIENTS = 0 };

/** Say so, in one line, if others than those on this machine can reach the
 *  address that is listened on; at start. */
void qn_admit_log(const struct qn_config *c);

/** Is the peer on this machine? `sa` is that of a TCP connection: true if it is
 *  a loopback address, IPv4, IPv6 or one in the other. Any other family: false.
 */
bool qn_admit_is_local(const struct sockaddr *sa);

/**
 * Admit a connection that was accepted.
 *
 * @return NULL: it is a client from here on, until qn_admit_gone. Else the
 *         error that says why not, without its dash.
 */
const char *qn_admit(struct qn_conn *c, bool is_unix);

/** It is closed. */
void qn_admit_gone(struct qn_conn *c);

#endif
