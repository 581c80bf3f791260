#ifndef QN_TESTS_UNIT_CORE_SIM_LITMUS_H
#define QN_TESTS_UNIT_CORE_SIM_LITMUS_H

/**
 * Litmus tests as data: up to four threads of a few operations on three
 * variables, and the set of ends that the explorer finds.
 */

#include "core/base/atomic.h"
#include "core/sim/explore/explore.h"

#define LITMUS_OPS  5u
#define LITMUS_REGS 6u
#define LITMUS_ENDS 4096u

enum litmus_kind {
    LITMUS_END,
    LITMUS_LOAD,
    LITMUS_STORE,
    LITMUS_STREAM,
    LITMUS_ADD,
    LITMUS_FENCE
};

struct litmus_op {
    enum litmus_kind kind;
    uint8_t variable; /* 0 .. 2: x, y, z */
    uint8_t value;    /* stored or added */
    uint8_t reg;      /* from 1; 0: not kept */
    memory_order order;
};

struct litmus_program {
    uint32_t threads;
    struct litmus_op thread[QN_EXPLORE_NODES][LITMUS_OPS];
};

/* x = 1 relaxed: STORE(X, 1, RLX) */
#define X   0
#define Y   1
#define Z   2
#define RLX memory_order_relaxed
#define ACQ memory_order_acquire
#define REL memory_order_release
#define ACR memory_order_acq_rel
#define SC  memory_order_seq_cst
#define STORE(v, n, o)                                                         \
    {                                                                          \
        LITMUS_STORE, (v), (n), 0, (o)                                         \
    }
#define STREAM(v, n)                                                           \
    {                                                                          \
        LITMUS_STREAM, (v), (n), 0, RLX                                        \
    }
#define LOAD(v, r, o)                                                          \
    {                                                                          \
        LITMUS_LOAD, (v), 0, (r) + 1, (o)                                      \
    }
#define ADD(v, n, r, o)                                                        \
    {                                                                          \
        LITMUS_ADD, (v), (n), (r) + 1, (o)                                     \
    }
#define FENCE(o)                                                               \
    {                                                                          \
        LITMUS_FENCE, 0, 0, 0, (o)                                             \
    }

/** An end: four bits for each register (15: not set), then for each variable.
 */
struct litmus_ends {
    uint32_t count;
    uint64_t end[LITMUS_ENDS];
    uint64_t wanted; /* not 0: this end is a fault, so that its choices show */
    struct qn_explored found;
};

/** Explore; false: it did not complete. */
bool litmus_explore(const struct litmus_program *p, struct qn_explore_opts o,
                    struct litmus_ends *ends);

/** Does an end have these `n` registers? */
bool litmus_has_registers(const struct litmus_ends *ends, const uint8_t *reg,
                          uint32_t n);

/** Does an end have these values of x and y? */
bool litmus_has_memory(const struct litmus_ends *ends, uint8_t x, uint8_t y);

bool litmus_has(const struct litmus_ends *ends, uint64_t end);

#endif
