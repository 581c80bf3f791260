#ifndef QN_KVS_SERVER_DOORS_H
#define QN_KVS_SERVER_DOORS_H

/**
 * The doors of the common address: each replica holds the listening sockets of
 * all, so that no connection is lost or left waiting when its replica ends,
 * stands still, or does not serve yet.
 *
 * Own connections are accepted by libuv. The other sockets are watched
 * (kvs/listen/watch.h): an idle server pays nothing for it, a busy one a
 * wake-up per QN_WATCH_LOOK at most. What waits too long there is accepted and
 * served here. Who is out gets no new connections: a program for the group of
 * sockets leaves it out (kvs/listen/connection_placement.h); where the kernel
 * takes no program, the watch alone does it.
 *
 * With a Unix socket all accept from one, and nothing is to be watched; but if
 * connections are placed near, who accepts passes them on
 * (kvs/listen/fd_passing.h), and what was passed on is watched in the same way.
 *
 * What cannot be helped is a connection that a replica had accepted before it
 * stopped: it waits until that one goes on or ends. Nor what comes to a
 * replica's own port: that is for who wants this one.
 *
 * Threads: one, the loop's.
 */

#include <uv.h>

#include "core/base/clock.h"
#include "kvs/listen/watch.h"

struct qn_server;

struct qn_doors {
    int set;        /* epoll of the others' sockets; -1: nothing is watched */
    uv_poll_t poll; /* of `set`; active: woken by whatever comes there */
    bool woken;     /* by it, since the last look */
    struct qn_watch watch;
    uv_poll_t accept, passed; /* Unix, placed near: the shared socket, and what
                                 others pass on to this replica */
    int polls;                /* of these two that were begun */
    uint64_t open; /* mask: who gets new connections, as the kernel was told;
                      0: nothing was */
    qn_time_t look_at; /* ns; QN_TIME_NEVER: when woken */
};

/** Nothing is watched yet. */
void qn_doors_init(struct qn_server *s);

/** Accept from the shared Unix socket and pass on, if connections are placed
 *  near. @return false: they are not. */
bool qn_doors_pass(struct qn_server *s);

/** This replica serves from here on: watch, and get a share. */
void qn_doors_open(struct qn_server *s);

/** A peer's life has begun or ended. */
void qn_doors_news(struct qn_server *s);

/** @return when to call it again; QN_TIME_NEVER: when something happens. */
qn_time_t qn_doors_turn(struct qn_server *s, qn_time_t now);

/** Watch no more and give up all sockets of others. */
void qn_doors_close(struct qn_server *s);

#endif
