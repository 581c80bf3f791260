#ifndef QN_LOADGEN_VERIFY_HISTORY_HISTORY_H
#define QN_LOADGEN_VERIFY_HISTORY_HISTORY_H

/**
 * What clients asked of a store and what it answered, and when: the material
 * that the checker (linear.h) judges.
 *
 * A **record** is one operation. A **recorder** is an append-only buffer of
 * records with one writer. A **history** is made of the recorders when the run
 * is over, and hands out the records of one key at a time: linearizability is
 * local, so each key is judged alone.
 *
 *     struct qn_recorder rec;                      one per thread
 *     qn_recorder_init(&rec, records_max);
 *     ...
 *     struct qn_record *r = qn_recorder_add(&rec, client, key, QN_RECORD_SET);
 *     r->value = unique;                       whatever nobody else writes
 *     r->invoked = qn_clock_now();             BEFORE the request is written
 *     ...
 *     r->responded = qn_clock_now();           AFTER the reply was read
 *     r->outcome = QN_RECORD_OK;
 *
 * The pointer stays good as long as the recorder, so a connection's queue of
 * unanswered requests keeps pointers. A new record's outcome is unknown; a
 * connection that breaks, or a run that ends, leaves it so and does nothing.
 * An error reply that proves that nothing happened is told by
 * qn_record_refused(); any other leaves the outcome unknown as well.
 *
 * A verdict is worth as much as the times: an invocation noted too late or a
 * response noted too early makes false alarms; noted the other way round they
 * only hide. All times are of one clock (CLOCK_MONOTONIC: one machine).
 *
 * A key is absent in the beginning. So a run uses keys that do not exist, or
 * records the deletions and preloads it makes.
 *
 * | kind | request      | `value`             | `other`        | outcomes |
 * |------|--------------|---------------------|----------------|---------------|
 * | GET  | GET          | read                |                | OK, NIL | |
 * SET  | SET          | written             |                | OK            |
 * | ADD  | SET NX       | written             |                | OK, FAILED |
 * | CAS  | SET IFEQ     | written             | expected       | OK, FAILED |
 * | DEL  | DEL          |                     |                | OK (1), NIL
 * (0) | | INCR | INCR, INCRBY | added               | returned       | OK |
 *
 * Threads: a recorder has one; a history has one, after the recorders' threads
 * ended.
 */

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/clock.h"

/* name, and what the text form calls it */
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
    QN_RECORD_UNKNOWN, /* happened at any time since `invoked`, or never will */
    QN_RECORD_OK,
    QN_RECORD_NIL,    /* GET: no such key; DEL: there was none to delete */
    QN_RECORD_FAILED, /* ADD: the key existed; CAS: it had another value */
};

/** A key is a number below 2^31; counters are numbered apart, so that the text
 *  can call them c7 instead of k7. */
#define QN_RECORD_COUNTER UINT32_C(0x80000000)

struct qn_record {
    qn_time_t invoked;   /* ns, before the request left */
    qn_time_t responded; /* ns, after the reply came; unless outcome UNKNOWN */
    int64_t value;       /* see the table above */
    int64_t other;       /* see the table above */
    uint32_t key;        /* number, with QN_RECORD_COUNTER or without */
    uint16_t client;     /* who asked; for the reader of a report */
    uint8_t kind;        /* enum qn_record_kind */
    uint8_t outcome;     /* enum qn_record_outcome */
};
static_assert(sizeof(struct qn_record) == 40, "10^8 of them are 4 GB");

/* ---- recording ---- */

enum { QN_RECORDER_CHUNK = 16384 }; /* records: 640 KiB, one malloc each */

struct qn_recorder_chunk {
    struct qn_recorder_chunk *next;
    struct qn_record record[QN_RECORDER_CHUNK];
};

/** Fields are private, but `full`. */
struct qn_recorder {
    struct qn_recorder_chunk *first;
    struct qn_recorder_chunk *last;
    uint64_t count;       /* records added */
    uint64_t records_max; /* limit */
    uint32_t used;        /* records in `last` */
    bool full;            /* an operation could not be recorded: the history
                             has a hole and must not be judged */
};

/** An empty recorder. @param records_max  Where it ends; each takes 40 bytes.
 * No memory is taken yet. */
void qn_recorder_init(struct qn_recorder *t, uint64_t records_max);

/** Free what a history has not taken. */
void qn_recorder_fini(struct qn_recorder *t);

/** Make room; the slow half of qn_recorder_add. False: `full` is set. */
bool qn_recorder_grow(struct qn_recorder *t);

/**
 * Append one record: outcome unknown, value and other 0, invoked 0.
 *
 * @param key  Below 2^31, or QN_RECORD_COUNTER and a number.
 * @return where to write the rest, good until qn_recorder_fini or
 *         qn_history_take; NULL if the recorder is full or memory is: then the
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

/** The server proved that nothing was done (a syntax error, a refusal before
 *  the log): the record becomes one that says nothing. */
static inline void qn_record_refused(struct qn_record *r)
{
    r->kind = QN_RECORD_GET;
    r->outcome = QN_RECORD_UNKNOWN;
}

/* ---- a history ---- */

/** The records of one key. */
struct qn_history_key {
    uint32_t key;
    uint64_t first; /* private: where its records are listed */
    uint64_t count; /* records */
};

/** Fields are private, but `key` and `key_count` after qn_history_group. */
struct qn_history {
    struct qn_recorder_chunk **chunk; /* [chunk_count] */
    uint32_t *chunk_used;             /* [chunk_count] records */
    uint64_t chunk_count;
    uint64_t chunk_room;
    uint64_t count;             /* records */
    uint64_t *order;            /* [count] where each record is, by key */
    struct qn_history_key *key; /* [key_count], ascending by key */
    uint64_t key_count;
};

void qn_history_init(struct qn_history *h);
void qn_history_fini(struct qn_history *h);

/**
 * Move the records of a recorder into the history, without copying them. The
 * recorder is empty afterwards and can be used again; pointers into it stay
 * good until qn_history_fini.
 *
 * @return QN_OK; QN_EINVAL if t->full: the history would have a hole;
 *         QN_ENOMEM. On error the recorder is as before.
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

/** Order records as qn_history_records does. O(n log n), in place. */
void qn_records_sort(struct qn_record *records, size_t n);

#endif
