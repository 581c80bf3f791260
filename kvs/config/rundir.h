#ifndef QN_KVS_CONFIG_RUNDIR_H
#define QN_KVS_CONFIG_RUNDIR_H

/**
 * The run-time folder: where the processes of one server meet.
 *
 *     ADDRESS.server        a lock, held as long as any process of the server
 *                           lives (kvs/listen/listen.h)
 *     ADDRESS.s.lock, .s    the supervisor's, and the socket it is asked at
 *     ADDRESS.rN            replica N's socket for adopters
 * (kvs/control/adopt.h)
 *
 * It is `run-dir`, or /run/quoin for root and /tmp/quoin-UID for others, made
 * if it is not there. It must be this user's and nobody else's to write: so no
 * other user can take a name first, or fill a queue. ADDRESS is made of the
 * server's name (qn_listen_name) and of the network namespace, so servers that
 * do not see each other do not meet.
 *
 * Lock files stay when a server ends: two empty files for each address that was
 * ever used, taken again by the next server there. To remove one is how two
 * servers come to hold it:
 *
 *     A  holds the lock          removes the file, ends
 *     B  opens the file  ...                          ... locks what it opened
 *     C                          opens a new file of that name, locks it
 *
 * A second look at the name after locking would tell B, but not a quoind that
 * was built without it. When no server of this user runs, the user may remove
 * them; /run and /tmp are emptied when the machine starts.
 *
 * Threads: any.
 */

#include <stddef.h>

#include "kvs/config/config.h"

/** Room for a path, with which the address of a socket ends. */
#define QN_RUNDIR_PATH_MAX 108u

/** The path of `role` at the address called `name`. @return QN_OK; QN_ENOENT:
 *  there is no such folder, and none can be made; QN_EPERM: it is somebody
 *  else's, or others may write there; QN_EMSGSIZE: its path is too long. */
int qn_rundir_path(const struct qn_config *c, const char *name,
                   const char *role, char path[QN_RUNDIR_PATH_MAX]);

/** Lock a file, which is made. @return a descriptor, inherited locks and all;
 *  QN_EADDRINUSE: somebody has it; QN_EMFILE; QN_EIO. Never blocks. */
int qn_rundir_lock(const char *path);

#endif
