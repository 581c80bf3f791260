/*
 * Record locks on the commons (hold.h).
 *
 * Why not locks of open descriptions (F_OFD_SETLK): a replica's descriptor of
 * the commons is its supervisor's, inherited, so all of them would be one
 * owner; and they do not tell a process.
 */
#include "core/place/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"

static struct flock byte_of(qn_node_t node)
{
    return (struct flock){.l_type = F_WRLCK,
                          .l_whence = SEEK_SET,
                          .l_start = (off_t)node,
                          .l_len = 1};
}

int qn_hold_take(int commons_fd, qn_node_t node)
{
    struct flock lock = byte_of(node);
    QN_ASSERT(node < QN_NODES_MAX);
    if (fcntl(commons_fd, F_SETLK, &lock) == 0) {
        return QN_OK;
    }
    return errno == EAGAIN || errno == EACCES ? QN_EBUSY : QN_EIO;
}

bool qn_hold_look(int commons_fd, qn_node_t node, pid_t *pid)
{
    struct flock lock = byte_of(node);
    QN_ASSERT(node < QN_NODES_MAX);
    if (fcntl(commons_fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) {
        return false;
    }
    *pid = lock.l_pid > 0 ? lock.l_pid : 0;
    return true;
}

bool qn_hold_by(int commons_fd, qn_node_t node, pid_t pid)
{
    pid_t holder;
    return pid > 0 && qn_hold_look(commons_fd, node, &holder) && holder == pid;
}
