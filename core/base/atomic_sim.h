#ifndef QN_BASE_ATOMIC_SIM_H
#define QN_BASE_ATOMIC_SIM_H

/**
 * The operations of atomic.h in a build with QN_SIM: each is a call of the
 * simulated machine (core/sim/machine.h), with its order. Included by atomic.h
 * only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An operation of the source. */
struct qn_sim_site {
    const char *file, *func, *kind;
    int line;
};

#ifdef QN_SIM

enum qn_sim_rmw { QN_SIM_EXCHANGE, QN_SIM_ADD, QN_SIM_OR };

/* Defined by core/sim/machine.c. `n` is 4 or 8 bytes, except in copies. */
uint64_t qn_sim_load(const volatile void *p, size_t n, memory_order order);
void qn_sim_store(volatile void *p, size_t n, uint64_t v, memory_order order);
void qn_sim_store_streaming(volatile void *p, uint64_t v);
uint64_t qn_sim_rmw(volatile void *p, size_t n, enum qn_sim_rmw op, uint64_t v,
                    memory_order order);
bool qn_sim_cas(volatile void *p, size_t n, void *expected, uint64_t desired,
                memory_order order);
bool qn_sim_cas_pair(volatile void *p, const uint64_t *from,
                     const uint64_t *to); /* [2] each */
void qn_sim_fence(memory_order order);
void qn_sim_copy_out(void *shared, const void *src, size_t n);
void qn_sim_copy_in(void *dst, const void *shared, size_t n);
void qn_sim_copy_in_checked(void *dst, const void *shared, size_t n);
void qn_sim_pause(void);

/* Set: may give an operation another order than its source says. */
extern memory_order (*qn_sim_weaken)(const struct qn_sim_site *site,
                                     memory_order order);

#define QN_SIM_ORDER(kind, order)                                              \
    (qn_sim_weaken == NULL                                                     \
         ? (order)                                                             \
         : qn_sim_weaken(                                                      \
               &(struct qn_sim_site){__FILE__, __func__, (kind), __LINE__},    \
               (order)))

static inline uint32_t qn_sim_load32(const volatile void *p, memory_order order)
{
    return (uint32_t)qn_sim_load(p, sizeof(uint32_t), order);
}

static inline uint64_t qn_sim_load64(const volatile void *p, memory_order order)
{
    return qn_sim_load(p, sizeof(uint64_t), order);
}

static inline uint32_t qn_sim_rmw32(volatile void *p, enum qn_sim_rmw op,
                                    uint64_t v, memory_order order)
{
    return (uint32_t)qn_sim_rmw(p, sizeof(uint32_t), op, v, order);
}

static inline uint64_t qn_sim_rmw64(volatile void *p, enum qn_sim_rmw op,
                                    uint64_t v, memory_order order)
{
    return qn_sim_rmw(p, sizeof(uint64_t), op, v, order);
}

/* A choice by the width of what p points to. */
#define QN_SIM_BY_WIDTH(p, narrow, wide)                                       \
    _Generic((p), qn_a32 *                                                     \
             : narrow, const qn_a32 *                                          \
             : narrow, qn_a64 *                                                \
             : wide, const qn_a64 *                                            \
             : wide)

#define qn_load(p, order)                                                      \
    (QN_SIM_BY_WIDTH(p, qn_sim_load32,                                         \
                     qn_sim_load64)((p), QN_SIM_ORDER("load", order)))
#define qn_store(p, v, order)                                                  \
    qn_sim_store((p), sizeof(*(p)), (v), QN_SIM_ORDER("store", order))
#define qn_store_streaming(p, v) qn_sim_store_streaming((p), (v))
#define QN_SIM_UPDATE(p, op, v, order)                                         \
    (QN_SIM_BY_WIDTH(p, qn_sim_rmw32, qn_sim_rmw64)(                           \
        (p), (op), (v), QN_SIM_ORDER("rmw", order)))
#define qn_exchange(p, v, order)  QN_SIM_UPDATE(p, QN_SIM_EXCHANGE, v, order)
#define qn_fetch_add(p, v, order) QN_SIM_UPDATE(p, QN_SIM_ADD, v, order)
#define qn_fetch_or(p, v, order)  QN_SIM_UPDATE(p, QN_SIM_OR, v, order)
#define qn_cas(p, expected, desired, order)                                    \
    qn_sim_cas((p), sizeof(*(p)), (expected), (desired),                       \
               QN_SIM_ORDER("cas", order))
#define qn_fence(order) qn_sim_fence(QN_SIM_ORDER("fence", order))

static inline bool qn_cas_pair(struct qn_pair *p, uint64_t first,
                               uint64_t second, uint64_t to_first,
                               uint64_t to_second)
{
    const uint64_t from[2] = {first, second};
    const uint64_t to[2] = {to_first, to_second};
    return qn_sim_cas_pair(p, from, to);
}

static inline void qn_copy_out(void *shared, const void *src, size_t n)
{
    qn_sim_copy_out(shared, src, n);
}

static inline void qn_copy_out_line(void *shared, const void *src, size_t n)
{
    qn_sim_copy_out(shared, src, n);
}

static inline void qn_copy_in(void *dst, const void *shared, size_t n)
{
    qn_sim_copy_in(dst, shared, n);
}

static inline void qn_copy_in_line(void *dst, const void *shared, size_t n)
{
    qn_sim_copy_in(dst, shared, n);
}

static inline void qn_copy_in_checked(void *dst, const void *shared, size_t n)
{
    qn_sim_copy_in_checked(dst, shared, n);
}

static inline void qn_pause(void)
{
    qn_sim_pause();
}

#endif

#endif
