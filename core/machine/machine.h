#ifndef QN_MACHINE_MACHINE_H
#define QN_MACHINE_MACHINE_H

/**
 * The machine model: what a message costs between any two cores.
 *
 * A fully connected directed graph over n cores. The weight of u -> v is a
 * pair: the sender is blocked for send(u, v), the receiver for receive(u, v),
 * in cycles; neither is symmetric nor a metric. A message is visible at v when
 * its send ends. Different cores act in parallel without limit (README.md:
 * what the model leaves out).
 *
 * Cores are called by their index, 0 .. n-1, in ascending order of their
 * operating system numbers, which may have gaps. All ties anywhere in topo/
 * are broken by this order. A subset of the cores is a machine of its own
 * (qn_machine_restrict), so that no algorithm needs to know of subsets.
 *
 * A machine is immutable once filled; then any thread may read it. Nothing
 * here blocks; create and restrict allocate.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/machine/parse_error.h"

#define QN_CORES_MAX        1024u  /* the cost matrices are quadratic */
#define QN_CORE_NUMBER_MAX  65535u /* largest operating system number */
#define QN_COST_MAX         1e12   /* cycles */
#define QN_MACHINE_NAME_MAX 63u    /* bytes */
#define QN_MACHINE_FILE_MAX ((size_t)96 << 20) /* bytes; 1024 cores: 60 MB */
#define QN_GHZ_MAX          1000.0 /* of a clock; what is above is no clock */

/** What a core belongs to. Group numbers are labels: equal or not. */
struct qn_machine_core {
    uint32_t os;     /* operating system number */
    uint32_t phys;   /* physical core; hardware threads share it */
    uint32_t cache;  /* last level cache, or the closest such unit */
    uint32_t node;   /* memory node */
    uint32_t socket; /* package */
};

/** Groupings that trees can be built over. */
enum qn_level { QN_LEVEL_NODE, QN_LEVEL_CACHE, QN_LEVEL_SOCKET, QN_LEVELS };

/** Bandwidths, X(enumerator, name in files): GB/s but for the last one. What is
 *  not known is derived from costs (bulk.h). */
#define QN_BANDWIDTH_MAP(X)                                                    \
    X(COPY, "copy_gb_s")     /* one core copies from the closest one */        \
    X(CACHE, "cache_gb_s")   /* a cache gives to others */                     \
    X(MEMORY, "memory_gb_s") /* a memory node, reads and writes */             \
    X(LINK, "link_gb_s")     /* a memory node and all others, either way */    \
    X(HOLDS, "cache_mib")    /* MiB that a cache holds */

enum qn_bandwidth {
#define X(id, name) QN_BANDWIDTH_##id,
    QN_BANDWIDTH_MAP(X)
#undef X
        QN_BANDWIDTHS
};

#define QN_BANDWIDTH_LEAST 0.001 /* what is below is a slip of the pen */
#define QN_BANDWIDTH_MOST  1000.0

/** What is known of a machine besides its costs. Each may be unknown: "", 0 or
 *  NULL. Texts are printable, as the name is. No plan depends on it but through
 *  queued_factor. */
struct qn_machine_facts {
    char cpu[QN_MACHINE_NAME_MAX + 1];       /* model of the processor */
    char measured[QN_MACHINE_NAME_MAX + 1];  /* when, "2026-11-21T21:30:00Z" */
    char transport[QN_MACHINE_NAME_MAX + 1]; /* over which, "ump" */
    double clock_ghz;     /* cycles per ns, of the counter that measured */
    double queued_factor; /* cost of a message that was visible before the
                             receiver turned to it, over that of one it waited
                             for; above 0 to 1 */
    double bandwidth[QN_BANDWIDTHS]; /* QN_BANDWIDTH_LEAST to _MOST */
    double *round_trip; /* [n*n] cycles of one message there and back,
                           symmetric, diagonal 0 */
    double *level;      /* [n*n] row u, column v, diagonal 0: cycles of a bare
                           cache line there and back and a batch from u to v,
                           while the pair was measured (measure.h) */
    bool *unstable;     /* [n*n] symmetric: the costs of this pair did not
                           repeat, do not rely on them */
};

struct qn_machine {
    uint32_t n;                         /* cores, 1 .. QN_CORES_MAX */
    char name[QN_MACHINE_NAME_MAX + 1]; /* may be empty; readers make it
                                           printable (core/base/text.h) */
    struct qn_machine_core *core;       /* [n], `os` ascending */
    double *send;                       /* [n*n] row u, column v; > 0, the
                                           diagonal is 0 */
    double *receive;                    /* [n*n] as send: the row is the
                                           sender */
    struct qn_machine_facts facts;
};

/** Cost for u to send to v, cycles. */
static inline double qn_send_cost(const struct qn_machine *m, uint32_t u,
                                  uint32_t v)
{
    return m->send[(size_t)u * m->n + v];
}

/** Cost for v to receive from u, cycles. */
static inline double qn_receive_cost(const struct qn_machine *m, uint32_t u,
                                     uint32_t v)
{
    return m->receive[(size_t)u * m->n + v];
}

/** Label of core v's group at a level. */
static inline uint32_t qn_machine_group(const struct qn_machine *m,
                                        enum qn_level level, uint32_t v)
{
    const struct qn_machine_core *c = &m->core[v];
    return level == QN_LEVEL_NODE    ? c->node
           : level == QN_LEVEL_CACHE ? c->cache
                                     : c->socket;
}

/** Name of a bandwidth in files. */
const char *qn_bandwidth_name(uint32_t b);

/** Name of a level, "node", "cache" or "socket"; NULL past the last. */
const char *qn_level_name(uint32_t level);

/**
 * An empty machine: all costs 0, core i is number i, all in group 0. The
 * caller fills it and has it checked.
 *
 * @param out  Filled; freed by qn_machine_destroy.
 * @param n    1 .. QN_CORES_MAX.
 * @return QN_OK, QN_EINVAL (n), QN_ENOMEM.
 */
int qn_machine_create(struct qn_machine **out, uint32_t n);

/** Memory for the facts that are matrices, all 0. They are freed with m.
 *  @return QN_OK or QN_ENOMEM, then m is as before. */
int qn_machine_make_room(struct qn_machine *m);

/** Are there costs? A machine that was only discovered has none. One core has
 *  no pair that could lack them. */
static inline bool qn_machine_has_costs(const struct qn_machine *m)
{
    return m->n == 1 || m->send[1] > 0;
}

/** Whether the pair's costs are marked as not repeatable. */
static inline bool qn_machine_unstable(const struct qn_machine *m, uint32_t u,
                                       uint32_t v)
{
    return m->facts.unstable != NULL && m->facts.unstable[(size_t)u * m->n + v];
}

/** How many pairs, each counted once, are marked so. O(n^2). */
uint32_t qn_machine_unstable_pairs(const struct qn_machine *m);

/** NULL is allowed. */
void qn_machine_destroy(struct qn_machine *m);

/** Index of an operating system number, n if it is not there. O(log n). */
uint32_t qn_machine_find(const struct qn_machine *m, uint32_t os);

/**
 * The machine that consists of some of m's cores.
 *
 * @param out    Filled, independent of m.
 * @param index  [count] distinct indices into m, ascending. Borrowed.
 * @return QN_OK, QN_EINVAL (count, order or an index), QN_ENOMEM.
 */
int qn_machine_restrict(struct qn_machine **out, const struct qn_machine *m,
                        const uint32_t *index, uint32_t count);

/** QN_OK if numbers ascend and all costs and facts are in range, else
 *  QN_EINVAL. O(n^2). */
int qn_machine_check(const struct qn_machine *m);

/**
 * Read a machine as a folder of CSV files: `numa.csv`
 * (core,phys,cache,node,socket), `pairwise.csv`
 * (from,to,send_cycles,receive_cycles) and, if they are there, `meta.json`
 * (without it the folder's name is the name) and `roundtrip.csv`, the facts
 * that are matrices (roundtrip_table.c).
 *
 * @return QN_OK; QN_ENOENT, QN_EIO, QN_EINVAL, QN_EMSGSIZE, QN_ENOMEM; then
 *         `parse_error` (may be NULL) says where and what to do.
 */
int qn_machine_load_csv(struct qn_machine **out, const char *folder,
                        struct qn_parse_error *parse_error);

/** The same from memory. The names of the files in faults are numa.csv,
 *  pairwise.csv, meta.json and roundtrip.csv behind `folder`. */
struct qn_machine_text {
    const char *folder;
    struct qn_machine_file {
        const char *text; /* [bytes]; NULL: not there (meta, trips) */
        size_t bytes;
    } numa, pairs, meta, trips;
};
int qn_machine_parse_csv(struct qn_machine **out,
                         const struct qn_machine_text *text,
                         struct qn_parse_error *parse_error);

/** Write numa.csv and pairwise.csv. What is read back is equal, bit by bit.
 *  @return QN_OK, or QN_EIO if a stream has failed. */
int qn_machine_write_csv(const struct qn_machine *m, FILE *numa, FILE *pairs);

/** Write both files, meta.json and, if there is something in it, roundtrip.csv
 *  into a folder that exists; one that was there is removed else. @return
 *  QN_OK, QN_EIO or QN_ENOENT, fault filled. */
int qn_machine_save_csv(const struct qn_machine *m, const char *folder,
                        struct qn_parse_error *parse_error);

/** Version 1 has no facts; it is still read, and written where there are
 *  none. */
#define QN_MACHINE_JSON_VERSION 2

/** Read the machine file (README.md of this folder) at `path`. Errors as
 *  qn_machine_load_csv. */
int qn_machine_load_json(struct qn_machine **out, const char *path,
                         struct qn_parse_error *parse_error);

/** The same from memory; `file` is its name in faults. */
int qn_machine_parse_json(struct qn_machine **out, const char *file,
                          const char *bytes, size_t len,
                          struct qn_parse_error *parse_error);

/** Write the machine file. @return QN_OK or QN_EIO. */
int qn_machine_write_json(const struct qn_machine *m, FILE *f);

/** Read `path`, whatever it is: a folder of CSV files or a machine file. */
int qn_machine_load(struct qn_machine **out, const char *path,
                    struct qn_parse_error *parse_error);

#endif
