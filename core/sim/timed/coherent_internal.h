#ifndef QN_SIM_TIMED_COHERENT_INTERNAL_H
#define QN_SIM_TIMED_COHERENT_INTERNAL_H

/** A price list of a coherent machine: coherent_make.c makes it from a machine
 *  file, coherent.c prices accesses by it. */

#include "core/sim/timed/coherent.h"
#include "core/sim/timed/prefetch.h"
#include "core/sim/timed/store_buffer.h"

struct qn_coherent_unit {
    uint32_t node; /* the first of its nodes, for prices */
    qn_ps_t free;  /* its issue */
    qn_ps_t past;  /* its streaming stores are in memory */
    qn_ps_t flight[QN_COHERENT_STREAMS]; /* ends of transfers to memory */
    uint32_t newest;                     /* of them */
    uintptr_t open;                      /* the newest's line */
    qn_ps_t way;                         /* of the newest, to memory */
    struct qn_prefetch ahead;
};

struct qn_coherent {
    struct qn_prices prices;
    uint32_t words; /* of a set of units */
    uint32_t units, sockets;
    bool shared;                   /* a unit may have several nodes */
    uint32_t *unit_of;             /* [nodes] */
    uint32_t *socket_of;           /* [nodes] 0 .. sockets - 1 */
    struct qn_coherent_unit *unit; /* [units] */
    qn_ps_t *link_free;            /* [sockets*sockets] lower number first */
    double link;
    qn_ps_t rmw, memory;
    double watched;
    uint32_t streams;
    double queued, serve, stream, prefetch;
    uint32_t prefetch_ahead;
    double shared_store; /* 0: off */
    qn_ps_t shared_store_least;
    struct qn_store_buffer buffer;
    struct qn_bulk *bulk; /* NULL: by lines */
    qn_ps_t *send;        /* [n*n] row: the sender */
    qn_ps_t *receive;     /* [n*n] likewise */
};

/** What coherent.c does; `c` is filled otherwise. */
void qn_coherent_functions(struct qn_coherent *c);

/** Also of one that is filled in part only. */
void qn_coherent_destroy(struct qn_prices *p);

#endif
