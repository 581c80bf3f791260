#ifndef QN_SIM_MACHINE_H
#define QN_SIM_MACHINE_H

/**
 * The simulated machine: nodes, their memory and their sleep, on one thread.
 *
 * Each node is a coroutine that runs the sources of production, compiled with
 * QN_SIM. Every operation of core/base/atomic.h and of core/wait/park.h becomes
 * an access, and so do the marks of core/base/mark.h. Two things are left open,
 * as tables of functions:
 *
 *   scheduler  what happens next. It is told each access in front of it; it may
 *              run other nodes first, price the access, or kill the node.
 *   memory     what a load sees of the stores: at once (qn_sim_direct), late
 *              (TSO), or any store that C11 permits.
 *
 * The explorer (explore/) and the timed machine (timed/) are a scheduler with a
 * memory each. Outside a run (setup, check, teardown) all operations act at
 * once, on the bytes themselves.
 *
 * One thread; not reentrant.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/atomic.h"
#include "core/base/clock.h"
#include "core/base/mark.h"
#include "core/sim/coroutine.h"

#define QN_SIM_NODES_MAX   1024u
#define QN_SIM_NO_NODE     UINT32_MAX
#define QN_SIM_FDS         1024u /* simulated eventfds, 0 .. */
#define QN_SIM_STACK_BYTES ((size_t)256 * 1024)

enum qn_sim_kind {
    QN_SIM_LOAD,
    QN_SIM_STORE,
    QN_SIM_RMW,       /* also a compare-and-swap that fails */
    QN_SIM_FENCE,     /* no address */
    QN_SIM_COPY_IN,   /* shared bytes to private ones */
    QN_SIM_COPY_OUT,  /* private bytes to shared ones */
    QN_SIM_TOUCH_IN,  /* bytes read in place, after the fact or before it */
    QN_SIM_TOUCH_OUT, /* bytes written in place before they are published */
    QN_SIM_PARK,      /* a system call that may sleep */
    QN_SIM_WAKE,      /* a system call that may wake sleepers */
    QN_SIM_KINDS
};

struct qn_sim_access {
    enum qn_sim_kind kind;
    const volatile void *at; /* NULL: none */
    size_t bytes;
    memory_order order; /* of atomic operations and fences */
    bool streaming;     /* STORE: past the caches */
    bool checked;       /* COPY_IN: another node may be writing the bytes */
};

enum qn_sim_state {
    QN_SIM_READY,
    QN_SIM_SLEEPS,
    QN_SIM_FINISHED,
    QN_SIM_GONE, /* killed */
};

/* A sleeper waits for a word or for a descriptor. */
struct qn_sim_node {
    struct qn_coroutine coroutine;
    enum qn_sim_state state;
    const volatile void *word; /* SLEEPS on it; NULL: on fd */
    int fd;
    qn_time_t deadline; /* of a sleeper, ns; or QN_TIME_NEVER */
    bool timed_out;
    uint64_t sleep; /* number of its sleep, of all in the run */
};

struct qn_sim_scheduler {
    /** In front of each access of the running node. May not return: kill. */
    void (*point)(const struct qn_sim_access *a);
    /** The running node sleeps, has ended or was killed: others run. Returns
     *  when it was chosen again. */
    void (*leave)(void);
    /** The running node has nothing to do for a moment. */
    void (*pause)(void);
    /** The running node has woken `node`, whose state is READY again. */
    void (*woken)(uint32_t node);
    /** Clock of the running node, ns. */
    qn_time_t (*now)(void);
    /** The running node computes, or is inside of a library call; NULL: that
     *  costs nothing. */
    void (*work)(uint64_t ns);
    void (*mark)(enum qn_mark mark);
    /** Many bytes are copied, or touched if they do not move. @return false:
     *  by lines, as copies and touches are. NULL: always. */
    bool (*bulk)(void *to, const void *from, size_t n, bool moves);
    /** A step of an operation on a queue of words. NULL: no such hardware. */
    bool (*queue)(const struct qn_queue_op *op);
    /** It will look until then and not longer, ns; NULL: of no interest. */
    void (*looks_until)(qn_time_t deadline);
    /** No time passes while a node runs: one that waits parks at once. */
    bool parks_at_once;
    /** Whether one that waits ever parks; NULL: yes. */
    bool (*may_park)(void);
};

/* `n` is 4 or 8 bytes, 16 for a pair, any number for copies. */
struct qn_sim_memory {
    void (*load)(void *to, const volatile void *from, size_t n,
                 memory_order order);
    void (*store)(volatile void *at, const void *bytes, size_t n,
                  memory_order order);
    /** As a relaxed store, of 8 bytes: past the caches, so that later stores of
     *  the node may be visible earlier. */
    void (*stream)(volatile void *at, const void *bytes, size_t n);
    /** A read-modify-write in two halves, with nothing in between: the newest
     *  value, and the new one. Without the second it has failed. */
    void (*latest)(void *to, const volatile void *from, size_t n,
                   memory_order order);
    void (*replace)(volatile void *at, const void *bytes, size_t n,
                    memory_order order);
    void (*fence)(memory_order order);
    void (*copy_in)(void *to, const void *from, size_t n);
    /** As copy_in, of bytes that another node may be writing. */
    void (*copy_checked)(void *to, const void *from, size_t n);
    void (*copy_out)(void *at, const void *bytes, size_t n);
    void (*touch)(const void *at, size_t n, bool written);
    /** A system call on a word or, if that is NULL, on a descriptor. `gives`:
     *  it wakes, and what happened before it happens before the return of a
     *  call that `takes`, as a woken sleeper's does. */
    void (*sync)(const volatile void *word, int fd, bool gives);
};

/** Memory without any delay. */
extern const struct qn_sim_memory qn_sim_direct;

struct qn_sim_machine {
    uint32_t nodes;
    uint32_t self; /* running node; QN_SIM_NO_NODE outside a run */
    const struct qn_sim_scheduler *scheduler;
    const struct qn_sim_memory *memory;
    struct qn_coroutine thread;  /* the caller of the run */
    struct qn_sim_node *node;    /* [made] */
    uint32_t made;               /* nodes with a stack; kept between runs */
    void (*main)(uint32_t node); /* what a node does */
    uint32_t fd_count[QN_SIM_FDS];
    uint64_t sleeps; /* of this run */
};

extern struct qn_sim_machine qn_sim;

/** Prepare a run of `nodes` nodes that all begin with main(their number).
 *  @return QN_OK or QN_ENOMEM. */
int qn_sim_reset(uint32_t nodes, const struct qn_sim_scheduler *scheduler,
                 const struct qn_sim_memory *memory,
                 void (*main)(uint32_t node));

/** Run, beginning with `first`, until a scheduler calls qn_sim_end_run. */
void qn_sim_run(uint32_t first);

/** The running node goes on as `next`. Returns when it is resumed. */
void qn_sim_switch(uint32_t next);

/** Back to the caller of qn_sim_run, for good. */
_Noreturn void qn_sim_end_run(void);

/** Free the stacks that were kept. */
void qn_sim_free(void);

#endif
