#ifndef QN_SYNC_DELEGATE_ENDPOINT_INTERNAL_H
#define QN_SYNC_DELEGATE_ENDPOINT_INTERNAL_H

/**
 * Which thread serves an object: what shm_server and mp_server share. Inside of
 * the folder only.
 *
 * The endpoint is one word. Its generation grows with each server that takes
 * it; `where` tells clients where that one serves: a domain, or a node with
 * queues. It stays when the server has left, so that clients have a place to
 * send to.
 *
 *     63            24   23       8   1         0
 *     | generation   |   where    |   | stop | serves |
 *
 * A client reads the endpoint before it sends, so a request may be on its way
 * to where a server was. Each backend has its answer to that, and both need
 * that the client's own line tells under which generation it sends:
 *
 *     shm_server   requests lie in memory. The next server looks at a client's
 *                  old slot until the client's line tells its own generation.
 *     mp_server    words lie at the old server's core, which it may leave. It
 *                  serves on until no line tells its generation; a client
 *                  takes the generation from its line behind each reply.
 */

#include "core/sync/delegate/delegate.h"
#include "core/wait/park.h"

#define QN_ENDPOINT_SERVES UINT64_C(1)
#define QN_ENDPOINT_STOP   UINT64_C(2)

/** At the beginning of the backend's memory. Zero at first: none serves, and
 *  clients send to place 0. */
struct qn_server_endpoint {
    alignas(QN_CACHELINE) qn_a64 word;
    qn_a32 asleep; /* 1: the server sleeps on it, or is about to */
};

/** What a backend with a server has beside `call`. `memory` begins with the
 *  endpoint. */
struct qn_server_type {
    /** May this server serve here, and where? As qn_delegate_serve. */
    int (*where)(const struct qn_backend *b, const struct qn_delegate_server *s,
                 uint32_t *where);
    /** The endpoint was taken. NULL: nothing to do. */
    void (*begin)(const struct qn_backend *b, struct qn_delegate_server *s);
    /** Run what is there. @return operations. */
    uint32_t (*scan)(const struct qn_backend *b, struct qn_delegate_server *s);
    /** Nothing was found for a while: sleep until there is something, or until
     *  `ring`. May return early. */
    void (*sleep)(const struct qn_backend *b, struct qn_delegate_server *s);
    /** Wake the server if it sleeps: the endpoint's word has changed. */
    void (*ring)(const struct qn_backend *b);
    /** It was stopped; the endpoint is given back next. Nothing that only this
     *  server can answer may be left. */
    void (*end)(const struct qn_backend *b, struct qn_delegate_server *s);
    int (*submit)(const struct qn_backend *b, struct qn_backend_client *c,
                  uint32_t op, uint64_t arg);
    int (*collect)(const struct qn_backend *b, struct qn_backend_client *c,
                   uint64_t *result);
};

static inline struct qn_server_endpoint *qn_server_endpoint_of(
    const struct qn_backend *b)
{
    return (struct qn_server_endpoint *)b->memory;
}

/** The generation of an endpoint, or of what a client's line tells. */
static inline uint64_t qn_server_endpoint_generation(uint64_t word)
{
    return word >> 24;
}

static inline uint32_t qn_server_endpoint_where(uint64_t word)
{
    return (uint32_t)(word >> 8) & 0xffff;
}

/** Wake the server if it sleeps at the endpoint. Behind a seq_cst fence, or the
 *  caller looks again later. @param w  Counts the wake-up. */
static inline void qn_server_endpoint_ring(struct qn_server_endpoint *endpoint,
                                           struct qn_wait_stats *w)
{
    /* relaxed: the fence orders them. */
    if (qn_load(&endpoint->asleep, QN_RELAXED) == 1 &&
        qn_exchange(&endpoint->asleep, 0, QN_RELAXED) == 1) {
        qn_unpark_word(&endpoint->asleep);
        w->wakes++;
    }
}

/** Without what changes while one server has the endpoint: under what a client
 *  sends. */
static inline uint64_t qn_server_endpoint_name(uint64_t word)
{
    return word & ~UINT64_C(0xff);
}

#endif
