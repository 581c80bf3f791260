#ifndef QN_PAXOS_WIRE_PEER_STATE_H
#define QN_PAXOS_WIRE_PEER_STATE_H

/**
 * What a node says of itself, where its peers cannot look into its outbox
 * (PROTOCOL.md 3.7): the body of STATE. The fields are those of struct
 * qn_outbox_state (core/place/outbox.h) that agreement needs, and the first
 * ones of the program's; the newest epoch that the sender knows is in the
 * message's header.
 *
 *     body: the fields in the order of struct qn_peer_state, 8 bytes each,
 *     little endian
 *
 * Questions. A node that must know how a peer is *now* sends its own state with
 * a number in `ask`. The peer answers with its state and the newest such number
 * in `answer`: what it says there was true after the question was asked.
 *
 * Pure, any thread. Decoding accepts any bytes.
 */

#include "core/base/bits.h"
#include "core/node.h"

/** Of the program's counters, those that STATE has; from QN_PEER_STATE_AT_ONCE
 *  on they are said at once when they change, those before with positions. */
#define QN_PEER_STATE_COUNTERS 4u
#define QN_PEER_STATE_AT_ONCE  2u

struct qn_peer_state {
    uint64_t inc;       /* the sender's incarnation, never 0: what another one
                           had said is void */
    qn_slot_t applied;  /* <= learned */
    qn_slot_t learned;  /* <= QN_SLOT_MAX */
    uint64_t voted;     /* newest entry of the utility log that the sender may
                           have voted for; all ones: not known */
    uint64_t stopped;   /* what paxos/halt/halt.h says as a process acceptor */
    uint64_t read;      /* bytes received: a sign of progress */
    uint64_t hold_slot; /* first slot to keep for a joiner; 0: none */
    uint64_t hold_done; /* part of the snapshot that is sent, of QN_HOLD_DONE */
    uint64_t held;      /* epoch that it leads while writes are held, + 1; 0 */
    uint64_t lack;      /* enum qn_state_lack: of the replicated state */
    uint64_t ask;       /* the receiver is to answer; 0: need not */
    uint64_t answer; /* newest `ask` of the receiver that was read; 0: none */
    /* The program's, any values; left out if the receiver has them: */
    uint64_t phase;
    uint64_t counters[QN_PEER_STATE_COUNTERS];
};

#define QN_PEER_STATE_SHORT 96u /* bytes, without the program's */
#define QN_PEER_STATE_BYTES 136u

/** @param to     [bytes] filled.
 *  @param bytes  QN_PEER_STATE_BYTES or QN_PEER_STATE_SHORT. */
void qn_peer_state_encode(const struct qn_peer_state *s, uint8_t *to,
                          uint32_t bytes);

/** Either length. What was left out is 0. @return QN_OK; QN_ECORRUPT: of
 *  another length, or a field is out of range; *s is undefined. */
int qn_peer_state_decode(struct qn_peer_state *s, struct qn_slice body);

#endif
