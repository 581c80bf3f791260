#include "loadgen/client/client.h"

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * This is the hot path: a generator that is slower than the server would
 * measure itself. Cost per request: its bytes, one scan of the reply, one
 * increment in a histogram. The caller reads the clock once per write and once
 * per read.
 */

enum { SHOWN = 64 }; /* bytes of a reply that are shown in a message */

int qn_client_init(struct qn_client *c, const struct qn_client_opts *opts)
{
    QN_ASSERT(opts->depth_max >= 1 && opts->depth_max <= QN_CLIENT_DEPTH_MAX);
    const struct qn_request_generator_opts generator = {
        .workload = opts->workload,
        .mix = opts->mix,
        .number = opts->number,
        .clients = opts->clients,
        .seed = opts->seed,
        .open_max = opts->depth_max,
    };
    *c = (struct qn_client){
        .workload = opts->workload,
        .depth_max = opts->depth_max,
        .recorder = opts->recorder,
        .number = (uint16_t)opts->number,
    };
    return qn_request_generator_init(&c->generator, &generator);
}

void qn_client_fini(struct qn_client *c)
{
    qn_request_generator_fini(&c->generator);
    *c = (struct qn_client){0};
}

int qn_connection_state_init(struct qn_connection_state *l, struct qn_client *c)
{
    uint32_t slots = 1;
    while (slots < c->depth_max) {
        slots *= 2;
    }
    *l = (struct qn_connection_state){.client = c,
                                      .mask = slots - 1,
                                      .scanner.sums = c->workload->opts.unique};
    l->slot = calloc(slots, sizeof *l->slot);
    if (l->slot == NULL ||
        qn_outgoing_init(&l->out, c->workload, c->depth_max) != QN_OK) {
        qn_connection_state_fini(l);
        return QN_ENOMEM;
    }
    return QN_OK;
}

void qn_connection_state_fini(struct qn_connection_state *l)
{
    free(l->slot);
    qn_outgoing_fini(&l->out);
    *l = (struct qn_connection_state){0};
}

void qn_client_begin(struct qn_client *c, const struct qn_client_task *task)
{
    QN_ASSERT(task->depth >= 1 && task->depth <= c->depth_max);
    QN_ASSERT(!task->preload || task->schedule == NULL);
    c->task = *task;
    c->batch_left = 0;
    if (task->schedule != NULL) {
        c->schedule = *task->schedule;
        c->task.schedule = &c->schedule;
    }
}

/* Record a request that is sent now. Returns NULL for a command without a key
 * of its own, and without memory; in the latter case the recorder knows that
 * its history is incomplete. */
static struct qn_record *record_request(struct qn_client *c,
                                        const struct qn_request *r,
                                        qn_time_t now)
{
    static const struct {
        bool is_recorded;
        enum qn_record_kind kind;
    } kinds[QN_COMMAND_COUNT] = {
        [QN_COMMAND_GET] = {true, QN_RECORD_GET},
        [QN_COMMAND_SET] = {true, QN_RECORD_SET},
        [QN_COMMAND_INCR] = {true, QN_RECORD_INCR},
        [QN_COMMAND_DEL] = {true, QN_RECORD_DEL},
        [QN_COMMAND_CAS] = {true, QN_RECORD_CAS},
    };
    if (!kinds[r->command].is_recorded) {
        return NULL;
    }
    bool is_counter = r->command == QN_COMMAND_INCR;
    struct qn_record *record =
        qn_recorder_add(c->recorder, c->number,
                        (uint32_t)r->key | (is_counter ? QN_RECORD_COUNTER : 0),
                        kinds[r->command].kind);
    if (record != NULL) {
        record->invoked = now;
        record->value = is_counter ? 1 : (int64_t)r->value;
        record->other = (int64_t)r->expected;
    }
    return record;
}

/* Complete the record of a correct reply; after any other reply the outcome
 * stays unknown. */
static void record_answer(struct qn_record *record, const struct qn_reply *r,
                          uint64_t value, qn_time_t now)
{
    bool is_null = r->type == '_';
    record->responded = now;
    record->outcome = QN_RECORD_OK;
    switch ((enum qn_record_kind)record->kind) {
    case QN_RECORD_GET:
        record->value = is_null ? 0 : (int64_t)value;
        record->outcome = is_null ? QN_RECORD_NIL : QN_RECORD_OK;
        break;
    case QN_RECORD_INCR:
        record->other = r->number;
        break;
    case QN_RECORD_DEL:
        record->outcome = r->number == 0 ? QN_RECORD_NIL : QN_RECORD_OK;
        break;
    case QN_RECORD_CAS:
        record->outcome = is_null ? QN_RECORD_FAILED : QN_RECORD_OK;
        break;
    case QN_RECORD_SET:
    case QN_RECORD_ADD:
    case QN_RECORD_KIND_COUNT:
        break;
    }
}

static void ask_one(struct qn_client *c, struct qn_connection_state *l,
                    qn_time_t now)
{
    bool closed = c->task.schedule == NULL;
    struct qn_slot *slot = &l->slot[l->asked & l->mask];
    if (!c->next.follows) {
        c->next.since = closed ? now : qn_schedule_next(&c->schedule);
        c->next.begun = now;
        c->task.requests -= c->task.requests != UINT64_MAX;
        if (!closed) {
            qn_schedule_step(&c->schedule);
        }
    }
    slot->sent = now;
    slot->request = c->next;
    slot->record =
        c->recorder != NULL ? record_request(c, &c->next, now) : NULL;
    qn_request_generator_write(&c->generator, &c->next, &l->out);
    c->has_next = false;
    c->batch_left -= closed;
    l->greeting = false;
    l->asked++;
    c->outstanding++;
}

static void choose_next(struct qn_client *c)
{
    if (c->task.preload) {
        qn_request_generator_store(&c->generator, c->task.first_key, &c->next);
        c->task.first_key += c->task.step;
    } else {
        qn_request_generator_next(&c->generator, &c->next);
    }
    c->has_next = true;
}

/* Requests in the next batch; waiting second requests come first. */
static uint32_t batch_size(const struct qn_client *c)
{
    uint32_t depth = c->task.depth;
    uint32_t halves = QN_MIN(qn_client_halves(c), depth);
    return halves +
           (uint32_t)QN_MIN(c->task.requests, (uint64_t)(depth - halves));
}

void qn_client_fill(struct qn_client *c, qn_time_t now,
                    struct qn_connection_state *reads,
                    struct qn_connection_state *writes)
{
    bool closed = c->task.schedule == NULL;
    QN_ASSERT(qn_client_due(c) <= now);
    if (reads != NULL) {
        qn_outgoing_clear(&reads->out);
    }
    if (writes != NULL) {
        qn_outgoing_clear(&writes->out);
    }
    if (closed && c->batch_left == 0) {
        c->batch_left = batch_size(c);
    }
    while (qn_client_due(c) <= now) {
        if (!c->has_next) {
            choose_next(c);
        }
        bool is_read = qn_op_is_read((enum qn_op)c->next.op);
        struct qn_connection_state *l = is_read ? reads : writes;
        if (l == NULL) {
            return;
        }
        ask_one(c, l, now);
        if (c->task.one_by_one) {
            return;
        }
    }
}

void qn_client_greet(struct qn_connection_state *l)
{
    static const char hello[] = "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n";
    QN_ASSERT(qn_connection_state_idle(l));
    qn_outgoing_clear(&l->out);
    qn_outgoing_append(&l->out, hello, sizeof hello - 1);
    l->greeting = true;
    l->asked++;
}

/* Make bytes printable for a message; cut after SHOWN. */
static void show_bytes(char to[SHOWN + 1], const uint8_t *p, size_t len)
{
    size_t n = QN_MIN(len, (size_t)SHOWN);
    for (size_t i = 0; i < n; i++) {
        to[i] = (char)(p[i] < ' ' || p[i] > '~' ? '.' : p[i]);
    }
    to[n] = '\0';
}

/* The text of a reply. */
static void show(char to[SHOWN + 1], const struct qn_reply *r)
{
    show_bytes(to, r->head, r->head_len);
}

/* Note bytes that are not a reply (err < 0), or a reply without a request. */
static void note_foreign(struct qn_stats *stats, int err, const uint8_t *p,
                         size_t len)
{
    char text[SHOWN + 1];
    show_bytes(text, p, len);
    snprintf(stats->first_error, sizeof stats->first_error, "%s: '%s'",
             err == 1 ? "unexpected reply" : "reply is not RESP", text);
}

static void note_wrong(const struct qn_workload *w,
                       const struct qn_request *request,
                       const struct qn_reply *r, struct qn_stats *stats)
{
    stats->op[request->op].wrong++;
    if (stats->first_wrong[0] != '\0') {
        return;
    }
    char what[64];
    char text[SHOWN + 1];
    qn_request_describe(w, request, what, sizeof what);
    show(text, r);
    snprintf(stats->first_wrong, sizeof stats->first_wrong,
             "%s: type '%c', number %" PRId64 ", '%s'", what, r->type,
             r->number, text);
}

static void record(struct qn_connection_state *l, const struct qn_slot *slot,
                   qn_time_t now, struct qn_op_stats *op, FILE *raw)
{
    op->ops++;
    qn_histogram_record(&op->latency, now - slot->request.since);
    if (l->client->task.schedule != NULL) {
        qn_histogram_record(&op->service, now - slot->request.begun);
    }
    l->succeeded |= 1u << slot->request.op;
    if (raw != NULL) {
        fprintf(raw, "%s %" PRIu64 " %" PRIu64 "\n",
                qn_mix_op_name((enum qn_op)slot->request.op),
                now - slot->request.since, now - slot->request.begun);
    }
}

static void take_answer(struct qn_connection_state *l,
                        const struct qn_slot *slot, const struct qn_reply *r,
                        qn_time_t now, struct qn_stats *stats)
{
    struct qn_client *c = l->client;
    struct qn_op_stats *op = &stats->op[slot->request.op];
    uint64_t value = 0;
    enum qn_reply_check answer = qn_request_generator_check_reply(
        &c->generator, &slot->request, r, &value);
    if (slot->record != NULL && answer != QN_REPLY_ERROR &&
        answer != QN_REPLY_WRONG) {
        record_answer(slot->record, r, value, now);
    }
    switch (answer) {
    case QN_REPLY_ERROR:
        op->errors++;
        break;
    case QN_REPLY_WRONG:
        note_wrong(c->workload, &slot->request, r, stats);
        break;
    case QN_REPLY_CONTINUES:
        break;
    case QN_REPLY_RIGHT:
    case QN_REPLY_MISS:
        op->misses += answer == QN_REPLY_MISS;
        record(l, slot, now, op, stats->raw);
    }
}

/* Take one reply. An error in reply to the greeting ends the connection. */
static int take(struct qn_connection_state *l, const struct qn_reply *r,
                qn_time_t now, struct qn_stats *stats)
{
    const struct qn_slot *slot = &l->slot[l->answered++ & l->mask];
    bool is_error = r->type == '-' || r->type == '!';
    if (is_error && stats->first_error[0] == '\0') {
        show(stats->first_error, r);
    }
    if (l->greeting) {
        return is_error ? QN_EPERM : QN_OK;
    }
    l->client->outstanding--;
    take_answer(l, slot, r, now, stats);
    return QN_OK;
}

int qn_client_feed(struct qn_connection_state *l, const uint8_t *data,
                   size_t len, qn_time_t now, struct qn_stats *stats)
{
    size_t at = 0;
    while (at < len) {
        size_t from = at;
        size_t used;
        struct qn_reply reply;
        int err =
            qn_reply_scan(&l->scanner, data + at, len - at, &used, &reply);
        at += used;
        if (err == 1 && !qn_connection_state_idle(l)) {
            err = take(l, &reply, now, stats);
        } else if (err != 0) {
            note_foreign(stats, err, data + from, len - from);
            err = QN_ECORRUPT;
        }
        if (err != QN_OK) {
            return err;
        }
    }
    return QN_OK;
}

void qn_client_lost(struct qn_connection_state *l, struct qn_stats *stats)
{
    struct qn_client *c = l->client;
    uint32_t lost = l->greeting ? 0 : l->asked - l->answered;
    if (c->task.preload) {
        c->task.first_key -= lost * c->task.step;
        c->task.requests += lost;
    } else {
        stats->unanswered += lost;
    }
    c->outstanding -= lost;
    l->answered = l->asked;
    l->scanner = (struct qn_reply_scanner){.sums = l->scanner.sums};
}

uint64_t qn_client_unsent(const struct qn_client *c, qn_time_t now)
{
    if (c->task.schedule == NULL) {
        return 0;
    }
    return QN_MIN(c->task.requests, qn_schedule_behind(&c->schedule, now));
}
