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

/** @param out    Filled.
 *  @param count  Ports, 1 .. QN_WORDS_CORES_MAX.
 *  @param split  Each queue has room of its own (core/words/words.h).
 *  @return QN_OK; QN_ENOMEM; QN_EINVAL: count is out of range. */
int qn_ports_create(struct qn_ports **out, uint32_t count, bool split);

/** All have been given back. Accepts NULL. */
void qn_ports_destroy(struct qn_ports *p);

/** @return a port of this thread, until it gives it back; NULL: all are taken.
 *  acquire -> give: what the thread did that had it. */
struct qn_sync_port *qn_ports_take(struct qn_ports *p);

/** All that was joined through it has been left. */
void qn_ports_give(struct qn_ports *p, struct qn_sync_port *port);

#endif
