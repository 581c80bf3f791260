/*
 * The machine: store buffers, the operations of core/base/atomic.h on them, and
 * the system calls of core/wait.
 *
 * TSO in one sentence: a node's stores reach memory in order but late, and its
 * own loads look into its buffer first. So of the four reorderings only one
 * exists, a load that passes an earlier store to another place; it is the one
 * that loses wake-ups.
 *
 * Copies to shared memory enter the buffer in pieces of at most a line, which
 * drain one after the other: a reader that does not wait for the announcement
 * sees a torn message. What a program writes in place (a reserved cell) goes to
 * memory at once; that hides nothing, since no reader may look before the
 * header, which is a store.
 *
 * Outside a run (setup, check, teardown) all operations act at once.
 */
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sim/machine_internal.h"
#include "core/wait/park.h"

struct qn_sim_machine qn_sim = {.self = QN_SIM_NO_NODE};

void qn_sim_reset(uint32_t nodes)
{
    qn_sim.nodes = nodes;
    qn_sim.self = QN_SIM_NO_NODE;
    memset(qn_sim.fd_count, 0, sizeof qn_sim.fd_count);
}

/* ---- store buffers ---- */

void qn_sim_drain_one(struct qn_sim_node *n)
{
    if (n->count > 0) {
        const struct qn_sim_pending *p = &n->pending[n->first];
        memcpy(p->at, p->bytes, p->len);
        n->first = (n->first + 1) % QN_SIM_PENDING_MAX;
        n->count--;
    }
}

static void drain(struct qn_sim_node *n)
{
    while (n->count > 0) {
        qn_sim_drain_one(n);
    }
}

void qn_sim_drain_all(void)
{
    for (uint32_t i = 0; i < qn_sim.nodes; i++) {
        drain(&qn_sim.node[i]);
    }
}

static void drain_self(void)
{
    if (qn_sim.self != QN_SIM_NO_NODE) {
        drain(&qn_sim.node[qn_sim.self]);
    }
}

/* The running node stores `len` bytes, at most a line. */
static void store(void *at, const void *bytes, size_t len)
{
    if (qn_sim.self == QN_SIM_NO_NODE) {
        memcpy(at, bytes, len);
        return;
    }
    struct qn_sim_node *n = &qn_sim.node[qn_sim.self];
    if (n->count == QN_SIM_PENDING_MAX) {
        qn_sim_drain_one(n);
    }
    uint32_t last = (n->first + n->count) % QN_SIM_PENDING_MAX;
    struct qn_sim_pending *p = &n->pending[last];
    QN_ASSERT(len <= sizeof p->bytes);
    p->at = at;
    p->len = (uint32_t)len;
    memcpy(p->bytes, bytes, len);
    n->count++;
}

/* What the running node finds in memory: its own pending stores on top. */
static void look(void *to, const void *from, size_t len)
{
    memcpy(to, from, len);
    if (qn_sim.self == QN_SIM_NO_NODE) {
        return;
    }
    const struct qn_sim_node *n = &qn_sim.node[qn_sim.self];
    const uint8_t *low = from;
    for (uint32_t i = 0; i < n->count; i++) {
        const struct qn_sim_pending *p =
            &n->pending[(n->first + i) % QN_SIM_PENDING_MAX];
        const uint8_t *at = p->at;
        const uint8_t *start = QN_MAX(low, at);
        const uint8_t *end = QN_MIN(low + len, at + p->len);
        if (start < end) {
            memcpy((uint8_t *)to + (start - low), p->bytes + (start - at),
                   (size_t)(end - start));
        }
    }
}

/* ---- core/base/atomic_sim.h ---- */

static uint64_t widen(const void *bytes, size_t n)
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

static void narrow(void *bytes, size_t n, uint64_t v)
{
    uint32_t low = (uint32_t)v;
    if (n == sizeof low) {
        memcpy(bytes, &low, sizeof low);
    } else {
        memcpy(bytes, &v, sizeof v);
    }
}

uint64_t qn_sim_load(const volatile void *p, size_t n)
{
    uint8_t bytes[8];
    qn_sim_point();
    look(bytes, (const void *)p, n);
    return widen(bytes, n);
}

void qn_sim_store(volatile void *p, size_t n, uint64_t v, bool full)
{
    uint8_t bytes[8];
    qn_sim_point();
    narrow(bytes, n, v);
    store((void *)p, bytes, n);
    if (full) {
        drain_self();
    }
}

uint64_t qn_sim_rmw(volatile void *p, size_t n, enum qn_sim_rmw op, uint64_t v)
{
    qn_sim_point();
    drain_self();
    uint64_t before = widen((const void *)p, n);
    uint64_t after = op == QN_SIM_ADD  ? before + v
                     : op == QN_SIM_OR ? before | v
                                       : v;
    narrow((void *)p, n, after);
    return before;
}

bool qn_sim_cas(volatile void *p, size_t n, void *expected, uint64_t desired)
{
    qn_sim_point();
    drain_self();
    if (memcmp((const void *)p, expected, n) != 0) {
        memcpy(expected, (const void *)p, n);
        return false;
    }
    narrow((void *)p, n, desired);
    return true;
}

bool qn_sim_cas_pair(volatile void *p, const uint64_t *from, const uint64_t *to)
{
    qn_sim_point();
    drain_self();
    if (memcmp((const void *)p, from, 2 * sizeof *from) != 0) {
        return false;
    }
    memcpy((void *)p, to, 2 * sizeof *to);
    return true;
}

void qn_sim_fence(bool full)
{
    qn_sim_point();
    if (full) {
        drain_self();
    }
}

void qn_sim_copy_out(void *shared, const void *src, size_t n)
{
    qn_sim_point();
    for (size_t at = 0; at < n; at += QN_CACHELINE) {
        size_t piece = QN_MIN(n - at, (size_t)QN_CACHELINE);
        store((uint8_t *)shared + at, (const uint8_t *)src + at, piece);
    }
}

void qn_sim_copy_in(void *dst, const void *shared, size_t n)
{
    qn_sim_point();
    look(dst, shared, n);
}

/* A pause lets time pass: buffers drain and other nodes run. */
void qn_sim_pause(void)
{
    qn_sim_point();
    if (qn_sim.self != QN_SIM_NO_NODE) {
        qn_sim_drain_all();
        qn_sim_leave();
    }
}

/* ---- core/wait/park.h ---- */

/* A system call: a point, and a full barrier. */
static void enter_kernel(void)
{
    qn_sim_point();
    drain_self();
}

static int sleep_on(const void *word, int fd, qn_time_t deadline)
{
    QN_ASSERT(qn_sim.self != QN_SIM_NO_NODE);
    struct qn_sim_node *n = &qn_sim.node[qn_sim.self];
    n->state = QN_SIM_SLEEPS;
    n->word = word;
    n->fd = fd;
    n->can_time_out = deadline != QN_TIME_NEVER;
    n->timed_out = false;
    qn_sim_leave();
    return n->timed_out ? QN_ETIMEDOUT : QN_OK;
}

static void wake(const void *word, int fd)
{
    for (uint32_t i = 0; i < qn_sim.nodes; i++) {
        struct qn_sim_node *n = &qn_sim.node[i];
        if (n->state == QN_SIM_SLEEPS && n->word == word && n->fd == fd) {
            n->state = QN_SIM_READY;
        }
    }
}

int qn_park_word(qn_a32 *word, uint32_t seen, qn_time_t deadline)
{
    enter_kernel();
    if (widen((const void *)word, sizeof seen) != seen) {
        return QN_OK;
    }
    return sleep_on((const void *)word, -1, deadline);
}

void qn_unpark_word(qn_a32 *word)
{
    enter_kernel();
    wake((const void *)word, -1);
}

int qn_park_fd(int fd, qn_time_t deadline)
{
    QN_ASSERT(fd >= 0 && fd < (int)QN_SIM_FDS);
    enter_kernel();
    return qn_sim.fd_count[fd] > 0 ? QN_OK : sleep_on(NULL, fd, deadline);
}

void qn_unpark_fd(int fd)
{
    QN_ASSERT(fd >= 0 && fd < (int)QN_SIM_FDS);
    enter_kernel();
    qn_sim.fd_count[fd]++;
    wake(NULL, fd);
}

void qn_park_drain(int fd)
{
    QN_ASSERT(fd >= 0 && fd < (int)QN_SIM_FDS);
    enter_kernel();
    qn_sim.fd_count[fd] = 0;
}
