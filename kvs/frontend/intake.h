#ifndef QN_KVS_FRONTEND_INTAKE_H
#define QN_KVS_FRONTEND_INTAKE_H

/**
 * Where sockets are read into, for the turn: chunks, filled one read after the
 * other.
 *
 * A read is offered all that is left of the current chunk, and takes as much as
 * has come. So what a turn reads lies close together, however many connections
 * it comes from, and a connection with much to say is read in one call. A chunk
 * is used again when all bytes in it have been given back.
 *
 *     room = qn_intake_room(i, &n);  n = read(fd, room, n);
 *     chunk = qn_intake_take(i, n);  ...  qn_intake_give(i, chunk);
 *
 * Memory: what is read and not yet given back, in chunks of
 * QN_INTAKE_CHUNK_BYTES that may be a quarter empty, and QN_INTAKE_SPARES of
 * them free. Nothing after init. Threads: one.
 */

#include <stddef.h>
#include <stdint.h>

#define QN_INTAKE_CHUNK_BYTES 131072u
#define QN_INTAKE_LEAST       32768u /* bytes offered to a read */
#define QN_INTAKE_SPARES      8u     /* free chunks that are kept */

struct qn_intake_chunk;

/** Fields are private. All zero: empty. */
struct qn_intake {
    struct qn_intake_chunk *now;   /* is being filled; or NULL */
    struct qn_intake_chunk *spare; /* list */
    uint32_t spares;
};

/** Memory to read into; *n its size in bytes, at least QN_INTAKE_LEAST. Valid
 *  until the next call here. @return NULL: no memory. */
uint8_t *qn_intake_room(struct qn_intake *i, size_t *n);

/** The first `n` bytes of that room, 1 or more, are in use until they are given
 *  back. @return the chunk that they are in. */
struct qn_intake_chunk *qn_intake_take(struct qn_intake *i, size_t n);

/** What was taken once is not used any more. */
void qn_intake_give(struct qn_intake *i, struct qn_intake_chunk *c);

/** Free all. Everything was given back. */
void qn_intake_fini(struct qn_intake *i);

#endif
