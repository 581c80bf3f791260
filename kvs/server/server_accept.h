#ifndef QN_KVS_SERVER_SERVER_ACCEPT_H
#define QN_KVS_SERVER_SERVER_ACCEPT_H

/**
 * Accept fail-over: each replica holds the listening sockets of all, so no
 * connection to the common address is lost or left waiting when its replica
 * ends, stalls, or does not serve yet. kvs/detector/accept_failover.h decides;
 * this shell polls, accepts, passes on and tells the kernel.
 *
 * Own connections are accepted by libuv. An unavailable replica receives no new
 * connections: a BPF program on the SO_REUSEPORT group skips its socket
 * (kvs/listen/connection_placement.h). Where the kernel takes no program, the
 * checks alone do it.
 *
 * With a Unix socket all replicas accept from one, and no peer's queue is
 * looked at. But if connections are placed near, the accepting replica passes
 * them on (kvs/listen/fd_passing.h), and what was passed on is looked at in the
 * same way.
 *
 * Two cases cannot be helped. A connection that a replica had accepted before
 * it stopped waits until that replica goes on or ends. A connection to a
 * replica's own port is for a client that wants this one.
 *
 * Threads: one, the loop's.
 */

#include <uv.h>

#include "core/base/clock.h"
#include "kvs/detector/accept_failover.h"

struct qn_server;

struct qn_server_accept {
    struct qn_accept_failover failover;
    int set;        /* epoll of the peers' sockets; -1: nothing is watched */
    uv_poll_t poll; /* of `set`; active: woken by a connection there */
    uv_poll_t accept, passed; /* Unix, placed near: the shared socket, and what
                                 others pass on to this replica */
    int polls;                /* of these two that were begun */
};

/** Nothing is watched yet. */
void qn_server_accept_init(struct qn_server *s);

/** Accept from the shared Unix socket and pass on, if connections are placed
 *  near. @return false: they are not. */
bool qn_server_accept_pass(struct qn_server *s);

/** This replica serves from here on: watch, and get a share. */
void qn_server_accept_open(struct qn_server *s);

/** A peer has started or ended. */
void qn_server_accept_news(struct qn_server *s);

/** @return when to call it again; QN_TIME_NEVER: when something happens. */
qn_time_t qn_server_accept_turn(struct qn_server *s, qn_time_t now);

/** Watch no more and give up all sockets of others. */
void qn_server_accept_close(struct qn_server *s);

#endif
