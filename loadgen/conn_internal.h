#ifndef QN_LOADGEN_CONN_INTERNAL_H
#define QN_LOADGEN_CONN_INTERNAL_H

/**
 * One client with its libuv socket: the part of a worker that moves bytes.
 *
 * A connection works while its crew (all connections of one worker) is at it,
 * and rests when its client's task is done, or when the crew is told to drain
 * and its last batch is answered. When the last one rests, the crew's owner is
 * called. A lost connection stays DOWN until it is opened again.
 *
 * One thread: the loop's.
 */

#include "loadgen/address.h"
#include "loadgen/client.h"

#include <uv.h>

#define QN_CONN_READ_BYTES ((size_t)256 * 1024)

/** What the connections of one worker share. */
struct qn_crew {
    uv_loop_t *loop;
    struct qn_stats *stats; /* what replies are counted in */
    uint8_t *read_buf;      /* [QN_CONN_READ_BYTES] one for all: it is parsed
                               before the next read, and stays in the cache */
    bool resp3;
    bool draining; /* no more batches */
    bool over;     /* the owner closes the handles */
    uint32_t count;
    uint32_t resting;
    void (*all_rest)(struct qn_crew *crew); /* may give out new work */
};

enum qn_conn_state {
    QN_CONN_DOWN,
    QN_CONN_CONNECTING,
    QN_CONN_GREETING,
    QN_CONN_UP,
    QN_CONN_CLOSING
};

/** All zero but for crew, address and client: DOWN. */
struct qn_conn {
    struct qn_crew *crew;
    const struct qn_address *address;
    struct qn_client client;
    enum qn_conn_state state;
    bool resting;
    bool writing; /* libuv still holds a part of the batch */
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } u;
    uv_connect_t connect;
    uv_write_t write;
};

/** Connect; it must be DOWN. It works as soon as it is connected. */
void qn_conn_open(struct qn_conn *c);

/** Ask on, if the last batch is answered; or rest. */
void qn_conn_pump(struct qn_conn *c);

#endif
