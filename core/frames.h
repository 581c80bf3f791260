#ifndef QN_FRAMES_H
#define QN_FRAMES_H

/**
 * Messages in pieces: what backends of core/qp.h have in common whose messages
 * travel as frames. How a message is cut into frames, and which frame may
 * follow which: ONLY | FIRST MORE* (LAST | ABORT), with lengths that add up.
 * Both ends hold the same rules against what their users and their peers give
 * them.
 *
 * Pure; any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/bits.h"
#include "core/qp.h"

/** The longest frames of a backend, and its longest message, all in bytes. */
struct qn_frame_limits {
    uint32_t first; /* of a FIRST; <= any */
    uint32_t any;   /* of any other frame */
    uint32_t msg;   /* >= any */
};

/** How far a message has come. Zeroed: between two messages. */
struct qn_course {
    bool inside;    /* FIRST is over, LAST or ABORT not yet */
    uint32_t total; /* bytes of the message; of the last one, if !inside */
    uint32_t done;  /* bytes of it so far */
};

/** May `f` come next? Its kind may be any number. */
static inline bool qn_course_fits(const struct qn_course *c,
                                  const struct qn_frame *f,
                                  const struct qn_frame_limits *l)
{
    switch ((uint32_t)f->kind) {
    case QN_FRAME_ONLY:
        return !c->inside && f->len <= l->any;
    case QN_FRAME_FIRST:
        return !c->inside && f->len <= l->first && f->len <= f->total &&
               f->total <= l->msg;
    case QN_FRAME_MORE:
        return c->inside && f->len <= l->any && f->len <= c->total - c->done;
    case QN_FRAME_LAST:
        return c->inside && f->len <= l->any && f->len == c->total - c->done;
    case QN_FRAME_ABORT:
        return c->inside && f->len == 0;
    default:
        return false;
    }
}

/** `f`, which fits, has come. */
static inline void qn_course_advance(struct qn_course *c,
                                     const struct qn_frame *f)
{
    if (f->kind == QN_FRAME_ONLY || f->kind == QN_FRAME_FIRST) {
        *c = (struct qn_course){.total = f->total};
    }
    c->inside = f->kind == QN_FRAME_FIRST || f->kind == QN_FRAME_MORE;
    c->done += f->len;
}

/** The frame of `msg` [len] that begins with byte `from` < len, or 0 of an
 *  empty message. Its data are `msg`'s. */
static inline struct qn_frame qn_frame_cut(const void *msg, uint32_t len,
                                           uint32_t from,
                                           const struct qn_frame_limits *l)
{
    bool whole = from == 0 && len <= l->any;
    bool first = from == 0 && !whole;
    uint32_t n = QN_MIN(len - from, first ? l->first : l->any);
    return (struct qn_frame){.kind = whole             ? QN_FRAME_ONLY
                                     : first           ? QN_FRAME_FIRST
                                     : from + n == len ? QN_FRAME_LAST
                                                       : QN_FRAME_MORE,
                             .data = (const uint8_t *)msg + from,
                             .len = n,
                             .total = len};
}

/** Are the options good for a backend with lanes of cells_min to cells_max
 *  cells? */
bool qn_qp_opts_good(const struct qn_qp_opts *o, uint32_t cells_min,
                     uint32_t cells_max);

#endif
