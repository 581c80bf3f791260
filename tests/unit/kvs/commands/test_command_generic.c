/* Commands on keys and databases, against what redis-server 7.0.15 answers. */
#include "tests/support/kvs_suite.h"

#include <stdio.h>
#include <string.h>

#define COMMAND(name) STORE_TEST(command_generic, name)

COMMAND(del_and_unlink_count_what_was_there)
{
    EXPECT(&w, "MSET a 1 b 2 c 3", "+OK\r\n");
    EXPECT(&w, "DEL a nope a b", ":2\r\n");
    EXPECT(&w, "UNLINK c c", ":1\r\n");
    EXPECT(&w, "DEL nope", ":0\r\n");
    EXPECT(&w, "DEL", "-ERR wrong number of arguments for 'del' command\r\n");
    EXPECT(&w, "DBSIZE", ":0\r\n");
}

COMMAND(exists_and_touch_count_repeats)
{
    EXPECT(&w, "SET k v", "+OK\r\n");
    EXPECT(&w, "EXISTS k nope k", ":2\r\n");
    EXPECT(&w, "TOUCH k nope k", ":2\r\n");
    EXPECT(&w, "EXISTS nope", ":0\r\n");
}

COMMAND(type_is_string_or_none)
{
    EXPECT(&w, "TYPE k", "+none\r\n");
    EXPECT(&w, "SET k v", "+OK\r\n");
    EXPECT(&w, "TYPE k", "+string\r\n");
}

COMMAND(flush_takes_one_word_at_most)
{
    EXPECT(&w, "SET k v", "+OK\r\n");
    EXPECT(&w, "FLUSHALL FOO", "-ERR syntax error\r\n");
    EXPECT(&w, "FLUSHALL SYNC ASYNC", "-ERR syntax error\r\n");
    EXPECT(&w, "FLUSHDB ''", "-ERR syntax error\r\n");
    EXPECT(&w, "DBSIZE", ":1\r\n");
    EXPECT(&w, "FLUSHDB async", "+OK\r\n");
    EXPECT(&w, "DBSIZE", ":0\r\n");
    EXPECT(&w, "SET k v", "+OK\r\n");
    EXPECT(&w, "FLUSHALL Sync", "+OK\r\n");
    EXPECT(&w, "EXISTS k", ":0\r\n");
}

STORE_TEST(command_databases, each_has_its_own_keys)
{
    EXPECT(&w, "MSET a 0 b 0", "+OK\r\n");
    w.db = 15;
    EXPECT(&w, "GET a", "$-1\r\n");
    EXPECT(&w, "SET a 15", "+OK\r\n");
    EXPECT(&w, "DBSIZE", ":1\r\n");
    EXPECT(&w, "KEYS *", "*1\r\n$1\r\na\r\n");
    EXPECT(&w, "RANDOMKEY", "$1\r\na\r\n");
    EXPECT(&w, "FLUSHDB", "+OK\r\n");
    EXPECT(&w, "RANDOMKEY", "$-1\r\n");
    w.db = 0;
    EXPECT(&w, "DBSIZE", ":2\r\n");
    w.db = 3;
    EXPECT(&w, "SET a 3", "+OK\r\n");
    EXPECT(&w, "FLUSHALL", "+OK\r\n");
    EXPECT(&w, "DBSIZE", ":0\r\n");
    w.db = 0;
    EXPECT(&w, "DBSIZE", ":0\r\n");
}

COMMAND(keys_matches_patterns)
{
    EXPECT(&w, "KEYS *", "*0\r\n");
    EXPECT(&w, "MSET one 1 two 2 '' e", "+OK\r\n");
    EXPECT(&w, "KEYS o*", "*1\r\n$3\r\none\r\n");
    EXPECT(&w, "KEYS t[v-x]?", "*1\r\n$3\r\ntwo\r\n");
    EXPECT(&w, "KEYS ''", "*1\r\n$0\r\n\r\n");
    EXPECT(&w, "KEYS nope", "*0\r\n");
    EXPECT(&w, "DEL two", ":1\r\n");
    EXPECT(&w, "KEYS **", "*1\r\n$3\r\none\r\n");
    EXPECT(&w, "DEL one", ":1\r\n");
    EXPECT(&w, "KEYS *", "*1\r\n$0\r\n\r\n");
}

/* More keys than one step of the walk, so more than one header digit too. */
STORE_TEST(command_keys, finds_every_key_of_many)
{
    enum { N = 12345 };
    static bool seen[N];
    for (int i = 0; i < N; i++) {
        char line[64];
        snprintf(line, sizeof line, "SET k%d v", i);
        store_fixture_type(&w, line);
    }
    EXPECT(&w, "DBSIZE", ":12345\r\n");
    store_fixture_type(&w, "KEYS k*");
    qn_buf_append(&w.reply, "", 1);
    char *at = (char *)w.reply.data;
    cr_assert_eq(strncmp(at, "*12345\r\n", 8), 0);
    at += 8;
    for (int i = 0; i < N; i++) {
        int len = 0, k = -1, used = 0;
        cr_assert_eq(sscanf(at, "$%d\r\nk%d\r\n%n", &len, &k, &used), 2);
        cr_assert(k >= 0 && k < N && !seen[k]);
        seen[k] = true;
        at += used;
    }
    cr_assert_eq(*at, '\0');
}

/* The header is put in front of the elements, behind what was there. */
STORE_TEST(command_keys, reply_goes_behind_earlier_ones)
{
    EXPECT(&w, "SET k v", "+OK\r\n");
    struct qn_buf b = {0};
    qn_reply_ok(&b);
    const struct qn_slice argv[] = {{(const uint8_t *)"keys", 4},
                                    {(const uint8_t *)"*", 1}};
    const struct qn_cmd_call c = {.cmd = qn_cmd_find(argv[0]),
                                  .argv = argv,
                                  .argc = 2,
                                  .proto = 2,
                                  .reply = &b};
    cr_assert_eq(qn_cmd_run(w.store, &c), QN_OK);
    cr_assert_eq(b.len, 16);
    cr_assert_arr_eq(b.data, "+OK\r\n*1\r\n$1\r\nk\r\n", 16);
    qn_buf_free(&b);
}

STORE_TEST(command_keys, randomkey_reaches_every_key)
{
    unsigned seen = 0;
    EXPECT(&w, "RANDOMKEY", "$-1\r\n");
    EXPECT(&w, "MSET 0 a 1 a 2 a 3 a 4 a 5 a 6 a 7 a", "+OK\r\n");
    for (int i = 0; i < 2000 && seen != 0xff; i++) {
        w.random += 0x9e3779b97f4a7c15u;
        store_fixture_type(&w, "RANDOMKEY");
        cr_assert_eq(w.reply.len, 7);
        seen |= 1u << (w.reply.data[4] - '0');
    }
    cr_assert_eq(seen, 0xff, "keys seen: %x", seen);
}

STORE_TEST(command_keys, randomkey_finds_the_only_live_key)
{
    for (int i = 0; i < 1000; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        store_fixture_put(&w, key, "v", w.stamp_ms);
    }
    EXPECT(&w, "RANDOMKEY", "$-1\r\n");
    EXPECT(&w, "SET live v", "+OK\r\n");
    for (int i = 0; i < 10; i++) {
        w.random += 0x9e3779b97f4a7c15u;
        EXPECT(&w, "RANDOMKEY", "$4\r\nlive\r\n");
    }
    w.proto = 3;
    EXPECT(&w, "DEL live", ":1\r\n");
    EXPECT(&w, "RANDOMKEY", "_\r\n");
}

STORE_TEST(command_config, set_is_told_to_the_replica_through_the_log)
{
    EXPECT(&w, "CONFIG SET maxmemory 5 timeout 7", "+OK\r\n");
    cr_assert_eq(w.config.len, 22);
    cr_assert_arr_eq(w.config.data, "maxmemory=5;timeout=7;", 22);
    EXPECT(&w, "config set a b c", "-ERR syntax error\r\n");
    EXPECT(&w, "CONFIG SET a",
           "-ERR wrong number of arguments for 'config|set' command\r\n");
    cr_assert_eq(w.config.len, 22);
}

/* ---- maxmemory ----------------------------------------------------------- */

#define OOM "-OOM command not allowed when used memory > 'maxmemory'.\r\n"

/* A key and a value of one byte each take 50. */
STORE_TEST(command_memory, what_grows_is_refused_and_the_rest_goes_on)
{
    w.memory_max = 100;
    EXPECT(&w, "SET a 1", "+OK\r\n");
    EXPECT(&w, "SET b 1", "+OK\r\n");
    EXPECT(&w, "SET c 1", OOM);
    EXPECT(&w, "SET a 12", OOM);
    EXPECT(&w, "SETNX c 1", OOM);
    EXPECT(&w, "GETSET a 12", OOM);
    EXPECT(&w, "SET a 12 GET", OOM);
    EXPECT(&w, "APPEND a 2", OOM);
    EXPECT(&w, "SETRANGE a 1 x", OOM);
    EXPECT(&w, "SETRANGE a 300000000 x", OOM);
    EXPECT(&w, "INCR c", OOM);
    EXPECT(&w, "INCRBY a 99", OOM);
    EXPECT(&w, "INCRBYFLOAT a 0.5", OOM);
    EXPECT(&w, "MSET a 1 c 1", OOM);
    EXPECT(&w, "MSETNX c 1 d 1", OOM);
    EXPECT(&w, "MGET a b c d", "*4\r\n$1\r\n1\r\n$1\r\n1\r\n$-1\r\n$-1\r\n");
    /* What is no longer than what it replaces, and what adds nothing. */
    EXPECT(&w, "SET a 2", "+OK\r\n");
    EXPECT(&w, "INCR a", ":3\r\n");
    EXPECT(&w, "SET c 1 XX", "$-1\r\n");
    EXPECT(&w, "SETNX a 12", ":0\r\n");
    EXPECT(&w, "MSET a 4 b ''", "+OK\r\n");
    EXPECT(&w, "MSET a '' b 5", "+OK\r\n");
    EXPECT(&w, "DEL b", ":1\r\n");
    EXPECT(&w, "SET c 1", "+OK\r\n");
    EXPECT(&w, "SET a 12", OOM);
    EXPECT(&w, "FLUSHALL", "+OK\r\n");
    EXPECT(&w, "MSET a 1 c 1", "+OK\r\n");
}

/* One key twice: what is freed once must not count twice. */
STORE_TEST(command_memory, several_values_are_stored_all_or_none)
{
    w.memory_max = 100;
    EXPECT(&w, "SET a 0123456789", "+OK\r\n");
    EXPECT(&w,
           "MSET a '' a '' a "
           "012345678901234567890123456789012345678901234567890123",
           OOM);
    EXPECT(&w, "MSET a 1 b 1 c 1", OOM);
    EXPECT(&w, "GET a", "$10\r\n0123456789\r\n");
    EXPECT(&w, "DBSIZE", ":1\r\n");
    /* Together with what it replaces an entry would not fit. */
    EXPECT(&w, "MSET a 01234567890123456789012345678901234567890", "+OK\r\n");
}

/* A limit that is lowered below what is there frees nothing. */
STORE_TEST(command_memory, a_store_beyond_the_limit_may_only_shrink)
{
    EXPECT(&w, "SET a 0123456789", "+OK\r\n");
    w.memory_max = 1;
    EXPECT(&w, "SET a 01234567890", OOM);
    EXPECT(&w, "SET a 012345678", "+OK\r\n");
    EXPECT(&w, "APPEND a ''", ":9\r\n");
    EXPECT(&w, "GETDEL a", "$9\r\n012345678\r\n");
    EXPECT(&w, "SET a ''", OOM);
    w.memory_max = 0;
    EXPECT(&w, "SET a ''", "+OK\r\n");
}
