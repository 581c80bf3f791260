/*
 * The replica: pending submissions on one side, applied commands on the other.
 *
 * Everything a front end submits stands in one ring, `pending`, in the order
 * of submission. The log brings this origin's writes back in that same order,
 * so the head of the ring is always the write that apply meets next, or marks
 * that wait in front of it. After each own write, and after each slot, the
 * marks at the head are evaluated if their index is reached:
 *
 *   inside slot s, behind a command of it: state is "slots < s, and part of s".
 *        A mark with index < s has seen enough. One with index == s has not:
 *        the rest of s may already have been shown by another replica.
 *   after slot s: a mark with index <= s has seen enough.
 *
 * A mark never has to wait behind a later write of its connection: that write
 * was submitted after the index was loaded, so it gets a later slot than the
 * index, and the end of slot `index` comes first.
 *
 * Replies are appended to one buffer and taken by the front end in order; a
 * ring of lengths keeps them apart. Before anything of them is seen by a
 * client the driver has raised the read index (publish before expose).
 *
 * The log also carries commands of the server itself (not of clients): INIT,
 * the first of a group, and configuration changes.
 *
 * A snapshot replaces the store between two slots. Own writes that it contains
 * will not come back from the log: `covered` is the last such sequence, and
 * they complete with an error when they reach the head of the ring. Marks
 * between them see the new store, which has all that stood before them. In a
 * new life the store is shown (`serving`) once it has caught up with the read
 * index of that moment, so that a client is not held where others would answer.
 */
#include "kvs/replica.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/assert.h"
#include "core/base/log.h"
#include "kvs/reply.h"

enum {
    PENDING_MAX = 16384,    /* submissions in the ring, a power of two */
    PENDING_ROOM = 64,      /* left free, so that room() can be asked once */
    ARGS_FIRST = 64,        /* arguments decoded without a larger table */
    AHEAD_ARGS = 8,         /* commands with more are not looked at ahead */
    MARKS_MAX = 1024,       /* of them, reads behind a write */
    RECLAIM_PER_TURN = 256, /* blocks freed beyond what a turn retired */
    BYTES_OF_WORK = 1024,   /* copied, as much work as a small command */
    ARGS_OF_WORK = 4,       /* looked up, likewise */
    SPLIT_WORK = 64,        /* small commands' work, of a split */
    DISCARDS = 4,           /* stores being thrown away */
    DISCARD_PER_TURN = 1024 /* blocks of them freed */
};

struct pending {
    bool is_mark;
    uint8_t proto;
    uint64_t seq;            /* write: the driver's sequence */
    qn_time_t since;         /* write: start of the turn it was submitted in */
    qn_slot_t index;         /* mark: least position */
    struct qn_cmd_call call; /* mark: argv lies in `args` */
    struct qn_slice *args;   /* mark: owned block {slices, bytes} */
};

struct qn_replica {
    struct qn_driver *driver;
    struct qn_store *store;
    bool first;         /* the group begins with this life */
    bool serving;       /* the store may be seen ... */
    qn_slot_t serve_at; /* ... once so much is applied */
    uint64_t covered;   /* own writes up to it lie in a snapshot */
    struct qn_store *discard[DISCARDS];
    qn_node_t self;
    uint32_t nodes;
    uint64_t incarnation;    /* of this life */
    struct qn_config config; /* in force */
    uint64_t stamp_ms;       /* of the last applied slot */
    uint64_t random;         /* for RANDOMKEY of marks */

    struct pending *pending; /* [PENDING_MAX] */
    uint32_t head, tail;     /* free-running; head: oldest */
    uint64_t writes;         /* writes in the ring */
    uint64_t marks_ran;      /* since the last command was applied */
    uint64_t growths;        /* splits of the store until then */

    struct qn_buf replies; /* completions not yet taken, back to back */
    size_t *reply_len;     /* [PENDING_MAX] */
    size_t reply_at;       /* start of the next one to take */
    uint32_t reply_head, reply_tail;

    qn_time_t now;      /* start of this turn */
    qn_slot_t last_own; /* slot of the last own write */
    struct qn_replica_writes own;

    struct qn_slice *argv; /* [argv_cap], decoding of applied commands */
    uint32_t argv_cap;

    struct qn_buf head_buf; /* encoding of submitted commands */
    struct qn_slice *parts; /* [part_cap] */
    uint32_t part_cap;

    void (*told)(void *ctx, qn_node_t from, struct qn_slice bytes);
    void (*configured)(void *ctx);
    void (*need_snapshot)(void *ctx, qn_slot_t slot);
    void *ctx;
};

/* ---- what a log entry is ------------------------------------------------ */

enum entry_kind {
    ENTRY_COMMAND, /* a client's: qn_cmd_encode follows */
    ENTRY_INIT,    /* struct entry_init follows */
};

struct entry_init {
    uint64_t seed;
    uint32_t databases;
    uint32_t version;
};

enum { ENTRY_VERSION = 1 };

static struct pending *pending_at(struct qn_replica *r, uint32_t i)
{
    return &r->pending[i & (PENDING_MAX - 1)];
}

static void reply_end(struct qn_replica *r, size_t start)
{
    if (r->replies.oom) {
        /* Nobody can be told; the connection sees an empty reply and closes. */
        r->replies.oom = false;
        r->replies.len = start;
    }
    QN_ASSERT(r->reply_tail - r->reply_head < PENDING_MAX);
    r->reply_len[r->reply_tail++ & (PENDING_MAX - 1)] = r->replies.len - start;
}

static void mark_evaluate(struct qn_replica *r, struct pending *p)
{
    size_t start = r->replies.len;
    struct qn_cmd_call *c = &p->call;
    c->argv = p->args;
    c->reply = &r->replies;
    c->stamp_ms = r->stamp_ms;
    c->random = r->random += 0x9e3779b97f4a7c15u;
    c->value_max = r->config.proto_max_bulk_len;
    c->key_max = r->config.max_key_len;
    qn_time_t since = qn_cmd_clock_start(&r->own.clock);
    (void)qn_cmd_run(r->store, c); /* a read: only the reply needs memory */
    qn_cmd_clock_stop(&r->own.clock, c->cmd, since);
    free(p->args);
    p->args = NULL;
    reply_end(r, start);
}

static void write_lost(struct qn_replica *r)
{
    size_t start = r->replies.len;
    qn_reply_error(&r->replies,
                   "ERR write outcome unknown, read before retrying");
    reply_end(r, start);
    r->writes--;
}

/* Evaluate the marks at the head that need no more than `reached`. Writes among
 * them that a snapshot contains are complete, too. */
static void marks_run(struct qn_replica *r, qn_slot_t reached)
{
    for (; r->head != r->tail; r->head++) {
        struct pending *p = pending_at(r, r->head);
        if (p->is_mark && p->index <= reached) {
            mark_evaluate(r, p);
            r->marks_ran++;
        } else if (!p->is_mark && p->seq <= r->covered) {
            write_lost(r);
        } else {
            return;
        }
    }
}

/* ---- apply --------------------------------------------------------------- */

static bool argv_grow(struct qn_replica *r, uint32_t need)
{
    struct qn_slice *v = realloc(r->argv, need * sizeof *v);
    if (v == NULL) {
        return false;
    }
    r->argv = v;
    r->argv_cap = need;
    return true;
}

/* The name of argv[2], argv[4], ... that stands there twice; NULL: none. */
static const struct qn_slice *named_twice(const struct qn_cmd_call *c)
{
    for (uint32_t i = 2; i < c->argc; i += 2) {
        for (uint32_t k = 2; k < i; k += 2) {
            const struct qn_slice *a = &c->argv[i], *b = &c->argv[k];
            if (a->len == b->len &&
                strncasecmp((const char *)a->data, (const char *)b->data,
                            a->len) == 0) {
                return a;
            }
        }
    }
    return NULL;
}

/* CONFIG SET name value ...: all or nothing, decided here, so that all
 * replicas agree. */
static void on_configure(void *ctx, const struct qn_cmd_call *c)
{
    struct qn_replica *r = ctx;
    struct qn_config next = r->config;
    char why[QN_CONFIG_WHY_MAX];
    int err = QN_OK;
    for (uint32_t i = 2; i + 1 < c->argc && err == QN_OK; i += 2) {
        err = qn_config_set(&next, c->argv[i], c->argv[i + 1], why, sizeof why);
    }
    const struct qn_slice *twice = err == QN_OK ? named_twice(c) : NULL;
    if (twice != NULL) {
        qn_reply_error(c->reply,
                       "ERR CONFIG SET failed (possibly related to argument "
                       "'%.*s') - duplicate parameter",
                       (int)twice->len, (const char *)twice->data);
        return;
    }
    if (err == QN_OK) {
        err = qn_config_check(&next, why, sizeof why);
    }
    if (err != QN_OK) {
        qn_reply_error(c->reply, "ERR %s", why);
        return;
    }
    r->config = next;
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
    if (err == QN_ENOMEM && argv_grow(r, need)) {
        err = qn_cmd_decode(bytes, r->argv, r->argv_cap, &need, c);
    }
    /* A replica that cannot execute a decided command must not go on: its
     * state would differ from the others' from here on. */
    QN_ASSERT(err == QN_OK);
    QN_ASSERT(r->store != NULL);
    c->slot = a->slot;
    c->stamp_ms = a->stamp_ms;
    c->value_max = r->config.proto_max_bulk_len;
    c->key_max = r->config.max_key_len;
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

static void apply_init(struct qn_replica *r, struct qn_slice bytes)
{
    struct entry_init init;
    QN_ASSERT(bytes.len == sizeof init);
    QN_ASSERT(r->store == NULL);
    memcpy(&init, bytes.data, sizeof init);
    QN_ASSERT(init.version == ENTRY_VERSION);
    const struct qn_store_opts opts = {.seed = init.seed,
                                       .dbs = init.databases};
    int err = qn_store_create(&r->store, &opts);
    QN_ASSERT(err == QN_OK);
    /* In a later life the log may reach back so far; what it holds is shown
     * only when it is up to date, as a snapshot is. */
    r->serving = r->first;
    r->config.databases = init.databases;
}

static void own_count(struct qn_replica *r, qn_slot_t slot)
{
    qn_time_t since = pending_at(r, r->head)->since;
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
    struct qn_store_stats st = {0};
    if (r->store != NULL) {
        qn_store_stats(r->store, &st);
    }
    uint64_t work = 1 + a->bytes.len / BYTES_OF_WORK +
                    call->argc / ARGS_OF_WORK +
                    (st.growths - r->growths) * SPLIT_WORK + r->marks_ran;
    r->growths = st.growths;
    r->marks_ran = 0;
    return (uint32_t)QN_MIN(work, (uint64_t)UINT32_MAX);
}

static uint32_t on_apply(void *ctx, const struct qn_applied *a)
{
    struct qn_replica *r = ctx;
    struct qn_cmd_call call = {.proto = 2};
    size_t start = r->replies.len;
    if (a->mine) {
        QN_ASSERT(r->head != r->tail);
        struct pending *p = pending_at(r, r->head);
        QN_ASSERT(!p->is_mark);
        QN_ASSERT(p->seq == a->seq);
        call.proto = p->proto;
        call.reply = &r->replies;
    }
    QN_ASSERT(a->bytes.len >= 1);
    struct qn_slice rest = {a->bytes.data + 1, a->bytes.len - 1};
    switch ((enum entry_kind)a->bytes.data[0]) {
    case ENTRY_COMMAND:
        if (a->mine) {
            qn_time_t since = qn_cmd_clock_start(&r->own.clock);
            apply_command(r, a, rest, &call);
            qn_cmd_clock_stop(&r->own.clock, call.cmd, since);
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
    if (a->mine) {
        reply_end(r, start);
        r->head++;
        r->writes--;
        marks_run(r, a->slot - 1);
    }
    return work_of(r, a, &call);
}

/* Two passes, so that the cache misses of all these commands overlap: first
 * the buckets, then the entries in them. */
static void on_ahead(void *ctx, const struct qn_slice *commands, uint32_t n)
{
    struct qn_replica *r = ctx;
    uint64_t hash[QN_AHEAD];
    uint32_t hashes = 0;
    if (r->store == NULL) {
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct qn_slice argv[AHEAD_ARGS];
        struct qn_cmd_call call = {0};
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
    marks_run(r, slot);
}

static void on_told(void *ctx, qn_node_t from, struct qn_slice bytes)
{
    struct qn_replica *r = ctx;
    r->told(r->ctx, from, bytes);
}

static void on_need_snapshot(void *ctx, qn_slot_t slot)
{
    struct qn_replica *r = ctx;
    r->need_snapshot(r->ctx, slot);
}

/* ---- submit -------------------------------------------------------------- */

static struct pending *pending_push(struct qn_replica *r)
{
    QN_ASSERT(r->tail - r->head < PENDING_MAX);
    struct pending *p = pending_at(r, r->tail++);
    *p = (struct pending){0};
    return p;
}

static int submit_parts(struct qn_replica *r, uint32_t count, uint8_t proto)
{
    uint64_t seq = 0;
    int err = qn_driver_submit(r->driver, r->parts, count, &seq);
    if (err == QN_OK) {
        struct pending *p = pending_push(r);
        p->seq = seq;
        p->since = r->now;
        p->proto = proto;
        r->writes++;
    }
    return err;
}

static int parts_room(struct qn_replica *r, uint32_t need)
{
    if (r->part_cap >= need) {
        return QN_OK;
    }
    struct qn_slice *p = realloc(r->parts, need * sizeof *p);
    if (p == NULL) {
        return QN_ENOMEM;
    }
    r->parts = p;
    r->part_cap = need;
    return QN_OK;
}

static uint8_t kind_bytes[] = {ENTRY_COMMAND, ENTRY_INIT};

int qn_replica_write(struct qn_replica *r, const struct qn_cmd_call *call)
{
    int err = parts_room(r, call->argc + 2);
    if (err != QN_OK) {
        return err;
    }
    r->head_buf.len = 0;
    r->parts[0] = (struct qn_slice){&kind_bytes[ENTRY_COMMAND], 1};
    uint32_t n = qn_cmd_encode(call, &r->head_buf, r->parts + 1);
    if (n == 0) {
        r->head_buf.oom = false;
        return QN_ENOMEM;
    }
    return submit_parts(r, n + 1, call->proto);
}

static int submit_init(struct qn_replica *r, uint64_t seed)
{
    struct entry_init init = {.seed = seed,
                              .databases = r->config.databases,
                              .version = ENTRY_VERSION};
    int err = parts_room(r, 2);
    if (err != QN_OK) {
        return err;
    }
    r->parts[0] = (struct qn_slice){&kind_bytes[ENTRY_INIT], 1};
    r->parts[1] = (struct qn_slice){(const uint8_t *)&init, sizeof init};
    return submit_parts(r, 2, 2);
}

int qn_replica_mark(struct qn_replica *r, const struct qn_cmd_call *call,
                    qn_slot_t index)
{
    size_t bytes = call->argc * sizeof(struct qn_slice);
    for (uint32_t i = 0; i < call->argc; i++) {
        bytes += call->argv[i].len;
    }
    struct qn_slice *args = malloc(bytes);
    if (args == NULL) {
        return QN_ENOMEM;
    }
    uint8_t *to = (uint8_t *)(args + call->argc);
    for (uint32_t i = 0; i < call->argc; i++) {
        if (call->argv[i].len != 0) {
            memcpy(to, call->argv[i].data, call->argv[i].len);
        }
        args[i] = (struct qn_slice){to, call->argv[i].len};
        to += call->argv[i].len;
    }
    struct pending *p = pending_push(r);
    p->is_mark = true;
    p->index = index;
    p->call = *call;
    p->args = args;
    return QN_OK;
}

bool qn_replica_room(const struct qn_replica *r)
{
    return r->tail - r->head < PENDING_MAX - PENDING_ROOM &&
           r->tail - r->head - r->writes < MARKS_MAX &&
           r->reply_tail - r->reply_head < PENDING_MAX - PENDING_ROOM &&
           qn_driver_room(r->driver);
}

bool qn_replica_take(struct qn_replica *r, struct qn_slice *reply)
{
    if (r->reply_head == r->reply_tail) {
        r->replies.len = 0;
        r->reply_at = 0;
        return false;
    }
    reply->len = r->reply_len[r->reply_head++ & (PENDING_MAX - 1)];
    reply->data = r->replies.data + r->reply_at;
    r->reply_at += reply->len;
    return true;
}

/* ---- snapshots ----------------------------------------------------------- */

bool qn_replica_facts(const struct qn_replica *r, struct qn_snapshot_meta *m)
{
    if (!r->serving || !qn_driver_cut(r->driver, &m->resume)) {
        return false;
    }
    m->applied_ms = r->stamp_ms;
    m->nodes = r->nodes;
    m->ul_count = qn_driver_ul(r->driver, m->ul, QN_UL_KEPT);
    m->config = r->config;
    return true;
}

void qn_replica_discard(struct qn_replica *r, struct qn_store *store)
{
    uint32_t i = 0;
    while (i < DISCARDS - 1 && r->discard[i] != NULL) {
        i++;
    }
    qn_store_destroy(r->discard[i]); /* NULL, or it comes too fast */
    r->discard[i] = store;
    qn_store_flush(store, UINT32_MAX, 0);
}

/* @return true if there is more to free. */
static bool discards_turn(struct qn_replica *r)
{
    for (uint32_t i = 0; i < DISCARDS; i++) {
        if (r->discard[i] == NULL) {
            continue;
        }
        if (qn_store_reclaim(r->discard[i], DISCARD_PER_TURN)) {
            return true;
        }
        qn_store_destroy(r->discard[i]);
        r->discard[i] = NULL;
    }
    return false;
}

/* The run-time options of a snapshot, the others as this replica was started
 * with. */
static void config_install(struct qn_replica *r, const struct qn_config *c)
{
    char why[QN_CONFIG_WHY_MAX], room[QN_CONFIG_NUMBER_MAX];
    struct qn_config_option o;
    for (uint32_t i = 0; qn_config_at(i, &o); i++) {
        if (o.runtime) {
            (void)qn_config_start(&r->config, o.name,
                                  qn_config_value(c, i, room), why, sizeof why);
        }
    }
}

/* The state is complete as of a snapshot: it may be seen once it has caught up
 * with what others have shown by now. */
static void serve_soon(struct qn_replica *r, qn_slot_t position)
{
    if (!r->serving) {
        r->serve_at = QN_MAX(position, qn_driver_read_index(r->driver));
    }
}

int qn_replica_install(struct qn_replica *r, struct qn_store *store,
                       const struct qn_snapshot_meta *m, qn_time_t now)
{
    int err = qn_driver_install(r->driver, &m->resume, m->ul, m->ul_count, now);
    if (err == QN_ESTALE && r->store != NULL) {
        serve_soon(r, m->resume.position); /* the log was faster */
    }
    if (err != QN_OK) {
        return err;
    }
    if (r->store != NULL) {
        qn_replica_discard(r, r->store);
    }
    struct qn_store_stats st;
    qn_store_stats(store, &st);
    r->store = store;
    r->growths = st.growths;
    r->stamp_ms = m->applied_ms;
    config_install(r, &m->config);
    r->config.databases = m->dbs;
    if (r->configured != NULL) {
        r->configured(r->ctx);
    }
    const struct qn_session *own = &m->resume.session[r->self];
    if (own->inc == r->incarnation) {
        r->covered = QN_MAX(r->covered, own->last);
    }
    marks_run(r, m->resume.position);
    serve_soon(r, m->resume.position);
    return QN_OK;
}

/* ---- the rest ------------------------------------------------------------ */

/* What waits for a read index may wait for a later one as well, and the former
 * may have been garbage that nobody could tell (qn_driver_read_index). */
static void index_again(struct qn_replica *r, qn_slot_t applied)
{
    struct pending *p = r->head != r->tail ? pending_at(r, r->head) : NULL;
    if (p != NULL && p->is_mark && p->index > applied) {
        p->index = QN_MIN(p->index, qn_driver_read_index(r->driver));
    }
    if (!r->serving && r->serve_at != UINT64_MAX) {
        r->serve_at = QN_MIN(r->serve_at, qn_driver_read_index(r->driver));
    }
}

bool qn_replica_turn(struct qn_replica *r, qn_time_t now, uint64_t wall_ms)
{
    r->now = now;
    qn_driver_turn(r->driver, now, wall_ms);
    bool more = discards_turn(r);
    if (r->store == NULL) {
        return more;
    }
    qn_slot_t applied = qn_driver_applied(r->driver);
    index_again(r, applied);
    r->serving = r->serving || applied >= r->serve_at;
    /* Marks that came in behind no write wait for an index only. */
    marks_run(r, applied);
    return qn_store_reclaim(r->store, RECLAIM_PER_TURN) || more;
}

int qn_replica_create(struct qn_replica **out, const struct qn_replica_opts *o)
{
    struct qn_replica *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return QN_ENOMEM;
    }
    int err = QN_ENOMEM;
    r->config = *o->config;
    r->self = o->driver.self;
    r->nodes = o->driver.nodes;
    r->incarnation = o->driver.incarnation[r->self];
    r->first = o->driver.first;
    r->serve_at = UINT64_MAX;
    r->told = o->told;
    r->configured = o->configured;
    r->need_snapshot = o->need_snapshot;
    r->ctx = o->ctx;
    r->random = o->driver.seed;
    r->pending = calloc(PENDING_MAX, sizeof *r->pending);
    r->reply_len = calloc(PENDING_MAX, sizeof *r->reply_len);
    if (r->pending == NULL || r->reply_len == NULL ||
        !argv_grow(r, ARGS_FIRST)) {
        goto fail;
    }
    struct qn_driver_opts d = o->driver;
    d.service = (struct qn_service){.ahead = on_ahead,
                                    .apply = on_apply,
                                    .applied = on_applied,
                                    .told = on_told,
                                    .ctx = r};
    if (o->need_snapshot != NULL) {
        d.service.need_snapshot = on_need_snapshot;
    }
    err = qn_driver_create(&r->driver, &d);
    if (err == QN_OK && o->founder) {
        err = submit_init(r, o->driver.seed);
    }
    if (err != QN_OK) {
        goto fail;
    }
    *out = r;
    return QN_OK;
fail:
    qn_replica_destroy(r);
    return err;
}

void qn_replica_destroy(struct qn_replica *r)
{
    if (r == NULL) {
        return;
    }
    for (; r->head != r->tail; r->head++) {
        free(pending_at(r, r->head)->args);
    }
    qn_driver_destroy(r->driver);
    qn_store_destroy(r->store);
    for (uint32_t i = 0; i < DISCARDS; i++) {
        qn_store_destroy(r->discard[i]);
    }
    qn_buf_free(&r->replies);
    qn_buf_free(&r->head_buf);
    free(r->parts);
    free(r->argv);
    free(r->reply_len);
    free(r->pending);
    free(r);
}

struct qn_store *qn_replica_store(struct qn_replica *r)
{
    return r->serving ? r->store : NULL;
}

const struct qn_config *qn_replica_config(const struct qn_replica *r)
{
    return &r->config;
}

struct qn_driver *qn_replica_driver(struct qn_replica *r)
{
    return r->driver;
}

qn_slot_t qn_replica_applied(const struct qn_replica *r)
{
    return qn_driver_applied(r->driver);
}

uint64_t qn_replica_stamp_ms(const struct qn_replica *r)
{
    return r->stamp_ms;
}

const struct qn_replica_writes *qn_replica_writes(const struct qn_replica *r)
{
    return &r->own;
}

void qn_replica_writes_reset(struct qn_replica *r)
{
    qn_histogram_clear(&r->own.latency);
    r->own.clock = (struct qn_cmd_clock){0};
    r->own.writes = r->own.batches = 0;
}

uint64_t qn_replica_pending(const struct qn_replica *r)
{
    return r->writes;
}

int qn_replica_tell(struct qn_replica *r, qn_node_t to, struct qn_slice bytes)
{
    return qn_driver_tell(r->driver, to, bytes);
}
