/*
 * COMMAND [COUNT, LIST, INFO, DOCS] and the HELP of the containers, all
 * answered from the table.
 *
 * The shapes are those of Redis 7.0, because clients parse them: maps and sets
 * become arrays in RESP2, flags are statuses, names are bulks. Most categories
 * follow from the flags (`write` puts a command into
 * @write, `admin` into @admin and @dangerous, no `fast` into @slow).
 *
 * COMMAND COUNT counts commands, LIST names subcommands too, INFO and DOCS
 * describe a subcommand inside its container, or alone when asked for by its
 * full name.
 */
#include <ctype.h>
#include <stdio.h>

#include "kvs/base/glob.h"
#include "kvs/commands/cmd_internal.h"
#include "kvs/commands/cmd_syntax.h"

/* The categories in use, in Redis' order. */
static const char *const categories[] = {
    "keyspace", "read", "write",     "string",     "admin",
    "fast",     "slow", "dangerous", "connection",
};

/* ---- lists of words ------------------------------------------------------ */

/* Take the next of the blank-separated words. */
static bool next_word(const char **words, struct qn_slice *out)
{
    if (*words == NULL || **words == '\0') {
        return false;
    }
    const char *end = strchrnul(*words, ' ');
    *out = (struct qn_slice){(const uint8_t *)*words, (size_t)(end - *words)};
    *words = *end == ' ' ? end + 1 : end;
    return true;
}

static bool has_word(const char *words, const char *word)
{
    for (struct qn_slice w; next_word(&words, &w);) {
        if (w.len == strlen(word) && memcmp(w.data, word, w.len) == 0) {
            return true;
        }
    }
    return false;
}

static uint32_t count_words(const char *words)
{
    uint32_t n = 0;
    for (struct qn_slice w; next_word(&words, &w); n++) {
    }
    return n;
}

/* A status that consists of `prefix` and a word of the table. */
static void reply_status(struct qn_buf *b, const char *prefix,
                         struct qn_slice word)
{
    char text[64];
    snprintf(text, sizeof text, "%s%.*s", prefix, (int)word.len,
             (const char *)word.data);
    qn_reply_status(b, text);
}

static void reply_word_set(struct qn_buf *b, uint8_t proto, const char *words)
{
    qn_reply_set(b, proto, count_words(words));
    for (struct qn_slice w; next_word(&words, &w);) {
        reply_status(b, "", w);
    }
}

/* ---- rows ---------------------------------------------------------------- */

static bool in_category(const struct qn_cmd *cmd, const char *category)
{
    static const char *const of_flag[][2] = {
        {"read", "readonly"},   {"write", "write"}, {"admin", "admin"},
        {"dangerous", "admin"}, {"fast", "fast"},
    };
    if (strcmp(category, "slow") == 0) {
        return !has_word(cmd->flags, "fast");
    }
    for (size_t i = 0; i < QN_ARRAY_COUNT(of_flag); i++) {
        if (strcmp(category, of_flag[i][0]) == 0 &&
            has_word(cmd->flags, of_flag[i][1])) {
            return true;
        }
    }
    return has_word(cmd->acl, category);
}

/* The next command behind `row`, subcommands skipped; NULL at the end. */
static const struct qn_cmd *next_command(const struct qn_cmd *cmd)
{
    uint32_t at = cmd == NULL ? 0 : qn_cmd_index(cmd) + 1 + cmd->subs;
    return qn_cmd_at(at);
}

static uint32_t count_commands(void)
{
    uint32_t n = 0;
    for (const struct qn_cmd *cmd = NULL; (cmd = next_command(cmd)); n++) {
    }
    return n;
}

/* By full name: "get", "client|list". */
static const struct qn_cmd *find_full(struct qn_slice name)
{
    const uint8_t *bar =
        name.len == 0 ? NULL : memchr(name.data, '|', name.len);
    if (bar == NULL) {
        return qn_cmd_find(name);
    }
    size_t first = (size_t)(bar - name.data);
    struct qn_slice sub = {bar + 1, name.len - first - 1};
    const struct qn_cmd *container =
        qn_cmd_find((struct qn_slice){name.data, first});
    return container == NULL ? NULL : qn_cmd_find_sub(container, sub);
}

/* ---- COMMAND INFO -------------------------------------------------------- */

static void reply_categories(struct qn_buf *b, uint8_t proto,
                             const struct qn_cmd *cmd)
{
    uint32_t n = 0;
    for (size_t i = 0; i < QN_ARRAY_COUNT(categories); i++) {
        n += in_category(cmd, categories[i]);
    }
    qn_reply_set(b, proto, n);
    for (size_t i = 0; i < QN_ARRAY_COUNT(categories); i++) {
        const char *name = categories[i];
        if (in_category(cmd, name)) {
            reply_status(
                b, "@", (struct qn_slice){(const uint8_t *)name, strlen(name)});
        }
    }
}

static void reply_tips(struct qn_buf *b, uint8_t proto, const char *tips)
{
    qn_reply_set(b, proto, count_words(tips));
    for (struct qn_slice w; next_word(&tips, &w);) {
        qn_reply_bulk(b, w.data, w.len);
    }
}

static void reply_field_int(struct qn_buf *b, const char *name, int64_t v)
{
    qn_reply_bulk_str(b, name);
    qn_reply_int(b, v);
}

static void reply_key_specs(struct qn_buf *b, uint8_t proto,
                            const struct qn_cmd *cmd)
{
    qn_reply_set(b, proto, cmd->keys != NULL);
    if (cmd->keys == NULL) {
        return;
    }
    qn_reply_map(b, proto, 3);
    qn_reply_bulk_str(b, "flags");
    reply_word_set(b, proto, cmd->keys);
    qn_reply_bulk_str(b, "begin_search");
    qn_reply_map(b, proto, 2);
    qn_reply_bulk_str(b, "type");
    qn_reply_bulk_str(b, "index");
    qn_reply_bulk_str(b, "spec");
    qn_reply_map(b, proto, 1);
    reply_field_int(b, "index", cmd->key_first);
    qn_reply_bulk_str(b, "find_keys");
    qn_reply_map(b, proto, 2);
    qn_reply_bulk_str(b, "type");
    qn_reply_bulk_str(b, "range");
    qn_reply_bulk_str(b, "spec");
    qn_reply_map(b, proto, 3);
    /* Counted from the first key, unless from the end. */
    reply_field_int(b, "lastkey",
                    cmd->key_last < 0 ? cmd->key_last
                                      : cmd->key_last - cmd->key_first);
    reply_field_int(b, "keystep", cmd->key_step);
    reply_field_int(b, "limit", 0);
}

static void reply_info(struct qn_buf *b, uint8_t proto,
                       const struct qn_cmd *cmd)
{
    qn_reply_array(b, 10);
    qn_reply_bulk_str(b, cmd->name);
    qn_reply_int(b, cmd->arity);
    reply_word_set(b, proto, cmd->flags);
    qn_reply_int(b, cmd->key_first);
    qn_reply_int(b, cmd->key_last);
    qn_reply_int(b, cmd->key_step);
    reply_categories(b, proto, cmd);
    reply_tips(b, proto, cmd->tips);
    reply_key_specs(b, proto, cmd);
    qn_reply_set(b, proto, cmd->subs);
    for (uint32_t i = 1; i <= cmd->subs; i++) {
        reply_info(b, proto, cmd + i);
    }
}

int qn_cmd_command(struct qn_store *s, const struct qn_cmd_call *c)
{
    (void)s;
    qn_reply_array(c->reply, count_commands());
    for (const struct qn_cmd *cmd = NULL; (cmd = next_command(cmd));) {
        reply_info(c->reply, c->proto, cmd);
    }
    return QN_OK;
}

int qn_cmd_command_info(struct qn_store *s, const struct qn_cmd_call *c)
{
    if (c->argc == 2) {
        return qn_cmd_command(s, c);
    }
    qn_reply_array(c->reply, c->argc - 2);
    for (uint32_t i = 2; i < c->argc; i++) {
        const struct qn_cmd *cmd = find_full(c->argv[i]);
        if (cmd != NULL) {
            reply_info(c->reply, c->proto, cmd);
        } else {
            qn_reply_null(c->reply, c->proto);
        }
    }
    return QN_OK;
}

/* ---- COMMAND DOCS -------------------------------------------------------- */

static void reply_field(struct qn_buf *b, const char *name, const char *value)
{
    qn_reply_bulk_str(b, name);
    qn_reply_bulk_str(b, value);
}

static void reply_docs(struct qn_buf *b, uint8_t proto,
                       const struct qn_cmd *cmd)
{
    bool deprecated = cmd->deprecated != NULL;
    bool arguments = cmd->syntax != NULL;
    qn_reply_bulk_str(b, cmd->name);
    qn_reply_map(b, proto,
                 4 + (deprecated ? 3u : 0u) + arguments + (cmd->subs != 0));
    reply_field(b, "summary", cmd->summary);
    reply_field(b, "since", cmd->since);
    reply_field(b, "group", cmd->group);
    reply_field(b, "complexity", cmd->cost);
    if (deprecated) {
        qn_reply_bulk_str(b, "doc_flags");
        reply_word_set(b, proto, "deprecated");
        reply_field(b, "deprecated_since", cmd->deprecated);
        reply_field(b, "replaced_by", cmd->replaced);
    }
    if (arguments) {
        qn_reply_bulk_str(b, "arguments");
        qn_cmd_syntax_reply(b, proto, cmd->syntax);
    }
    if (cmd->subs != 0) {
        qn_reply_bulk_str(b, "subcommands");
        qn_reply_map(b, proto, cmd->subs);
        for (uint32_t i = 1; i <= cmd->subs; i++) {
            reply_docs(b, proto, cmd + i);
        }
    }
}

int qn_cmd_command_docs(struct qn_store *s, const struct qn_cmd_call *c)
{
    (void)s;
    if (c->argc == 2) {
        qn_reply_map(c->reply, c->proto, count_commands());
        for (const struct qn_cmd *cmd = NULL; (cmd = next_command(cmd));) {
            reply_docs(c->reply, c->proto, cmd);
        }
        return QN_OK;
    }
    /* Unknown names are left out. */
    uint32_t n = 0;
    for (uint32_t i = 2; i < c->argc; i++) {
        n += find_full(c->argv[i]) != NULL;
    }
    qn_reply_map(c->reply, c->proto, n);
    for (uint32_t i = 2; i < c->argc; i++) {
        const struct qn_cmd *cmd = find_full(c->argv[i]);
        if (cmd != NULL) {
            reply_docs(c->reply, c->proto, cmd);
        }
    }
    return QN_OK;
}

/* ---- COMMAND LIST, COUNT ------------------------------------------------- */

enum filter { FILTER_NONE, FILTER_MODULE, FILTER_ACLCAT, FILTER_PATTERN };

static bool listed(const struct qn_cmd *cmd, enum filter by,
                   struct qn_slice what)
{
    struct qn_slice name = {(const uint8_t *)cmd->name, strlen(cmd->name)};
    switch (by) {
    case FILTER_NONE:
        return true;
    case FILTER_MODULE:
        return false; /* there are none */
    case FILTER_ACLCAT:
        for (size_t i = 0; i < QN_ARRAY_COUNT(categories); i++) {
            if (qn_cmd_word_is(what, categories[i])) {
                return in_category(cmd, categories[i]);
            }
        }
        return false;
    case FILTER_PATTERN:
        return qn_glob_match(what, name, true);
    }
    return false;
}

static void reply_list(const struct qn_cmd_call *c, enum filter by,
                       struct qn_slice what)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < qn_cmd_table_rows; i++) {
        n += listed(&qn_cmd_table[i], by, what);
    }
    qn_reply_array(c->reply, n);
    for (uint32_t i = 0; i < qn_cmd_table_rows; i++) {
        if (listed(&qn_cmd_table[i], by, what)) {
            qn_reply_bulk_str(c->reply, qn_cmd_table[i].name);
        }
    }
}

int qn_cmd_command_list(struct qn_store *s, const struct qn_cmd_call *c)
{
    (void)s;
    enum filter by = FILTER_NONE;
    struct qn_slice what = {0};
    if (c->argc == 5 && qn_cmd_word_is(c->argv[2], "filterby")) {
        by = qn_cmd_word_is(c->argv[3], "module")    ? FILTER_MODULE
             : qn_cmd_word_is(c->argv[3], "aclcat")  ? FILTER_ACLCAT
             : qn_cmd_word_is(c->argv[3], "pattern") ? FILTER_PATTERN
                                                     : FILTER_NONE;
        what = c->argv[4];
    }
    if (by == FILTER_NONE && c->argc != 2) {
        qn_reply_error(c->reply, QN_CMD_ERR_SYNTAX);
        return QN_OK;
    }
    reply_list(c, by, what);
    return QN_OK;
}

int qn_cmd_command_count(struct qn_store *s, const struct qn_cmd_call *c)
{
    (void)s;
    qn_reply_int(c->reply, count_commands());
    return QN_OK;
}

/* ---- HELP ---------------------------------------------------------------- */

static void reply_help(struct qn_buf *b, const struct qn_cmd *sub)
{
    char name[32] = "", syntax[QN_CMD_SYNTAX_HELP_MAX] = "";
    char line[sizeof name + sizeof syntax + 8];
    const char *from = strchr(sub->name, '|') + 1;
    for (size_t i = 0; from[i] != '\0' && i < sizeof name - 1; i++) {
        name[i] = (char)toupper((unsigned char)from[i]);
    }
    if (sub->syntax != NULL) {
        qn_cmd_syntax_help(sub->syntax, syntax);
    }
    snprintf(line, sizeof line, "%s%s%s", name, syntax[0] ? " " : "", syntax);
    qn_reply_status(b, line);
    snprintf(line, sizeof line, "    %s", sub->summary);
    qn_reply_status(b, line);
}

/* c->cmd is the row `container|help`. */
int qn_cmd_help(struct qn_store *s, const struct qn_cmd_call *c)
{
    (void)s;
    const struct qn_cmd *container = c->cmd;
    while (container->subs == 0) {
        container--;
    }
    char title[80] = "";
    for (size_t i = 0; container->name[i] != '\0'; i++) {
        title[i] = (char)toupper((unsigned char)container->name[i]);
    }
    strcat(title, " <subcommand> [<arg> [value] [opt] ...]. "
                  "Subcommands are:");
    qn_reply_array(c->reply, 1 + 2 * (size_t)container->subs);
    qn_reply_status(c->reply, title);
    for (uint32_t i = 1; i <= container->subs; i++) {
        reply_help(c->reply, container + i);
    }
    return QN_OK;
}
