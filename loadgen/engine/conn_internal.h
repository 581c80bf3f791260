#ifndef QN_LOADGEN_ENGINE_CONN_INTERNAL_H
#define QN_LOADGEN_ENGINE_CONN_INTERNAL_H

/**
 * Clients with their libuv sockets: the part of a worker that moves bytes.
 *
 * A user is one client and its connections: one, or one to each address among
 * which it chooses. In an open loop whose reads have addresses of their own, a
 * client is two users, one that reads and one for all else: neither waits for
 * the other's servers. A user works while its crew (all users of one worker) is
 * at it, and rests when its client's task is done, or when the crew is told to
 * drain and nothing is outstanding. When the last one rests, the crew's owner
 * is called. A lost connection stays DOWN until it is opened again.
 *
 * One thread: the loop's.
 */

#include "loadgen/client/agenda.h"
#include "loadgen/client/client.h"
#include "loadgen/client/silence.h"
#include "loadgen/engine/worker.h"
#include "loadgen/net/address.h"

#include <uv.h>

#define QN_CONN_READ_BYTES ((size_t)256 * 1024)

/** What the users of one worker share. */
struct qn_crew {
    const struct qn_worker_plan *plan;
    uv_loop_t *loop;
    struct qn_stats *stats; /* what replies are counted in */
    struct qn_silence *silence;
    struct qn_agenda agenda; /* of users whose schedule says when */
    uint8_t *read_buf;       /* [QN_CONN_READ_BYTES] one for all: it is parsed
                                before the next read, and stays in the cache */
    bool resp3;
    bool draining;        /* no more requests */
    bool over;            /* the owner closes the handles */
    struct qn_mix mix[2]; /* of each part of a client, if they are two */
    uint32_t parts;       /* users per client: 1 or 2 */
    struct qn_user *user; /* [count] */
    uint32_t count;
    uint32_t resting;          /* of them */
    struct qn_load_conn *conn; /* [conn_count] of all users */
    uint32_t conn_count;
    void (*all_rest)(struct qn_crew *crew); /* may give out new work */
};

enum qn_conn_state {
    QN_CONN_DOWN,
    QN_CONN_CONNECTING,
    QN_CONN_GREETING,
    QN_CONN_UP,
    QN_CONN_CLOSING
};

/** What may be sent on a connection. */
enum { QN_CONN_READS = 1, QN_CONN_WRITES = 2 };

/** The two users of a client of two. */
enum { QN_CONN_PART_WRITES, QN_CONN_PART_READS };

/** All zero but for user, address, number and role: DOWN. */
struct qn_load_conn {
    struct qn_user *user;
    const struct qn_address *address;
    uint32_t address_number;
    unsigned role; /* QN_CONN_READS, QN_CONN_WRITES or both */
    struct qn_connection_state lane;
    enum qn_conn_state state;
    bool opened;  /* it has been UP */
    bool failed;  /* it was tried in vain */
    bool writing; /* libuv still holds a part of what was filled */
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } u;
    uv_connect_t connect;
    uv_write_t write;
};

struct qn_user {
    struct qn_crew *crew;
    uint32_t place;  /* in its crew */
    uint32_t number; /* of its client, among all crews' */
    uint32_t part;   /* of its client: QN_CONN_PART_..., 0 if it is whole */
    struct qn_client client;
    struct qn_load_conn *conn; /* [conn_count] */
    uint32_t conn_count;
    uint64_t random; /* which connection is next */
    bool resting;
    bool limited; /* it may ask so much as can be recorded, and no more */
};

/** Connect; it must be DOWN. It works as soon as it is connected. */
void qn_conn_open(struct qn_load_conn *c);

/** Ask what is due, or have it called when something will be; or rest. */
void qn_user_pump(struct qn_user *u);

/** One of its connections can be written to, or could if it had been read. */
bool qn_user_is_up(const struct qn_user *u);

#endif
