#ifndef QN_TRANSPORTS_MPB_CHIP_H
#define QN_TRANSPORTS_MPB_CHIP_H

/**
 * The chip: an Intel SCC as far as messages need it, in memory that its cores
 * share (core/device.h). Each core has a message buffer of 256 lines of 32
 * bytes, which all cores read and write, a test-and-set register, and registers
 * of the interrupt controller.
 *
 * Nothing is coherent. Two rules follow, and code on a chip keeps both:
 *
 *   invalidate   a load may show what this core has loaded before, until the
 *                core has invalidated what it holds. A look at a flag is
 *                qn_mpb_invalidate, then a load.
 *   drain        stores to one line are collected in a write buffer. They leave
 *                it when the line is full, when a store to another line comes,
 *                or when they are drained. A store of less than a line is seen
 *                by others only after qn_mpb_drain. Loading a word of it before
 *                is a fault.
 *
 * What left the buffer is seen by all, in the order in which it left: one
 * access of a core is in flight at a time. A *plain* chip forgets neither rule
 * and needs none: it is as fast as the host's memory. A *strict* one
 * (qn_device_opts.strict) does to the code whatever the hardware may do, chosen
 * by a seed.
 *
 * A word of 8 bytes is loaded and stored as one, and no part of one is ever
 * stored. The hardware takes a whole line as one, and drains part of it with a
 * mask of bytes: bytes that were not stored stay as they are. Here the mask has
 * a bit per word. What is right with words is right there; code that shares a
 * word between two writers, byte by byte, could not be written here.
 *
 * Interrupts: a request sets one bit, its source, in the status register of
 * each target. Two from one source merge until the target has taken the first.
 * A request may be on its way for a while (the controller serves one register
 * at a time): strict delays it, at most until the source settles. A target
 * takes interrupts at a safe point of its choice; it takes them first and then
 * looks at what they announce. One may be of a former incarnation of its
 * source. The controller's mask register is absent: a core that does not want
 * to be interrupted does not take (`take` is its only safe point), which is
 * what a masked core sees. Nor has it the one line for all cores through which
 * the hardware serves registers one at a time: core/sim/timed/tiled prices
 * that.
 *
 * Threads: an attachment belongs to one thread. All calls but attach are
 * wait-free; only those that say so ring.
 * Source: Intel SCC and its RCCE library; Petrovic, EPFL thesis, chapters 3
 * and 4.
 */

#include <stdalign.h>

#include "core/base/atomic.h"
#include "core/device.h"

#define QN_MPB_CORES      48u  /* of a chip */
#define QN_MPB_LINES      256u /* of a message buffer */
#define QN_MPB_LINE_BYTES 32u
#define QN_MPB_LINE_WORDS 4u

struct qn_mpb_line {
    alignas(QN_MPB_LINE_BYTES) qn_a64 word[QN_MPB_LINE_WORDS];
};

/** The part of a core, in shared memory. */
struct qn_mpb_core {
    struct qn_mpb_line line[QN_MPB_LINES];
    alignas(QN_CACHELINE) qn_a64 owner;   /* test-and-set: (holder + 1) << 32 |
                                             low bits of its incarnation; 0: free
                                           */
    alignas(QN_CACHELINE) qn_a64 status;  /* bit i: core i has interrupted */
    alignas(QN_CACHELINE) qn_a64 request; /* bit i: on its way to core i */
};

/** The shared memory of a device. */
struct qn_mpb_chip {
    alignas(QN_CACHELINE) qn_a64 magic; /* of the layout */
    qn_a32 nodes, lanes, strict;        /* as formatted */
    qn_a64 seed;
    struct qn_mpb_core core[]; /* [nodes] */
};

struct qn_mpb;

/** How an attachment reaches the chip: plain, strict, or priced by a simulated
 *  machine. `bytes` are rounded up to words, `first` is a line's number. */
struct qn_mpb_access {
    void (*invalidate)(struct qn_mpb *m);
    uint64_t (*load)(struct qn_mpb *m, uint32_t core, uint32_t line,
                     uint32_t word);
    void (*store)(struct qn_mpb *m, uint32_t core, uint32_t line, uint32_t word,
                  uint64_t value);
    void (*drain)(struct qn_mpb *m);
    /** From any buffer to private memory, and back. */
    void (*get)(struct qn_mpb *m, void *to, uint32_t core, uint32_t first,
                uint32_t bytes);
    void (*put)(struct qn_mpb *m, uint32_t core, uint32_t first,
                const void *from, uint32_t bytes);
    /** Whole lines, from any buffer to the own one. */
    void (*move)(struct qn_mpb *m, uint32_t to, uint32_t core, uint32_t first,
                 uint32_t lines);
    /** Interrupt the cores of a set. Rings those that sleep. */
    void (*interrupt)(struct qn_mpb *m, uint64_t cores);
    /** Take what has come: a bit per source. */
    uint64_t (*take)(struct qn_mpb *m);
    /** Nothing of this core is on its way any more. Rings. */
    void (*settle)(struct qn_mpb *m);
    void (*free)(struct qn_mpb *m);
};

/** An attachment: a node as a core. Fields are private. */
struct qn_mpb {
    struct qn_device device; /* its first member */
    const struct qn_mpb_access *access;
    struct qn_mpb_chip *chip; /* shared */
    uint32_t nodes, lanes;
    qn_node_t self;
    struct qn_doorbell *doorbell;
    struct qn_doorbell_handle *ringer;  /* [nodes] or NULL */
    uint64_t incarnation[QN_MPB_CORES]; /* 0: not there yet, or down */
    uint32_t changes;                   /* of them: downs and ups */
    const char *fault;                  /* what strict has found; NULL */
};

extern const struct qn_device_type qn_mpb_device;

static inline struct qn_mpb *qn_mpb_of(struct qn_device *d)
{
    return (struct qn_mpb *)(void *)d; /* device is its first member */
}

/** Ring a core, unless it has ended or is not there yet. */
void qn_mpb_ring(struct qn_mpb *m, qn_node_t to);

/** Put a request into the controller, and let it serve all that are there. */
void qn_mpb_request(struct qn_mpb *m, uint64_t cores);
void qn_mpb_serve(struct qn_mpb *m);

/** Take the test-and-set register of a core. @return false: it is held. */
bool qn_mpb_try_acquire(struct qn_mpb *m, uint32_t core);
/** Release what try_acquire took. */
void qn_mpb_release(struct qn_mpb *m, uint32_t core);

/** An attachment with strict access; for attach. NULL: no memory. */
struct qn_mpb *qn_mpb_strict_create(uint32_t nodes, uint64_t seed);

/** The first rule that code has broken on a strict chip; NULL: none. */
const char *qn_mpb_fault(const struct qn_device *d);

static inline void qn_mpb_drain(struct qn_mpb *m)
{
    m->access->drain(m);
}

static inline void qn_mpb_invalidate(struct qn_mpb *m)
{
    m->access->invalidate(m);
}

static inline void qn_mpb_store(struct qn_mpb *m, uint32_t core, uint32_t line,
                                uint32_t word, uint64_t value)
{
    m->access->store(m, core, line, word, value);
}

/** A word as this core may see it: a look at what others write needs
 *  qn_mpb_invalidate before. */
static inline uint64_t qn_mpb_load(struct qn_mpb *m, uint32_t core,
                                   uint32_t line, uint32_t word)
{
    return m->access->load(m, core, line, word);
}

/** Bytes between private memory and lines, which begin at line `first`. */
static inline void qn_mpb_get(struct qn_mpb *m, void *to, uint32_t core,
                              uint32_t first, uint32_t bytes)
{
    m->access->get(m, to, core, first, bytes);
}

static inline void qn_mpb_put(struct qn_mpb *m, uint32_t core, uint32_t first,
                              const void *from, uint32_t bytes)
{
    m->access->put(m, core, first, from, bytes);
}

/** Whole lines to the own buffer. */
static inline void qn_mpb_move(struct qn_mpb *m, uint32_t to, uint32_t core,
                               uint32_t first, uint32_t lines)
{
    m->access->move(m, to, core, first, lines);
}

/** The low bits of a node's incarnation, as words carry them. */
static inline uint32_t qn_mpb_low(uint64_t incarnation)
{
    return (uint32_t)incarnation & 0xffffu;
}

#endif
