#ifndef QN_LOADGEN_SYNC_SUBJECT_H
#define QN_LOADGEN_SYNC_SUBJECT_H

/**
 * A subject: one lock, delegate or concurrent object, as benchmarks and stress
 * tests use all of them: by name, with the same few operations.
 *
 * A counter adds 1 and gives what it was before. A queue or a stack puts and
 * takes values. Under a lock, and by delegation, the subject is a counter of
 * plain memory with some more integers, which each addition increments.
 *
 *     qn_subject_create(&s, qn_subject_find("lock/mcs"), &opts);
 *     qn_subject_join(s, &c);                      each thread
 *     was = qn_subject_operate(s, &c, QN_SUBJECT_ADD, 0);
 *     qn_subject_leave(s, &c);
 *     qn_subject_destroy(s);
 *
 * Threads: create and destroy run alone; a client belongs to one thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/atomic.h"
#include "core/sync/delegate/delegate.h"
#include "loadgen/sync/ports.h"

enum qn_subject_kind {
    QN_SUBJECT_COUNTER,
    QN_SUBJECT_QUEUE,
    QN_SUBJECT_STACK,
};

enum qn_subject_op {
    QN_SUBJECT_ADD,  /* of a counter: what it was */
    QN_SUBJECT_PUT,  /* QN_SUBJECT_DONE or _FULL */
    QN_SUBJECT_TAKE, /* the value or _NOTHING */
};

/** Results beside values. A value has 32 bits, for objects that have no more,
 *  and is not the largest of these. */
#define QN_SUBJECT_DONE    UINT64_C(0)
#define QN_SUBJECT_FULL    UINT64_C(1)
#define QN_SUBJECT_NOTHING UINT64_MAX
#define QN_SUBJECT_VALUES  UINT64_C(0xfffffffe)

#define QN_SUBJECT_INTEGERS 64u

struct qn_subject_opts {
    uint32_t clients;    /* at the same time, at least 1 */
    uint32_t capacity;   /* values of a queue or a stack; at least 1 */
    uint32_t ring;       /* cells of one, in queues of rings; 0: what suits */
    uint32_t increments; /* of integers, by each addition to plain memory */
    uint32_t batch;      /* 0: what suits */
    uint32_t domains;    /* 0: 1 */
    const struct qn_lock_type *lock; /* in delegates; NULL: what suits */
    struct qn_server_opts server;    /* of delegates that have one */
    uint32_t
        change_every; /* `auto`: operations until it changes; 0: its rule */
    bool
        tries; /* a lock is tried first, and then waited for until a deadline */
    bool own_cores; /* of locks and delegates; all threads have one */
    bool only_operations_use_data; /* with own_cores; of delegates */
    bool split; /* queues of words have room of their own; those that a shared
                   device has no room for get a split one all the same */
    uint32_t sleep_every; /* one addition of this number sleeps in exclusion; 0:
                             none */
    /* On a simulated machine; 0: nothing. */
    uint32_t call_ps; /* what it takes to call the function of a delegate */
    uint32_t increment_ps; /* and to increment an integer */
    bool looks_on;         /* queues of words are looked at without end; the
                              server has core 0 of their device */
};

/** Of one client. */
struct qn_subject_stats {
    uint64_t batches, served; /* run by it, and operations in them */
    uint64_t cas, cas_failed;
    uint64_t parks, wakes, yields;
    uint64_t changes; /* of the backend */
};

struct qn_subject_type;

/** Plain memory that a lock or a delegate protects. */
struct qn_subject_data {
    alignas(QN_CACHELINE) uint64_t count;
    uint64_t integer[QN_SUBJECT_INTEGERS];
};

/** Fields are those of its type. */
struct qn_subject {
    const struct qn_subject_type *type;
    const char *name; /* within the family */
    struct qn_subject_opts o;
    struct qn_subject_data data;
    void *memory;           /* owned; of the lock, delegate or object */
    void *handle;           /* owned; of this process */
    qn_a32 joined;          /* clients, ever */
    struct qn_ports *ports; /* owned; NULL: it sends no words */
};

/** Room for any client. */
struct qn_subject_client {
    alignas(QN_CACHELINE) uint8_t room[4096];
    struct qn_sync_port *port; /* its own; NULL: none */
    /* Set in front of join; all zero: clients take turns. */
    uint32_t core;   /* + 1; of its port */
    uint32_t domain; /* + 1 */
};

/** A family of subjects: those that one adapter makes. */
struct qn_subject_type {
    const char *family;
    enum qn_subject_kind kind;
    bool plain;       /* additions are to plain memory, with `increments` */
    uint32_t objects; /* delegates that a client joins at most; 0: 1 */
    const char *(*name)(uint32_t i); /* of the i-th; NULL past the last */
    /** Does a client need a port? NULL: none does. */
    bool (*words)(const struct qn_subject *s);
    int (*create)(struct qn_subject *s);
    void (*destroy)(struct qn_subject *s);
    /** By qn_subject_join and _leave, which see to its port. */
    int (*join)(struct qn_subject *s, struct qn_subject_client *c);
    void (*leave)(struct qn_subject *s, struct qn_subject_client *c);
    uint64_t (*operate)(struct qn_subject *s, struct qn_subject_client *c,
                        enum qn_subject_op op, uint64_t value);
    /** NULL: nothing is counted. */
    void (*stats)(struct qn_subject *s, struct qn_subject_client *c,
                  struct qn_subject_stats *out);
    /** Of those with servers; else NULL: begin an addition, and end the oldest
     *  one (core/sync/delegate/server.h). */
    int (*submit)(struct qn_subject *s, struct qn_subject_client *c);
    int (*collect)(struct qn_subject *s, struct qn_subject_client *c,
                   uint64_t *was);
    /* Of those with servers; else NULL. `served` says which have one. */
    bool (*served)(const struct qn_subject *s);
    int (*serve)(struct qn_subject *s);
    void (*stop)(struct qn_subject *s);
};

/** All families; NULL behind the last. */
extern const struct qn_subject_type *const qn_subject_types[];

/** One subject by name. */
struct qn_subject_name {
    const struct qn_subject_type *type;
    const char *name;
};

/** @param family  NULL: the first one that has such a name, of that kind.
 *  @return false: there is none. */
bool qn_subject_find(const char *family, const char *name,
                     enum qn_subject_kind kind, struct qn_subject_name *out);

/** @param s  Filled. @return QN_OK; QN_ENOMEM; QN_EINVAL: not with these
 *  options; QN_ENOSYS: not on this machine. */
int qn_subject_create(struct qn_subject **s, const struct qn_subject_name *n,
                      const struct qn_subject_opts *o);

/** All clients have left, and no server serves. Accepts NULL. */
void qn_subject_destroy(struct qn_subject *s);

/** Become a client, with a port if the subject needs one. @return QN_OK;
 *  QN_EAGAIN: all places are taken; errors of the join of its type. */
int qn_subject_join(struct qn_subject *s, struct qn_subject_client *c);
void qn_subject_leave(struct qn_subject *s, struct qn_subject_client *c);

/** What an addition does to the plain memory, in exclusion. @return what the
 *  count was. */
uint64_t qn_subject_work(struct qn_subject *s);

/** Add `from` to `sum`. */
void qn_subject_stats_add(struct qn_subject_stats *sum,
                          const struct qn_subject_stats *from);

/** The same figures of a delegate's client. */
struct qn_subject_stats qn_subject_stats_of(const struct qn_delegate_stats *s);

/** Zeroed memory of whole lines; NULL: none. To be freed. */
void *qn_subject_memory(size_t bytes);

/** All backends of delegates. @return the i-th; NULL: past the last. */
const struct qn_delegate_type *qn_subject_backend(uint32_t i);

/** Does it send words, itself or by the lock that it takes? */
bool qn_subject_backend_words(const struct qn_subject *s,
                              const struct qn_delegate_type *type);

/** A port for a server. Of an object without words: NULL. */
struct qn_sync_port *qn_subject_server_port(struct qn_subject *s);

/** Serve a delegate, until it is stopped. @return as qn_delegate_serve. */
int qn_subject_serve(struct qn_subject *s, const struct qn_delegate *d);

/** Options of a delegate, of the subject or a part of it. */
struct qn_delegate_opts qn_subject_delegate(
    const struct qn_subject *s, const struct qn_delegate_type *type);

/** What joins an object, which may have places by domain. */
struct qn_subject_end {
    /** As qn_delegate_join, of that kind of object. */
    int (*join)(const void *object, void *client,
                const struct qn_delegate_join_opts *o);
    const void *object;
    void *client; /* filled by `join` */
    bool domains; /* the object has them */
    struct qn_sync_port *port;
};

/** Join an object, of the subject or a part of it, in any domain that has a
 *  place. @param of  The client that joins; NULL: a server.
 *  @return as `join`. */
int qn_subject_join_any(struct qn_subject *s,
                        const struct qn_subject_client *of,
                        const struct qn_subject_end *e);

/** The same of a delegate.
 *  @param of    The client that joins; NULL: a server.
 *  @param port  Its port, or NULL.
 *  @return as qn_delegate_join. */
int qn_subject_join_delegate(struct qn_subject *s,
                             const struct qn_subject_client *of,
                             struct qn_sync_port *port,
                             const struct qn_delegate *d,
                             struct qn_delegate_client *c);

/** The domain of a client that joins, of a server if NULL. @param has  Does the
 *  type have domains? */
uint32_t qn_subject_domain(struct qn_subject *s,
                           const struct qn_subject_client *c, bool has);

/** Does it need a thread that serves? */
static inline bool qn_subject_served(const struct qn_subject *s)
{
    return s->type->served != NULL && s->type->served(s);
}

/* Inline: a benchmark calls it for each operation. */
static inline uint64_t qn_subject_operate(struct qn_subject *s,
                                          struct qn_subject_client *c,
                                          enum qn_subject_op op, uint64_t value)
{
    return s->type->operate(s, c, op, value);
}

extern const struct qn_subject_type qn_subject_plain;       /* _plain.c */
extern const struct qn_subject_type qn_subject_mutex_count; /* _mutex.c */
extern const struct qn_subject_type qn_subject_mutex_queue;
extern const struct qn_subject_type qn_subject_mutex_stack;
extern const struct qn_subject_type qn_subject_lock;       /* subject_lock.c */
extern const struct qn_subject_type qn_subject_delegation; /* _delegate.c */
extern const struct qn_subject_type qn_subject_counter;    /* _counter.c */
extern const struct qn_subject_type qn_subject_queue;      /* _collection.c */
extern const struct qn_subject_type qn_subject_stack;

#endif
