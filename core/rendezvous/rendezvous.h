#ifndef QN_RENDEZVOUS_RENDEZVOUS_H
#define QN_RENDEZVOUS_RENDEZVOUS_H

/**
 * A rendezvous: a place at which processes of one user form a group, and at
 * which others find its members as long as one lives. A process may be there
 * several times, as several members.
 *
 *     open --enter--> founder: no member lives ---------seat--> member
 *                     guest: a connection to a member --seat--> member
 *
 * The place is a small file, which has a name, or a socket that a parent has
 * made and that the processes have inherited. A member holds its *seat* by a
 * record lock on it (fcntl(2)), and listens at a socket of its own, whose name
 * is that of the lock. So what lives is what the kernel says: the lock of a
 * process ends with it, however it ends, a child does not inherit it, and a
 * child that has inherited the socket makes no dead member look alive. When all
 * have ended, the place is free at once; the file may stay. Any member may be
 * asked: none is special, and no process but the members is needed.
 *
 * On a socket of the parent nothing is received and nothing is accepted, by any
 * process: it is a thing that only those have to which it was handed, with or
 * without a name, and that ends with the last of them.
 *
 * Of those that come at the same time one is the founder; the others are
 * told to come again (QN_EAGAIN) until it has a seat or has ended. If all
 * members end while a guest has no seat yet, it is told so (QN_ESTALE).
 *
 * Traps. A process loses its seats if it closes any other descriptor of the
 * file, or any of the socket: so the file is opened once per process, and the
 * program must neither open it by itself nor close what it does not know
 * (closefrom). A file that is removed while its group lives lets a second group
 * begin: a group that outlives its user's last login meets at a path, for
 * logind may then remove what the user has in /dev/shm (RemoveIPC). Members
 * share the network namespace, where the names of their sockets are; to one of
 * another a member seems not to answer. Of another pid namespace the kernel
 * tells no process, so nothing but the user is checked.
 *
 * What guests and members say to each other is their affair: messages with
 * descriptors (fd_message.h).
 *
 * Threads: one per rendezvous; open and close from any. Nothing blocks for
 * longer than a call of the kernel. In a forked child enter, seat, reach and
 * accept return QN_EPERM; it may open the place itself, unless other threads
 * were in these calls at the fork.
 */

#include <stdint.h>
#include <sys/types.h>

#include "core/node.h"

#define QN_RENDEZVOUS_NAME_MAX 200u /* bytes */

/** Guests that may wait for a member to accept them. The next one is told to
 *  come again, or is brought to another member. (The kernel may let one more
 *  wait.) */
#define QN_RENDEZVOUS_GUESTS_MAX 64

struct qn_rendezvous; /* opaque */

/**
 * Open a rendezvous; the file is made if there is none. Also several times in
 * one process.
 *
 * @param name  A path; or "@" and letters, digits, '.', '-' or '_': a name of
 *        this user, whose file is in /dev/shm.
 * @return QN_OK; QN_EINVAL: no such name can be; QN_EPERM: the file is of
 *         another user, or may not be opened; QN_ECORRUPT: it is no rendezvous,
 *         or of another version of it; QN_ENOENT: no such folder; QN_EMFILE;
 *         QN_ENOMEM; QN_EIO (also: RLIMIT_FSIZE is below the 16 bytes of the
 *         file).
 */
int qn_rendezvous_open(struct qn_rendezvous **out, const char *name);

/** Likewise at a socket that this process has inherited.
 *  @param socket_fd  The caller's. It is not closed, nor a copy of it, before
 *         qn_rendezvous_close.
 *  @return QN_OK; QN_EINVAL: no socket; QN_EMFILE; QN_ENOMEM. */
int qn_rendezvous_open_at(struct qn_rendezvous **out, int socket_fd);

/** Leave the seat, if there is one, and close. NULL is fine. */
void qn_rendezvous_close(struct qn_rendezvous *r);

/**
 * Come in. Not after `seat`.
 *
 * @param skip        Mask of seats not to ask: of members that do not answer.
 * @param seat        Filled at a guest: of the member that is asked.
 * @param connection  Filled: a connection to it, non-blocking and close-on-
 *        exec, the caller's to close; -1: this process is the founder.
 * @return QN_OK; QN_EAGAIN: another process founds, or none of those that
 *         live and are not skipped can be asked now: come again; QN_EPERM;
 *         QN_EMFILE; QN_EIO.
 */
int qn_rendezvous_enter(struct qn_rendezvous *r, uint64_t skip, qn_node_t *seat,
                        int *connection);

/**
 * Take a seat and listen. The founder takes any; a guest the one that members
 * have given it. From here on this process is asked by others.
 *
 * @return QN_OK; QN_EAGAIN: another process takes a seat, try again; QN_ESTALE:
 *         the group that this guest had entered has ended, enter again;
 *         QN_EBUSY: another member has that seat; QN_EEXIST: this one has a
 *         seat; QN_EPERM; QN_EMFILE; QN_ENOMEM; QN_EIO.
 */
int qn_rendezvous_seat(struct qn_rendezvous *r, qn_node_t seat);

/** A connection to the member that has that seat; also after the own seat was
 *  taken, so that members can be told of a new one.
 *  @param connection  Filled, as of `enter`.
 *  @return QN_OK; QN_ENOENT: no other member has that seat; QN_EAGAIN: it
 *          cannot be had now; QN_EPERM; QN_EMFILE; QN_EIO. */
int qn_rendezvous_reach(struct qn_rendezvous *r, qn_node_t seat,
                        int *connection);

/** The listening socket, for poll(2): readable when a guest has come. -1: no
 *  seat. */
int qn_rendezvous_fd(const struct qn_rendezvous *r);

/** The next guest of this user: a connection as of `enter`. Connections of
 *  other users are closed, up to QN_RENDEZVOUS_GUESTS_MAX per call.
 *
 *  @param pid  Filled: of the guest; 0: of another pid namespace.
 *  @return QN_OK; QN_EAGAIN: none; QN_EPERM; QN_EMFILE: the guest stays in the
 *          queue, and the socket readable; QN_ENOMEM; QN_EIO. */
int qn_rendezvous_accept(struct qn_rendezvous *r, int *connection, pid_t *pid);

/** Mask of seats that living members have, the own one included. */
uint64_t qn_rendezvous_living(const struct qn_rendezvous *r);

/** The descriptor that all of this process at that place share, until the last
 *  is closed. Its bytes 0 .. QN_NODES_MAX - 1 are for locks of the caller
 *  (core/place/hold.h). */
int qn_rendezvous_locks(const struct qn_rendezvous *r);

#endif
