#include "tests/process/host/station.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "tests/process/host/child.h"
#include "tests/process/host/draw.h"
#include "tests/process/host/unchanged.h"

enum { TICK_US = 8000, NS_OF_US = 1000 };

struct station {
    struct loop *loop;
    struct guest *guest[GUESTS_MAX];
    int guests;
    int timer, noise, orders[2];
    bool leaves;
};

static _Thread_local int own_noise = -1;

void station_noise(void)
{
    const uint64_t one = 1;
    if (own_noise >= 0 && draw_one_of(16)) {
        (void)!write(own_noise, &one, sizeof one);
    }
}

/* ---- what its loop calls ------------------------------------------------- */

static void guest_readable(void *ctx)
{
    guest_is_due(ctx);
}

static void timer_set(struct station *s)
{
    const struct itimerspec t = {
        .it_value = {.tv_nsec = (1 + (long)draw(TICK_US)) * NS_OF_US}};
    int err = timerfd_settime(s->timer, 0, &t, NULL);
    QN_ASSERT(err == 0);
}

static void ask_some(struct station *s)
{
    for (int i = 0; i < s->guests; i++) {
        guest_begin_some(s->guest[i]);
    }
}

/* It is set as long as there is more to begin: what was begun ends without. */
static void timer_readable(void *ctx)
{
    struct station *s = ctx;
    uint64_t ticks;
    (void)!read(s->timer, &ticks, sizeof ticks);
    ask_some(s);
    child_maybe(CHILD_LOOP);
    child_maybe(CHILD_EMBEDS);
    for (int i = 0; i < s->guests; i++) {
        if (guest_wants(s->guest[i])) {
            timer_set(s);
        }
    }
}

static void noise_readable(void *ctx)
{
    struct station *s = ctx;
    uint64_t count;
    (void)!read(s->noise, &count, sizeof count);
    if (draw_one_of(2)) {
        ask_some(s);
    }
}

static void obey(struct station *s, const struct order *o)
{
    struct guest *g = s->guest[o->guest];
    switch (o->verb) {
    case ORDER_DO:
        guest_do(g, o->tag, o->count);
        timer_set(s);
        break;
    case ORDER_DIGEST:
        guest_digest(g, o->tag);
        break;
    case ORDER_STATUS:
        guest_status(g, o->tag);
        break;
    case ORDER_LEAVE:
        s->leaves = true;
    }
}

static void order_readable(void *ctx)
{
    struct station *s = ctx;
    struct order o;
    ssize_t n = read(s->orders[0], &o, sizeof o);
    QN_ASSERT(n == sizeof o || errno == EAGAIN);
    if (n > 0) {
        obey(s, &o);
    }
}

void station_order(struct station *s, const struct order *o)
{
    ssize_t n = write(s->orders[1], o, sizeof *o); /* less than PIPE_BUF */
    QN_ASSERT(n == sizeof *o);
}

/* ---- its run ------------------------------------------------------------- */

static bool any_due(const struct station *s)
{
    for (int i = 0; i < s->guests; i++) {
        if (guest_due(s->guest[i])) {
            return true;
        }
    }
    return false;
}

void station_run(struct station *s)
{
    own_noise = s->noise;
    while (!s->leaves) {
        loop_wait(s->loop, !any_due(s));
        const int first = (int)draw(GUESTS_MAX);
        for (int i = 0; i < s->guests; i++) {
            guest_turn(s->guest[(first + i) % s->guests]);
        }
    }
    own_noise = -1;
    loop_free(s->loop);
    s->loop = NULL;
    for (int i = 0; i < s->guests; i++) {
        guest_leave(s->guest[i]);
    }
    unchanged_thread_check();
}

/* ---- begin and end ------------------------------------------------------- */

struct station *station_make(enum loop_kind kind)
{
    struct station *s = calloc(1, sizeof *s);
    QN_ASSERT(s != NULL);
    s->loop = loop_make(kind);
    s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    s->noise = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    int err = pipe2(s->orders, O_NONBLOCK | O_CLOEXEC);
    QN_ASSERT(s->timer >= 0 && s->noise >= 0 && err == 0);
    loop_add(s->loop, s->timer, false, timer_readable, s);
    loop_add(s->loop, s->noise, false, noise_readable, s);
    loop_add(s->loop, s->orders[0], false, order_readable, s);
    return s;
}

void station_add(struct station *s, struct guest *g)
{
    s->guest[s->guests++] = g;
    if (guest_fd(g) >= 0) {
        loop_add(s->loop, guest_fd(g), true, guest_readable, g);
    }
}

void station_hear(struct station *s, int fd, loop_readable *call, void *ctx)
{
    loop_add(s->loop, fd, false, call, ctx);
}

void station_free(struct station *s)
{
    close(s->timer);
    close(s->noise);
    close(s->orders[0]);
    close(s->orders[1]);
    free(s);
}
