/* Commands on strings, against what redis-server 7.0.15 answers to the same
 * requests (but for the limits, which are ours). */
#include "tests/support/kvs_suite.h"

#include <stdio.h>
#include <string.h>

#define COMMAND(name) STORE_TEST(command_string, name)

COMMAND(get_answers_the_value_or_null)
{
    EXPECT(&w, "GET k", "$-1\r\n");
    EXPECT(&w, "SET k v", "+OK\r\n");
    EXPECT(&w, "GET k", "$1\r\nv\r\n");
    EXPECT(&w, "get K", "$-1\r\n");
    EXPECT(&w, "SET k ''", "+OK\r\n");
    EXPECT(&w, "GET k", "$0\r\n\r\n");
    EXPECT(&w, "SET '' empty", "+OK\r\n");
    EXPECT(&w, "GET ''", "$5\r\nempty\r\n");
    EXPECT(&w, "SET \\x00\\x0d\\x0a \\x00\\xff", "+OK\r\n");
    EXPECT(&w, "GET \\x00\\x0d\\x0a", "$2\r\n\0\xff\r\n");
    EXPECT(&w, "GET", "-ERR wrong number of arguments for 'get' command\r\n");
    EXPECT(&w, "GET a b",
           "-ERR wrong number of arguments for 'get' command\r\n");
}

COMMAND(null_is_one_byte_in_resp3)
{
    w.proto = 3;
    EXPECT(&w, "GET k", "_\r\n");
    EXPECT(&w, "SET k v XX", "_\r\n");
    EXPECT(&w, "SET k v NX GET", "_\r\n");
    EXPECT(&w, "GETDEL nope", "_\r\n");
    EXPECT(&w, "GETSET nope v", "_\r\n");
    EXPECT(&w, "MGET k nope2", "*2\r\n$1\r\nv\r\n_\r\n");
}

COMMAND(set_obeys_nx_and_xx)
{
    EXPECT(&w, "SET k v XX", "$-1\r\n");
    EXPECT(&w, "GET k", "$-1\r\n");
    EXPECT(&w, "SET k v NX", "+OK\r\n");
    EXPECT(&w, "SET k w nx", "$-1\r\n");
    EXPECT(&w, "GET k", "$1\r\nv\r\n");
    EXPECT(&w, "SET k w xX", "+OK\r\n");
    EXPECT(&w, "GET k", "$1\r\nw\r\n");
    EXPECT(&w, "SET k v NX NX", "$-1\r\n");
}

COMMAND(set_get_answers_the_old_value_whether_or_not_it_was_set)
{
    EXPECT(&w, "SET k v GET", "$-1\r\n");
    EXPECT(&w, "SET k w GET", "$1\r\nv\r\n");
    EXPECT(&w, "SET k x NX GET", "$1\r\nw\r\n");
    EXPECT(&w, "GET k", "$1\r\nw\r\n");
    EXPECT(&w, "SET k x GET XX GET", "$1\r\nw\r\n");
    EXPECT(&w, "GET k", "$1\r\nx\r\n");
    EXPECT(&w, "SET nope v XX GET", "$-1\r\n");
    EXPECT(&w, "EXISTS nope", ":0\r\n");
    EXPECT(&w, "SET new v NX GET", "$-1\r\n");
    EXPECT(&w, "GET new", "$1\r\nv\r\n");
}

COMMAND(set_refuses_other_options_and_changes_nothing)
{
    EXPECT(&w, "SET k v FOO", "-ERR syntax error\r\n");
    EXPECT(&w, "SET k v NX XX", "-ERR syntax error\r\n");
    EXPECT(&w, "SET k v XX NX", "-ERR syntax error\r\n");
    EXPECT(&w, "SET k v ''", "-ERR syntax error\r\n");
    EXPECT(&w, "SET k v N", "-ERR syntax error\r\n");
    EXPECT(&w, "SET k v EX", "-ERR syntax error\r\n");
    EXPECT(&w, "SET k", "-ERR wrong number of arguments for 'set' command\r\n");
    EXPECT(&w, "EXISTS k", ":0\r\n");
}

COMMAND(setnx_getset_and_getdel)
{
    EXPECT(&w, "SETNX k v", ":1\r\n");
    EXPECT(&w, "SETNX k w", ":0\r\n");
    EXPECT(&w, "GETSET k w", "$1\r\nv\r\n");
    EXPECT(&w, "GETSET new x", "$-1\r\n");
    EXPECT(&w, "GET new", "$1\r\nx\r\n");
    EXPECT(&w, "GETDEL k", "$1\r\nw\r\n");
    EXPECT(&w, "GETDEL k", "$-1\r\n");
    EXPECT(&w, "EXISTS k", ":0\r\n");
}

COMMAND(mget_answers_each_key_in_order)
{
    EXPECT(&w, "MSET a 1 b 2 a 3", "+OK\r\n");
    EXPECT(&w, "MGET a nope b a",
           "*4\r\n$1\r\n3\r\n$-1\r\n$1\r\n2\r\n$1\r\n3\r\n");
    EXPECT(&w, "MGET", "-ERR wrong number of arguments for 'mget' command\r\n");
}

COMMAND(mset_wants_pairs)
{
    EXPECT(&w, "MSET a",
           "-ERR wrong number of arguments for 'mset' command\r\n");
    EXPECT(&w, "MSET a 1 b",
           "-ERR wrong number of arguments for 'mset' command\r\n");
    EXPECT(&w, "MSETNX a 1 b",
           "-ERR wrong number of arguments for 'msetnx' command\r\n");
    EXPECT(&w, "EXISTS a b", ":0\r\n");
}

COMMAND(msetnx_is_all_or_nothing)
{
    EXPECT(&w, "MSETNX a 1 b 2", ":1\r\n");
    EXPECT(&w, "MSETNX c 3 b 4 d 5", ":0\r\n");
    EXPECT(&w, "MGET a b c d", "*4\r\n$1\r\n1\r\n$1\r\n2\r\n$-1\r\n$-1\r\n");
    EXPECT(&w, "MSETNX c 3 c 4", ":1\r\n");
    EXPECT(&w, "GET c", "$1\r\n4\r\n");
}

COMMAND(strlen_counts_bytes)
{
    EXPECT(&w, "STRLEN k", ":0\r\n");
    EXPECT(&w, "SET k \\x00\\xc3\\xa4", "+OK\r\n");
    EXPECT(&w, "STRLEN k", ":3\r\n");
}

COMMAND(append_creates_and_lengthens)
{
    EXPECT(&w, "APPEND k ''", ":0\r\n");
    EXPECT(&w, "EXISTS k", ":1\r\n");
    EXPECT(&w, "APPEND k ab", ":2\r\n");
    EXPECT(&w, "APPEND k ''", ":2\r\n");
    EXPECT(&w, "APPEND k cde", ":5\r\n");
    EXPECT(&w, "GET k", "$5\r\nabcde\r\n");
}

COMMAND(getrange_counts_from_both_ends)
{
    EXPECT(&w, "SET k 'This is a string'", "+OK\r\n");
    EXPECT(&w, "GETRANGE k 0 3", "$4\r\nThis\r\n");
    EXPECT(&w, "GETRANGE k -3 -1", "$3\r\ning\r\n");
    EXPECT(&w, "GETRANGE k 0 -1", "$16\r\nThis is a string\r\n");
    EXPECT(&w, "GETRANGE k 10 100", "$6\r\nstring\r\n");
    EXPECT(&w, "GETRANGE k 15 15", "$1\r\ng\r\n");
    EXPECT(&w, "GETRANGE k 16 16", "$0\r\n\r\n");
    EXPECT(&w, "GETRANGE k 3 2", "$0\r\n\r\n");
    EXPECT(&w, "GETRANGE k -1 -3", "$0\r\n\r\n");
    EXPECT(&w, "GETRANGE k -100 3", "$4\r\nThis\r\n");
    EXPECT(&w, "GETRANGE k -100 -100", "$1\r\nT\r\n");
    EXPECT(&w, "GETRANGE k -99 -100", "$0\r\n\r\n");
    EXPECT(&w, "GETRANGE k 0 -100", "$1\r\nT\r\n");
    EXPECT(&w, "GETRANGE k 1 -100", "$0\r\n\r\n");
    EXPECT(&w, "GETRANGE k -9223372036854775808 9223372036854775807",
           "$16\r\nThis is a string\r\n");
    EXPECT(&w, "GETRANGE k 9223372036854775807 -9223372036854775808",
           "$0\r\n\r\n");
    EXPECT(&w, "SUBSTR k 0 3", "$4\r\nThis\r\n");
}

COMMAND(getrange_of_nothing_is_empty)
{
    EXPECT(&w, "GETRANGE nope 0 -1", "$0\r\n\r\n");
    EXPECT(&w, "SET e ''", "+OK\r\n");
    EXPECT(&w, "GETRANGE e 0 -1", "$0\r\n\r\n");
    EXPECT(&w, "GETRANGE e 0 0", "$0\r\n\r\n");
    EXPECT(&w, "GETRANGE nope a 0",
           "-ERR value is not an integer or out of range\r\n");
    EXPECT(&w, "GETRANGE nope 0 01",
           "-ERR value is not an integer or out of range\r\n");
}

COMMAND(setrange_overwrites_pads_and_lengthens)
{
    EXPECT(&w, "SET k 'Hello World'", "+OK\r\n");
    EXPECT(&w, "SETRANGE k 6 Redis", ":11\r\n");
    EXPECT(&w, "GET k", "$11\r\nHello Redis\r\n");
    EXPECT(&w, "SETRANGE k 0 J", ":11\r\n");
    EXPECT(&w, "SETRANGE k 9 xxxx", ":13\r\n");
    EXPECT(&w, "GET k", "$13\r\nJello Redxxxx\r\n");
    EXPECT(&w, "SETRANGE k 13 !", ":14\r\n");
    EXPECT(&w, "SETRANGE k 16 z", ":17\r\n");
    EXPECT(&w, "GET k", "$17\r\nJello Redxxxx!\0\0z\r\n");
    EXPECT(&w, "SETRANGE new 3 v", ":4\r\n");
    EXPECT(&w, "GET new", "$4\r\n\0\0\0v\r\n");
    EXPECT(&w, "SETRANGE e 0 v", ":1\r\n");
}

COMMAND(setrange_of_nothing_changes_nothing)
{
    EXPECT(&w, "SETRANGE nope 5 ''", ":0\r\n");
    EXPECT(&w, "SETRANGE nope 9999999999 ''", ":0\r\n");
    EXPECT(&w, "EXISTS nope", ":0\r\n");
    EXPECT(&w, "SET k abc", "+OK\r\n");
    EXPECT(&w, "SETRANGE k 100 ''", ":3\r\n");
    EXPECT(&w, "GET k", "$3\r\nabc\r\n");
}

COMMAND(setrange_checks_its_offset)
{
    EXPECT(&w, "SETRANGE k -1 x", "-ERR offset is out of range\r\n");
    EXPECT(&w, "SETRANGE k -1 ''", "-ERR offset is out of range\r\n");
    EXPECT(&w, "SETRANGE k x x",
           "-ERR value is not an integer or out of range\r\n");
    EXPECT(&w, "SETRANGE k 536870912 x",
           "-ERR string exceeds maximum allowed size "
           "(proto-max-bulk-len)\r\n");
    EXPECT(&w, "SETRANGE k 9223372036854775807 x",
           "-ERR string exceeds maximum allowed size "
           "(proto-max-bulk-len)\r\n");
    EXPECT(&w, "EXISTS k", ":0\r\n");
}

/* More padding than the constant of zeros holds. */
STORE_TEST(command_range, setrange_pads_far)
{
    for (size_t gap = 254; gap < 260; gap++) {
        char line[64];
        snprintf(line, sizeof line, "SETRANGE k%zu %zu x", gap, gap);
        store_fixture_type(&w, line);
        snprintf(line, sizeof line, "GET k%zu", gap);
        store_fixture_type(&w, line);
        char header[16];
        size_t n = (size_t)snprintf(header, sizeof header, "$%zu\r\n", gap + 1);
        cr_assert_eq(w.reply.len, n + gap + 3);
        for (size_t i = 0; i < gap; i++) {
            cr_assert_eq(w.reply.data[n + i], 0);
        }
        cr_assert_eq(w.reply.data[n + gap], 'x');
    }
}

#define TOO_BIG                                                                \
    "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n"

STORE_TEST(command_range, values_end_at_the_limit)
{
    w.value_max = 10;
    EXPECT(&w, "SET k 123456789", "+OK\r\n");
    EXPECT(&w, "APPEND k ab", TOO_BIG);
    EXPECT(&w, "GET k", "$9\r\n123456789\r\n");
    EXPECT(&w, "APPEND k a", ":10\r\n");
    EXPECT(&w, "APPEND k a", TOO_BIG);
    EXPECT(&w, "APPEND k ''", ":10\r\n");
    EXPECT(&w, "SETRANGE k 9 x", ":10\r\n");
    EXPECT(&w, "SETRANGE k 9 xy", TOO_BIG);
    EXPECT(&w, "SETRANGE k 10 x", TOO_BIG);
    EXPECT(&w, "SETRANGE new 9 x", ":10\r\n");
    EXPECT(&w, "SETRANGE newer 10 x", TOO_BIG);
    EXPECT(&w, "EXISTS newer", ":0\r\n");
}

COMMAND(counters_count_from_zero_and_keep_text_form)
{
    EXPECT(&w, "INCR n", ":1\r\n");
    EXPECT(&w, "INCR n", ":2\r\n");
    EXPECT(&w, "GET n", "$1\r\n2\r\n");
    EXPECT(&w, "DECR n", ":1\r\n");
    EXPECT(&w, "DECRBY n 10", ":-9\r\n");
    EXPECT(&w, "INCRBY n -1", ":-10\r\n");
    EXPECT(&w, "DECRBY n -10", ":0\r\n");
    EXPECT(&w, "DECR m", ":-1\r\n");
    EXPECT(&w, "GET m", "$2\r\n-1\r\n");
}

COMMAND(counters_refuse_what_is_no_integer)
{
    EXPECT(&w, "SET k a", "+OK\r\n");
    EXPECT(&w, "INCR k", "-ERR value is not an integer or out of range\r\n");
    EXPECT(&w, "SET k ''", "+OK\r\n");
    EXPECT(&w, "INCR k", "-ERR value is not an integer or out of range\r\n");
    EXPECT(&w, "SET k ' 1'", "+OK\r\n");
    EXPECT(&w, "INCR k", "-ERR value is not an integer or out of range\r\n");
    EXPECT(&w, "SET k 01", "+OK\r\n");
    EXPECT(&w, "DECR k", "-ERR value is not an integer or out of range\r\n");
    EXPECT(&w, "GET k", "$2\r\n01\r\n");
    EXPECT(&w, "SET k 9223372036854775808", "+OK\r\n");
    EXPECT(&w, "DECR k", "-ERR value is not an integer or out of range\r\n");
    EXPECT(&w, "INCRBY nope +1",
           "-ERR value is not an integer or out of range\r\n");
    EXPECT(&w, "INCRBY nope 1.5",
           "-ERR value is not an integer or out of range\r\n");
    EXPECT(&w, "DECRBY nope ''",
           "-ERR value is not an integer or out of range\r\n");
    EXPECT(&w, "EXISTS nope", ":0\r\n");
}

COMMAND(counters_stop_at_both_ends)
{
    EXPECT(&w, "SET n 9223372036854775806", "+OK\r\n");
    EXPECT(&w, "INCR n", ":9223372036854775807\r\n");
    EXPECT(&w, "INCR n", "-ERR increment or decrement would overflow\r\n");
    EXPECT(&w, "DECRBY n -1", "-ERR increment or decrement would overflow\r\n");
    EXPECT(&w, "DECRBY n 9223372036854775807", ":0\r\n");
    EXPECT(&w, "DECRBY n -9223372036854775808",
           "-ERR decrement would overflow\r\n");
    EXPECT(&w, "INCRBY n -9223372036854775808", ":-9223372036854775808\r\n");
    EXPECT(&w, "DECR n", "-ERR increment or decrement would overflow\r\n");
    EXPECT(&w, "INCRBY n -1", "-ERR increment or decrement would overflow\r\n");
    EXPECT(&w, "GET n", "$20\r\n-9223372036854775808\r\n");
}

COMMAND(incrbyfloat_answers_the_short_form)
{
    EXPECT(&w, "INCRBYFLOAT f 10.5", "$4\r\n10.5\r\n");
    EXPECT(&w, "INCRBYFLOAT f 0.1", "$4\r\n10.6\r\n");
    EXPECT(&w, "INCRBYFLOAT f -5", "$3\r\n5.6\r\n");
    EXPECT(&w, "GET f", "$3\r\n5.6\r\n");
    EXPECT(&w, "SET f 3.0e3", "+OK\r\n");
    EXPECT(&w, "INCRBYFLOAT f 200", "$4\r\n3200\r\n");
    EXPECT(&w, "SET f -1", "+OK\r\n");
    EXPECT(&w, "INCRBYFLOAT f 1", "$1\r\n0\r\n");
    EXPECT(&w, "INCRBYFLOAT f -1e-20", "$1\r\n0\r\n");
    EXPECT(&w, "INCRBYFLOAT f 0x10", "$2\r\n16\r\n");
    EXPECT(&w, "SET n 9223372036854775807", "+OK\r\n");
    EXPECT(&w, "INCRBYFLOAT n 1", "$19\r\n9223372036854775808\r\n");
    w.proto = 3;
    EXPECT(&w, "INCRBYFLOAT f 1", "$2\r\n17\r\n");
}

COMMAND(incrbyfloat_refuses_what_is_no_number)
{
    EXPECT(&w, "INCRBYFLOAT f x", "-ERR value is not a valid float\r\n");
    EXPECT(&w, "INCRBYFLOAT f ''", "-ERR value is not a valid float\r\n");
    EXPECT(&w, "INCRBYFLOAT f ' 1'", "-ERR value is not a valid float\r\n");
    EXPECT(&w, "INCRBYFLOAT f nan", "-ERR value is not a valid float\r\n");
    EXPECT(&w, "INCRBYFLOAT f 1e5000", "-ERR value is not a valid float\r\n");
    EXPECT(&w, "INCRBYFLOAT f inf",
           "-ERR increment would produce NaN or Infinity\r\n");
    EXPECT(&w, "EXISTS f", ":0\r\n");
    EXPECT(&w, "SET f 'a b'", "+OK\r\n");
    EXPECT(&w, "INCRBYFLOAT f 1", "-ERR value is not a valid float\r\n");
    EXPECT(&w, "SET f 1e4932", "+OK\r\n");
    EXPECT(&w, "INCRBYFLOAT f 1e4932",
           "-ERR increment would produce NaN or Infinity\r\n");
    EXPECT(&w, "GET f", "$6\r\n1e4932\r\n");
}

/* ---- deadlines: dead at the stamp, alive one millisecond before ---------- */

#define DEADLINE(name) STORE_TEST(command_deadline, name)

static void dead_and_alive(void)
{
    store_fixture_put(&w, "dead", "7", w.stamp_ms);
    store_fixture_put(&w, "alive", "7", w.stamp_ms + 1);
}

DEADLINE(reads_do_not_see_a_dead_key)
{
    dead_and_alive();
    EXPECT(&w, "MGET dead alive", "*2\r\n$-1\r\n$1\r\n7\r\n");
    EXPECT(&w, "GET dead", "$-1\r\n");
    EXPECT(&w, "EXISTS dead alive", ":1\r\n");
    EXPECT(&w, "TOUCH dead alive", ":1\r\n");
    EXPECT(&w, "TYPE dead", "+none\r\n");
    EXPECT(&w, "STRLEN dead", ":0\r\n");
    EXPECT(&w, "GETRANGE dead 0 -1", "$0\r\n\r\n");
    EXPECT(&w, "DBSIZE", ":1\r\n");
    EXPECT(&w, "KEYS *", "*1\r\n$5\r\nalive\r\n");
    w.stamp_ms++;
    EXPECT(&w, "GET alive", "$-1\r\n");
    EXPECT(&w, "DBSIZE", ":0\r\n");
    EXPECT(&w, "KEYS *", "*0\r\n");
}

DEADLINE(writes_take_a_dead_key_for_missing)
{
    static const struct {
        const char *request, *reply, *value;
    } cases[] = {
        {"SET dead v XX", "$-1\r\n", "$-1\r\n"},
        {"SET dead v NX", "+OK\r\n", "$1\r\nv\r\n"},
        {"SET dead v GET", "$-1\r\n", "$1\r\nv\r\n"},
        {"SETNX dead v", ":1\r\n", "$1\r\nv\r\n"},
        {"GETSET dead v", "$-1\r\n", "$1\r\nv\r\n"},
        {"GETDEL dead", "$-1\r\n", "$-1\r\n"},
        {"MSETNX dead v", ":1\r\n", "$1\r\nv\r\n"},
        {"DEL dead", ":0\r\n", "$-1\r\n"},
        {"UNLINK dead", ":0\r\n", "$-1\r\n"},
        {"APPEND dead v", ":1\r\n", "$1\r\nv\r\n"},
        {"SETRANGE dead 0 v", ":1\r\n", "$1\r\nv\r\n"},
        {"SETRANGE dead 0 ''", ":0\r\n", "$-1\r\n"},
        {"INCR dead", ":1\r\n", "$1\r\n1\r\n"},
        {"INCRBYFLOAT dead 1", "$1\r\n1\r\n", "$1\r\n1\r\n"},
    };
    for (size_t i = 0; i < QN_ARRAY_COUNT(cases); i++) {
        store_fixture_put(&w, "dead", "7", w.stamp_ms);
        const char *reply = cases[i].reply;
        store_fixture_expect(&w, __FILE__, __LINE__, cases[i].request, reply,
                             strlen(reply));
        reply = cases[i].value;
        store_fixture_expect(&w, __FILE__, __LINE__, "GET dead", reply,
                             strlen(reply));
    }
}

/* Changing a value keeps its deadline, replacing it forgets it. */
DEADLINE(changes_keep_the_deadline_replacements_do_not)
{
    static const struct {
        const char *request;
        bool keeps;
    } cases[] = {
        {"APPEND k 1", true},      {"SETRANGE k 0 1", true},
        {"INCR k", true},          {"DECRBY k 5", true},
        {"INCRBYFLOAT k 1", true}, {"SET k 1", false},
        {"SET k 1 XX GET", false}, {"GETSET k 1", false},
        {"MSET k 1", false},
    };
    for (size_t i = 0; i < QN_ARRAY_COUNT(cases); i++) {
        w.stamp_ms = 1000;
        store_fixture_put(&w, "k", "7", 1001);
        store_fixture_type(&w, cases[i].request);
        w.stamp_ms = 1001;
        store_fixture_type(&w, "EXISTS k");
        cr_expect_eq(w.reply.data[1], cases[i].keeps ? '0' : '1', "%s",
                     cases[i].request);
    }
}

/* ---- keys ---------------------------------------------------------------- */

#define KEY_TOO_LONG "-ERR key is longer than max-key-len\r\n"

STORE_TEST(command_limits, keys_end_at_max_key_len)
{
    w.key_max = 3;
    EXPECT(&w, "SET abc v", "+OK\r\n");
    EXPECT(&w, "SET abcd v", KEY_TOO_LONG);
    EXPECT(&w, "SET ab longvalue", "+OK\r\n");
    EXPECT(&w, "GET abcd", KEY_TOO_LONG);
    EXPECT(&w, "MSET a longvalue abcd 1", KEY_TOO_LONG);
    EXPECT(&w, "MSET a longvalue", "+OK\r\n");
    EXPECT(&w, "MGET a b c abcd", KEY_TOO_LONG);
    EXPECT(&w, "DEL abcd", KEY_TOO_LONG);
    EXPECT(&w, "KEYS abcd*", "*0\r\n");
    EXPECT(&w, "DBSIZE", ":3\r\n");
}

COMMAND(bits_are_counted_from_the_highest_of_the_first_byte)
{
    EXPECT(&w, "GETBIT k 7", ":0\r\n");
    EXPECT(&w, "SETBIT k 7 1", ":0\r\n");
    EXPECT(&w, "GET k", "$1\r\n\x01\r\n");
    EXPECT(&w, "SETBIT k 0 1", ":0\r\n");
    EXPECT(&w, "GET k", "$1\r\n\x81\r\n");
    EXPECT(&w, "SETBIT k 7 0", ":1\r\n");
    EXPECT(&w, "SETBIT k 17 1", ":0\r\n");
    EXPECT(&w, "GET k", "$3\r\n\x80\0@\r\n");
    EXPECT(&w, "GETBIT k 17", ":1\r\n");
    EXPECT(&w, "GETBIT k 100", ":0\r\n");
}

COMMAND(bits_check_their_offset_and_value)
{
    EXPECT(&w, "GETBIT k -1",
           "-ERR bit offset is not an integer or out of range\r\n");
    EXPECT(&w, "SETBIT k x 1",
           "-ERR bit offset is not an integer or out of range\r\n");
    EXPECT(&w, "SETBIT k 1 2",
           "-ERR bit is not an integer or out of range\r\n");
    EXPECT(&w, "EXISTS k", ":0\r\n");
}
