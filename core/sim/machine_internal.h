#ifndef QN_SIM_MACHINE_INTERNAL_H
#define QN_SIM_MACHINE_INTERNAL_H

/** The simulated machine, shared by explore.c (which node runs) and machine.c
 * (what an operation does). One thread. */

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "core/base/atomic.h"
#include "core/sim/explore.h"

#define QN_SIM_NO_NODE     QN_SIM_NODES
#define QN_SIM_STACK_BYTES (256u * 1024)
#define QN_SIM_PENDING_MAX                                                     \
    128u /* stores in a buffer; beyond, the oldest go                          \
          */

struct qn_sim_pending {
    uint8_t *at; /* shared */
    uint32_t len;
    uint8_t bytes[QN_CACHELINE];
};

enum qn_sim_state {
    QN_SIM_READY,
    QN_SIM_SLEEPS,
    QN_SIM_FINISHED,
    QN_SIM_GONE, /* killed */
};

struct qn_sim_node {
    ucontext_t context;
    enum qn_sim_state state;
    const void *word; /* SLEEPS on it; NULL: on fd */
    int fd;
    bool can_time_out;
    bool timed_out;
    uint32_t first, count; /* of pending, a FIFO ring */
    struct qn_sim_pending pending[QN_SIM_PENDING_MAX];
    uint8_t stack[QN_SIM_STACK_BYTES];
};

struct qn_sim_machine {
    uint32_t nodes;
    uint32_t self; /* running node; QN_SIM_NO_NODE outside a run */
    uint32_t fd_count[QN_SIM_FDS];
    struct qn_sim_node node[QN_SIM_NODES];
};

extern struct qn_sim_machine qn_sim;

/* machine.c */
void qn_sim_reset(uint32_t nodes);
void qn_sim_drain_one(struct qn_sim_node *n);
void qn_sim_drain_all(void);

/* explore.c */

/** In front of every operation of a node: the schedule may change here. */
void qn_sim_point(void);

/** The running node cannot go on, or does not want to: any other may. */
void qn_sim_leave(void);

#endif
