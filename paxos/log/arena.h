#ifndef QN_PAXOS_LOG_ARENA_H
#define QN_PAXOS_LOG_ARENA_H

/**
 * The upload arena: long commands that wait to be copied by the leader
 * (PROTOCOL.md 3.1, Requests by reference).
 *
 * It lies in the outbox of a node, which alone writes it; all other nodes map
 * it read-only. An origin keeps a command here from its submit until it is
 * applied, and tells the leader the place instead of the bytes. Blocks end in
 * the order in which they began, because an origin's commands are applied in
 * the order of submission. So a block is named by its index, and one shared
 * word says which blocks are left:
 *
 *     +-------+----------------------------------------------+
 *     | first | bytes, 0 .. capacity                         |
 *     +-------+----------------------------------------------+
 *               this lap | free | the lap before | free
 *
 * A reader copies a block and then looks at `first` again: the block may have
 * ended meanwhile, and its bytes may have been used again:
 *
 *     writer   first = index + 1;  fence;  other bytes
 *     reader   bytes;  fence;  first > index: the copy is void
 *
 * Memory is taken as needed: a lap begins again at 0 when there is room, and is
 * made longer when there is none.
 *
 *     | concurrently    | add, undo, free | pull |
 *     |-----------------|-----------------|------|
 *     | add, undo, free | same thread     | free |
 *     | pull            | free            | free |
 *
 * Wait-free, except for `grow`.
 */

#include <stdbool.h>
#include <stddef.h>

#include "core/base/alloc.h"
#include "core/base/atomic.h"
#include "core/base/err.h"

#define QN_ARENA_BLOCKS 4096u /* at a time */

struct qn_arena_shared;

/** Where a command lies. A replica that is told a place checks it. */
struct qn_arena_place {
    uint64_t index; /* of the block, from 1 */
    uint64_t at;    /* offset in the bytes */
    uint64_t len;   /* bytes */
};

/** Every process that opens one arena gives the same `capacity`. */
struct qn_arena_opts {
    uint64_t capacity; /* bytes of address space for commands */
    /** Writer: memory for the first `bytes` of the whole arena, before they are
     *  touched; may block. NULL: all of it is there. The first
     * qn_arena_bytes(0) are there from the beginning. @return QN_OK; QN_ENOMEM.
     */
    int (*grow)(void *ctx, uint64_t bytes);
    void *ctx;                    /* kept */
    const struct qn_alloc *alloc; /* writer, kept; NULL: malloc's */
};

/** A block of the writer. Private. */
struct qn_arena_block {
    uint64_t at, end; /* offsets; end is aligned */
};

/** The view of one process; only the writer fills the second part. Private. */
struct qn_arena {
    struct qn_arena_shared *shared; /* shared */
    struct qn_arena_opts o;
    /* writer */
    struct qn_arena_block *block; /* [QN_ARENA_BLOCKS] by index; owned */
    uint64_t first, next;         /* blocks [first, next) are left ... */
    uint64_t lap;                 /* ... those from here on in this lap */
    uint64_t limit;               /* end of a lap */
    uint64_t memory;              /* offsets below have memory */
    uint64_t used, most;          /* bytes of all blocks; ever */
};

/** Bytes of memory, aligned to QN_CACHELINE, for such an arena. */
size_t qn_arena_bytes(uint64_t capacity);

/** Writer: begin in `mem` (kept; zeroed when its outbox was made).
 *  @return QN_OK; QN_ENOMEM. */
int qn_arena_begin(struct qn_arena *a, void *mem,
                   const struct qn_arena_opts *o);

/** Writer: its own memory; `mem` stays. */
void qn_arena_end(struct qn_arena *a);

/** Reader: look at an arena in `mem` (kept). */
void qn_arena_open(struct qn_arena *a, const void *mem, uint64_t capacity);

/**
 * Writer: a block of `len` bytes behind all others.
 *
 * @param out  Filled.
 * @return QN_OK; QN_EAGAIN: there is no place now; QN_ENOMEM: no memory for it;
 *         QN_EMSGSIZE: it is longer than the capacity.
 */
int qn_arena_add(struct qn_arena *a, uint64_t len, struct qn_arena_place *out);

/** Writer: the bytes of a block, [len]. Write them before any reader is told
 *  the place. */
uint8_t *qn_arena_at(const struct qn_arena *a, const struct qn_arena_place *p);

/** Writer: take back the newest block, of which no reader was told. */
void qn_arena_undo(struct qn_arena *a);

/** Writer: the oldest block ends. */
void qn_arena_free(struct qn_arena *a);

/** Reader: does the place lie within the arena? A peer may send any numbers.
 *  Pure. */
bool qn_arena_is_sane(const struct qn_arena *a, const struct qn_arena_place *p);

/**
 * Reader: copy bytes [from, from + n) of a block to `to`.
 *
 * @return QN_OK; QN_ESTALE: the block has ended, what was copied so far of it
 *         is void; QN_ECORRUPT: the arena has no such place.
 */
int qn_arena_pull(const struct qn_arena *a, const struct qn_arena_place *p,
                  uint64_t from, void *to, size_t n);

#endif
