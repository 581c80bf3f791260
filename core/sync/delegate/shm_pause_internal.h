#ifndef QN_SYNC_DELEGATE_SHM_PAUSE_INTERNAL_H
#define QN_SYNC_DELEGATE_SHM_PAUSE_INTERNAL_H

/**
 * How long clients of shm_server keep away from their slots.
 *
 * A busy server passes by a slot once per scan. So it measures its scans and
 * tells all clients, and a client looks for a reply one scan after it found the
 * last one: then the next reply is there, and no look has taken the line away
 * meanwhile. Nothing is searched for; a change of load shows in the next scans.
 *
 *     client   found |-- scan_ns --| look: the reply is there, most times
 *                                  |-- scan_ns / 2 --| else look again
 *     server   slot  |- other slots -| slot |- other slots -| slot
 *
 * By half a scan: a client that was too early is behind the server then, and
 * its next request is in the slot before the server comes again.
 *
 * A scan that finds nothing says that the server waits for clients, and counts
 * as one that took no time. With one client that is every other one.
 *
 * Pure.
 */

#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/sync/delegate/server.h"

/* A shorter scan is over before a client has seen its reply and sent again:
 * that takes four transfers of a line. */
#define QN_SHM_SCAN_LEAST_NS 800u
/* A server that was stalled has taken longer. */
#define QN_SHM_SCAN_MOST_NS  65536u

/**
 * A scan has ended.
 *
 * @param now  ns, monotonic; 0: the scan has found nothing.
 * @return true: tell the clients s->told_ns.
 */
static inline bool qn_shm_scan_ended(struct qn_server_scans *s, qn_time_t now)
{
    const qn_time_t last = s->busy_until;
    s->busy_until = now;
    if (last == 0) {
        return false; /* the first behind an idle time */
    }
    const qn_time_t scan =
        now == 0 ? 0 : QN_MIN(now - last, (qn_time_t)QN_SHM_SCAN_MOST_NS);
    s->mean_ns += ((int32_t)scan - s->mean_ns) / 16;
    const int32_t off = s->mean_ns - s->told_ns;
    if ((off < 0 ? -off : off) * 8 <= s->told_ns) {
        return false; /* a change is a transfer for each client */
    }
    s->told_ns = s->mean_ns;
    return true;
}

/** The time until which a client keeps away whose last reply was found by a
 *  look at `found`. @return 0: it does not. */
static inline qn_time_t qn_shm_keep_away(qn_time_t found, uint32_t scan_ns)
{
    return scan_ns < QN_SHM_SCAN_LEAST_NS ? 0 : found + scan_ns;
}

#endif
