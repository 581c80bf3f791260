#ifndef QN_BASE_MARK_H
#define QN_BASE_MARK_H

/**
 * What the simulated machine (core/sim) cannot see by itself. It sees each
 * operation of atomic.h and each system call of core/wait, and nothing of what
 * lies between them. Natively all of these are nothing.
 *
 * Any thread, no effect on the program.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Library calls. Each has a price of its own on a simulated machine, and shows
 *  in its timeline. */
#define QN_MARK_MAP(X)                                                         \
    X(SEND, "send")       /* of a message, or of a task */                     \
    X(RECEIVE, "receive") /* a message is given back; a task runs */           \
    X(FLUSH, "flush")     /* acknowledgements and rings of a queuepair */      \
    X(POLL, "poll")       /* a turn of a context */                            \
    X(PASS, "pass")       /* a context delivers, or sends to one child */      \
    X(TURN, "turn")       /* a turn of a protocol's driver */                  \
    X(STEP, "step")       /* a step of a protocol's machine */

enum qn_mark {
#define X(name, text) QN_MARK_##name,
    QN_MARK_MAP(X)
#undef X
        QN_MARKS
};

/** Steps of an operation on a queue of words, which some machines have in
 *  hardware and others emulate in memory. Between BEGIN and END a machine that
 *  has them charges the operation, and not the accesses that emulate it. */
enum qn_queue_step {
    QN_QUEUE_BEGIN,
    QN_QUEUE_SEND, /* `words` for `queue` of `node`, from `position` on */
    QN_QUEUE_LOOK, /* has what was sent to `position` of an own queue arrived?
                    */
    QN_QUEUE_TAKE, /* `words` of an own queue */
    QN_QUEUE_END,
};

struct qn_queue_op {
    enum qn_queue_step step;
    uint32_t node, queue, position, words;
};

#ifdef QN_SIM
void qn_sim_mark(enum qn_mark mark);
bool qn_sim_queue(const struct qn_queue_op *op);
void qn_sim_touch(const void *at, size_t n, bool written);
void qn_sim_work(uint64_t ns);
void qn_sim_looks_until(uint64_t deadline);
bool qn_sim_may_look(void);
bool qn_sim_may_park(void);
#endif

/** A library call begins. */
static inline void qn_mark(enum qn_mark mark)
{
#ifdef QN_SIM
    qn_sim_mark(mark);
#else
    (void)mark;
#endif
}

/** @return to LOOK: whether it has arrived; else true. */
static inline bool qn_queue(struct qn_queue_op op)
{
#ifdef QN_SIM
    return qn_sim_queue(&op);
#else
    (void)op;
    return true;
#endif
}

/** n bytes were written in place, which a later store publishes. */
static inline void qn_touch_out(const void *at, size_t n)
{
#ifdef QN_SIM
    qn_sim_touch(at, n, true);
#else
    (void)at;
    (void)n;
#endif
}

/** n bytes, which an earlier load found, are read in place. */
static inline void qn_touch_in(const void *at, size_t n)
{
#ifdef QN_SIM
    qn_sim_touch(at, n, false);
#else
    (void)at;
    (void)n;
#endif
}

/** The caller computes for so long, ns. A program does its work by itself;
 *  one that only stands for work says how long that would take. */
static inline void qn_work(uint64_t ns)
{
#ifdef QN_SIM
    qn_sim_work(ns);
#else
    (void)ns;
#endif
}

/** The caller looks until then, ns, monotonic, and not longer. */
static inline void qn_looks_until(uint64_t deadline)
{
#ifdef QN_SIM
    qn_sim_looks_until(deadline);
#else
    (void)deadline;
#endif
}

/** May the caller look again and again before it parks? false: no time passes
 *  while it looks, so that it would look without end. */
static inline bool qn_may_look(void)
{
#ifdef QN_SIM
    return qn_sim_may_look();
#else
    return true;
#endif
}

/** May the caller sleep? false: on a machine whose programs, as most in print,
 *  look on for ever. */
static inline bool qn_may_park(void)
{
#ifdef QN_SIM
    return qn_sim_may_park();
#else
    return true;
#endif
}

#endif
