#ifndef QN_KVS_SESSION_IN_FLIGHT_H
#define QN_KVS_SESSION_IN_FLIGHT_H

/**
 * The submissions of all sessions that are not complete, oldest first.
 *
 * The replica completes in the order of submission (kvs/replica/replica.h), so
 * a ring is enough to find the session of each completion.
 *
 * Pure; the owner provides the memory. One thread. All O(1).
 */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/assert.h"
#include "kvs/commands/command.h"

/** A power of two; as many as the replica's ring. */
#define QN_IN_FLIGHT_MAX 16384u

static_assert((QN_IN_FLIGHT_MAX & (QN_IN_FLIGHT_MAX - 1)) == 0,
              "positions are masked");

struct qn_client_session;

struct qn_submission {
    struct qn_client_session *session; /* kept until its completion */
    const struct qn_cmd *cmd;
    bool is_muted; /* its reply is not sent */
};

struct qn_in_flight {
    struct qn_submission *ring; /* [QN_IN_FLIGHT_MAX] */
    uint32_t head, tail;        /* free-running: first, behind the last */
};

static inline uint32_t qn_in_flight_count(const struct qn_in_flight *f)
{
    return f->tail - f->head;
}

static inline void qn_in_flight_push(struct qn_in_flight *f,
                                     const struct qn_submission *s)
{
    QN_ASSERT(f->tail - f->head < QN_IN_FLIGHT_MAX);
    f->ring[f->tail++ & (QN_IN_FLIGHT_MAX - 1)] = *s;
}

/** Remove the oldest one. @return false: there is none. */
static inline bool qn_in_flight_pop(struct qn_in_flight *f,
                                    struct qn_submission *s)
{
    QN_DASSERT(f->tail - f->head <= QN_IN_FLIGHT_MAX);
    if (f->head == f->tail) {
        return false;
    }
    *s = f->ring[f->head++ & (QN_IN_FLIGHT_MAX - 1)];
    return true;
}

#endif
