#ifndef QN_PAXOS_GROUP_GROUP_H
#define QN_PAXOS_GROUP_GROUP_H

/**
 * A replicated service inside a program: processes of one user that meet at a
 * name keep one state, by applying the same commands in the same order. Several
 * threads of a process may be members, each for itself: what is said of
 * processes that join, leave and end goes for them.
 *
 *     qn_group_join          of all that start, the first founds the group
 *     loop:
 *       qn_group_turn        one; QN_GROUP_AGAIN: the next is due at once;
 *       wait                 QN_GROUP_ARMED: until qn_group_fd is readable
 *     qn_group_propose       a command; it is applied by all members, and its
 *                            callback says how it ended here
 *     qn_group_barrier       its callback runs when the state here has all that
 *                            any member had shown before
 *     qn_group_leave
 *
 * A group has seats, `capacity` of them. It begins when `members` processes
 * have met, by default with the first one alone; each has a seat, and votes.
 * A process that joins later gets the state from another member. If a voter has
 * ended it takes that one's seat, and its vote; else a vacant seat, and becomes
 * a voter as soon as it has all (unless it is an observer). When a process
 * ends, however it ends, the others go on if a majority of the voters lives.
 * qn_group_change makes voters, and removes members. No process is special
 * afterwards: the first one may end, too. When the last has ended, so has the
 * group, and the name is free. (With `process_acceptor` a group begins with all
 * its members. They end and return, and that is all that changes.)
 *
 * State. A member begins with the empty state. `apply` changes it, in all
 * members alike: from the command's bytes and what stands beside them, nothing
 * else. Snapshots carry it to members that lack too much of the log.
 *
 * A guest in its process: no thread, signal handler, output or environment
 * variable; no SIGPIPE; all descriptors are close-on-exec. The thread that
 * makes the first turn is the member, and its end is the member's end. It may
 * be a member of several groups. (With `robust_list`: of one; and then it must
 * not lock robust mutexes.) Its process may be a member of one group several
 * times: threads join each by itself, with a service and a state of its own,
 * and all end with their process. A program must not close descriptors that it
 * has not opened (closefrom): seats are lost by that, and when another process
 * has taken one this one ends (abort).
 *
 * Threads: all calls for one group from one thread. Nothing blocks, nor can the
 * thread be cancelled inside. When it ends (by returning, pthread_exit or
 * cancellation) without leaving, the member ends; any other thread may leave
 * then. In a forked child each call returns QN_EPERM, and leave does nothing;
 * what the members share is not mapped there, but for what was just being
 * mapped if another thread has forked.
 *
 * What callbacks may call: `apply` and those of snapshots nothing of the group;
 * `done` may propose, ask for barriers, changes and for the status; `changed`
 * may ask for the status. None may leave, block or jump out.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/alloc.h"
#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/log.h"

struct qn_group; /* opaque */
struct qn_feed_opts;
struct qn_transport;

#define QN_GROUP_MEMBERS_MAX 64u
#define QN_GROUP_WHY_MAX     160u /* bytes of a reason, with its zero */
#define QN_GROUP_COMMAND_MAX ((uint64_t)64 << 20)
#define QN_GROUP_FOREVER     UINT64_MAX         /* a timeout that never comes */
#define QN_GROUP_CUT_BYTES   ((size_t)16 << 10) /* least room of `next` */

/** A decided command. */
struct qn_group_command {
    const void *bytes; /* borrowed for the call */
    size_t len;
    uint64_t slot;     /* of the log; several commands may be in one */
    uint64_t stamp_ms; /* ms since 1970, never goes back along the log, the same
                          at all members */
    uint32_t seat;     /* of the member that has proposed it, */
    uint64_t incarnation;
    bool mine;       /* that is this member in this incarnation */
    uint64_t number; /* of its proposals, from 1 */
};

/** What the group replicates. Called from inside qn_group_turn, in its thread.
 *  apply, begin, next, end, read, finish, install and abandon are needed with
 *  more than one seat. */
struct qn_group_service {
    /** @param result  What the proposal's callback gets at the member that has
     *  proposed it; 0 at first.
     *  @return QN_OK; QN_ENOMEM: nothing has changed, it is asked again, for a
     *  second; others: this member's state is lost, and it fetches another
     *  one's. A command that no member can apply stops the group. */
    int (*apply)(void *ctx, const struct qn_group_command *c, uint64_t *result);

    /** The state as it is now will be given to another member, in parts; `end`
     *  is called once for each `begin` that returned QN_OK. Unless
     *  `keeps_cut`, nothing is applied meanwhile: own proposals wait.
     *  @return QN_OK; QN_EAGAIN: asked again soon; QN_ENOMEM; others: another
     *  member is asked. */
    int (*begin)(void *ctx);
    /** @param bytes  [cap >= QN_GROUP_CUT_BYTES] filled. @param len  Filled:
     *  1 .. cap. @return QN_OK; QN_ENOENT: there is no more; QN_EAGAIN; others:
     *  as begin. */
    int (*next)(void *ctx, void *bytes, size_t cap, size_t *len);
    void (*end)(void *ctx);
    bool keeps_cut; /* the parts are of the state at `begin`, whatever is
                       applied since */

    /** The next part, as `next` has given it: the new state is built beside the
     *  present one. @return QN_OK; QN_ENOMEM: nothing has changed, again;
     *  others: this snapshot is given up. */
    int (*read)(void *ctx, const void *bytes, size_t len);
    /** All was read; is it whole? @return as read. */
    int (*finish)(void *ctx);
    /** It replaces the present state. */
    void (*install)(void *ctx);
    /** What `read` has built is discarded. */
    void (*abandon)(void *ctx);

    /** The status has changed: members, voters, roles, or this member's own
     *  phase; not for in_sync, deaths and positions alone. Optional. */
    void (*changed)(void *ctx);
    void *ctx;
};

/** What is 0 has its default. */
struct qn_group_opts {
    const char *name; /* where the processes meet: a path; or "@" and letters,
                         digits, '.', '-' or '_'. Copied */
    int socket_fd; /* ... or, without a name: at a socket that their parent has
                      made and that they have inherited; of any kind, as nothing
                      is accepted or received on it. The host does not close it,
                      nor a copy of it, until it has left */
    const char
        *application; /* copied; printable, up to 63 bytes; and its version: */
    uint64_t version; /* processes of another one are refused */
    const struct qn_transport *transport; /* kept (transports/registry.h) */
    /* The process that founds the group chooses these for all: */
    uint32_t capacity;    /* seats; up to QN_GROUP_MEMBERS_MAX; 8, or as many as
                             the next */
    uint32_t members;     /* with which it begins, itself among them; up to
                             `capacity`; 1 */
    uint32_t cells;       /* of 64 bytes, of the lane between two members; a
                             power of two; 1024 */
    uint64_t log_bytes;   /* kept for members that lag, in the memory of each;
                             1 MiB .. 1 GiB; 16 MiB */
    uint64_t command_max; /* bytes, up to QN_GROUP_COMMAND_MAX; 1 MiB */
    bool process_acceptor; /* what is proposed is decided by another member than
                              the one that leads, not in shared memory: then
                              `capacity` is `members`, 1 or from 3 on, there are
                              no observers, and no voter comes or goes */
    /* Each its own: */
    uint32_t proposals;      /* under way at once; 1024 */
    uint64_t proposal_bytes; /* of them, one may be longer; 8 MiB */
    uint32_t barriers;       /* at once; 1024 */
    uint64_t spin_ns; /* after it has done something a turn says "again" for so
                         long, before it arms: where the thread has a core of
                         its own. 0: it arms at once */
    uint32_t yields;  /* likewise where members share cores, and instead: before
                         it arms a turn yields the core, and says "again", so
                         often; 2 suits them. A member that leads, accepts or
                         has asked for something does not yield while that
                         takes long (core/wait/spin.h). 0: it arms at once */
    bool observer; /* it serves, reads and proposes, and does not vote unless it
                      is ordered to. (The process that founds does) */
    bool robust_list; /* the thread of the first turn locks no robust mutexes
                         (PTHREAD_MUTEX_ROBUST): its death is seen by their
                         list, before the memory of the process is freed */
    const struct qn_feed_opts *feed; /* what is applied is kept for subscribers
                                        (group_feed.h); copied. NULL: it is not
                                      */
    const struct qn_alloc *alloc; /* of private memory, kept; NULL: malloc's */
    uint64_t alloc_limit;   /* bytes of it, QN_ALLOC_LIMIT_HEAD for most blocks
                               included; 0: none, and no such heads. What is
                               beyond is QN_ENOMEM; then the log that is kept
                               for others gives way */
    struct qn_log_sink log; /* lines, told inside of calls; none: those of the
                               process (qn_log_set) */
    struct qn_assert_hook failed;    /* told, inside of a call, what is wrong
                                        with this library, or with the process
                                        that closes what it has not opened; then
                                        the process is aborted. None: printed */
    struct qn_group_service service; /* copied */
};

/** Called once for each that was taken, inside qn_group_turn or
 *  qn_group_leave. */
typedef void qn_group_done(void *ctx, int err, uint64_t result);

/** Why QN_EAGAIN. It may be asked again after a turn. */
enum qn_group_reason {
    QN_GROUP_TAKEN,     /* the last one was taken */
    QN_GROUP_JOINS,     /* this process is not a member yet, or has no state */
    QN_GROUP_FULL,      /* `proposals`, `proposal_bytes` or `barriers` */
    QN_GROUP_NO_CREDIT, /* this member's share of what may be under way in the
                           group is used up; or it is about to be removed */
    QN_GROUP_HELD /* the leader waits for a member that lags and that it may not
                     give up */
};

enum qn_group_phase {
    QN_GROUP_MEETING, /* it looks for members, or waits for them */
    QN_GROUP_SYNCING, /* a member; the state is on its way */
    QN_GROUP_SERVING,
    QN_GROUP_ENDED /* each turn returns the error */
};

/** As of the last turn. Masks are of seats. But for phase and err all is 0
 *  while QN_GROUP_MEETING, and all but what has ended it when QN_GROUP_ENDED.
 */
struct qn_group_status {
    enum qn_group_phase phase;
    int err; /* of QN_GROUP_ENDED */
    uint32_t seat;
    uint64_t incarnation;
    uint32_t capacity;
    uint64_t members; /* that live, this one included */
    uint64_t voters;  /* whose majority changes the roles and the voters; those
                         that have ended, too. While QN_GROUP_SYNCING it and the
                         leader may be former ones, or 0 */
    uint64_t in_sync; /* voters with which nothing that was decided is lost */
    uint32_t leader;
    uint32_t acceptor;  /* seat; with `process_acceptor` another one */
    uint64_t epoch;     /* grows with each change of roles */
    uint64_t failovers; /* that this incarnation has seen */
    uint32_t deaths;    /* that the group survives at once, from now on */
    bool halted;        /* what was decided is lost with members that have
                           ended. With `process_acceptor`: leader and acceptor
                           have ended together; all leave, and begin anew */
    bool overwritten;   /* halted, because a leader has overwritten the memory
                           by which it decides; likewise */
    uint64_t applied;   /* slots <= it are applied here, */
    uint64_t decided;   /* ... and decided, as far as known here */
    uint64_t commands;  /* applied by this incarnation */
    uint64_t failed;    /* slot of the last command that `apply` has failed at
                           here; 0: none, */
    int failed_err;     /* ... with this error */
    bool lost;          /* so this member has no state: it waits for one */
    bool stopped;       /* and no member has one behind that slot: the group
                           does not go on */
    uint64_t proposals; /* under way */
    uint64_t snapshots_given, snapshots_installed;
    uint32_t donor;  /* seat that gives this member a snapshot now, */
    uint32_t joiner; /* ... and that this one gives one; `capacity`: none */
};

/** A seat, as of the last turn. */
struct qn_group_seat {
    uint64_t incarnation; /* of the member that has it, or had it last, as far
                             as known here; 0: none */
    bool lives, votes;
    uint64_t applied; /* lives: slots <= it are applied there, as it says */
};

/** Memory, told beforehand; bytes. */
struct qn_group_needs {
    uint64_t shared;      /* of each member, at most; and once for the group: */
    uint64_t commons;     /* shared */
    uint64_t log;         /* private, for the log; */
    uint64_t feed;        /* ... and for the change feed */
    uint64_t mapped;      /* address space in each process */
    uint32_t descriptors; /* of each member with all seats taken, while no
                             other one joins */
};

/**
 * Begin to join the group at a name, or to found it. The turns do the work.
 *
 * @param out  Filled; leave it.
 * @return QN_OK; QN_EINVAL: an option is out of range; QN_EPERM: the name is
 *         of another user; QN_ECORRUPT: it is none, or of another version;
 *         QN_ENOENT: no such folder; QN_ENOSYS: the kernel has no
 *         MADV_WIPEONFORK; QN_EMFILE; QN_ENOMEM; QN_EIO.
 */
int qn_group_join(struct qn_group **out, const struct qn_group_opts *o);

/** End: proposals that are not applied end with QN_EUNKNOWN, barriers with
 *  QN_EABORTED, a change with either. For the others this is a death that was
 *  intended: it keeps its vote, for the next process of its seat. NULL is
 *  fine. */
void qn_group_leave(struct qn_group *g);

/** Readable when a turn is due, deadlines included; for poll(2), epoll(7), both
 *  level- and edge-triggered. Owned by the group. */
int qn_group_fd(const struct qn_group *g);

#define QN_GROUP_ARMED 0
#define QN_GROUP_AGAIN 1

/**
 * Do what is due. A member that turns late is a stalled member for the others.
 *
 * @return QN_GROUP_AGAIN: another turn is due at once; QN_GROUP_ARMED: when the
 *         descriptor is readable. Or it has ended, qn_group_why says why, and
 *         only leaving is left: QN_EINVAL: refused (another application,
 *         version or transport; an observer, with `process_acceptor`);
 *         QN_ENOSYS: the members, or the kernel, speak another version;
 *         QN_EBUSY: all seats are taken, or `robust_list` and this thread is a
 *         member of another group that way, or has locked a robust mutex;
 *         QN_EREMOVED: it was removed (qn_group_change); QN_EABORTED: its
 *         thread has ended; QN_EAPPLY: `apply` has failed again, after a state
 *         was fetched; QN_EPERM: in a forked child; QN_EMFILE; QN_ENOMEM;
 *         QN_EIO; or an error of the snapshots' callbacks, of this member or
 *         another one, that has come again for some seconds.
 */
int qn_group_turn(struct qn_group *g);

/** Of an error of the last turn: one line, for people; else empty. */
const char *qn_group_why(const struct qn_group *g);

/**
 * Propose a command; also between turns, and after QN_GROUP_ARMED.
 *
 * @param bytes    [len >= 1] copied.
 * @param timeout  ns from now, in a callback from the beginning of its turn;
 *                 or QN_GROUP_FOREVER.
 * @param done     Its end: QN_OK and what `apply` has returned here; or
 *                 QN_EUNKNOWN: the timeout has come, the member leaves, or a
 *                 snapshot has it already. Then it is applied once or never.
 * @return QN_OK; else nothing has begun and `done` is not called: QN_EAGAIN
 *         (qn_group_reason says why), QN_ENOQUORUM: an earlier proposal
 *         waits beyond its timeout, or the group has halted; QN_EMSGSIZE,
 *         QN_EINVAL (no bytes), QN_ENOMEM, QN_EPERM (a forked child), QN_EBUSY
 *         (inside a callback of the service), or the error that has ended it.
 *
 * Own proposals are applied in their order.
 */
int qn_group_propose(struct qn_group *g, const void *bytes, size_t len,
                     uint64_t timeout, qn_group_done *done, void *ctx);

/**
 * Wait until the state here has all that any member has shown before this call:
 * a read of it is linearizable then. One look for all that ask in one turn.
 *
 * @param done  QN_OK; QN_ETIMEDOUT; QN_EABORTED: the member leaves.
 * @return QN_OK; else as qn_group_propose, but for QN_ENOQUORUM and
 *         QN_EMSGSIZE.
 */
int qn_group_barrier(struct qn_group *g, uint64_t timeout, qn_group_done *done,
                     void *ctx);

/** What is to be so. */
struct qn_group_change {
    uint32_t seat;
    uint64_t incarnation; /* of its member; 0: the present one, or the last */
    bool votes;  /* it is a voter; or, if it is one, a member no more */
    bool forced; /* though less than a majority of the new voters lives, or a
                    present one is stalled */
};

/**
 * Change the voters; any member may ask, also about itself. One change is under
 * way at a time, in all the group. It may be asked again without harm: what is
 * so already is done.
 *
 * A voter that is removed needs not answer: it may have ended, or be stalled;
 * if it leads, another one leads first. Its process finds it out in a turn,
 * which returns QN_EREMOVED. Its seat is taken again only when that process has
 * left. Of a member that does not vote there is nothing to be removed: it lives
 * on.
 *
 * @param c        Copied.
 * @param timeout  ns, or QN_GROUP_FOREVER: until then it is tried again, where
 *                 the reason may pass. One attempt takes 5 s at most.
 * @param done     Its end: QN_OK; QN_EUNKNOWN: it may still be done. Else it
 *                 has not begun, and changes nothing: QN_EBUSY: another one is
 *                 under way, or that member was removed and has not ended;
 *                 QN_ENOQUORUM: less than a majority of the voters lives and
 *                 makes turns, or would do so then; QN_EAGAIN: the newcomer is
 *                 not in sync, or no other voter can lead; QN_EINVAL: no voter
 *                 would be left; QN_ESTALE: the seat has another member;
 *                 QN_ENOTLEADER, QN_ETIMEDOUT: no leader has answered;
 *                 QN_EABORTED: this member leaves; QN_EREMOVED: it was removed.
 * @return QN_OK; else nothing has begun and `done` is not called: QN_EINVAL: no
 *         such seat, or no member ever had it; QN_ENOSYS: a group of one seat,
 *         or with `process_acceptor`;
 *         QN_EBUSY: another one was asked for here, or inside a callback of the
 *         service; QN_EAGAIN: this process is not a member yet; QN_EPERM (a
 *         forked child), or the error that has ended it.
 */
int qn_group_change(struct qn_group *g, const struct qn_group_change *c,
                    uint64_t timeout, qn_group_done *done, void *ctx);

/** Why the last propose, barrier or change returned QN_EAGAIN. */
enum qn_group_reason qn_group_reason(const struct qn_group *g);

void qn_group_status(const struct qn_group *g, struct qn_group_status *out);

/** @param seat  Below `capacity` of the status; else all is 0. */
void qn_group_seat(const struct qn_group *g, uint32_t seat,
                   struct qn_group_seat *out);

/** What a group of these options takes. @return QN_OK; QN_EINVAL. Pure, any
 *  thread. */
int qn_group_needs(const struct qn_group_opts *o, struct qn_group_needs *out);

#endif
