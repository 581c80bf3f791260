/*
 * The replica: creation, its turn, and the questions that other modules ask.
 *
 * Submissions arrive on one side (replica_queue.c), the log on the other
 * (replica_apply.c); a turn of the driver brings the log. A new incarnation
 * shows its store (`serving`) once it has caught up with the read index of its
 * start, so that no client waits at this replica for what others would answer.
 */
#include <stdlib.h>

#include "kvs/replica/replica_internal.h"

enum {
    ARGS_FIRST = 64,       /* arguments decoded without a larger table */
    RECLAIM_PER_TURN = 256 /* blocks freed beyond what a turn retired */
};

/* A read that waits for a read index may wait for a later one as well; the
 * earlier one may have been garbage that no replica could recognize
 * (qn_driver_read_index). */
static void index_again(struct qn_replica *r, qn_slot_t applied)
{
    struct pending *p =
        r->answered != r->tail ? qn_replica_pending_at(r, r->answered) : NULL;
    if (p != NULL && p->is_deferred_read && p->index > applied) {
        const qn_slot_t index = qn_driver_read_index(r->driver);
        p->index = QN_MIN(p->index, index);
    }
    if (!r->serving && r->serve_at != UINT64_MAX && r->serve_after == 0) {
        const qn_slot_t index = qn_driver_read_index(r->driver);
        r->serve_at = QN_MIN(r->serve_at, index);
    }
}

/* The store is up to date. */
static bool may_serve(struct qn_replica *r, qn_slot_t applied)
{
    return applied >= r->serve_at &&
           (r->serve_after == 0 ||
            qn_driver_read_view(r->driver).reached >= r->serve_after);
}

bool qn_replica_turn(struct qn_replica *r, qn_time_t now, uint64_t wall_ms)
{
    r->now = now;
    qn_driver_turn(r->driver, now, wall_ms);
    bool more = qn_replica_discards_turn(r);
    qn_replica_give_up_turn(r, qn_driver_applied(r->driver));
    if (r->store == NULL) {
        return more;
    }
    qn_slot_t applied = qn_driver_applied(r->driver);
    index_again(r, applied);
    r->serving = r->serving || may_serve(r, applied);
    /* Marks that are behind no write wait only for an index. */
    qn_replica_deferred_reads_run(r, applied);
    return qn_store_reclaim(r->store, RECLAIM_PER_TURN) || more;
}

int qn_replica_create(struct qn_replica **out, const struct qn_replica_opts *o)
{
    struct qn_replica *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return QN_ENOMEM;
    }
    r->config = *o->config;
    r->self = o->self;
    r->nodes = o->nodes;
    r->incarnation = o->incarnation;
    r->first = o->first;
    r->serve_at = UINT64_MAX;
    r->tick_at = QN_TIME_NEVER;
    r->no_client.oom = true;
    r->told = o->told;
    r->deferred_read = o->deferred_read;
    r->take = o->take;
    r->configured = o->configured;
    r->ctx = o->ctx;
    r->random = r->seed = o->seed;
    r->submits_first = o->submits_first;
    r->pending = calloc(PENDING_MAX, sizeof *r->pending);
    r->reply_len = calloc(PENDING_MAX, sizeof *r->reply_len);
    if (r->pending == NULL || r->reply_len == NULL ||
        !qn_replica_argv_grow(r, ARGS_FIRST)) {
        goto fail;
    }
    *out = r;
    return QN_OK;
fail:
    qn_replica_destroy(r);
    return QN_ENOMEM;
}

int qn_replica_begin(struct qn_replica *r, struct qn_driver *driver)
{
    QN_ASSERT(r->driver == NULL);
    r->driver = driver;
    return r->submits_first ? qn_replica_submit_init(r, r->seed) : QN_OK;
}

void qn_replica_destroy(struct qn_replica *r)
{
    if (r == NULL) {
        return;
    }
    for (; r->head != r->tail; r->head++) {
        free(qn_replica_pending_at(r, r->head)->args);
    }
    qn_store_destroy(r->store);
    for (uint32_t i = 0; i < DISCARDS; i++) {
        qn_store_destroy(r->discard[i]);
    }
    qn_buf_free(&r->replies);
    qn_buf_free(&r->head_buf);
    free(r->parts);
    free(r->argv);
    free(r->reply_len);
    free(r->pending);
    free(r);
}

struct qn_store *qn_replica_store(struct qn_replica *r)
{
    return r->serving ? r->store : NULL;
}

const struct qn_config *qn_replica_config(const struct qn_replica *r)
{
    return &r->config;
}

struct qn_driver *qn_replica_driver(struct qn_replica *r)
{
    return r->driver;
}

qn_slot_t qn_replica_applied(const struct qn_replica *r)
{
    return qn_driver_applied(r->driver);
}

qn_slot_t qn_replica_last_own(const struct qn_replica *r)
{
    return r->last_own;
}

uint64_t qn_replica_stamp_ms(const struct qn_replica *r)
{
    return r->stamp_ms;
}

const struct qn_replica_writes *qn_replica_writes(const struct qn_replica *r)
{
    return &r->own;
}

void qn_replica_writes_reset(struct qn_replica *r)
{
    qn_histogram_clear(&r->own.latency);
    r->own.clock = (struct qn_cmd_latency_sample){0};
    r->own.writes = r->own.batches = 0;
    r->own.unknown_timeout = r->own.unknown_snapshot = r->own.covered_ok = 0;
}

uint64_t qn_replica_pending(const struct qn_replica *r)
{
    return r->writes;
}

void qn_replica_limits(struct qn_replica *r, uint32_t lag_timeout,
                       uint32_t min_replicas)
{
    r->config.lag_timeout = lag_timeout;
    r->config.min_replicas_to_write = min_replicas;
    qn_driver_limits(r->driver, lag_timeout * QN_MS, min_replicas);
}

int qn_replica_send_peer_message(struct qn_replica *r, qn_node_t to,
                                 struct qn_slice bytes)
{
    return qn_driver_send_peer_message(r->driver, to, bytes);
}
