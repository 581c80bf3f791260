#ifndef QN_PLACE_HOLD_H
#define QN_PLACE_HOLD_H

/**
 * Which process runs as a node, as the kernel knows it.
 *
 * A process that is about to live as a node holds byte `node` of the commons'
 * memfd: a record lock (fcntl(2), F_SETLK). It belongs to the process and not
 * to a descriptor: a child does not inherit it, it cannot be given away, and
 * the kernel takes it back when the process ends, however it ends, after all
 * its threads and its memory. So a lock that is free says what a liveness word
 * (core/place/liveness.h) cannot: the process is gone. It cannot be faked or
 * removed by a process without the memfd, and tells its owner even where ids
 * of processes are given to others again.
 *
 * It has one trap: it is lost when its process closes any descriptor of the
 * commons. A replica keeps the one that it was born with to its end.
 *
 * Threads: any. Nothing blocks.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "core/node.h"

/** Hold `node` until this process ends. `commons_fd` borrowed, and never closed
 *  in this process. @return QN_OK, also if it holds it already; QN_EBUSY:
 *  another process does; QN_EIO. */
int qn_hold_take(int commons_fd, qn_node_t node);

/** Another process holds `node`. @param pid  Filled then: the process, 0: it
 *  cannot be seen from here (another pid namespace). */
bool qn_hold_look(int commons_fd, qn_node_t node, pid_t *pid);

/** That process holds `node`: so it has not ended, and `pid` is not another's
 *  by now. */
bool qn_hold_by(int commons_fd, qn_node_t node, pid_t pid);

#endif
