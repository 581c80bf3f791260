#ifndef QN_KVS_CONFIG_CONFIG_H
#define QN_KVS_CONFIG_CONFIG_H

/**
 * The configuration of `quoind`: one table of names, limits and defaults.
 *
 * The same table reads the command line (`--port 7000`), a configuration file
 * (`port 7000`) and CONFIG GET and SET, and prints the help. Start options are
 * fixed when the server starts; run-time options change by CONFIG SET. CONFIG
 * SET goes through the log, so all replicas change at the same slot: setting is
 * a pure function of the previous configuration and the arguments. Two options
 * say when writes wait for a replica; they change beside the log, because the
 * log decides nothing while writes wait (kvs/config/settings.h).
 *
 * struct qn_config is plain data and may be copied. Errors are one line that
 * names the option and its limits.
 *
 * Threads: any, each with its own struct. Nothing blocks but qn_config_file and
 * qn_config_check, which use files.
 */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/bits.h"
#include "core/base/log.h"
#include "core/node.h"
#include "core/place/place.h"
#include "kvs/base/buf.h"

#define QN_CONFIG_TEXT_MAX    108u /* bytes of a text option, NUL included */
#define QN_CONFIG_WHY_MAX     256u /* room for any error line, NUL included */
#define QN_CELLS_AUTO         0u   /* see qn_resource_check_cells */
#define QN_MIN_AUTO           UINT32_MAX /* all but a majority */
#define QN_MIN_REPLICAS_MAX   (QN_NODES_MAX - 1)
#define QN_LAG_TIMEOUT_MAX    3600000u   /* ms */
#define QN_REPLICAS_AUTO      0u         /* as many as NUMA nodes, at least 3 */
#define QN_BACKLOG_AUTO       0u         /* see kvs/resources/budget.h */
#define QN_MAXMEMORY_AUTO     UINT64_MAX /* likewise; nothing is refused */
#define QN_REPLICA_PORTS_NEXT 0u /* from port + 1 on (any, if port is 0) */
#define QN_REPLICA_PORTS_NONE 65536u

/** Where new connections land (kvs/listen/connection_placement.h). */
enum qn_place_by {
    QN_PLACE_AUTO,  /* near, if the replicas are on several NUMA nodes */
    QN_PLACE_NEAR,  /* on a replica of the client's NUMA node */
    QN_PLACE_SPREAD /* on any, evenly */
};

struct qn_config {
    /* Start options: where and how many. */
    uint32_t replicas;                   /* 1, 3 .. 64, or QN_REPLICAS_AUTO */
    uint32_t replicas_max;               /* see qn_config_seats, or
                                            QN_REPLICAS_AUTO */
    uint32_t port;                       /* 0: any free one */
    uint32_t replica_ports;              /* first; or QN_REPLICA_PORTS_* */
    char bind[QN_CONFIG_TEXT_MAX];       /* IPv4 or IPv6 address */
    char unixsocket[QN_CONFIG_TEXT_MAX]; /* "": TCP; else this path instead */
    uint32_t tcp_backlog;                /* connections not yet accepted */
    uint32_t tcp_keepalive;              /* s; 0: off */
    uint32_t maxclients;
    uint32_t databases;
    bool linearizable; /* consistency; false: local */
    bool enable_debug_command;
    uint32_t log_level;                  /* enum qn_log_level */
    char events_dir[QN_CONFIG_TEXT_MAX]; /* kvs/server/events.h; "": no files */
    char run_dir[QN_CONFIG_TEXT_MAX];    /* kvs/config/rundir.h; or "auto" */
    char transport[QN_CONFIG_TEXT_MAX];  /* name in transports/registry.h */
    char topology[QN_CONFIG_TEXT_MAX];   /* kvs/config/topology.h */
    char machine[QN_CONFIG_TEXT_MAX];    /* likewise: measured, or "auto" */
    uint32_t cells;                      /* of one lane, a power of two, or
                                            QN_CELLS_AUTO */
    uint32_t pin;                        /* enum qn_bind */
    uint32_t placement;                  /* enum qn_place_by */
    bool memory_acceptor;                /* else process (PROTOCOL.md) */
    bool shared_state; /* replicas read each other's memory for agreement;
                          false: messages only (PROTOCOL.md 3.7), with the
                          process acceptor */
    uint64_t repl_backlog_size; /* bytes kept for replicas behind, or
                                   QN_BACKLOG_AUTO */
    bool restart;               /* a replica that ended is started again */
    uint32_t upgrade_timeout;   /* s, for each replica */

    /* Run-time options. Sizes are bytes. */
    bool protected_mode; /* without a password only local clients are served */
    uint64_t maxmemory;  /* logical bytes of the store; 0: no limit; or
                            QN_MAXMEMORY_AUTO, before the start only */
    uint64_t proto_max_bulk_len;
    uint64_t max_key_len;
    uint32_t max_args;
    uint64_t client_query_buffer_limit;
    uint64_t client_output_pause;
    uint64_t client_output_limit; /* 0: none */
    uint32_t shutdown_timeout;    /* s to drain; 0: not at all */
    uint32_t commit_timeout;      /* s for a write to be applied; 0: for ever */

    /* Run-time options that change beside the log. */
    uint32_t lag_timeout;           /* ms that writes wait for a replica that
                                       makes no progress */
    uint32_t min_replicas_to_write; /* followers; or QN_MIN_AUTO, before the
                                       start only */
    bool min_replicas_auto; /* not an option: that was `auto`, and follows the
                               number of voters until CONFIG SET */
    bool replicas_max_auto; /* not an option: that was `auto`, and automatic
                               limits are those of the replicas that begin */
};

/** Seats of the group: replicas, and those that may come later. The nodes 0 ..
 *  replicas - 1 begin it. */
static inline uint32_t qn_config_seats(const struct qn_config *c)
{
    return QN_MAX(c->replicas_max, c->replicas);
}

/** Seats where `replicas-max` is `auto`, and the group can grow. */
#define QN_SEATS_DEFAULT 8u

/** Replace `auto` of `replicas-max`, and remember it: QN_SEATS_DEFAULT, or as
 *  many as there are replicas; less if own ports behind those of the replicas
 *  would be none.
 *  @param grows  A group of this topology and transport can have vacant seats.
 *                (One of the process acceptor has none.) */
void qn_config_seats_resolve(struct qn_config *c, bool grows);

/** Mask of the seats that are taken when the group begins. */
static inline uint64_t qn_config_taken(const struct qn_config *c)
{
    return qn_low_bits(c->replicas);
}

/** Followers that writes wait for where `min-replicas-to-write` is `auto`: with
 *  the leader they are a majority of `voters`, less one of an even number. */
static inline uint32_t qn_config_min_auto(uint32_t voters)
{
    return voters > 0 ? (voters - 1) / 2 : 0;
}

/** Replace `auto` of `min-replicas-to-write` by what it is for the replicas
 *  that begin the group, and remember it. */
static inline void qn_config_min_resolve(struct qn_config *c)
{
    if (c->min_replicas_to_write == QN_MIN_AUTO) {
        c->min_replicas_auto = true;
        c->min_replicas_to_write = qn_config_min_auto(c->replicas);
    }
}

/** When an option may change. */
enum qn_config_when {
    QN_CONFIG_AT_START,
    QN_CONFIG_BY_LOG,    /* by CONFIG SET, at the same slot in all replicas */
    QN_CONFIG_BESIDE_LOG /* by CONFIG SET, in each replica as it sees the new
                            word */
};

/** Description of an option, for help texts and tests. */
struct qn_config_option {
    const char *name;         /* "tcp-backlog" */
    const char *arg;          /* what the help calls its value: "N" */
    const char *initial;      /* default, as typed */
    const char *help;         /* one sentence */
    enum qn_config_when when; /* it may change */
    bool flag;                /* yes or no: the name alone means yes */
    bool fixed; /* answered by CONFIG GET only: cannot be changed */
};

#define QN_CONFIG_RUNTIME_MAX 2048u /* bytes */

/** Write the options that change by the log: name NUL value NUL ... NUL.
 *  @param to  [QN_CONFIG_RUNTIME_MAX] filled. @return bytes. */
size_t qn_config_runtime_write(const struct qn_config *c, uint8_t *to);

/** Read them back; *from moves behind them. @return QN_OK; QN_ECORRUPT: they
 *  end too early, or one is not an option that changes by the log. */
int qn_config_runtime_read(struct qn_config *c, struct qn_slice *from);

/** Agreement by messages only, whatever was configured: a transport that is a
 *  device has no memory that replicas could read. */
void qn_config_by_message(struct qn_config *c);

/** Set all options to their defaults. */
void qn_config_init(struct qn_config *c);

/** The i-th option by table order; false past the last one. */
bool qn_config_at(uint32_t i, struct qn_config_option *out);

/**
 * Set an option at start.
 *
 * @param name   As on the command line without the dashes; any case.
 * @param value  Numbers in decimal; sizes with an optional unit b, k, kb, m,
 *               mb, g, gb (kb = 1024 bytes, k = 1000). A limit of output may
 *               also be written as Redis does, `normal SIZE 0 0`.
 * @param why    [cap] Filled on failure: one line, cut if it must be.
 * @return QN_OK; QN_ENOENT: no such option (`why` names the nearest);
 *         QN_EINVAL: not a value of it. *c is untouched on failure.
 */
int qn_config_start(struct qn_config *c, const char *name, const char *value,
                    char *why, size_t cap);

/**
 * Set an option by CONFIG SET.
 *
 * @param way  BY_LOG or BESIDE_LOG: options that change the other way are
 *             refused, because a command can change options in one way only.
 * @param why  [cap] Filled on failure: the text of Redis' error reply behind
 *             its code ("ERR %s"): "CONFIG SET failed (possibly related to
 *             argument 'x') - ..." or "Unknown option or number of arguments
 *             for CONFIG SET - 'x'".
 * @return QN_OK; QN_ENOENT; QN_EPERM: fixed at start, or not this way;
 *         QN_EINVAL, also for the word `auto`, which means something at start
 *         only.
 */
int qn_config_set(struct qn_config *c, enum qn_config_when way,
                  struct qn_slice name, struct qn_slice value, char *why,
                  size_t cap);

/**
 * Set several options by CONFIG SET, all or none: each option, then the checks
 * that concern several (qn_config_check_limits).
 *
 * @param pair  [count] name, value, name, value, ...; count is even.
 * @return as qn_config_set; also QN_EINVAL if a name occurs twice. *c is
 *         untouched on failure.
 */
int qn_config_set_all(struct qn_config *c, enum qn_config_when way,
                      const struct qn_slice *pair, uint32_t count, char *why,
                      size_t cap);

/** True if one of the names pair[0], pair[2], ... changes beside the log. */
bool qn_config_beside(const struct qn_slice *pair, uint32_t count);

#define QN_CONFIG_NUMBER_MAX 40u /* bytes of a number as text, NUL included */
/** The value of the i-th option as text that qn_config_start accepts. The
 *  result is in `room` [QN_CONFIG_NUMBER_MAX], or borrowed from *c. */
const char *qn_config_value(const struct qn_config *c, uint32_t i, char *room);

/** Write the reply of CONFIG GET: a map of all options whose name matches one
 *  of the globs, each once. */
void qn_config_reply(const struct qn_config *c, const struct qn_slice *pattern,
                     uint32_t count, uint8_t proto, struct qn_buf *reply);

/**
 * Check what concerns several options: ports that fit and do not overlap, a
 * number of replicas that can agree, a query buffer that holds a bulk, a path
 * that fits with `.63` behind it, a known topology, a directory that can be
 * written. (Only the program knows the transports.) At start; it looks at
 * files.
 *
 * @param c  `replicas` is no longer QN_REPLICAS_AUTO.
 * @return QN_OK or QN_EINVAL with `why` filled.
 */
int qn_config_check(const struct qn_config *c, char *why, size_t cap);

/** The part of qn_config_check that concerns run-time options, for CONFIG
 *  SET: pure, so that all replicas agree. @return QN_OK; QN_EINVAL, `why`
 *  filled. */
int qn_config_check_limits(const struct qn_config *c, char *why, size_t cap);

/**
 * Read a file of lines `name value`; blank lines and lines that begin with `#`
 * are skipped.
 *
 * @return QN_OK; QN_EIO: unreadable; QN_EINVAL: a bad line. On failure `why`
 *         has file, line and reason, and *c is untouched.
 */
int qn_config_file(struct qn_config *c, const char *path, char *why,
                   size_t cap);

#endif
