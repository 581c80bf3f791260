/*
 * One request: found in the table of commands, then run, submitted, refused, or
 * put back because it has to wait.
 *
 * Back-pressure. Only what is submitted waits for room at the replica: a write
 * does, and blocks its session. A read with nothing pending, PING and INFO are
 * answered whatever the writes of other sessions wait for. A read behind writes
 * of its own session waits for those.
 */
#include "kvs/resp/reply.h"
#include "kvs/session/reply_stats.h"
#include "kvs/session/session_internal.h"

struct qn_buf *qn_session_reply(struct qn_session_env *env,
                                struct qn_client_session *s)
{
    return qn_reply_mode_is_muted(&s->mode) ? qn_session_scratch(env) : &s->out;
}

enum { BYTES_OF_WORK = 4096 }; /* of a reply: as much work as a request */

/* A reply that is muted costs as much to make. */
static void charge(struct qn_session_env *env, size_t reply_bytes)
{
    env->budget -= (int64_t)(reply_bytes / BYTES_OF_WORK);
}

static enum qn_outcome put_back(struct qn_client_session *s,
                                enum qn_blocked reason)
{
    qn_resp_put_back(&s->in);
    qn_session_block(s, reason);
    return QN_REQUEST_PUT_BACK;
}

/* ---- one request --------------------------------------------------------- */

/* What is not run: `error` is the reply. Counted as Redis does, for the command
 * that was named, and not among its calls. */
static enum qn_outcome reject(struct qn_session_env *env,
                              struct qn_client_session *s,
                              const struct qn_slice *argv, uint32_t argc)
{
    if (s->pending > 0) {
        return put_back(s, QN_BLOCKED_PENDING);
    }
    if (env->error.oom) {
        qn_buf_free(&env->error); /* the next one tries again */
        return QN_REQUEST_NO_MEMORY;
    }
    struct qn_slice error = {env->error.data, env->error.len};
    const struct qn_cmd *named = qn_cmd_named(argv, argc);
    if (named != NULL) {
        env->part->cmd[qn_cmd_index(named)].rejected++;
    }
    qn_buf_append(qn_session_reply(env, s), error.data, error.len);
    qn_reply_stats_note(env->part, NULL, error);
    return QN_REQUEST_DONE;
}

/* The group decides nothing, or nothing that is heard here. */
static enum qn_outcome refuse(struct qn_session_env *env,
                              struct qn_client_session *s,
                              struct qn_cmd_call *call)
{
    QN_DASSERT(env->error.len == 0);
    call->cmd = NULL; /* it is not called */
    qn_reply_error(&env->error, "%s", env->ops->unavailable_reason(env->ctx));
    return reject(env, s, call->argv, call->argc);
}

/* `cmd` was submitted; a completion is to come. */
static enum qn_outcome submitted(struct qn_session_env *env,
                                 struct qn_client_session *s,
                                 const struct qn_cmd *cmd)
{
    const struct qn_submission submission = {
        .session = s,
        .cmd = cmd,
        .is_muted = qn_reply_mode_is_muted(&s->mode),
    };
    qn_in_flight_push(&env->in_flight, &submission);
    s->pending++;
    s->deferred_reads += cmd->where == QN_CMD_READ;
    qn_session_check(s);
    return QN_REQUEST_DONE;
}

static enum qn_outcome run_write(struct qn_session_env *env,
                                 struct qn_client_session *s,
                                 struct qn_cmd_call *call)
{
    switch (env->ops->submit_write(env->ctx, call)) {
    case QN_SUBMIT_TAKEN:
        return submitted(env, s, call->cmd);
    case QN_SUBMIT_NO_ROOM:
        return put_back(s, QN_BLOCKED_BACKPRESSURE);
    case QN_SUBMIT_UNAVAILABLE:
        return refuse(env, s, call);
    case QN_SUBMIT_NO_MEMORY:
        break;
    }
    return QN_REQUEST_NO_MEMORY;
}

/* Is a copy of its arguments within QN_DEFERRED_READ_BYTES_MAX? */
static bool may_defer(const struct qn_cmd_call *call)
{
    const size_t max = QN_DEFERRED_READ_BYTES_MAX;
    size_t bytes = (size_t)call->argc * sizeof *call->argv;
    for (uint32_t i = 0; i < call->argc && bytes <= max; i++) {
        bytes += QN_MIN(call->argv[i].len, max + 1);
    }
    return bytes <= max;
}

/* A read behind writes of its own session. */
static enum qn_outcome defer_read(struct qn_session_env *env,
                                  struct qn_client_session *s,
                                  const struct qn_cmd_call *call)
{
    if (s->deferred_reads == QN_DEFERRED_READS_MAX || !may_defer(call)) {
        return put_back(s, QN_BLOCKED_PENDING);
    }
    switch (env->ops->submit_read(env->ctx, call, s->index)) {
    case QN_SUBMIT_TAKEN:
        return submitted(env, s, call->cmd);
    case QN_SUBMIT_NO_MEMORY:
        return QN_REQUEST_NO_MEMORY;
    case QN_SUBMIT_NO_ROOM:
    case QN_SUBMIT_UNAVAILABLE:
        break;
    }
    return put_back(s, QN_BLOCKED_PENDING);
}

static enum qn_outcome run_read(struct qn_session_env *env,
                                struct qn_client_session *s,
                                struct qn_cmd_call *call)
{
    if (s->pending > 0) {
        return defer_read(env, s, call);
    }
    if (env->applied < s->index && s->deadline_passed) {
        return refuse(env, s, call);
    }
    if (env->applied < s->index) {
        s->blocked_tick = env->ops->tick(env->ctx);
        env->ops->wait_index(env->ctx, s->index);
        return put_back(s, QN_BLOCKED_READ_INDEX);
    }
    call->reply = qn_session_reply(env, s);
    size_t start = call->reply->len;
    env->ops->run_read(env->ctx, call);
    charge(env, call->reply->len - start);
    qn_reply_stats_note(env->part, call->cmd,
                        qn_reply_stats_slice(call->reply, start));
    return QN_REQUEST_DONE;
}

/* What is answered without the log and the store: in order behind what is
 * pending, so the session is blocked while anything is. */
static enum qn_outcome run_local(struct qn_session_env *env,
                                 struct qn_client_session *s,
                                 struct qn_cmd_call *call)
{
    if (s->pending > 0) {
        return put_back(s, QN_BLOCKED_PENDING);
    }
    call->reply = qn_session_reply(env, s);
    size_t start = call->reply->len;
    qn_reply_mode_local_begins(&s->mode);
    env->ops->run_local(env->ctx, s, call);
    if (!qn_reply_mode_is_late(&s->mode) && call->reply->len > start) {
        charge(env, call->reply->len - start);
        qn_reply_stats_note(env->part, call->cmd,
                            qn_reply_stats_slice(call->reply, start));
    }
    return QN_REQUEST_DONE;
}

/* Only a write without keys can be one that runs beside the log, so the usual
 * write costs no call. */
static bool is_local(struct qn_session_env *env, const struct qn_cmd_call *call)
{
    if (call->cmd->where == QN_CMD_WRITE) {
        return call->cmd->key_first == 0 &&
               env->ops->is_local_write(env->ctx, call);
    }
    return call->cmd->where != QN_CMD_READ;
}

static enum qn_outcome execute(struct qn_session_env *env,
                               struct qn_client_session *s,
                               struct qn_cmd_call *call)
{
    if (is_local(env, call)) {
        return run_local(env, s, call);
    }
    if (!env->has_store) {
        call->cmd = NULL;
        qn_reply_error(&env->error, QN_REPLY_LOADING);
        return reject(env, s, call->argv, call->argc);
    }
    return call->cmd->where == QN_CMD_WRITE ? run_write(env, s, call)
                                            : run_read(env, s, call);
}

/* `cmd` is NULL if the request was no command that could run. */
static void request_done(struct qn_session_env *env,
                         struct qn_client_session *s, const struct qn_cmd *cmd)
{
    s->commands++;
    if (cmd != NULL) {
        s->last_cmd = cmd;
        env->part->commands_processed++;
        env->part->cmd[qn_cmd_index(cmd)].calls++;
    }
    qn_reply_mode_request_done(&s->mode);
}

bool qn_session_next_key(struct qn_client_session *s,
                         struct qn_session_key *key)
{
    struct qn_resp_req req;
    if (s->state != QN_SESSION_RUN || !qn_resp_peek(&s->in, &req)) {
        return false;
    }
    const struct qn_cmd *cmd = qn_cmd_named(req.argv, req.argc);
    if (cmd == NULL || cmd->where != QN_CMD_READ || cmd->key_first <= 0 ||
        (uint32_t)cmd->key_first >= req.argc) {
        return false;
    }
    *key = (struct qn_session_key){s->db, req.argv[cmd->key_first]};
    return true;
}

enum qn_outcome qn_session_request(struct qn_session_env *env,
                                   struct qn_client_session *s,
                                   const struct qn_resp_req *req)
{
    env->error.len = 0;
    struct qn_cmd_call call = {
        .cmd = qn_cmd_resolve(req->argv, req->argc, &env->error),
        .argv = req->argv,
        .argc = req->argc,
        .db = s->db,
        .proto = s->proto,
        .value_max = env->value_max,
        .key_max = env->key_max,
    };
    enum qn_outcome outcome = call.cmd != NULL
                                  ? execute(env, s, &call)
                                  : reject(env, s, req->argv, req->argc);
    if (outcome == QN_REQUEST_DONE) {
        request_done(env, s, call.cmd);
    }
    return outcome;
}
