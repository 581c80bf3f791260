/*
 * The operations of core/base/atomic.h on the simulated machine, and its nodes.
 *
 * Each operation tells the scheduler of the access and then has the memory do
 * it. What happens between the two belongs to the scheduler: when `point`
 * returns, the running node performs its access, and no other node runs before
 * its next one.
 */
#include "core/sim/machine.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/err.h"

struct qn_sim_machine qn_sim = {.self = QN_SIM_NO_NODE};

memory_order (*qn_sim_weaken)(const struct qn_sim_site *site,
                              memory_order order);

/* ---- nodes ---- */

static int make_nodes(uint32_t nodes)
{
    QN_ASSERT(nodes >= 1 && nodes <= QN_SIM_NODES_MAX);
    if (nodes <= qn_sim.made) {
        return QN_OK;
    }
    struct qn_sim_node *all = realloc(qn_sim.node, nodes * sizeof *all);
    if (all == NULL) {
        return QN_ENOMEM;
    }
    qn_sim.node = all;
    while (qn_sim.made < nodes) {
        struct qn_sim_node *n = &all[qn_sim.made];
        *n = (struct qn_sim_node){0};
        if (qn_coroutine_init(&n->coroutine, QN_SIM_STACK_BYTES) != QN_OK) {
            return QN_ENOMEM;
        }
        qn_sim.made++;
    }
    return QN_OK;
}

static void run_node(void *arg)
{
    struct qn_sim_node *n = arg;
    qn_sim.main((uint32_t)(n - qn_sim.node));
    qn_sim.node[qn_sim.self].state = QN_SIM_FINISHED;
    qn_sim.scheduler->leave();
    abort(); /* a node that has ended is not chosen again */
}

int qn_sim_reset(uint32_t nodes, const struct qn_sim_scheduler *scheduler,
                 const struct qn_sim_memory *memory,
                 void (*main)(uint32_t node))
{
    int err = make_nodes(nodes);
    if (err != QN_OK) {
        return err;
    }
    qn_sim.nodes = nodes;
    qn_sim.self = QN_SIM_NO_NODE;
    qn_sim.scheduler = scheduler;
    qn_sim.memory = memory;
    qn_sim.main = main;
    memset(qn_sim.fd_count, 0, sizeof qn_sim.fd_count);
    qn_sim.sleeps = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        qn_sim.node[i].state = QN_SIM_READY;
        qn_coroutine_start(&qn_sim.node[i].coroutine, run_node,
                           &qn_sim.node[i]);
    }
    return QN_OK;
}

void qn_sim_run(uint32_t first)
{
    QN_ASSERT(first < qn_sim.nodes && qn_sim.self == QN_SIM_NO_NODE);
    qn_sim.self = first;
    qn_coroutine_of_thread(&qn_sim.thread);
    qn_coroutine_switch(&qn_sim.thread, &qn_sim.node[first].coroutine);
}

void qn_sim_switch(uint32_t next)
{
    uint32_t self = qn_sim.self;
    QN_DASSERT(next < qn_sim.nodes && next != self);
    QN_DASSERT(qn_sim.node[next].state == QN_SIM_READY);
    qn_sim.self = next;
    qn_coroutine_switch(&qn_sim.node[self].coroutine,
                        &qn_sim.node[next].coroutine);
}

_Noreturn void qn_sim_end_run(void)
{
    QN_ASSERT(qn_sim.self != QN_SIM_NO_NODE);
    qn_sim.self = QN_SIM_NO_NODE;
    qn_coroutine_leave(&qn_sim.thread);
}

void qn_sim_free(void)
{
    for (uint32_t i = 0; i < qn_sim.made; i++) {
        qn_coroutine_fini(&qn_sim.node[i].coroutine);
    }
    free(qn_sim.node);
    qn_sim.node = NULL;
    qn_sim.made = 0;
}

/* ---- memory without delay ---- */

static void direct_load(void *to, const volatile void *from, size_t n,
                        memory_order order)
{
    (void)order;
    memcpy(to, (const void *)from, n);
}

static void direct_store(volatile void *at, const void *bytes, size_t n,
                         memory_order order)
{
    (void)order;
    memcpy((void *)at, bytes, n);
}

static void direct_stream(volatile void *at, const void *bytes, size_t n)
{
    memcpy((void *)at, bytes, n);
}

static void direct_fence(memory_order order)
{
    (void)order;
}

static void direct_copy(void *to, const void *from, size_t n)
{
    memcpy(to, from, n);
}

static void direct_touch(const void *at, size_t n, bool written)
{
    (void)at;
    (void)n;
    (void)written;
}

static void direct_sync(const volatile void *word, int fd, bool gives)
{
    (void)word;
    (void)fd;
    (void)gives;
}

const struct qn_sim_memory qn_sim_direct = {
    .load = direct_load,
    .store = direct_store,
    .stream = direct_stream,
    .latest = direct_load,
    .replace = direct_store,
    .fence = direct_fence,
    .copy_in = direct_copy,
    .copy_checked = direct_copy,
    .copy_out = direct_copy,
    .touch = direct_touch,
    .sync = direct_sync,
};

/* ---- core/base/atomic_sim.h ---- */

/* In front of each access. @return what performs it. */
static const struct qn_sim_memory *point(enum qn_sim_kind kind,
                                         const volatile void *at, size_t bytes,
                                         memory_order order)
{
    if (qn_sim.self == QN_SIM_NO_NODE) {
        return &qn_sim_direct;
    }
    qn_sim.scheduler->point(&(struct qn_sim_access){
        .kind = kind, .at = at, .bytes = bytes, .order = order});
    return qn_sim.memory;
}

static uint64_t widen(const uint8_t *bytes, size_t n)
{
    uint32_t low;
    uint64_t wide;
    if (n == sizeof low) {
        memcpy(&low, bytes, sizeof low);
        return low;
    }
    memcpy(&wide, bytes, sizeof wide);
    return wide;
}

static void narrow(uint8_t *bytes, size_t n, uint64_t v)
{
    uint32_t low = (uint32_t)v;
    if (n == sizeof low) {
        memcpy(bytes, &low, sizeof low);
    } else {
        memcpy(bytes, &v, sizeof v);
    }
}

uint64_t qn_sim_load(const volatile void *p, size_t n, memory_order order)
{
    uint8_t bytes[8];
    point(QN_SIM_LOAD, p, n, order)->load(bytes, p, n, order);
    return widen(bytes, n);
}

void qn_sim_store(volatile void *p, size_t n, uint64_t v, memory_order order)
{
    uint8_t bytes[8];
    narrow(bytes, n, v);
    point(QN_SIM_STORE, p, n, order)->store(p, bytes, n, order);
}

void qn_sim_store_streaming(volatile void *p, uint64_t v)
{
    const struct qn_sim_access a = {.kind = QN_SIM_STORE,
                                    .at = p,
                                    .bytes = sizeof v,
                                    .order = memory_order_relaxed,
                                    .streaming = true};
    const struct qn_sim_memory *m = &qn_sim_direct;
    if (qn_sim.self != QN_SIM_NO_NODE) {
        qn_sim.scheduler->point(&a);
        m = qn_sim.memory;
    }
    m->stream(p, &v, sizeof v);
}

uint64_t qn_sim_rmw(volatile void *p, size_t n, enum qn_sim_rmw op, uint64_t v,
                    memory_order order)
{
    uint8_t bytes[8];
    const struct qn_sim_memory *m = point(QN_SIM_RMW, p, n, order);
    m->latest(bytes, p, n, order);
    uint64_t before = widen(bytes, n);
    narrow(bytes, n,
           op == QN_SIM_ADD  ? before + v
           : op == QN_SIM_OR ? before | v
                             : v);
    m->replace(p, bytes, n, order);
    return before;
}

bool qn_sim_cas(volatile void *p, size_t n, void *expected, uint64_t desired,
                memory_order order)
{
    uint8_t bytes[8];
    const struct qn_sim_memory *m = point(QN_SIM_RMW, p, n, order);
    m->latest(bytes, p, n, order);
    if (memcmp(bytes, expected, n) != 0) {
        memcpy(expected, bytes, n);
        if (order == memory_order_relaxed || order == memory_order_release) {
            /* A failure is an acquire load, whatever `order` is. */
            m->latest(bytes, p, n, memory_order_acquire);
        }
        return false;
    }
    narrow(bytes, n, desired);
    m->replace(p, bytes, n, order);
    return true;
}

bool qn_sim_cas_pair(volatile void *p, const uint64_t *from, const uint64_t *to)
{
    uint64_t now[2];
    const struct qn_sim_memory *m =
        point(QN_SIM_RMW, p, sizeof now, memory_order_seq_cst);
    m->latest(now, p, sizeof now, memory_order_seq_cst);
    if (memcmp(now, from, sizeof now) != 0) {
        return false;
    }
    m->replace(p, to, sizeof now, memory_order_seq_cst);
    return true;
}

void qn_sim_fence(memory_order order)
{
    if (order == memory_order_relaxed) {
        return; /* no fence at all */
    }
    point(QN_SIM_FENCE, NULL, 0, order)->fence(order);
}

void qn_sim_copy_out(void *shared, const void *src, size_t n)
{
    if (n > 0) {
        point(QN_SIM_COPY_OUT, shared, n, memory_order_relaxed)
            ->copy_out(shared, src, n);
    }
}

void qn_sim_copy_in(void *dst, const void *shared, size_t n)
{
    if (n > 0) {
        point(QN_SIM_COPY_IN, shared, n, memory_order_relaxed)
            ->copy_in(dst, shared, n);
    }
}

void qn_sim_copy_in_checked(void *dst, const void *shared, size_t n)
{
    const struct qn_sim_memory *m = &qn_sim_direct;
    if (qn_sim.self != QN_SIM_NO_NODE && n > 0) {
        qn_sim.scheduler->point(
            &(struct qn_sim_access){.kind = QN_SIM_COPY_IN,
                                    .at = shared,
                                    .bytes = n,
                                    .order = memory_order_relaxed,
                                    .checked = true});
        m = qn_sim.memory;
    }
    m->copy_checked(dst, shared, n);
}

void qn_sim_pause(void)
{
    if (qn_sim.self != QN_SIM_NO_NODE) {
        qn_sim.scheduler->pause();
    }
}

/* ---- core/base/mark.h ---- */

void qn_sim_touch(const void *at, size_t n, bool written)
{
    if (n > 0) {
        point(written ? QN_SIM_TOUCH_OUT : QN_SIM_TOUCH_IN, at, n,
              memory_order_relaxed)
            ->touch(at, n, written);
    }
}

void qn_sim_mark(enum qn_mark mark)
{
    if (qn_sim.self != QN_SIM_NO_NODE && qn_sim.scheduler->mark != NULL) {
        qn_sim.scheduler->mark(mark);
    }
}

bool qn_sim_queue(const struct qn_queue_op *op)
{
    return qn_sim.self == QN_SIM_NO_NODE || qn_sim.scheduler->queue == NULL ||
           qn_sim.scheduler->queue(op);
}

void qn_sim_work(uint64_t ns)
{
    if (qn_sim.self != QN_SIM_NO_NODE && qn_sim.scheduler->work != NULL) {
        qn_sim.scheduler->work(ns);
    }
}

void qn_sim_looks_until(uint64_t deadline)
{
    if (qn_sim.self != QN_SIM_NO_NODE &&
        qn_sim.scheduler->looks_until != NULL) {
        qn_sim.scheduler->looks_until(deadline);
    }
}

bool qn_sim_may_look(void)
{
    return qn_sim.self == QN_SIM_NO_NODE || !qn_sim.scheduler->parks_at_once;
}

bool qn_sim_may_park(void)
{
    return qn_sim.self == QN_SIM_NO_NODE ||
           qn_sim.scheduler->may_park == NULL || qn_sim.scheduler->may_park();
}
