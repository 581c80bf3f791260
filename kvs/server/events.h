#ifndef QN_KVS_SERVER_EVENTS_H
#define QN_KVS_SERVER_EVENTS_H

/**
 * The flight recorders of the whole server, as one replica sees them: its own
 * and, through its member, those of all others, living or dead.
 *
 * The last incarnation of a peer that has ended is copied when its end is
 * known, so `QUOIN EVENTS` (and the program `quoin events`) shows it without
 * any file. With --events-dir, everything that is known is also written to a
 * file there, QN_EVENTS_DUMP_AFTER after the death, so that the fail-over is in
 * it:
 *
 *     DIR/replica-2-incarnation-7-20261121T180235.123Z.events
 *
 * The name says whose end it was and when that incarnation had begun, which is
 * the same for all survivors: each tries to create the file, and the first one
 * writes it, in a thread of its own.
 *
 * One thread, the loop's.
 */

#include "core/base/clock.h"
#include "core/node.h"
#include "kvs/base/buf.h"
#include "paxos/driver/event.h"
#include "paxos/member/transfer/state_transfer.h"

#define QN_EVENTS_DUMP_AFTER (1 * QN_S)

/** The events of one incarnation. */
struct qn_events_incarnation {
    qn_node_t node;
    uint64_t incarnation; /* 0: none */
    uint64_t born_ms;     /* ms since 1970 */
    uint32_t count;
    struct qn_flight_event *event; /* [count], oldest first; owned */
};

struct qn_server;
struct qn_conn;
struct qn_cmd_call;

/** Of a server. All zero to begin with. */
struct qn_server_events {
    struct qn_events_incarnation kept[QN_NODES_MAX]; /* last that ended */
    uint64_t
        ended[QN_NODES_MAX]; /* incarnation whose end is to be written out; 0 */
    qn_time_t dump_at;       /* then; 0: nothing is to be written */
    struct qn_state_transfer_status rejoin; /* as noted last */
};

/** A peer has ended: copy what it has recorded. */
void qn_server_events_keep(struct qn_server_events *v, qn_node_t node,
                           uint64_t incarnation, const void *flight);

/** A peer has ended, and there is a folder for files: write out what led to it,
 *  a while later. */
void qn_server_events_ended(struct qn_server_events *v, qn_node_t node,
                            uint64_t incarnation, qn_time_t now);

/** Record an event of the service: kind (enum qn_event_kind), the node that it
 *  concerns, position, and what it says. */
void qn_server_events_note(struct qn_server *s, uint8_t kind, qn_node_t node,
                           uint64_t slot, uint64_t a);

/** @return when to call it again, or QN_TIME_NEVER. */
qn_time_t qn_server_events_turn(struct qn_server *s, qn_time_t now);

void qn_server_events_fini(struct qn_server_events *v);

/** QUOIN EVENTS [replica]: the lines (paxos/driver/event.h), by incarnation. */
void qn_quoin_events(struct qn_conn *c, struct qn_cmd_call *call);

/* For tests. */

/** Copy a recorder. QN_OK, QN_ENOMEM. `l` filled; free it. */
int qn_events_incarnation_read(struct qn_events_incarnation *l, qn_node_t node,
                               uint64_t incarnation, const void *flight);
void qn_events_incarnation_free(struct qn_events_incarnation *l);
void qn_events_incarnation_print(const struct qn_events_incarnation *l,
                                 int64_t wall, struct qn_buf *out);

/** The name of the file about the end of an incarnation, as above. `to` [cap]
 * filled, cut if it must be. */
void qn_events_file_name(char *to, size_t cap, const char *dir,
                         const struct qn_events_incarnation *l);

#endif
