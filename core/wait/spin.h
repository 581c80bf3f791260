#ifndef QN_WAIT_SPIN_H
#define QN_WAIT_SPIN_H

/**
 * How long to look before going to sleep.
 *
 * Waking a sleeper on an idle core costs tens of microseconds, so a node that
 * owns its core looks for about as long as a wake-up takes before it parks: at
 * worst it pays twice what an oracle would. A node that shares its core does
 * not look at all: the one it waits for may be waiting for this very core, and
 * would get it only after a time slice (milliseconds).
 *
 * Pure: no clock inside. One thread per struct qn_spin.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/clock.h"

/** Upper end of the measured wake-ups across cores (18 to 26 us). */
#define QN_SPIN_BUDGET (25 * QN_US)

/** What competes for the cores. */
struct qn_spin_opts {
    uint32_t nodes;       /* of the group, running on these cores */
    uint32_t cores;       /* usable: affinity mask applied */
    uint32_t quota_milli; /* CPU quota in thousandths of a core; 0: none */
};

/** @return ns to look before parking: QN_SPIN_BUDGET if each node has a core
 *  of its own, by mask and by quota; else 0. */
qn_time_t qn_doorbell_spin_budget(const struct qn_spin_opts *o);

/** One wait. Fields are private. */
struct qn_spin {
    qn_time_t budget; /* ns */
    qn_time_t since;  /* ns; when it began to find nothing, or never */
};

void qn_spin_init(struct qn_spin *s, qn_time_t budget);

/** Something was found: the next wait starts afresh. */
void qn_spin_reset(struct qn_spin *s);

/** Nothing was found. @return true: look again; false: park. `now` in ns. */
bool qn_spin_again(struct qn_spin *s, qn_time_t now);

/** Yields longer than this gave the core to a busy process ... (At 1 ms, peers
 *  and clients under full load count as busy, and a replica that sleeps because
 *  of them is woken ten times as often: SET of 50 connections, three
 *  replicas on two cores, lost 9 to 20 % of its rate. Beside two busy loops
 *  3 ms gives 0.8 to 0.9 of the rate that 1 ms gives, and 1.5 times that of no
 *  pauses.) */
#define QN_YIELD_LONG  (3 * QN_MS)
/** ... and for so long at least there is none. Doubled with each, up to 16
 *  times. */
#define QN_YIELD_PAUSE (20 * QN_MS)

/** All zero at first. Fields are private. */
struct qn_yield {
    qn_time_t from;  /* ns; not before */
    uint32_t pauses; /* one after the other */
};

/**
 * Let other runnable threads of this core go first, once. An event loop calls
 * it when it has found nothing more to do, before it declares that it sleeps:
 * a client or a peer that shares the core then makes more work before the loop
 * looks again, and one wake-up serves all of it. 0.4 us if no thread waits.
 *
 * That pays only among threads that soon sleep again. A busy process keeps the
 * core until the next tick, 4 ms, while a loop that sleeps interrupts it as
 * soon as it is woken. So after a yield that took long there is none for a
 * while.
 *
 * @param now  ns.
 * @return false: it is too early for one.
 */
bool qn_spin_yield(struct qn_yield *y, qn_time_t now);

/** No yield for a while: another process will be busy. */
void qn_spin_yield_not(struct qn_yield *y, qn_time_t now);

#endif
