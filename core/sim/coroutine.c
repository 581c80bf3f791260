/*
 * The switch: push the registers that a call preserves, exchange the stack
 * pointers, pop the other coroutine's, return into it. A new coroutine's stack
 * is prepared as if it had left itself in front of its first instruction.
 *
 * Below each stack lies a page without access: an overflow is a fault there and
 * not a defect elsewhere.
 */
#include "core/sim/coroutine.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/err.h"

/* AddressSanitizer must be told which stack is in use, and that one which was
 * left for good is free again. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define STACK_IS_FREE __asan_unpoison_memory_region
#define START_SWITCH  __sanitizer_start_switch_fiber
#define FINISH_SWITCH __sanitizer_finish_switch_fiber
#define FORGET_FRAMES __asan_unpoison_memory_region
#else
#define FORGET_FRAMES(stack, bytes) ((void)(stack), (void)(bytes))
#define START_SWITCH(save, bottom, bytes)                                      \
    ((void)(save), (void)(bottom), (void)(bytes))
#define FINISH_SWITCH(save, bottom, bytes)                                     \
    ((void)(save), (void)(bottom), (void)(bytes))
#define STACK_IS_FREE(bottom, bytes) ((void)(bottom), (void)(bytes))
#endif

/* void qn_coroutine_swap(void **save, void *sp) */
void qn_coroutine_swap(void **save, void *sp);

#if defined(__x86_64__)
#define REGISTERS 6u /* rbp rbx r12 r13 r14 r15 */
__asm__(".text\n"
        ".p2align 4\n"
        ".globl qn_coroutine_swap\n"
        ".hidden qn_coroutine_swap\n"
        ".type qn_coroutine_swap, @function\n"
        "qn_coroutine_swap:\n\t"
        "pushq %rbp\n\t"
        "pushq %rbx\n\t"
        "pushq %r12\n\t"
        "pushq %r13\n\t"
        "pushq %r14\n\t"
        "pushq %r15\n\t"
        "movq %rsp, (%rdi)\n\t"
        "movq %rsi, %rsp\n\t"
        "popq %r15\n\t"
        "popq %r14\n\t"
        "popq %r13\n\t"
        "popq %r12\n\t"
        "popq %rbx\n\t"
        "popq %rbp\n\t"
        "ret\n"
        ".size qn_coroutine_swap, .-qn_coroutine_swap\n");
#elif defined(__aarch64__)
#define REGISTERS 20u /* d8 .. d15, x19 .. x30 */
__asm__(".text\n"
        ".p2align 4\n"
        ".globl qn_coroutine_swap\n"
        ".hidden qn_coroutine_swap\n"
        ".type qn_coroutine_swap, %function\n"
        "qn_coroutine_swap:\n\t"
        "stp x29, x30, [sp, #-160]!\n\t"
        "stp x19, x20, [sp, #16]\n\t"
        "stp x21, x22, [sp, #32]\n\t"
        "stp x23, x24, [sp, #48]\n\t"
        "stp x25, x26, [sp, #64]\n\t"
        "stp x27, x28, [sp, #80]\n\t"
        "stp d8, d9, [sp, #96]\n\t"
        "stp d10, d11, [sp, #112]\n\t"
        "stp d12, d13, [sp, #128]\n\t"
        "stp d14, d15, [sp, #144]\n\t"
        "mov x2, sp\n\t"
        "str x2, [x0]\n\t"
        "mov sp, x1\n\t"
        "ldp d14, d15, [sp, #144]\n\t"
        "ldp d12, d13, [sp, #128]\n\t"
        "ldp d10, d11, [sp, #112]\n\t"
        "ldp d8, d9, [sp, #96]\n\t"
        "ldp x27, x28, [sp, #80]\n\t"
        "ldp x25, x26, [sp, #64]\n\t"
        "ldp x23, x24, [sp, #48]\n\t"
        "ldp x21, x22, [sp, #32]\n\t"
        "ldp x19, x20, [sp, #16]\n\t"
        "ldp x29, x30, [sp], #160\n\t"
        "ret\n"
        ".size qn_coroutine_swap, .-qn_coroutine_swap\n");
#else
#error "coroutines: x86-64 or aarch64"
#endif

/* A switch in one thread: which coroutine it left and which it enters. */
static struct qn_coroutine *left;
static struct qn_coroutine *entered;

static void arrived(void *fake_stack)
{
    const void *bottom = NULL;
    size_t bytes = 0;
    FINISH_SWITCH(fake_stack, &bottom, &bytes);
    if (left != NULL && left->stack == NULL) {
        /* The thread's own stack is known only from here. */
        left->bottom = bottom;
        left->known = bytes;
    }
}

static void begin(void)
{
    arrived(NULL);
    entered->entry(entered->arg);
    abort(); /* entry does not return */
}

void qn_coroutine_of_thread(struct qn_coroutine *c)
{
    *c = (struct qn_coroutine){0};
}

int qn_coroutine_init(struct qn_coroutine *c, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t stack = (bytes + page - 1) / page * page;
    char *map = mmap(NULL, stack + page, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        return QN_ENOMEM;
    }
    if (mprotect(map + page, stack, PROT_READ | PROT_WRITE) != 0) {
        munmap(map, stack + page);
        return QN_ENOMEM;
    }
    *c = (struct qn_coroutine){.stack = map + page,
                               .bytes = stack,
                               .bottom = map + page,
                               .known = stack};
    return QN_OK;
}

void qn_coroutine_fini(struct qn_coroutine *c)
{
    if (c->stack != NULL) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        munmap((char *)c->stack - page, c->bytes + page);
        c->stack = NULL;
    }
}

void qn_coroutine_start(struct qn_coroutine *c, void (*entry)(void *arg),
                        void *arg)
{
    QN_ASSERT(c->stack != NULL && c->bytes % 16 == 0);
    uintptr_t *top = (uintptr_t *)((char *)c->stack + c->bytes);
    STACK_IS_FREE(c->stack, c->bytes);
    c->entry = entry;
    c->arg = arg;
    FORGET_FRAMES(c->stack, c->bytes); /* of what was never resumed */
#if defined(__x86_64__)
    /* As after a call: 8 below a multiple of 16. The word there is no return
     * address: a backtrace ends. */
    *--top = 0;
    *--top = (uintptr_t)begin;
    top -= REGISTERS;
    memset(top, 0, REGISTERS * sizeof *top);
#else
    top -= REGISTERS;
    memset(top, 0, REGISTERS * sizeof *top); /* x29 too: a backtrace ends */
    top[1] = (uintptr_t)begin;               /* x30 */
#endif
    c->sp = top;
}

void qn_coroutine_switch(struct qn_coroutine *from, struct qn_coroutine *to)
{
    void *fake = NULL;
    left = from;
    entered = to;
    START_SWITCH(&fake, to->bottom, to->known);
    qn_coroutine_swap(&from->sp, to->sp);
    arrived(fake);
    (void)fake;
}

_Noreturn void qn_coroutine_leave(struct qn_coroutine *to)
{
    void *nowhere;
    left = NULL;
    entered = to;
    START_SWITCH(NULL, to->bottom, to->known);
    qn_coroutine_swap(&nowhere, to->sp);
    abort(); /* not reached */
}
