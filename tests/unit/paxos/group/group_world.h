#ifndef QN_TESTS_UNIT_PAXOS_GROUP_GROUP_WORLD_H
#define QN_TESTS_UNIT_PAXOS_GROUP_GROUP_WORLD_H

/**
 * Processes that are members of one group. Each applies commands to a digest
 * that depends on their order, proposes what it is told to, and reports.
 *
 * Threads: the test's. A process is told things over a socket; it answers each
 * order once, in its loop.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "paxos/group/group_feed.h"
#include "tests/unit/paxos/group/group_faults.h"

enum { GROUP_WORLD_MAX = 12 };

/** How a process waits. */
enum group_world_loop { LOOP_POLL, LOOP_EPOLL_EDGE };

/** What the group replicates. */
struct group_world_state {
    uint64_t digest, commands;
    uint64_t of_seat[QN_GROUP_MEMBERS_MAX]; /* commands, by proposer */
};

/** What a process says of itself. */
struct group_world_report {
    struct qn_group_status status;
    struct qn_group_seat seat[QN_GROUP_MEMBERS_MAX];
    struct group_world_state state;
    uint64_t asked, applied, unknown, refused; /* own proposals */
    uint64_t wrong;    /* results that are not those of the own apply */
    uint64_t barriers; /* that ended well */
    bool founds;       /* it has made the commons */
    uint64_t guests;   /* that have introduced themselves and are connected */
    uint64_t changes;  /* that have ended, the last one with: */
    int change;
    uint64_t failed;  /* applies that were told to fail */
    uint64_t turns;   /* made */
    int kept_by_exec; /* descriptors that exec would not close, more than
                         before it joined */
    int turn;         /* what the last one returned */
    int last;         /* what the last propose returned */
    enum qn_group_reason reason;
    char why[QN_GROUP_WHY_MAX];
};

enum { GROUP_WORLD_GAPS = 64, GROUP_WORLD_COMMANDS = 4096 };

/** What subscribers keep, in memory that outlives processes: one of each
 *  process, which stores its position there after its work. */
struct group_world_kept {
    struct qn_feed_position at;
    uint64_t seen, again;              /* commands; of these, seen before */
    uint64_t disorder;                 /* not behind the one before */
    uint8_t has[GROUP_WORLD_COMMANDS]; /* by the command's number */
    struct qn_feed_record gap[GROUP_WORLD_GAPS]; /* without bytes */
    uint32_t gaps;
};

/** Likewise: of each command the slot in which it was applied, 0: not yet. */
struct group_world_shared {
    uint64_t slot[GROUP_WORLD_COMMANDS];
    uint64_t next; /* number of the next command */
    struct group_world_kept kept[GROUP_WORLD_MAX];
};

struct group_world_process {
    pid_t pid; /* 0: none */
    int control;
    int child; /* pid that it has forked; 0 */
};

struct group_world {
    struct qn_group_opts opts;
    enum group_world_loop loop;
    bool reads_nothing;      /* processes that start cannot read a snapshot */
    bool no_pidfd;           /* the kernel of processes that start has none */
    pthread_mutex_t *robust; /* [GROUP_WORLD_MAX] in shared memory: each process
                                has locked its own, which is robust, before it
                                joins; NULL: none has */
    struct group_world_shared *shared; /* NULL: nothing subscribes */
    bool reads_no_feed;                /* subscribers never read */
    struct group_fault_plan *faults;   /* [GROUP_WORLD_MAX], of each process;
                                          NULL: nothing fails */
    uint32_t spare; /* descriptors that a process may open once it has begun to
                       join, and 1; 0: as many as it wants */
    struct group_world_process process[GROUP_WORLD_MAX];
};

/** A folder and a name in it, and default options for `members` members. */
void group_world_begin(struct group_world *w, uint32_t members);
/** Processes that start lock robust mutexes. */
void group_world_robust(struct group_world *w);
/** Each process follows its feed; before the first one starts. */
void group_world_follow(struct group_world *w, const struct qn_feed_opts *o);
/** Processes that start have faults, as w->faults says; it is zeroed. */
void group_world_faults(struct group_world *w);
/** All processes are killed, and the folder is removed. */
void group_world_end(struct group_world *w);

/** A process that joins with w->opts. */
void group_world_start(struct group_world *w, uint32_t i);
/** Likewise; it finds no member, and founds the group. */
void group_world_found(struct group_world *w, uint32_t i);
/** SIGKILL, and wait for its end. */
void group_world_kill(struct group_world *w, uint32_t i);
/** It leaves, and ends well. */
void group_world_leave(struct group_world *w, uint32_t i);
/** It leaves, and its process stays until it is killed. */
void group_world_part(struct group_world *w, uint32_t i);
/** Its process goes on as another program, until it is killed. */
void group_world_exec(struct group_world *w, uint32_t i);
/** SIGSTOP or SIGCONT. */
void group_world_stop(struct group_world *w, uint32_t i, bool stop);

/** Process `i` is to propose `n` commands more, with that timeout (ns), as fast
 *  as they are taken. */
void group_world_propose(struct group_world *w, uint32_t i, uint64_t n,
                         uint64_t timeout);
/** It proposes once, and does not try again. */
void group_world_propose_once(struct group_world *w, uint32_t i, size_t bytes,
                              uint64_t timeout);
void group_world_barrier(struct group_world *w, uint32_t i, uint64_t n);
/** One barrier, at the end of which it proposes once: inside of a turn. */
void group_world_propose_at_barrier(struct group_world *w, uint32_t i,
                                    size_t bytes);
/** Its next `n` applies return that error. */
void group_world_fail(struct group_world *w, uint32_t i, int err, uint64_t n);
/** While `hold`, a snapshot that it gives does not go on. */
void group_world_hold(struct group_world *w, uint32_t i, bool hold);
/** It asks for a change of the voters. */
void group_world_ask(struct group_world *w, uint32_t i,
                     const struct qn_group_change *c, uint64_t timeout);
/** Likewise, and wait for the end. @return it; or why none has begun. */
int group_world_change(struct group_world *w, uint32_t i,
                       const struct qn_group_change *c, uint64_t timeout);
/** It forks a child, which has all descriptors and says what calls return. */
int group_world_fork(struct group_world *w, uint32_t i);

/** That it has open. */
int group_world_descriptors(const struct group_world *w, uint32_t i);
/** From now on process `i` can open `spare` descriptors more, or as many as it
 *  wants. */
void group_world_limit(const struct group_world *w, uint32_t i, uint32_t spare);
void group_world_unlimit(const struct group_world *w, uint32_t i);

struct group_world_report group_world_report(struct group_world *w, uint32_t i);

/** Ask until it is so. */
void group_world_wait(struct group_world *w, uint32_t i,
                      bool (*is)(const struct group_world_report *r,
                                 uint64_t arg),
                      uint64_t arg);

#endif
