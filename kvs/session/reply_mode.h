#ifndef QN_KVS_SESSION_REPLY_MODE_H
#define QN_KVS_SESSION_REPLY_MODE_H

/**
 * Which replies of a session are sent: CLIENT REPLY ON, OFF and SKIP; and the
 * late reply, which is written after its request has run.
 *
 *     OFF    no reply, from this request on
 *     SKIP   no reply to this request and to the next one; ignored after OFF
 *     ON     replies again, beginning with its own
 *
 * A reply is muted as its request begins. So a late reply keeps what held then:
 * SKIP has moved on to the next request when the late reply is written.
 *
 * Pure. All zero: replies are sent. One thread.
 */

#include <stdbool.h>
#include <stddef.h>

#include "core/base/assert.h"

struct qn_reply_mode {
    bool off;
    bool skip;         /* the request that runs gets no reply */
    bool skip_next;    /* nor does the next one: SKIP itself is running */
    bool late_muted;   /* a late reply of the local command is not sent */
    bool late_begun;   /* its reply is being written late */
    size_t late_start; /* bytes, where it begins in its buffer */
};

/** True if the reply of the request that runs is not sent. */
static inline bool qn_reply_mode_is_muted(const struct qn_reply_mode *m)
{
    return m->off || m->skip;
}

static inline void qn_reply_mode_on(struct qn_reply_mode *m)
{
    QN_ASSERT(!m->skip_next); /* only SKIP itself sets it, until its end */
    m->off = m->skip = false;
}

static inline void qn_reply_mode_off(struct qn_reply_mode *m)
{
    QN_ASSERT(!m->skip_next);
    m->off = true;
}

static inline void qn_reply_mode_skip(struct qn_reply_mode *m)
{
    m->skip_next = !m->off;
}

/** RESET: as a new session. */
static inline void qn_reply_mode_reset(struct qn_reply_mode *m)
{
    m->off = m->skip = m->skip_next = false;
}

/** The request has run; it was not put back. */
static inline void qn_reply_mode_request_done(struct qn_reply_mode *m)
{
    QN_DASSERT(!m->off || !m->skip_next);
    m->skip = m->skip_next;
    m->skip_next = false;
}

/** A local command begins: its reply may be a late one. */
static inline void qn_reply_mode_local_begins(struct qn_reply_mode *m)
{
    m->late_muted = qn_reply_mode_is_muted(m);
    m->late_begun = false;
}

/** Its late reply begins at byte `start` of its buffer. Once per command. */
static inline void qn_reply_mode_late_begins(struct qn_reply_mode *m,
                                             size_t start)
{
    QN_ASSERT(!m->late_begun);
    m->late_begun = true;
    m->late_start = start;
}

/** True if the last local command has replied late. */
static inline bool qn_reply_mode_is_late(const struct qn_reply_mode *m)
{
    return m->late_begun;
}

#endif
