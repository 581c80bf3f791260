#ifndef QN_KVS_INTROSPECT_INFO_H
#define QN_KVS_INTROSPECT_INFO_H

/**
 * INFO: the text, from plain numbers.
 *
 * Each replica keeps one struct qn_info_part about itself. The replica whose
 * client asks collects the parts of all (kvs/introspect/fanout_query.h), puts
 * them into a struct qn_info beside the figures of the whole server, and makes
 * the text. Counts are added over the parts; a figure per replica has its own
 * line in the section `# Quoin`.
 *
 * Sections: server, clients, memory, persistence, stats, replication, cpu,
 * modules, commandstats, errorstats, cluster, keyspace, quoin. Without a name,
 * or by `default`: all but commandstats. `all`: all but modules. `everything`:
 * all. Names in any case; unknown ones give nothing.
 *
 * Pure, any thread. Nothing blocks.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/base/bits.h"
#include "core/node.h"
#include "core/topo/tree.h"
#include "kvs/base/buf.h"
#include "kvs/commands/command.h"
#include "paxos/driver/driver.h"

#define QN_INFO_ERRORS_MAX 16u /* error codes told apart */
#define QN_INFO_CODE_MAX   24u /* bytes of one, NUL included */

#define QN_INFO_UNITS    4u  /* in which backends count: cells, ... */
#define QN_INFO_NAME_MAX 16u /* bytes of a unit's, a transport's; with NUL */

struct qn_info_cmd {
    uint64_t calls;    /* executed */
    uint64_t usec;     /* in all of them, estimated (cmd_latency_sample.h). Of
                          a write: submitting it, and executing it on the
                          replica that was asked; not the time in between */
    uint64_t rejected; /* not executed: arity, permission, loading */
    uint64_t failed;   /* executed and answered by an error */
};

struct qn_info_error {
    char code[QN_INFO_CODE_MAX]; /* "ERR"; "": free */
    uint64_t count;
};

/** What queuepairs of one backend have moved (core/qp.h). */
struct qn_info_traffic {
    char unit[QN_INFO_NAME_MAX]; /* "cells"; "": unused */
    uint64_t sent, received;
};

#define QN_INFO_WHY_MAX 72u /* bytes of a reason, NUL included */

/** The figures of one replica. Plain memory without pointers: may be copied
 *  between processes of one build. All zero to begin with. */
struct qn_info_part {
    uint32_t bytes; /* sizeof(struct qn_info_part), set by pack */
    qn_node_t replica;
    uint32_t pid;
    char state[16]; /* "online", "loading", "joining", ... */

    uint64_t connected_clients;
    uint64_t blocked_clients; /* waiting: WAIT, questions to other replicas */

    uint64_t used_memory;      /* bytes, of the allocator or estimated */
    uint64_t used_memory_rss;  /* bytes */
    uint64_t used_memory_peak; /* bytes */

    uint64_t connections_received;
    uint64_t commands_processed;
    uint64_t ops_per_sec; /* recent */
    uint64_t net_input_bytes;
    uint64_t net_output_bytes;
    uint64_t input_bytes_per_sec; /* recent */
    uint64_t output_bytes_per_sec;
    uint64_t rejected_connections;
    uint64_t output_limit_closed; /* by client-output-buffer-limit */
    uint64_t query_limit_closed;  /* by client-query-buffer-limit */
    uint64_t output_most; /* bytes, of replies that waited to be sent at once */
    uint64_t input_most;  /* bytes, of requests that were held at once */
    uint64_t expired_keys;
    uint64_t keyspace_hits;
    uint64_t keyspace_misses;

    uint64_t cpu_sys_usec;
    uint64_t cpu_user_usec;

    uint32_t is_root;          /* it broadcasts, ... */
    uint64_t root_epoch;       /* ... in this epoch; then ... */
    uint32_t ring;             /* ... over a ring of this arity; 0: the tree */
    uint64_t topology_changes; /* between the two */
    char topology_reason[QN_INFO_WHY_MAX]; /* why that one */
    uint64_t reach_nsec;                   /* the root: time of a broadcast
                                              (paxos/driver/driver.h) */
    uint64_t pause_usec; /* the leader: pause after each slot, so that ... */
    uint64_t slow;       /* ... these replicas can follow: a mask */
    /* The leader: flow control (paxos/flow/flow.h). */
    struct qn_driver_kept kept; /* what it keeps of the log */
    bool leads;
    bool writes_held;        /* because fewer than min-replicas-to-write keep
                                up */
    uint64_t awaited;        /* mask */
    uint64_t gate_shut_usec; /* in total */
    uint64_t given_up;       /* replicas, in total */
    uint64_t holds_given_up; /* likewise */
    uint64_t lag_bytes[QN_NODES_MAX], lag_slots[QN_NODES_MAX];
    uint64_t pace[QN_NODES_MAX];      /* bytes/s, likewise */
    uint64_t shut_usec[QN_NODES_MAX]; /* time that each replica kept the gate
                                         shut */
    uint64_t suspicion_timeout_usec;  /* suspicion timeout: silence of a peer
                                before it is suspected */
    uint64_t failovers;       /* changes of leader or acceptor, seen by this
                                 incarnation */
    qn_slot_t commit;         /* last slot known decided; of a group that has
                                 stopped: also by ended replicas */
    qn_slot_t applied;        /* last slot applied */
    qn_slot_t learned;        /* last slot known here with all slots before
                                 it */
    uint64_t writes;          /* commands it has put into batches */
    uint64_t batches;         /* of these writes */
    uint64_t commit_usec_p50; /* from submit to apply, of its own writes */
    uint64_t commit_usec_p99;
    uint64_t commit_usec_p999;

    /* Writes that were not applied here, or too late. */
    uint64_t unknown_timeout;  /* answered "unknown" after commit-timeout */
    uint64_t unknown_snapshot; /* likewise, because they lie in a snapshot */
    uint64_t covered_ok;       /* lie in a snapshot, and were answered +OK */

    /* Its queuepairs (core/qp.h). */
    char transport[QN_INFO_NAME_MAX];
    struct qn_info_traffic traffic[QN_INFO_UNITS]; /* each backend's, the
                                            unused ones last */

    /* Snapshots (paxos/member/transfer/state_transfer.h). */
    uint64_t snapshots_joined;
    uint64_t snapshots_given;
    uint64_t snapshots_asked;
    uint64_t cut_bytes;
    uint64_t cut_bytes_max; /* bound of these; 0: it gives no snapshot now */
    uint64_t cut_bytes_most;
    uint64_t cuts_anew;

    uint64_t turn_usec_p99; /* work of one turn of its loop
                               (kvs/frontend/loop_stats.h) */
    uint64_t turn_usec_p999;
    uint64_t turn_usec_p9999;
    uint64_t turn_usec_max;
    uint64_t turn_max_sockets_usec; /* parts of that turn, as wall time */
    uint64_t turn_max_apply_usec;
    uint64_t turn_max_answers_usec;
    uint64_t turn_growth_usec_max; /* of turns in which the table grew */
    uint64_t turn_wall_usec_max;   /* including time when the core was taken
                                      away */

    struct qn_info_cmd cmd[QN_CMD_ROWS_MAX]; /* by qn_cmd_index */
    struct qn_info_error error[QN_INFO_ERRORS_MAX];
};

/** One database; the same on all replicas at equal positions. */
struct qn_info_db {
    uint64_t keys;       /* dead ones not counted */
    uint64_t expires;    /* of these, with a deadline */
    uint64_t avg_ttl_ms; /* of these */
};

/** The whole server. Strings are borrowed; NULL: empty. */
struct qn_info {
    const char *redis_version; /* the one we are compatible with */
    const char *quoind_version;
    const char *git_sha1;
    const char *os;
    const char *executable;
    const char *config_file;
    const char *run_id; /* 40 hex digits */
    qn_node_t replica;  /* that was asked */
    uint32_t process_id;
    uint32_t tcp_port; /* 0: a Unix socket */
    uint64_t wall_usec;
    uint64_t uptime_s;

    uint64_t maxclients;
    uint64_t maxmemory;         /* bytes, 0: none */
    uint64_t repl_backlog_size; /* bytes */
    uint64_t lag_timeout_ms;
    uint64_t min_replicas_to_write;
    uint64_t logical_bytes;       /* keys, values, entries: what maxmemory
                                     bounds, the same on all replicas */
    uint64_t total_system_memory; /* bytes */
    bool loading;

    const struct qn_info_db *db; /* [dbs] */
    uint32_t dbs;

    const char *consistency; /* "linearizable" or "local" */
    uint64_t epoch;
    qn_node_t leader;   /* and QN_NODES_MAX: none, and none will be ... */
    qn_node_t acceptor; /* ... : the group has stopped */
    bool shared_state;  /* replicas read each other's memory for agreement */
    const char *acceptor_kind; /* "memory" or "process" */
    const char *group;        /* "serving", "changing" (no leader takes requests
                                 yet), "waiting" (none will until `waits_for`
                                 resume or end), "stopped" (none ever will: quoin
                                 recover), "incomplete" (likewise: the next leader
                                 lacks a part of the log, and no replica has it) */
    const char *group_reason; /* why it has stopped: "lost" (what was decided is
                                 lost with replicas that have ended),
                                 "incomplete", or "overwritten" (the leader has
                                 overwritten the accept register); else "none"
                               */
    uint64_t waits_for;       /* mask: stalled replicas that may have slots that
                                 the others lack */
    const char *last_failover; /* why; "": there was none */
    bool supervised;           /* an ended replica is started again, if
                                  configured */
    uint64_t in_sync; /* mask: any one of them has all that was decided;
                         process acceptor: leader and acceptor, and both are
                         needed */
    const struct qn_tree *tree; /* how batches are broadcast; NULL: one node */
    const char *topology;       /* as configured */
    const char *ring_order;     /* "map" or "number"; NULL: there is no ring */
    double predicted_cycles;    /* of a broadcast; 0: unknown */
    uint64_t predicted_nsec;    /* the same; 0: unknown */
    uint32_t seats;             /* of the group, taken or vacant */
    uint64_t members;           /* mask: seats that are taken */
    uint64_t voters;            /* mask: of these, they decide */
    uint64_t missing;           /* mask: did not answer */

    const struct qn_info_part *const *part; /* [parts], in order of replica */
    uint32_t parts;
};

/** Count the error reply that begins at `reply` ("-CODE text") by its code.
 *  Any other reply is ignored, and so are codes beyond QN_INFO_ERRORS_MAX. */
void qn_info_count_error(struct qn_info_part *p, const uint8_t *reply,
                         size_t len);

/** Append the part to an answer. */
void qn_info_pack(const struct qn_info_part *p, struct qn_buf *out);
/** Take a part from an answer. @return QN_OK; QN_ECORRUPT: not of this build,
 * *out is untouched.
 */
int qn_info_unpack(struct qn_slice bytes, struct qn_info_part *out);

/** Append the text of the sections named in names[count]; count 0: default. */
void qn_info_text(struct qn_buf *out, const struct qn_info *i,
                  const struct qn_slice *names, uint32_t count);

/** Append the same text as a reply to INFO. */
void qn_info_reply(struct qn_buf *reply, uint8_t proto, const struct qn_info *i,
                   const struct qn_slice *names, uint32_t count);

#endif
