#ifndef QN_SYNC_DELEGATE_SERVER_H
#define QN_SYNC_DELEGATE_SERVER_H

/**
 * Servers: a thread of the program runs the operations of all clients of an
 * object, and does nothing else. Its data stay in its cache.
 *
 *     a server                          any other thread
 *     server = {.domain = 0}            ... = qn_delegate(&d, &c, ...)
 *     qn_delegate_serve(&d, &server)    qn_delegate_stop(&d)
 *
 * Two backends (delegate.h) are served: shm_server takes requests from slots of
 * coherent memory, mp_server from messages of words. Their clients call as all
 * clients do; while none serves they wait.
 *
 * *One at a time.* A server has the object's endpoint, which has a generation:
 * each server that takes it begins the next one. A second server is refused.
 * `stop` asks the one that serves to leave, which it does between two
 * operations; then another thread may serve, in another domain or at another
 * core: the server moves. Requests on their way meanwhile are answered, by the
 * old server or by the new one.
 *
 * *Submit and collect.* A client may have QN_SERVER_OPEN requests on their way.
 * Their results come in the order of submission. Backends without a server
 * refuse that: there the submitter may have to run operations itself.
 *
 *                        same server/client    others
 *     serve, poll        same thread           QN_EBUSY while one serves
 *     stop               free                  free
 *     submit, collect    same thread           free
 *
 * *Nesting.* A server that asks its own object waits for itself. So it names
 * the client that its thread has there, in `client`: while it serves, calls,
 * submit and collect of that client are QN_EDEADLK.
 *
 * *Cores.* A server wants a core of its own, and its hyper-thread idle. Clients
 * that share the server's core get a thousandth of what the others get: the
 * server finds work from the others, and gives its core away only when it does
 * not. A server sleeps when it has found nothing for a while, and clients sleep
 * when they have waited long; a thread that has something for a sleeper wakes
 * it.
 *
 * Progress: blocking. A server that dies, or that runs an operation which does
 * not end, holds up all clients for ever.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/atomic.h"
#include "core/wait/baton.h"

#define QN_SERVER_OPEN 8u /* requests of a client on their way */

struct qn_delegate;
struct qn_delegate_client;
struct qn_sync_port;

/** What a client of shm_server does between two looks at its reply. */
enum qn_server_pause {
    QN_SERVER_ADAPTIVE, /* keep away until the server passes by again, where
                           each has a core of its own (`cores`) */
    QN_SERVER_FIXED,    /* keep away for `pause_ns` */
    QN_SERVER_NONE,     /* look all the time */
};

/** Options of objects with a server, all for shm_server. All zero: what suits.
 */
struct qn_server_opts {
    uint32_t pause_ns;  /* with QN_SERVER_FIXED: at least 1 */
    uint16_t cores;     /* on which clients and server run. With as many as all
                           of them, clients look longer before they sleep; 0: no
                           such promise */
    uint8_t stride;     /* lines from one client's slot to the next, 1 or 2; 0:
                           1. 2 where a prefetcher brings lines by pairs */
    uint8_t pause;      /* enum qn_server_pause */
    bool group_replies; /* replies of eight clients of a domain share a line,
                           which is written once per scan. Each domain has its
                           share of the places then, clients / domains: at least
                           one */
    bool scattered;     /* slots that follow each other lie 32 lines or more
                           apart, so that no prefetcher runs ahead of the server:
                           to measure what that is worth */
    /** Only the server reads and writes the data of the operations: no thread
     *  looks at them beside operations of this object, not even behind its own
     *  reply, unless it has stopped the server and that has left. Replies are
     *  then stored past the caches (qn_store_streaming), which orders nothing
     *  but the result itself. Not for data that two objects share, as a queue
     *  with two locks. */
    bool only_server_uses_data;
};

/** What a server has done. */
struct qn_server_stats {
    uint64_t scans;   /* or turns, of a server of messages */
    uint64_t batches; /* scans in which it ran operations */
    uint64_t served;  /* operations */
    struct qn_wait_stats waits;
};

#define QN_SERVER_PLACES 1024u /* QN_SYNC_CLIENTS_MAX */

/** How long the scans of a server of shm_server take. Private. */
struct qn_server_scans {
    uint64_t busy_until; /* the end of the last scan, ns; 0: it ran nothing */
    int32_t mean_ns, told_ns; /* of late; what the clients know */
};

/** One server, of one thread at one object. Zero but for what the caller sets.
 */
struct qn_delegate_server {
    uint32_t domain;           /* below `domains`: where slots are looked at */
    struct qn_sync_port *port; /* mp_server: its end for words; else NULL */
    struct qn_delegate_client *client; /* of its thread at the same object, or
                                          NULL. Kept while it serves */
    struct qn_server_stats stats;
    /* Private. */
    uint64_t generation; /* of its endpoint; 0: it does not serve */
    const void *serves;  /* the object's memory, while it serves */
    uint64_t current[QN_SERVER_PLACES / 64]; /* bits: the client sends under
                                                `generation` */
    uint32_t served[QN_SERVER_PLACES];       /* requests of each client */
    struct qn_server_scans scans;
    uint32_t promised; /* mp_server: words, at its port */
};

/** A client's part of a server's backend. Private. */
struct qn_server_client {
    uint64_t endpoint;        /* under which it sends */
    uint32_t sent, collected; /* requests, counted freely */
    uint32_t origin;          /* the request that is entry 0 */
    uint32_t toggles;         /* bit i: of the last request in entry i */
    uint64_t found;           /* ns, when it looked and the reply was there */
};

/**
 * Serve until `stop`.
 *
 * @param s  Of this thread; the figures in `stats` go on.
 * @return QN_OK: it was stopped; QN_EBUSY: another one serves; QN_ENOSYS: the
 *         backend has no server; QN_EINVAL: the domain, no port, or it serves
 *         another object; QN_EDQUOT: requests would not fit beside what else
 *         may be sent to that port (core/sync/port.h); QN_EDEADLK: `client` is
 *         in a call.
 *
 * Blocks, and parks when there is nothing to do.
 */
int qn_delegate_serve(const struct qn_delegate *d,
                      struct qn_delegate_server *s);

/**
 * Run what has been asked for, once, without waiting: for threads that serve
 * several objects, or have more to do. The first call takes the endpoint.
 * Clients that sleep are woken; this thread must come back by itself.
 *
 * @return operations run, or 0; QN_EGONE: it was stopped, and serves no more;
 *         errors of qn_delegate_serve.
 */
int qn_delegate_poll(const struct qn_delegate *d, struct qn_delegate_server *s);

/**
 * Ask the thread that serves to leave. Any thread, also an operation. Another
 * may serve once serve or poll of the former one have returned.
 *
 * @return QN_OK; QN_ENOENT: none serves; QN_ENOSYS: the backend has no server.
 *
 * Does not wait.
 */
int qn_delegate_stop(const struct qn_delegate *d);

/**
 * Send a request and go on.
 *
 * @return QN_OK; QN_EAGAIN: QN_SERVER_OPEN are on their way; QN_ENOSYS: the
 *         backend has no server; QN_EDEADLK and QN_EINVAL as qn_delegate.
 */
int qn_delegate_submit(const struct qn_delegate *d,
                       struct qn_delegate_client *c, uint32_t op, uint64_t arg);

/**
 * Wait for the oldest request on its way.
 *
 * @param result  Filled, 63 bits.
 * @return QN_OK; QN_ENOENT: none is on its way; QN_ENOSYS, QN_EDEADLK.
 *
 * Blocks as qn_delegate does, which is refused (QN_EBUSY) while any is on its
 * way; all must be collected before the client leaves.
 */
int qn_delegate_collect(const struct qn_delegate *d,
                        struct qn_delegate_client *c, uint64_t *result);

#endif
