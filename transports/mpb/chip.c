/*
 * The device as a group sees it, and a chip without surprises.
 *
 * Order. One access of a core is in flight at a time, so to all cores the
 * stores that left a write buffer and the loads behind them have one order.
 * Flags, stored word by word, are seq_cst therefore, and so are their loads:
 * queuepairs exclude a lost wake-up by it. Put and get move data that a flag
 * announces: release and acquire of each word will do, for the flag that is
 * stored behind a put comes later in the order of its core, and the load that
 * finds the flag comes before the get.
 *
 * A dead core may leave a test-and-set register held. The first survivor that
 * was told releases it: the compare fails for all others. If none of those that
 * knew the holder lives, a later incarnation of that seat brings the release:
 * the successor itself when it attaches, and any node that hears of it, at
 * attach or up. Only what is older is released, so a node that is told late
 * takes nothing from a successor. A seat that never comes back, and that none
 * alive has ever known, keeps what it held: it cannot be told from one that is
 * about to be named.
 *
 * Interrupts of a dead core are left as they are. Status registers: its
 * successor may have added to them before a survivor is told, so taking one
 * away could lose the other. Its request register: what a core that died in
 * between had not sent goes out with the next request of its successor. What an
 * interrupt announces names its incarnation.
 */
#include "transports/mpb/chip.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "transports/mpb/layout.h"

#define MAGIC      UINT64_C(0x31006370626d4e51) /* layout 1 */
#define PAGE_BYTES 4096u

static_assert(sizeof(struct qn_mpb_line) == QN_MPB_LINE_BYTES, "a line");
static_assert(offsetof(struct qn_mpb_core, owner) == 8192, "8 KB per core");
static_assert(offsetof(struct qn_mpb, device) == 0, "qn_mpb_of");

/* ---- a plain chip ---- */

static qn_a64 *word_at(struct qn_mpb *m, uint32_t core, uint32_t line,
                       uint32_t word)
{
    QN_DASSERT(core < m->nodes);
    QN_DASSERT(line < QN_MPB_LINES);
    return &m->chip->core[core].line[line].word[word];
}

static void nothing(struct qn_mpb *m)
{
    (void)m;
}

static uint64_t plain_load(struct qn_mpb *m, uint32_t core, uint32_t line,
                           uint32_t word)
{
    return qn_load(word_at(m, core, line, word), QN_SEQ_CST);
}

static void plain_store(struct qn_mpb *m, uint32_t core, uint32_t line,
                        uint32_t word, uint64_t value)
{
    qn_store(word_at(m, core, line, word), value, QN_SEQ_CST);
}

static void plain_get(struct qn_mpb *m, void *to, uint32_t core, uint32_t first,
                      uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        uint32_t word = at / (uint32_t)sizeof(uint64_t);
        /* acquire -> release in plain_put: of bytes that are written again
         * meanwhile, what follows shows that they were. */
        uint64_t v = qn_load(word_at(m, core, first + word / QN_MPB_LINE_WORDS,
                                     word % QN_MPB_LINE_WORDS),
                             QN_ACQUIRE);
        memcpy((uint8_t *)to + at, &v, QN_MIN(sizeof v, bytes - at));
    }
}

static void plain_put(struct qn_mpb *m, uint32_t core, uint32_t first,
                      const void *from, uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        uint32_t word = at / (uint32_t)sizeof(uint64_t);
        uint64_t v = 0;
        memcpy(&v, (const uint8_t *)from + at, QN_MIN(sizeof v, bytes - at));
        /* release -> acquire in plain_get: a reader that sees it sees also the
         * flag that was stored before, which calls the old bytes back. */
        qn_store(word_at(m, core, first + word / QN_MPB_LINE_WORDS,
                         word % QN_MPB_LINE_WORDS),
                 v, QN_RELEASE);
    }
}

static void plain_move(struct qn_mpb *m, uint32_t to, uint32_t core,
                       uint32_t first, uint32_t lines)
{
    for (uint32_t i = 0; i < lines; i++) {
        uint64_t line[QN_MPB_LINE_WORDS];
        plain_get(m, line, core, first + i, sizeof line);
        plain_put(m, m->self, to + i, line, sizeof line);
    }
}

static void plain_interrupt(struct qn_mpb *m, uint64_t cores)
{
    qn_mpb_request(m, cores);
    qn_mpb_serve(m);
}

static uint64_t plain_take(struct qn_mpb *m)
{
    return qn_exchange(&m->chip->core[m->self].status, 0, QN_SEQ_CST);
}

static void plain_free(struct qn_mpb *m)
{
    free(m);
}

static const struct qn_mpb_access plain = {
    .invalidate = nothing,
    .load = plain_load,
    .store = plain_store,
    .drain = nothing,
    .get = plain_get,
    .put = plain_put,
    .move = plain_move,
    .interrupt = plain_interrupt,
    .take = plain_take,
    .settle = nothing,
    .free = plain_free,
};

/* ---- registers ---- */

void qn_mpb_request(struct qn_mpb *m, uint64_t cores)
{
    /* relaxed: only this core uses its request register. */
    (void)qn_fetch_or(&m->chip->core[m->self].request, cores, QN_RELAXED);
}

void qn_mpb_ring(struct qn_mpb *m, qn_node_t to)
{
    if (m->ringer != NULL && m->ringer[to].line != NULL &&
        m->incarnation[to] != 0) {
        (void)qn_doorbell_ring(&m->ringer[to]);
    }
}

/* The request is cleared when all its interrupts have come. A core that dies in
 * between leaves it, and its successor sends it once more: none is lost, and
 * one too many is harmless. */
void qn_mpb_serve(struct qn_mpb *m)
{
    qn_a64 *request = &m->chip->core[m->self].request;
    uint64_t cores = qn_load(request, QN_RELAXED); /* as in qn_mpb_request */
    for (uint64_t left = cores; left != 0; left &= left - 1) {
        uint32_t to = (uint32_t)__builtin_ctzll(left);
        if (to < m->nodes) {
            (void)qn_fetch_or(&m->chip->core[to].status, UINT64_C(1) << m->self,
                              QN_SEQ_CST);
            qn_mpb_ring(m, to);
        }
    }
    if (cores != 0) {
        qn_store(request, 0, QN_RELAXED); /* as above */
    }
}

static uint64_t owner_of(qn_node_t node, uint64_t incarnation)
{
    return (uint64_t)(node + 1) << 32 | (uint32_t)incarnation;
}

bool qn_mpb_try_acquire(struct qn_mpb *m, uint32_t core)
{
    uint64_t free_word = 0;
    QN_ASSERT(core < m->nodes);
    return qn_cas(&m->chip->core[core].owner, &free_word,
                  owner_of(m->self, m->incarnation[m->self]), QN_SEQ_CST);
}

void qn_mpb_release(struct qn_mpb *m, uint32_t core)
{
    uint64_t own = owner_of(m->self, m->incarnation[m->self]);
    QN_ASSERT(core < m->nodes);
    bool held = qn_cas(&m->chip->core[core].owner, &own, 0, QN_SEQ_CST);
    QN_ASSERT(held);
}

/* What incarnations of these nodes before those that are known hold: they have
 * ended. */
static void release_older(struct qn_mpb *m, uint64_t nodes)
{
    for (uint32_t i = 0; i < m->nodes; i++) {
        /* relaxed: the compare below decides. */
        uint64_t held = qn_load(&m->chip->core[i].owner, QN_RELAXED);
        uint64_t holder = (held >> 32) - 1;
        if (held != 0 && holder < m->nodes && (nodes >> holder & 1) != 0 &&
            m->incarnation[holder] != 0 &&
            (int32_t)((uint32_t)m->incarnation[holder] - (uint32_t)held) > 0) {
            (void)qn_cas(&m->chip->core[i].owner, &held, 0, QN_SEQ_CST);
        }
    }
}

/* ---- the device ---- */

static size_t device_bytes(const struct qn_device_opts *o)
{
    struct qn_mpb_layout l;
    if (!qn_mpb_layout(&l, o->nodes, o->lanes)) {
        return 0;
    }
    return qn_align_up(sizeof(struct qn_mpb_chip) +
                           o->nodes * sizeof(struct qn_mpb_core),
                       PAGE_BYTES);
}

static void device_format(void *memory, const struct qn_device_opts *o)
{
    struct qn_mpb_chip *c = memory;
    /* relaxed: it runs alone, before any attachment has the memory. */
    qn_store(&c->nodes, o->nodes, QN_RELAXED);
    qn_store(&c->lanes, o->lanes, QN_RELAXED);
    qn_store(&c->strict, o->strict, QN_RELAXED);
    qn_store(&c->seed, o->seed, QN_RELAXED);
    qn_store(&c->magic, MAGIC, QN_RELAXED);
}

static bool formatted(const struct qn_mpb_chip *c,
                      const struct qn_device_opts *o)
{
    return qn_load(&c->magic, QN_RELAXED) == MAGIC &&
           qn_load(&c->nodes, QN_RELAXED) == o->nodes &&
           qn_load(&c->lanes, QN_RELAXED) == o->lanes &&
           qn_load(&c->strict, QN_RELAXED) == o->strict &&
           qn_load(&c->seed, QN_RELAXED) == o->seed;
}

static int device_attach(struct qn_device **out,
                         const struct qn_device_attach_opts *o)
{
    const struct qn_device_opts *d = o->opts;
    if (o->memory == NULL || device_bytes(d) == 0 || o->self >= d->nodes ||
        o->incarnation[o->self] == 0 ||
        (uintptr_t)o->memory % QN_CACHELINE != 0) {
        return QN_EINVAL;
    }
    if (!formatted(o->memory, d)) {
        return QN_ECORRUPT;
    }
    struct qn_mpb *m = d->strict
                           ? qn_mpb_strict_create(d->nodes, d->seed + o->self)
                           : calloc(1, sizeof *m);
    if (m == NULL) {
        return QN_ENOMEM;
    }
    m->device = (struct qn_device){.type = &qn_mpb_device, .self = o->self};
    m->access = d->strict ? m->access : &plain;
    m->chip = o->memory;
    m->nodes = d->nodes;
    m->lanes = d->lanes;
    m->self = o->self;
    m->doorbell = o->doorbell;
    m->ringer = o->ringer;
    memcpy(m->incarnation, o->incarnation, d->nodes * sizeof *o->incarnation);
    release_older(m, UINT64_MAX);
    *out = &m->device;
    return QN_OK;
}

static void device_detach(struct qn_device *d)
{
    struct qn_mpb *m = qn_mpb_of(d);
    m->access->settle(m);
    m->access->free(m);
}

static void device_down(struct qn_device *d, qn_node_t node)
{
    struct qn_mpb *m = qn_mpb_of(d);
    QN_ASSERT(node < m->nodes);
    QN_ASSERT(node != m->self);
    for (uint32_t i = 0; i < m->nodes && m->incarnation[node] != 0; i++) {
        uint64_t dead = owner_of(node, m->incarnation[node]);
        (void)qn_cas(&m->chip->core[i].owner, &dead, 0, QN_SEQ_CST);
    }
    m->incarnation[node] = 0;
    m->changes++;
}

static void device_up(struct qn_device *d, qn_node_t node, uint64_t inc)
{
    struct qn_mpb *m = qn_mpb_of(d);
    QN_ASSERT(node < m->nodes);
    QN_ASSERT(node != m->self);
    QN_ASSERT(inc != 0);
    m->incarnation[node] = inc;
    release_older(m, UINT64_C(1) << node);
    m->changes++;
}

const struct qn_device_type qn_mpb_device = {
    .name = "mpb",
    .bytes = device_bytes,
    .format = device_format,
    .attach = device_attach,
    .detach = device_detach,
    .down = device_down,
    .up = device_up,
};

const char *qn_mpb_fault(const struct qn_device *d)
{
    return ((const struct qn_mpb *)(const void *)d)->fault;
}
