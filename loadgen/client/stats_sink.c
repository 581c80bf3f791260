#include "loadgen/client/stats_sink.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct qn_stats_sink {
    pthread_mutex_t lock;
    pthread_cond_t all_finished; /* waits on CLOCK_MONOTONIC */
    uint32_t running;            /* threads that have not finished */
    struct qn_stats total;
    struct qn_stats_sink_recent recent;
};

int qn_stats_sink_create(struct qn_stats_sink **out, uint32_t threads)
{
    QN_ASSERT(threads >= 1);
    struct qn_stats_sink *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return QN_ENOMEM;
    }
    c->running = threads;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->all_finished, &attr);
    pthread_condattr_destroy(&attr);
    *out = c;
    return QN_OK;
}

void qn_stats_sink_destroy(struct qn_stats_sink *c)
{
    if (c != NULL) {
        pthread_cond_destroy(&c->all_finished);
        pthread_mutex_destroy(&c->lock);
        free(c);
    }
}

void qn_stats_sink_hand_in(struct qn_stats_sink *c, struct qn_stats *stats,
                           qn_time_t now, bool finished)
{
    pthread_mutex_lock(&c->lock);
    qn_stats_merge(&c->total, stats);
    c->total.waiting = 0; /* a gauge, not a counter: it has no total */
    qn_stats_merge(&c->recent.stats, stats);
    if (c->recent.first == 0 || now < c->recent.first) {
        c->recent.first = now;
    }
    c->recent.last = QN_MAX(c->recent.last, now);
    if (finished) {
        QN_ASSERT(c->running > 0);
        c->running--;
        pthread_cond_signal(&c->all_finished);
    }
    pthread_mutex_unlock(&c->lock);
    qn_stats_clear(stats);
}

bool qn_stats_sink_wait(struct qn_stats_sink *c, qn_time_t until)
{
    const struct timespec t = {.tv_sec = (time_t)(until / QN_S),
                               .tv_nsec = (long)(until % QN_S)};
    pthread_mutex_lock(&c->lock);
    while (c->running > 0 && pthread_cond_timedwait(&c->all_finished, &c->lock,
                                                    &t) != ETIMEDOUT) {
    }
    bool done = c->running == 0;
    pthread_mutex_unlock(&c->lock);
    return done;
}

void qn_stats_sink_take(struct qn_stats_sink *c,
                        struct qn_stats_sink_recent *recent)
{
    pthread_mutex_lock(&c->lock);
    qn_stats_clear(&recent->stats);
    qn_stats_merge(&recent->stats, &c->recent.stats);
    recent->first = c->recent.first;
    recent->last = c->recent.last;
    qn_stats_clear(&c->recent.stats);
    pthread_mutex_unlock(&c->lock);
}

const struct qn_stats *qn_stats_sink_total(const struct qn_stats_sink *c)
{
    QN_ASSERT(c->running == 0);
    return &c->total;
}
