#ifndef QN_LOADGEN_SYNC_PORTS_H
#define QN_LOADGEN_SYNC_PORTS_H

/**
 * A device of words in private memory and a number of ports at it, each at a
 * core of its own, for threads that come and go.
 *
 * A thread takes a port, joins objects through it, leaves them, and gives it
 * back; then another thread may take it.
 *
 * Threads: create and destroy run alone; take and give are any thread's.
 */

#include <stdbool.h>
#include <stdint.h>

struct qn_ports;
struct qn_sync_port;

struct qn_ports_opts {
    uint32_t count; /* 1 .. QN_WORDS_CORES_MAX */
    bool split;     /* each queue has room of its own (core/words/words.h) */
    bool looks_on;  /* threads that wait do not sleep: on simulated machines */
};

/** @param out  Filled.
 *  @return QN_OK; QN_ENOMEM; QN_EINVAL: count is out of range. */
int qn_ports_create(struct qn_ports **out, const struct qn_ports_opts *o);

/** All have been given back. Accepts NULL. */
void qn_ports_destroy(struct qn_ports *p);

#define QN_PORTS_ANY UINT32_MAX

/** @param core  Of the device: below `count`, or QN_PORTS_ANY. On a simulated
 *               machine it is the node that takes it.
 *  @return a port of this thread, until it gives it back; NULL: it is taken, or
 *          all are. acquire -> give: what the thread did that had it. */
struct qn_sync_port *qn_ports_take(struct qn_ports *p, uint32_t core);

/** All that was joined through it has been left. */
void qn_ports_give(struct qn_ports *p, struct qn_sync_port *port);

#endif
