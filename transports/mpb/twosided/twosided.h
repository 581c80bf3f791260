#ifndef QN_TRANSPORTS_MPB_TWOSIDED_TWOSIDED_H
#define QN_TRANSPORTS_MPB_TWOSIDED_TWOSIDED_H

/**
 * Two-sided send and receive of a whole message, synchronous, as RCCE has it:
 * the sender puts a chunk into its own buffer and says so at the receiver; the
 * receiver gets the chunk and says so at the sender; then comes the next one.
 *
 * Lines of a node, from `first` on:
 *
 *     flags      n / 4    a word per peer, written by it
 *     chunk      the rest, at most 251
 *
 *     flag       63 .. 40 chunks sent to here | 39 .. 16 chunks got from here |
 *                15 .. 0 session
 *
 * The counts make flags that need no reset: RCCE's two flags of a pair are
 * cleared by the one that waited.
 *
 * A node sends or receives one message at a time, and both ends name each other
 * and the same length. No message waits anywhere: a send is over when it was
 * received. Messages of a pair keep their order, whatever else their nodes do
 * in between.
 *
 * All nodes must live; flags of another session are as none.
 *
 * Threads: one, with the attachment. Calls never wait. No allocation.
 * Source: RCCE; Petrovic, EPFL thesis, 4.2.
 */

#include <stdbool.h>

#include "transports/mpb/chip.h"

#define QN_TWO_CHUNK_MAX 251u /* lines, as RCCE has */

struct qn_two_opts {
    struct qn_mpb *chip;   /* kept */
    uint32_t first, lines; /* of each node's buffer, for this alone */
    uint32_t session;      /* its low 16 bits differ from all sessions whose
                              flags may still be there. The same at all nodes */
};

/** A message of a pair. */
struct qn_two_message {
    qn_node_t peer; /* not this node */
    bool send;      /* else receive */
    uint8_t *bytes; /* [len] read or filled. Kept until done */
    uint32_t len;   /* 0: nothing is moved, no end waits */
};

/** Fields are private. */
struct qn_two {
    struct qn_mpb *chip;
    uint32_t flags, chunk; /* lines */
    uint32_t chunk_bytes;
    uint32_t session;
    uint32_t sent[QN_MPB_CORES]; /* chunks to each peer, and from it */
    uint32_t got[QN_MPB_CORES];
    struct qn_two_message m;
    uint32_t at; /* bytes of it that are over */
    bool put;    /* the chunk at `at` is in the own buffer */
};

/** @return the lines of the longest chunk that fits into `lines` lines; 0:
 *          there is no room. */
uint32_t qn_two_chunk_lines(uint32_t nodes, uint32_t lines);

/** @return QN_OK; QN_EINVAL: too few lines. */
int qn_two_init(struct qn_two *t, const struct qn_two_opts *o);

/** Begin a message. The one before is done. */
void qn_two_begin(struct qn_two *t, const struct qn_two_message *m);

/** Go on. @return QN_OK: done; QN_EAGAIN: call again. */
int qn_two_step(struct qn_two *t);

#endif
