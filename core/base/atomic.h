#ifndef QN_BASE_ATOMIC_H
#define QN_BASE_ATOMIC_H

/**
 * The one door to shared memory.
 *
 * Whatever several nodes (threads or processes) can see is read and written
 * through the operations below and through nothing else. Natively they are the
 * C11 operations, inlined, with the order spelt at the call. In a build with
 * QN_SIM defined each of them goes through core/sim instead, which may switch
 * to another node there, kill this one, or keep a store back in its buffer: so
 * the very same protocol code runs in production and in the schedule explorer.
 *
 * Two kinds of memory:
 *   - atomic variables (qn_a32, qn_a64): load, store, read-modify-write;
 *   - bytes that an atomic variable publishes: qn_copy_out / qn_copy_in. They
 *     are ordinary copies. The release store that announces them and the
 *     acquire load that finds the announcement make them visible, so each call
 *     names in a comment the variable it relies on.
 *
 * Default order is QN_SEQ_CST; every weaker one names its partner in a comment
 * (docs: style, section 8). No free-standing fences except qn_fence, which
 * ThreadSanitizer does not understand: prefer ordered operations.
 *
 * All operations: any thread, wait-free.
 */

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define QN_CACHELINE 64 /* bytes; cells and shared lines are laid out by it */

typedef _Atomic uint32_t qn_a32;
typedef _Atomic uint64_t qn_a64;

/** Two words that change as one. */
struct qn_pair {
    alignas(16) qn_a64 first;
    qn_a64 second;
};

#define QN_RELAXED memory_order_relaxed
#define QN_ACQUIRE memory_order_acquire
#define QN_RELEASE memory_order_release
#define QN_ACQ_REL memory_order_acq_rel
#define QN_SEQ_CST memory_order_seq_cst

#ifdef QN_SIM
#include "core/base/atomic_sim.h"
#else

/** Load *p (const qn_a32 * or const qn_a64 *). */
#define qn_load(p, order)         atomic_load_explicit((p), (order))

/** Store v to *p. */
#define qn_store(p, v, order)     atomic_store_explicit((p), (v), (order))

/** Exchange, add and or; each returns the value before. */
#define qn_exchange(p, v, order)  atomic_exchange_explicit((p), (v), (order))
#define qn_fetch_add(p, v, order) atomic_fetch_add_explicit((p), (v), (order))
#define qn_fetch_or(p, v, order)  atomic_fetch_or_explicit((p), (v), (order))

/** Compare *p with *expected; store `desired` if equal, else load *expected.
 *  True on success. `order` holds on success; a failure is an acquire load. */
#define qn_cas(p, expected, desired, order)                                    \
    atomic_compare_exchange_strong_explicit((p), (expected), (desired),        \
                                            (order), memory_order_acquire)

/** If *p is (first, second), make it (to_first, to_second). True on success.
 *  seq_cst. */
static inline bool qn_cas_pair(struct qn_pair *p, uint64_t first,
                               uint64_t second, uint64_t to_first,
                               uint64_t to_second)
{
#if defined(__x86_64__)
    bool done;
    __asm__ __volatile__("lock cmpxchg16b %1"
                         : "=@ccz"(done), "+m"(*p), "+a"(first), "+d"(second)
                         : "b"(to_first), "c"(to_second)
                         : "memory");
    return done;
#elif defined(__aarch64__)
    uint64_t now_first;
    uint64_t now_second;
    uint32_t same;
    uint32_t lost;
    /* What was loaded was one value only if the store succeeds, so a pair that
     * differs is stored back as it was; hence a failure needs a writable page,
     * as it does on x86-64. The barrier makes this what lock cmpxchg16b is. */
    do {
        __asm__ __volatile__(
            "ldaxp %[a], %[b], %[p]\n\t"
            "cmp %[a], %[first]\n\t"
            "ccmp %[b], %[second], #0, eq\n\t"
            "cset %w[same], eq\n\t"
            "csel %[a], %[to_first], %[a], eq\n\t"
            "csel %[b], %[to_second], %[b], eq\n\t"
            "stlxp %w[lost], %[a], %[b], %[p]"
            : [a] "=&r"(now_first), [b] "=&r"(now_second), [same] "=&r"(same),
              [lost] "=&r"(lost), [p] "+Q"(*p)
            : [first] "r"(first), [second] "r"(second),
              [to_first] "r"(to_first), [to_second] "r"(to_second)
            : "cc", "memory");
    } while (lost != 0);
    __asm__ __volatile__("dmb ish" ::: "memory");
    return same != 0;
#else
/* A library's call would take a lock that belongs to one process: two of them
 * would not exclude each other. */
#error "quoin needs a compare-and-swap of 16 bytes: x86-64 or aarch64"
#endif
}

/** Store v to *p (qn_a64 *) past the caches: the line is not fetched, and its
 *  next reader pays a trip to memory. Relaxed, and weaker than that on x86:
 *  later stores may overtake it, until a seq_cst fence or a read-modify-write
 *  of the same thread. So result and flag must be this one word, or a fence
 *  come between them. */
static inline void qn_store_streaming(qn_a64 *p, uint64_t v)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    __asm__ __volatile__("movnti %1, %0" : "=m"(*p) : "r"(v));
#else
    atomic_store_explicit(p, v, memory_order_relaxed);
#endif
}

/** Free-standing fence; see the file comment before using it. */
#define qn_fence(order) atomic_thread_fence(order)

/** Copy n private bytes to shared memory, to be published by a later release
 *  store of the caller. */
static inline void qn_copy_out(void *shared, const void *src, size_t n)
{
    memcpy(shared, src, n);
}

/** As qn_copy_out for n <= QN_CACHELINE; `src` may be NULL if n is 0. Inlined
 *  for any n: at most four moves, which may overlap, and no call. */
static inline void qn_copy_out_line(void *shared, const void *src, size_t n)
{
    char *to = (char *)shared;
    const char *from = (const char *)src;
    if (n >= 32) {
        memcpy(to, from, 16);
        memcpy(to + 16, from + 16, 16);
        memcpy(to + n - 32, from + n - 32, 16);
        memcpy(to + n - 16, from + n - 16, 16);
    } else if (n >= 16) {
        memcpy(to, from, 16);
        memcpy(to + n - 16, from + n - 16, 16);
    } else if (n >= 8) {
        memcpy(to, from, 8);
        memcpy(to + n - 8, from + n - 8, 8);
    } else {
        for (size_t i = 0; i < n; i++) {
            to[i] = from[i];
        }
    }
}

/** Copy n shared bytes, found by an earlier acquire load of the caller. What
 *  is checked in the copy stays checked: the compiler may not go back to the
 *  source, where a misbehaving writer may have changed them. */
static inline void qn_copy_in(void *dst, const void *shared, size_t n)
{
    memcpy(dst, shared, n);
    atomic_signal_fence(memory_order_seq_cst);
}

/** As qn_copy_in for n <= QN_CACHELINE, inlined as qn_copy_out_line is. */
static inline void qn_copy_in_line(void *dst, const void *shared, size_t n)
{
    qn_copy_out_line(dst, shared, n);
    atomic_signal_fence(memory_order_seq_cst);
}

/** As qn_copy_in, of bytes that their writer may be overwriting meanwhile: what
 *  was copied may be any mix of old and new, and counts only if the caller then
 *  finds, behind an acquire fence, that the writer had not begun. Its partner
 *  is the writer's release fence in front of qn_copy_out. */
static inline void qn_copy_in_checked(void *dst, const void *shared, size_t n)
{
    qn_copy_in(dst, shared, n);
}

/** One polite turn of a bounded spin. */
static inline void qn_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

#endif

/** Both words as they were at one moment. Only for a pair whose first word
 * never takes a value again that it has left: found the same before and after
 * the second was loaded, it was the same meanwhile. acquire. */
static inline void qn_load_pair(const struct qn_pair *p, uint64_t *first,
                                uint64_t *second)
{
    do {
        *first = qn_load(&p->first, QN_ACQUIRE);
        *second = qn_load(&p->second, QN_ACQUIRE);
    } while (qn_load(&p->first, QN_ACQUIRE) != *first);
}

/** Raise *p to at least v. Returns the value before. seq_cst: used for the
 *  read index, whose readers and writers must agree on one order. */
static inline uint64_t qn_fetch_max(qn_a64 *p, uint64_t v)
{
    uint64_t seen = qn_load(p, QN_SEQ_CST);
    while (seen < v && !qn_cas(p, &seen, v, QN_SEQ_CST)) {
    }
    return seen;
}

#endif
