#include "loadgen/client/request_generator.h"

#include "core/base/assert.h"
#include "core/base/err.h"
#include "loadgen/base/random.h"

#include <stdlib.h>
#include <string.h>

/*
 * No state is kept per request except the request itself. Plain values follow
 * from the key's number. Unique values are returned to the caller by their
 * number; loadgen/verify checks the history.
 *
 * A CAS with plain values replaces the only value of the key by itself: the
 * server does all of the work, and the operation fails only if the key is
 * missing.
 */

int qn_request_generator_init(struct qn_request_generator *a,
                              const struct qn_request_generator_opts *opts)
{
    QN_ASSERT(opts->open_max >= 1);
    *a = (struct qn_request_generator){
        .workload = opts->workload,
        .mix = opts->mix != NULL ? opts->mix : &opts->workload->opts.mix,
        .value = opts->number << 40,
        .waiting = calloc(opts->open_max + 1, sizeof *a->waiting),
        .waiting_max =
            opts->open_max +
            1, /* one more than open: one can be chosen before them */
    };
    qn_walk_init(&a->walk, &opts->workload->dist, opts->number, opts->clients,
                 opts->seed);
    return a->waiting != NULL ? QN_OK : QN_ENOMEM;
}

void qn_request_generator_fini(struct qn_request_generator *a)
{
    free(a->waiting);
    *a = (struct qn_request_generator){0};
}

static bool is_unique(const struct qn_request_generator *a)
{
    return a->workload->opts.unique;
}

static void take_waiting(struct qn_request_generator *a, struct qn_request *out)
{
    *out = a->waiting[a->waiting_first];
    a->waiting_first = (a->waiting_first + 1) % a->waiting_max;
    a->waiting_count--;
    out->value = is_unique(a) ? ++a->value : 0;
}

static void add_waiting(struct qn_request_generator *a,
                        const struct qn_request *r)
{
    QN_ASSERT(a->waiting_count < a->waiting_max);
    uint32_t at = (a->waiting_first + a->waiting_count) % a->waiting_max;
    a->waiting[at] = *r;
    a->waiting_count++;
}

/* First command of an operation. */
static enum qn_command first_command(const struct qn_request_generator *a,
                                     enum qn_op op)
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

/* PING and MSET have no key of their own. SCAN begins at a random cursor of 53
 * bits, sent in 16 digits: quoind takes it as a position, Redis accepts any. */
static uint64_t choose_key(struct qn_request_generator *a, enum qn_op op)
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

void qn_request_generator_next(struct qn_request_generator *a,
                               struct qn_request *out)
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

void qn_request_generator_store(struct qn_request_generator *a, uint64_t key,
                                struct qn_request *out)
{
    *out = (struct qn_request){
        .key = key,
        .value = is_unique(a) ? ++a->value : 0,
        .op = QN_OP_SET,
        .command = QN_COMMAND_SET,
    };
}

/* Queue the second request of an operation after its read, if it has one. */
static bool follow(struct qn_request_generator *a,
                   const struct qn_request *request, bool found, uint64_t value)
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

static enum qn_reply_check judge_get(struct qn_request_generator *a,
                                     const struct qn_request *request,
                                     const struct qn_reply *reply,
                                     uint64_t *value)
{
    uint64_t number = 0;
    bool found = reply->type != '_';
    if (found &&
        !qn_request_check_value(a->workload, request->key, reply, &number)) {
        return QN_REPLY_WRONG;
    }
    if (found) {
        *value = number;
    }
    if (follow(a, request, found, number)) {
        return QN_REPLY_CONTINUES;
    }
    return found ? QN_REPLY_RIGHT : QN_REPLY_MISS;
}

static bool is_text(const struct qn_reply *r, const char *text)
{
    return r->type == '+' && r->head_len == strlen(text) &&
           memcmp(r->head, text, r->head_len) == 0;
}

static enum qn_reply_check right_if(bool right)
{
    return right ? QN_REPLY_RIGHT : QN_REPLY_WRONG;
}

enum qn_reply_check qn_request_generator_check_reply(
    struct qn_request_generator *a, const struct qn_request *request,
    const struct qn_reply *reply, uint64_t *value)
{
    if (reply->type == '-' || reply->type == '!') {
        return QN_REPLY_ERROR;
    }
    switch ((enum qn_command)request->command) {
    case QN_COMMAND_GET:
        return judge_get(a, request, reply, value);
    case QN_COMMAND_INCR:
        return right_if(reply->type == ':');
    case QN_COMMAND_DEL:
        if (reply->type == ':' && reply->number == 0) {
            return QN_REPLY_MISS;
        }
        return right_if(reply->type == ':' && reply->number == 1);
    case QN_COMMAND_CAS:
        return reply->type == '_' ? QN_REPLY_MISS
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
