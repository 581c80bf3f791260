#ifndef QN_SIM_TIMED_TILED_SCC_H
#define QN_SIM_TIMED_TILED_SCC_H

/**
 * The SCC: 48 cores without coherent caches, a message buffer (MPB) per core
 * that each core reads and writes by lines of 32 bytes, private memory off the
 * chip, an interrupt controller. MACHINES.md has the table of prices.
 *
 * Put and get move line by line, and each line takes two operations. The cores
 * that use the same buffer at the same time wait for each other. A device that
 * keeps the bytes of the buffers is told when a line was read and when it can
 * be seen.
 */

#include "core/sim/timed/tiled/tiled.h"

#define QN_SCC_LINE       32u  /* bytes */
#define QN_SCC_LINES      256u /* of a message buffer */
#define QN_SCC_INTERRUPTS 32u  /* cores that one request reaches */

/** As qn_tiled_prices. */
int qn_scc_create(struct qn_prices **out, const struct qn_tiled *m,
                  const uint32_t *core, uint32_t nodes);

/** Accesses of this run to a line of memory that another node has used before:
 *  code that relies on coherence, which the SCC does not have. */
uint64_t qn_scc_incoherent(const struct qn_prices *p);

struct qn_scc_copy {
    uint32_t peer;  /* put: to the buffer of; get: from the buffer of */
    uint32_t lines; /* at least 1 */
    bool memory;    /* the other end: own private memory, else own buffer */
    /** Line i was read (what was visible at p->start), or was written (others
     *  see it from p->visible on). NULL: not wanted. */
    void (*taken)(void *ctx, uint32_t i, const struct qn_price *p);
    void (*placed)(void *ctx, uint32_t i, const struct qn_price *p);
    /** Put from memory: does the core have line i in its caches? Then reading
     *  it costs nothing, as in the closed model. NULL: none of them. */
    bool (*cached)(void *ctx, uint32_t i);
    void *ctx;
};

/** For nodes: the running node puts or gets, and continues when that is
 *  complete. */
void qn_scc_put(const struct qn_scc_copy *c);
void qn_scc_get(const struct qn_scc_copy *c);

/** A flag is a line: reading it is a get of it into registers, writing it a put
 *  of it. Resetting a flag is writing it. @return of the flag's line. */
struct qn_price qn_scc_flag_read(uint32_t peer);
struct qn_price qn_scc_flag_write(uint32_t peer);

#endif
