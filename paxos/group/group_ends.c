/*
 * Ends of peers, seen at once: also by a member that sleeps, with nothing under
 * way.
 *
 * A descriptor of each peer's process (pidfd) is in that of the group. It is
 * taken by the process id that the kernel names as the owner of the node's
 * lock, and kept if that process has the lock afterwards: so it is no later
 * process of the same id. When it is readable the lock is free, as a rule, and
 * the process that looks first marks the liveness word for all
 * (core/place/liveness.h).
 *
 * What it does not show: that a member has left, or its thread has ended, or
 * its process has called exec. The first two ring the doorbells of the others,
 * which look at all peers then: so nothing is watched of a member of this very
 * process. For the third the kernel is asked each LOOK_ALL: one system call for
 * each peer, which is nothing beside the turn.
 *
 * Where there is no such descriptor (an old kernel, another pid namespace, a
 * filter, too many descriptors) it is asked each LOOK.
 */
#include <sys/epoll.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/place/hold.h"
#include "core/place/process.h"
#include "paxos/group/group_internal.h"

#define LOOK     (100 * QN_MS)
#define LOOK_ALL QN_S

/* @return -1: there is none. */
static int open_holder(const struct qn_group *g, qn_node_t node)
{
    pid_t pid;
    const int hold_fd = qn_rendezvous_locks(g->rendezvous);
    if (!qn_hold_look(hold_fd, node, &pid) || pid == 0) {
        return -1;
    }
    int fd = qn_process_open(pid);
    if (fd >= 0 && !qn_hold_by(hold_fd, node, pid)) {
        close(fd);
        return -1;
    }
    return fd;
}

void qn_group_ends_forget(struct qn_group *g, qn_node_t node)
{
    qn_group_unwatch(g, &g->end_fd[node]);
    g->unwatched &= ~(UINT64_C(1) << node);
}

void qn_group_ends_watch(struct qn_group *g, qn_node_t node)
{
    qn_group_ends_forget(g, node);
    if (qn_hold_here(qn_rendezvous_locks(g->rendezvous), node)) {
        return; /* a thread of this process */
    }
    int fd = open_holder(g, node);
    if (fd >= 0 && qn_group_watch(g, fd, QN_WATCH_ENDS + node) != QN_OK) {
        close(fd);
        fd = -1;
    }
    if (fd < 0) {
        g->unwatched |= UINT64_C(1) << node;
        g->ends_at = 0; /* perhaps it has ended already */
    }
    g->end_fd[node] = fd < 0 ? -1 : fd;
}

/* A process that shares its descriptors with another one (CLONE_FILES) leaves
 * its lock to that: its end is certain all the same. */
void qn_group_ends_hear(struct qn_group *g, qn_node_t node)
{
    struct qn_member_peer p;
    if (g->driver == NULL || !qn_process_ended(g->end_fd[node])) {
        return; /* it was of the former one, whose seat is taken again */
    }
    qn_member_look(g->member, true);
    if (g->end_fd[node] >= 0 && qn_member_peer(g->member, node, &p)) {
        qn_member_peer_down(g->member, node, p.incarnation);
    }
}

qn_time_t qn_group_ends_turn(struct qn_group *g, qn_time_t now)
{
    if (qn_member_peers(g->member) == 0) {
        return QN_TIME_NEVER;
    }
    if (now >= g->ends_at) {
        g->ends_at = now + (g->unwatched != 0 ? LOOK : LOOK_ALL);
        qn_member_look(g->member, true);
    }
    return g->ends_at;
}

void qn_group_ends_tell(const struct qn_group *g)
{
    const uint64_t one = 1;
    for (qn_node_t i = 0; g->driver != NULL && i < g->layout.nodes; i++) {
        if (i != g->self) {
            (void)!write(g->doorbell_fd[i], &one, sizeof one);
        }
    }
}
