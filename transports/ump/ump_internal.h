#ifndef QN_TRANSPORTS_UMP_UMP_INTERNAL_H
#define QN_TRANSPORTS_UMP_UMP_INTERNAL_H

/** One end of a UMP queuepair, shared by ump.c, ump_send.c and ump_recv.c. */

#include <stdbool.h>

#include "transports/ump/ump.h"

/** What the receive side is in the middle of. */
enum qn_ump_rx {
    QN_UMP_IDLE,   /* between messages, or a one-cell message is peeked */
    QN_UMP_INSIDE, /* FIRST was consumed, LAST or ABORT not yet */
    QN_UMP_READY,  /* a long message lies assembled in `whole` */
};

struct qn_ump {
    struct qn_qp qp;
    int status;    /* QN_OK, QN_EPEERDEAD or QN_ECORRUPT */
    bool accepted; /* the peer's lane names both incarnations */

    /* Send side. */
    struct qn_ump_lane *tx;
    struct qn_ump_cell *tx_segment; /* where the next cell goes */
    uint32_t seg_mask;              /* cells of a segment - 1; both lanes */
    uint32_t seg_shift;             /* log2 of the cells of a segment */
    uint32_t cells;                 /* of either lane */
    uint32_t msg_max;               /* bytes, either way */
    uint32_t tx_next;               /* sequence of the next cell */
    uint64_t tx_turns;              /* segments filled */
    uint32_t tx_freed;   /* cells below it were acknowledged, as far as known */
    uint32_t tx_free;    /* bit i: segment i carries nothing */
    uint32_t tx_flushed; /* tx_next at the last ring */
    uint32_t tx_tag;     /* generation of tx */
    uint32_t reserved;   /* bytes of the pending reserve */
    uint32_t staged;     /* bytes of the staged message; 0: none */
    uint32_t pushed;     /* of them already in cells */
    uint32_t frame_left; /* bytes missing of a message sent by frames */
    bool frame_open;     /* FIRST was sent, LAST or ABORT not yet */
    bool starved;        /* the last try found no room */
    bool wanted;         /* tx->control.want as written */
    uint8_t order[QN_UMP_SEGMENTS_MAX]; /* segment of the run of cells number
                                           (sequence >> seg_shift), modulo */

    /* Receive side. */
    const struct qn_ump_lane *rx;
    const struct qn_ump_cell *rx_segment; /* where the next cell is */
    uint64_t rx_tag;   /* generation of rx; QN_UMP_TAG_NONE: not accepted */
    uint32_t rx_next;  /* sequence of the next cell to read */
    uint64_t rx_turns; /* segments read */
    enum qn_ump_rx rx_state;
    uint32_t rx_total;    /* INSIDE, READY: bytes of the message */
    uint32_t rx_got;      /* INSIDE: bytes so far */
    bool rx_frames;       /* INSIDE, and read by frames */
    bool rx_held;         /* a peek without its release */
    struct qn_frame held; /* rx_held, and read by frames: that frame */
    bool rx_untold; /* published an ack without looking at the peer's want */

    struct qn_doorbell_handle *ringer;
    uint64_t self_inc;
    uint64_t peer_inc;
    uint8_t *stage; /* [msg_max] */
    uint8_t *whole; /* [msg_max] */
};

#define QN_UMP_TAG_NONE UINT64_MAX /* no 48-bit half of a header equals it */

static inline struct qn_ump *qn_ump_of(struct qn_qp *qp)
{
    return (struct qn_ump *)(void *)qp; /* qp is its first member */
}

/** Find out whether the peer has opened its lane toward this incarnation; fills
 * the receive side if so. @return accepted. */
bool qn_ump_accept(struct qn_ump *u);

/** The peer broke the rules: every later call answers QN_ECORRUPT. */
int qn_ump_corrupt(struct qn_ump *u);

/** Publish what was read, and ring the sender if it waits for room (W). */
void qn_ump_tell(struct qn_ump *u);

/* The operations, as of core/qp.h. */
int qn_ump_try_reserve(struct qn_qp *qp, size_t len, void **buf);
void qn_ump_commit(struct qn_qp *qp, size_t len);
int qn_ump_try_send(struct qn_qp *qp, const void *msg, size_t len);
int qn_ump_try_send_frame(struct qn_qp *qp, const struct qn_frame *f);
bool qn_ump_flush(struct qn_qp *qp);
uint32_t qn_ump_room(struct qn_qp *qp);
int qn_ump_peek(struct qn_qp *qp, const void **msg, size_t *len);
void qn_ump_release(struct qn_qp *qp);
int qn_ump_peek_frame(struct qn_qp *qp, struct qn_frame *f);
void qn_ump_release_frame(struct qn_qp *qp);

#endif
