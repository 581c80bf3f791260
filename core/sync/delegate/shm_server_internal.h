#ifndef QN_SYNC_DELEGATE_SHM_SERVER_INTERNAL_H
#define QN_SYNC_DELEGATE_SHM_SERVER_INTERNAL_H

/**
 * The memory of shm_server, for its clients (shm_server.c) and its server
 * (shm_scan.c).
 *
 *     head     endpoint; places in use
 *     places   clients.h
 *     sends    per client: the name of the endpoint under which it sends
 *     served   per client: requests that were run; a server has its own count
 *              and stores it here when it leaves
 *     copies   one per domain, to be homed there:
 *                slots     per client one line, `stride` lines apart
 *                grouped   per client one word: replies with group_replies
 *                more      per client three lines: entries 1 to 7
 *
 * A client has eight entries, of which it uses the first as long as it has no
 * other request on its way: a call touches one line. The request word counts
 * its requests, and tells which of them is entry 0:
 *
 *     entry of request n = (n - origin) mod 8
 *
 * `origin` moves only while nothing is on its way. The server compares the
 * count with its own (`served`), runs what is between, in order, and stores
 * each reply with the toggle that came with the request: result and toggle are
 * one word, so one store.
 *
 * All is shared; `sends`, `request` and entries have the client as their only
 * writer, `served` and replies the server.
 */

#include <assert.h>

#include "core/sync/clients.h"
#include "core/sync/delegate/endpoint_internal.h"

#define QN_SHM_PAGE 4096u /* copies of more than one domain begin at one */

struct qn_shm_entry {
    qn_a64 arg;
    qn_a32 op; /* the top bit: toggle of the reply */
};

struct qn_shm_slot {
    alignas(QN_CACHELINE) qn_a64 request; /* count << 32 | origin */
    struct qn_shm_entry first;
    qn_a64 reply;  /* of the first entry; the top bit: toggle */
    qn_a32 parked; /* 1: the client sleeps on it, or is about to */
};

struct qn_shm_more {
    alignas(QN_CACHELINE) struct qn_shm_entry entry[QN_SERVER_OPEN - 1];
    alignas(QN_CACHELINE) qn_a64 reply[QN_SERVER_OPEN - 1];
};

static_assert(sizeof(struct qn_shm_slot) == QN_CACHELINE, "one line");
static_assert(sizeof(struct qn_shm_more) == 3 * QN_CACHELINE, "three");

struct qn_shm_head {
    struct qn_server_endpoint endpoint;  /* first: qn_server_endpoint_of */
    alignas(QN_CACHELINE) qn_a64 places; /* of clients that have ever joined: up
                                            to the largest and 1 more */
    qn_a32 scan_ns; /* what a busy server's scans take; the server's, which
                       seldom writes it (shm_pause_internal.h) */
};

/** Where the parts lie, in bytes from the head. */
struct qn_shm_layout {
    size_t sends, served, copies;
    size_t grouped, more; /* from the begin of a copy */
    size_t copy, bytes;   /* of one copy; of all */
    size_t step, wrap;    /* from slot to slot; of its offset */
};

/** Pure. */
struct qn_shm_layout qn_shm_layout_of(const struct qn_delegate_opts *o);

/** One client's memory in one copy. */
struct qn_shm_lines {
    struct qn_shm_slot *slot;
    struct qn_shm_more *more;
    qn_a64 *reply; /* of the first entry */
};

static inline struct qn_shm_head *qn_shm_head_of(const struct qn_backend *b)
{
    return (struct qn_shm_head *)b->memory;
}

static inline struct qn_sync_place *qn_shm_places(const struct qn_backend *b)
{
    return (struct qn_sync_place *)(qn_shm_head_of(b) + 1);
}

static inline qn_a64 *qn_shm_sends(const struct qn_backend *b,
                                   const struct qn_shm_layout *l)
{
    return (qn_a64 *)((char *)b->memory + l->sends);
}

static inline qn_a32 *qn_shm_served(const struct qn_backend *b,
                                    const struct qn_shm_layout *l)
{
    return (qn_a32 *)(void *)((char *)b->memory + l->served);
}

static inline struct qn_shm_lines qn_shm_lines_of(const struct qn_backend *b,
                                                  const struct qn_shm_layout *l,
                                                  uint32_t domain,
                                                  uint32_t place)
{
    char *copy = (char *)b->memory + l->copies + domain * l->copy;
    struct qn_shm_slot *slot =
        (struct qn_shm_slot *)(copy + (place * l->step & l->wrap));
    qn_a64 *grouped = (qn_a64 *)(copy + l->grouped) + place;
    return (struct qn_shm_lines){
        .slot = slot,
        .more = (struct qn_shm_more *)(copy + l->more) + place,
        .reply = b->o.server.group_replies ? grouped : &slot->reply};
}

static inline struct qn_shm_entry *qn_shm_entry_of(const struct qn_shm_lines *l,
                                                   uint32_t entry)
{
    return entry == 0 ? &l->slot->first : &l->more->entry[entry - 1];
}

static inline qn_a64 *qn_shm_reply_of(const struct qn_shm_lines *l,
                                      uint32_t entry)
{
    return entry == 0 ? l->reply : &l->more->reply[entry - 1];
}

static inline uint32_t qn_shm_entry_number(uint32_t request, uint32_t origin)
{
    return (request - origin) % QN_SERVER_OPEN;
}

/* shm_scan.c */
uint32_t qn_shm_scan(const struct qn_backend *b, struct qn_delegate_server *s);
void qn_shm_begin(const struct qn_backend *b, struct qn_delegate_server *s);
void qn_shm_sleep(const struct qn_backend *b, struct qn_delegate_server *s);
void qn_shm_end(const struct qn_backend *b, struct qn_delegate_server *s);
/** Wake the server if it sleeps: certainly, if behind a seq_cst fence of the
 *  caller. */
void qn_shm_ring(const struct qn_backend *b, struct qn_wait_stats *w);

#endif
