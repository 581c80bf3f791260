#ifndef QN_TRANSPORTS_MPB_MPB_INTERNAL_H
#define QN_TRANSPORTS_MPB_MPB_INTERNAL_H

/** One end of a queuepair, shared by mpb.c, mpb_send.c and mpb_recv.c. */

#include <stdbool.h>

#include "core/frames.h"
#include "transports/mpb/chip.h"
#include "transports/mpb/layout.h"
#include "transports/mpb/mpb.h"
#include "transports/mpb/mutant.h"

enum qn_mpb_flag { QN_MPB_SENT, QN_MPB_READY, QN_MPB_WANT };

/** A cell in private memory, as it lies in the buffer. */
struct qn_mpb_cell {
    uint64_t head;
    uint8_t payload[QN_MPB_CELL_BYTES];
};

struct qn_mpb_end {
    struct qn_qp qp;
    int status; /* QN_OK, QN_EPEERDEAD or QN_ECORRUPT */
    struct qn_mpb *chip;
    qn_node_t self, peer;
    uint32_t flag_here, flag_there; /* lines: the peer's here, ours there */
    uint32_t chunk_here, chunk_there;
    uint32_t tag_here, tag_there;  /* what flags carry: the peer's, ours */
    uint32_t cells;                /* of either chunk */
    struct qn_frame_limits limits; /* either way */
    struct qn_doorbell_handle *ringer;
    struct qn_qp_traffic traffic; /* in lines */

    /* Send side. */
    uint32_t tx_next;           /* index of the next cell */
    uint32_t tx_freed;          /* cells below it are free, as far as known */
    uint32_t tx_flushed;        /* tx_next at the last ring */
    uint32_t reserved;          /* bytes of the pending reserve */
    uint32_t staged;            /* bytes of the staged message; 0: none */
    uint32_t pushed;            /* of them already in cells */
    struct qn_course tx_frames; /* of a message sent by frames */
    bool starved;               /* the last try found no room */
    bool wanted;                /* `want` as stored */

    /* Receive side. */
    uint32_t rx_next;     /* index of the next cell to hand out */
    uint32_t rx_sure;     /* cells below it are here and count */
    uint32_t rx_told;     /* `ready` as stored */
    bool rx_untold;       /* stored without a look at `want` */
    struct qn_course rx;  /* of what was consumed */
    bool rx_whole;        /* a long message lies assembled in `whole` */
    bool rx_frames;       /* inside of a message, and read by frames */
    bool rx_held;         /* a peek without its release */
    struct qn_frame held; /* the frame that is shown */
    struct qn_mpb_cell cell[QN_MPB_CELLS_MAX]; /* got, by index */

    uint8_t *stage; /* [msg_max] */
    uint8_t *whole; /* [msg_max] */
};

static inline struct qn_mpb_end *qn_mpb_end_of(struct qn_qp *qp)
{
    return (struct qn_mpb_end *)(void *)qp; /* qp is its first member */
}

/** Lines that a frame takes. */
static inline uint32_t qn_mpb_frame_lines(const struct qn_frame *f)
{
    uint32_t total = f->kind == QN_FRAME_FIRST ? (uint32_t)sizeof f->total : 0;
    return ((uint32_t)sizeof(uint64_t) + total + f->len + QN_MPB_LINE_BYTES -
            1) /
           QN_MPB_LINE_BYTES;
}

/** The peer broke the rules: every later call answers QN_ECORRUPT. */
int qn_mpb_corrupt(struct qn_mpb_end *e);

/** Look at the index of a flag that the peer writes here. @return false: the
 *  flag is of other incarnations. */
bool qn_mpb_look(struct qn_mpb_end *e, enum qn_mpb_flag flag, uint32_t *index);

/** Store what was read, to be seen at once (R). */
void qn_mpb_store_ready(struct qn_mpb_end *e);

/** The same if need be, and ring the peer if it waits for room (W). */
void qn_mpb_tell(struct qn_mpb_end *e);

/* The operations, as of core/qp.h. */
int qn_mpb_try_reserve(struct qn_qp *qp, size_t len, void **buf);
void qn_mpb_commit(struct qn_qp *qp, size_t len);
int qn_mpb_try_send(struct qn_qp *qp, const void *msg, size_t len);
int qn_mpb_try_send_frame(struct qn_qp *qp, const struct qn_frame *f);
bool qn_mpb_flush(struct qn_qp *qp);
uint32_t qn_mpb_room(struct qn_qp *qp);
int qn_mpb_peek(struct qn_qp *qp, const void **msg, size_t *len);
void qn_mpb_release_msg(struct qn_qp *qp);
int qn_mpb_peek_frame(struct qn_qp *qp, struct qn_frame *f);
void qn_mpb_release_frame(struct qn_qp *qp);

#endif
