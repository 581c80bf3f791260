#ifndef QN_SIM_COROUTINE_H
#define QN_SIM_COROUTINE_H

/**
 * Coroutines: a stack each, and a switch of about 20 instructions.
 *
 * swapcontext makes two system calls per switch, for the signal mask. A
 * simulated machine switches millions of times a second and has no signals, so
 * this switch saves what the calling convention says a call preserves, and
 * nothing else. It does not save the floating-point control words: no code here
 * changes them.
 *
 * A coroutine that is never resumed costs nothing; its stack is used again by
 * the next start. Threads: all coroutines that switch to each other belong to
 * one thread.
 */

#include <stddef.h>

/* Fields are private. */
struct qn_coroutine {
    void *sp;    /* where it was left */
    void *stack; /* mapped, above a page that faults; NULL: the thread's own */
    size_t bytes;
    void (*entry)(void *arg);
    void *arg;
    const void *bottom; /* AddressSanitizer: of the stack in use */
    size_t known;       /* and its bytes */
};

/** The coroutine that is the calling thread itself. */
void qn_coroutine_of_thread(struct qn_coroutine *c);

/** Map a stack. @return QN_OK or QN_ENOMEM. */
int qn_coroutine_init(struct qn_coroutine *c, size_t bytes);

/** Unmap it. Not for the running one. */
void qn_coroutine_fini(struct qn_coroutine *c);

/** Its next resumption calls entry(arg), which must not return. What it ran
 *  before is forgotten. */
void qn_coroutine_start(struct qn_coroutine *c, void (*entry)(void *arg),
                        void *arg);

/** Continue `to`; returns when `from`, the running one, is resumed. */
void qn_coroutine_switch(struct qn_coroutine *from, struct qn_coroutine *to);

/** Continue `to`; the running one is not resumed until it is started again. */
_Noreturn void qn_coroutine_leave(struct qn_coroutine *to);

#endif
