#ifndef QN_SIM_TIMED_TILED_TILED_H
#define QN_SIM_TIMED_TILED_TILED_H

/**
 * Descriptions of tiled machines, whose cores are joined by a mesh: the SCC and
 * TILE-Gx.
 *
 * One JSON document:
 *
 *     {"format": "quoin-tiled", "version": 1, "kind": "tilegx",
 *      "name": "tilegx_8036", "columns": 6, "rows": 6, "cores_per_tile": 1,
 *      "clock_ghz": 1.2,
 *      "parameters": {
 *       "l1": {"value": 2, "unit": "cycles", "source": "documented",
 *              "note": "a load that hits"}}}
 *
 * Each parameter of the kind must be there, with its unit, and nothing else;
 * parameter.h says what a parameter is.
 *
 * A description is immutable once read.
 */

#include <stdbool.h>
#include <stdio.h>

#include "core/machine/parse_error.h"
#include "core/sim/timed/parameter.h"
#include "core/sim/timed/prices.h"
#include "core/sim/timed/tiled/grid.h"

#define QN_TILED_NAME_MAX 63u
#define QN_TILED_FILE_MAX ((size_t)1 << 20) /* bytes */

enum qn_tiled_kind { QN_TILED_SCC, QN_TILED_TILEGX, QN_TILED_KINDS };

/* X(enumerator, name in files, unit, may it be 0?) */

/** The SCC. Times of one line of 32 bytes; o: overhead at the core. */
#define QN_SCC_MAP(X)                                                          \
    X(HOP, "hop", "ns", false)             /* one router */                    \
    X(O_MPB, "o_mpb", "ns", false)         /* a line of a message buffer */    \
    X(O_MEM_W, "o_mem_w", "ns", false)     /* a line to memory */              \
    X(O_MEM_R, "o_mem_r", "ns", false)     /* a line from memory */            \
    X(O_PUT_MPB, "o_put_mpb", "ns", false) /* call of a put, ... */            \
    X(O_GET_MPB, "o_get_mpb", "ns", false)                                     \
    X(O_PUT_MEM, "o_put_mem", "ns", false)                                     \
    X(O_GET_MEM, "o_get_mem", "ns", false)                                     \
    X(PORT, "port", "ns", true)              /* a buffer is taken by a line */ \
    X(FAIR, "fair_ports", "switch", true)    /* its router's inputs in turn */ \
    X(GIC_TOTAL, "gic_total", "ns", false)   /* interrupt, point to point */   \
    X(GIC_ACCESS, "gic_access", "ns", false) /* of a register, there, back */  \
    X(GIC_SERVE, "gic_serve", "ns", false)   /* a register access occupies */  \
    X(GIC_HOLDS, "gic_holds", "accesses", true) /* before they queue */        \
    X(HIT, "hit", "ns", false)                  /* private memory, cached */   \
    X(SYSCALL, "syscall", "ns", false)

/** TILE-Gx. */
#define QN_TILEGX_MAP(X)                                                       \
    X(L1, "l1", "cycles", false)             /* a load of an own copy */       \
    X(L2, "l2", "cycles", false)             /* of a line homed here */        \
    X(LOOK, "look", "cycles", true)          /* in own L2 before the home */   \
    X(HOME, "home", "cycles", false)         /* another home, without hops */  \
    X(HOP, "hop", "cycles", false)           /* one link, one way */           \
    X(MEMORY, "memory", "cycles", true)      /* first touch, added */          \
    X(STORE, "store", "cycles", false)       /* to the node */                 \
    X(ACK, "acknowledge", "cycles", false)   /* of a store, without hops */    \
    X(DROP, "drop_copies", "cycles", false)  /* added, without hops */         \
    X(FENCE, "fence", "cycles", false)       /* at least */                    \
    X(ATOMIC, "atomic", "cycles", false)     /* service at the home */         \
    X(UDN_CALL, "udn_call", "cycles", true)  /* of a send or receive */        \
    X(UDN_WORD, "udn_word", "cycles", false) /* and for each word */           \
    X(UDN_WIRE, "udn_wire", "cycles", true)  /* to the queue, without hops */  \
    X(UDN_ROOM, "udn_room", "words", false)  /* of a core's queues together */ \
    X(CLOCK, "clock", "cycles", false)       /* a look at it */                \
    X(SYSCALL, "syscall", "cycles", false)                                     \
    X(WAKE, "wake", "cycles", false)        /* from the ring to the sleeper */ \
    X(DISPATCH, "dispatch", "cycles", true) /* of a delegated operation */     \
    X(INCREMENT, "increment", "cycles", true) /* one more of an array */       \
    X(TURN, "empty_turn", "cycles", true)     /* of a loop that waits */

enum qn_scc_parameter {
#define X(id, name, unit, zero) QN_SCC_##id,
    QN_SCC_MAP(X)
#undef X
        QN_SCC_PARAMETERS
};

enum qn_tilegx_parameter {
#define X(id, name, unit, zero) QN_TILEGX_##id,
    QN_TILEGX_MAP(X)
#undef X
        QN_TILEGX_PARAMETERS
};

#define QN_TILED_PARAMETERS_MAX 32u

struct qn_tiled {
    enum qn_tiled_kind kind;
    char name[QN_TILED_NAME_MAX + 1]; /* printable */
    struct qn_grid grid;
    double clock_ghz;    /* of the cores */
    uint32_t parameters; /* by qn_scc_parameter or qn_tilegx_parameter */
    struct qn_parameter parameter[QN_TILED_PARAMETERS_MAX];
};

/** "scc", "tilegx". */
const char *qn_tiled_kind_name(enum qn_tiled_kind kind);

/** Read a description. @return QN_OK; QN_ENOENT, QN_EIO, QN_EINVAL,
 *  QN_EMSGSIZE, QN_ENOMEM: then `parse_error` (may be NULL) says what to do. */
int qn_tiled_load(struct qn_tiled *out, const char *path,
                  struct qn_parse_error *parse_error);

/** The same from memory; `file` is its name in faults. */
int qn_tiled_parse(struct qn_tiled *out, const char *file, const char *bytes,
                   size_t len, struct qn_parse_error *parse_error);

/** Does the file at `path` say that it is a description of this format? False,
 *  too, if it cannot be read: then its reader will say why. */
bool qn_tiled_is(const char *path);

/** A parameter's value; a parameter in cycles or ns as picoseconds, at least 1
 *  unless it is 0. */
double qn_tiled_value(const struct qn_tiled *m, uint32_t parameter);
qn_ps_t qn_tiled_ps(const struct qn_tiled *m, uint32_t parameter);

/** Every parameter with value, unit, source and note, for reports. */
void qn_tiled_print(const struct qn_tiled *m, FILE *f);

/**
 * The price list of the machine, of its kind.
 *
 * @param out   Filled; destroyed by qn_prices_destroy.
 * @param core  [nodes] core of each node, distinct. Borrowed.
 * @return QN_OK, QN_EINVAL (nodes, core), QN_ENOMEM.
 */
int qn_tiled_prices(struct qn_prices **out, const struct qn_tiled *m,
                    const uint32_t *core, uint32_t nodes);

struct qn_machine;

/**
 * The machine by what a message through its shared memory costs, for plans and
 * predictions: core i is index i.
 *
 * @param out  Filled; freed by qn_machine_destroy.
 * @return QN_OK; QN_EINVAL: an SCC has no coherent memory; QN_ENOMEM.
 */
int qn_tiled_machine(struct qn_machine **out, const struct qn_tiled *m);

#endif
