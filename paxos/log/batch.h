#ifndef QN_PAXOS_LOG_BATCH_H
#define QN_PAXOS_LOG_BATCH_H

/**
 * Commands, command lists, batches (PROTOCOL.md 3.1).
 *
 *     command  = varint (2 * length)     | bytes
 *              | varint (2 * length + 1) | varint index | varint offset
 *     commands = command*                                body of REQUEST
 *     run      = origin u8 | varint incarnation | varint first sequence
 *                | varint count | varint bytes of commands | commands
 *     batch    = stamp u64 | count u32 | run*          little endian
 *
 * The second form is a reference: the command lies in the arena of its origin
 * (paxos/log/arena.h). It occurs in a REQUEST and in a batch that waits in the
 * leader's queue (queue.c), never in what is decided. Varints are LEB128, least
 * significant bits first, shortest form only. The commands of a run have
 * consecutive sequences. A SET of an 8-byte key and a 16-byte value costs one
 * byte beside itself, its run about six.
 *
 * Pure, any thread. Readers never leave the bytes they were given; what was
 * checked once (qn_msg_decode) is read without errors afterwards.
 */

#include <stdbool.h>

#include "core/base/bits.h"
#include "core/node.h"
#include "paxos/log/arena.h"
#include "paxos/log/refbuf.h"

#define QN_BATCH_HEAD  12u /* stamp, count */
#define QN_RUN_HEAD    33u /* most bytes before a run's commands */
#define QN_VARINT_MAX  10u
#define QN_COMMAND_MAX ((512u << 20) + (1u << 20)) /* bytes of one command */

/** Consecutive commands of one origin. */
struct qn_command_run {
    qn_node_t origin;
    uint64_t inc;             /* its incarnation */
    uint64_t first;           /* sequence of the first command, from 1 */
    uint32_t count;           /* commands */
    struct qn_slice commands; /* borrowed */
};

/** Add one command, the concatenation of parts[0..n), to a refbuf that holds a
 *  command list. @return QN_OK; QN_ENOMEM, QN_EMSGSIZE: unchanged. */
int qn_commands_add(struct qn_refbuf **b, const struct qn_slice *parts,
                    uint32_t n);

/** Add a reference to a command, likewise. @return QN_OK; QN_ENOMEM. */
int qn_commands_refer(struct qn_refbuf **b, const struct qn_arena_place *p);

/** Take the first command off *list. @return false: it was empty. The list
 *  has been checked; a malformed one, or a reference, is asserted. */
bool qn_commands_next(struct qn_slice *list, struct qn_slice *command);

/** @return commands in the list; QN_ECORRUPT: malformed, or a reference. */
int64_t qn_commands_check(struct qn_slice list);

/** A command that may be a reference. */
struct qn_wanted {
    bool refers;
    struct qn_slice bytes;       /* borrowed; of a reference none */
    struct qn_arena_place place; /* of a reference */
};

/** The sum of a list of wanted commands. */
struct qn_wants {
    uint32_t count; /* commands */
    bool refers;    /* some are references */
    uint64_t bytes; /* once they are resolved */
};

/** As qn_commands_next, and asserted likewise. */
bool qn_wanted_next(struct qn_slice *list, struct qn_wanted *w);

/** @return QN_OK, *out is filled; QN_ECORRUPT: malformed. */
int qn_wanted_check(struct qn_slice list, struct qn_wants *out);

/** A refbuf that holds a batch of no commands, with room for `cap` bytes of
 *  runs. @return NULL: no memory. */
struct qn_refbuf *qn_batch_create(const struct qn_alloc *a, size_t cap);

/** Add a run. @return QN_OK; QN_ENOMEM: unchanged. */
int qn_batch_add(struct qn_refbuf **batch, const struct qn_command_run *g);

/** Begin a run whose `bytes` of commands follow, by qn_batch_put: g->commands
 *  does not count. The batch has room for all of it (qn_batch_create). */
void qn_batch_begin(struct qn_refbuf *batch, const struct qn_command_run *g,
                    uint64_t bytes);

/** Put the head of a command of `len` bytes, which its caller then appends. */
void qn_batch_put(struct qn_refbuf *batch, uint64_t len);

/** Bytes of a command of `len` in a list. */
uint64_t qn_command_bytes(uint64_t len);

/** Take the runs of that incarnation out of a batch, in place. @return
 * commands that went. */
uint32_t qn_batch_strip(struct qn_refbuf *batch, qn_node_t origin,
                        uint64_t inc);

/** Set the stamp (before the batch is shared). */
void qn_batch_set_stamp(struct qn_refbuf *batch, uint64_t stamp_ms);

uint64_t qn_batch_stamp(struct qn_slice batch); /* ms */
uint32_t qn_batch_count(struct qn_slice batch); /* commands of all runs */

/** Next run: begin with *at = 0. @return false: that was all. The batch has
 *  been checked. */
bool qn_batch_next(struct qn_slice batch, uint32_t *at,
                   struct qn_command_run *g);

/** @return QN_OK; QN_ECORRUPT. */
int qn_batch_check(struct qn_slice batch);

#endif
