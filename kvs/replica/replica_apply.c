/*
 * Apply: what the driver calls with decided commands, in slot order.
 *
 * A command of the log is decoded and executed on the store; an own command
 * completes the write at the head of the ring of submissions. Errors are
 * decided here, from the log alone, so that all replicas agree. A replica that
 * lacks memory for a decided command must end.
 *
 * The log also carries an entry that no client sends: INIT, the first of a
 * group, with the hash seed and the options that all replicas begin with.
 *
 * The driver is told what a command costs, and bounds the work of a turn
 * (kvs/frontend/README.md, Turns).
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/log.h"
#include "kvs/replica/replica_internal.h"
#include "kvs/resp/reply.h"

enum {
    AHEAD_ARGS = 8,       /* commands with more are not prefetched */
    BYTES_OF_WORK = 1024, /* copied, as much work as a small command */
    ARGS_OF_WORK = 4,     /* looked up, likewise */
    SPLIT_WORK = 64       /* small commands' work, of a split */
};

bool qn_replica_argv_grow(struct qn_replica *r, uint32_t need)
{
    struct qn_slice *v = realloc(r->argv, need * sizeof *v);
    if (v == NULL) {
        return false;
    }
    r->argv = v;
    r->argv_cap = need;
    return true;
}

/* CONFIG SET name value ...: all or nothing, decided here, so that all
 * replicas agree. */
static void on_configure(void *ctx, const struct qn_cmd_call *c)
{
    struct qn_replica *r = ctx;
    char why[QN_CONFIG_WHY_MAX];
    int err = qn_config_set_all(&r->config, QN_CONFIG_BY_LOG, c->argv + 2,
                                c->argc - 2, why, sizeof why);
    if (err != QN_OK) {
        qn_reply_error(c->reply, "ERR %s", why);
        return;
    }
    qn_reply_ok(c->reply);
    if (r->configured != NULL) {
        r->configured(r->ctx);
    }
}

static void apply_command(struct qn_replica *r, const struct qn_applied *a,
                          struct qn_slice bytes, struct qn_cmd_call *c)
{
    uint32_t need = 0;
    int err = qn_cmd_decode(bytes, r->argv, r->argv_cap, &need, c);
    if (err == QN_ENOMEM && qn_replica_argv_grow(r, need)) {
        err = qn_cmd_decode(bytes, r->argv, r->argv_cap, &need, c);
    }
    /* A replica that cannot execute a decided command must end: its state
     * would differ from the others' from here on. */
    QN_ASSERT(err == QN_OK);
    QN_ASSERT(r->store != NULL);
    c->slot = a->slot;
    c->stamp_ms = a->stamp_ms;
    c->keep = a->keep;
    c->value_max = r->config.proto_max_bulk_len;
    c->key_max = r->config.max_key_len;
    c->memory_max =
        r->config.maxmemory != QN_MAXMEMORY_AUTO ? r->config.maxmemory : 0;
    c->configure = on_configure;
    c->configure_ctx = r;
    if (qn_cmd_run(r->store, c) != QN_OK) {
        qn_log(QN_LOG_ERROR,
               "out of memory while applying slot %llu; this replica ends, "
               "because its state would differ from the others'",
               (unsigned long long)a->slot);
        abort();
    }
}

/* All replicas apply with the limits of the group's beginning, whatever a
 * later incarnation was started with. */
static void apply_init(struct qn_replica *r, struct qn_slice bytes)
{
    struct entry_init init;
    QN_ASSERT(bytes.len >= sizeof init);
    QN_ASSERT(r->store == NULL);
    memcpy(&init, bytes.data, sizeof init);
    QN_ASSERT(init.version == QN_ENTRY_VERSION);
    struct qn_slice options = {bytes.data + sizeof init,
                               bytes.len - sizeof init};
    int read = qn_config_runtime_read(&r->config, &options);
    QN_ASSERT(read == QN_OK);
    QN_ASSERT(options.len == 0);
    const struct qn_store_opts opts = {.seed = init.seed,
                                       .dbs = init.databases,
                                       .reuse_bytes = QN_STORE_REUSE};
    int err = qn_store_create(&r->store, &opts);
    QN_ASSERT(err == QN_OK);
    r->config.databases = init.databases;
    if (r->configured != NULL) {
        r->configured(r->ctx);
    }
    /* In a later incarnation the log may reach back to the first slot. Then
     * it serves like a snapshot, and the store is shown only when it is up to
     * date. Perhaps no replica is left that could give a snapshot. */
    if (r->first) {
        r->serving = true;
    } else {
        qn_replica_serve_soon(r, 1);
    }
}

static void own_count(struct qn_replica *r, qn_slot_t slot)
{
    qn_time_t since = qn_replica_pending_at(r, r->head)->since;
    qn_histogram_record(&r->own.latency, r->now - since);
    r->own.writes++;
    r->own.batches += slot != r->last_own;
    r->last_own = slot;
}

/* The work of a command that was applied: bytes are copied, keys looked up, and
 * segments split, some 50 us each. */
static uint32_t work_of(struct qn_replica *r, const struct qn_applied *a,
                        const struct qn_cmd_call *call)
{
    uint64_t growths = r->store != NULL ? qn_store_growths(r->store) : 0;
    uint64_t work = 1 + a->bytes.len / BYTES_OF_WORK +
                    call->argc / ARGS_OF_WORK +
                    (growths - r->growths) * SPLIT_WORK + r->deferred_reads_ran;
    r->growths = growths;
    r->deferred_reads_ran = 0;
    return (uint32_t)QN_MIN(work, (uint64_t)UINT32_MAX);
}

static uint32_t on_apply(void *ctx, const struct qn_applied *a)
{
    struct qn_replica *r = ctx;
    struct qn_cmd_call call = {.proto = 2};
    size_t start = r->replies.len;
    const struct pending *p = a->mine ? qn_replica_own(r, a->seq) : NULL;
    call.reply = p != NULL ? &r->replies : &r->no_client;
    call.reply->error = false;
    if (p != NULL) {
        call.proto = p->proto;
    }
    QN_ASSERT(a->bytes.len >= 1);
    struct qn_slice rest = {a->bytes.data + 1, a->bytes.len - 1};
    switch ((enum entry_kind)a->bytes.data[0]) {
    case ENTRY_COMMAND:
        if (a->mine) {
            qn_time_t since = qn_cmd_latency_sample_start(&r->own.clock);
            apply_command(r, a, rest, &call);
            qn_cmd_latency_sample_stop(&r->own.clock, call.cmd, since);
            own_count(r, a->slot);
        } else {
            apply_command(r, a, rest, &call);
        }
        break;
    case ENTRY_INIT:
        apply_init(r, rest);
        break;
    default:
        QN_ASSERT(a->bytes.data[0] <= ENTRY_INIT); /* no other kind exists */
    }
    if (call.reply->error) {
        r->refused[a->origin] =
            (struct qn_session){.inc = a->origin_inc, .last = a->seq};
    }
    if (a->mine) {
        qn_replica_own_done(r, start, a->slot);
    }
    return work_of(r, a, &call);
}

/* Two passes, so that the cache misses of all these commands overlap: first
 * the buckets, then the entries in them. */
static void on_prefetch(void *ctx, const struct qn_slice *commands, uint32_t n)
{
    struct qn_replica *r = ctx;
    uint64_t hash[QN_PREFETCH_MAX];
    uint32_t hashes = 0;
    if (r->store == NULL) {
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct qn_slice argv[AHEAD_ARGS];
        struct qn_cmd_call call;
        uint32_t need = 0;
        if (commands[i].len < 1 || commands[i].data[0] != ENTRY_COMMAND) {
            continue;
        }
        struct qn_slice rest = {commands[i].data + 1, commands[i].len - 1};
        if (qn_cmd_decode(rest, argv, AHEAD_ARGS, &need, &call) == QN_OK &&
            call.cmd->key_first > 0) {
            hash[hashes++] = qn_store_prefetch(
                r->store, call.db, argv[(uint32_t)call.cmd->key_first]);
        }
    }
    for (uint32_t i = 0; i < hashes; i++) {
        qn_store_prefetch_entry(r->store, hash[i]);
    }
}

static void on_applied(void *ctx, qn_slot_t slot, uint64_t stamp_ms)
{
    struct qn_replica *r = ctx;
    r->stamp_ms = stamp_ms;
    qn_replica_deferred_reads_run(r, slot);
}

static void on_peer_message(void *ctx, qn_node_t from, struct qn_slice bytes)
{
    struct qn_replica *r = ctx;
    r->told(r->ctx, from, bytes);
}

struct qn_service qn_replica_service(struct qn_replica *r)
{
    return (struct qn_service){.prefetch = on_prefetch,
                               .apply = on_apply,
                               .applied = on_applied,
                               .on_peer_message = on_peer_message,
                               .ctx = r};
}
