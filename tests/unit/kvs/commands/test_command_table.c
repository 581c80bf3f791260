/* The table as data, finding in it, and the errors of what is not there. */
#include "kvs/commands/command.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tests/support/kvs_suite.h"

static struct qn_slice slice(const char *text)
{
    return (struct qn_slice){(const uint8_t *)text, strlen(text)};
}

static bool has_word(const char *words, const char *word)
{
    const char *at = strstr(words, word);
    size_t n = strlen(word);
    return at != NULL && (at == words || at[-1] == ' ') &&
           (at[n] == '\0' || at[n] == ' ');
}

/* What stands in logs of other versions: rows are added, never changed. */
Test(command_table, ids_never_change)
{
    static const char *const names[] = {
        NULL,       "get",      "set",     "setnx",  "getset",    "getdel",
        "mget",     "mset",     "msetnx",  "del",    "unlink",    "exists",
        "touch",    "type",     "strlen",  "append", "getrange",  "substr",
        "setrange", "incr",     "decr",    "incrby", "decrby",    "incrbyfloat",
        "dbsize",   "flushall", "flushdb", "keys",   "randomkey", "config|set",
        "digest",   "delex",    "delifeq", "getbit", "setbit"};
    for (uint16_t id = 0; id < 1000; id++) {
        const struct qn_cmd *cmd = qn_cmd_by_id(id);
        const char *name = id < QN_ARRAY_COUNT(names) ? names[id] : NULL;
        cr_assert((cmd == NULL) == (name == NULL), "id %u", id);
        if (name != NULL) {
            cr_expect_str_eq(cmd->name, name, "id %u", id);
            cr_expect_eq(cmd->id, id);
        }
    }
    cr_assert_null(qn_cmd_by_id(UINT16_MAX));
}

Test(command_table, rows_agree_with_themselves)
{
    uint32_t subs = 0;
    const struct qn_cmd *container = NULL;
    for (uint32_t i = 0; qn_cmd_at(i) != NULL; i++) {
        const struct qn_cmd *cmd = qn_cmd_at(i);
        cr_expect_eq(qn_cmd_index(cmd), i);
        cr_expect_neq(cmd->arity, 0, "%s", cmd->name);
        cr_expect((cmd->key_first != 0) == (cmd->keys != NULL), "%s",
                  cmd->name);
        cr_expect((cmd->key_first != 0) == (cmd->key_step != 0), "%s",
                  cmd->name);
        cr_expect((cmd->deprecated != NULL) == (cmd->replaced != NULL), "%s",
                  cmd->name);
        cr_expect(strlen(cmd->summary) > 5 && strlen(cmd->since) >= 5, "%s",
                  cmd->name);
        const char *bar = strchr(cmd->name, '|');
        cr_expect((bar != NULL) == (subs > 0), "%s", cmd->name);
        if (bar != NULL) {
            cr_expect(strncmp(cmd->name, container->name,
                              (size_t)(bar - cmd->name)) == 0,
                      "%s", cmd->name);
            cr_expect_eq(cmd->subs, 0);
            subs--;
        } else {
            container = cmd;
            subs = cmd->subs;
            for (const char *c = cmd->name; *c != '\0'; c++) {
                cr_expect(islower((unsigned char)*c), "%s", cmd->name);
            }
        }
    }
    cr_assert_eq(subs, 0);
}

Test(command_table, who_executes_agrees_with_the_flags)
{
    for (uint32_t i = 0; qn_cmd_at(i) != NULL; i++) {
        const struct qn_cmd *cmd = qn_cmd_at(i);
        bool data = cmd->where == QN_CMD_WRITE || cmd->where == QN_CMD_READ;
        cr_expect_eq(cmd->id != 0, data, "%s", cmd->name);
        cr_expect(!data || cmd->run != NULL, "%s", cmd->name);
        if (strcmp(cmd->name, "config|set") == 0) {
            continue; /* a write in effect, not to a key */
        }
        cr_expect_eq(has_word(cmd->flags, "write"), cmd->where == QN_CMD_WRITE,
                     "%s", cmd->name);
        cr_expect_eq(has_word(cmd->flags, "readonly"),
                     cmd->where == QN_CMD_READ, "%s", cmd->name);
    }
}

/* ---- finding ------------------------------------------------------------- */

/* The same, slowly. */
static const struct qn_cmd *find_slowly(struct qn_slice name)
{
    for (uint32_t i = 0; qn_cmd_at(i) != NULL; i++) {
        const struct qn_cmd *cmd = qn_cmd_at(i);
        if (strchr(cmd->name, '|') == NULL && strlen(cmd->name) == name.len &&
            strncasecmp(cmd->name, (const char *)name.data, name.len) == 0) {
            return cmd;
        }
    }
    return NULL;
}

static void expect_found(const char *text, size_t len)
{
    /* In a block of exactly this size, so that reading past it is seen. */
    uint8_t *copy = malloc(len + (len == 0));
    memcpy(copy, text, len);
    struct qn_slice name = {copy, len};
    cr_assert_eq(qn_cmd_find(name), find_slowly(name), "%.*s", (int)len, text);
    free(copy);
}

Test(command_find, every_name_is_found_in_any_case)
{
    uint32_t found = 0;
    for (uint32_t i = 0; qn_cmd_at(i) != NULL; i++) {
        const struct qn_cmd *cmd = qn_cmd_at(i);
        char name[32];
        size_t len = strlen(cmd->name);
        if (strchr(cmd->name, '|') != NULL) {
            cr_assert_null(qn_cmd_find(slice(cmd->name)));
            continue;
        }
        cr_assert_eq(qn_cmd_find(slice(cmd->name)), cmd, "%s", cmd->name);
        for (size_t j = 0; j < len; j++) {
            name[j] = (char)toupper((unsigned char)cmd->name[j]);
        }
        cr_assert_eq(qn_cmd_find((struct qn_slice){(uint8_t *)name, len}), cmd,
                     "%s", cmd->name);
        for (size_t j = 0; j < len; j += 2) {
            name[j] = cmd->name[j];
        }
        cr_assert_eq(qn_cmd_find((struct qn_slice){(uint8_t *)name, len}), cmd,
                     "%s", cmd->name);
        found++;
    }
    cr_assert_eq(found, 47);
}

/* Each name with any byte exchanged for any other, shortened, lengthened. */
Test(command_find, near_misses_are_not)
{
    for (uint32_t i = 0; qn_cmd_at(i) != NULL; i++) {
        char name[64];
        strcpy(name, qn_cmd_at(i)->name);
        size_t len = strlen(name);
        for (size_t at = 0; at < len; at++) {
            char old = name[at];
            for (int c = 0; c < 256; c++) {
                name[at] = (char)c;
                expect_found(name, len);
            }
            name[at] = old;
            expect_found(name, at);
            expect_found(name + at, len - at);
        }
        memset(name + len, name[len - 1], 8);
        for (size_t more = 1; more <= 8; more++) {
            expect_found(name, len + more);
        }
    }
}

Test(command_find, odd_names_are_not_found)
{
    static char text[1000];
    cr_assert_null(qn_cmd_find((struct qn_slice){NULL, 0}));
    memset(text, 'g', sizeof text);
    for (size_t len = 1; len < sizeof text; len++) {
        expect_found(text, len);
    }
    /* 256 more than GET's length. */
    memcpy(text, "get", 3);
    cr_assert_null(qn_cmd_find((struct qn_slice){(uint8_t *)text, 259}));
}

Test(command_find, subcommands_belong_to_their_container)
{
    const struct qn_cmd *client = qn_cmd_find(slice("client"));
    const struct qn_cmd *get = qn_cmd_find(slice("get"));
    cr_assert_str_eq(qn_cmd_find_sub(client, slice("LIST"))->name,
                     "client|list");
    cr_assert_str_eq(qn_cmd_find_sub(client, slice("no-Evict"))->name,
                     "client|no-evict");
    cr_assert_null(qn_cmd_find_sub(client, slice("docs")));
    cr_assert_null(qn_cmd_find_sub(client, slice("lis")));
    cr_assert_null(qn_cmd_find_sub(client, slice("listx")));
    cr_assert_null(qn_cmd_find_sub(client, slice("")));
    cr_assert_null(qn_cmd_find_sub(client, slice("client|list")));
    cr_assert_null(qn_cmd_find_sub(client, slice("no\revict")));
    cr_assert_null(qn_cmd_find_sub(get, slice("setnx")));
}

/* ---- errors -------------------------------------------------------------- */

#define COMMAND(name) STORE_TEST(command_resolve, name)

#define A10  "aaaaaaaaaa"
#define A120 A10 A10 A10 A10 A10 A10 A10 A10 A10 A10 A10 A10

COMMAND(unknown_commands_are_quoted)
{
    EXPECT(&w, "foo",
           "-ERR unknown command 'foo', with args beginning with: \r\n");
    EXPECT(&w, "FOO a ''",
           "-ERR unknown command 'FOO', with args beginning with: 'a' '' \r\n");
    EXPECT(&w, "FOO 'a\\x0d\\x0ab' c",
           "-ERR unknown command 'FOO', with args beginning with: 'a  b' 'c' "
           "\r\n");
    EXPECT(&w, "fo\\x00o a\\x00b c",
           "-ERR unknown command 'fo', with args beginning with: 'a' 'c' \r\n");
    EXPECT(&w, "''", "-ERR unknown command '', with args beginning with: \r\n");
    EXPECT(&w, "client|id",
           "-ERR unknown command 'client|id', with args beginning with: \r\n");
}

STORE_TEST(command_resolve, quotes_are_cut)
{
    EXPECT(&w, "foo " A120 "bbb bcd e",
           "-ERR unknown command 'foo', with args beginning with: '" A120
           "bbb' 'bc' \r\n");
    EXPECT(&w, "foo " A120 "bbbbbbb c",
           "-ERR unknown command 'foo', with args beginning with: '" A120
           "bbbbbbb' \r\n");
    EXPECT(&w, "foo " A120 A120 " c",
           "-ERR unknown command 'foo', with args beginning with: '" A120
           "aaaaaaaa' \r\n");
    EXPECT(&w, A120 A120 " c",
           "-ERR unknown command '" A120
           "aaaaaaaa', with args beginning with: 'c' \r\n");
    EXPECT(&w, "client " A120 A120,
           "-ERR unknown subcommand '" A120 "aaaaaaaa'. Try CLIENT HELP.\r\n");
}

COMMAND(unknown_subcommands_name_their_container)
{
    EXPECT(&w, "CONFIG FOO",
           "-ERR unknown subcommand 'FOO'. Try CONFIG HELP.\r\n");
    EXPECT(&w, "command fOO bar",
           "-ERR unknown subcommand 'fOO'. Try COMMAND HELP.\r\n");
    EXPECT(&w, "client 'a\\x0d\\x0ab\\x00c'",
           "-ERR unknown subcommand 'a  b'. Try CLIENT HELP.\r\n");
    EXPECT(&w, "client ''", "-ERR unknown subcommand ''. Try CLIENT HELP.\r\n");
}

COMMAND(arity_is_checked_with_the_full_name)
{
    EXPECT(&w, "CONFIG",
           "-ERR wrong number of arguments for 'config' command\r\n");
    EXPECT(&w, "CONFIG GET",
           "-ERR wrong number of arguments for 'config|get' command\r\n");
    EXPECT(&w, "CONFIG SET a",
           "-ERR wrong number of arguments for 'config|set' command\r\n");
    EXPECT(&w, "CLIENT KILL",
           "-ERR wrong number of arguments for 'client|kill' command\r\n");
    EXPECT(&w, "CLIENT ID x",
           "-ERR wrong number of arguments for 'client|id' command\r\n");
    EXPECT(&w, "ECHO", "-ERR wrong number of arguments for 'echo' command\r\n");
    EXPECT(&w, "DBSIZE x",
           "-ERR wrong number of arguments for 'dbsize' command\r\n");
    EXPECT(&w, "RANDOMKEY x",
           "-ERR wrong number of arguments for 'randomkey' command\r\n");
    EXPECT(&w, "INCR", "-ERR wrong number of arguments for 'incr' command\r\n");
    EXPECT(&w, "TYPE a b",
           "-ERR wrong number of arguments for 'type' command\r\n");
}
