/*
 * A table of sections, each with a function that appends its lines. A request
 * is a mask over the table, so repeated and overlapping names cost nothing, and
 * the order is always that of the table, as in Redis.
 *
 * Fields of features that quoind lacks (forks, replication backlog, cluster)
 * are written with their idle values if monitoring tools read them; other such
 * fields are left out.
 *
 * Sums are made over the parts of the replicas that answered.
 * `replicas_missing` names the others, so that a reader sees why a count fell.
 */
#include "kvs/introspect/info.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "kvs/commands/command.h"
#include "kvs/introspect/info_internal.h"
#include "kvs/resp/reply.h"

/* Lines are short except for paths; nothing is cut. */
void qn_info_line(struct qn_buf *b, const char *fmt, ...)
{
    size_t room = 256;
    for (;;) {
        uint8_t *to = qn_buf_reserve(b, room + 2);
        if (to == NULL) {
            return;
        }
        va_list args;
        va_start(args, fmt);
        int n = vsnprintf((char *)to, room, fmt, args);
        va_end(args);
        QN_ASSERT(n >= 0);
        if ((size_t)n < room) {
            memcpy(to + n, "\r\n", 2);
            b->len += (size_t)n + 2;
            return;
        }
        room = (size_t)n + 1;
    }
}

const char *qn_info_text_of(const char *text)
{
    return text != NULL ? text : "";
}

void qn_info_count(struct qn_buf *b, const char *name, uint64_t v)
{
    qn_info_line(b, "%s:%" PRIu64, name, v);
}

/* `name` in bytes, and `name`_human with a unit. */
static void line_bytes(struct qn_buf *b, const char *name, uint64_t bytes)
{
    static const char units[] = "BKMGTP";
    double v = (double)bytes;
    size_t unit = 0;
    for (; v >= 1024 && unit < sizeof units - 2; unit++) {
        v /= 1024;
    }
    qn_info_count(b, name, bytes);
    qn_info_line(b, "%s_human:%.*f%c", name, unit == 0 ? 0 : 2, v, units[unit]);
}

/* The sum of one uint64_t field, at `offset`, over all parts. */
static uint64_t sum_at(const struct qn_info *i, size_t offset)
{
    uint64_t sum = 0;
    for (uint32_t p = 0; p < i->parts; p++) {
        uint64_t v;
        memcpy(&v, (const char *)i->part[p] + offset, sizeof v);
        sum += v;
    }
    return sum;
}

#define SUM(i, field) sum_at((i), offsetof(struct qn_info_part, field))

static uint64_t most_at(const struct qn_info *i, size_t offset)
{
    uint64_t most = 0;
    for (uint32_t p = 0; p < i->parts; p++) {
        uint64_t v;
        memcpy(&v, (const char *)i->part[p] + offset, sizeof v);
        most = QN_MAX(most, v);
    }
    return most;
}

#define MOST(i, field) most_at((i), offsetof(struct qn_info_part, field))

/* ---- sections ------------------------------------------------------------ */

static void server(struct qn_buf *b, const struct qn_info *i)
{
    qn_info_line(b, "redis_version:%s", qn_info_text_of(i->redis_version));
    qn_info_line(b, "redis_git_sha1:%s", qn_info_text_of(i->git_sha1));
    qn_info_line(b, "redis_git_dirty:0");
    qn_info_line(b, "redis_mode:standalone");
    qn_info_line(b, "server_name:quoind");
    qn_info_line(b, "quoind_version:%s", qn_info_text_of(i->quoind_version));
    qn_info_line(b, "os:%s", qn_info_text_of(i->os));
    qn_info_line(b, "arch_bits:%zu", 8 * sizeof(void *));
    qn_info_line(b, "process_id:%" PRIu32, i->process_id);
    qn_info_line(b, "process_supervised:no");
    qn_info_line(b, "run_id:%s", qn_info_text_of(i->run_id));
    qn_info_line(b, "tcp_port:%" PRIu32, i->tcp_port);
    qn_info_count(b, "server_time_usec", i->wall_usec);
    qn_info_count(b, "uptime_in_seconds", i->uptime_s);
    qn_info_count(b, "uptime_in_days", i->uptime_s / 86400);
    qn_info_line(b, "executable:%s", qn_info_text_of(i->executable));
    qn_info_line(b, "config_file:%s", qn_info_text_of(i->config_file));
}

static void clients(struct qn_buf *b, const struct qn_info *i)
{
    qn_info_count(b, "connected_clients", SUM(i, connected_clients));
    qn_info_line(b, "cluster_connections:0");
    qn_info_count(b, "maxclients", i->maxclients);
    qn_info_count(b, "client_recent_max_input_buffer", MOST(i, input_most));
    qn_info_count(b, "client_recent_max_output_buffer", MOST(i, output_most));
    qn_info_count(b, "blocked_clients", SUM(i, blocked_clients));
    qn_info_line(b, "tracking_clients:0");
    qn_info_line(b, "clients_in_timeout_table:0");
}

/* The part of the replica that was asked: clients compare its memory with
 * maxmemory, which also counts for one replica. */
static const struct qn_info_part *asked(const struct qn_info *i)
{
    static const struct qn_info_part none;
    for (uint32_t p = 0; p < i->parts; p++) {
        if (i->part[p]->replica == i->replica) {
            return i->part[p];
        }
    }
    return &none;
}

static void memory(struct qn_buf *b, const struct qn_info *i)
{
    uint64_t used = asked(i)->used_memory;
    uint64_t rss = asked(i)->used_memory_rss;
    line_bytes(b, "used_memory", used);
    line_bytes(b, "used_memory_rss", rss);
    line_bytes(b, "used_memory_peak", asked(i)->used_memory_peak);
    line_bytes(b, "used_memory_all_replicas", SUM(i, used_memory));
    line_bytes(b, "used_memory_rss_all_replicas", SUM(i, used_memory_rss));
    line_bytes(b, "used_memory_logical", i->logical_bytes);
    line_bytes(b, "total_system_memory", i->total_system_memory);
    line_bytes(b, "maxmemory", i->maxmemory);
    qn_info_line(b, "maxmemory_policy:noeviction");
    qn_info_line(b, "mem_fragmentation_ratio:%.2f",
                 used == 0 ? 0.0 : (double)rss / (double)used);
    qn_info_line(b, "mem_allocator:libc");
}

static void persistence(struct qn_buf *b, const struct qn_info *i)
{
    qn_info_line(b, "loading:%d", i->loading);
    qn_info_line(b, "async_loading:0");
    qn_info_line(b, "rdb_changes_since_last_save:0");
    qn_info_line(b, "rdb_bgsave_in_progress:0");
    qn_info_line(b, "rdb_last_save_time:0");
    qn_info_line(b, "rdb_last_bgsave_status:ok");
    qn_info_line(b, "rdb_last_bgsave_time_sec:-1");
    qn_info_line(b, "rdb_current_bgsave_time_sec:-1");
    qn_info_line(b, "aof_enabled:0");
    qn_info_line(b, "aof_rewrite_in_progress:0");
    qn_info_line(b, "aof_rewrite_scheduled:0");
    qn_info_line(b, "aof_last_rewrite_time_sec:-1");
    qn_info_line(b, "aof_current_rewrite_time_sec:-1");
    qn_info_line(b, "aof_last_bgrewrite_status:ok");
    qn_info_line(b, "aof_last_write_status:ok");
}

static uint64_t error_total(const struct qn_info *i)
{
    uint64_t sum = 0;
    for (uint32_t p = 0; p < i->parts; p++) {
        for (uint32_t e = 0; e < QN_INFO_ERRORS_MAX; e++) {
            sum += i->part[p]->error[e].count;
        }
    }
    return sum;
}

static void stats(struct qn_buf *b, const struct qn_info *i)
{
    qn_info_count(b, "total_connections_received",
                  SUM(i, connections_received));
    qn_info_count(b, "total_commands_processed", SUM(i, commands_processed));
    qn_info_count(b, "instantaneous_ops_per_sec", SUM(i, ops_per_sec));
    qn_info_count(b, "total_net_input_bytes", SUM(i, net_input_bytes));
    qn_info_count(b, "total_net_output_bytes", SUM(i, net_output_bytes));
    qn_info_line(b, "instantaneous_input_kbps:%.2f",
                 (double)SUM(i, input_bytes_per_sec) / 1024);
    qn_info_line(b, "instantaneous_output_kbps:%.2f",
                 (double)SUM(i, output_bytes_per_sec) / 1024);
    qn_info_count(b, "rejected_connections", SUM(i, rejected_connections));
    qn_info_line(b, "sync_full:0");
    qn_info_line(b, "sync_partial_ok:0");
    qn_info_line(b, "sync_partial_err:0");
    qn_info_count(b, "expired_keys", SUM(i, expired_keys));
    qn_info_line(b, "evicted_keys:0");
    qn_info_count(b, "keyspace_hits", SUM(i, keyspace_hits));
    qn_info_count(b, "keyspace_misses", SUM(i, keyspace_misses));
    qn_info_line(b, "pubsub_channels:0");
    qn_info_line(b, "pubsub_patterns:0");
    qn_info_line(b, "latest_fork_usec:0");
    qn_info_count(b, "total_error_replies", error_total(i));
    qn_info_count(b, "client_query_buffer_limit_disconnections",
                  SUM(i, query_limit_closed));
    qn_info_count(b, "client_output_buffer_limit_disconnections",
                  SUM(i, output_limit_closed));
}

/* Every replica takes writes, so to a client each is a master; there are no
 * replicas in Redis' sense, which serve reads only. */
static void replication(struct qn_buf *b, const struct qn_info *i)
{
    uint64_t offset = 0;
    for (uint32_t p = 0; p < i->parts; p++) {
        offset = QN_MAX(offset, i->part[p]->applied);
    }
    qn_info_line(b, "role:master");
    qn_info_line(b, "connected_slaves:0");
    qn_info_line(b, "master_failover_state:no-failover");
    qn_info_line(b, "master_replid:%s", qn_info_text_of(i->run_id));
    qn_info_line(b, "master_replid2:%040d", 0);
    qn_info_count(b, "master_repl_offset", offset);
    qn_info_line(b, "second_repl_offset:-1");
    qn_info_line(b, "repl_backlog_active:0");
    qn_info_count(b, "repl_backlog_size", i->repl_backlog_size);
    qn_info_line(b, "repl_backlog_first_byte_offset:0");
    qn_info_line(b, "repl_backlog_histlen:0");
}

static void line_seconds(struct qn_buf *b, const char *name, uint64_t usec)
{
    qn_info_line(b, "%s:%" PRIu64 ".%06" PRIu64, name, usec / 1000000,
                 usec % 1000000);
}

static void cpu(struct qn_buf *b, const struct qn_info *i)
{
    line_seconds(b, "used_cpu_sys", SUM(i, cpu_sys_usec));
    line_seconds(b, "used_cpu_user", SUM(i, cpu_user_usec));
    qn_info_line(b, "used_cpu_sys_children:0.000000");
    qn_info_line(b, "used_cpu_user_children:0.000000");
}

static void modules(struct qn_buf *b, const struct qn_info *i)
{
    (void)b;
    (void)i;
}

static void commandstats(struct qn_buf *b, const struct qn_info *i)
{
    for (uint32_t row = 0; qn_cmd_at(row) != NULL; row++) {
        struct qn_info_cmd c = {0};
        for (uint32_t p = 0; p < i->parts; p++) {
            const struct qn_info_cmd *one = &i->part[p]->cmd[row];
            c.calls += one->calls;
            c.usec += one->usec;
            c.rejected += one->rejected;
            c.failed += one->failed;
        }
        if (c.calls + c.rejected + c.failed != 0) {
            qn_info_line(b,
                         "cmdstat_%s:calls=%" PRIu64 ",usec=%" PRIu64
                         ",usec_per_call=%.2f,rejected_calls=%" PRIu64
                         ",failed_calls=%" PRIu64,
                         qn_cmd_at(row)->name, c.calls, c.usec,
                         c.calls == 0 ? 0.0 : (double)c.usec / (double)c.calls,
                         c.rejected, c.failed);
        }
    }
}

/* True if `code` stands in a part before `part`, or before `e` in it. */
static bool error_was_met(const struct qn_info *i, uint32_t part, uint32_t e)
{
    const char *code = i->part[part]->error[e].code;
    for (uint32_t p = 0; p <= part; p++) {
        uint32_t end = p == part ? e : QN_INFO_ERRORS_MAX;
        for (uint32_t k = 0; k < end; k++) {
            if (strcmp(i->part[p]->error[k].code, code) == 0) {
                return true;
            }
        }
    }
    return false;
}

static uint64_t error_sum(const struct qn_info *i, const char *code)
{
    uint64_t sum = 0;
    for (uint32_t p = 0; p < i->parts; p++) {
        for (uint32_t e = 0; e < QN_INFO_ERRORS_MAX; e++) {
            const struct qn_info_error *one = &i->part[p]->error[e];
            sum += strcmp(one->code, code) == 0 ? one->count : 0;
        }
    }
    return sum;
}

static void errorstats(struct qn_buf *b, const struct qn_info *i)
{
    for (uint32_t p = 0; p < i->parts; p++) {
        for (uint32_t e = 0; e < QN_INFO_ERRORS_MAX; e++) {
            const char *code = i->part[p]->error[e].code;
            if (code[0] != '\0' && !error_was_met(i, p, e)) {
                qn_info_line(b, "errorstat_%s:count=%" PRIu64, code,
                             error_sum(i, code));
            }
        }
    }
}

static void cluster(struct qn_buf *b, const struct qn_info *i)
{
    (void)i;
    qn_info_line(b, "cluster_enabled:0");
}

static void keyspace(struct qn_buf *b, const struct qn_info *i)
{
    for (uint32_t d = 0; d < i->dbs; d++) {
        const struct qn_info_db *db = &i->db[d];
        if (db->keys != 0) {
            qn_info_line(b,
                         "db%" PRIu32 ":keys=%" PRIu64 ",expires=%" PRIu64
                         ",avg_ttl=%" PRIu64,
                         d, db->keys, db->expires, db->avg_ttl_ms);
        }
    }
}

/* ---- selection ----------------------------------------------------------- */

enum { IN_DEFAULT = 1, IN_ALL = 2, IN_EVERYTHING = 4 };

static const struct {
    const char *name; /* as asked for */
    const char *title;
    unsigned sets;
    void (*write)(struct qn_buf *b, const struct qn_info *i);
} sections[] = {
    {"server", "Server", IN_DEFAULT | IN_ALL, server},
    {"clients", "Clients", IN_DEFAULT | IN_ALL, clients},
    {"memory", "Memory", IN_DEFAULT | IN_ALL, memory},
    {"persistence", "Persistence", IN_DEFAULT | IN_ALL, persistence},
    {"stats", "Stats", IN_DEFAULT | IN_ALL, stats},
    {"replication", "Replication", IN_DEFAULT | IN_ALL, replication},
    {"cpu", "CPU", IN_DEFAULT | IN_ALL, cpu},
    {"modules", "Modules", IN_DEFAULT, modules},
    {"commandstats", "Commandstats", IN_ALL, commandstats},
    {"errorstats", "Errorstats", IN_DEFAULT | IN_ALL, errorstats},
    {"cluster", "Cluster", IN_DEFAULT | IN_ALL, cluster},
    {"keyspace", "Keyspace", IN_DEFAULT | IN_ALL, keyspace},
    {"quoin", "Quoin", IN_DEFAULT | IN_ALL, qn_info_quoin},
};

/* The sections that a name selects, as a mask over `sections`. */
static unsigned sections_of(struct qn_slice name)
{
    unsigned sets = qn_cmd_word_is(name, "default")      ? IN_DEFAULT
                    : qn_cmd_word_is(name, "all")        ? IN_ALL
                    : qn_cmd_word_is(name, "everything") ? IN_EVERYTHING
                                                         : 0;
    unsigned mask = 0;
    for (uint32_t s = 0; s < QN_ARRAY_COUNT(sections); s++) {
        bool in_set = ((sections[s].sets | IN_EVERYTHING) & sets) != 0;
        if (in_set || qn_cmd_word_is(name, sections[s].name)) {
            mask |= 1u << s;
        }
    }
    return mask;
}

void qn_info_text(struct qn_buf *out, const struct qn_info *i,
                  const struct qn_slice *names, uint32_t count)
{
    static const struct qn_slice by_default = {(const uint8_t *)"default", 7};
    unsigned mask = count == 0 ? sections_of(by_default) : 0;
    for (uint32_t n = 0; n < count; n++) {
        mask |= sections_of(names[n]);
    }
    bool first = true;
    for (uint32_t s = 0; s < QN_ARRAY_COUNT(sections); s++) {
        if (mask >> s & 1) {
            qn_info_line(out, "%s# %s", first ? "" : "\r\n", sections[s].title);
            sections[s].write(out, i);
            first = false;
        }
    }
}

void qn_info_reply(struct qn_buf *reply, uint8_t proto, const struct qn_info *i,
                   const struct qn_slice *names, uint32_t count)
{
    struct qn_buf text = {0};
    qn_info_text(&text, i, names, count);
    if (text.oom && reply != NULL) {
        reply->oom = true;
    } else {
        qn_reply_text(reply, proto, (const char *)text.data, text.len);
    }
    qn_buf_free(&text);
}

/* ---- parts --------------------------------------------------------------- */

void qn_info_count_error(struct qn_info_part *p, const uint8_t *reply,
                         size_t len)
{
    if (len == 0 || reply[0] != '-') {
        return;
    }
    char code[QN_INFO_CODE_MAX] = "";
    for (size_t i = 0; i + 1 < len && i < sizeof code - 1; i++) {
        if (reply[i + 1] <= ' ') {
            break;
        }
        code[i] = (char)reply[i + 1];
    }
    for (uint32_t e = 0; e < QN_INFO_ERRORS_MAX && code[0] != '\0'; e++) {
        if (p->error[e].code[0] == '\0') {
            memcpy(p->error[e].code, code, sizeof code);
        }
        if (strcmp(p->error[e].code, code) == 0) {
            p->error[e].count++;
            return;
        }
    }
}

void qn_info_pack(const struct qn_info_part *p, struct qn_buf *out)
{
    uint8_t *to = qn_buf_reserve(out, sizeof *p);
    if (to != NULL) {
        const uint32_t bytes = sizeof *p;
        memcpy(to, p, sizeof *p);
        memcpy(to + offsetof(struct qn_info_part, bytes), &bytes, sizeof bytes);
        out->len += sizeof *p;
    }
}

int qn_info_unpack(struct qn_slice bytes, struct qn_info_part *out)
{
    struct qn_info_part p;
    if (bytes.len != sizeof p) {
        return QN_ECORRUPT;
    }
    memcpy(&p, bytes.data, sizeof p);
    if (p.bytes != sizeof p) {
        return QN_ECORRUPT;
    }
    /* Another process wrote the strings: terminate them here. */
    p.state[sizeof p.state - 1] = '\0';
    p.transport[sizeof p.transport - 1] = '\0';
    for (uint32_t i = 0; i < QN_INFO_UNITS; i++) {
        p.traffic[i].unit[QN_INFO_NAME_MAX - 1] = '\0';
    }
    for (uint32_t e = 0; e < QN_INFO_ERRORS_MAX; e++) {
        p.error[e].code[QN_INFO_CODE_MAX - 1] = '\0';
    }
    *out = p;
    return QN_OK;
}
