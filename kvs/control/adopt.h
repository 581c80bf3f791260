#ifndef QN_KVS_CONTROL_ADOPT_H
#define QN_KVS_CONTROL_ADOPT_H

/**
 * How a running group gets a new supervisor.
 *
 * Replicas go on when their supervisor has died. Each holds a Unix SEQPACKET
 * socket in the run-time folder (kvs/config/rundir.h), named after the server's
 * address and its own id. The socket listens before the replica is announced,
 * and accepts only after the replica has seen the end of its supervisor. A new
 * `quoind` on the address takes the supervisor's lock (held by one process and
 * inherited by none), connects to all replicas, and each connection is the
 * control socket from then on (kvs/control/control_protocol.h):
 *
 *     orphan                        adopter
 *                              <-  ADOPT + oldest and newest version
 *     ADOPT + version, commons ->      another version: this alone, and the
 *                                      replica stays an orphan
 *     FORMAT + version         ->      each that it speaks
 *                                      (kvs/control/formats.h)
 *     CONFIG + memfd of text   ->
 *     LOCK + descriptor        ->      of the address
 *     LISTEN + socket          ->      its own port's; each of the shared; what
 *                                      connections are passed on through
 *     DOORBELL + eventfd       ->      each node's
 *     PEER_UP + outbox         ->      each incarnation that it has mapped
 *     PEER_DOWN                ->      each node's last incarnation, if dead
 *     HELLO + outbox, [READY]  ->      its own
 *     START                    ->      that is all
 *                              <-  START  adopted
 *
 * A replica that cannot be connected to, since its queue is full, is not
 * replaced while it lives (kvs/supervisor/vacancy.h).
 *
 * Until START has come the replica does not belong to the adopter: if that one
 * ends, or refuses, the replica waits for another. What arrives at a stalled
 * orphan is done when it resumes, in order.
 *
 * A living supervisor hands over as well, if it is asked (`quoind --upgrade`):
 * the lock is a listening socket, too.
 *
 *     supervisor                heir
 *                              <-  ADOPT + oldest and newest version
 *     ADOPT + version          ->      or FAILED + QN_EBUSY: it is ending
 *     FORMAT + version         ->      each
 *     CONFIG + memfd of text   ->
 *     START                    ->      that is all
 *                              <-  START  leave; or hang up, and nothing was
 *
 * Then it ends, with status 0, its replicas are orphans, and the heir is their
 * adopter.
 *
 * A server that was started with `--port 0` is adopted by the port it has got.
 *
 * Threads: any, each with its own descriptors.
 */

#include <sys/types.h>

#include "core/node.h"
#include "kvs/config/config.h"

/** Of the control messages, their bytes and their order. */
#define QN_ADOPT_VERSION 6u
#define QN_ADOPT_OLDEST  6u

/** Be the supervisor of this address. @param lock  Filled: another descriptor
 *  to hold as long. @return the socket where heirs come; or QN_EADDRINUSE:
 *  another process is; QN_ENOENT: the address has no name; QN_EMFILE, QN_EIO.
 */
int qn_adopt_lock(const struct qn_config *c, int *lock);

/** The version of the hand-over that both can: this build, and one with that
 *  range. @return 0: none. Pure. */
uint32_t qn_adopt_version(uint64_t oldest, uint64_t newest);

/** In an heir: to the living supervisor of the address. *pid filled. @return a
 *  descriptor; QN_ENOENT: there is none; QN_EADDRINUSE: a process holds the
 *  lock and does not listen; QN_EBUSY: others ask it, or it is stalled;
 *  QN_EMFILE, QN_EIO. Never blocks. */
int qn_adopt_succeed(const struct qn_config *c, pid_t *pid);

/** Say which formats the own group speaks. As qn_control_send. */
int qn_adopt_give_formats(int control);

/** In a replica that holds its node: a listening socket, non-blocking. As
 *  qn_adopt_lock. */
int qn_adopt_listen(const struct qn_config *c, qn_node_t self);

/** The server has ended: remove what its sockets have left. */
void qn_adopt_forget(const struct qn_config *c);

/** In a replica: the next adopter; one of another user is turned away.
 *  *pid filled. @return a descriptor; or QN_EAGAIN: none. */
int qn_adopt_accept(int listener, pid_t *pid);

/** In an adopter. *pid filled: the replica's process. @return a descriptor;
 *  QN_EBUSY: a replica listens there whose queue is full: it is stalled, or
 *  others have filled the queue; QN_ENOENT: no replica of this user listens
 *  there, which does not say that none lives (kvs/supervisor/vacancy.h);
 *  QN_EMFILE, QN_EIO. Never blocks. */
int qn_adopt_connect(const struct qn_config *c, qn_node_t node, pid_t *pid);

/** The process at the other end of `fd`, which a connection named as `pid`: one
 *  that ended in between may have left its id to another. @return a pidfd, to
 *  be closed; QN_ENOENT: it has ended. */
int qn_adopt_pidfd(int fd, pid_t pid);

/** The options as text in a memfd, to be given away. @return a descriptor;
 *  QN_EMFILE; QN_ENOMEM. */
int qn_adopt_config_write(const struct qn_config *c);

/** Read them back. `fd` borrowed. @return QN_OK; QN_ECORRUPT, `why` filled. */
int qn_adopt_config_read(struct qn_config *c, int fd, char *why, size_t cap);

/**
 * Merge what an adopter was told on its command line into what the group runs
 * with: log-level, restart and events-dir are the adopter's, the rest is the
 * group's; what is automatic agrees with everything, run-time options are not
 * compared.
 *
 * @param group  In, out.
 * @return QN_OK; QN_EINVAL: an option contradicts, `why` names it.
 */
int qn_adopt_config_merge(struct qn_config *group, const struct qn_config *own,
                          char *why, size_t cap);

#endif
