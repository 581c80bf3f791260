/* COMMAND and HELP. Shapes and values are those of redis-server 7.0.15, the
 * words of the documentation our own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kvs/commands/cmd_syntax.h"
#include "tests/support/kvs_suite.h"

#define COMMAND(name) STORE_TEST(command_introspect, name)

COMMAND(info_of_get_in_resp2)
{
    EXPECT(&w, "COMMAND INFO get nope",
           "*2\r\n*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n"
           ":1\r\n:1\r\n:1\r\n*3\r\n+@read\r\n+@string\r\n+@fast\r\n*0\r\n"
           "*1\r\n*6\r\n$5\r\nflags\r\n*2\r\n+RO\r\n+access\r\n"
           "$12\r\nbegin_search\r\n*4\r\n$4\r\ntype\r\n$5\r\nindex\r\n"
           "$4\r\nspec\r\n*2\r\n$5\r\nindex\r\n:1\r\n"
           "$9\r\nfind_keys\r\n*4\r\n$4\r\ntype\r\n$5\r\nrange\r\n"
           "$4\r\nspec\r\n*6\r\n$7\r\nlastkey\r\n:0\r\n$7\r\nkeystep\r\n:1\r\n"
           "$5\r\nlimit\r\n:0\r\n*0\r\n$-1\r\n");
}

COMMAND(info_of_mset_in_resp3)
{
    w.proto = 3;
    EXPECT(&w, "command info MSET",
           "*1\r\n*10\r\n$4\r\nmset\r\n:-3\r\n~2\r\n+write\r\n+denyoom\r\n"
           ":1\r\n:-1\r\n:2\r\n~3\r\n+@write\r\n+@string\r\n+@slow\r\n"
           "~2\r\n$26\r\nrequest_policy:multi_shard\r\n"
           "$29\r\nresponse_policy:all_succeeded\r\n"
           "~1\r\n%3\r\n$5\r\nflags\r\n~2\r\n+OW\r\n+update\r\n"
           "$12\r\nbegin_search\r\n%2\r\n$4\r\ntype\r\n$5\r\nindex\r\n"
           "$4\r\nspec\r\n%1\r\n$5\r\nindex\r\n:1\r\n"
           "$9\r\nfind_keys\r\n%2\r\n$4\r\ntype\r\n$5\r\nrange\r\n"
           "$4\r\nspec\r\n%3\r\n$7\r\nlastkey\r\n:-1\r\n$7\r\nkeystep\r\n:2\r\n"
           "$5\r\nlimit\r\n:0\r\n~0\r\n");
}

COMMAND(info_finds_subcommands_by_full_name)
{
    EXPECT(&w, "COMMAND INFO Config|Get client|foo | config| |get client|id|x",
           "*6\r\n*10\r\n$10\r\nconfig|get\r\n:-3\r\n*4\r\n+admin\r\n"
           "+noscript\r\n+loading\r\n+stale\r\n:0\r\n:0\r\n:0\r\n"
           "*3\r\n+@admin\r\n+@slow\r\n+@dangerous\r\n*0\r\n*0\r\n*0\r\n"
           "$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n");
    w.proto = 3;
    EXPECT(&w, "COMMAND INFO client|foo", "*1\r\n_\r\n");
}

/* The first line of the reply. */
static void expect_line(const char *request, const char *line)
{
    store_fixture_type(&w, request);
    cr_expect(w.reply.len > strlen(line) &&
                  memcmp(w.reply.data, line, strlen(line)) == 0,
              "%s: got %.*s", request, 20, (char *)w.reply.data);
}

COMMAND(counts_agree)
{
    EXPECT(&w, "COMMAND COUNT", ":47\r\n");
    expect_line("COMMAND", "*47\r\n");
    expect_line("COMMAND INFO", "*47\r\n");
    expect_line("COMMAND DOCS", "*94\r\n");
    expect_line("COMMAND LIST", "*77\r\n");
    w.proto = 3;
    expect_line("COMMAND", "*47\r\n");
    expect_line("COMMAND DOCS", "%47\r\n");
    expect_line("COMMAND LIST", "*77\r\n");
}

COMMAND(list_filters)
{
    EXPECT(&w, "COMMAND LIST FILTERBY PATTERN MGE*", "*1\r\n$4\r\nmget\r\n");
    EXPECT(&w, "COMMAND LIST FILTERBY PATTERN nope", "*0\r\n");
    EXPECT(&w, "COMMAND LIST FILTERBY MODULE x", "*0\r\n");
    EXPECT(&w, "COMMAND LIST FILTERBY ACLCAT nope", "*0\r\n");
    EXPECT(&w, "COMMAND LIST filterby aclcat @read", "*0\r\n");
    EXPECT(&w, "COMMAND LIST FOO", "-ERR syntax error\r\n");
    EXPECT(&w, "COMMAND LIST FILTERBY PATTERN", "-ERR syntax error\r\n");
    EXPECT(&w, "COMMAND LIST FILTERBY X y", "-ERR syntax error\r\n");
    EXPECT(&w, "COMMAND LIST FILTERBY PATTERN a b", "-ERR syntax error\r\n");
    EXPECT(&w, "COMMAND LIST FOO PATTERN a", "-ERR syntax error\r\n");
}

STORE_TEST(command_docs, list_filters_by_category)
{
    EXPECT(&w, "COMMAND LIST FILTERBY aclcat ADMIN",
           "*16\r\n$10\r\nconfig|get\r\n$16\r\nconfig|resetstat\r\n"
           "$10\r\nconfig|set\r\n$5\r\ndebug\r\n"
           "$11\r\ndebug|sleep\r\n$12\r\ndebug|digest\r\n"
           "$17\r\ndebug|hold-learns\r\n"
           "$24\r\ndebug|overwrite-register\r\n$11\r\ndebug|wreck\r\n"
           "$5\r\nquoin\r\n$12\r\nquoin|events\r\n"
           "$13\r\nquoin|recover\r\n$12\r\nquoin|member\r\n"
           "$11\r\nclient|kill\r\n$11\r\nclient|list\r\n"
           "$15\r\nclient|no-evict\r\n");
}

STORE_TEST(command_docs, docs_of_get)
{
    EXPECT(&w, "COMMAND DOCS nope get",
           "*2\r\n$3\r\nget\r\n*10\r\n"
           "$7\r\nsummary\r\n$27\r\nReturns the value of a key.\r\n"
           "$5\r\nsince\r\n$5\r\n1.0.0\r\n$5\r\ngroup\r\n$6\r\nstring\r\n"
           "$10\r\ncomplexity\r\n$4\r\nO(1)\r\n"
           "$9\r\narguments\r\n*1\r\n*6\r\n$4\r\nname\r\n$3\r\nkey\r\n"
           "$4\r\ntype\r\n$3\r\nkey\r\n$14\r\nkey_spec_index\r\n:0\r\n");
    EXPECT(&w, "COMMAND DOCS nope", "*0\r\n");
    w.proto = 3;
    EXPECT(&w, "COMMAND DOCS nope", "%0\r\n");
}

STORE_TEST(command_docs, deprecated_commands_say_by_what)
{
    w.proto = 3;
    EXPECT(&w, "COMMAND DOCS substr",
           "%1\r\n$6\r\nsubstr\r\n%8\r\n"
           "$7\r\nsummary\r\n$26\r\nReturns a part of a value.\r\n"
           "$5\r\nsince\r\n$5\r\n1.0.0\r\n$5\r\ngroup\r\n$6\r\nstring\r\n"
           "$10\r\ncomplexity\r\n$22\r\nO(N), N bytes returned\r\n"
           "$9\r\ndoc_flags\r\n~1\r\n+deprecated\r\n"
           "$16\r\ndeprecated_since\r\n$5\r\n2.0.0\r\n"
           "$11\r\nreplaced_by\r\n$10\r\n`GETRANGE`\r\n"
           "$9\r\narguments\r\n*3\r\n"
           "%3\r\n$4\r\nname\r\n$3\r\nkey\r\n$4\r\ntype\r\n$3\r\nkey\r\n"
           "$14\r\nkey_spec_index\r\n:0\r\n"
           "%2\r\n$4\r\nname\r\n$5\r\nstart\r\n$4\r\ntype\r\n$7\r\ninteger\r\n"
           "%2\r\n$4\r\nname\r\n$3\r\nend\r\n$4\r\ntype\r\n$7\r\ninteger\r\n");
}

COMMAND(containers_demand_and_name_their_subcommands)
{
    EXPECT(&w, "CONFIG HELP x",
           "-ERR wrong number of arguments for 'config|help' command\r\n");
    expect_line("CONFIG HELP",
                "*9\r\n+CONFIG <subcommand> [<arg> [value] [opt] ...]. "
                "Subcommands are:\r\n+GET parameter...\r\n+    Returns the "
                "parameters that match patterns.\r\n+RESETSTAT\r\n");
    expect_line("CLIENT HELP", "*23\r\n+CLIENT <subc");
    expect_line("COMMAND HELP", "*11\r\n+COMMAND <subc");
    expect_line("DEBUG HELP", "*13\r\n+DEBUG <subc");
    expect_line("QUOIN HELP", "*9\r\n+QUOIN <subc");
}

/* Every reply is one whole element in both protocols: nothing is left over and
 * nothing is missing. */
static const uint8_t *skip(const uint8_t *at, const uint8_t *end)
{
    cr_assert(at < end);
    const uint8_t *eol = memchr(at, '\n', (size_t)(end - at));
    cr_assert_not_null(eol);
    long n = strtol((const char *)at + 1, NULL, 10);
    uint8_t type = *at;
    at = eol + 1;
    if (type == '$') {
        return n < 0 ? at : at + n + 2;
    }
    long elements = type == '*' || type == '~' ? n : type == '%' ? 2 * n : 0;
    for (long i = 0; i < elements; i++) {
        at = skip(at, end);
    }
    return at;
}

COMMAND(replies_are_well_formed)
{
    static const char *const requests[] = {
        "COMMAND",      "COMMAND INFO", "COMMAND DOCS",
        "COMMAND LIST", "CLIENT HELP",  "CONFIG HELP",
        "COMMAND HELP", "DEBUG HELP",   "QUOIN HELP"};
    for (w.proto = 2; w.proto <= 3; w.proto++) {
        for (size_t i = 0; i < QN_ARRAY_COUNT(requests); i++) {
            store_fixture_type(&w, requests[i]);
            const uint8_t *end = w.reply.data + w.reply.len;
            cr_assert_eq(skip(w.reply.data, end), end, "%s", requests[i]);
        }
    }
}

/* ---- the notation of arguments ------------------------------------------- */

static void expect_syntax(const char *syntax, const char *reply)
{
    struct qn_buf b = {0};
    qn_cmd_syntax_reply(&b, 3, syntax);
    cr_expect(b.len == strlen(reply) && memcmp(b.data, reply, b.len) == 0,
              "%s: got %.*s", syntax, (int)b.len, (char *)b.data);
    qn_buf_free(&b);
}

#define NAME(len, name) "$4\r\nname\r\n$" #len "\r\n" name "\r\n"
#define TYPE(len, type) "$4\r\ntype\r\n$" #len "\r\n" type "\r\n"
#define FLAG(flag)      "$5\r\nflags\r\n~1\r\n+" flag "\r\n"
#define TOKEN(len, t)   "$5\r\ntoken\r\n$" #len "\r\n" t "\r\n"

Test(command_syntax, plain_arguments_have_a_type)
{
    expect_syntax("value", "*1\r\n%2\r\n" NAME(5, "value") TYPE(6, "string"));
    expect_syntax("n:integer...", "*1\r\n%3\r\n" NAME(1, "n") TYPE(7, "integer")
                                      FLAG("multiple"));
    expect_syntax("[n]", "*1\r\n%3\r\n" NAME(1, "n") TYPE(6, "string")
                             FLAG("optional"));
}

Test(command_syntax, tokens_stand_alone_or_before_an_argument)
{
    expect_syntax("[GET]", "*1\r\n%4\r\n" NAME(3, "get") TYPE(10, "pure-token")
                               TOKEN(3, "GET") FLAG("optional"));
    expect_syntax("EX seconds:integer", "*1\r\n%3\r\n" NAME(7, "seconds")
                                            TYPE(7, "integer") TOKEN(2, "EX"));
    expect_syntax("ID (id)...", "*1\r\n%4\r\n" NAME(2, "id") TYPE(6, "string")
                                    TOKEN(2, "ID") FLAG("multiple"));
}

Test(command_syntax, brackets_are_blocks_or_choices)
{
    expect_syntax(
        "(key value)...",
        "*1\r\n%4\r\n" NAME(9, "key_value") TYPE(5, "block")
            FLAG("multiple") "$9\r\narguments\r\n*2\r\n"
                             "%3\r\n" NAME(3, "key") TYPE(
                                 3, "key") "$14\r\nkey_spec_index\r\n:0\r\n"
                                           "%2\r\n" NAME(5, "value")
                                               TYPE(6, "string"));
    expect_syntax(
        "[A|B x y]",
        "*1\r\n%4\r\n" NAME(5, "a_x_y") TYPE(5, "oneof") FLAG(
            "optional") "$9\r\narguments\r\n*2\r\n"
                        "%3\r\n" NAME(1, "a") TYPE(10, "pure-token")
                            TOKEN(1, "A") "%3\r\n" NAME(3, "x_y") TYPE(
                                5,
                                "block") "$9\r\narguments\r\n*2\r\n"
                                         "%3\r\n" NAME(1, "x") TYPE(6, "string")
                                             TOKEN(1, "B") "%2\r\n" NAME(1, "y")
                                                 TYPE(6, "string"));
}

Test(command_syntax, people_see_no_types)
{
    char text[QN_CMD_SYNTAX_HELP_MAX];
    qn_cmd_syntax_help("key offset:integer [EX at:unix-time|B]", text);
    cr_assert_str_eq(text, "key offset [EX at|B]");
}
