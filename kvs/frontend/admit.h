#ifndef QN_KVS_FRONTEND_ADMIT_H
#define QN_KVS_FRONTEND_ADMIT_H

/**
 * Which connections become clients: at most `maxclients` in the whole server,
 * and in protected mode only those from this machine.
 *
 * Each replica publishes in its outbox how many clients it serves
 * (kvs/server/server_clients.c); the sum over the living ones decides, so that
 * the clients of one that has died find room at the others at once. Several
 * replicas that admit at the same moment may exceed the bound by one each.
 *
 * Threads: one, the loop's.
 */

#include <stdbool.h>

struct qn_conn;

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
