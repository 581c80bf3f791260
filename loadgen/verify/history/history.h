#ifndef QN_LOADGEN_VERIFY_HISTORY_HISTORY_H
#define QN_LOADGEN_VERIFY_HISTORY_HISTORY_H

/**
 * Histories: the operations of clients on a store, their answers and their
 * times; the input of the checker (linear.h).
 *
 * A **record** is one operation. A **recorder** is an append-only buffer of
 * records with one writer. A **history** is made of the recorders after the
 * run, and returns the records of one key at a time: linearizability is local,
 * so each key is checked alone.
 *
 *     struct qn_recorder rec;                      one per thread
 *     qn_recorder_init(&rec, records_max);
 *     ...
 *     struct qn_record *r = qn_recorder_add(&rec, client, key, QN_RECORD_SET);
 *     r->value = unique;                       of no other operation
 *     r->invoked = qn_clock_now();             BEFORE the request is written
 *     ...
 *     r->responded = qn_clock_now();           AFTER the reply was read
 *     r->outcome = QN_RECORD_OK;
 *
 * The pointer stays valid as long as the recorder, so the queue of outstanding
 * requests of a connection keeps pointers. The outcome of a new record is
 * unknown; if a connection breaks or the run ends, it stays so. An error reply
 * which proves that nothing happened is recorded by qn_record_refused(); any
 * other error leaves the outcome unknown.
 *
 * A verdict is only as good as the times: an invocation noted too late or a
 * response noted too early gives false alarms; the reverse only hides
 * violations. All times are of one clock (CLOCK_MONOTONIC: one machine).
 *
 * A key is absent at the beginning. So a run uses keys that do not exist, or
 * records its own deletions and preloads.
 *
 *     kind  request       value     other      outcomes
 *     GET   GET           read                 OK, NIL
 *     SET   SET           written              OK
 *     ADD   SET NX        written              OK, FAILED
 *     CAS   SET IFEQ      written   expected   OK, FAILED
 *     DEL   DEL                                OK (1), NIL (0)
 *     INCR  INCR, INCRBY  added     returned   OK
 *
 * Threads: a recorder has one; a history has one, after the threads of the
 * recorders have ended.
 */

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/clock.h"

/* name, and word of the text form */
#define QN_RECORD_KINDS(X)                                                     \
    X(GET, "get")                                                              \
    X(SET, "set")                                                              \
    X(ADD, "add")                                                              \
    X(CAS, "cas")                                                              \
    X(DEL, "del")                                                              \
    X(INCR, "incr")

enum qn_record_kind {
#define X(name, text) QN_RECORD_##name,
    QN_RECORD_KINDS(X)
#undef X
        QN_RECORD_KIND_COUNT
};

enum qn_record_outcome {
    QN_RECORD_UNKNOWN, /* happened at any time since `invoked`, or will never
                          happen */
    QN_RECORD_OK,
    QN_RECORD_NIL,    /* GET: no such key; DEL: no key to delete */
    QN_RECORD_FAILED, /* ADD: the key existed; CAS: it had another value */
};

/** A key is a number below 2^31; counters have separate numbers, so that the
 *  text can write c7 instead of k7. */
#define QN_RECORD_COUNTER UINT32_C(0x80000000)

struct qn_record {
    qn_time_t invoked; /* ns, before the request was written */
    qn_time_t
        responded;   /* ns, after the reply was read; not for outcome UNKNOWN */
    int64_t value;   /* see the table above */
    int64_t other;   /* see the table above */
    uint32_t key;    /* number, with QN_RECORD_COUNTER or without */
    uint16_t client; /* number of the client, for reports */
    uint8_t kind;    /* enum qn_record_kind */
    uint8_t outcome; /* enum qn_record_outcome */
};
static_assert(sizeof(struct qn_record) == 40, "10^8 of them are 4 GB");

/* ---- recording ---- */

enum { QN_RECORDER_CHUNK = 16384 }; /* records: 640 KiB, one malloc each */

struct qn_recorder_chunk {
    struct qn_recorder_chunk *next;
    struct qn_record record[QN_RECORDER_CHUNK];
};

/** Fields are private, except `full`. */
struct qn_recorder {
    struct qn_recorder_chunk *first;
    struct qn_recorder_chunk *last;
    uint64_t count;       /* records added */
    uint64_t records_max; /* limit */
    uint32_t used;        /* records in `last` */
    bool full; /* an operation could not be recorded: the history is incomplete
                  and must not be checked */
};

/** Make an empty recorder; it takes no memory yet. @param records_max  Limit;
 *  each record takes 40 bytes. */
void qn_recorder_init(struct qn_recorder *t, uint64_t records_max);

/** Free the records that no history has taken. */
void qn_recorder_fini(struct qn_recorder *t);

/** Make room; the slow path of qn_recorder_add. False: `full` is set. */
bool qn_recorder_grow(struct qn_recorder *t);

/**
 * Append one record: outcome unknown, value and other 0, invoked 0.
 *
 * @param key  Below 2^31, or QN_RECORD_COUNTER and a number.
 * @return the record, to be completed; valid until qn_recorder_fini or
 *         qn_history_fini. NULL if the recorder or memory is full: then the
 *         operation must not be sent, and t->full stays set.
 *
 * A few ns; every QN_RECORDER_CHUNK-th call allocates.
 */
static inline struct qn_record *qn_recorder_add(struct qn_recorder *t,
                                                uint16_t client, uint32_t key,
                                                enum qn_record_kind kind)
{
    if (__builtin_expect(t->last == NULL || t->used == QN_RECORDER_CHUNK ||
                             t->count >= t->records_max,
                         0) &&
        !qn_recorder_grow(t)) {
        return NULL;
    }
    struct qn_record *r = &t->last->record[t->used++];
    *r = (struct qn_record){.responded = QN_TIME_NEVER,
                            .key = key,
                            .client = client,
                            .kind = (uint8_t)kind,
                            .outcome = QN_RECORD_UNKNOWN};
    t->count++;
    return r;
}

/** The reply proves that nothing was done (a syntax error, a refusal before the
 *  log): the record becomes one without information. */
static inline void qn_record_refused(struct qn_record *r)
{
    r->kind = QN_RECORD_GET;
    r->outcome = QN_RECORD_UNKNOWN;
}

/* ---- a history ---- */

/** The records of one key. */
struct qn_history_key {
    uint32_t key;
    uint64_t first; /* private: begin of its records in `order` */
    uint64_t count; /* records */
};

/** Fields are private, except `key` and `key_count` after qn_history_group. */
struct qn_history {
    struct qn_recorder_chunk **chunk; /* [chunk_count] */
    uint32_t *chunk_used;             /* [chunk_count] records */
    uint64_t chunk_count;
    uint64_t chunk_room;
    uint64_t count;             /* records */
    uint64_t *order;            /* [count] position of each record, by key */
    struct qn_history_key *key; /* [key_count], ascending by key */
    uint64_t key_count;
};

void qn_history_init(struct qn_history *h);
void qn_history_fini(struct qn_history *h);

/**
 * Move the records of a recorder into the history, without copying them. The
 * recorder is empty afterwards and can be used again; pointers to its records
 * stay valid until qn_history_fini.
 *
 * @return QN_OK; QN_EINVAL if t->full: the history would be incomplete;
 *         QN_ENOMEM. On error the recorder is unchanged.
 */
int qn_history_take(struct qn_history *h, struct qn_recorder *t);

/**
 * Group by key, after the last qn_history_take. Fills h->key.
 *
 * @return QN_OK; QN_ENOMEM (it needs 8 bytes per record and 56 per key).
 *         O(records).
 */
int qn_history_group(struct qn_history *h);

/**
 * Copy the records of one key, ordered by invocation, response, client.
 *
 * @param i    Index in [0, h->key_count).
 * @param out  [h->key[i].count] Filled.
 */
void qn_history_records(const struct qn_history *h, uint64_t i,
                        struct qn_record *out);

/** Sort records as qn_history_records does. O(n log n), in place. */
void qn_records_sort(struct qn_record *records, size_t n);

#endif
