/* Compare and set, compare and delete: as in Redis 8.4, but for a malformed
 * digest, which is an error here whatever the key holds. */
#include <stdio.h>
#include <string.h>

#include "tests/support/kvs_suite.h"

#define COMMAND(name) STORE_TEST(command_compare, name)

#define HELLO_DIGEST "b6acb9d84a38ff74" /* of "Hello world" */
#define OTHER_DIGEST "b6acb9d84a38ff75"
#define EMPTY_DIGEST "2d06800538d394c2" /* of "" */
#define DIGEST_ERROR "-ERR must be exactly 16 hexadecimal characters\r\n"

COMMAND(set_ifeq_compares_the_whole_value)
{
    EXPECT(&w, "SET k old", "+OK\r\n");
    EXPECT(&w, "SET k new IFEQ ol", "$-1\r\n");
    EXPECT(&w, "SET k new IFEQ oldx", "$-1\r\n");
    EXPECT(&w, "SET k new IFEQ Old", "$-1\r\n");
    EXPECT(&w, "SET k new IFEQ ''", "$-1\r\n");
    EXPECT(&w, "GET k", "$3\r\nold\r\n");
    EXPECT(&w, "SET k new ifEq old", "+OK\r\n");
    EXPECT(&w, "GET k", "$3\r\nnew\r\n");
    EXPECT(&w, "SET k \\x00\\xff IFEQ new", "+OK\r\n");
    EXPECT(&w, "SET k '' IFEQ \\x00\\xff", "+OK\r\n");
    EXPECT(&w, "SET k v IFEQ ''", "+OK\r\n");
    EXPECT(&w, "GET k", "$1\r\nv\r\n");
}

COMMAND(set_ifne_is_the_opposite)
{
    EXPECT(&w, "SET k old", "+OK\r\n");
    EXPECT(&w, "SET k new IFNE old", "$-1\r\n");
    EXPECT(&w, "GET k", "$3\r\nold\r\n");
    EXPECT(&w, "SET k new IFNE other", "+OK\r\n");
    EXPECT(&w, "GET k", "$3\r\nnew\r\n");
}

COMMAND(a_missing_key_differs_from_every_value)
{
    EXPECT(&w, "SET k v IFEQ ''", "$-1\r\n");
    EXPECT(&w, "SET k v IFDEQ " EMPTY_DIGEST, "$-1\r\n");
    EXPECT(&w, "EXISTS k", ":0\r\n");
    EXPECT(&w, "SET k v IFNE ''", "+OK\r\n");
    EXPECT(&w, "GETDEL k", "$1\r\nv\r\n");
    EXPECT(&w, "SET k v IFDNE " EMPTY_DIGEST, "+OK\r\n");
    EXPECT(&w, "GET k", "$1\r\nv\r\n");
}

COMMAND(set_compares_digests)
{
    EXPECT(&w, "SET k 'Hello world'", "+OK\r\n");
    EXPECT(&w, "SET k v IFDEQ " OTHER_DIGEST, "$-1\r\n");
    EXPECT(&w, "SET k v IFDNE " HELLO_DIGEST, "$-1\r\n");
    EXPECT(&w, "GET k", "$11\r\nHello world\r\n");
    EXPECT(&w, "SET k v IFDEQ B6ACB9d84a38ff74", "+OK\r\n");
    EXPECT(&w, "SET k w IFDNE " HELLO_DIGEST, "+OK\r\n");
    EXPECT(&w, "GET k", "$1\r\nw\r\n");
}

COMMAND(a_malformed_digest_is_an_error_whatever_the_key_holds)
{
    static const char *const digests[] = {
        "''",
        "b6acb9d84a38ff7",
        "b6acb9d84a38ff744",
        "b6acb9d84a38ff7g",
        "-6acb9d84a38ff74",
        "0xacb9d84a38ff74",
        "b6acb9d84a38ff7\\x00",
        "' b6acb9d84a38ff7'",
    };
    for (int exists = 0; exists <= 1; exists++) {
        for (size_t i = 0; i < QN_ARRAY_COUNT(digests); i++) {
            for (int ne = 0; ne <= 1; ne++) {
                char line[100];
                const char *kind = ne ? "IFDNE" : "IFDEQ";
                snprintf(line, sizeof line, "SET k v %s %s", kind, digests[i]);
                EXPECT(&w, line, DIGEST_ERROR);
                snprintf(line, sizeof line, "DELEX k %s %s", kind, digests[i]);
                EXPECT(&w, line, DIGEST_ERROR);
            }
        }
        store_fixture_type(&w, "SET k x NX");
        EXPECT(&w, "GET k", "$1\r\nx\r\n");
    }
}

COMMAND(get_answers_the_old_value_whether_or_not_it_was_set)
{
    EXPECT(&w, "SET k v IFEQ x GET", "$-1\r\n");
    EXPECT(&w, "EXISTS k", ":0\r\n");
    EXPECT(&w, "SET k v GET IFNE x", "$-1\r\n");
    EXPECT(&w, "SET k w IFEQ x GET", "$1\r\nv\r\n");
    EXPECT(&w, "GET k", "$1\r\nv\r\n");
    EXPECT(&w, "SET k w GET IFEQ v", "$1\r\nv\r\n");
    EXPECT(&w, "GET k", "$1\r\nw\r\n");
    w.proto = 3;
    EXPECT(&w, "SET k v IFEQ x", "_\r\n");
}

COMMAND(there_is_one_condition)
{
    static const char *const conditions[] = {"NX",
                                             "XX",
                                             "IFEQ v",
                                             "IFNE x",
                                             "IFDEQ " HELLO_DIGEST,
                                             "IFDNE " HELLO_DIGEST};
    enum { PLAIN = 2 }; /* NX NX and XX XX are one */
    EXPECT(&w, "SET k v", "+OK\r\n");
    for (size_t i = 0; i < QN_ARRAY_COUNT(conditions); i++) {
        for (size_t j = 0; j < QN_ARRAY_COUNT(conditions); j++) {
            char line[100];
            snprintf(line, sizeof line, "SET k w %s %s", conditions[i],
                     conditions[j]);
            if (i != j || i >= PLAIN) {
                EXPECT(&w, line, "-ERR syntax error\r\n");
            }
        }
    }
    EXPECT(&w, "GET k", "$1\r\nv\r\n");
}

COMMAND(a_condition_has_an_operand)
{
    EXPECT(&w, "SET k v IFEQ", "-ERR syntax error\r\n");
    EXPECT(&w, "SET k v IFDNE", "-ERR syntax error\r\n");
    EXPECT(&w, "SET k v GET IFNE", "-ERR syntax error\r\n");
    EXPECT(&w, "SET k v IFE x", "-ERR syntax error\r\n");
    EXPECT(&w, "SET k v IFEQQ x", "-ERR syntax error\r\n");
    EXPECT(&w, "EXISTS k", ":0\r\n");
    EXPECT(&w, "SET k GET", "+OK\r\n");
    EXPECT(&w, "SET k XX IFEQ GET", "+OK\r\n");
    EXPECT(&w, "GET k", "$2\r\nXX\r\n");
}

COMMAND(digest_is_xxh3_in_lower_case_hexadecimal)
{
    EXPECT(&w, "DIGEST k", "$-1\r\n");
    EXPECT(&w, "SET k 'Hello world'", "+OK\r\n");
    EXPECT(&w, "DIGEST k", "$16\r\n" HELLO_DIGEST "\r\n");
    EXPECT(&w, "SET k ''", "+OK\r\n");
    EXPECT(&w, "DIGEST k", "$16\r\n" EMPTY_DIGEST "\r\n");
    EXPECT(&w, "DIGEST",
           "-ERR wrong number of arguments for 'digest' command\r\n");
    EXPECT(&w, "DIGEST a b",
           "-ERR wrong number of arguments for 'digest' command\r\n");
    w.proto = 3;
    EXPECT(&w, "DIGEST nope", "_\r\n");
}

/* What DIGEST says is what IFDEQ takes, leading zeros included. */
COMMAND(digests_come_back)
{
    bool zero = false;
    for (int i = 0; i < 200; i++) {
        char line[64];
        char digest[17] = "";
        snprintf(line, sizeof line, "SET k value%d", i);
        EXPECT(&w, line, "+OK\r\n");
        store_fixture_type(&w, "DIGEST k");
        memcpy(digest, w.reply.data + 5, 16);
        zero |= digest[0] == '0';
        snprintf(line, sizeof line, "DELEX k IFDEQ %s", digest);
        EXPECT(&w, line, ":1\r\n");
    }
    cr_assert(zero, "none of 200 digests begins with 0");
}

COMMAND(delex_deletes_on_its_condition)
{
    EXPECT(&w, "DELEX k", ":0\r\n");
    EXPECT(&w, "DELEX k IFNE x", ":0\r\n");
    EXPECT(&w, "DELEX k IFDNE " HELLO_DIGEST, ":0\r\n");
    EXPECT(&w, "SET k 'Hello world'", "+OK\r\n");
    EXPECT(&w, "DELEX k IFEQ Hello", ":0\r\n");
    EXPECT(&w, "DELEX k IFNE 'Hello world'", ":0\r\n");
    EXPECT(&w, "DELEX k IFDEQ " OTHER_DIGEST, ":0\r\n");
    EXPECT(&w, "DELEX k IFDNE " HELLO_DIGEST, ":0\r\n");
    EXPECT(&w, "DELEX k ifeq 'Hello world'", ":1\r\n");
    EXPECT(&w, "EXISTS k", ":0\r\n");
    EXPECT(&w, "MSET a 1 b 2 c 3", "+OK\r\n");
    EXPECT(&w, "DELEX a IFNE x", ":1\r\n");
    EXPECT(&w, "DELEX b IFDNE " HELLO_DIGEST, ":1\r\n");
    EXPECT(&w, "DELEX c", ":1\r\n");
    EXPECT(&w, "DBSIZE", ":0\r\n");
}

COMMAND(delex_takes_a_key_and_at_most_one_condition)
{
    EXPECT(&w, "SET k v", "+OK\r\n");
    EXPECT(&w, "DELEX",
           "-ERR wrong number of arguments for 'delex' command\r\n");
    EXPECT(&w, "DELEX k IFEQ",
           "-ERR wrong number of arguments for 'delex' command\r\n");
    EXPECT(&w, "DELEX k IFEQ v x",
           "-ERR wrong number of arguments for 'delex' command\r\n");
    EXPECT(&w, "DELEX k IF v", "-ERR syntax error\r\n");
    EXPECT(&w, "DELEX k NX v", "-ERR syntax error\r\n");
    EXPECT(&w, "GET k", "$1\r\nv\r\n");
}

COMMAND(delifeq_is_the_short_form)
{
    EXPECT(&w, "DELIFEQ k ''", ":0\r\n");
    EXPECT(&w, "SET k v", "+OK\r\n");
    EXPECT(&w, "DELIFEQ k w", ":0\r\n");
    EXPECT(&w, "DELIFEQ k v", ":1\r\n");
    EXPECT(&w, "EXISTS k", ":0\r\n");
    EXPECT(&w, "DELIFEQ k",
           "-ERR wrong number of arguments for 'delifeq' command\r\n");
}

/* Dead at the stamp, alive one millisecond before. */
COMMAND(a_dead_key_is_missing)
{
    static const struct {
        const char *request, *alive, *dead;
    } cases[] = {
        {"SET k x IFEQ v", "+OK\r\n", "$-1\r\n"},
        {"SET k x IFNE v", "$-1\r\n", "+OK\r\n"},
        {"SET k x IFDEQ " HELLO_DIGEST, "$-1\r\n", "$-1\r\n"},
        {"SET k x IFDNE " HELLO_DIGEST, "+OK\r\n", "+OK\r\n"},
        {"DIGEST k", NULL, "$-1\r\n"},
        {"DELEX k", ":1\r\n", ":0\r\n"},
        {"DELEX k IFEQ v", ":1\r\n", ":0\r\n"},
        {"DELEX k IFNE x", ":1\r\n", ":0\r\n"},
        {"DELIFEQ k v", ":1\r\n", ":0\r\n"},
    };
    for (size_t i = 0; i < QN_ARRAY_COUNT(cases); i++) {
        for (int dead = 0; dead <= 1; dead++) {
            const char *reply = dead ? cases[i].dead : cases[i].alive;
            store_fixture_put(&w, "k", "v", w.stamp_ms + (dead ? 0 : 1));
            if (reply != NULL) {
                store_fixture_expect(&w, __FILE__, __LINE__, cases[i].request,
                                     reply, strlen(reply));
            }
        }
    }
}
