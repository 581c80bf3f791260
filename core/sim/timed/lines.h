#ifndef QN_SIM_TIMED_LINES_H
#define QN_SIM_TIMED_LINES_H

/**
 * The cache lines that a run has touched, by address: a hash table whose
 * entries stay where they are. A line's number is the order of first touch, so
 * it does not depend on where memory came to lie. The table has a bound in
 * bytes.
 */

#include <stddef.h>
#include <stdint.h>

#include "core/sim/timed/prices.h"

struct qn_line_watch;

struct qn_line {
    uintptr_t base;  /* address / QN_CACHELINE */
    uint32_t number; /* from 0 */
    uint32_t version;
    qn_ps_t changed;                /* when `version` was reached */
    struct qn_line_watch *watchers; /* of nodes that pause on this line */
    alignas(8)
        uint8_t before[QN_CACHELINE]; /* what it held before the last store */
    alignas(16) uint8_t state[];      /* [prices->line_bytes] */
};

struct qn_lines; /* opaque */

/** @param bytes  Most that the table may take, with its index.
 *  @return QN_OK or QN_ENOMEM. `prices` is kept. */
int qn_lines_create(struct qn_lines **out, struct qn_prices *prices,
                    size_t bytes);
void qn_lines_destroy(struct qn_lines *l);

/** The line of an address, made at its first touch. @return NULL: that would
 *  be more than the bound, or there is no memory. */
struct qn_line *qn_lines_at(struct qn_lines *l, uintptr_t base);

/** How many were touched. */
uint32_t qn_lines_count(const struct qn_lines *l);

#endif
