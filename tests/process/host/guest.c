#include "tests/process/host/guest.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "tests/process/host/board.h"
#include "tests/process/host/child.h"
#include "tests/process/host/draw.h"
#include "tests/process/host/say.h"
#include "tests/process/host/station.h"
#include "transports/registry.h"

#define SECOND ((uint64_t)1000000000) /* ns */

enum { MEMBERS = 2 * BOARD_PLACES, PARTS = 3, TAG = 16 };

struct state {
    uint64_t digest, commands, of_seat[MEMBERS];
};

struct guest {
    struct qn_group *group;         /* one of the two: */
    struct qn_group_thread *thread; /* of the library */
    struct state now, cut, built;
    size_t given, taken; /* bytes of the cut, and of what is built */
    bool spoils;         /* the next snapshot that it reads */
    bool has_locked;
    uint32_t on_thread;
    bool due;
    pthread_mutex_t lock; /* of what follows; not held in calls */
    uint64_t wanted, open;
    uint64_t unknown, late; /* ends of proposals and barriers with a timeout */
    char tag[TAG];          /* of the order to do some; empty: none */
};

static struct guest guests[GUESTS_MAX];

/* ---- what it replicates -------------------------------------------------- */

/* In a callback. */
static void inside(enum child_where where)
{
    child_maybe(where);
    station_noise();
}

static int on_apply(void *ctx, const struct qn_group_command *c,
                    uint64_t *result)
{
    struct guest *g = ctx;
    const uint8_t *b = c->bytes;
    if (g->on_thread != 0 && !g->has_locked) { /* the library's thread */
        board_lock(g->on_thread);
        g->has_locked = true;
    }
    inside(CHILD_APPLY);
    if (draw_one_of(200)) {
        return QN_ENOMEM; /* it is asked again */
    }
    for (size_t i = 0; i < c->len; i++) {
        g->now.digest = (g->now.digest ^ b[i]) * UINT64_C(1099511628211);
    }
    g->now.commands++;
    g->now.of_seat[c->seat]++;
    *result = g->now.digest;
    return QN_OK;
}

static int on_begin(void *ctx)
{
    struct guest *g = ctx;
    inside(CHILD_BEGIN);
    g->cut = g->now;
    g->given = 0;
    return draw_one_of(4) ? QN_EAGAIN : QN_OK;
}

static int on_next(void *ctx, void *bytes, size_t cap, size_t *len)
{
    struct guest *g = ctx;
    inside(CHILD_NEXT);
    *len = QN_MIN(sizeof g->cut - g->given, sizeof g->cut / PARTS);
    QN_ASSERT(cap >= *len);
    memcpy(bytes, (const char *)&g->cut + g->given, *len);
    g->given += *len;
    return *len > 0 ? QN_OK : QN_ENOENT;
}

static void on_end(void *ctx)
{
    (void)ctx;
    inside(CHILD_END);
}

static int on_read(void *ctx, const void *bytes, size_t len)
{
    struct guest *g = ctx;
    inside(CHILD_READ);
    if (g->spoils) {
        g->spoils = false;
        return QN_EIO;
    }
    QN_ASSERT(len <= sizeof g->built - g->taken);
    memcpy((char *)&g->built + g->taken, bytes, len);
    g->taken += len;
    return QN_OK;
}

static int on_finish(void *ctx)
{
    struct guest *g = ctx;
    inside(CHILD_FINISH);
    return g->taken == sizeof g->built ? QN_OK : QN_ECORRUPT;
}

static void on_install(void *ctx)
{
    struct guest *g = ctx;
    inside(CHILD_INSTALL);
    g->now = g->built;
    g->taken = 0;
}

static void on_abandon(void *ctx)
{
    struct guest *g = ctx;
    inside(CHILD_ABANDON);
    g->taken = 0;
}

static void on_changed(void *ctx)
{
    struct guest *g = ctx;
    struct qn_group_status st;
    struct qn_group_seat seat;
    inside(CHILD_CHANGED);
    if (g->group != NULL) {
        qn_group_status(g->group, &st);
        qn_group_seat(g->group, draw(MEMBERS + 1), &seat);
    }
}

static void on_line(void *ctx, enum qn_log_level level, const char *line)
{
    (void)ctx;
    (void)level;
    (void)line;
    inside(CHILD_LOG);
}

/* ---- what is asked of it ------------------------------------------------- */

/* With the lock. */
static void say_if_done(struct guest *g)
{
    if (g->tag[0] != '\0' && g->wanted == 0 && g->open == 0) {
        say("%s unknown %" PRIu64 " late %" PRIu64 "\n", g->tag, g->unknown,
            g->late);
        g->tag[0] = '\0';
    }
}

/* A thread of the library says here that it has not begun: behind one that is
 * beyond its timeout. */
static bool may_end_so(const struct guest *g, int err, bool has_timeout)
{
    const bool late = err == QN_EUNKNOWN || err == QN_ETIMEDOUT;
    return err == QN_OK || (late && has_timeout) ||
           (err == QN_ENOQUORUM && g->thread != NULL);
}

static void ended(struct guest *g, int err, bool has_timeout)
{
    inside(CHILD_DONE);
    if (!may_end_so(g, err, has_timeout)) {
        say_wrong(has_timeout ? "an end" : "an end without a timeout", err);
    }
    pthread_mutex_lock(&g->lock);
    QN_ASSERT(g->open > 0);
    g->open--;
    g->unknown += err == QN_EUNKNOWN;
    g->late += err == QN_ETIMEDOUT;
    say_if_done(g);
    pthread_mutex_unlock(&g->lock);
    if (draw_one_of(3)) {
        guest_begin_some(g);
    }
}

static void on_done(void *ctx, int err, uint64_t result)
{
    (void)result;
    ended(ctx, err, false);
}

static void on_done_in_time(void *ctx, int err, uint64_t result)
{
    (void)result;
    ended(ctx, err, true);
}

/* It is a voter already, or its vote is on its way, or the leader dies. */
static void on_change(void *ctx, int err, uint64_t result)
{
    (void)result;
    if (err == QN_EINVAL || err == QN_EREMOVED || err == QN_EABORTED) {
        say_wrong("a change", err);
    }
    ended(ctx, QN_OK, true);
}

static int propose(struct guest *g, uint64_t timeout, qn_group_done *done)
{
    uint8_t bytes[200];
    const size_t len = 1 + draw(sizeof bytes);
    memset(bytes, (int)draw(256), len);
    return g->thread != NULL
               ? qn_group_thread_propose(g->thread, bytes, len, timeout, done,
                                         g)
               : qn_group_propose(g->group, bytes, len, timeout, done, g);
}

static int barrier(struct guest *g, uint64_t timeout, qn_group_done *done)
{
    return g->thread != NULL
               ? qn_group_thread_barrier(g->thread, timeout, done, g)
               : qn_group_barrier(g->group, timeout, done, g);
}

static int change(struct guest *g)
{
    struct qn_group_status st;
    qn_group_status(g->group, &st);
    const struct qn_group_change c = {.seat = st.seat, .votes = true};
    return st.phase == QN_GROUP_SERVING
               ? qn_group_change(g->group, &c, 5 * SECOND, on_change, g)
               : QN_EAGAIN;
}

/* Most have no timeout: so nothing but the group ends them. */
static int begin_one(struct guest *g)
{
    const uint32_t kind = draw(32);
    const bool timed = kind % 4 == 0;
    const uint64_t timeout = !timed           ? QN_GROUP_FOREVER
                             : draw_one_of(2) ? SECOND
                                              : SECOND / 5000;
    qn_group_done *done = timed ? on_done_in_time : on_done;
    if (kind == 1 && g->group != NULL) {
        return change(g);
    }
    return kind < 24 ? propose(g, timeout, done) : barrier(g, timeout, done);
}

/* @return false: there is none to begin. */
static bool take_one(struct guest *g)
{
    pthread_mutex_lock(&g->lock);
    const bool some = g->wanted > 0;
    g->wanted -= some;
    g->open += some;
    pthread_mutex_unlock(&g->lock);
    return some;
}

static void give_back_one(struct guest *g)
{
    pthread_mutex_lock(&g->lock);
    g->wanted++;
    g->open--;
    pthread_mutex_unlock(&g->lock);
}

void guest_begin_some(struct guest *g)
{
    for (uint32_t n = 1 + draw(4); n > 0 && take_one(g); n--) {
        int err = begin_one(g);
        if (err == QN_OK) {
            continue;
        }
        give_back_one(g); /* it is asked for again, later */
        if (err != QN_EAGAIN && err != QN_ENOQUORUM && err != QN_EBUSY) {
            say_wrong("it was refused", err);
        }
        break;
    }
}

bool guest_wants(struct guest *g)
{
    pthread_mutex_lock(&g->lock);
    const bool wants = g->wanted > 0;
    pthread_mutex_unlock(&g->lock);
    return wants;
}

void guest_do(struct guest *g, const char *tag, uint64_t count)
{
    pthread_mutex_lock(&g->lock);
    g->wanted = count;
    g->unknown = g->late = 0;
    snprintf(g->tag, sizeof g->tag, "%s", tag);
    say_if_done(g);
    pthread_mutex_unlock(&g->lock);
}

struct digest {
    struct guest *guest;
    char tag[TAG];
};

static void on_digest(void *ctx, int err, uint64_t result)
{
    struct digest *d = ctx;
    const struct state *s = &d->guest->now;
    (void)result;
    QN_ASSERT(err == QN_OK);
    say("%s commands %" PRIu64 " digest %" PRIx64 "\n", d->tag, s->commands,
        s->digest);
    free(d);
}

void guest_digest(struct guest *g, const char *tag)
{
    struct digest *d = malloc(sizeof *d);
    QN_ASSERT(d != NULL);
    d->guest = g;
    snprintf(d->tag, sizeof d->tag, "%s", tag);
    int err =
        g->thread != NULL
            ? qn_group_thread_barrier(g->thread, QN_GROUP_FOREVER, on_digest, d)
            : qn_group_barrier(g->group, QN_GROUP_FOREVER, on_digest, d);
    if (err != QN_OK) {
        say("%s %s\n", tag, qn_strerror(err));
        free(d);
    }
}

void guest_status(struct guest *g, const char *tag)
{
    static const char *phases[] = {"meeting", "syncing", "serving", "ended"};
    struct qn_group_status s = {.phase = QN_GROUP_MEETING};
    if (g->thread != NULL) {
        (void)qn_group_thread_status(g->thread, &s, NULL);
    } else {
        qn_group_status(g->group, &s);
    }
    say("%s %s seat %" PRIu32 " members %" PRIu64 " installed %" PRIu64 "\n",
        tag, phases[s.phase], s.seat, s.members, s.snapshots_installed);
}

/* ---- its turns ----------------------------------------------------------- */

void guest_is_due(struct guest *g)
{
    g->due = true;
    if (draw_one_of(2)) {
        guest_turn(g); /* at once, or when all others were called */
    }
}

bool guest_due(const struct guest *g)
{
    return g->due;
}

void guest_turn(struct guest *g)
{
    int said = QN_GROUP_AGAIN;
    if (!g->due || draw_one_of(16)) {
        return; /* another time */
    }
    if (draw_one_of(64)) {
        draw_pause(8000);
    }
    while (said == QN_GROUP_AGAIN && !draw_one_of(16)) {
        said = qn_group_turn(g->group);
        if (said < 0) {
            say_wrong(qn_group_why(g->group), said);
        }
        if (draw_one_of(8)) {
            guest_begin_some(g);
        }
    }
    g->due = said == QN_GROUP_AGAIN;
    if (draw_one_of(2)) {
        guest_begin_some(g); /* perhaps after "armed" */
    }
}

int guest_fd(const struct guest *g)
{
    return g->group != NULL ? qn_group_fd(g->group) : -1;
}

/* ---- begin and end ------------------------------------------------------- */

struct guest *guest_make(int index, const struct guest_opts *opts)
{
    struct guest *g = &guests[index];
    const struct qn_group_opts o = {
        .name = opts->name,
        .application = "host",
        .version = 1,
        .transport = qn_transport_find("ump"),
        .capacity = opts->members,
        .members = opts->members,
        .cells = 256,
        .log_bytes = 1 << 20,
        .robust_list = opts->robust_list,
        .log = {on_line, g},
        .feed = &(struct qn_feed_opts){.bytes = 1 << 12,
                                       .records = 64,
                                       .subscribers = 1},
        .service = {.apply = on_apply,
                    .begin = on_begin,
                    .next = on_next,
                    .end = on_end,
                    .keeps_cut = draw_one_of(2),
                    .read = on_read,
                    .finish = on_finish,
                    .install = on_install,
                    .abandon = on_abandon,
                    .changed = on_changed,
                    .ctx = g}};
    g->spoils = draw_one_of(2);
    g->on_thread = opts->thread;
    pthread_mutex_init(&g->lock, NULL);
    const struct qn_group_thread_opts t = {.group = &o};
    int err = opts->thread != 0 ? qn_group_thread_start(&g->thread, &t)
                                : qn_group_join(&g->group, &o);
    if (err != QN_OK) {
        say_wrong("join", err);
    }
    return g;
}

void guest_leave(struct guest *g)
{
    qn_group_thread_stop(g->thread);
    qn_group_leave(g->group);
}

/* ---- in a child ---------------------------------------------------------- */

static int group_in_child(struct guest *g)
{
    const struct qn_group_change c = {.seat = 0};
    struct qn_feed_record r;
    struct qn_feed_position at = {.slot = 0};
    struct qn_feed_status fs;
    struct qn_group_status st;
    struct qn_group_seat seat;
    uint32_t id = 0;
    int wrong = 0;
    wrong += qn_group_turn(g->group) != QN_EPERM;
    wrong += qn_group_propose(g->group, "x", 1, 1, on_done, g) != QN_EPERM;
    wrong += qn_group_barrier(g->group, 1, on_done, g) != QN_EPERM;
    wrong += qn_group_change(g->group, &c, 1, on_change, g) != QN_EPERM;
    wrong += qn_group_feed_subscribe(g->group, NULL, &id) != QN_EPERM;
    wrong += qn_group_feed_seek(g->group, 0, NULL) != QN_EPERM;
    wrong += qn_group_feed_read(g->group, 0, &r) != QN_EPERM;
    wrong += qn_group_feed_position(g->group, 0, &at) != QN_EPERM;
    wrong += qn_group_feed_unsubscribe(g->group, 0) != QN_EPERM;
    wrong += qn_group_feed_status(g->group, &fs) != QN_EPERM;
    (void)qn_group_fd(g->group);
    (void)qn_group_reason(g->group);
    (void)qn_group_why(g->group);
    qn_group_status(g->group, &st);
    wrong += st.phase != QN_GROUP_MEETING && st.phase != QN_GROUP_ENDED;
    qn_group_seat(g->group, 0, &seat);
    wrong += seat.incarnation != 0;
    qn_group_leave(g->group);
    return wrong;
}

static int thread_in_child(struct guest *g)
{
    struct qn_group_status st;
    int wrong = 0;
    wrong +=
        qn_group_thread_propose(g->thread, "x", 1, 1, on_done, g) != QN_EPERM;
    wrong += qn_group_thread_barrier(g->thread, 1, on_done, g) != QN_EPERM;
    wrong += qn_group_thread_status(g->thread, &st, NULL) != QN_EPERM;
    qn_group_thread_stop(g->thread);
    return wrong;
}

int guests_in_child(void)
{
    int wrong = 0;
    for (int i = 0; i < GUESTS_MAX; i++) {
        struct guest *g = &guests[i];
        wrong += g->group != NULL ? group_in_child(g) : 0;
        wrong += g->thread != NULL ? thread_in_child(g) : 0;
    }
    return wrong;
}
