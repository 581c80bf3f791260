/*
 * Three loops as programs have them: poll, epoll with edges, and libuv, which
 * waits for levels. A signal ends the wait of the first two (EINTR), and says
 * nothing about the descriptors.
 */
#include "tests/process/host/loop.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <uv.h>

#include "core/base/assert.h"
#include "tests/process/host/draw.h"

enum { SOURCES = 8 };

struct source {
    int fd;
    loop_readable *call;
    void *ctx;
    uv_poll_t poll;
};

struct loop {
    enum loop_kind kind;
    struct source source[SOURCES];
    int sources;
    struct source *ready[SOURCES]; /* not called yet */
    int readies;
    int epoll;
    uv_loop_t uv;
    bool at_once; /* libuv: called inside of its callbacks, in its order */
};

struct loop *loop_make(enum loop_kind kind)
{
    struct loop *l = calloc(1, sizeof *l);
    QN_ASSERT(l != NULL);
    l->kind = kind;
    l->at_once = draw_one_of(2);
    l->epoll = -1;
    if (kind == LOOP_EPOLL) {
        l->epoll = epoll_create1(EPOLL_CLOEXEC);
        QN_ASSERT(l->epoll >= 0);
    } else if (kind == LOOP_LIBUV) {
        int err = uv_loop_init(&l->uv);
        QN_ASSERT(err == 0);
    }
    return l;
}

static void on_poll(uv_poll_t *p, int status, int events)
{
    struct source *s = p->data;
    struct loop *l = p->loop->data;
    QN_ASSERT(status == 0 && events == UV_READABLE);
    if (l->at_once) {
        s->call(s->ctx);
    } else {
        l->ready[l->readies++] = s;
    }
}

void loop_add(struct loop *l, int fd, bool edge, loop_readable *call, void *ctx)
{
    QN_ASSERT(l->sources < SOURCES);
    struct source *s = &l->source[l->sources++];
    *s = (struct source){.fd = fd, .call = call, .ctx = ctx};
    if (l->kind == LOOP_EPOLL) {
        struct epoll_event e = {.events = EPOLLIN | (edge ? EPOLLET : 0),
                                .data = {.ptr = s}};
        int err = epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e);
        QN_ASSERT(err == 0);
    } else if (l->kind == LOOP_LIBUV) {
        int err = uv_poll_init(&l->uv, &s->poll, fd);
        QN_ASSERT(err == 0);
        l->uv.data = l;
        s->poll.data = s;
        err = uv_poll_start(&s->poll, UV_READABLE, on_poll);
        QN_ASSERT(err == 0);
    }
}

static void wait_poll(struct loop *l, bool may_sleep)
{
    struct pollfd p[SOURCES];
    for (int i = 0; i < l->sources; i++) {
        p[i] = (struct pollfd){.fd = l->source[i].fd, .events = POLLIN};
    }
    int n = poll(p, (nfds_t)l->sources, may_sleep ? -1 : 0);
    QN_ASSERT(n >= 0 || errno == EINTR);
    for (int i = 0; n > 0 && i < l->sources; i++) {
        if (p[i].revents != 0) {
            l->ready[l->readies++] = &l->source[i];
        }
    }
}

static void wait_epoll(struct loop *l, bool may_sleep)
{
    struct epoll_event e[SOURCES];
    int n = epoll_wait(l->epoll, e, SOURCES, may_sleep ? -1 : 0);
    QN_ASSERT(n >= 0 || errno == EINTR);
    for (int i = 0; i < n; i++) {
        l->ready[l->readies++] = e[i].data.ptr;
    }
}

void loop_wait(struct loop *l, bool may_sleep)
{
    switch (l->kind) {
    case LOOP_POLL:
        wait_poll(l, may_sleep);
        break;
    case LOOP_EPOLL:
        wait_epoll(l, may_sleep);
        break;
    case LOOP_LIBUV:
        (void)uv_run(&l->uv, may_sleep ? UV_RUN_ONCE : UV_RUN_NOWAIT);
    }
    while (l->readies > 0) {
        struct source **s = &l->ready[draw((uint32_t)l->readies)];
        const struct source *is = *s;
        *s = l->ready[--l->readies];
        is->call(is->ctx);
    }
}

void loop_free(struct loop *l)
{
    if (l->kind == LOOP_LIBUV) {
        for (int i = 0; i < l->sources; i++) {
            uv_close((uv_handle_t *)&l->source[i].poll, NULL);
        }
        (void)uv_run(&l->uv, UV_RUN_DEFAULT);
        int err = uv_loop_close(&l->uv);
        QN_ASSERT(err == 0);
    }
    if (l->epoll >= 0) {
        close(l->epoll);
    }
    free(l);
}
