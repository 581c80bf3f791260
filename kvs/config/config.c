/*
 * The configuration table.
 *
 * A row says where the value is stored, in which form, and when it may change;
 * only config_value.c tells the few kinds of storage apart. An option is
 * therefore one row, and everything that lists options (help, CONFIG GET,
 * files, tests) walks the rows.
 *
 * Fixed rows have no storage: they answer clients that ask how Redis persists
 * and evicts (redis-benchmark waits for `save` and `appendonly`).
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/suggest.h"
#include "core/node.h"
#include "kvs/config/config_internal.h"

/* Columns of the table. */
#define FIXED  QN_CONFIG_FIXED
#define BOOL   QN_CONFIG_BOOL
#define U32    QN_CONFIG_U32
#define U64    QN_CONFIG_U64
#define OUTPUT QN_CONFIG_OUTPUT
#define TEXT   QN_CONFIG_TEXT
#define START  QN_CONFIG_AT_START
#define LOG    QN_CONFIG_BY_LOG
#define BESIDE QN_CONFIG_BESIDE_LOG

static const struct qn_config_word cells_words[] = {{"auto", QN_CELLS_AUTO},
                                                    {NULL, 0}};
static const struct qn_config_word backlog_words[] = {{"auto", QN_BACKLOG_AUTO},
                                                      {NULL, 0}};
static const struct qn_config_word memory_words[] = {
    {"auto", QN_MAXMEMORY_AUTO}, {NULL, 0}};
static const struct qn_config_word min_words[] = {{"auto", QN_MIN_AUTO},
                                                  {NULL, 0}};
static const struct qn_config_word replicas_words[] = {
    {"auto", QN_REPLICAS_AUTO}, {NULL, 0}};
static const struct qn_config_word ports_words[] = {
    {"next", QN_REPLICA_PORTS_NEXT},
    {"none", QN_REPLICA_PORTS_NONE},
    {NULL, 0}};
static const struct qn_config_word consistency_words[] = {
    {"linearizable", true}, {"local", false}, {NULL, 0}};
static const struct qn_config_word acceptor_words[] = {
    {"memory", true}, {"process", false}, {NULL, 0}};
static const struct qn_config_word yes_no[] = {
    {"yes", true}, {"no", false}, {NULL, 0}};
static const struct qn_config_word level_words[] = {{"debug", QN_LOG_DEBUG},
                                                    {"info", QN_LOG_INFO},
                                                    {"warn", QN_LOG_WARN},
                                                    {"error", QN_LOG_ERROR},
                                                    {NULL, 0}};
static const struct qn_config_word pin_words[] = {{"core", QN_BIND_CORE},
                                                  {"numa", QN_BIND_NUMA},
                                                  {"none", QN_BIND_NONE},
                                                  {NULL, 0}};

static const struct qn_config_word placement_words[] = {
    {"auto", QN_PLACE_AUTO},
    {"near", QN_PLACE_NEAR},
    {"spread", QN_PLACE_SPREAD},
    {NULL, 0}};

#define AT(field) offsetof(struct qn_config, field)
#define KB        ((uint64_t)1 << 10)
#define MB        ((uint64_t)1 << 20)
#define GB        ((uint64_t)1 << 30)

static const struct qn_config_row table[] = {
    {"replicas", "N", "auto",
     "replica processes: 1, or 3 to 64; auto: the NUMA nodes, at least 3", U32,
     AT(replicas), 1, QN_NODES_MAX, replicas_words, START},
    {"replicas-max", "N", "auto",
     "replicas for which the group has seats; auto: 8, or as many as it begins "
     "with; more with --acceptor memory only",
     U32, AT(replicas_max), 1, QN_NODES_MAX, replicas_words, START},
    {"port", "PORT", "7379", "TCP port of all replicas; 0: any free one", U32,
     AT(port), 0, 65535, NULL, START},
    {"bind", "ADDRESS", "127.0.0.1", "IPv4 or IPv6 address on which to listen",
     TEXT, AT(bind), 0, 0, NULL, START},
    {"unixsocket", "PATH", "",
     "listen on this Unix socket, replica i on PATH.i, instead of TCP", TEXT,
     AT(unixsocket), 0, 0, NULL, START},
    {"replica-ports", "BASE", "next",
     "replica i also listens on port BASE + i; next: port + 1; none: no such "
     "ports",
     U32, AT(replica_ports), 1, 65535, ports_words, START},
    {"consistency", "KIND", "linearizable",
     "consistency of reads: linearizable, or local (fast, possibly stale)",
     BOOL, AT(linearizable), 0, 0, consistency_words, START},
    {"maxclients", "N", "10000",
     "connections served at the same time, by all replicas together", U32,
     AT(maxclients), 1, 1000000, NULL, START},
    {"databases", "N", "16", "number of databases", U32, AT(databases), 1, 256,
     NULL, START},
    {"tcp-backlog", "N", "511", "most connections that wait to be accepted",
     U32, AT(tcp_backlog), 1, 65535, NULL, START},
    {"tcp-keepalive", "SECONDS", "300",
     "seconds of silence before a connection is probed; 0: never", U32,
     AT(tcp_keepalive), 0, 32767, NULL, START},
    {"pin", "HOW", "core",
     "bind each replica to a core, to the cores of a NUMA node (numa), or none",
     U32, AT(pin), 0, 0, pin_words, START},
    {"placement", "HOW", "auto",
     "placement of new connections: near (replicas of the client's NUMA "
     "node), spread (evenly), or auto (near, if the replicas are on several "
     "NUMA nodes)",
     U32, AT(placement), 0, 0, placement_words, START},
    {"acceptor", "KIND", "memory",
     "what decides: memory (all replicas but one may die at once), or process "
     "(as between machines)",
     BOOL, AT(memory_acceptor), 0, 0, acceptor_words, START},
    {"shared-state", "yes|no", "yes",
     "replicas read each other's memory for agreement; no: by messages only, "
     "as between machines (with --acceptor process)",
     BOOL, AT(shared_state), 0, 0, yes_no, START},
    {"repl-backlog-size", "SIZE", "auto",
     "decided writes kept in memory for lagging replicas; auto: 256mb, less "
     "if memory is short",
     U64, AT(repl_backlog_size), MB, 2 * GB, backlog_words, START},
    {"restart", "yes|no", "yes", "start an ended replica again", BOOL,
     AT(restart), 0, 0, yes_no, START},
    {"upgrade-timeout", "SECONDS", "60",
     "seconds that --upgrade waits for each new replica before it gives up",
     U32, AT(upgrade_timeout), 1, 86400, NULL, START},
    {"topology", "auto|NAME|FILE", "auto",
     "broadcast tree of decided batches: planned, by a rule (sequential, "
     "binary, fibonacci, tree:k=N, adaptive, cluster, mst, mst2), planned "
     "for the machine of FILE, or the tree of FILE (quoin tree); or, while "
     "all keep up, a diamond ring (ring:k=N)",
     TEXT, AT(topology), 0, 0, NULL, START},
    {"machine", "FILE", "auto",
     "measured message costs (quoin machine --measure), for --topology and "
     "INFO's predictions; auto: usual costs",
     TEXT, AT(machine), 0, 0, NULL, START},
    {"transport", "NAME", "ump", "transport of messages between replicas", TEXT,
     AT(transport), 0, 0, NULL, START},
    {"cells", "N", "auto",
     "64-byte cells of one lane, a power of two; auto: 4096, fewer for many "
     "replicas",
     U32, AT(cells), 16, 65536, cells_words, START},
    {"log-level", "LEVEL", "info", "debug, info, warn or error", U32,
     AT(log_level), 0, 0, level_words, START},
    {"events-dir", "DIR", "",
     "write the last events of an ended replica to a file in DIR (quoin "
     "events)",
     TEXT, AT(events_dir), 0, 0, NULL, START},
    {"run-dir", "DIR", "auto",
     "directory of the server's sockets and locks, which only its user may "
     "write to; auto: /run/quoin for root, else /tmp/quoin-UID",
     TEXT, AT(run_dir), 0, 0, NULL, START},
    {"enable-debug-command", "yes|no", "no", "allow DEBUG, for tests", BOOL,
     AT(enable_debug_command), 0, 0, yes_no, START},

    {"protected-mode", "yes|no", "yes",
     "serve only clients on this machine (there is no password)", BOOL,
     AT(protected_mode), 0, 0, yes_no, LOG},
    {"maxmemory", "SIZE", "auto",
     "limit of all keys and values, 48 bytes per key included; writes that "
     "would exceed it are refused; 0: no limit; auto: what free memory allows",
     U64, AT(maxmemory), 0, INT64_MAX, memory_words, LOG},
    {"proto-max-bulk-len", "SIZE", "64mb", "longest value or argument", U64,
     AT(proto_max_bulk_len), MB, 512 * MB, NULL, LOG},
    {"max-key-len", "SIZE", "64kb", "longest key", U64, AT(max_key_len), 1, MB,
     NULL, LOG},
    {"max-args", "N", "1048576", "most arguments of one request", U32,
     AT(max_args), 16, MB, NULL, LOG},
    {"client-query-buffer-limit", "SIZE", "1gb",
     "a connection with more unparsed input than this is closed", U64,
     AT(client_query_buffer_limit), MB, 64 * GB, NULL, LOG},
    {"client-output-pause", "SIZE", "1mb",
     "a connection with more unsent output than this is not read", U64,
     AT(client_output_pause), KB, GB, NULL, LOG},
    {"client-output-buffer-limit", "SIZE", "normal 268435456 0 0",
     "a connection with more unsent output than this is closed; 0: never. "
     "Also in Redis' form 'normal SIZE 0 0'",
     OUTPUT, AT(client_output_limit), 0, 64 * GB, NULL, LOG},
    {"shutdown-timeout", "SECONDS", "10",
     "seconds that a shutdown waits for replies; 0: none", U32,
     AT(shutdown_timeout), 0, INT32_MAX, NULL, LOG},

    {"commit-timeout", "SECONDS", "3",
     "seconds until a write that is not applied is answered \"outcome "
     "unknown\"; 0: it waits",
     U32, AT(commit_timeout), 0, 86400, NULL, LOG},

    {"lag-timeout", "MILLISECONDS", "1000",
     "time that writes wait for a far lagging replica that makes no "
     "progress; then they continue without it",
     U32, AT(lag_timeout), 1, QN_LAG_TIMEOUT_MAX, NULL, BESIDE},
    {"min-replicas-to-write", "N", "auto",
     "live followers that must keep up, or writes wait; "
     "auto: all but a majority of the voters",
     U32, AT(min_replicas_to_write), 0, QN_MIN_REPLICAS_MAX, min_words, BESIDE},

    {"save", NULL, "", "", FIXED, 0, 0, 0, NULL, START},
    {"appendonly", NULL, "no", "", FIXED, 0, 0, 0, NULL, START},
    {"timeout", NULL, "0", "", FIXED, 0, 0, 0, NULL, START},
    {"maxmemory-policy", NULL, "noeviction", "", FIXED, 0, 0, 0, NULL, START},
};

const struct qn_config_row *qn_config_find(const char *name)
{
    for (size_t i = 0; i < QN_ARRAY_COUNT(table); i++) {
        if (strcasecmp(table[i].name, name) == 0) {
            return &table[i];
        }
    }
    return NULL;
}

const struct qn_config_row *qn_config_row(uint32_t i)
{
    return i < QN_ARRAY_COUNT(table) ? &table[i] : NULL;
}

void qn_config_why_unknown(const char *name, char *why, size_t cap)
{
    const char *near = qn_suggest(name, &table[0].name, sizeof table[0],
                                  QN_ARRAY_COUNT(table));
    if (near != NULL) {
        snprintf(why, cap, "no option '%.64s'; did you mean '%s'?", name, near);
    } else {
        snprintf(why, cap, "no option '%.64s'; `quoind --help` lists them",
                 name);
    }
}

void qn_config_init(struct qn_config *c)
{
    char why[QN_CONFIG_WHY_MAX];
    memset(c, 0, sizeof *c);
    for (size_t i = 0; i < QN_ARRAY_COUNT(table); i++) {
        if (table[i].storage != QN_CONFIG_FIXED) {
            int err =
                qn_config_read(&table[i], c, table[i].initial, why, sizeof why);
            QN_ASSERT(err == QN_OK);
        }
    }
}

bool qn_config_at(uint32_t i, struct qn_config_option *out)
{
    if (i >= QN_ARRAY_COUNT(table)) {
        return false;
    }
    const struct qn_config_row *r = &table[i];
    *out = (struct qn_config_option){.name = r->name,
                                     .arg = r->arg,
                                     .initial = r->initial,
                                     .help = r->help,
                                     .when = r->when,
                                     .flag = r->word == yes_no,
                                     .fixed = r->storage == QN_CONFIG_FIXED};
    return true;
}

const char *qn_config_value(const struct qn_config *c, uint32_t i, char *room)
{
    QN_ASSERT(i < QN_ARRAY_COUNT(table));
    return qn_config_write(&table[i], c, room);
}
