#ifndef QN_TRANSPORTS_UDN_INTERNAL_H
#define QN_TRANSPORTS_UDN_INTERNAL_H

/** What a node keeps for the queuepairs over an attachment to the device, and
 *  one end of one, shared by the files of this folder. */

#include <assert.h>

#include "core/qp.h"
#include "core/words/attachment.h"
#include "transports/udn/udn.h"

static_assert(QN_UDN_FRAME_BYTES == (QN_UDN_FRAME_WORDS - 1) * sizeof(uint64_t),
              "payload of a frame");
static_assert(QN_UDN_FRAME_BYTES <= QN_INPLACE_MAX, "frames of core/qp.h");
static_assert(QN_UDN_WINDOW * QN_UDN_FRAME_WORDS <= QN_WORDS_SHARED_MAX,
              "a window fits into a core");

#define QN_UDN_KIND_ACK 7u /* besides enum qn_frame_kind */

struct qn_udn_frame {
    uint64_t word[QN_UDN_FRAME_WORDS];
};

/** First in, first out. */
struct qn_udn_ring {
    uint32_t first, count;
    struct qn_udn_frame frame[QN_UDN_WINDOW];
};

/** One lane of a pair of incarnations, at one end: udn.h. Counts wrap. */
struct qn_udn_link {
    uint16_t sent;          /* frames to the peer */
    uint16_t acked;         /* of them given back by the peer */
    uint16_t released;      /* frames of the peer that were given back */
    uint16_t told;          /* of them the peer knows */
    bool corrupt;           /* the peer broke the rules */
    bool deaf;              /* the device says that the peer has ended */
    bool unrung;            /* something was sent, and no ring */
    bool unrung_told;       /* an acknowledgement was */
    struct qn_udn_ring in;  /* what has arrived */
    struct qn_udn_ring out; /* what waits for room at the peer's core */
};

/** Behind the attachment: what belongs to pairs of incarnations and lanes. */
struct qn_udn_port {
    struct qn_device *device;
    uint32_t nodes, lanes;
    bool backlog; /* frames wait for room at a core: in some link's `out` */
    uint64_t inc[QN_WORDS_CORES_MAX]; /* as named to the device */
    struct qn_udn_link link[];        /* [nodes][lanes] */
};

static inline struct qn_udn_port *qn_udn_port_of(struct qn_device *d)
{
    return qn_words_behind(d);
}

static inline struct qn_udn_link *qn_udn_link_of(struct qn_udn_port *p,
                                                 qn_node_t peer, uint32_t lane)
{
    return &p->link[peer * p->lanes + lane];
}

/** What the receive side is in the middle of. */
enum qn_udn_rx {
    QN_UDN_IDLE,   /* between messages, or a frame ONLY is peeked */
    QN_UDN_INSIDE, /* FIRST was consumed, LAST or ABORT not yet */
    QN_UDN_READY,  /* a long message lies assembled in `whole` */
};

struct qn_udn_end {
    struct qn_qp qp;
    int status; /* QN_OK, QN_EPEERDEAD or QN_ECORRUPT */
    struct qn_udn_port *port;
    struct qn_udn_link *link;
    qn_node_t peer;
    uint64_t peer_inc;
    uint32_t lane;
    uint32_t msg_max;             /* bytes, either way */
    struct qn_qp_traffic traffic; /* words */

    /* Send side. */
    bool staged;         /* `stage` holds a message that is not all sent */
    uint32_t stage_len;  /* bytes */
    uint32_t pushed;     /* of them sent */
    uint32_t reserved;   /* bytes of the pending reserve */
    uint32_t frame_left; /* bytes missing of a message sent by frames */
    bool frame_open;     /* FIRST was sent, LAST or ABORT not yet */
    bool starved;        /* the last try found no place in the window */

    /* Receive side. */
    enum qn_udn_rx rx_state;
    uint32_t rx_total; /* INSIDE, READY: bytes of the message */
    uint32_t rx_got;   /* INSIDE: bytes so far */
    bool rx_frames;    /* INSIDE, and read by frames */
    bool rx_held;      /* a peek without its release */

    uint8_t *stage; /* [msg_max] */
    uint8_t *whole; /* [msg_max] */
};

static inline struct qn_udn_end *qn_udn_end_of(struct qn_qp *qp)
{
    return (struct qn_udn_end *)(void *)qp; /* qp is its first member */
}

/** Is the link that of this end's incarnations, or a successor's by now? */
static inline bool qn_udn_own_link(const struct qn_udn_end *e)
{
    return e->port->inc[e->peer] == e->peer_inc;
}

static inline struct qn_udn_frame *qn_udn_ring_push(struct qn_udn_ring *r)
{
    return &r->frame[(r->first + r->count++) % QN_UDN_WINDOW];
}

static inline void qn_udn_ring_pop(struct qn_udn_ring *r)
{
    r->first = (r->first + 1) % QN_UDN_WINDOW;
    r->count--;
}

/* ---- heads ---- */

static inline uint64_t qn_udn_head(uint32_t kind, uint32_t lane, uint32_t len,
                                   uint32_t total)
{
    return (uint64_t)total << 10 | len << 4 | lane << 3 | kind;
}

static inline uint32_t qn_udn_head_kind(uint64_t head)
{
    return head & 0x7;
}

static inline uint32_t qn_udn_head_lane(uint64_t head)
{
    return head >> 3 & 0x1;
}

static inline uint32_t qn_udn_head_len(uint64_t head)
{
    return head >> 4 & 0x3f;
}

static inline uint32_t qn_udn_head_total(uint64_t head)
{
    return head >> 10 & 0x1ffff;
}

#define QN_UDN_HEAD_ACKED (UINT64_C(0xffff) << 27)

static inline uint16_t qn_udn_head_acked(uint64_t head)
{
    return (uint16_t)(head >> 27);
}

static inline uint16_t qn_udn_head_sequence(uint64_t head)
{
    return (uint16_t)(head >> 43);
}

static inline uint32_t qn_udn_frame_words(uint32_t len)
{
    return 1 + (len + 7) / 8;
}

/* ---- between the files ---- */

/** Everything that has arrived at this node's core goes to its links, and what
 *  waits for room at others' cores is sent. */
void qn_udn_pump(struct qn_udn_port *p);

/** Send what waits in a link, as far as there is room at the peer's core. */
void qn_udn_drain(struct qn_udn_port *p, qn_node_t peer, uint32_t lane);

/** Before a sleep: say that room is wanted at all cores for which frames wait,
 *  and look for it once more. */
void qn_udn_want(struct qn_udn_port *p);

/** The peer broke the rules: every later call answers QN_ECORRUPT. */
int qn_udn_corrupt(struct qn_udn_end *e);

/** QN_OK, or why this end is over. */
int qn_udn_status(struct qn_udn_end *e);

/** What waits for room at the peer's core will not be sent. */
void qn_udn_drop_out(struct qn_udn_end *e);

/** Frames that may be sent before the peer gives some back. */
uint32_t qn_udn_credit(const struct qn_udn_end *e);

/** Tell the peer how many frames were given back, unless it knows. */
void qn_udn_tell(struct qn_udn_end *e);

/** Nothing was found, and this may be the last look before a sleep: tell what
 *  has come to half a window, and ring for what was told. */
void qn_udn_tell_at_rest(struct qn_udn_end *e);

/** Ring the peer if something was sent to it since the last time. */
void qn_udn_ring(struct qn_udn_end *e);

/* The operations, as of core/qp.h. */
int qn_udn_try_reserve(struct qn_qp *qp, size_t len, void **buf);
void qn_udn_commit(struct qn_qp *qp, size_t len);
int qn_udn_try_send(struct qn_qp *qp, const void *msg, size_t len);
int qn_udn_try_send_frame(struct qn_qp *qp, const struct qn_frame *f);
bool qn_udn_flush(struct qn_qp *qp);
uint32_t qn_udn_room(struct qn_qp *qp);
int qn_udn_peek(struct qn_qp *qp, const void **msg, size_t *len);
void qn_udn_release(struct qn_qp *qp);
int qn_udn_peek_frame(struct qn_qp *qp, struct qn_frame *f);
void qn_udn_release_frame(struct qn_qp *qp);

#endif
