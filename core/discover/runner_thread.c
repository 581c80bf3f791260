/*
 * The threads of the runner: each pins itself, makes its seat, and then does
 * the pair_runs that it is told.
 *
 * In a pair_run both threads clear their own seats (no other thread writes
 * there between pair_runs), say that they have arrived, wait for each other,
 * and open a queuepair in a new incarnation. Core a, the lower one, decides:
 * what is a warm-up, which rounds are noted, when it is enough.
 */
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/bits.h"
#include "core/discover/runner_internal.h"

#define WARM_UP_NS   (300 * QN_US) /* cores wake, lines move, frequency rises */
#define VISIT_NS     (20 * QN_MS)  /* at most; a slow level takes 2 ms */
#define VISIT_ROUNDS 6u

struct schedule {
    struct qn_pair_run v;
    struct qn_runner *r;
    size_t pair;
    qn_time_t begin;
    uint32_t noted;
};

/* Core a: keep the round or not. One in which a thread lost its core has no
 * probe any more (so it is on no level), and is kept only if there is none yet:
 * better a number that is called unstable than none. @return whether there is
 * another one. */
static bool note(struct schedule *t, struct qn_round *round, bool disturbed)
{
    struct qn_runner *r = t->r;
    struct qn_runner_pair *p = &r->pair[t->pair];
    qn_time_t since = qn_clock_now() - t->begin;
    bool keep = disturbed ? p->rounds == 0 : since > WARM_UP_NS;
    if (keep && p->rounds < r->rounds_max) {
        if (disturbed) {
            memset(round->before, 0, sizeof round->before);
        }
        r->round[t->pair * r->rounds_max + p->rounds++] = *round;
        t->noted++;
    }
    return t->noted < VISIT_ROUNDS && since < VISIT_NS &&
           p->rounds < r->rounds_max;
}

static int rounds(struct schedule *t)
{
    uint32_t more = 1;
    int rc = qn_pair_run_meet(&t->v);
    while (rc == QN_OK && more != 0) {
        struct qn_round round = {0};
        bool disturbed = false;
        rc = qn_pair_run_round(&t->v, &round, &disturbed);
        if (rc == QN_OK && t->v.first) {
            more = note(t, &round, disturbed);
            qn_copy_out(&t->v.tx->go_on, &more, sizeof more);
        }
        rc = rc ? rc : qn_pair_run_meet(&t->v); /* announces go_on */
        if (rc == QN_OK && !t->v.first) {
            qn_copy_in(&more, &t->v.rx->go_on, sizeof more);
        }
    }
    return rc;
}

static bool barrier(struct qn_runner_worker *w,
                    const struct qn_runner_worker *partner)
{
    memset(w->lane_memory, 0, w->r->lane_memory_bytes);
    /* release: the seat is clear; pairs with the acquire below. */
    qn_store(&w->arrived, w->pair_run, QN_RELEASE);
    while (qn_load(&partner->arrived, QN_ACQUIRE) < w->pair_run) {
        /* relaxed: carries nothing. */
        if (qn_load(&w->r->stop, QN_RELAXED) != 0) {
            return false;
        }
        qn_pause();
    }
    return true;
}

static int pair_run(struct qn_runner_worker *w)
{
    struct qn_runner *r = w->r;
    struct qn_runner_worker *partner = &r->worker[w->partner];
    bool first = w->core < w->partner;
    if (!barrier(w, partner)) {
        return QN_EAGAIN;
    }
    struct schedule t = {.v = {.tx = partner->lane_memory,
                               .rx = w->lane_memory,
                               .stop = &r->stop,
                               .first = first,
                               .overhead = qn_pair_run_overhead()},
                         .r = r,
                         .pair = qn_runner_index(r, QN_MIN(w->core, w->partner),
                                                 QN_MAX(w->core, w->partner)),
                         .begin = qn_clock_now()};
    const struct qn_qp_opts o = {.tx = partner->lane_memory + 1,
                                 .rx = w->lane_memory + 1,
                                 .cells = QN_RUNNER_CELLS,
                                 .self = first ? 0 : 1,
                                 .peer = first ? 1 : 0,
                                 .self_inc = w->pair_run,
                                 .peer_inc = w->pair_run};
    int rc = r->opts->transport->open(&t.v.qp, &o);
    if (rc == QN_OK) {
        rc = rounds(&t);
        qn_qp_close(t.v.qp);
    }
    return rc;
}

/* ---- threads ---- */

static int pin(uint32_t cpu)
{
    cpu_set_t *set = CPU_ALLOC(cpu + 1);
    size_t bytes = CPU_ALLOC_SIZE(cpu + 1);
    if (set == NULL) {
        return QN_ENOMEM;
    }
    CPU_ZERO_S(bytes, set);
    CPU_SET_S(cpu, bytes, set);
    int rc = sched_setaffinity(0, bytes, set);
    CPU_FREE(set);
    return rc == 0 ? QN_OK : QN_EPERM;
}

/* The seat, touched by its core first. */
static int make_seat(struct qn_runner_worker *w)
{
    void *p = mmap(NULL, w->r->lane_memory_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        return QN_ENOMEM;
    }
    memset(p, 0, w->r->lane_memory_bytes);
    w->lane_memory = p;
    return QN_OK;
}

/* Under the lock: the thread has done what it had to. */
static void report(struct qn_runner *r, int rc)
{
    if (rc != QN_OK && r->status == QN_OK) {
        r->status = rc;
    }
    if (rc != QN_OK) {
        /* A partner must not wait for us. relaxed: carries nothing. */
        qn_store(&r->stop, 1, QN_RELAXED);
    }
    if (--r->busy == 0) {
        pthread_cond_signal(&r->done);
    }
}

void *qn_runner_live(void *arg)
{
    struct qn_runner_worker *w = arg;
    struct qn_runner *r = w->r;
    int rc = pin(r->m->core[w->core].os);
    rc = rc != QN_OK ? rc : make_seat(w);
    pthread_mutex_lock(&r->lock);
    report(r, rc);
    while (!r->quit) {
        if (w->pair_run == w->did) {
            pthread_cond_wait(&r->go, &r->lock);
            continue;
        }
        pthread_mutex_unlock(&r->lock);
        rc = pair_run(w);
        pthread_mutex_lock(&r->lock);
        w->did = w->pair_run;
        report(r, rc);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}
