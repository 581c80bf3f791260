#include "kvs/config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/node.h"
#include "tests/support/test.h"

static int start(struct qn_config *c, const char *name, const char *value)
{
    char why[QN_CONFIG_WHY_MAX];
    return qn_config_start(c, name, value, why, sizeof why);
}

static struct qn_slice slice(const char *s)
{
    return (struct qn_slice){(const uint8_t *)s, strlen(s)};
}

static int set_bytes(struct qn_config *c, struct qn_slice name,
                     struct qn_slice value, char *why, size_t cap)
{
    return qn_config_set(c, QN_CONFIG_BY_LOG, name, value, why, cap);
}

static int set(struct qn_config *c, const char *name, const char *value,
               char *why)
{
    return set_bytes(c, slice(name), slice(value), why, QN_CONFIG_WHY_MAX);
}

/* What CONFIG GET says of one name, as RESP2. */
static const char *get(const struct qn_config *c, const char *glob)
{
    static char text[4096];
    struct qn_buf b = {0};
    struct qn_slice pattern = slice(glob);
    qn_config_reply(c, &pattern, 1, 2, &b);
    cr_assert_lt(b.len, sizeof text);
    memcpy(text, b.data, b.len);
    text[b.len] = '\0';
    qn_buf_free(&b);
    return text;
}

Test(config, defaults_are_those_of_the_table)
{
    struct qn_config c;
    qn_config_init(&c);
    cr_assert_eq(c.replicas, QN_REPLICAS_AUTO);
    cr_assert_eq(c.port, 7379);
    cr_assert_str_eq(c.bind, "127.0.0.1");
    cr_assert_str_eq(c.unixsocket, "");
    cr_assert(c.linearizable);
    cr_assert_not(c.enable_debug_command);
    cr_assert_eq(c.cells, QN_CELLS_AUTO);
    cr_assert_eq(c.proto_max_bulk_len, 64u << 20);
    cr_assert_eq(c.client_query_buffer_limit, 1u << 30);
    cr_assert_eq(c.log_level, QN_LOG_INFO);
}

Test(config, a_limit_of_output_is_written_as_a_size_or_as_in_redis)
{
    struct qn_config c;
    char why[QN_CONFIG_WHY_MAX];
    qn_config_init(&c);
    cr_assert_eq(c.client_output_limit, 256u << 20);
    cr_assert_eq(start(&c, "client-output-buffer-limit", "1mb"), QN_OK);
    cr_assert_eq(c.client_output_limit, 1u << 20);
    cr_assert_eq(set(&c, "client-output-buffer-limit", "normal 2gb 0 0", why),
                 QN_OK);
    cr_assert_eq(c.client_output_limit, (uint64_t)2 << 30);
    cr_assert_str_eq(get(&c, "client-output-buffer-limit"),
                     "*2\r\n$26\r\nclient-output-buffer-limit\r\n"
                     "$21\r\nnormal 2147483648 0 0\r\n");
    static const char *const bad[] = {
        "",
        "normal",
        "normal 1mb 0",
        "normal 1mb 1kb 0",
        "normal 1mb 0 60",
        "normal 1mb 0 0 0",
        "normal x 0 0",
        "pubsub 1mb 0 0",
        "normal 1mb 0 0 pubsub 1mb 0 0",
        "65gb",
    };
    for (size_t i = 0; i < QN_ARRAY_COUNT(bad); i++) {
        cr_assert_eq(set(&c, "client-output-buffer-limit", bad[i], why),
                     QN_EINVAL, "%s", bad[i]);
        cr_assert_eq(c.client_output_limit, (uint64_t)2 << 30);
    }
    c.replicas = 3;
    c.client_output_limit = 65535;
    cr_assert_eq(qn_config_check(&c, why, sizeof why), QN_EINVAL);
    c.client_output_limit = 0;
    cr_assert_eq(qn_config_check(&c, why, sizeof why), QN_OK);
}

Test(config, defaults_pass_the_check_once_replicas_are_known)
{
    struct qn_config c;
    char why[QN_CONFIG_WHY_MAX];
    qn_config_init(&c);
    c.replicas = 3;
    cr_assert_eq(qn_config_check(&c, why, sizeof why), QN_OK, "%s", why);
}

/* Each number: the limits are taken, one beyond is not, and a refusal leaves
 * everything as it was. */
Test(config, each_limit_is_taken_and_one_beyond_is_not)
{
    static const struct {
        const char *name, *below, *least, *most, *above;
    } row[] = {
        {"replicas", "0", "1", "64", "65"},
        {"port", "-1", "0", "65535", "65536"},
        {"replica-ports", "0", "1", "65535", "65536"},
        {"maxclients", "0", "1", "1000000", "1000001"},
        {"databases", "0", "1", "256", "257"},
        {"tcp-backlog", "0", "1", "65535", "65536"},
        {"tcp-keepalive", "-1", "0", "32767", "32768"},
        {"cells", "15", "16", "65536", "65537"},
        {"proto-max-bulk-len", "1048575", "1mb", "512mb", "536870913"},
        {"max-key-len", "0", "1", "1mb", "1048577"},
        {"max-args", "15", "16", "1048576", "1048577"},
        {"client-query-buffer-limit", "1048575", "1mb", "64gb", "65gb"},
        {"shutdown-timeout", "-1", "0", "2147483647", "2147483648"},
        {"client-output-pause", "1023", "1kb", "1gb", "1073741825"},
        {"lag-timeout", "0", "1", "3600000", "3600001"},
        {"min-replicas-to-write", "-1", "0", "63", "64"},
    };
    for (size_t i = 0; i < QN_ARRAY_COUNT(row); i++) {
        struct qn_config c;
        struct qn_config before;
        qn_config_init(&c);
        cr_expect_eq(start(&c, row[i].name, row[i].least), QN_OK, "%s",
                     row[i].name);
        cr_expect_eq(start(&c, row[i].name, row[i].most), QN_OK, "%s",
                     row[i].name);
        before = c;
        cr_expect_eq(start(&c, row[i].name, row[i].below), QN_EINVAL, "%s",
                     row[i].name);
        cr_expect_eq(start(&c, row[i].name, row[i].above), QN_EINVAL, "%s",
                     row[i].name);
        cr_expect(memcmp(&c, &before, sizeof c) == 0, "%s", row[i].name);
    }
}

Test(config, what_is_no_number_is_refused)
{
    static const char *const bad[] = {"",
                                      " 7",
                                      "7 ",
                                      "+7",
                                      "0x10",
                                      "7.0",
                                      "7k",
                                      "abc",
                                      "99999999999999999999",
                                      "18446744073709551616"};
    for (size_t i = 0; i < QN_ARRAY_COUNT(bad); i++) {
        struct qn_config c;
        qn_config_init(&c);
        cr_expect_eq(start(&c, "port", bad[i]), QN_EINVAL, "'%s'", bad[i]);
    }
}

Test(config, sizes_have_units)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } row[] = {{"2000000", 2000000}, {"2000000b", 2000000}, {"2000k", 2000000},
               {"2048kb", 2u << 20}, {"2m", 2000000},       {"2MB", 2u << 20},
               {"1g", 1000000000},   {"1Gb", 1u << 30}};
    for (size_t i = 0; i < QN_ARRAY_COUNT(row); i++) {
        struct qn_config c;
        qn_config_init(&c);
        cr_expect_eq(start(&c, "client-query-buffer-limit", row[i].text),
                     QN_OK);
        cr_expect_eq(c.client_query_buffer_limit, row[i].bytes, "%s",
                     row[i].text);
        cr_expect_eq(start(&c, "client-query-buffer-limit", "17179869185gb"),
                     QN_EINVAL, "64 bits");
        cr_expect_eq(start(&c, "client-query-buffer-limit", "2tb"), QN_EINVAL);
    }
}

Test(config, words_stand_for_values_in_any_case)
{
    struct qn_config c;
    qn_config_init(&c);
    cr_assert_eq(start(&c, "Consistency", "LOCAL"), QN_OK);
    cr_assert_not(c.linearizable);
    cr_assert_eq(start(&c, "replica-ports", "none"), QN_OK);
    cr_assert_eq(c.replica_ports, QN_REPLICA_PORTS_NONE);
    cr_assert_eq(start(&c, "pin", "numa"), QN_OK);
    cr_assert_eq(c.pin, QN_BIND_NUMA);
    cr_assert_eq(start(&c, "log-level", "debug"), QN_OK);
    cr_assert_eq(c.log_level, QN_LOG_DEBUG);
    cr_assert_eq(start(&c, "consistency", "1"), QN_EINVAL);
    cr_assert_eq(start(&c, "enable-debug-command", "maybe"), QN_EINVAL);
}

Test(config, a_text_fits_or_is_refused)
{
    struct qn_config c;
    char text[QN_CONFIG_TEXT_MAX + 1];
    qn_config_init(&c);
    memset(text, 'x', sizeof text);
    text[QN_CONFIG_TEXT_MAX] = '\0';
    cr_assert_eq(start(&c, "unixsocket", text), QN_EINVAL);
    text[QN_CONFIG_TEXT_MAX - 1] = '\0';
    cr_assert_eq(start(&c, "unixsocket", text), QN_OK);
    cr_assert_str_eq(c.unixsocket, text);
}

Test(config, an_unknown_name_gets_the_nearest)
{
    struct qn_config c;
    char why[QN_CONFIG_WHY_MAX];
    qn_config_init(&c);
    cr_assert_eq(qn_config_start(&c, "prt", "1", why, sizeof why), QN_ENOENT);
    cr_assert_str_eq(why, "no option 'prt'; did you mean 'port'?");
    qn_config_start(&c, "xyzzyxyzzy", "1", why, sizeof why);
    cr_assert_str_eq(why, "no option 'xyzzyxyzzy'; `quoind --help` lists them");
}

Test(config, two_replicas_are_refused_with_the_reason)
{
    struct qn_config c;
    char why[QN_CONFIG_WHY_MAX];
    qn_config_init(&c);
    for (uint32_t n = 1; n <= QN_NODES_MAX; n++) {
        c.replicas = n;
        cr_expect_eq(qn_config_check(&c, why, sizeof why),
                     n == 2 ? QN_EINVAL : QN_OK, "%u", n);
    }
    c.replicas = 2;
    qn_config_check(&c, why, sizeof why);
    cr_assert(strstr(why, "the loss of either stops both") != NULL, "%s", why);
}

Test(config, seats_are_as_many_as_replicas_or_more)
{
    struct qn_config c;
    char why[QN_CONFIG_WHY_MAX];
    qn_config_init(&c);
    c.replicas = 3;
    cr_expect_eq(qn_config_seats(&c), 3); /* auto */
    cr_expect_eq(qn_config_check(&c, why, sizeof why), QN_OK);
    for (uint32_t n = 1; n <= QN_NODES_MAX; n++) {
        c.replicas_max = n;
        cr_expect_eq(qn_config_check(&c, why, sizeof why),
                     n < 3 ? QN_EINVAL : QN_OK, "%u", n);
    }
    cr_expect_eq(qn_config_seats(&c), QN_NODES_MAX);
    cr_expect_eq(qn_config_taken(&c), 7);
    cr_expect_eq(qn_config_start(&c, "replicas-max", "65", why, sizeof why),
                 QN_EINVAL);
    c.replicas_max = 2;
    qn_config_check(&c, why, sizeof why);
    cr_expect_str_eq(why,
                     "replicas-max '2': there are 3 replicas; use 3 or more");
}

static uint32_t seats_auto(uint32_t replicas, uint32_t port, bool memory,
                           bool grows)
{
    struct qn_config c;
    qn_config_init(&c);
    c.replicas = replicas;
    c.port = port;
    c.memory_acceptor = memory;
    qn_config_seats_resolve(&c, grows);
    cr_expect(c.replicas_max_auto);
    return c.replicas_max;
}

Test(config, automatic_seats_are_eight_where_a_group_can_grow)
{
    struct qn_config c;
    cr_expect_eq(seats_auto(3, 7379, true, true), 8);
    cr_expect_eq(seats_auto(1, 0, true, true), 8);
    cr_expect_eq(seats_auto(9, 7379, true, true), 9);
    cr_expect_eq(seats_auto(3, 7379, true, false), 3);
    cr_expect_eq(seats_auto(3, 7379, false, true), 3);
    cr_expect_eq(seats_auto(3, 65530, true, true), 5, "ports up to 65535");
    cr_expect_eq(seats_auto(3, 65533, true, true), 3, "and too few");
    qn_config_init(&c);
    c.replicas = 3;
    c.replicas_max = 4;
    qn_config_seats_resolve(&c, true);
    cr_expect_eq(c.replicas_max, 4, "as told");
    cr_expect_not(c.replicas_max_auto);
}

Test(config, a_group_of_the_process_acceptor_keeps_its_size)
{
    struct qn_config c;
    char why[QN_CONFIG_WHY_MAX];
    qn_config_init(&c);
    c.replicas = 3;
    c.replicas_max = 4;
    c.memory_acceptor = false;
    cr_expect_eq(qn_config_check(&c, why, sizeof why), QN_EINVAL);
    cr_expect_str_eq(why, "replicas-max '4': with the process acceptor a group "
                          "keeps its size; use 3, or --acceptor memory");
    c.replicas_max = 3;
    cr_expect_eq(qn_config_check(&c, why, sizeof why), QN_OK);
}

Test(config, ports_of_vacant_seats_are_kept_free)
{
    struct qn_config c;
    char why[QN_CONFIG_WHY_MAX];
    qn_config_init(&c);
    c.replicas = 3;
    c.port = 65531;
    c.replicas_max = 4;
    cr_expect_eq(qn_config_check(&c, why, sizeof why), QN_OK);
    c.replicas_max = 5;
    cr_expect_eq(qn_config_check(&c, why, sizeof why), QN_EINVAL);
}

Test(config, ports_must_fit_and_not_overlap)
{
    static const struct {
        uint32_t port, base;
        int want;
    } row[] = {
        {7379, QN_REPLICA_PORTS_NEXT, QN_OK},
        {65532, QN_REPLICA_PORTS_NEXT, QN_OK}, /* up to 65535 */
        {65533, QN_REPLICA_PORTS_NEXT, QN_EINVAL},
        {65535, QN_REPLICA_PORTS_NONE, QN_OK},
        {0, QN_REPLICA_PORTS_NEXT, QN_OK},
        {7379, 7380, QN_OK},
        {7379, 7379, QN_EINVAL},
        {7379, 7377, QN_EINVAL},
        {7379, 7376, QN_OK},
        {7379, 65533, QN_OK},
        {7379, 65534, QN_EINVAL},
    };
    for (size_t i = 0; i < QN_ARRAY_COUNT(row); i++) {
        struct qn_config c;
        char why[QN_CONFIG_WHY_MAX];
        qn_config_init(&c);
        c.replicas = 3;
        c.port = row[i].port;
        c.replica_ports = row[i].base;
        cr_expect_eq(qn_config_check(&c, why, sizeof why), row[i].want,
                     "row %zu", i);
    }
}

Test(config, addresses_cells_topology_and_buffers_are_checked)
{
    static const struct {
        const char *name, *value;
        int want;
    } row[] = {
        {"bind", "0.0.0.0", QN_OK},
        {"bind", "::1", QN_OK},
        {"bind", "localhost", QN_EINVAL},
        {"bind", "1.2.3", QN_EINVAL},
        {"bind", "", QN_EINVAL},
        {"cells", "64", QN_OK},
        {"cells", "65", QN_EINVAL},
        {"topology", "binary", QN_OK},
        {"topology", "auto", QN_OK},
        {"topology", "/dev/null", QN_OK}, /* a file; it is read later */
        {"topology", "tree:k=3", QN_OK},
        {"topology", "adaptive", QN_OK},
        {"topology", "ternary", QN_EINVAL},
        {"machine", "auto", QN_OK},
        {"machine", "/dev/null", QN_OK}, /* likewise */
        {"machine", "/nowhere/m.json", QN_EINVAL},
        {"topology", "tree:k=2,", QN_EINVAL},
        {"client-query-buffer-limit", "67108864", QN_EINVAL},
        {"client-query-buffer-limit", "67108865", QN_OK},
    };
    for (size_t i = 0; i < QN_ARRAY_COUNT(row); i++) {
        struct qn_config c;
        char why[QN_CONFIG_WHY_MAX];
        qn_config_init(&c);
        c.replicas = 3;
        cr_assert_eq(start(&c, row[i].name, row[i].value), QN_OK);
        cr_expect_eq(qn_config_check(&c, why, sizeof why), row[i].want, "%s %s",
                     row[i].name, row[i].value);
    }
}

Test(config, a_socket_path_leaves_room_for_the_replicas_numbers)
{
    struct qn_config c;
    char why[QN_CONFIG_WHY_MAX];
    qn_config_init(&c);
    c.replicas = 3;
    memset(c.unixsocket, 'x', 104);
    c.unixsocket[104] = '\0';
    cr_assert_eq(qn_config_check(&c, why, sizeof why), QN_EINVAL);
    c.unixsocket[103] = '\0';
    cr_assert_eq(qn_config_check(&c, why, sizeof why), QN_OK);
}

Test(config, set_changes_run_time_options_only)
{
    struct qn_config c;
    char why[QN_CONFIG_WHY_MAX];
    qn_config_init(&c);
    cr_assert_eq(set(&c, "max-key-len", "1kb", why), QN_OK);
    cr_assert_eq(c.max_key_len, 1024);
    cr_assert_eq(set(&c, "PORT", "1", why), QN_EPERM);
    cr_assert_str_eq(why, "CONFIG SET failed (possibly related to argument "
                          "'port') - can't set immutable config");
    cr_assert_eq(set(&c, "save", "1 1", why), QN_EPERM);
    cr_assert_eq(set(&c, "nothing", "1", why), QN_ENOENT);
    cr_assert_str_eq(why, "Unknown option or number of arguments for CONFIG "
                          "SET - 'nothing'");
    cr_assert_eq(set(&c, "max-key-len", "2mb", why), QN_EINVAL);
    cr_assert_str_eq(why,
                     "CONFIG SET failed (possibly related to argument "
                     "'max-key-len') - argument must be between 1 and 1048576 "
                     "inclusive");
    cr_assert_eq(c.max_key_len, 1024);
}

/* Each way takes its own options and names those of the other; a list of both
 * goes neither way. */
Test(config, an_option_is_set_by_the_log_or_beside_it)
{
    struct qn_config c;
    char why[QN_CONFIG_WHY_MAX];
    struct qn_slice beside = slice("Lag-Timeout"), five = slice("5");
    struct qn_slice logged = slice("max-args"), many = slice("500");
    qn_config_init(&c);
    cr_assert_eq(set(&c, "lag-timeout", "5", why), QN_EPERM);
    cr_assert_eq(c.lag_timeout, 1000);
    cr_assert_eq(
        qn_config_set(&c, QN_CONFIG_BESIDE_LOG, beside, five, why, sizeof why),
        QN_OK);
    cr_assert_eq(c.lag_timeout, 5);
    cr_assert_eq(
        qn_config_set(&c, QN_CONFIG_BESIDE_LOG, logged, many, why, sizeof why),
        QN_EPERM);
    cr_assert_str_eq(why,
                     "CONFIG SET failed (possibly related to argument "
                     "'max-args') - set it in a command of its own: "
                     "lag-timeout and min-replicas-to-write do not go through "
                     "the log, the others do");
    const struct qn_slice both[] = {logged, many, beside, five};
    cr_assert(qn_config_beside(both, 4));
    cr_assert_not(qn_config_beside(both, 2));
    cr_assert_not(qn_config_beside(&many, 1), "a name that is none");
    for (enum qn_config_when w = QN_CONFIG_BY_LOG; w <= QN_CONFIG_BESIDE_LOG;
         w++) {
        cr_assert_eq(qn_config_set_all(&c, w, both, 4, why, sizeof why),
                     QN_EPERM);
    }
    cr_assert_eq(c.max_args, 1048576, "all or none");
}

Test(config, settings_beside_the_log_have_limits)
{
    static const struct {
        const char *name, *value;
        int err;
    } row[] = {
        {"lag-timeout", "0", QN_EINVAL},
        {"lag-timeout", "1", QN_OK},
        {"lag-timeout", "3600000", QN_OK},
        {"lag-timeout", "3600001", QN_EINVAL},
        {"lag-timeout", "1s", QN_EINVAL},
        {"lag-timeout", "", QN_EINVAL},
        {"min-replicas-to-write", "-1", QN_EINVAL},
        {"min-replicas-to-write", "0", QN_OK},
        {"min-replicas-to-write", "63", QN_OK},
        {"min-replicas-to-write", "64", QN_EINVAL},
        {"min-replicas-to-write", "auto", QN_EINVAL},
    };
    for (size_t i = 0; i < QN_ARRAY_COUNT(row); i++) {
        struct qn_config c;
        char why[QN_CONFIG_WHY_MAX];
        qn_config_init(&c);
        c.replicas = 3;
        const struct qn_slice pair[] = {slice(row[i].name),
                                        slice(row[i].value)};
        cr_expect_eq(qn_config_set_all(&c, QN_CONFIG_BESIDE_LOG, pair, 2, why,
                                       sizeof why),
                     row[i].err, "%s %s", row[i].name, row[i].value);
    }
}

Test(config, a_name_may_stand_in_a_list_once)
{
    struct qn_config c;
    char why[QN_CONFIG_WHY_MAX];
    qn_config_init(&c);
    c.replicas = 3;
    const struct qn_slice pair[] = {slice("lag-timeout"), slice("5"),
                                    slice("LAG-timeout"), slice("6")};
    cr_assert_eq(
        qn_config_set_all(&c, QN_CONFIG_BESIDE_LOG, pair, 4, why, sizeof why),
        QN_EINVAL);
    cr_assert_str_eq(why, "CONFIG SET failed (possibly related to argument "
                          "'LAG-timeout') - duplicate parameter");
    cr_assert_eq(c.lag_timeout, 1000);
}

/* A file that was there at start is not asked for again: replicas that apply
 * the same CONFIG SET would not agree. */
Test(config, setting_looks_at_no_file)
{
    struct qn_config c;
    char why[QN_CONFIG_WHY_MAX];
    qn_config_init(&c);
    c.replicas = 3;
    snprintf(c.topology, sizeof c.topology, "/nonexistent/tree.csv");
    snprintf(c.events_dir, sizeof c.events_dir, "/nonexistent");
    cr_assert_eq(qn_config_check(&c, why, sizeof why), QN_EINVAL);
    struct qn_slice pair[] = {slice("max-args"), slice("500")};
    cr_assert_eq(
        qn_config_set_all(&c, QN_CONFIG_BY_LOG, pair, 2, why, sizeof why),
        QN_OK, "%s", why);
    cr_assert_eq(c.max_args, 500);
    pair[0] = slice("proto-max-bulk-len");
    pair[1] = slice("512mb");
    c.client_query_buffer_limit = 1 << 20;
    cr_assert_eq(
        qn_config_set_all(&c, QN_CONFIG_BY_LOG, pair, 2, why, sizeof why),
        QN_EINVAL, "limits that concern each other are checked");
}

/* What goes through the log is in its first entry and in snapshots; the others
 * are not. */
Test(config, what_changes_beside_the_log_is_not_in_it)
{
    struct qn_config c, read;
    uint8_t bytes[QN_CONFIG_RUNTIME_MAX];
    qn_config_init(&c);
    c.lag_timeout = 7;
    c.max_args = 500;
    struct qn_slice s = {bytes, qn_config_runtime_write(&c, bytes)};
    qn_config_init(&read);
    cr_assert_eq(qn_config_runtime_read(&read, &s), QN_OK);
    cr_assert_eq(read.max_args, 500);
    cr_assert_eq(read.lag_timeout, 1000);
    static const uint8_t lag[] = "lag-timeout\0007\0";
    s = (struct qn_slice){lag, sizeof lag};
    cr_assert_eq(qn_config_runtime_read(&read, &s), QN_ECORRUPT);
}

Test(config, set_takes_any_bytes_without_harm)
{
    struct qn_config c;
    char why[QN_CONFIG_WHY_MAX];
    char big[5000];
    qn_config_init(&c);
    memset(big, 'x', sizeof big);
    struct qn_slice huge = {(uint8_t *)big, sizeof big};
    struct qn_slice nul = {(const uint8_t *)"max-key-len\0", 12};
    struct qn_slice none = {NULL, 0};
    struct qn_slice name = slice("max-key-len");
    cr_assert_eq(set_bytes(&c, huge, huge, why, sizeof why), QN_ENOENT);
    cr_assert_eq(set_bytes(&c, nul, name, why, sizeof why), QN_ENOENT);
    cr_assert_eq(set_bytes(&c, none, none, why, sizeof why), QN_ENOENT);
    cr_assert_eq(set_bytes(&c, name, huge, why, sizeof why), QN_EINVAL);
    cr_assert_eq(set_bytes(&c, name, nul, why, sizeof why), QN_EINVAL);
    cr_assert_eq(set_bytes(&c, name, none, why, sizeof why), QN_EINVAL);
    char tiny[8];
    cr_assert_eq(set_bytes(&c, huge, huge, tiny, sizeof tiny), QN_ENOENT);
    cr_assert_lt(strlen(tiny), sizeof tiny);
}

Test(config, get_answers_globs_with_typed_values)
{
    struct qn_config c;
    qn_config_init(&c);
    cr_assert_str_eq(get(&c, "save"), "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
    cr_assert_str_eq(get(&c, "appendonly"),
                     "*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n");
    cr_assert_str_eq(get(&c, "PORT"), "*2\r\n$4\r\nport\r\n$4\r\n7379\r\n");
    cr_assert_str_eq(get(&c, "consist*"),
                     "*2\r\n$11\r\nconsistency\r\n$12\r\nlinearizable\r\n");
    cr_assert_str_eq(get(&c, "max-key-len"),
                     "*2\r\n$11\r\nmax-key-len\r\n$5\r\n65536\r\n");
    cr_assert_str_eq(get(&c, "nothing"), "*0\r\n");
}

Test(config, get_names_each_match_once)
{
    struct qn_config c;
    struct qn_buf b = {0};
    struct qn_slice pattern[2] = {slice("port"), slice("por*")};
    qn_config_init(&c);
    qn_config_reply(&c, pattern, 2, 3, &b);
    cr_assert_eq(b.len, strlen("%1\r\n$4\r\nport\r\n$4\r\n7379\r\n"));
    qn_buf_free(&b);
}

/* What CONFIG GET says can be given back at start. */
Test(config, each_value_reads_back_as_itself)
{
    struct qn_config_option o;
    for (uint32_t i = 0; qn_config_at(i, &o); i++) {
        struct qn_config c;
        char before[512];
        char value[512];
        qn_config_init(&c);
        snprintf(before, sizeof before, "%s", get(&c, o.name));
        snprintf(value, sizeof value, "%s",
                 strchr(strrchr(before, '$'), '\n') + 1);
        value[strcspn(value, "\r")] = '\0';
        cr_expect_eq(start(&c, o.name, value), QN_OK, "%s '%s'", o.name, value);
        cr_expect_str_eq(get(&c, o.name), before);
    }
}

static int read_file(const char *text, struct qn_config *c, char *why)
{
    char path[] = "/tmp/qn-config-XXXXXX";
    int fd = mkstemp(path);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    int err = qn_config_file(c, path, why, QN_CONFIG_WHY_MAX);
    unlink(path);
    return err;
}

Test(config_file, reads_names_values_comments_and_blanks)
{
    struct qn_config c;
    char why[QN_CONFIG_WHY_MAX];
    qn_config_init(&c);
    cr_assert_eq(read_file("# a comment\n\n  port 7000 \r\n\treplicas\t5\n"
                           "save \"\"\nunixsocket /tmp/a b",
                           &c, why),
                 QN_OK, "%s", why);
    cr_assert_eq(c.port, 7000);
    cr_assert_eq(c.replicas, 5);
    cr_assert_str_eq(c.unixsocket, "/tmp/a b");
}

Test(config_file, names_the_line_that_is_wrong_and_changes_nothing)
{
    struct qn_config c;
    char why[QN_CONFIG_WHY_MAX];
    qn_config_init(&c);
    cr_assert_eq(read_file("port 7000\nreplicas\n", &c, why), QN_EINVAL);
    cr_assert(strstr(why, " line 2: replicas ''") != NULL, "%s", why);
    cr_assert_eq(c.port, 7379);
    cr_assert_eq(read_file("prt 7000\n", &c, why), QN_EINVAL);
    cr_assert(strstr(why, "did you mean 'port'?") != NULL, "%s", why);
}

/* The rest of a line that is cut is no line of its own. */
Test(config_file, lines_up_to_the_limit_are_taken_and_longer_ones_are_not)
{
    struct qn_config c;
    char why[QN_CONFIG_WHY_MAX];
    char text[1100];
    qn_config_init(&c);
    for (int len = 1021; len <= 1025; len++) {
        for (int lf = 0; lf < 2; lf++) {
            memset(text, '#', sizeof text);
            snprintf(text + len, sizeof text - (size_t)len, "%s",
                     lf ? "\nport 7001\n" : "");
            int err = read_file(text, &c, why);
            if (len <= 1022) {
                cr_expect_eq(err, QN_OK, "%d bytes: %s", len, why);
            } else {
                cr_expect_eq(err, QN_EINVAL, "%d bytes", len);
                cr_expect(strstr(why, "line 1: longer than 1022 bytes") != NULL,
                          "%s", why);
            }
        }
    }
}

Test(config_file, what_cannot_be_read_is_named)
{
    struct qn_config c;
    char why[QN_CONFIG_WHY_MAX];
    qn_config_init(&c);
    cr_assert_eq(qn_config_file(&c, "/nowhere/at/all", why, sizeof why),
                 QN_EIO);
    cr_assert_str_eq(why,
                     "cannot read /nowhere/at/all: No such file or directory");
    cr_assert_eq(qn_config_file(&c, "/tmp", why, sizeof why), QN_EIO);
}

/* The memory acceptor is shared memory. */
Test(config, without_shared_state_messages_decide)
{
    struct qn_config c;
    char why[QN_CONFIG_WHY_MAX];
    qn_config_init(&c);
    cr_assert(c.shared_state, "the default");
    cr_assert_eq(start(&c, "shared-state", "no"), QN_OK);
    cr_assert_eq(qn_config_check(&c, why, sizeof why), QN_EINVAL);
    cr_expect_str_eq(why, "shared-state 'no': the memory acceptor decides in "
                          "shared memory; add --acceptor process");
    cr_assert_eq(start(&c, "acceptor", "process"), QN_OK);
    cr_assert_eq(qn_config_check(&c, why, sizeof why), QN_OK, "%s", why);
    qn_config_init(&c);
    qn_config_by_message(&c); /* a transport that is a device */
    cr_expect(!c.shared_state && !c.memory_acceptor);
    cr_assert_eq(qn_config_check(&c, why, sizeof why), QN_OK, "%s", why);
}
