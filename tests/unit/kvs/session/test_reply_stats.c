#include "kvs/session/reply_stats.h"

#include <string.h>

#include "tests/support/test.h"

static struct qn_info_part part;

static void setup(void)
{
    part = (struct qn_info_part){0};
}

#define CASE(name) Test(reply_stats, name, .init = setup)

static const struct qn_cmd *cmd_of(const char *name)
{
    const struct qn_cmd *cmd =
        qn_cmd_find((struct qn_slice){(const uint8_t *)name, strlen(name)});
    cr_assert(cmd != NULL);
    return cmd;
}

static void note(const char *name, const char *reply)
{
    qn_reply_stats_note(
        &part, name != NULL ? cmd_of(name) : NULL,
        (struct qn_slice){(const uint8_t *)reply, strlen(reply)});
}

static uint64_t failed(const char *name)
{
    return part.cmd[qn_cmd_index(cmd_of(name))].failed;
}

CASE(a_value_is_a_hit_and_a_null_a_miss)
{
    note("get", "$1\r\nx\r\n");
    note("get", "$0\r\n\r\n");
    cr_expect(part.keyspace_hits == 2 && part.keyspace_misses == 0);
    note("get", "$-1\r\n");
    note("get", "_\r\n");
    cr_expect(part.keyspace_hits == 2 && part.keyspace_misses == 2);
}

CASE(reads_of_several_keys_and_writes_are_no_lookups)
{
    note("mget", "*1\r\n$-1\r\n");
    note("set", "+OK\r\n");
    note("ping", "+PONG\r\n");
    cr_expect(part.keyspace_hits == 0 && part.keyspace_misses == 0);
}

CASE(an_error_counts_for_its_code_and_its_command)
{
    note("incr", "-ERR value is not an integer\r\n");
    note("get", "-CLUSTERDOWN no quorum\r\n");
    note(NULL, "-ERR unknown command\r\n");
    cr_expect(failed("incr") == 1 && failed("get") == 1);
    cr_expect(part.keyspace_misses == 0);
    cr_expect(part.error[0].count == 2 && part.error[1].count == 1);
}

CASE(a_reply_without_memory_counts_nothing)
{
    note("get", "");
    struct qn_buf b = {.len = 7, .oom = true};
    struct qn_slice s = qn_reply_stats_slice(&b, 3);
    cr_expect(s.len == 0);
    cr_expect(part.keyspace_hits == 0 && part.keyspace_misses == 0);
}
