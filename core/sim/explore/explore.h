#ifndef QN_SIM_EXPLORE_EXPLORE_H
#define QN_SIM_EXPLORE_EXPLORE_H

/**
 * The schedule explorer: small concurrent programs under every schedule.
 *
 * Up to QN_EXPLORE_NODES nodes run as coroutines of one thread. They are
 * compiled with QN_SIM, so that each operation of core/base/atomic.h and each
 * park or wake-up of core/wait is a point at which the explorer may
 *
 *   go on             the default;
 *   switch to j   sJ  another node that can run;
 *   drain i       dI  TSO: the oldest store of node i's buffer reaches memory;
 *                     dI+4P: the store that passes P older ones, where one
 *                     of both is a streaming store;
 *   take old      oN  C11: a load takes the store N older than the newest;
 *   kill          k   the running node ends here, in front of its operation.
 *
 * Two memories. TSO is that of x86: the stores of a node wait in a FIFO of its
 * own until a seq_cst operation, a read-modify-write, a system call or the
 * explorer drains them; the node itself sees them at once, the others do not.
 * By default they wait as long as possible, which is where the bugs are. C11 is
 * that of the language: a load may take any store that the orders of the
 * operations do not forbid; by default it takes the newest (c11.h).
 *
 * Exploration is depth first and exhaustive within two bounds: how many
 * deviations from the default (switches, drains, old stores) and how many kills
 * a run may have. When a node parks or ends, any other may be next: that is
 * free. A fault is reported with its choices ("12:s1 14:d0 20:k": at step 12
 * switch to node 1, ...), which qn_explore_replay repeats.
 *
 * Schedules that differ only in the order of accesses that do not depend on
 * each other are run once (explore.c), so nodes must not share anything
 * beside what atomic.h shows, unless `all` is set. A run may also be given up
 * half-way, when it turns out to be such a one.
 *
 * When no node can run, time passes: buffers drain, and a sleeper with a
 * deadline times out (time passes only then). If none has one, the run is over;
 * whether those still asleep are a fault is for `pending` and `check` to say.
 *
 * One thread; not reentrant. Nodes must be deterministic, and must not hold
 * resources of their own while they can be killed or given up: `setup`
 * allocates.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/atomic.h"

#define QN_EXPLORE_NODES 4u
#define QN_EXPLORE_STREAMS                                                     \
    3u /* streaming stores of a node that are late; one                        \
          more, and the oldest is a store like others */
#define QN_SIM_CHOICES_MAX 512u

enum qn_sim_end {
    QN_SIM_DONE,   /* its function returned */
    QN_SIM_ASLEEP, /* parked, and no node is left to wake it */
    QN_SIM_KILLED,
};

enum qn_explore_memory {
    QN_EXPLORE_TSO,
    QN_EXPLORE_C11,
};

struct qn_explore_opts {
    uint32_t nodes;                            /* 1 .. QN_EXPLORE_NODES */
    void (*node[QN_EXPLORE_NODES])(void *ctx); /* what each does */
    void (*setup)(void *ctx);        /* before each run; may be NULL */
    const char *(*check)(void *ctx); /* after each run, before teardown:
                                        NULL or what is wrong */
    void (*teardown)(void *ctx);     /* may be NULL */
    /** After each run, for each node that sleeps: does work wait for it? That
     *  is a fault. NULL: `check` looks at that, if anything does. */
    bool (*pending)(void *ctx, uint32_t node);
    void *ctx;
    enum qn_explore_memory memory;
    bool all;            /* also schedules that differ in nothing */
    uint32_t deviations; /* most switches, drains and old stores of a run */
    uint32_t kills;      /* most kills of a run */
    uint32_t steps_max;  /* operations of a run; more is a fault. 0: 10000; at
                            most 30000 */
    uint64_t runs_max;   /* 0: no limit */
};

struct qn_explored {
    uint64_t runs;
    uint64_t pruned;   /* of them given up: no end that another has not */
    uint64_t steps;    /* of all runs */
    bool complete;     /* every schedule within the bounds was run */
    const char *fault; /* NULL: none; else what `check` or a node said */
    char choices[QN_SIM_CHOICES_MAX]; /* of the run with the fault */
};

/** Explore. @return true if no fault was found; *out filled either way. */
bool qn_explore(const struct qn_explore_opts *opts, struct qn_explored *out);

/** One run with the given choices; `deviations` and `kills` do not matter.
 *  `choices` may be out->choices. @return true if it ends without a fault. */
bool qn_explore_replay(const struct qn_explore_opts *opts, const char *choices,
                       struct qn_explored *out);

/** For `check`: how node i ended. */
enum qn_sim_end qn_sim_end_of(uint32_t i);

/** For nodes: report a fault (a constant string) and end the run here. */
_Noreturn void qn_sim_fail(const char *what);

#endif
