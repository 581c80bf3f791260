/*
 * Checks. Results of additions at one thread grow, and the count is what all
 * have added. A value names its thread and its number there. What one thread
 * takes from a queue has growing numbers of each other thread; and in all, what
 * was put is what was taken.
 */
#include "loadgen/sync/worker.h"

#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/random.h"

#define NUMBER_BITS 24 /* of a value; the thread has the 8 above */
#define NUMBER_MASK ((UINT32_C(1) << NUMBER_BITS) - 1)

#define PAGE_LINES 64u

/* ---- operations ---------------------------------------------------------- */

uint64_t qn_sync_worker_pause(struct qn_sync_worker *w)
{
    return qn_random_below(&w->seed, (uint64_t)w->o->pause_max + 1);
}

static uint64_t operate(struct qn_sync_worker *w, enum qn_subject_op op,
                        uint64_t value)
{
    w->operations++;
    if (w->ns == NULL) {
        return qn_subject_operate(w->s, &w->client, op, value);
    }
    const qn_time_t from = w->now();
    const uint64_t result = qn_subject_operate(w->s, &w->client, op, value);
    qn_histogram_record(w->ns, w->now() - from);
    return result;
}

static void add(struct qn_sync_worker *w)
{
    const uint64_t was = operate(w, QN_SUBJECT_ADD, 0);
    w->wrong = w->wrong || was < w->last;
    w->last = was + 1;
}

static void put(struct qn_sync_worker *w)
{
    const uint64_t number = (w->operations / 2 + 1) & NUMBER_MASK;
    const uint64_t value = (uint64_t)w->index << NUMBER_BITS | number;
    if (operate(w, QN_SUBJECT_PUT, value) != QN_SUBJECT_DONE) {
        w->failed++;
        return;
    }
    w->put_sum += value;
}

static void take(struct qn_sync_worker *w)
{
    const uint64_t value = operate(w, QN_SUBJECT_TAKE, 0);
    if (value > QN_SUBJECT_VALUES || value >> NUMBER_BITS >= w->o->threads) {
        w->failed++;
        return;
    }
    w->take_sum += value;
    if (w->s->type->kind == QN_SUBJECT_QUEUE) {
        uint32_t *last = &w->taken[value >> NUMBER_BITS];
        const uint32_t number = (uint32_t)value & NUMBER_MASK;
        /* Numbers return to 0 after 2^24 of them. */
        w->wrong = w->wrong || ((number - *last) & NUMBER_MASK) == 0 ||
                   ((number - *last) & NUMBER_MASK) > NUMBER_MASK / 2;
        *last = number;
    }
}

void qn_sync_worker_operate(struct qn_sync_worker *w)
{
    if (w->s->type->kind == QN_SUBJECT_COUNTER) {
        add(w);
    } else if (!w->holds) {
        put(w);
        w->holds = true;
    } else {
        take(w);
        w->holds = false;
    }
}

int qn_sync_worker_join(struct qn_sync_worker *w)
{
    w->rc = qn_subject_join(w->s, &w->client);
    w->joined = w->rc == QN_OK;
    return w->rc;
}

void qn_sync_worker_leave(struct qn_sync_worker *w)
{
    if (!w->joined) {
        return;
    }
    if (w->s->type->stats != NULL) {
        w->s->type->stats(w->s, &w->client, &w->stats);
    }
    qn_subject_leave(w->s, &w->client);
}

/* ---- what a round has given ---------------------------------------------- */

static void count(struct qn_sync_round *out, const struct qn_sync_worker *w)
{
    const uint64_t operations = w->operations - w->before;
    out->operations += operations;
    out->all += w->operations;
    out->failed += w->failed;
    out->least = QN_MIN(out->least, operations);
    out->most = QN_MAX(out->most, operations);
    qn_subject_stats_add(&out->stats, &w->stats);
}

/* What is left in the subject? */
static bool nothing_lost(struct qn_sync_workers *all, struct qn_sync_worker *by,
                         uint64_t additions)
{
    struct qn_subject *s = all->s;
    struct qn_subject_client *c = &by->client;
    uint64_t sum = 0;
    if (qn_subject_join(s, c) != QN_OK) {
        return false; /* a place was lost */
    }
    uint64_t value;
    if (s->type->kind == QN_SUBJECT_COUNTER) {
        sum = qn_subject_operate(s, c, QN_SUBJECT_ADD, 0) - additions;
    } else {
        while ((value = qn_subject_operate(s, c, QN_SUBJECT_TAKE, 0)) !=
               QN_SUBJECT_NOTHING) {
            sum -= value;
        }
        for (uint32_t i = 0; i < all->o->threads; i++) {
            sum += all->worker[i].put_sum - all->worker[i].take_sum;
        }
    }
    qn_subject_leave(s, c);
    return sum == 0;
}

int qn_sync_workers_check(struct qn_sync_workers *all,
                          struct qn_sync_worker *by, struct qn_sync_round *out)
{
    int rc = QN_OK;
    *out = (struct qn_sync_round){.least = UINT64_MAX};
    for (uint32_t i = 0; i < all->o->threads; i++) {
        const struct qn_sync_worker *w = &all->worker[i];
        count(out, w);
        rc = rc != QN_OK      ? rc
             : w->rc != QN_OK ? w->rc
             : w->wrong       ? QN_ECORRUPT
                              : QN_OK;
    }
    return rc == QN_OK && !nothing_lost(all, by, out->all) ? QN_ECORRUPT : rc;
}

/* ---- a round's workers --------------------------------------------------- */

static bool make_histogram(struct qn_sync_worker *w)
{
    if (w->o->ns != NULL) {
        w->owned = calloc(1, sizeof *w->owned);
        w->ns = w->owned;
    }
    return w->o->ns == NULL || w->owned != NULL;
}

/* A load waits for an earlier store whose address differs by a multiple of a
 * page; where this happens in each operation it takes up to a fifth of the
 * rate. So that one place does not decide for all rounds of a subject, workers
 * begin at another line of a page in each round. */
static bool place_workers(struct qn_sync_workers *all)
{
    const struct qn_sync_round_opts *o = all->o;
    const uint64_t shift =
        qn_random_split(o->seed, o->threads) % PAGE_LINES * QN_CACHELINE;
    all->memory = qn_subject_memory(shift + o->threads * sizeof *all->worker);
    if (all->memory != NULL) {
        all->worker = (void *)((char *)all->memory + shift);
    }
    return all->memory != NULL;
}

static int make_workers(struct qn_sync_workers *all)
{
    const struct qn_sync_round_opts *o = all->o;
    bool good = place_workers(all);
    for (uint32_t i = 0; good && i < o->threads; i++) {
        struct qn_sync_worker *w = &all->worker[i];
        w->o = o;
        w->s = all->s;
        w->index = i;
        w->seed = qn_random_split(o->seed, i);
        w->now = qn_clock_now;
        good = make_histogram(w);
    }
    return good ? QN_OK : QN_ENOMEM;
}

int qn_sync_workers_create(struct qn_sync_workers *all,
                           const struct qn_sync_round_opts *o)
{
    struct qn_subject_opts so = o->o;
    so.clients = o->threads + 1; /* and one that looks at what is left */
    so.capacity = 2 * so.clients;
    *all = (struct qn_sync_workers){.o = o};
    int rc = qn_subject_create(&all->s, &o->subject, &so);
    rc = rc == QN_OK ? make_workers(all) : rc;
    if (rc != QN_OK) {
        qn_sync_workers_destroy(all);
    }
    return rc;
}

void qn_sync_workers_destroy(struct qn_sync_workers *all)
{
    for (uint32_t i = 0; all->worker != NULL && i < all->o->threads; i++) {
        struct qn_histogram *ns = all->worker[i].owned;
        if (ns != NULL) {
            qn_histogram_merge(all->o->ns, ns);
        }
        free(ns);
    }
    free(all->memory);
    qn_subject_destroy(all->s);
    *all = (struct qn_sync_workers){.o = NULL};
}
