#ifndef QN_KVS_INTROSPECT_FANOUT_QUERY_H
#define QN_KVS_INTROSPECT_FANOUT_QUERY_H

/**
 * Questions that every replica answers: INFO, CLIENT LIST, CLIENT KILL, ...
 *
 * The replica whose client asks sends ASK {id, what, question} to all others,
 * answers its own part at once, and collects ANSWER {id, bytes, last}. When all
 * parts have arrived, or after QN_FANOUT_TIMEOUT, `finish` is called with the
 * answers and the mask of replicas that did not answer. Long answers travel in
 * chunks over qn_replica_send_peer_message, one after the other, when the
 * channel has room. A question that found no room in time is withdrawn.
 *
 * The module knows neither the meaning of the questions nor the connections.
 * One thread; nothing blocks.
 */

#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/node.h"
#include "kvs/base/buf.h"

#define QN_FANOUT_TIMEOUT ((qn_time_t)100 * QN_MS)
#define QN_FANOUT_MAX     64u /* questions open at once */

/** A question whose answers are complete. Borrowed for `finish`. */
struct qn_fanout_result {
    uint8_t what;
    uint64_t tag;                       /* the asker's: which connection */
    struct qn_buf answer[QN_NODES_MAX]; /* by node */
    uint64_t members; /* mask: the asker, and those that were to answer */
    uint64_t missing; /* mask: of these, did not answer in time */
};

struct qn_fanout_opts {
    qn_node_t self;
    uint32_t nodes;
    uint64_t vacant; /* mask: seats that no replica has taken so far. They are
                        not asked and not missing */
    /** Send bytes to a peer; QN_EAGAIN: no room. */
    int (*tell)(void *ctx, qn_node_t to, struct qn_slice bytes);
    /** Append this replica's answer to `out`. */
    void (*answer)(void *ctx, uint8_t what, struct qn_slice question,
                   struct qn_buf *out);
    void (*finish)(void *ctx, struct qn_fanout_result *done);
    void *ctx;
};

struct qn_fanout; /* opaque */

/** @param o  Copied. @return QN_OK; QN_ENOMEM, *out untouched. */
int qn_fanout_create(struct qn_fanout **out, const struct qn_fanout_opts *o);
/** Free it; open questions are dropped, `finish` is not called. NULL is
 *  allowed. */
void qn_fanout_destroy(struct qn_fanout *a);

/** Ask all replicas. finish may be called before this returns (no peers).
 *  @param what      Kind of the question, for `answer` and `finish`.
 *  @param question  Borrowed for the call, at most 16 KiB.
 *  @param tag       The asker's, given to `finish`.
 *  @param now       ns; the time-out counts from it.
 *  @return QN_OK; QN_EBUSY: QN_FANOUT_MAX questions are open; QN_EMSGSIZE:
 *          the question is longer than 16 KiB. On failure no replica was
 *          asked, and finish is not called. */
int qn_fanout_start(struct qn_fanout *a, uint8_t what, struct qn_slice question,
                    uint64_t tag, qn_time_t now);

/** Other seats are vacant now. Of a question that is open those that were
 *  members then, and are members now, are to answer. */
void qn_fanout_vacant(struct qn_fanout *a, uint64_t vacant);

/** `peer` has ended: it is asked no more, and named as missing at once. */
void qn_fanout_peer_down(struct qn_fanout *a, qn_node_t peer);

/** `peer` has a new incarnation: it is asked again, from the next question on.
 */
void qn_fanout_peer_up(struct qn_fanout *a, qn_node_t peer);

/** Handle a message of a peer. A malformed one is dropped. */
void qn_fanout_on_message(struct qn_fanout *a, qn_node_t from,
                          struct qn_slice bytes);

/** Send messages that wait for room, and finish late questions. @return the
 *  time of the next call even if nothing arrives, ns; QN_TIME_NEVER. */
qn_time_t qn_fanout_turn(struct qn_fanout *a, qn_time_t now);

#endif
