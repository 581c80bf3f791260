#include "loadgen/client/asker.h"

#include "core/base/assert.h"
#include "core/base/err.h"
#include "loadgen/base/random.h"

#include <stdlib.h>
#include <string.h>

/*
 * Nothing is remembered about a request but the request itself: with plain
 * values, what a key holds follows from its number; with unique ones, the
 * reader returns the number that it found and somebody else judges histories.
 *
 * A CAS in plain mode replaces the key's only value by itself: the server does
 * all of its work, and it fails only if the key is missing.
 */

int qn_asker_init(struct qn_asker *a, const struct qn_asker_opts *opts)
{
    QN_ASSERT(opts->open_max >= 1);
    *a = (struct qn_asker){
        .workload = opts->workload,
        .mix = opts->mix != NULL ? opts->mix : &opts->workload->opts.mix,
        .value = opts->number << 40,
        .waiting = calloc(opts->open_max + 1, sizeof *a->waiting),
        .waiting_max = opts->open_max + 1, /* one may be asked before them */
    };
    qn_walk_init(&a->walk, &opts->workload->dist, opts->number, opts->clients,
                 opts->seed);
    return a->waiting != NULL ? QN_OK : QN_ENOMEM;
}

void qn_asker_fini(struct qn_asker *a)
{
    free(a->waiting);
    *a = (struct qn_asker){0};
}

static bool is_unique(const struct qn_asker *a)
{
    return a->workload->opts.unique;
}

static void take_waiting(struct qn_asker *a, struct qn_request *out)
{
    *out = a->waiting[a->waiting_first];
    a->waiting_first = (a->waiting_first + 1) % a->waiting_max;
    a->waiting_count--;
    out->value = is_unique(a) ? ++a->value : 0;
}

static void add_waiting(struct qn_asker *a, const struct qn_request *r)
{
    QN_ASSERT(a->waiting_count < a->waiting_max);
    uint32_t at = (a->waiting_first + a->waiting_count) % a->waiting_max;
    a->waiting[at] = *r;
    a->waiting_count++;
}

/* What is sent first for an operation. */
static enum qn_command first_command(const struct qn_asker *a, enum qn_op op)
{
    static const uint8_t command[QN_OP_COUNT] = {
        [QN_OP_GET] = QN_COMMAND_GET,   [QN_OP_SET] = QN_COMMAND_SET,
        [QN_OP_INCR] = QN_COMMAND_INCR, [QN_OP_MSET] = QN_COMMAND_MSET,
        [QN_OP_PING] = QN_COMMAND_PING, [QN_OP_DEL] = QN_COMMAND_DEL,
        [QN_OP_CAS] = QN_COMMAND_CAS,   [QN_OP_INSERT] = QN_COMMAND_SET,
        [QN_OP_RMW] = QN_COMMAND_GET,   [QN_OP_SCAN] = QN_COMMAND_SCAN,
    };
    bool reads_first = op == QN_OP_CAS && is_unique(a);
    return reads_first ? QN_COMMAND_GET : (enum qn_command)command[op];
}

/* PING and MSET have no key of their own; SCAN begins at any cursor: 53 bits
 * are a position for quoind, and any bits for Redis, in the 16 digits sent. */
static uint64_t choose_key(struct qn_asker *a, enum qn_op op)
{
    switch (op) {
    case QN_OP_PING:
    case QN_OP_MSET:
        return 0;
    case QN_OP_SCAN:
        return qn_random_next(&a->walk.random) >> 11;
    case QN_OP_INSERT:
        return qn_walk_insert(&a->walk);
    default:
        return qn_walk_next(&a->walk);
    }
}

void qn_asker_next(struct qn_asker *a, struct qn_request *out)
{
    if (a->waiting_count > 0) {
        take_waiting(a, out);
        return;
    }
    uint64_t sum = qn_mix_sum(a->mix);
    enum qn_op op = qn_mix_pick(a->mix, qn_random_below(&a->walk.random, sum));
    enum qn_command command = first_command(a, op);
    bool writes = command == QN_COMMAND_SET || command == QN_COMMAND_CAS;
    *out = (struct qn_request){
        .key = choose_key(a, op),
        .value = writes && is_unique(a) ? ++a->value : 0,
        .op = (uint8_t)op,
        .command = (uint8_t)command,
    };
}

void qn_asker_store(struct qn_asker *a, uint64_t key, struct qn_request *out)
{
    *out = (struct qn_request){
        .key = key,
        .value = is_unique(a) ? ++a->value : 0,
        .op = QN_OP_SET,
        .command = QN_COMMAND_SET,
    };
}

/* The second half of what was read, if there is one. */
static bool follow(struct qn_asker *a, const struct qn_request *request,
                   bool found, uint64_t value)
{
    struct qn_request next = *request;
    next.follows = true;
    next.expected = value;
    if (request->op == QN_OP_RMW) {
        next.command = QN_COMMAND_SET;
    } else if (request->op == QN_OP_CAS && found) {
        next.command = QN_COMMAND_CAS;
    } else {
        return false;
    }
    add_waiting(a, &next);
    return true;
}

static enum qn_answer judge_get(struct qn_asker *a,
                                const struct qn_request *request,
                                const struct qn_reply *reply, uint64_t *value)
{
    uint64_t number = 0;
    bool found = reply->type != '_';
    if (found &&
        !qn_request_check_value(a->workload, request->key, reply, &number)) {
        return QN_ANSWER_WRONG;
    }
    if (found) {
        *value = number;
    }
    if (follow(a, request, found, number)) {
        return QN_ANSWER_HALF;
    }
    return found ? QN_ANSWER_RIGHT : QN_ANSWER_MISS;
}

static bool is_text(const struct qn_reply *r, const char *text)
{
    return r->type == '+' && r->head_len == strlen(text) &&
           memcmp(r->head, text, r->head_len) == 0;
}

static enum qn_answer right_if(bool right)
{
    return right ? QN_ANSWER_RIGHT : QN_ANSWER_WRONG;
}

enum qn_answer qn_asker_judge(struct qn_asker *a,
                              const struct qn_request *request,
                              const struct qn_reply *reply, uint64_t *value)
{
    if (reply->type == '-' || reply->type == '!') {
        return QN_ANSWER_ERROR;
    }
    switch ((enum qn_command)request->command) {
    case QN_COMMAND_GET:
        return judge_get(a, request, reply, value);
    case QN_COMMAND_INCR:
        return right_if(reply->type == ':');
    case QN_COMMAND_DEL:
        if (reply->type == ':' && reply->number == 0) {
            return QN_ANSWER_MISS;
        }
        return right_if(reply->type == ':' && reply->number == 1);
    case QN_COMMAND_CAS:
        return reply->type == '_' ? QN_ANSWER_MISS
                                  : right_if(is_text(reply, "OK"));
    case QN_COMMAND_SCAN:
        return right_if(reply->type == '*' && reply->number == 2);
    case QN_COMMAND_PING:
        return right_if(is_text(reply, "PONG"));
    case QN_COMMAND_SET:
    case QN_COMMAND_MSET:
    case QN_COMMAND_COUNT:
        break;
    }
    return right_if(is_text(reply, "OK"));
}
