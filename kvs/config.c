/*
 * The configuration table.
 *
 * A row says where the value is stored and as what; the few kinds of storage
 * are told apart in `read_value` and `write_value` and nowhere else. A value is
 * a number within limits, a word that stands for a number (`none`, `local`,
 * `yes`), or a text. So an option is one row, and everything that lists options
 * (help, CONFIG GET, files, tests) walks the rows.
 *
 * Fixed rows have no storage: they answer clients that ask how Redis persists
 * and evicts (redis-benchmark waits for `save` and `appendonly`).
 *
 * Setting checks one option; what concerns several is checked by
 * qn_config_check after all were set, so that their order does not matter.
 */
#include "kvs/config.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/base/nearest.h"
#include "core/node.h"
#include "kvs/glob.h"
#include "kvs/reply.h"

enum storage { FIXED, BOOL, U32, U64, OUTPUT, TEXT };

/* A word that may be written in place of a number. */
struct word {
    const char *name; /* NULL: end of the list */
    uint64_t value;
};

struct row {
    const char *name;
    const char *arg;
    const char *initial;
    const char *help;
    enum storage storage;
    size_t at;               /* offset in struct qn_config */
    uint64_t min, max;       /* of a number; max 0: words only */
    const struct word *word; /* NULL: none */
    bool runtime;
};

static const struct word cells_words[] = {{"auto", QN_CELLS_AUTO}, {NULL, 0}};
static const struct word backlog_words[] = {{"auto", QN_BACKLOG_AUTO},
                                            {NULL, 0}};
static const struct word memory_words[] = {{"auto", QN_MAXMEMORY_AUTO},
                                           {NULL, 0}};
static const struct word min_words[] = {{"auto", QN_MIN_AUTO}, {NULL, 0}};
static const struct word replicas_words[] = {{"auto", QN_REPLICAS_AUTO},
                                             {NULL, 0}};
static const struct word ports_words[] = {{"next", QN_REPLICA_PORTS_NEXT},
                                          {"none", QN_REPLICA_PORTS_NONE},
                                          {NULL, 0}};
static const struct word consistency_words[] = {
    {"linearizable", true}, {"local", false}, {NULL, 0}};
static const struct word acceptor_words[] = {
    {"memory", true}, {"process", false}, {NULL, 0}};
static const struct word yes_no[] = {{"yes", true}, {"no", false}, {NULL, 0}};
static const struct word level_words[] = {{"debug", QN_LOG_DEBUG},
                                          {"info", QN_LOG_INFO},
                                          {"warn", QN_LOG_WARN},
                                          {"error", QN_LOG_ERROR},
                                          {NULL, 0}};
static const struct word pin_words[] = {{"core", QN_BIND_CORE},
                                        {"numa", QN_BIND_NUMA},
                                        {"none", QN_BIND_NONE},
                                        {NULL, 0}};

static const struct word placement_words[] = {{"auto", QN_PLACE_AUTO},
                                              {"near", QN_PLACE_NEAR},
                                              {"spread", QN_PLACE_SPREAD},
                                              {NULL, 0}};

#define AT(field) offsetof(struct qn_config, field)
#define KB        ((uint64_t)1 << 10)
#define MB        ((uint64_t)1 << 20)
#define GB        ((uint64_t)1 << 30)

static const struct row table[] = {
    {"replicas", "N", "auto",
     "replica processes: 1, or 3 to 64; auto: the NUMA nodes, at least 3", U32,
     AT(replicas), 1, QN_NODES_MAX, replicas_words, false},
    {"port", "PORT", "7379", "TCP port of all replicas; 0: any free one", U32,
     AT(port), 0, 65535, NULL, false},
    {"bind", "ADDRESS", "127.0.0.1", "IPv4 or IPv6 address to listen on", TEXT,
     AT(bind), 0, 0, NULL, false},
    {"unixsocket", "PATH", "",
     "listen on this Unix socket, replica i on PATH.i, instead of TCP", TEXT,
     AT(unixsocket), 0, 0, NULL, false},
    {"replica-ports", "BASE", "next",
     "replica i listens on port BASE + i too; next: port + 1; none: not", U32,
     AT(replica_ports), 1, 65535, ports_words, false},
    {"consistency", "KIND", "linearizable",
     "of reads: linearizable, or local (fast, possibly stale)", BOOL,
     AT(linearizable), 0, 0, consistency_words, false},
    {"maxclients", "N", "10000",
     "connections served at a time, by all replicas", U32, AT(maxclients), 1,
     1000000, NULL, false},
    {"databases", "N", "16", "databases to SELECT from", U32, AT(databases), 1,
     256, NULL, false},
    {"tcp-backlog", "N", "511", "connections waiting to be accepted", U32,
     AT(tcp_backlog), 1, 65535, NULL, false},
    {"tcp-keepalive", "SECONDS", "300",
     "silence before a connection is probed; 0: never", U32, AT(tcp_keepalive),
     0, 32767, NULL, false},
    {"pin", "HOW", "core",
     "bind each replica to a core, to the cores of a NUMA node (numa), or none",
     U32, AT(pin), 0, 0, pin_words, false},
    {"placement", "HOW", "auto",
     "of new connections: near (the replicas of the client's NUMA node), "
     "spread "
     "evenly, or auto (near, if the replicas are on several NUMA nodes)",
     U32, AT(placement), 0, 0, placement_words, false},
    {"acceptor", "KIND", "memory",
     "what decides: memory (any replicas but one may die at once), or process "
     "(as between machines)",
     BOOL, AT(memory_acceptor), 0, 0, acceptor_words, false},
    {"repl-backlog-size", "SIZE", "auto",
     "decided writes kept in memory for replicas that are behind; auto: 256mb, "
     "less if memory is short",
     U64, AT(repl_backlog_size), MB, 2 * GB, backlog_words, false},
    {"lag-timeout", "MILLISECONDS", "1000",
     "writes wait so long for a replica that is far behind and makes no "
     "progress; then they go on without it",
     U32, AT(lag_timeout), 1, 3600000, NULL, false},
    {"min-replicas-to-write", "N", "auto",
     "beside the leader, so many living replicas must keep up or writes wait; "
     "auto: all but a majority",
     U32, AT(min_replicas_to_write), 0, QN_NODES_MAX - 1, min_words, false},
    {"restart", "yes|no", "yes", "start a replica again that has ended", BOOL,
     AT(restart), 0, 0, yes_no, false},
    {"upgrade-timeout", "SECONDS", "60",
     "--upgrade gives up when a new replica is not complete by then", U32,
     AT(upgrade_timeout), 1, 86400, NULL, false},
    {"topology", "auto|NAME|FILE", "auto",
     "how decided batches are broadcast: planned, by a rule (sequential, "
     "binary, fibonacci, tree:k=N, adaptive, cluster, mst, mst2), planned on a "
     "measured machine, or as a tree that quoin tree wrote says",
     TEXT, AT(topology), 0, 0, NULL, false},
    {"machine", "FILE", "auto",
     "what messages cost here (quoin machine --measure), for --topology and "
     "INFO's predictions; auto: what is usual",
     TEXT, AT(machine), 0, 0, NULL, false},
    {"transport", "NAME", "ump", "what carries messages between replicas", TEXT,
     AT(transport), 0, 0, NULL, false},
    {"cells", "N", "auto",
     "64-byte cells of one lane, a power of two; auto: 4096, fewer for many "
     "replicas",
     U32, AT(cells), 16, 65536, cells_words, false},
    {"log-level", "LEVEL", "info", "debug, info, warn or error", U32,
     AT(log_level), 0, 0, level_words, false},
    {"events-dir", "DIR", "",
     "write what led to the end of a replica to a file there (quoin events)",
     TEXT, AT(events_dir), 0, 0, NULL, false},
    {"run-dir", "DIR", "auto",
     "where the server's processes meet, this user's alone; auto: /run/quoin "
     "for root, else /tmp/quoin-UID",
     TEXT, AT(run_dir), 0, 0, NULL, false},
    {"enable-debug-command", "yes|no", "no", "allow DEBUG, for tests", BOOL,
     AT(enable_debug_command), 0, 0, yes_no, false},

    {"protected-mode", "yes|no", "yes",
     "without a password, serve only clients on this machine", BOOL,
     AT(protected_mode), 0, 0, yes_no, true},
    {"maxmemory", "SIZE", "auto",
     "of all keys and values, 48 bytes each included, before writes that add "
     "to "
     "it are refused; 0: no limit; auto: what the memory here allows",
     U64, AT(maxmemory), 0, INT64_MAX, memory_words, true},
    {"proto-max-bulk-len", "SIZE", "64mb", "largest value or argument", U64,
     AT(proto_max_bulk_len), MB, 512 * MB, NULL, true},
    {"max-key-len", "SIZE", "64kb", "largest key", U64, AT(max_key_len), 1, MB,
     NULL, true},
    {"max-args", "N", "1048576", "arguments of one request", U32, AT(max_args),
     16, MB, NULL, true},
    {"client-query-buffer-limit", "SIZE", "1gb",
     "a connection that sends more than this unparsed is closed", U64,
     AT(client_query_buffer_limit), MB, 64 * GB, NULL, true},
    {"client-output-pause", "SIZE", "1mb",
     "a connection with more than this to be sent is not read", U64,
     AT(client_output_pause), KB, GB, NULL, true},
    {"client-output-buffer-limit", "SIZE", "normal 268435456 0 0",
     "a connection with more than this to be sent is closed; 0: never. Also as "
     "Redis writes it, 'normal SIZE 0 0'",
     OUTPUT, AT(client_output_limit), 0, 64 * GB, NULL, true},
    {"shutdown-timeout", "SECONDS", "10",
     "told to end, give up what is not answered by then; 0: do not wait", U32,
     AT(shutdown_timeout), 0, INT32_MAX, NULL, true},

    {"commit-timeout", "SECONDS", "3",
     "a write that is not applied by then is answered: outcome unknown; 0: it "
     "waits",
     U32, AT(commit_timeout), 0, 86400, NULL, true},

    {"save", NULL, "", "", FIXED, 0, 0, 0, NULL, false},
    {"appendonly", NULL, "no", "", FIXED, 0, 0, 0, NULL, false},
    {"timeout", NULL, "0", "", FIXED, 0, 0, 0, NULL, false},
    {"maxmemory-policy", NULL, "noeviction", "", FIXED, 0, 0, 0, NULL, false},
};

static const struct row *find(const char *name)
{
    for (size_t i = 0; i < QN_ARRAY_COUNT(table); i++) {
        if (strcasecmp(table[i].name, name) == 0) {
            return &table[i];
        }
    }
    return NULL;
}

/* ---- values as text ------------------------------------------------------ */

static bool read_word(const struct row *r, const char *text, uint64_t *v)
{
    for (const struct word *w = r->word; w != NULL && w->name != NULL; w++) {
        if (strcasecmp(w->name, text) == 0) {
            *v = w->value;
            return true;
        }
    }
    return false;
}

/* Bytes of a unit; 0: no unit of ours. */
static uint64_t unit_bytes(const char *unit)
{
    static const struct word units[] = {
        {"", 1},        {"b", 1},   {"k", 1000},       {"kb", KB},
        {"m", 1000000}, {"mb", MB}, {"g", 1000000000}, {"gb", GB}};
    for (size_t i = 0; i < QN_ARRAY_COUNT(units); i++) {
        if (strcasecmp(units[i].name, unit) == 0) {
            return units[i].value;
        }
    }
    return 0;
}

/* Digits, and for a size a unit. */
static bool read_number(const struct row *r, const char *text, uint64_t *v)
{
    uint64_t n = 0;
    size_t i = 0;
    for (; text[i] >= '0' && text[i] <= '9'; i++) {
        if (n > (UINT64_MAX - 9) / 10) {
            return false;
        }
        n = n * 10 + (uint64_t)(text[i] - '0');
    }
    bool sized = r->storage == U64 || r->storage == OUTPUT;
    uint64_t unit = sized ? unit_bytes(text + i) : text[i] == '\0';
    if (i == 0 || unit == 0 || n > UINT64_MAX / unit) {
        return false;
    }
    *v = n * unit;
    return true;
}

/* A limit of output: a size, or Redis' list for a class of clients. All are of
 * the class `normal`, and there is no soft limit. */
static bool read_output(const struct row *r, const char *text, uint64_t *v)
{
    char hard[32], soft[32], seconds[32], more;
    uint64_t none[2];
    return read_number(r, text, v) ||
           (sscanf(text, "normal %31s %31s %31s %c", hard, soft, seconds,
                   &more) == 3 &&
            read_number(r, soft, &none[0]) && none[0] == 0 &&
            read_number(r, seconds, &none[1]) && none[1] == 0 &&
            read_number(r, hard, v));
}

static void why_words(const struct row *r, char *why, size_t cap)
{
    size_t n = (size_t)snprintf(why, cap, "argument must be one of:");
    for (const struct word *w = r->word; w->name != NULL && n < cap; w++) {
        n += (size_t)snprintf(why + n, cap - n, " %s", w->name);
    }
    if (r->max != 0 && n < cap) {
        snprintf(why + n, cap - n, ", or between %llu and %llu",
                 (unsigned long long)r->min, (unsigned long long)r->max);
    }
}

static void why_number(const struct row *r, bool parsed, char *why, size_t cap)
{
    if (r->word != NULL) {
        why_words(r, why, cap);
    } else if (r->storage == OUTPUT) {
        snprintf(why, cap,
                 "argument must be a size, or 'normal SIZE 0 0': all clients "
                 "are normal, and there is no soft limit");
    } else if (parsed) {
        snprintf(why, cap, "argument must be between %llu and %llu inclusive",
                 (unsigned long long)r->min, (unsigned long long)r->max);
    } else {
        snprintf(why, cap, "%s",
                 r->storage == U64 ? "argument must be a memory value"
                                   : "argument couldn't be parsed into an "
                                     "integer");
    }
}

static int read_value(const struct row *r, struct qn_config *c,
                      const char *text, char *why, size_t cap)
{
    char *at = (char *)c + r->at;
    if (r->storage == TEXT) {
        if (strlen(text) >= QN_CONFIG_TEXT_MAX) {
            snprintf(why, cap, "argument must be shorter than %u bytes",
                     QN_CONFIG_TEXT_MAX);
            return QN_EINVAL;
        }
        memcpy(at, text, strlen(text) + 1);
        return QN_OK;
    }
    uint64_t v = 0;
    if (!read_word(r, text, &v)) {
        bool parsed = r->storage == OUTPUT ? read_output(r, text, &v)
                                           : read_number(r, text, &v);
        if (!parsed || v < r->min || v > r->max) {
            why_number(r, parsed, why, cap);
            return QN_EINVAL;
        }
    }
    if (r->storage == BOOL) {
        *(bool *)at = v != 0;
    } else if (r->storage == U32) {
        *(uint32_t *)(void *)at = (uint32_t)v;
    } else {
        *(uint64_t *)(void *)at = v;
    }
    return QN_OK;
}

/* `room` [QN_CONFIG_NUMBER_MAX] is for numbers. */
static const char *write_value(const struct row *r, const struct qn_config *c,
                               char *room)
{
    const char *at = (const char *)c + r->at;
    uint64_t v;
    switch (r->storage) {
    case FIXED:
        return r->initial;
    case TEXT:
        return at;
    case BOOL:
        v = *(const bool *)at;
        break;
    case U32:
        v = *(const uint32_t *)(const void *)at;
        break;
    default:
        v = *(const uint64_t *)(const void *)at;
    }
    for (const struct word *w = r->word; w != NULL && w->name != NULL; w++) {
        if (w->value == v) {
            return w->name;
        }
    }
    snprintf(room, QN_CONFIG_NUMBER_MAX,
             r->storage == OUTPUT ? "normal %llu 0 0" : "%llu",
             (unsigned long long)v);
    return room;
}

/* ---- the public face ----------------------------------------------------- */

void qn_config_init(struct qn_config *c)
{
    char why[QN_CONFIG_WHY_MAX];
    memset(c, 0, sizeof *c);
    for (size_t i = 0; i < QN_ARRAY_COUNT(table); i++) {
        if (table[i].storage != FIXED) {
            int err =
                read_value(&table[i], c, table[i].initial, why, sizeof why);
            QN_ASSERT(err == QN_OK);
        }
    }
}

bool qn_config_at(uint32_t i, struct qn_config_option *out)
{
    if (i >= QN_ARRAY_COUNT(table)) {
        return false;
    }
    const struct row *r = &table[i];
    *out = (struct qn_config_option){.name = r->name,
                                     .arg = r->arg,
                                     .initial = r->initial,
                                     .help = r->help,
                                     .runtime = r->runtime,
                                     .flag = r->word == yes_no,
                                     .fixed = r->storage == FIXED};
    return true;
}

static void why_unknown(const char *name, char *why, size_t cap)
{
    const char *near = qn_nearest(name, &table[0].name, sizeof table[0],
                                  QN_ARRAY_COUNT(table));
    if (near != NULL) {
        snprintf(why, cap, "no option '%.64s'; did you mean '%s'?", name, near);
    } else {
        snprintf(why, cap, "no option '%.64s'; `quoind --help` lists them",
                 name);
    }
}

int qn_config_start(struct qn_config *c, const char *name, const char *value,
                    char *why, size_t cap)
{
    char reason[QN_CONFIG_WHY_MAX];
    const struct row *r = find(name);
    if (r == NULL) {
        why_unknown(name, why, cap);
        return QN_ENOENT;
    }
    int err = QN_EINVAL;
    if (r->storage == FIXED) {
        if (strcmp(value, r->initial) == 0) {
            return QN_OK;
        }
        snprintf(reason, sizeof reason, "argument can only be '%s'",
                 r->initial);
    } else {
        err = read_value(r, c, value, reason, sizeof reason);
        if (err != QN_OK && r->storage != TEXT) {
            /* Redis' words for what is no number do not say what is. */
            why_number(r, true, reason, sizeof reason);
        }
    }
    if (err != QN_OK) {
        snprintf(why, cap, "%s '%.64s': %s", r->name, value, reason);
    }
    return err;
}

/* Copy an argument that may hold NUL; false: it is none of ours. */
static bool as_string(struct qn_slice s, char *to, size_t cap)
{
    if (s.len >= cap || (s.len > 0 && memchr(s.data, '\0', s.len) != NULL)) {
        return false;
    }
    if (s.len > 0) {
        memcpy(to, s.data, s.len);
    }
    to[s.len] = '\0';
    return true;
}

int qn_config_set(struct qn_config *c, struct qn_slice name,
                  struct qn_slice value, char *why, size_t cap)
{
    char key[64];
    char text[QN_CONFIG_TEXT_MAX];
    char reason[QN_CONFIG_WHY_MAX];
    const struct row *r = as_string(name, key, sizeof key) ? find(key) : NULL;
    if (r == NULL) {
        snprintf(why, cap,
                 "Unknown option or number of arguments for CONFIG SET - "
                 "'%.*s'",
                 (int)QN_MIN(name.len, (size_t)128), (const char *)name.data);
        return QN_ENOENT;
    }
    int err;
    if (!r->runtime) {
        snprintf(reason, sizeof reason, "can't set immutable config");
        err = QN_EPERM;
    } else if (!as_string(value, text, sizeof text)) {
        why_number(r, false, reason, sizeof reason);
        err = QN_EINVAL;
    } else {
        /* Words such as `auto` are worked out when a server starts. */
        struct row number = *r;
        number.word = r->storage == BOOL ? r->word : NULL;
        err = read_value(&number, c, text, reason, sizeof reason);
    }
    if (err != QN_OK) {
        snprintf(why, cap,
                 "CONFIG SET failed (possibly related to argument '%s') - %s",
                 r->name, reason);
    }
    return err;
}

const char *qn_config_value(const struct qn_config *c, uint32_t i, char *room)
{
    QN_ASSERT(i < QN_ARRAY_COUNT(table));
    return write_value(&table[i], c, room);
}

static bool wanted(const struct row *r, const struct qn_slice *pattern,
                   uint32_t count)
{
    struct qn_slice name = {(const uint8_t *)r->name, strlen(r->name)};
    for (uint32_t i = 0; i < count; i++) {
        if (qn_glob_match(pattern[i], name, true)) {
            return true;
        }
    }
    return false;
}

void qn_config_reply(const struct qn_config *c, const struct qn_slice *pattern,
                     uint32_t count, uint8_t proto, struct qn_buf *reply)
{
    size_t pairs = 0;
    for (size_t i = 0; i < QN_ARRAY_COUNT(table); i++) {
        pairs += wanted(&table[i], pattern, count);
    }
    qn_reply_map(reply, proto, pairs);
    for (size_t i = 0; i < QN_ARRAY_COUNT(table); i++) {
        char room[QN_CONFIG_NUMBER_MAX];
        if (wanted(&table[i], pattern, count)) {
            qn_reply_bulk_str(reply, table[i].name);
            qn_reply_bulk_str(reply, write_value(&table[i], c, room));
        }
    }
}
