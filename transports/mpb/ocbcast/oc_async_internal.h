#ifndef QN_TRANSPORTS_MPB_OCBCAST_OC_ASYNC_INTERNAL_H
#define QN_TRANSPORTS_MPB_OCBCAST_OC_ASYNC_INTERNAL_H

/** What oc_async.c (turns, and what comes), oc_relay.c (the own buffer, and
 *  chunks that wait for it) and oc_source.c (own messages) share. */

#include "transports/mpb/ocbcast/oc_async.h"
#include "transports/mpb/ocbcast/oc_head.h"

/** A chunk in private memory. */
struct qn_oc_chunk {
    struct qn_oc_head head;
    uint8_t payload[]; /* [payload_max] */
};

/** Of one source, in a node that passes on: its last chunks, each in the place
 *  that follows from its number. */
struct qn_oc_lane {
    uint64_t incarnation;
    uint16_t version;              /* the newest that was seen */
    uint32_t newest;               /* number in it */
    bool waits[QN_OC_WINDOW];      /* for the buffer */
    uint32_t number[QN_OC_WINDOW]; /* of what waits */
};

/** What comes from one source. */
struct qn_oc_inflow {
    uint64_t incarnation; /* 0: nothing has come of this one yet */
    uint32_t number;      /* all up to it have come */
    uint32_t told;        /* what the source was told of it */
    uint32_t next;        /* chunk of the open message, from 1; 0: none open */
    uint32_t got;         /* bytes of it */
    uint8_t *body;        /* [msg_max] */
};

/** Own messages. */
struct qn_oc_outflow {
    uint32_t number;                 /* of the last own chunk */
    uint32_t floor;                  /* all members have it, as far as known */
    uint32_t position[QN_MPB_CORES]; /* of each member, as far as known */
    qn_node_t behind;                /* the member that held the window last */
    uint16_t version;
    bool again;              /* a new version begins with the next chunk */
    uint32_t staged, pushed; /* bytes of the own message, and of it in chunks */
    uint32_t pieces, piece;  /* the same in chunks */
    uint8_t *stage;          /* [msg_max] */
};

struct qn_oc_async {
    struct qn_device_bcast bcast; /* its first member */
    struct qn_mpb *chip;
    uint32_t k, msg_max, payload_max;      /* bytes */
    uint32_t done, received, head, buffer; /* lines */
    qn_device_bcast_deliver_fn *deliver;   /* of the poll that runs */
    void *ctx;

    /* The view: incarnations that this node goes by. */
    uint64_t known[QN_MPB_CORES]; /* 0: not there */
    uint32_t seen_changes; /* of the chip's: those up to this are in it */
    uint16_t changes;      /* as told to others */
    uint16_t noted[QN_MPB_CORES]; /* changes of theirs */
    bool nudged;                  /* one of them has changed its view */

    uint64_t arrived;                /* interrupts that were taken */
    uint64_t early;                  /* of incarnations yet to be told of */
    uint64_t early_of[QN_MPB_CORES]; /* the one that was known then */
    uint32_t seen[QN_MPB_CORES];     /* use of the parent's buffer that was */
    uint64_t seen_of[QN_MPB_CORES];  /* handled last, and of which incarnation
                                      */

    uint32_t use, shown;      /* of the own buffer; as its head says it */
    uint32_t children, waits; /* in it; which is looked at. 0: free */
    qn_node_t child[QN_OC_FANOUT_MAX];
    uint64_t child_incarnation[QN_OC_FANOUT_MAX];

    struct qn_oc_lane lane[QN_MPB_CORES]; /* of each source, the own too */
    uint32_t queued, most;                /* chunks that wait, of all */
    qn_node_t turn;                       /* the source that is next */
    uint32_t slot_bytes;
    uint8_t *slot; /* [nodes][QN_OC_WINDOW][slot_bytes], struct qn_oc_chunk */

    struct qn_oc_outflow out;
    struct qn_oc_inflow in[QN_MPB_CORES];
    uint8_t *scratch; /* [payload_max] */
    uint8_t *memory;  /* where stage, scratch and bodies lie */
};

/* ---- oc_async.c ---- */

/** The tags of a word that `writer` writes to node `at`. */
uint32_t qn_oc_tag(const struct qn_oc_async *a, qn_node_t at, qn_node_t writer);

/** The word of a node among those in the own buffer that begin at `line`. */
static inline uint64_t qn_oc_word(struct qn_oc_async *a, uint32_t line,
                                  qn_node_t writer)
{
    return qn_mpb_load(a->chip, a->chip->self,
                       line + writer / QN_MPB_LINE_WORDS,
                       writer % QN_MPB_LINE_WORDS);
}

/** Bytes of a chunk, whose place is one of the message's. */
uint32_t qn_oc_payload(const struct qn_oc_async *a,
                       const struct qn_oc_about *about);

struct qn_oc_tree qn_oc_tree_of(const struct qn_oc_async *a,
                                const struct qn_oc_about *about);

/* ---- oc_relay.c ---- */

/** Free, or free again: all children that live have told. */
bool qn_oc_buffer_free(struct qn_oc_async *a);

/** Nothing in the buffer counts while it changes. The head leaves the write
 *  buffer when the payload comes, which has at least a byte. */
void qn_oc_begin_use(struct qn_oc_async *a);

/** The payload is there: announce it to the children. */
void qn_oc_announce(struct qn_oc_async *a, const struct qn_oc_head *h,
                    const struct qn_oc_about *about);

/** Where a chunk of a source has its place. */
struct qn_oc_chunk *qn_oc_slot(struct qn_oc_async *a, qn_node_t source,
                               uint32_t number);

/** Take a chunk's place for it. @return NULL: it is of an old version, or all
 *  have it, so none of the children needs it from here. */
struct qn_oc_chunk *qn_oc_claim(struct qn_oc_async *a,
                                const struct qn_oc_about *about);

/** What lies in the place of that chunk waits for the buffer. */
void qn_oc_enqueue(struct qn_oc_async *a, qn_node_t source, uint32_t number);

/** Chunks that wait go out while the buffer is free. */
void qn_oc_flush_queue(struct qn_oc_async *a);

/* ---- oc_source.c ---- */

/** Look at the chip's incarnations, and at what the others have nudged: what
 *  members may lack is sent again. */
void qn_oc_look_around(struct qn_oc_async *a);

/** Is there room for one more own chunk? */
bool qn_oc_window_open(struct qn_oc_async *a);

/** Own chunks go into the queue while there is room. */
void qn_oc_push(struct qn_oc_async *a);

/** An own chunk is about to go out. @return false: all have it. */
bool qn_oc_refresh_head(struct qn_oc_async *a, struct qn_oc_head *h);

#endif
