#ifndef QN_SYNC_DELEGATE_DELEGATE_H
#define QN_SYNC_DELEGATE_DELEGATE_H

/**
 * Delegation: operations on data that threads share run one at a time, and not
 * always on the thread that asked for them.
 *
 * A caller names an operation by a number; one function of the program runs all
 * of them. Which thread runs it, and how the request gets there, is up to the
 * *backend*, which is chosen by name:
 *
 *     lock        the caller, under a lock of core/sync/lock
 *     cc_synch    one of the callers for all that wait (a combiner)
 *     h_synch     the same with one list per domain (a NUMA node), and a lock
 *                 between the combiners of the domains
 *     auto        one of these, chosen while it runs
 *     hyb_comb    a combiner, to which requests go as messages of words
 *     servers     a thread of the program that does nothing else (server.h)
 *
 * An *object* lies in memory of the caller, which may be shared by processes
 * that map it at different addresses:
 *
 *     opts = {.type = qn_delegate_find("cc_synch"), .clients = 16};
 *     memory = aligned_alloc(QN_CACHELINE, qn_delegate_bytes(&opts));
 *     memset(memory, 0, ...);
 *     qn_delegate_format(memory, &opts);           once
 *     qn_delegate_open(&d, memory, run, table);    each process
 *     qn_delegate_join(&d, &c, &join);             each thread
 *     qn_delegate(&d, &c, INSERT, key, &result);   any number of times
 *     qn_delegate_leave(&d, &c);
 *
 * With more than one process each must open the object with a function that
 * does the same to data that all of them see: a combiner runs the operations of
 * others.
 *
 * A *client* is one thread at one object. What a call returns is ordered as by
 * a lock: an operation sees all that earlier ones have written, and the caller
 * sees what its own has.
 *
 *                   same client      other clients
 *     join, leave   same thread      free
 *     call          same thread      free
 *
 * format runs alone; open of a formatted object may run beside all others.
 *
 * Progress: blocking. Only a call in progress can hold up other clients; a
 * thread that dies inside a call holds them up for ever. A client that ends
 * without leaving costs its place. No call may be made in a signal handler, nor
 * with a client that was joined before fork() by the child.
 *
 * Nesting: an operation may delegate to other objects as long as no cycle of
 * objects arises; to its own object it must not, which a call of the same
 * client refuses. All operations of an object may use one client there, on
 * whichever thread they run, since they run one at a time. A client with a port
 * is of its thread: there either a server runs these operations, or each thread
 * opens the object for itself, with a context that has its own client. A server
 * that asks its own object: server.h.
 */

#include "core/base/atomic.h"
#include "core/base/err.h"
#include "core/sync/delegate/auto_rule.h"
#include "core/sync/delegate/server.h"
#include "core/sync/lock/lock.h"
#include "core/wait/baton.h"

#define QN_DELEGATE_VALUE   (UINT64_MAX >> 1) /* the bits of a result */
#define QN_DELEGATE_OPS     65536u            /* numbers of operations */
#define QN_DELEGATE_BATCH   200u              /* CC-Synch saturates there */
#define QN_DELEGATE_DOMAINS 64u
#define QN_DELEGATE_PARTS   3u /* backends that `auto` chooses from */

struct qn_backend;
struct qn_backend_client;
struct qn_sync_port;

/** Run operation `op`, below QN_DELEGATE_OPS, in exclusion of all others of the
 *  object. @return its result, in 63 bits: the top bit is the library's. It
 *  runs on any thread that has a client, so it must use no thread-local data,
 *  and should be short: others wait for it. */
typedef uint64_t qn_delegate_fn(void *ctx, uint32_t op, uint64_t arg);

struct qn_delegate_type;
struct qn_server_type;

/** What an object is. */
struct qn_delegate_opts {
    const struct qn_delegate_type *type; /* of qn_delegate_find */
    uint32_t clients; /* at the same time, 1..QN_SYNC_CLIENTS_MAX */
    uint32_t batch;   /* operations of others that a client runs before it
                         hands over; 0: QN_DELEGATE_BATCH */
    uint32_t domains; /* h_synch, auto, shm_server: 1..QN_DELEGATE_DOMAINS; 0:
                         1. Others have one */
    const struct qn_lock_type *lock; /* lock, h_synch; NULL: what suits */
    uint32_t change_every; /* auto: take the next backend each time that this
                              number of operations was run; 0: as the rule
                              says (auto_rule.h). For tests */
    struct qn_server_opts server; /* shm_server */
    bool own_cores; /* lock, cc_synch, h_synch, hyb_comb, auto: each client has
                       a core of its own, as long as it is one. Waiters look on
                       and do not sleep, so that they are told by a store */
    /** With own_cores, of cc_synch, h_synch and auto: no thread looks at the
     *  data of the operations beside operations of this object, not even behind
     *  its own result. A result then orders nothing but itself, which saves a
     *  fence per operation where memory is weakly ordered. Not for data that
     *  two objects share, as a queue with two locks. */
    bool only_operations_use_data;
};

struct qn_delegate_join_opts {
    uint32_t domain;           /* below `domains`, where the backend has them */
    struct qn_sync_port *port; /* kept until leave; NULL: none. For backends
                                  that send messages of words */
};

/** Of one client; qn_delegate_stats_add sums. */
struct qn_delegate_stats {
    uint64_t operations; /* that it asked for */
    uint64_t batches;    /* in which it ran operations of any client */
    uint64_t served;     /* operations that it ran, its own too */
    uint64_t cas, cas_failed;
    uint64_t elsewhere; /* answers that the object has changed its backend */
    uint64_t changes;   /* of the backend, that it made */
    struct qn_wait_stats waits;
};

/** One backend's object as a process sees it. Between backends (backend.h). */
struct qn_backend {
    const struct qn_delegate_type *type;
    struct qn_delegate_opts o; /* a copy of what the memory says */
    void *memory;              /* behind the head; shared */
    qn_delegate_fn *run;
    void *ctx;
    struct qn_auto *chooser; /* of the object that this is a part of, or NULL */
    uint32_t index, parts;   /* there */
};

/** One client's end at a backend. Between backends. */
struct qn_backend_client {
    uint32_t place, node; /* clients.h */
    uint32_t domain;
    uint32_t toggle; /* a backend's own */
    uint32_t object; /* its number, at a device of words */
    struct qn_sync_port *port;
    struct qn_lock_client lock;
    struct qn_server_client server;
    struct qn_delegate_stats stats;
    /* Of `auto`. */
    uint32_t part;              /* that the client asks */
    uint64_t word;              /* in the last batch; named this backend */
    uint64_t tells, looks;      /* when served and failed reach it */
    bool owes;                  /* it is to tell behind this call */
    uint32_t window;            /* operations and failed attempts */
    struct qn_auto_window from; /* totals when the window began */
};

/** A process's handle of an object; read-only between open and its end, so any
 *  thread may use it. Fields are private; [0] is the object's own backend. */
struct qn_delegate {
    struct qn_backend at[1 + QN_DELEGATE_PARTS];
};

/** One thread at one object. Fields are private. */
struct qn_delegate_client {
    bool inside;   /* a call is in progress */
    uint32_t open; /* requests that were submitted and not collected */
    struct qn_backend_client at[1 + QN_DELEGATE_PARTS];
};

/** What makes a backend; backend.h says how they work together. */
struct qn_delegate_type {
    const char *name;
    const char *lock; /* its own choice of one; NULL: it takes none */
    bool words;       /* a client needs a port */
    bool domains;     /* it has lists by domain; else there is one for all */
    /** Of the memory behind the head; 0: not with these options. */
    size_t (*bytes)(const struct qn_delegate_opts *o);
    int (*format)(void *memory, const struct qn_delegate_opts *o);
    /** NULL: nothing beside what delegate.c does. */
    int (*open)(struct qn_backend *b);
    int (*join)(const struct qn_backend *b, struct qn_backend_client *c,
                const struct qn_delegate_join_opts *o);
    void (*leave)(const struct qn_backend *b, struct qn_backend_client *c);
    /** @return the result, or QN_DELEGATE_ELSEWHERE. */
    uint64_t (*call)(const struct qn_backend *b, struct qn_backend_client *c,
                     uint32_t op, uint64_t arg);
    /** Add what lies elsewhere than in c->stats to *out; NULL: nothing. */
    void (*stats)(const struct qn_backend *b, const struct qn_backend_client *c,
                  struct qn_delegate_stats *out);
    /** What its server does (endpoint_internal.h); NULL: it needs none. */
    const struct qn_server_type *server;
};

/** All backends that need neither server nor port, for tests and benchmarks:
 * NULL behind the last. */
extern const struct qn_delegate_type *const qn_delegate_types[];

/** All with a server (server.h) and without ports: NULL behind the last. */
extern const struct qn_delegate_type *const qn_delegate_served_types[];

/** All over words, whose clients need a port: NULL behind the last. */
extern const struct qn_delegate_type *const qn_delegate_words_types[];

/** @return the backend of that name, or NULL. */
const struct qn_delegate_type *qn_delegate_find(const char *name);

/** @return bytes of memory for such an object, a multiple of QN_CACHELINE; 0:
 *  an option is out of range, or not for this backend. */
size_t qn_delegate_bytes(const struct qn_delegate_opts *o);

/**
 * Make an object.
 *
 * @param memory  qn_delegate_bytes(o) bytes, aligned to QN_CACHELINE, zero.
 *                Shared; in use until all clients have left.
 * @return QN_OK; QN_EINVAL as qn_delegate_bytes.
 *
 * Runs alone. Nothing is allocated; there is nothing to undo.
 */
int qn_delegate_format(void *memory, const struct qn_delegate_opts *o);

/**
 * Make this process's handle of a formatted object.
 *
 * @param d    Filled. Needs no close.
 * @param run  What runs the operations; kept, with `ctx`, as long as `d`.
 * @return QN_OK; QN_EINVAL: the memory holds no object of a known backend, or
 *         one of another version of the library.
 */
int qn_delegate_open(struct qn_delegate *d, void *memory, qn_delegate_fn *run,
                     void *ctx);

/**
 * Take a place at the object.
 *
 * @param c  Filled; of one thread, until it has left.
 * @param o  NULL: domain 0, no port.
 * @return QN_OK; QN_EAGAIN: all places are taken; QN_EINVAL: no such domain, or
 *         the backend needs a port; QN_EDQUOT: what may be sent to that port
 *         would not fit (core/sync/port.h).
 */
int qn_delegate_join(const struct qn_delegate *d, struct qn_delegate_client *c,
                     const struct qn_delegate_join_opts *o);

/** Give the place back. No call of the client is in progress. */
void qn_delegate_leave(const struct qn_delegate *d,
                       struct qn_delegate_client *c);

/** @return what the client has done, since it joined. Its own thread. */
struct qn_delegate_stats qn_delegate_stats_of(
    const struct qn_delegate *d, const struct qn_delegate_client *c);

/** Add what one client has done to a sum. */
void qn_delegate_stats_add(struct qn_delegate_stats *sum,
                           const struct qn_delegate_stats *s);

/**
 * Have operation `op` run, and wait for its result.
 *
 * @param op      Below QN_DELEGATE_OPS.
 * @param arg     For the function, any 64 bits.
 * @param result  Filled, 63 bits.
 * @return QN_OK; QN_EDEADLK: the client is in a call already, so this one comes
 *         from an operation on the same object; QN_EBUSY: requests that it has
 *         submitted were not collected (server.h); QN_EINVAL: no such op.
 *
 * Blocks; parks if the wait is longer than a few us. May run operations of
 * other clients, at most `batch`.
 */
static inline int qn_delegate(const struct qn_delegate *d,
                              struct qn_delegate_client *c, uint32_t op,
                              uint64_t arg, uint64_t *result)
{
    if (c->inside || c->open != 0 || op >= QN_DELEGATE_OPS) {
        return c->inside ? QN_EDEADLK : c->open != 0 ? QN_EBUSY : QN_EINVAL;
    }
    c->inside = true;
    c->at[0].stats.operations++;
    *result = d->at[0].type->call(&d->at[0], &c->at[0], op, arg);
    c->inside = false;
    return QN_OK;
}

#endif
