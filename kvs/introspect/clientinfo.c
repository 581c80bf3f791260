/*
 * The line has Redis' fields in Redis' order, because tools split it at blanks
 * and some by position. Fields of features that quoind lacks (subscriptions,
 * transactions, redirection) hold what an ordinary connection of Redis shows
 * there.
 *
 * The filters are those of Redis 7.0, with its error texts. They match a struct
 * qn_client_info, so this file knows no connection.
 */
#include "kvs/introspect/clientinfo.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kvs/base/number.h"
#include "kvs/commands/command.h"
#include "kvs/resp/reply.h"

#define QUOTE_MAX 128 /* bytes of user input in an error text */

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

/* The flags in Redis' order; N if there is none. */
static void flags_of(const struct qn_client_info *c, char *to)
{
    size_t n = 0;
    const struct {
        bool set;
        char letter;
    } flags[] = {{c->blocked, 'b'},
                 {c->closing, 'c'},
                 {c->is_unix, 'U'},
                 {c->no_evict, 'e'},
                 {c->no_touch, 'T'}};
    for (size_t i = 0; i < QN_ARRAY_COUNT(flags); i++) {
        if (flags[i].set) {
            to[n++] = flags[i].letter;
        }
    }
    if (n == 0) {
        to[n++] = 'N';
    }
    to[n] = '\0';
}

static void append_text(struct qn_buf *out, const char *key, const char *value)
{
    qn_buf_append(out, key, strlen(key));
    qn_buf_append(out, value, strlen(value));
}

static void append_count(struct qn_buf *out, const char *key, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    append_text(out, key, text);
}

void qn_client_info_line(struct qn_buf *out, const struct qn_client_info *c)
{
    char flags[8], fd[24];
    flags_of(c, flags);
    snprintf(fd, sizeof fd, "%" PRId64, c->fd);
    append_count(out, "id=", c->id);
    append_text(out, " addr=", or_empty(c->addr));
    append_text(out, " laddr=", or_empty(c->laddr));
    append_text(out, " fd=", fd);
    append_text(out, " name=", or_empty(c->name));
    append_count(out, " age=", c->age_s);
    append_count(out, " idle=", c->idle_s);
    append_text(out, " flags=", flags);
    append_count(out, " db=", c->db);
    append_text(out, " sub=0 psub=0 ssub=0 multi=", "-1");
    append_count(out, " qbuf=", c->qbuf);
    append_count(out, " qbuf-free=", c->qbuf_free);
    append_count(out, " argv-mem=", c->argv_mem);
    append_count(out, " multi-mem=", 0);
    append_count(out, " rbs=", c->out_buffer);
    append_count(out, " rbp=", c->out_used);
    append_count(out, " obl=", c->out_used);
    append_count(out, " oll=", c->out_queued != 0);
    append_count(out, " omem=", c->out_queued);
    append_count(out, " tot-mem=", c->total_mem);
    append_text(out, " events=", c->writing ? "rw" : "r");
    append_text(out, " cmd=", c->cmd != NULL ? c->cmd : "NULL");
    append_text(out, " user=", or_empty(c->user));
    append_text(out, " redir=", "-1");
    append_count(out, " resp=", c->proto);
    append_text(out, " lib-name=", or_empty(c->lib_name));
    append_text(out, " lib-ver=", or_empty(c->lib_ver));
    qn_buf_append(out, "\n", 1);
}

/* ---- filters ------------------------------------------------------------- */

static bool refuse(struct qn_buf *reply, const char *text)
{
    qn_reply_error(reply, "%s", text);
    return false;
}

/* `format` has one "%.*s" for what the user sent. */
#define REFUSE_QUOTED(reply, format, s)                                        \
    (qn_reply_error((reply), format, (int)QN_MIN((s).len, QUOTE_MAX),          \
                    (s).len == 0 ? "" : (const char *)(s).data),               \
     false)

static bool parse_type(struct qn_slice s, enum qn_client_type *out,
                       struct qn_buf *reply)
{
    static const struct {
        const char *name;
        enum qn_client_type type;
    } types[] = {{"normal", QN_CLIENT_NORMAL},
                 {"slave", QN_CLIENT_REPLICA},
                 {"replica", QN_CLIENT_REPLICA},
                 {"pubsub", QN_CLIENT_PUBSUB},
                 {"master", QN_CLIENT_MASTER}};
    for (size_t i = 0; i < QN_ARRAY_COUNT(types); i++) {
        if (qn_cmd_word_is(s, types[i].name)) {
            *out = types[i].type;
            return true;
        }
    }
    return REFUSE_QUOTED(reply, "ERR Unknown client type '%.*s'", s);
}

static bool type_matches(enum qn_client_type type)
{
    return type == QN_CLIENT_ANY || type == QN_CLIENT_NORMAL;
}

bool qn_client_list_parse(const struct qn_slice *argv, uint32_t argc,
                          struct qn_client_list *out, struct qn_buf *reply)
{
    struct qn_client_list f = {.type = QN_CLIENT_ANY};
    if (argc == 4 && qn_cmd_word_is(argv[2], "type")) {
        if (!parse_type(argv[3], &f.type, reply)) {
            return false;
        }
    } else if (argc > 3 && qn_cmd_word_is(argv[2], "id")) {
        f.ids = argv + 3;
        f.id_count = argc - 3;
        for (uint32_t i = 0; i < f.id_count; i++) {
            int64_t id;
            if (!qn_number_parse(f.ids[i], &id)) {
                return refuse(reply, "ERR Invalid client ID");
            }
        }
    } else if (argc != 2) {
        return refuse(reply, QN_CMD_ERR_SYNTAX);
    }
    *out = f;
    return true;
}

bool qn_client_list_matches(const struct qn_client_list *f,
                            const struct qn_client_info *c)
{
    bool found = f->id_count == 0;
    for (uint32_t i = 0; i < f->id_count && !found; i++) {
        int64_t id;
        found =
            qn_number_parse(f->ids[i], &id) && id > 0 && (uint64_t)id == c->id;
    }
    return found && type_matches(f->type);
}

/* One option of CLIENT KILL and its value. */
static bool kill_option(const struct qn_slice *pair, struct qn_client_kill *f,
                        struct qn_buf *reply)
{
    const struct qn_slice *value = &pair[1];
    if (qn_cmd_word_is(pair[0], "id")) {
        int64_t id;
        if (!qn_number_parse(*value, &id) || id < 1) {
            return refuse(reply, "ERR client-id should be greater than 0");
        }
        f->id = (uint64_t)id;
    } else if (qn_cmd_word_is(pair[0], "type")) {
        return parse_type(*value, &f->type, reply);
    } else if (qn_cmd_word_is(pair[0], "addr")) {
        f->addr = value;
    } else if (qn_cmd_word_is(pair[0], "laddr")) {
        f->laddr = value;
    } else if (qn_cmd_word_is(pair[0], "user")) {
        if (value->len != 7 || memcmp(value->data, "default", 7) != 0) {
            return REFUSE_QUOTED(reply, "ERR No such user '%.*s'", *value);
        }
        f->user = value;
    } else if (qn_cmd_word_is(pair[0], "skipme")) {
        f->skip_me = qn_cmd_word_is(*value, "yes");
        if (!f->skip_me && !qn_cmd_word_is(*value, "no")) {
            return refuse(reply, QN_CMD_ERR_SYNTAX);
        }
    } else {
        return refuse(reply, QN_CMD_ERR_SYNTAX);
    }
    return true;
}

bool qn_client_kill_parse(const struct qn_slice *argv, uint32_t argc,
                          struct qn_client_kill *out, struct qn_buf *reply)
{
    struct qn_client_kill f = {.skip_me = true};
    if (argc == 3) {
        f.old_form = true;
        f.skip_me = false;
        f.addr = &argv[2];
    } else {
        for (uint32_t i = 2; i < argc; i += 2) {
            if (i + 1 == argc) {
                return refuse(reply, QN_CMD_ERR_SYNTAX);
            }
            if (!kill_option(&argv[i], &f, reply)) {
                return false;
            }
        }
    }
    *out = f;
    return true;
}

static bool text_matches(const struct qn_slice *want, const char *text)
{
    return want == NULL ||
           (want->len == strlen(or_empty(text)) &&
            (want->len == 0 || memcmp(want->data, text, want->len) == 0));
}

bool qn_client_kill_matches(const struct qn_client_kill *f,
                            const struct qn_client_info *c, bool me)
{
    return (f->id == 0 || f->id == c->id) && type_matches(f->type) &&
           text_matches(f->addr, c->addr) && text_matches(f->laddr, c->laddr) &&
           text_matches(f->user, c->user) && !(me && f->skip_me);
}

void qn_client_kill_reply(const struct qn_client_kill *f, uint64_t killed,
                          struct qn_buf *reply)
{
    if (!f->old_form) {
        qn_reply_int(reply, (int64_t)killed);
    } else if (killed == 0) {
        qn_reply_error(reply, "ERR No such client");
    } else {
        qn_reply_ok(reply);
    }
}
