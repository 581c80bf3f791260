/*
 * Pending submissions, and the completions that answer them.
 *
 * All submissions of the front end are in one ring, `pending`, in the order of
 * submission. The log brings this origin's writes back in the same order, so
 * the head of the ring is always the write that apply meets next, or deferred
 * reads that wait in front of it. Answers are given in the same order. They run
 * ahead of apply (`answered`) only when writes are given up after
 * `commit-timeout`:
 *
 *         head              answered            tail
 *          | given up        | waiting           |
 *          v                 v                   v
 *     [W1] [W2] m [W3]       [W4] m [W5]
 *     applied later, replies dropped
 *
 * While such a write is not applied, nothing is submitted
 * (qn_replica_unavailable). It is sent again to each new leader, so its
 * application shows that the group decides again. Marks behind it see the state
 * without it. After each own write, and after each slot, the deferred reads at
 * the head are evaluated if their index is reached:
 *
 *   inside slot s, behind a command of it: state is "slots < s, and part of s".
 *        A mark with index < s has seen enough. One with index == s has not:
 *        the rest of s may already have been shown by another replica.
 *   after slot s: a deferred read with index <= s has seen enough.
 *
 * A mark never waits behind a later write of its connection: that write was
 * submitted after the index was loaded, so it gets a slot after the index, and
 * slot `index` ends first.
 *
 * Replies are appended to one buffer, and the front end takes them in order; a
 * ring of lengths separates them. The driver raises the read index before a
 * client sees any of them (publish before reply).
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "kvs/replica/replica_internal.h"
#include "kvs/replica/unavailable.h"
#include "kvs/resp/reply.h"

enum {
    PENDING_ROOM = 64,      /* left free, so that one check suffices */
    MARKS_MAX = 1024,       /* of them, reads behind a write */
    REPLIES_MANY = 1 << 20, /* bytes of completions that are taken at once */
    REPLIES_KEEP = 1 << 20  /* bytes of memory kept for them */
};

/* ---- completions --------------------------------------------------------- */

void qn_replica_reply_end(struct qn_replica *r, size_t start)
{
    if (r->replies.oom) {
        /* The reply cannot be made; the connection sees an empty one and
         * closes. */
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
    qn_time_t since = qn_cmd_latency_sample_start(&r->own.clock);
    if (r->deferred_read != NULL) {
        r->deferred_read(r->ctx, r->store, c);
    } else {
        (void)qn_cmd_run(r->store, c); /* a read: only the reply needs memory */
        qn_replica_reply_end(r, start);
    }
    qn_cmd_latency_sample_stop(&r->own.clock, c->cmd, since);
    free(p->args);
    p->args = NULL;
}

/* The write may be applied later or never, or was applied with an unknown
 * reply. */
static void write_unknown(struct qn_replica *r, uint64_t *counter)
{
    size_t start = r->replies.len;
    qn_reply_error(&r->replies,
                   "ERR write outcome unknown, read before retrying");
    qn_replica_reply_end(r, start);
    r->writes--;
    r->given_up++;
    ++*counter;
}

/* A snapshot contains the write: it was applied, or refused. If no own write
 * from it on was refused, a reply that does not depend on the state is known.
 */
static void write_covered(struct qn_replica *r, const struct pending *p)
{
    const struct qn_session *refused = &r->refused[r->self];
    uint64_t last = refused->inc == r->incarnation ? refused->last : 0;
    if (!p->says_ok || p->seq <= last) {
        write_unknown(r, &r->own.unknown_snapshot);
        return;
    }
    size_t start = r->replies.len;
    qn_reply_ok(&r->replies);
    qn_replica_reply_end(r, start);
    r->writes--;
    r->given_up++;
    r->own.covered_ok++;
}

/* Release submissions that are answered and will not come back from the log. */
static void retire(struct qn_replica *r)
{
    for (; r->head != r->answered; r->head++) {
        struct pending *p = qn_replica_pending_at(r, r->head);
        if (!p->is_deferred_read && p->seq > r->covered) {
            return;
        }
        r->given_up -= !p->is_deferred_read;
    }
}

void qn_replica_deferred_reads_run(struct qn_replica *r, qn_slot_t reached)
{
    for (; r->answered != r->tail; r->answered++) {
        struct pending *p = qn_replica_pending_at(r, r->answered);
        if (p->is_deferred_read && p->index <= reached) {
            mark_evaluate(r, p);
            r->deferred_reads_ran++;
        } else if (!p->is_deferred_read && p->seq <= r->covered) {
            write_covered(r, p);
        } else {
            break;
        }
    }
    retire(r);
}

/* ---- own writes, applied ------------------------------------------------- */

struct pending *qn_replica_own(struct qn_replica *r, uint64_t seq)
{
    QN_ASSERT(r->head != r->tail);
    struct pending *p = qn_replica_pending_at(r, r->head);
    QN_ASSERT(!p->is_deferred_read);
    QN_ASSERT(p->seq == seq);
    return r->head == r->answered ? p : NULL;
}

void qn_replica_own_done(struct qn_replica *r, size_t start, qn_slot_t slot)
{
    if (r->head != r->answered) {
        r->head++;
        r->given_up--;
        retire(r);
        return;
    }
    qn_replica_reply_end(r, start);
    r->head++;
    r->answered++;
    r->writes--;
    if (r->take != NULL && r->replies.len > REPLIES_MANY) {
        r->take(r->ctx);
    }
    qn_replica_deferred_reads_run(r, slot - 1);
}

/* ---- commit-timeout ------------------------------------------------------ */

uint32_t qn_replica_tick(struct qn_replica *r)
{
    r->tick_at = QN_MIN(r->tick_at, r->now + QN_COMMIT_TICK);
    return r->tick;
}

bool qn_replica_timed_out(const struct qn_replica *r, uint32_t tick)
{
    uint32_t limit =
        r->config.commit_timeout * (uint32_t)(QN_S / QN_COMMIT_TICK);
    return (limit != 0 && r->tick - tick > limit) ||
           qn_driver_halted(r->driver) || qn_driver_removed(r->driver);
}

/* A read has no outcome: it may be repeated. */
static void mark_refuse(struct qn_replica *r, struct pending *p)
{
    size_t start = r->replies.len;
    qn_reply_error(&r->replies, "%s", qn_replica_unavailable_reason(r));
    qn_replica_reply_end(r, start);
    free(p->args);
    p->args = NULL;
}

/* In order: an answer never overtakes another. */
static void give_up(struct qn_replica *r, qn_slot_t applied)
{
    while (r->answered != r->tail) {
        struct pending *p = qn_replica_pending_at(r, r->answered);
        if (!qn_replica_timed_out(r, p->tick)) {
            return;
        }
        if (p->is_deferred_read) {
            mark_refuse(r, p);
        } else {
            write_unknown(r, &r->own.unknown_timeout);
        }
        r->answered++;
        qn_replica_deferred_reads_run(r, applied);
    }
}

void qn_replica_give_up_turn(struct qn_replica *r, qn_slot_t applied)
{
    if (r->now < r->tick_at) {
        return;
    }
    r->tick++;
    r->tick_at = QN_TIME_NEVER;
    give_up(r, applied);
    if (r->answered != r->tail) {
        r->tick_at = r->now + QN_COMMIT_TICK;
    }
}

qn_time_t qn_replica_deadline(const struct qn_replica *r)
{
    return r->tick_at;
}

bool qn_replica_unavailable(const struct qn_replica *r)
{
    return r->given_up > 0 || qn_driver_halted(r->driver) ||
           qn_driver_removed(r->driver);
}

bool qn_replica_writes_blocked(const struct qn_replica *r)
{
    return qn_driver_held(r->driver);
}

const char *qn_replica_unavailable_reason(const struct qn_replica *r)
{
    const struct qn_unavailable u = {
        .removed = qn_driver_removed(r->driver),
        .held = qn_replica_writes_blocked(r),
        .halted = qn_driver_halted(r->driver),
        .log_incomplete = qn_driver_log_incomplete(r->driver),
        .register_damaged = qn_driver_register_damaged(r->driver),
        .memory_acceptor = r->config.memory_acceptor,
        .waiting = qn_driver_waiting(r->driver) != 0,
        .needs_snapshot = qn_driver_needs_snapshot(r->driver)};
    return qn_unavailable_reason(&u);
}

/* ---- submit -------------------------------------------------------------- */

static struct pending *pending_push(struct qn_replica *r)
{
    QN_ASSERT(r->tail - r->head < PENDING_MAX);
    struct pending *p = qn_replica_pending_at(r, r->tail++);
    *p = (struct pending){.tick = qn_replica_tick(r)};
    return p;
}

static int submit_parts(struct qn_replica *r, uint32_t count, uint8_t proto,
                        bool says_ok)
{
    uint64_t seq = 0;
    int err = qn_driver_submit(r->driver, r->parts, count, &seq);
    if (err == QN_OK) {
        struct pending *p = pending_push(r);
        p->seq = seq;
        p->since = r->now;
        p->proto = proto;
        p->says_ok = says_ok;
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

int qn_replica_submit_write(struct qn_replica *r,
                            const struct qn_cmd_call *call)
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
    return submit_parts(r, n + 1, call->proto, qn_cmd_says_ok(call));
}

int qn_replica_submit_init(struct qn_replica *r, uint64_t seed)
{
    struct entry_init init = {.seed = seed,
                              .databases = r->config.databases,
                              .version = QN_ENTRY_VERSION};
    uint8_t options[QN_CONFIG_RUNTIME_MAX];
    int err = parts_room(r, 3);
    if (err != QN_OK) {
        return err;
    }
    r->parts[0] = (struct qn_slice){&kind_bytes[ENTRY_INIT], 1};
    r->parts[1] = (struct qn_slice){(const uint8_t *)&init, sizeof init};
    r->parts[2] = (struct qn_slice){
        options, qn_config_runtime_write(&r->config, options)};
    return submit_parts(r, 3, 2, false);
}

int qn_replica_submit_read(struct qn_replica *r, const struct qn_cmd_call *call,
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
    p->is_deferred_read = true;
    p->index = index;
    p->call = *call;
    p->args = args;
    return QN_OK;
}

bool qn_replica_can_submit(const struct qn_replica *r)
{
    return r->tail - r->head < PENDING_MAX - PENDING_ROOM &&
           r->tail - r->head - r->writes - r->given_up < MARKS_MAX &&
           r->reply_tail - r->reply_head < PENDING_MAX - PENDING_ROOM &&
           qn_driver_room(r->driver);
}

bool qn_replica_next_completion(struct qn_replica *r, struct qn_slice *reply)
{
    if (r->reply_head == r->reply_tail) {
        r->replies.len = 0;
        r->reply_at = 0;
        if (r->replies.cap > REPLIES_KEEP) {
            qn_buf_free(&r->replies);
        }
        return false;
    }
    reply->len = r->reply_len[r->reply_head++ & (PENDING_MAX - 1)];
    reply->data = reply->len > 0 ? r->replies.data + r->reply_at : NULL;
    r->reply_at += reply->len;
    return true;
}
