/*
 * Finds commands by name and by id, and executes what all commands share.
 *
 * Every request has a name, so the lookup is one hash and one comparison of
 * words. A name is reduced to (length, word). The word holds all of up to 8
 * letters, made of two overlapping loads so that nothing is read past the name;
 * longer names compare their rest too. Or-ing 0x20 into each byte folds the
 * case; names consist of letters only, so no other byte folds into one. The
 * index is filled from the table when the program is loaded, before any thread
 * exists, and is constant from then on. The table stays the single source:
 * nothing is generated. A container has few subcommands; they are searched one
 * after the other.
 *
 * Error texts repeat what the user sent: cut at 128 bytes or at a NUL; the
 * writer of the error turns CR and LF into blanks.
 */
#include "kvs/commands/command.h"

#include <stdio.h>
#include <strings.h>

#include "core/base/assert.h"
#include "kvs/commands/cmd_internal.h"

#define INDEX_BITS 8
#define INDEX_SIZE (1u << INDEX_BITS)
#define QUOTE_MAX  128 /* bytes of user input in an error text */

static struct {
    uint64_t word;
    uint8_t len; /* 0: empty, so the longest name has 255 bytes */
    uint8_t row;
} name_index[INDEX_SIZE];

static uint8_t id_index[QN_CMD_IDS_MAX]; /* row + 1; 0: none */

static uint64_t load(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    memcpy(&v, p, n);
    return v;
}

/* The first 8 bytes of a name, in lower case; all of a shorter one. */
static uint64_t word_of(const uint8_t *p, size_t len)
{
    uint64_t v;
    if (len >= 8) {
        v = load(p, 8);
    } else if (len >= 4) {
        v = load(p, 4) | load(p + len - 4, 4) << 32;
    } else {
        v = p[0] | (uint64_t)p[len / 2] << 8 | (uint64_t)p[len - 1] << 16;
    }
    return v | 0x2020202020202020u;
}

static uint32_t place_of(uint64_t word, size_t len)
{
    return (uint32_t)(((word ^ len) * 0x9e3779b97f4a7c15u) >>
                      (64 - INDEX_BITS));
}

static void index_add(uint32_t row)
{
    const char *name = qn_cmd_table[row].name;
    size_t len = strlen(name);
    uint64_t word = word_of((const uint8_t *)name, len);
    uint32_t at = place_of(word, len);
    while (name_index[at].len != 0) {
        at = (at + 1) % INDEX_SIZE;
    }
    name_index[at].word = word;
    name_index[at].len = (uint8_t)len;
    name_index[at].row = (uint8_t)row;
}

__attribute__((constructor)) static void index_build(void)
{
    uint32_t row = 0;
    while (row < qn_cmd_table_rows) {
        index_add(row);
        row += 1u + qn_cmd_table[row].subs;
    }
    for (row = 0; row < qn_cmd_table_rows; row++) {
        uint16_t id = qn_cmd_table[row].id;
        if (id != 0) {
            QN_ASSERT(id < QN_CMD_IDS_MAX);
            QN_ASSERT(id_index[id] == 0);
            id_index[id] = (uint8_t)(row + 1);
        }
    }
}

const struct qn_cmd *qn_cmd_find(struct qn_slice name)
{
    if (name.len == 0 || name.len > UINT8_MAX) {
        return NULL;
    }
    uint64_t word = word_of(name.data, name.len);
    uint32_t at = place_of(word, name.len);
    for (; name_index[at].len != 0; at = (at + 1) % INDEX_SIZE) {
        if (name_index[at].word != word || name_index[at].len != name.len) {
            continue;
        }
        const struct qn_cmd *cmd = &qn_cmd_table[name_index[at].row];
        if (name.len <= 8 || strncasecmp((const char *)name.data + 8,
                                         cmd->name + 8, name.len - 8) == 0) {
            return cmd;
        }
    }
    return NULL;
}

bool qn_cmd_word_is(struct qn_slice a, const char *word)
{
    return a.len == strlen(word) &&
           strncasecmp((const char *)a.data, word, a.len) == 0;
}

const struct qn_cmd *qn_cmd_find_sub(const struct qn_cmd *container,
                                     struct qn_slice name)
{
    for (uint32_t i = 1; i <= container->subs; i++) {
        if (qn_cmd_word_is(name, strchr(container[i].name, '|') + 1)) {
            return &container[i];
        }
    }
    return NULL;
}

const struct qn_cmd *qn_cmd_by_id(uint16_t id)
{
    return id < QN_CMD_IDS_MAX && id_index[id] != 0
               ? &qn_cmd_table[id_index[id] - 1]
               : NULL;
}

const struct qn_cmd *qn_cmd_at(uint32_t i)
{
    return i < qn_cmd_table_rows ? &qn_cmd_table[i] : NULL;
}

uint32_t qn_cmd_index(const struct qn_cmd *cmd)
{
    return (uint32_t)(cmd - qn_cmd_table);
}

/* ---- checks and their errors --------------------------------------------- */

static void reply_arity(struct qn_buf *reply, const struct qn_cmd *cmd)
{
    qn_reply_error(reply, "ERR wrong number of arguments for '%s' command",
                   cmd->name);
}

void qn_cmd_reply_arity(const struct qn_cmd_call *c)
{
    reply_arity(c->reply, c->cmd);
}

bool qn_cmd_check_arity(const struct qn_cmd *cmd, uint32_t argc,
                        struct qn_buf *reply)
{
    bool fits = qn_cmd_arity_fits(cmd, argc);
    if (!fits) {
        reply_arity(reply, cmd);
    }
    return fits;
}

/* The two arguments of "%.*s": at most `max` bytes of s. */
#define CUT(s, max)                                                            \
    (int)QN_MIN((s).len, (max)), (s).len == 0 ? "" : (const char *)(s).data

void qn_cmd_reply_unknown(struct qn_buf *reply, const struct qn_slice *argv,
                          uint32_t argc)
{
    /* As Redis: stop once 128 bytes are written; the quotes of the last
     * argument may exceed that. */
    char args[QUOTE_MAX + 8] = "";
    size_t len = 0;
    for (uint32_t i = 1; i < argc && len < QUOTE_MAX; i++) {
        len += (size_t)snprintf(args + len, sizeof args - len, "'%.*s' ",
                                CUT(argv[i], QUOTE_MAX - len));
    }
    qn_reply_error(reply,
                   "ERR unknown command '%.*s', with args beginning with: %s",
                   CUT(argv[0], QUOTE_MAX), args);
}

void qn_cmd_reply_unknown_sub(struct qn_buf *reply,
                              const struct qn_cmd *container,
                              struct qn_slice sub)
{
    char name[32];
    size_t n = 0;
    for (; container->name[n] != '\0' && n < sizeof name - 1; n++) {
        name[n] = (char)(container->name[n] & ~0x20); /* letters only */
    }
    name[n] = '\0';
    qn_reply_error(reply, "ERR unknown subcommand '%.*s'. Try %s HELP.",
                   CUT(sub, QUOTE_MAX), name);
}

const struct qn_cmd *qn_cmd_named(const struct qn_slice *argv, uint32_t argc)
{
    const struct qn_cmd *cmd = qn_cmd_find(argv[0]);
    return cmd == NULL || cmd->subs == 0 || argc < 2
               ? cmd
               : qn_cmd_find_sub(cmd, argv[1]);
}

const struct qn_cmd *qn_cmd_resolve(const struct qn_slice *argv, uint32_t argc,
                                    struct qn_buf *reply)
{
    const struct qn_cmd *cmd = qn_cmd_find(argv[0]);
    if (cmd == NULL) {
        qn_cmd_reply_unknown(reply, argv, argc);
        return NULL;
    }
    if (cmd->subs != 0 && argc >= 2) {
        const struct qn_cmd *sub = qn_cmd_find_sub(cmd, argv[1]);
        if (sub == NULL) {
            qn_cmd_reply_unknown_sub(reply, cmd, argv[1]);
            return NULL;
        }
        cmd = sub;
    }
    return qn_cmd_check_arity(cmd, argc, reply) ? cmd : NULL;
}

/* ---- execution ----------------------------------------------------------- */

static bool keys_fit(const struct qn_cmd_call *c)
{
    const struct qn_cmd *cmd = c->cmd;
    if (cmd->key_first == 0) {
        return true;
    }
    uint64_t max = c->key_max != 0 && c->key_max < QN_STORE_KEY_MAX
                       ? c->key_max
                       : QN_STORE_KEY_MAX;
    int64_t last = cmd->key_last + (cmd->key_last < 0 ? (int64_t)c->argc : 0);
    for (int64_t i = cmd->key_first; i <= last; i += cmd->key_step) {
        if (c->argv[i].len > max) {
            return false;
        }
    }
    return true;
}

bool qn_cmd_says_ok(const struct qn_cmd_call *c)
{
    qn_cmd_run_fn *run = c->cmd->run;
    return (run == qn_cmd_set && c->argc == 3) || run == qn_cmd_mset ||
           run == qn_cmd_flushall || run == qn_cmd_flushdb ||
           run == qn_cmd_config_set;
}

int qn_cmd_run(struct qn_store *s, const struct qn_cmd_call *c)
{
    QN_DASSERT(c->cmd->run != NULL);
    if (!keys_fit(c)) {
        qn_reply_error(c->reply, "ERR key is longer than max-key-len");
        return QN_OK;
    }
    size_t start = c->reply != NULL ? c->reply->len : 0;
    int err = c->cmd->run(s, c);
    if (err == QN_EDQUOT) {
        if (c->reply != NULL) {
            c->reply->len = start; /* take back what was written of the reply */
        }
        qn_reply_error(c->reply, QN_CMD_ERR_OOM);
        err = QN_OK;
    }
    return err;
}
