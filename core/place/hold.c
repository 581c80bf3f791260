/*
 * Record locks of processes (hold.h).
 *
 * Why not locks of open descriptions (F_OFD_SETLK): a replica's descriptor of
 * the commons is its supervisor's, inherited, so all of them would be one
 * owner; and they do not tell a process.
 *
 * The kernel does not count: one unlock ends what several threads have locked.
 * So the holds of this process are in a list, and the last of a node unlocks.
 * A child of fork(2) finds its parent's there: each names its process.
 */
#include "core/place/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static struct qn_node_hold *all; /* by `guard` */

static struct flock byte_of(qn_node_t node, short type)
{
    return (struct flock){.l_type = type,
                          .l_whence = SEEK_SET,
                          .l_start = (off_t)node,
                          .l_len = 1};
}

static int set(int fd, qn_node_t node, short type)
{
    struct flock lock = byte_of(node, type);
    if (fcntl(fd, F_SETLK, &lock) == 0) {
        return QN_OK;
    }
    return errno == EAGAIN || errno == EACCES ? QN_EBUSY : QN_EIO;
}

/* By `guard`: the next hold from `h` on of that node in that process. */
static const struct qn_node_hold *like(const struct qn_node_hold *h,
                                       const struct qn_node_hold *l)
{
    while (h != NULL && (h->device != l->device || h->inode != l->inode ||
                         h->node != l->node || h->process != l->process)) {
        h = h->next;
    }
    return h;
}

/* By `guard`: is this process that incarnation already, or a later one? */
static bool is_taken(const struct qn_node_hold *l)
{
    const struct qn_node_hold *h = like(all, l);
    while (h != NULL && h->incarnation < l->incarnation) {
        h = like(h->next, l);
    }
    return h != NULL;
}

int qn_hold_take(struct qn_node_hold *h, int hold_fd, qn_node_t node,
                 uint64_t incarnation)
{
    struct stat st;
    QN_ASSERT(node < QN_NODES_MAX);
    QN_ASSERT(incarnation != 0);
    QN_ASSERT(h->process == 0);
    if (fstat(hold_fd, &st) != 0) {
        return QN_EIO;
    }
    const struct qn_node_hold new = {.device = st.st_dev,
                                     .inode = st.st_ino,
                                     .fd = hold_fd,
                                     .node = node,
                                     .incarnation = incarnation,
                                     .process = getpid()};
    pthread_mutex_lock(&guard);
    int err = is_taken(&new) ? QN_EBUSY : set(hold_fd, node, F_WRLCK);
    if (err == QN_OK) {
        *h = new;
        h->next = all;
        all = h;
    }
    pthread_mutex_unlock(&guard);
    return err;
}

bool qn_hold_is_own(const struct qn_node_hold *h)
{
    return h->process == getpid();
}

void qn_hold_release(struct qn_node_hold *h)
{
    if (h->process == 0) {
        return;
    }
    pthread_mutex_lock(&guard);
    struct qn_node_hold **at = &all;
    while (*at != h) {
        at = &(*at)->next;
    }
    *at = h->next;
    if (qn_hold_is_own(h) && like(all, h) == NULL) {
        (void)set(h->fd, h->node, F_UNLCK);
    }
    pthread_mutex_unlock(&guard);
    *h = (struct qn_node_hold){0};
}

/* The kernel does not tell a process of its own locks. */
bool qn_hold_here(int hold_fd, qn_node_t node)
{
    struct stat st;
    if (fstat(hold_fd, &st) != 0) {
        return true;
    }
    const struct qn_node_hold l = {.device = st.st_dev,
                                   .inode = st.st_ino,
                                   .node = node,
                                   .process = getpid()};
    pthread_mutex_lock(&guard);
    bool here = like(all, &l) != NULL;
    pthread_mutex_unlock(&guard);
    return here;
}

bool qn_hold_look(int hold_fd, qn_node_t node, pid_t *pid)
{
    struct flock lock = byte_of(node, F_WRLCK);
    QN_ASSERT(node < QN_NODES_MAX);
    if (fcntl(hold_fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) {
        return false;
    }
    *pid = lock.l_pid > 0 ? lock.l_pid : 0;
    return true;
}

bool qn_hold_taken(int hold_fd, qn_node_t node)
{
    struct flock lock = byte_of(node, F_WRLCK);
    QN_ASSERT(node < QN_NODES_MAX);
    return fcntl(hold_fd, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK ||
           qn_hold_here(hold_fd, node);
}

bool qn_hold_by(int hold_fd, qn_node_t node, pid_t pid)
{
    pid_t holder;
    return pid > 0 && qn_hold_look(hold_fd, node, &holder) && holder == pid;
}
