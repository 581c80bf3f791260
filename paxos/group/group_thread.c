/*
 * A group in a thread of its own (group_thread.h).
 *
 *     any thread                        the group's thread
 *     ---- push ----> queue ---- give ----> qn_group_propose
 *
 * The queue has a lock, held for a few instructions and never in a callback.
 * The thread sleeps on the group's descriptor and on one of its own (`bell`),
 * which is written to if something is asked while the thread sleeps: it says
 * that it will, in the same critical section in which it has found nothing to
 * give.
 *
 * What the group does not take now stays at the head, and is given again after
 * the next turn: whatever the group waits for comes with a turn. Meanwhile
 * those whose time has come are looked for in the whole queue.
 */
#include "paxos/group/group_thread.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/clock.h"
#include "paxos/group/fork_mark.h"

enum { LOOK_TURNS = 64 }; /* a status is at most so old, in turns */

enum kind { PROPOSAL, BARRIER, CHANGE };

struct request {
    struct request *next;
    enum kind kind;
    struct qn_group_change change; /* CHANGE */
    size_t len;                    /* PROPOSAL; else 0 */
    qn_time_t deadline;
    qn_group_done *done;
    void *ctx;
    uint8_t bytes[];
};

struct qn_group_thread {
    struct qn_fork_mark own;
    struct qn_group *group; /* the thread's */
    pthread_t thread;
    int bell;
    pthread_mutex_t lock; /* of all below: */
    struct request *first, **last;
    uint32_t requests, requests_max;
    uint64_t bytes, bytes_max;
    uint64_t pushed; /* so often */
    bool sleeps, stops;
    struct qn_group_status status;
    char why[QN_GROUP_WHY_MAX];
};

/* ---- the queue ----------------------------------------------------------- */

static bool room(const struct qn_group_thread *t, size_t len)
{
    return t->requests < t->requests_max &&
           (t->bytes == 0 ||
            (len <= t->bytes_max && t->bytes <= t->bytes_max - len));
}

static void ring(const struct qn_group_thread *t)
{
    const uint64_t one = 1;
    (void)!write(t->bell, &one, sizeof one);
}

static qn_time_t deadline_of(uint64_t timeout)
{
    const qn_time_t now = qn_clock_now();
    return timeout < QN_TIME_NEVER - now ? now + timeout : QN_TIME_NEVER;
}

/* `r` is taken. */
static int push(struct qn_group_thread *t, struct request *r)
{
    bool asleep = false;
    pthread_mutex_lock(&t->lock);
    int err = room(t, r->len) ? QN_OK : QN_EAGAIN;
    if (err == QN_OK) {
        *t->last = r;
        t->last = &r->next;
        t->requests++;
        t->pushed++;
        t->bytes += r->len;
        asleep = t->sleeps;
        t->sleeps = false; /* one ring is enough */
    }
    pthread_mutex_unlock(&t->lock);
    if (asleep) {
        ring(t);
    }
    if (err != QN_OK) {
        free(r);
    }
    return err;
}

/* With the lock: out of the queue. */
static struct request *take_out(struct qn_group_thread *t, struct request **at)
{
    struct request *r = *at;
    *at = r->next;
    if (t->last == &r->next) {
        t->last = at;
    }
    t->requests--;
    t->bytes -= r->len;
    return r;
}

static struct request *peek(struct qn_group_thread *t)
{
    pthread_mutex_lock(&t->lock);
    struct request *r = t->first;
    pthread_mutex_unlock(&t->lock);
    return r; /* only this thread takes out */
}

/* One whose time has come; NULL: none. @param next  Filled: the deadline that
 * comes first of the others. */
static struct request *take_late(struct qn_group_thread *t, qn_time_t now,
                                 qn_time_t *next)
{
    struct request *late = NULL;
    *next = QN_TIME_NEVER;
    pthread_mutex_lock(&t->lock);
    for (struct request **at = &t->first; *at != NULL; at = &(*at)->next) {
        if ((*at)->deadline <= now) {
            late = take_out(t, at);
            break;
        }
        *next = QN_MIN(*next, (*at)->deadline);
    }
    pthread_mutex_unlock(&t->lock);
    return late;
}

/* ---- the thread ---------------------------------------------------------- */

static uint64_t left(const struct request *r, qn_time_t now)
{
    return r->deadline == QN_TIME_NEVER ? QN_GROUP_FOREVER
           : r->deadline > now          ? r->deadline - now
                                        : 0;
}

static void end(struct request *r, int err)
{
    r->done(r->ctx, err, 0);
    free(r);
}

/* @return as of the group: QN_EAGAIN: not now. */
static int give_one(struct qn_group_thread *t, const struct request *r)
{
    const uint64_t timeout = left(r, qn_clock_now());
    switch (r->kind) {
    case PROPOSAL:
        return qn_group_propose(t->group, r->bytes, r->len, timeout, r->done,
                                r->ctx);
    case BARRIER:
        return qn_group_barrier(t->group, timeout, r->done, r->ctx);
    default:
        return qn_group_change(t->group, &r->change, timeout, r->done, r->ctx);
    }
}

/* All that the group takes. @return when the next one that waits is late. */
static qn_time_t give(struct qn_group_thread *t)
{
    struct request *r;
    qn_time_t next = QN_TIME_NEVER;
    while ((r = peek(t)) != NULL) {
        int err = give_one(t, r);
        if (err == QN_EAGAIN) {
            break;
        }
        pthread_mutex_lock(&t->lock);
        (void)take_out(t, &t->first);
        pthread_mutex_unlock(&t->lock);
        if (err != QN_OK) {
            end(r, err);
        } else {
            free(r);
        }
    }
    while (r != NULL && (r = take_late(t, qn_clock_now(), &next)) != NULL) {
        end(r, QN_ETIMEDOUT);
    }
    return next;
}

static void publish(struct qn_group_thread *t)
{
    struct qn_group_status st;
    qn_group_status(t->group, &st);
    pthread_mutex_lock(&t->lock);
    t->status = st;
    snprintf(t->why, sizeof t->why, "%s", qn_group_why(t->group));
    pthread_mutex_unlock(&t->lock);
}

/* ms, rounded up; -1: for ever. */
static int ms_until(qn_time_t at)
{
    const qn_time_t now = qn_clock_now();
    if (at == QN_TIME_NEVER) {
        return -1;
    }
    return at <= now ? 0 : (int)QN_MIN((at - now) / QN_MS + 1, 60000);
}

/* Until there is something to do. */
static void rest(struct qn_group_thread *t, int said, qn_time_t at)
{
    uint64_t rings;
    struct pollfd p[2] = {
        {.fd = said < 0 ? -1 : qn_group_fd(t->group), .events = POLLIN},
        {.fd = t->bell, .events = POLLIN}};
    (void)poll(p, 2, ms_until(at));
    (void)!read(t->bell, &rings, sizeof rings);
}

/* @return false: something was asked since `seen` were pushed. */
static bool lie_down(struct qn_group_thread *t, uint64_t seen)
{
    pthread_mutex_lock(&t->lock);
    t->sleeps = t->pushed == seen && !t->stops;
    bool sleeps = t->sleeps;
    pthread_mutex_unlock(&t->lock);
    return sleeps;
}

static uint64_t look(struct qn_group_thread *t, bool *stops)
{
    pthread_mutex_lock(&t->lock);
    uint64_t pushed = t->pushed;
    *stops = t->stops;
    pthread_mutex_unlock(&t->lock);
    return pushed;
}

static void *run(void *arg)
{
    struct qn_group_thread *t = arg;
    uint32_t turns = 0;
    for (;;) {
        bool stops;
        int said = qn_group_turn(t->group);
        const uint64_t seen = look(t, &stops); /* what comes later is seen */
        const qn_time_t late_at = give(t);
        if (stops) {
            break;
        }
        if (said == QN_GROUP_AGAIN && ++turns % LOOK_TURNS != 0) {
            continue;
        }
        publish(t);
        if (said != QN_GROUP_AGAIN && lie_down(t, seen)) {
            rest(t, said, late_at);
        }
    }
    qn_group_leave(t->group);
    for (struct request *r = peek(t); r != NULL; r = peek(t)) {
        pthread_mutex_lock(&t->lock);
        (void)take_out(t, &t->first);
        pthread_mutex_unlock(&t->lock);
        end(r, QN_EABORTED);
    }
    return NULL;
}

/* ---- begin and end ------------------------------------------------------- */

static void destroy(struct qn_group_thread *t)
{
    if (t->bell >= 0) {
        close(t->bell);
    }
    qn_fork_mark_drop(&t->own);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* Signals of the process are for its other threads. */
static int thread_make(struct qn_group_thread *t)
{
    sigset_t all, before;
    sigfillset(&all);
    int err = pthread_sigmask(SIG_SETMASK, &all, &before);
    QN_ASSERT(err == 0);
    err = pthread_create(&t->thread, NULL, run, t);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err == 0 ? QN_OK : QN_ENOMEM;
}

static int start(struct qn_group_thread *t,
                 const struct qn_group_thread_opts *o)
{
    t->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    int err = t->bell >= 0 ? qn_fork_mark_make(&t->own) : QN_EMFILE;
    if (err == QN_OK) {
        err = qn_group_join(&t->group, o->group);
    }
    if (err == QN_OK) {
        err = thread_make(t);
        if (err != QN_OK) {
            qn_group_leave(t->group);
        }
    }
    return err;
}

int qn_group_thread_start(struct qn_group_thread **out,
                          const struct qn_group_thread_opts *o)
{
    struct qn_group_thread *t = calloc(1, sizeof *t);
    int cancel;
    if (t == NULL) {
        return QN_ENOMEM;
    }
    t->last = &t->first;
    t->requests_max = o->requests != 0 ? o->requests : 1024;
    t->bytes_max = o->request_bytes != 0 ? o->request_bytes : (uint64_t)8 << 20;
    (void)pthread_mutex_init(&t->lock, NULL);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    int err = start(t, o);
    if (err == QN_OK) {
        *out = t;
    } else {
        destroy(t);
    }
    (void)pthread_setcancelstate(cancel, &cancel);
    return err;
}

void qn_group_thread_stop(struct qn_group_thread *t)
{
    int cancel;
    if (t == NULL || !qn_fork_mark_is_own(&t->own)) {
        return;
    }
    QN_ASSERT(!pthread_equal(pthread_self(), t->thread));
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&t->lock);
    t->stops = true;
    pthread_mutex_unlock(&t->lock);
    ring(t);
    int err = pthread_join(t->thread, NULL);
    QN_ASSERT(err == 0);
    destroy(t);
    (void)pthread_setcancelstate(cancel, &cancel);
}

/* ---- what is asked ------------------------------------------------------- */

static int ask(struct qn_group_thread *t, const struct request *like,
               const void *bytes)
{
    int cancel;
    if (!qn_fork_mark_is_own(&t->own)) {
        return QN_EPERM;
    }
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    struct request *r = malloc(sizeof *r + like->len);
    if (r != NULL) {
        *r = *like;
        if (r->len > 0) {
            memcpy(r->bytes, bytes, r->len);
        }
    }
    int err = r != NULL ? push(t, r) : QN_ENOMEM;
    (void)pthread_setcancelstate(cancel, &cancel);
    return err;
}

int qn_group_thread_propose(struct qn_group_thread *t, const void *bytes,
                            size_t len, uint64_t timeout, qn_group_done *done,
                            void *ctx)
{
    const struct request r = {.kind = PROPOSAL,
                              .len = len,
                              .deadline = deadline_of(timeout),
                              .done = done,
                              .ctx = ctx};
    if (len > QN_GROUP_COMMAND_MAX) {
        return QN_EMSGSIZE;
    }
    return len == 0 ? QN_EINVAL : ask(t, &r, bytes);
}

int qn_group_thread_barrier(struct qn_group_thread *t, uint64_t timeout,
                            qn_group_done *done, void *ctx)
{
    const struct request r = {.kind = BARRIER,
                              .deadline = deadline_of(timeout),
                              .done = done,
                              .ctx = ctx};
    return ask(t, &r, NULL);
}

int qn_group_thread_change(struct qn_group_thread *t,
                           const struct qn_group_change *c, uint64_t timeout,
                           qn_group_done *done, void *ctx)
{
    const struct request r = {.kind = CHANGE,
                              .change = *c,
                              .deadline = deadline_of(timeout),
                              .done = done,
                              .ctx = ctx};
    return ask(t, &r, NULL);
}

int qn_group_thread_status(struct qn_group_thread *t,
                           struct qn_group_status *out, char *why)
{
    if (!qn_fork_mark_is_own(&t->own)) {
        return QN_EPERM;
    }
    pthread_mutex_lock(&t->lock);
    *out = t->status;
    if (why != NULL) {
        memcpy(why, t->why, sizeof t->why);
    }
    pthread_mutex_unlock(&t->lock);
    return QN_OK;
}
