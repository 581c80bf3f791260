#ifndef QN_PLACE_PLACE_H
#define QN_PLACE_PLACE_H

/**
 * Places: which cores this process may use, and which node runs on which.
 *
 * Usable is what the affinity mask allows; the CPU quota of the control groups
 * (v2, cpu.max) is reported beside it, since a mask of eight cores with a
 * quota of two is a machine of two. The cores are listed in the order in which
 * nodes should be put on them: round robin over the NUMA nodes, and second
 * hardware threads after all the first ones. With more nodes than cores the
 * list starts again from the front.
 *
 * Everything here runs once, at start; nothing is thread-safe by itself, but a
 * filled struct may be read by any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QN_PLACES_MAX     1024u /* usable cores listed; more are left unused */
#define QN_PLACE_TEXT_MAX 64u   /* bytes of qn_place_describe, NUL included */

/** Where a node sits: a core, or any core of a NUMA node, or anywhere. */
struct qn_place {
    int cpu;       /* operating system's number; -1: not one core */
    int numa_node; /* operating system's number; -1: unknown or any */
};

/** What this process may use. Filled by qn_places_discover. */
struct qn_places {
    uint32_t count;       /* cores in place[], at least 1 */
    uint32_t numa_nodes;  /* NUMA nodes they belong to, at least 1 */
    uint32_t quota_milli; /* CPU quota in thousandths of a core; 0: none */
    bool numa_calls;      /* the kernel lets us home memory */
    struct qn_place place[QN_PLACES_MAX]; /* in the order to fill them */
};

/** How nodes are bound. */
enum qn_bind {
    QN_BIND_CORE, /* to one core each */
    QN_BIND_NUMA, /* to the cores of one NUMA node each */
    QN_BIND_NONE, /* not at all */
};

/**
 * Look at this machine.
 *
 * Where a container forbids the NUMA calls (found out by making them) one line
 * is logged and numa_calls is false; nothing else changes.
 *
 * @param out  Filled.
 * @return QN_OK; QN_ENOMEM; QN_EIO if the topology cannot be read.
 *
 * Reads /sys and /proc: some milliseconds.
 */
int qn_places_discover(struct qn_places *out);

/**
 * The place of node `index` of a group (any index; wraps over the cores).
 * QN_BIND_NUMA gives the NUMA node that QN_BIND_CORE would, QN_BIND_NONE
 * {-1, -1}. Pure.
 */
struct qn_place qn_places_of(const struct qn_places *p, uint32_t index,
                             enum qn_bind bind);

/**
 * The index to give to qn_places_of for member `index` of a group of `nodes`
 * of which neighbours talk most (leader 0, acceptor 1, ...). With a core for
 * each it is `index`. With more nodes than cores neighbours share one: waking
 * a node on the own core costs 3 us, on an idle other one 18 to 26, so a commit
 * should change cores as rarely as possible (SET over one connection, three
 * replicas on two cores: p50 42 us so, 76 us dealt round robin). Pure.
 */
uint32_t qn_places_seat(const struct qn_places *p, uint32_t index,
                        uint32_t nodes);

/**
 * Bind the calling thread (in a process of one thread: the process).
 *
 * @return QN_OK (nothing to do for {-1, -1}); QN_EINVAL if no core of the
 *         place may be used (any more); QN_ENOMEM.
 */
int qn_place_pin(const struct qn_places *p, const struct qn_place *place);

/** "core 1, NUMA node 0", "core 1", "NUMA node 0" or "any core". `text`
 *  [QN_PLACE_TEXT_MAX] filled. @return text. Pure. */
const char *qn_place_describe(const struct qn_place *place, char *text);

#endif
