#ifndef QN_LOADGEN_ENGINE_CONN_INTERNAL_H
#define QN_LOADGEN_ENGINE_CONN_INTERNAL_H

/**
 * Clients with their libuv sockets: the part of a worker that moves bytes.
 *
 * A virtual user is one client with its connections: one connection, or one to
 * each address among which it chooses. In an open loop whose reads have their
 * own addresses, a client is two users, one for reads and one for all other
 * operations, so that neither waits for the servers of the other. A user is
 * busy until the task of its client is done, or until the pool (all users of
 * one worker) drains and nothing of it is outstanding; then it is idle. When
 * the last user becomes idle, the pool calls its owner. A lost connection stays
 * DOWN until it is opened again.
 *
 * One thread: the loop's.
 */

#include "loadgen/client/client.h"
#include "loadgen/client/timer_heap.h"
#include "loadgen/client/unavailability.h"
#include "loadgen/engine/worker.h"
#include "loadgen/net/address.h"

#include <uv.h>

#define QN_CONN_READ_BYTES ((size_t)256 * 1024)

/** The users of one worker, and what they share. */
struct qn_user_pool {
    const struct qn_worker_plan *plan;
    uv_loop_t *loop;
    struct qn_stats *stats; /* replies are counted here */
    struct qn_unavailability *unavailability;
    struct qn_timer_heap timers; /* deadlines of users with a schedule */
    uint8_t *read_buf; /* [QN_CONN_READ_BYTES] one for all: each read is parsed
                          before the next one, so it stays in the cache */
    bool resp3;
    bool draining;                /* send no more requests */
    bool over;                    /* the owner is closing the handles */
    struct qn_mix mix[2];         /* of each part of a client, if it has two */
    uint32_t parts;               /* users per client: 1 or 2 */
    struct qn_virtual_user *user; /* [count] */
    uint32_t count;
    uint32_t idle_count;       /* idle users */
    struct qn_load_conn *conn; /* [conn_count] connections of all users */
    uint32_t conn_count;
    void (*all_idle)(
        struct qn_user_pool *
            pool); /* called when all users are idle; may give them new tasks */
};

enum qn_conn_state {
    QN_CONN_DOWN,
    QN_CONN_CONNECTING,
    QN_CONN_GREETING,
    QN_CONN_UP,
    QN_CONN_CLOSING
};

/** What may be sent on a connection: reads, all other operations, or both. */
enum { QN_CONN_READS = 1, QN_CONN_WRITES = 2 };

/** The two parts of a client that is two users. */
enum { QN_CONN_PART_WRITES, QN_CONN_PART_READS };

/** All zero except user, address, number and role: DOWN. */
struct qn_load_conn {
    struct qn_virtual_user *user;
    const struct qn_address *address;
    uint32_t address_number;
    unsigned role; /* QN_CONN_READS, QN_CONN_WRITES or both */
    struct qn_connection_state connection;
    enum qn_conn_state state;
    bool opened;  /* has been UP at least once */
    bool failed;  /* an attempt to connect failed */
    bool writing; /* libuv still holds a part of the filled bytes */
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } u;
    uv_connect_t connect;
    uv_write_t write;
};

struct qn_virtual_user {
    struct qn_user_pool *pool;
    uint32_t place;  /* index in its pool */
    uint32_t number; /* number of its client, over all pools */
    uint32_t part; /* part of its client: QN_CONN_PART_..., 0 if it is whole */
    struct qn_client client;
    struct qn_load_conn *conn; /* [conn_count] */
    uint32_t conn_count;
    uint64_t random; /* stream that chooses the next connection */
    bool idle;
    bool limited; /* its number of operations is limited by the history */
};

/** Start to connect; the connection must be DOWN. It is used as soon as it is
 *  UP. */
void qn_conn_open(struct qn_load_conn *c);

/** Send what is due, or set a deadline for what will be due; or become idle. */
void qn_virtual_user_send_due(struct qn_virtual_user *u);

/** At least one connection is UP. */
bool qn_virtual_user_is_up(const struct qn_virtual_user *u);

#endif
