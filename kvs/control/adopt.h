#ifndef QN_KVS_CONTROL_ADOPT_H
#define QN_KVS_CONTROL_ADOPT_H

/**
 * Adoption: a running group gets a new supervisor.
 *
 * Replicas continue when their supervisor has died. Each holds a Unix SEQPACKET
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
 *     RECORD + memfd           ->      its own voter's, without shared state
 *     PEER_UP + outbox         ->      each incarnation that it has mapped
 *     PEER_DOWN                ->      each node's last incarnation, if dead
 *     HELLO + outbox, [READY]  ->      its own
 *     [VOTERS]                 ->      if it knows them
 *     START                    ->      that is all
 *                              <-  START  adopted
 *
 * A replica whose queue is full cannot be connected to, and is not replaced
 * while its process exists (kvs/supervision/vacancy.h).
 *
 * Until START has come the replica does not belong to the adopter: if the
 * adopter ends, or refuses, the replica waits for another. A stalled orphan
 * handles what arrives when it resumes, in order.
 *
 * A running supervisor hands over as well, when it is asked (`quoind
 * --upgrade`): its lock has a listening socket.
 *
 *     supervisor                heir
 *                              <-  ADOPT + oldest and newest version
 *     ADOPT + version          ->      or FAILED + QN_EBUSY: it is ending
 *     FORMAT + version         ->      each
 *     CONFIG + memfd of text   ->
 *     VOTERS                   ->      as it knows them
 *     START                    ->      that is all
 *                              <-  START  leave; or hang up, and nothing was
 *
 * The supervisor then ends with status 0; its replicas are orphans, and the
 * heir adopts them.
 *
 * A server that was started with `--port 0` is adopted by the port that it was
 * given.
 *
 * Threads: any, each with its own descriptors. Nothing blocks.
 */

#include <sys/types.h>

#include "core/node.h"
#include "kvs/config/config.h"

/** Version of the control messages, their bytes and their order. */
#define QN_ADOPT_VERSION 8u
#define QN_ADOPT_OLDEST  8u

/** Become the supervisor of this address.
 *  @param lock  Filled: another descriptor, to be held as long.
 *  @return the socket to which heirs connect; or QN_EADDRINUSE: another
 *          process is the supervisor; QN_ENOENT: the address has no name;
 *          QN_EMFILE, QN_EIO. On failure *lock is untouched.
 */
int qn_adopt_lock(const struct qn_config *c, int *lock);

/** The newest version of the hand-over that this build and a build with that
 *  range both speak. @return 0: none. Pure. */
uint32_t qn_adopt_version(uint64_t oldest, uint64_t newest);

/** In an heir: connect to the running supervisor of the address; *pid is
 *  filled. @return a descriptor; QN_ENOENT: there is none; QN_EADDRINUSE: a
 *  process holds the lock and does not listen; QN_EBUSY: its queue is full,
 *  because it is stalled or others ask it; QN_EMFILE, QN_EIO. Never blocks. */
int qn_adopt_succeed(const struct qn_config *c, pid_t *pid);

/** Send the version of each format that the own group speaks. Errors as
 * qn_control_send.
 */
int qn_adopt_give_formats(int control);

/** In a replica that holds its node: make its socket for adopters,
 *  non-blocking. Errors as qn_adopt_lock. */
int qn_adopt_listen(const struct qn_config *c, qn_node_t self);

/** The server has ended: remove its sockets from the run-time folder. */
void qn_adopt_forget(const struct qn_config *c);

/** In a replica: accept the next adopter, and fill *pid; a process of another
 *  user is refused. @return a descriptor; QN_EAGAIN: none. */
int qn_adopt_accept(int listener, pid_t *pid);

/** In an adopter: connect to replica `node`; *pid is filled: its process.
 *  @return a descriptor; QN_EBUSY: the queue of the replica is full, because
 *          it is stalled or others have filled the queue; QN_ENOENT: no
 *          replica of this user listens there, which does not prove that
 *          none exists (kvs/supervision/vacancy.h); QN_EMFILE, QN_EIO. Never
 *          blocks. */
int qn_adopt_connect(const struct qn_config *c, qn_node_t node, pid_t *pid);

/** A pidfd of the process at the other end of `fd`, which the connection
 *  named as `pid`. (If that process has ended, another one may have its id.)
 *  @return a pidfd, to be closed; QN_ENOENT: the process has ended. */
int qn_adopt_pidfd(int fd, pid_t pid);

/** Write the options as text into a memfd, to be sent; as `auto` what follows
 *  the number of voters. @return a descriptor; QN_EMFILE; QN_ENOMEM. */
int qn_adopt_config_write(const struct qn_config *c);

/** Read the options back, `auto` as what it is for the replicas that began the
 *  group. `fd` is borrowed. @return QN_OK; QN_ECORRUPT, `why`
 *  [cap] filled. */
int qn_adopt_config_read(struct qn_config *c, int fd, char *why, size_t cap);

/**
 * Merge the adopter's command line into the options with which the group runs:
 * log-level, restart and events-dir are the adopter's, the rest is the group's.
 * An automatic value agrees with every value, and run-time options are not
 * compared.
 *
 * @param group  In, out.
 * @return QN_OK; QN_EINVAL: an option contradicts, `why` names it.
 */
int qn_adopt_config_merge(struct qn_config *group, const struct qn_config *own,
                          char *why, size_t cap);

#endif
