#include "examples/outlet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/err.h"

enum { SEND_BYTES = 64 << 10 }; /* frames are collected up to this size */

static struct qn_group *group;
static int watched = -1; /* an epoll of the next two */
static int listening = -1, reader = -1;
static bool full; /* the reader's socket; `watched` says when it is not */

/* What the reader has asked for, and where it is. */
static bool asked, subscribed;
static uint32_t id;
static bool misses; /* what lies behind `at`, and has not been told yet */
static struct qn_feed_position at;

static char *out; /* frames, which are not sent yet from `sent` on */
static size_t out_len, sent, out_room;

/* ---- the reader ---------------------------------------------------------- */

static void watch(int how, int fd, uint32_t events)
{
    struct epoll_event e = {.events = events, .data = {.fd = fd}};
    (void)epoll_ctl(watched, how, fd, &e);
}

static void drop(void)
{
    if (subscribed) {
        (void)qn_group_feed_unsubscribe(group, id);
    }
    if (reader >= 0) {
        close(reader);
    }
    reader = -1;
    asked = subscribed = misses = full = false;
    out_len = sent = 0;
}

static void welcome(void)
{
    int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        drop();
        reader = fd;
        watch(EPOLL_CTL_ADD, fd, EPOLLIN);
    }
}

/* It says where it is, once; what comes else is its end. */
static void hear_reader(void)
{
    ssize_t n = recv(reader, &at, sizeof at, 0);
    if (n < 0 && errno == EAGAIN) {
        return;
    }
    if (asked || n != (ssize_t)sizeof at) {
        drop();
        return;
    }
    asked = true;
    misses = at.slot == 0;
}

void outlet_hear(void)
{
    struct epoll_event e[2];
    int n = epoll_wait(watched, e, 2, 0);
    for (int i = 0; i < n; i++) {
        if (e[i].data.fd == listening) {
            welcome();
        } else if (e[i].data.fd == reader) {
            full = false;
            watch(EPOLL_CTL_MOD, reader, EPOLLIN);
            hear_reader();
        }
    }
}

/* ---- frames -------------------------------------------------------------- */

/* Room for a frame behind the others. @return NULL: no memory. */
static char *add(struct frame f)
{
    const size_t need = out_len + sizeof f + f.len;
    if (need > out_room) {
        char *more = realloc(out, 2 * need);
        if (more == NULL) {
            return NULL;
        }
        out = more;
        out_room = 2 * need;
    }
    char *bytes = out + out_len + sizeof f;
    memcpy(out + out_len, &f, sizeof f);
    out_len = need;
    return bytes;
}

static int add_command(const struct qn_feed_record *r)
{
    char *bytes = add((struct frame){.kind = FRAME_COMMAND,
                                     .at = r->at,
                                     .to = r->to,
                                     .stamp_ms = r->stamp_ms,
                                     .seat = r->origin,
                                     .incarnation = r->origin_inc,
                                     .number = r->seq,
                                     .len = r->bytes.len});
    if (bytes == NULL) {
        return QN_ENOMEM;
    }
    memcpy(bytes, r->bytes.data, r->bytes.len);
    return QN_OK;
}

/* The state as it is, and where it is. */
static int add_copy(const struct items *now)
{
    struct frame f = {.kind = FRAME_COPY};
    int err = subscribed ? qn_group_feed_seek(group, id, NULL)
                         : qn_group_feed_subscribe(group, NULL, &id);
    subscribed = subscribed || err == QN_OK;
    if (err != QN_OK || qn_group_feed_position(group, id, &f.to) != QN_OK) {
        return err;
    }
    for (size_t i = 0; i < now->count; i++) {
        f.len += item_bytes(now->item[i]);
    }
    const struct frame gap = {.kind = FRAME_GAP, .at = at, .to = f.to};
    char *b = at.slot != 0 && add(gap) == NULL ? NULL : add(f);
    if (b == NULL) {
        return QN_ENOMEM;
    }
    for (size_t i = 0; i < now->count; i++) {
        memcpy(b, item_begin(now->item[i]), item_bytes(now->item[i]));
        b += item_bytes(now->item[i]);
    }
    misses = false;
    at = f.to;
    return QN_OK;
}

/* One frame more, or two. @return QN_EAGAIN: there is none now. */
static int add_next(const struct items *now)
{
    struct qn_feed_record r;
    if (misses) {
        return add_copy(now);
    }
    int err = QN_OK;
    if (!subscribed) {
        err = qn_group_feed_subscribe(group, &at, &id);
        subscribed = err == QN_OK;
    }
    if (err == QN_OK) {
        err = qn_group_feed_read(group, id, &r);
    }
    if (err == QN_OK && r.kind == QN_FEED_COMMAND) {
        at = r.to;
        return add_command(&r);
    }
    if (err == QN_OK || err == QN_EGONE) { /* a gap; or it was cut */
        misses = true;
        return QN_OK;
    }
    return err;
}

/* @return false: it takes no more now. */
static bool push(void)
{
    ssize_t n = send(reader, out + sent, out_len - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN) {
        full = true;
        watch(EPOLL_CTL_MOD, reader, EPOLLIN | EPOLLOUT);
        return false;
    }
    if (n < 0) {
        drop();
        return false;
    }
    sent += (size_t)n;
    if (sent == out_len) {
        sent = out_len = 0;
    }
    return true;
}

void outlet_turn(const struct items *now)
{
    int err = QN_OK;
    while (asked && !full && err == QN_OK) {
        while (sent == 0 && out_len < SEND_BYTES && err == QN_OK) {
            err = add_next(now);
        }
        if (err != QN_OK && err != QN_EAGAIN) {
            drop();
        }
        while (out_len > 0 && push()) {
        }
    }
}

/* ---- begin and end ------------------------------------------------------- */

int outlet_open(struct qn_group *g, const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    group = g;
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    (void)unlink(path); /* of the process that was here before */
    watched = epoll_create1(EPOLL_CLOEXEC);
    listening = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (watched < 0 || listening < 0 ||
        bind(listening, (struct sockaddr *)&a, sizeof a) != 0 ||
        listen(listening, 4) != 0) {
        outlet_close();
        return -1;
    }
    watch(EPOLL_CTL_ADD, listening, EPOLLIN);
    return watched;
}

void outlet_close(void)
{
    drop();
    if (listening >= 0) {
        close(listening);
    }
    if (watched >= 0) {
        close(watched);
    }
    watched = listening = -1;
    free(out);
    out = NULL;
    out_room = 0;
}
