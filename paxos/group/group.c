/*
 * A group's turn, and the one descriptor that says when it is due.
 *
 * The descriptor is an epoll instance over the doorbell, the listening socket,
 * connections and a timer. A turn ends as "armed" only when the doorbell is
 * armed, the timer is set to the next deadline, and nothing is readable: so a
 * host that waits for an edge misses none. Whatever is asked between turns sets
 * the timer to now.
 *
 * While one turn follows another, the descriptors are looked at every
 * LOOK_EVERY: the channels between members are memory, and need no look. To arm
 * takes two system calls, and to wake takes one of the peer that rings. So a
 * member that has done something says "again" for a while before it arms:
 * `spin_ns`, if it has its core; if it shares one, `yields` times, and lets the
 * others go first, since what it waits for may be theirs. These turns are the
 * driver's only: what comes is found sooner so, and the code of a command stays
 * in the first cache. The turn that arms is a whole one, so is each that
 * something else is due in, and there is one each LOOK_EVERY or LOOKS turns,
 * whichever comes first.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/earlier.h"
#include "core/wait/park.h"
#include "paxos/group/group_internal.h"
#include "paxos/group/idle_yield.h"
#include "paxos/member/member_formats.h"

enum {
    CAPACITY = 8,       /* unless it is chosen */
    LOOK_EVERY = 50000, /* ns */
    LOOKS = 64,         /* turns of the driver only, for a whole one */
    EVENTS = 3 + QN_GROUP_LINKS_MAX + QN_NODES_MAX,
};

/* ---- begin and end ------------------------------------------------------- */

void qn_group_defaults(struct qn_group_opts *o)
{
    o->proposals = o->proposals != 0 ? o->proposals : 1024;
    o->proposal_bytes =
        o->proposal_bytes != 0 ? o->proposal_bytes : (uint64_t)8 << 20;
    o->barriers = o->barriers != 0 ? o->barriers : 1024;
    o->members = o->members != 0 ? o->members : 1;
    const uint32_t most =
        o->process_acceptor ? o->members : QN_MAX(o->members, CAPACITY);
    o->capacity = o->capacity != 0 ? o->capacity : most;
}

static bool printable(const char *s)
{
    size_t len = s != NULL ? strlen(s) : 0;
    for (size_t i = 0; i < len; i++) {
        if (s[i] < ' ' || s[i] > '~') {
            return false;
        }
    }
    return len > 0 && len < QN_DIALOGUE_NAME;
}

bool qn_group_can_serve(const struct qn_group_service *s, uint32_t seats)
{
    bool gives = s->begin != NULL && s->next != NULL && s->end != NULL &&
                 s->read != NULL && s->finish != NULL && s->install != NULL &&
                 s->abandon != NULL;
    return s->apply != NULL && (gives || seats == 1);
}

static void hello_make(struct qn_group *g)
{
    snprintf(g->hello.application, sizeof g->hello.application, "%s",
             g->o.application);
    snprintf(g->hello.transport, sizeof g->hello.transport, "%s",
             g->o.transport->name);
    g->hello.version = g->o.version;
    g->hello.formats = (uint64_t)QN_MEMBER_FORMAT_OUTBOX << 48 |
                       (uint64_t)QN_MEMBER_FORMAT_COMMONS << 32 |
                       (uint64_t)QN_MEMBER_FORMAT_MESSAGES << 16 |
                       (uint64_t)QN_MEMBER_FORMAT_TRANSFER;
}

static int descriptors_open(struct qn_group *g)
{
    g->epoll = epoll_create1(EPOLL_CLOEXEC);
    g->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (g->epoll < 0 || g->timer < 0) {
        return QN_EMFILE;
    }
    return qn_group_watch(g, g->timer, QN_WATCH_TIMER);
}

int qn_group_open_place(struct qn_group *g)
{
    return g->o.socket_fd != 0
               ? qn_rendezvous_open_at(&g->rendezvous, g->o.socket_fd)
               : qn_rendezvous_open(&g->rendezvous, g->name);
}

void qn_group_part(struct qn_group *g)
{
    if (g->rendezvous != NULL && qn_rendezvous_fd(g->rendezvous) >= 0) {
        (void)epoll_ctl(g->epoll, EPOLL_CTL_DEL,
                        qn_rendezvous_fd(g->rendezvous), NULL);
    }
    qn_rendezvous_close(g->rendezvous);
    g->rendezvous = NULL;
}

static void destroy(struct qn_group *g)
{
    qn_group_part(g);
    if (g->timer >= 0) {
        close(g->timer);
    }
    if (g->epoll >= 0) {
        close(g->epoll);
    }
    qn_waits_fini(&g->proposals);
    qn_waits_fini(&g->barriers);
    qn_fork_mark_drop(&g->own);
    qn_group_threads_fini(g);
    const struct qn_alloc *a = qn_alloc_or_malloc(g->o.alloc);
    qn_alloc_free(a, g);
}

static int make(struct qn_group *g)
{
    const struct qn_alloc *a = &g->alloc.alloc;
    int err = qn_waits_init(&g->proposals, g->o.proposals, g->o.proposal_bytes,
                            QN_EUNKNOWN, a);
    if (err == QN_OK) {
        err = qn_group_threads_init(g);
    }
    if (err == QN_OK) {
        err = qn_fork_mark_make(&g->own);
    }
    if (err == QN_OK) {
        err = qn_waits_init(&g->barriers, g->o.barriers, 0, QN_ETIMEDOUT, a);
    }
    if (err == QN_OK) {
        err = descriptors_open(g);
    }
    if (err == QN_OK) {
        err = qn_group_open_place(g);
    }
    if (err == QN_OK) {
        qn_group_kick(g); /* the first turn is due */
    }
    return err;
}

static int join(struct qn_group **out, const struct qn_group_opts *o)
{
    struct qn_group_opts full = *o;
    struct qn_dialogue_layout l;
    qn_group_defaults(&full);
    if (qn_group_layout(&full, &l) != QN_OK || !printable(o->application) ||
        (o->name != NULL) == (o->socket_fd != 0) ||
        (o->name != NULL && strlen(o->name) > QN_RENDEZVOUS_NAME_MAX) ||
        !qn_group_can_serve(&o->service, full.capacity) ||
        (o->feed != NULL && !qn_feed_valid(o->feed))) {
        return QN_EINVAL;
    }
    const uint64_t limit = o->alloc_limit;
    const struct qn_alloc *a = qn_alloc_or_malloc(o->alloc);
    struct qn_group *g =
        limit == 0 || limit >= sizeof *g ? qn_alloc_zeroed(a, sizeof *g) : NULL;
    if (g == NULL) {
        return QN_ENOMEM;
    }
    g->o = full;
    if (limit != 0) {
        qn_alloc_limit_init(&g->limit, a, limit - sizeof *g);
    }
    qn_alloc_unmet_init(&g->alloc, limit != 0 ? &g->limit.alloc : a);
    if (o->feed != NULL) {
        g->feed = *o->feed;
        g->o.feed = &g->feed;
    }
    if (o->name != NULL) {
        memcpy(g->name, o->name, strlen(o->name));
    }
    g->epoll = g->timer = g->commons_fd = -1;
    g->timer_at = QN_TIME_NEVER;
    for (uint32_t i = 0; i < QN_GROUP_LINKS_MAX; i++) {
        g->link[i].fd = -1;
    }
    for (qn_node_t i = 0; i < QN_NODES_MAX; i++) {
        g->doorbell_fd[i] = g->end_fd[i] = -1;
    }
    hello_make(g);
    int err = make(g);
    if (err != QN_OK) {
        destroy(g);
        return err;
    }
    *out = g;
    return QN_OK;
}

int qn_group_join(struct qn_group **out, const struct qn_group_opts *o)
{
    int cancel;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    int err = join(out, o);
    (void)pthread_setcancelstate(cancel, &cancel);
    return err;
}

static void leave(struct qn_group *g)
{
    QN_ASSERT(!g->turning);
    qn_group_thread_remove(g);
    qn_group_drop(g);
    qn_waits_upto(&g->proposals, UINT64_MAX, QN_EUNKNOWN);
    qn_waits_upto(&g->barriers, UINT64_MAX, QN_EABORTED);
    g->step = QN_STEP_FAILED; /* callbacks may ask, in vain */
    g->err = QN_EABORTED;
    g->turning = true;
    (void)qn_waits_deliver(&g->proposals, 0);
    (void)qn_waits_deliver(&g->barriers, 0);
    qn_group_change_end(g, false);
    destroy(g);
}

void qn_group_leave(struct qn_group *g)
{
    struct qn_group_call c;
    if (g == NULL || !qn_fork_mark_is_own(&g->own) || g->jumped) {
        return; /* a child of fork has none of it */
    }
    qn_group_call_begin(g, &c);
    leave(g);
    qn_group_call_end(&c);
}

int qn_group_fail(struct qn_group *g, int err, const char *why)
{
    QN_ASSERT(err < 0);
    qn_group_drop(g);
    qn_group_part(g);
    g->step = QN_STEP_FAILED;
    g->err = err;
    snprintf(g->why, sizeof g->why, "%s", why);
    return err;
}

/* ---- the descriptor ------------------------------------------------------ */

int qn_group_fd(const struct qn_group *g)
{
    return g->epoll;
}

int qn_group_watch(struct qn_group *g, int fd, uint32_t what)
{
    struct epoll_event e = {.events = EPOLLIN, .data = {.u32 = what}};
    return epoll_ctl(g->epoll, EPOLL_CTL_ADD, fd, &e) == 0 ? QN_OK : QN_ENOMEM;
}

void qn_group_unwatch(struct qn_group *g, int *fd)
{
    if (*fd >= 0) {
        (void)epoll_ctl(g->epoll, EPOLL_CTL_DEL, *fd, NULL);
        close(*fd);
    }
    *fd = -1;
}

static void timer_set(struct qn_group *g, qn_time_t at)
{
    struct itimerspec t = {0}; /* never */
    if (at == g->timer_at) {
        return;
    }
    if (at != QN_TIME_NEVER) {
        t.it_value = (struct timespec){.tv_sec = (time_t)(at / QN_S),
                                       .tv_nsec = (long)(at % QN_S)};
    }
    int err = timerfd_settime(g->timer, TFD_TIMER_ABSTIME, &t, NULL);
    QN_ASSERT(err == 0);
    g->timer_at = at;
}

void qn_group_kick(struct qn_group *g)
{
    g->asked = true;
    g->looks = 0;
    if (!g->kicked) {
        g->kicked = true;
        timer_set(g, 1);
    }
}

static void on_event(struct qn_group *g, uint32_t what, qn_time_t now)
{
    uint64_t ticks;
    switch (what) {
    case QN_WATCH_TIMER:
        (void)!read(g->timer, &ticks, sizeof ticks);
        g->timer_at = QN_TIME_NEVER; /* it is not set any more */
        break;
    case QN_WATCH_LISTENER:
        qn_group_links_accept(g, now);
        break;
    case QN_WATCH_DOORBELL:
        if (g->driver != NULL) {
            qn_member_drain(g->member);
            /* It may say that one has ended, which is marked then. */
            qn_member_look(g->member, false);
        }
        break;
    default:
        if (what >= QN_WATCH_ENDS) {
            qn_group_ends_hear(g, what - QN_WATCH_ENDS);
        } else {
            qn_group_link_hear(g, &g->link[what - QN_WATCH_LINKS]);
        }
    }
}

/* All that has arrived, for BEGIN counts before what is said on other links. */
static void look(struct qn_group *g, qn_time_t now)
{
    struct epoll_event e[EVENTS];
    int n = epoll_wait(g->epoll, e, EVENTS, 0);
    for (int i = 0; i < n && g->step != QN_STEP_FAILED; i++) {
        on_event(g, e[i].data.u32, now);
    }
}

static bool readable(const struct qn_group *g)
{
    struct pollfd p = {.fd = g->epoll, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

/* ---- a turn -------------------------------------------------------------- */

/* The next whole turn is due at `at`, or after `looks` turns of the driver
 * only, whichever comes first. */
static int look_again(struct qn_group *g, qn_time_t at, uint32_t looks)
{
    g->looks = looks;
    g->due = QN_MIN(at, g->poll_at);
    return QN_GROUP_AGAIN;
}

/* It has been at rest for less than its host wants it to wait, awake. */
static bool lingers(const struct qn_group *g, qn_time_t now)
{
    return now < g->spin_until || g->yields < g->o.yields;
}

/* What is due by now costs no system call: the next turn does it. While it has
 * just done something, turns of the driver follow, and say when it rests. */
static int rest(struct qn_group *g, qn_time_t now, qn_time_t at)
{
    const bool ended =
        qn_waits_ended(&g->proposals) || qn_waits_ended(&g->barriers);
    if (at <= now) {
        return QN_GROUP_AGAIN;
    }
    if (g->driver != NULL && (ended || lingers(g, now))) {
        return look_again(g, at, LOOKS);
    }
    if (ended) {
        return QN_GROUP_AGAIN;
    }
    if (g->driver != NULL) {
        qn_member_arm(g->member);
        if (qn_member_again(g->member)) {
            qn_member_wake(g->member);
            return QN_GROUP_AGAIN;
        }
    }
    timer_set(g, at);
    g->armed = true;
    g->kicked = false;
    return QN_GROUP_ARMED;
}

static void wake(struct qn_group *g)
{
    if (g->armed && g->driver != NULL) {
        qn_member_wake(g->member);
    }
    g->armed = false;
}

static int turn(struct qn_group *g, qn_time_t now)
{
    const bool all = g->armed || g->driver == NULL;
    qn_time_t at = QN_TIME_NEVER;
    wake(g);
    g->kicked = true; /* what is asked from here on needs no wake-up */
    if (all || now >= g->poll_at) {
        g->poll_at = now + LOOK_EVERY;
        look(g, now);
    }
    if (g->step != QN_STEP_RUN && g->step != QN_STEP_FAILED) {
        (void)qn_group_enter_turn(g, now);
        at = g->retry_at;
    }
    if (g->step == QN_STEP_RUN) {
        const qn_time_t look_at = qn_group_ends_turn(g, now);
        at = qn_group_serve_turn(g, now);
        at = QN_MIN(at, look_at);
        at = qn_time_earlier(at, qn_group_tell_rest(g, now));
    }
    if (g->step == QN_STEP_FAILED) {
        return g->err;
    }
    at = qn_time_earlier(at, qn_group_links_turn(g, now));
    int said = rest(g, now, at);
    if (said == QN_GROUP_ARMED && readable(g)) {
        return QN_GROUP_AGAIN; /* it stays armed, so the next turn looks */
    }
    return said;
}

static int whole_turn(struct qn_group *g)
{
    QN_ASSERT(!g->turning); /* not from inside a callback */
    if (!g->listed) {
        qn_group_thread_add(g);
    }
    g->turning = true;
    g->now = qn_clock_now();
    int said = turn(g, g->now);
    if (g->step == QN_STEP_FAILED) {
        qn_waits_upto(&g->proposals, UINT64_MAX, QN_EUNKNOWN);
        qn_waits_upto(&g->barriers, UINT64_MAX, QN_EABORTED);
        (void)qn_waits_deliver(&g->proposals, 0);
        (void)qn_waits_deliver(&g->barriers, 0);
        qn_group_change_end(g, g->err == QN_EREMOVED);
    }
    g->now = 0;
    g->turning = false;
    return said;
}

static void turn_between(struct qn_group *g, qn_time_t now)
{
    QN_ASSERT(!g->turning);
    g->turning = true;
    g->now = now;
    g->due = QN_MIN(g->due, qn_group_serve_between(g, now));
    g->now = 0;
    g->turning = false;
}

/* Is there something for a turn of the driver? */
static bool has_something(const struct qn_group *g)
{
    return g->asked || qn_waits_ended(&g->proposals) ||
           qn_waits_ended(&g->barriers) || qn_member_again(g->member);
}

/* Let other threads of this core go first. */
static void yield(struct qn_group *g, qn_time_t now)
{
    if (qn_idle_yield_of(
            qn_driver_has_role(g->driver), qn_waits_open(&g->proposals),
            qn_waits_open(&g->barriers)) == QN_IDLE_YIELD_GUARDED) {
        qn_member_yield(g->member, now);
    } else {
        qn_park_yield();
    }
}

/* A turn of the driver only, if it has something to do. @return false: a whole
 * one is due, which arms if there is nothing. */
static bool between(struct qn_group *g)
{
    struct qn_group_call c;
    const qn_time_t now = qn_clock_now();
    if (now >= g->due) {
        g->looks = 0;
        return false;
    }
    g->looks--;
    if (has_something(g)) {
        qn_group_call_begin(g, &c);
        turn_between(g, now);
        qn_group_call_end(&c);
    } else if (now >= g->spin_until) {
        if (g->yields >= g->o.yields) {
            g->looks = 0;
            return false;
        }
        g->yields++;
        yield(g, now);
    }
    return true;
}

int qn_group_turn(struct qn_group *g)
{
    struct qn_group_call c;
    if (!qn_fork_mark_is_own(&g->own)) {
        return QN_EPERM;
    }
    if (g->step == QN_STEP_FAILED || g->jumped) {
        return g->jumped ? QN_EABORTED : g->err;
    }
    if (g->looks > 0 && between(g)) {
        return QN_GROUP_AGAIN;
    }
    qn_group_call_begin(g, &c);
    int said = whole_turn(g);
    qn_group_call_end(&c);
    return said;
}

const char *qn_group_why(const struct qn_group *g)
{
    return g->why;
}
