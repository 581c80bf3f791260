#ifndef QN_KVS_CONFIG_RUNDIR_H
#define QN_KVS_CONFIG_RUNDIR_H

/**
 * The run-time folder: where the processes of one server meet.
 *
 *     ADDRESS.server        a lock, held as long as any process of the server
 *                           runs (kvs/listen/listen.h)
 *     ADDRESS.s.lock, .s    the supervisor's lock, and its socket
 *     ADDRESS.rN            replica N's socket for adopters (kvs/control)
 *
 * The folder is `run-dir`, or /run/quoin for root and /tmp/quoin-UID for other
 * users, and is made if it is missing. Only this user may write to it, so no
 * other user can take a name first, or fill a queue. ADDRESS is made of the
 * server's name (qn_listen_name) and of the network namespace, so servers that
 * do not see each other use different names.
 *
 * Lock files stay when a server ends: two empty files for each address that was
 * ever used; the next server on the address takes them again. If a lock file
 * were removed, two servers could hold the lock:
 *
 *     A  holds the lock          removes the file, ends
 *     B  opens the file  ...                          ... locks what it opened
 *     C                          opens a new file of that name, locks it
 *
 * A second look at the name after locking would tell B, but not a quoind that
 * was built without that look. The user may remove the files while no server of
 * the user runs; /run and /tmp are emptied when the machine starts.
 *
 * Threads: any. Nothing blocks.
 */

#include <stddef.h>

#include "kvs/config/config.h"

/** Room for a path, with which the address of a socket ends. */
#define QN_RUNDIR_PATH_MAX 108u

/** The path of `role` at the address called `name`. @return QN_OK; QN_ENOENT:
 *  the folder is missing and cannot be made; QN_EPERM: another user owns it
 *  or may write there; QN_EMSGSIZE: its path is too long. `path` is undefined
 *  on failure. */
int qn_rundir_path(const struct qn_config *c, const char *name,
                   const char *role, char path[QN_RUNDIR_PATH_MAX]);

/** Create a file and lock it. @return a descriptor, which passes the lock on
 *  to every process that inherits it; QN_EADDRINUSE: another process holds
 *  the lock; QN_EMFILE; QN_EIO. Never blocks. */
int qn_rundir_lock(const char *path);

#endif
