/*
 * Local commands: a table of names and functions.
 */
#include "kvs/local/local_commands.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "kvs/base/number.h"
#include "kvs/base/version.h"
#include "kvs/local/cluster_query.h"
#include "kvs/local/debug_command.h"
#include "kvs/resp/reply.h"
#include "kvs/server/events.h"
#include "kvs/server/server.h"
#include "kvs/server/server_settings.h"

typedef void local_fn(struct qn_conn *c, struct qn_cmd_call *call);

static bool is(struct qn_slice s, const char *word)
{
    return s.len == strlen(word) &&
           strncasecmp((const char *)s.data, word, s.len) == 0;
}

/* ---- connection ---------------------------------------------------------- */

static void run_ping(struct qn_conn *c, struct qn_cmd_call *call)
{
    (void)c;
    if (call->argc > 2) {
        qn_reply_error(call->reply,
                       "ERR wrong number of arguments for 'ping' command");
    } else if (call->argc == 2) {
        qn_reply_bulk(call->reply, call->argv[1].data, call->argv[1].len);
    } else {
        qn_reply_status(call->reply, "PONG");
    }
}

static void run_echo(struct qn_conn *c, struct qn_cmd_call *call)
{
    (void)c;
    qn_reply_bulk(call->reply, call->argv[1].data, call->argv[1].len);
}

static void run_quit(struct qn_conn *c, struct qn_cmd_call *call)
{
    qn_reply_ok(call->reply);
    qn_conn_close_after_reply(c);
}

static void name_set(char **to, struct qn_slice s)
{
    free(*to);
    *to = s.len == 0 ? NULL : strndup((const char *)s.data, s.len);
}

static void run_reset(struct qn_conn *c, struct qn_cmd_call *call)
{
    (void)call;
    c->session.db = 0;
    c->session.proto = 2;
    qn_reply_mode_reset(&c->session.mode);
    c->no_evict = c->no_touch = false;
    name_set(&c->name, (struct qn_slice){0});
    qn_reply_status(&c->session.out, "RESET"); /* also if replies were off */
}

static void run_select(struct qn_conn *c, struct qn_cmd_call *call)
{
    int64_t db = 0;
    if (!qn_number_parse(call->argv[1], &db)) {
        qn_reply_error(call->reply,
                       "ERR value is not an integer or out of range");
    } else if (db < 0 || db >= qn_replica_config(c->fe->o.replica)->databases) {
        qn_reply_error(call->reply, "ERR DB index is out of range");
    } else {
        c->session.db = (uint32_t)db;
        qn_reply_ok(call->reply);
    }
}

static void run_time(struct qn_conn *c, struct qn_cmd_call *call)
{
    (void)c;
    uint64_t us = qn_clock_wall_us();
    char text[32];
    qn_reply_array(call->reply, 2);
    int n =
        snprintf(text, sizeof text, "%llu", (unsigned long long)(us / 1000000));
    qn_reply_bulk(call->reply, text, (size_t)n);
    n = snprintf(text, sizeof text, "%llu", (unsigned long long)(us % 1000000));
    qn_reply_bulk(call->reply, text, (size_t)n);
}

/* Names have no blanks and no control bytes: CLIENT LIST is split at both. */
static bool name_is_valid(struct qn_slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.data[i] < '!' || s.data[i] > '~') {
            return false;
        }
    }
    return true;
}

static const char name_error[] =
    "ERR Client names cannot contain spaces, newlines or special characters.";

static void hello_reply(struct qn_conn *c, struct qn_cmd_call *call)
{
    struct qn_buf *b = call->reply;
    uint8_t proto = c->session.proto;
    QN_ASSERT(proto == 2 || proto == 3);
    qn_reply_map(b, proto, 7);
    qn_reply_bulk_str(b, "server");
    qn_reply_bulk_str(b, "redis");
    qn_reply_bulk_str(b, "version");
    qn_reply_bulk_str(b, QN_REDIS_VERSION);
    qn_reply_bulk_str(b, "proto");
    qn_reply_int(b, proto);
    qn_reply_bulk_str(b, "id");
    qn_reply_int(b, (int64_t)c->id);
    qn_reply_bulk_str(b, "mode");
    qn_reply_bulk_str(b, "standalone");
    qn_reply_bulk_str(b, "role");
    qn_reply_bulk_str(b, "master");
    qn_reply_bulk_str(b, "modules");
    qn_reply_array(b, 0);
}

/* HELLO [2|3 [AUTH user password] [SETNAME name]] */
static void run_hello(struct qn_conn *c, struct qn_cmd_call *call)
{
    int64_t proto = c->session.proto;
    struct qn_slice name = {0};
    bool named = false;
    if (call->argc >= 2) {
        if (!qn_number_parse(call->argv[1], &proto)) {
            qn_reply_error(call->reply, "ERR Protocol version is not an "
                                        "integer or out of range");
            return;
        }
        if (proto != 2 && proto != 3) {
            qn_reply_error(call->reply, "NOPROTO unsupported protocol version");
            return;
        }
    }
    for (uint32_t i = 2; i < call->argc; i++) {
        uint32_t more = call->argc - 1 - i;
        if (is(call->argv[i], "AUTH") && more >= 2) {
            if (!is(call->argv[i + 1], "default")) {
                qn_reply_error(call->reply, "WRONGPASS invalid "
                                            "username-password pair or user is "
                                            "disabled.");
                return;
            }
            i += 2; /* the default user has no password: any password is
                       accepted */
        } else if (is(call->argv[i], "SETNAME") && more >= 1) {
            name = call->argv[++i];
            named = true;
            if (!name_is_valid(name)) {
                qn_reply_error(call->reply, "%s", name_error);
                return;
            }
        } else {
            qn_reply_error(call->reply,
                           "ERR Syntax error in HELLO option '%.*s'",
                           (int)QN_MIN(call->argv[i].len, (size_t)128),
                           (const char *)call->argv[i].data);
            return;
        }
    }
    c->session.proto = (uint8_t)proto;
    if (named) {
        name_set(&c->name, name);
    }
    hello_reply(c, call);
}

/* ---- CLIENT -------------------------------------------------------------- */

static void run_client_id(struct qn_conn *c, struct qn_cmd_call *call)
{
    qn_reply_int(call->reply, (int64_t)c->id);
}

static void run_client_getname(struct qn_conn *c, struct qn_cmd_call *call)
{
    if (c->name == NULL) {
        qn_reply_null(call->reply, call->proto);
    } else {
        qn_reply_bulk_str(call->reply, c->name);
    }
}

static void run_client_setname(struct qn_conn *c, struct qn_cmd_call *call)
{
    if (!name_is_valid(call->argv[2])) {
        qn_reply_error(call->reply, "%s", name_error);
        return;
    }
    name_set(&c->name, call->argv[2]);
    qn_reply_ok(call->reply);
}

static void run_client_setinfo(struct qn_conn *c, struct qn_cmd_call *call)
{
    char **to = is(call->argv[2], "LIB-NAME")  ? &c->lib_name
                : is(call->argv[2], "LIB-VER") ? &c->lib_ver
                                               : NULL;
    if (to == NULL) {
        qn_reply_error(call->reply, "ERR Unrecognized option '%.*s'",
                       (int)QN_MIN(call->argv[2].len, (size_t)128),
                       (const char *)call->argv[2].data);
    } else if (!name_is_valid(call->argv[3])) {
        qn_reply_error(call->reply,
                       "ERR %s cannot contain spaces, newlines or special "
                       "characters.",
                       to == &c->lib_name ? "lib-name" : "lib-ver");
    } else {
        name_set(to, call->argv[3]);
        qn_reply_ok(call->reply);
    }
}

static void run_client_reply(struct qn_conn *c, struct qn_cmd_call *call)
{
    if (is(call->argv[2], "ON")) {
        qn_reply_mode_on(&c->session.mode);
        qn_reply_ok(&c->session.out); /* call->reply may be one not sent */
    } else if (is(call->argv[2], "OFF")) {
        qn_reply_mode_off(&c->session.mode);
    } else if (is(call->argv[2], "SKIP")) {
        qn_reply_mode_skip(&c->session.mode);
    } else {
        qn_reply_error(call->reply, "ERR syntax error");
    }
}

static void on_off(struct qn_cmd_call *call, bool *flag)
{
    if (is(call->argv[2], "ON")) {
        *flag = true;
        qn_reply_ok(call->reply);
    } else if (is(call->argv[2], "OFF")) {
        *flag = false;
        qn_reply_ok(call->reply);
    } else {
        qn_reply_error(call->reply, "ERR syntax error");
    }
}

static void run_client_no_evict(struct qn_conn *c, struct qn_cmd_call *call)
{
    on_off(call, &c->no_evict);
}

static void run_client_no_touch(struct qn_conn *c, struct qn_cmd_call *call)
{
    on_off(call, &c->no_touch);
}

/* ---- server -------------------------------------------------------------- */

static void run_config_get(struct qn_conn *c, struct qn_cmd_call *call)
{
    qn_config_reply(qn_replica_config(c->fe->o.replica), call->argv + 2,
                    call->argc - 2, call->proto, call->reply);
}

static void run_wait(struct qn_conn *c, struct qn_cmd_call *call)
{
    int64_t want = 0;
    int64_t ms = 0;
    if (!qn_number_parse(call->argv[1], &want)) {
        qn_reply_error(call->reply,
                       "ERR value is not an integer or out of range");
    } else if (!qn_number_parse(call->argv[2], &ms)) {
        qn_reply_error(call->reply,
                       "ERR timeout is not an integer or out of range");
    } else if (ms < 0) {
        qn_reply_error(call->reply, "ERR timeout is negative");
    } else {
        struct qn_server *s = c->fe->o.ctx;
        qn_server_wait(&s->waits, c, want, (uint64_t)ms);
    }
}

/* ---- the table ----------------------------------------------------------- */

static const struct {
    const char *name;
    local_fn *run;
} table[] = {
    {"ping", run_ping},
    {"echo", run_echo},
    {"quit", run_quit},
    {"reset", run_reset},
    {"select", run_select},
    {"time", run_time},
    {"hello", run_hello},
    {"client|id", run_client_id},
    {"client|getname", run_client_getname},
    {"client|setname", run_client_setname},
    {"client|setinfo", run_client_setinfo},
    {"client|reply", run_client_reply},
    {"client|no-evict", run_client_no_evict},
    {"client|no-touch", run_client_no_touch},
    {"config|get", run_config_get},
    {"config|set", qn_settings_set}, /* a write, except for options that
                                        change beside the log */
    {"wait", run_wait},
    {"info", qn_cluster_query_info},
    {"client|info", qn_cluster_query_client_info},
    {"client|list", qn_cluster_query_client_list},
    {"client|kill", qn_cluster_query_client_kill},
    {"config|resetstat", qn_cluster_query_config_resetstat},
    {"quoin|events", qn_quoin_events},
    {"quoin|recover", qn_quoin_recover},
    {"quoin|member", qn_quoin_member},
    {"debug|sleep", qn_debug_sleep},
    {"debug|digest", qn_debug_digest},
    {"debug|hold-learns", qn_debug_hold_learns},
    {"debug|overwrite-register", qn_debug_overwrite_register},
    {"debug|wreck", qn_debug_wreck},
};

/* By row of the command table; filled at the first call. */
static local_fn *by_row[QN_CMD_ROWS_MAX];

static void by_row_fill(void)
{
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(table); i++) {
        const struct qn_cmd *found = NULL;
        for (uint32_t k = 0; (found = qn_cmd_at(k)) != NULL; k++) {
            if (strcmp(found->name, table[i].name) == 0) {
                QN_ASSERT(by_row[k] == NULL); /* a name stands once */
                by_row[k] = table[i].run;
                break;
            }
        }
        QN_ASSERT(found != NULL);
    }
}

static local_fn *local_of(const struct qn_cmd *cmd)
{
    static bool filled;
    if (!filled) {
        filled = true;
        by_row_fill();
    }
    return by_row[qn_cmd_index(cmd)];
}

bool qn_local_commands_takes(const struct qn_cmd_call *call)
{
    QN_ASSERT(call->cmd->where == QN_CMD_WRITE);
    QN_ASSERT(call->cmd->key_first == 0);
    return local_of(call->cmd) == qn_settings_set &&
           qn_config_beside(call->argv + 2, call->argc - 2);
}

void qn_local_commands_run(struct qn_conn *c, struct qn_cmd_call *call)
{
    QN_ASSERT(c->session.state == QN_SESSION_RUN);
    QN_ASSERT(c->session.pending == 0);
    QN_ASSERT(c->question.len == 0);
    QN_ASSERT(call->cmd->where != QN_CMD_READ);
    local_fn *run = local_of(call->cmd);
    if (run != NULL) {
        run(c, call);
        return;
    }
    if (call->cmd->run == NULL) {
        qn_cmd_reply_unknown(call->reply, call->argv, call->argc);
        return;
    }
    /* Commands that need only the table: COMMAND, HELP. */
    (void)qn_cmd_run(NULL, call);
}
