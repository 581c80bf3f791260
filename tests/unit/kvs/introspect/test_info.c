#include "kvs/introspect/info.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "tests/support/test.h"

static struct qn_info_part one, two;
static const struct qn_info_part *const parts[] = {&one, &two};
static const struct qn_info_db dbs[] = {
    {.keys = 12, .expires = 3, .avg_ttl_ms = 1500}, {0}, {.keys = 1}};
static struct qn_info info;
static struct qn_tree tree;
static struct qn_buf out;

static void setup_tree(void)
{
    const qn_node_t order[] = {2, 0, 1};
    const struct qn_edges path = {
        .n = 3, .count = 2, .parent = {0, 1}, .child = {1, 2}};
    struct qn_shape shape;
    (void)qn_shape_from_edges(&shape, &path, 0);
    (void)qn_tree_place(&tree, &shape, order);
}

/* Replica 0, and 2, which lags. */
static void setup_parts(void)
{
    one = (struct qn_info_part){.replica = 0,
                                .pid = 101,
                                .state = "online",
                                .connected_clients = 3,
                                .blocked_clients = 1,
                                .used_memory = 1000,
                                .used_memory_rss = 3000,
                                .used_memory_peak = 1500,
                                .connections_received = 10,
                                .commands_processed = 100,
                                .ops_per_sec = 7,
                                .net_input_bytes = 1000,
                                .net_output_bytes = 2000,
                                .input_bytes_per_sec = 512,
                                .rejected_connections = 1,
                                .output_limit_closed = 2,
                                .query_limit_closed = 3,
                                .output_most = 70,
                                .input_most = 80,
                                .keyspace_hits = 5,
                                .keyspace_misses = 2,
                                .cpu_sys_usec = 1500000,
                                .cpu_user_usec = 999999,
                                .failovers = 3,
                                .is_root = 1,
                                .root_epoch = 4,
                                .ring = 2,
                                .topology_changes = 5,
                                .topology_reason = "all are in step",
                                .reach_nsec = 900,
                                .commit = 50,
                                .applied = 50,
                                .learned = 51,
                                .writes = 9,
                                .batches = 4,
                                .commit_usec_p50 = 10,
                                .commit_usec_p99 = 20,
                                .commit_usec_p999 = 30,
                                .unknown_timeout = 1,
                                .unknown_snapshot = 5,
                                .covered_ok = 10,
                                .kept = {.log = {1, 2, 3},
                                         .requests = {4, 5, 6},
                                         .arena = {15, 16, 17},
                                         .ring = {7, 8, 9},
                                         .bcast = {10, 11, 12},
                                         .bcast_dropped = 13,
                                         .lanes = {14, 15, 16}},
                                .transport = "ump",
                                .traffic = {{"cells", 21, 22}, {"words", 0, 0}},
                                .snapshots_joined = 1,
                                .snapshots_given = 2,
                                .snapshots_asked = 3,
                                .cut_bytes = 4,
                                .cut_bytes_max = 5,
                                .cut_bytes_most = 6,
                                .cuts_anew = 7,
                                .turn_usec_p99 = 1,
                                .turn_usec_p999 = 2,
                                .turn_usec_p9999 = 3,
                                .turn_usec_max = 24,
                                .turn_max_sockets_usec = 7,
                                .turn_max_apply_usec = 8,
                                .turn_max_answers_usec = 9,
                                .turn_growth_usec_max = 20,
                                .turn_wall_usec_max = 99};
    two = one;
    two.replica = 2;
    two.root_epoch = 3; /* it has not heard of the other one yet */
    two.ring = 0;
    two.pid = 103;
    two.applied = 45;
    two.learned = 46;
    two.commit = 48;
    two.output_most = 71;
    two.input_most = 79;
    two.failovers = 1;
    two.batches = 0;
}

static void setup(void)
{
    setup_tree();
    setup_parts();
    info =
        (struct qn_info){.redis_version = "7.0.15",
                         .quoind_version = "0.1.0",
                         .git_sha1 = "abc",
                         .os = "Linux 6.1 x86_64",
                         .executable = "/usr/bin/quoind",
                         .run_id = "18df46619d4298688ce5eb45f394eb66b699a461",
                         .process_id = 100,
                         .tcp_port = 7379,
                         .wall_usec = 1700000000000001,
                         .uptime_s = 172801,
                         .maxclients = 10000,
                         .logical_bytes = 5000,
                         .total_system_memory = 25276514304,
                         .db = dbs,
                         .dbs = 3,
                         .consistency = "linearizable",
                         .epoch = 4,
                         .leader = 2,
                         .acceptor = 0,
                         .shared_state = true,
                         .acceptor_kind = "memory",
                         .group = "serving",
                         .group_reason = "none",
                         .last_failover = "replica 1 had ended",
                         .tree = &tree,
                         .topology = "auto",
                         .ring_order = "map",
                         .predicted_cycles = 130.4,
                         .predicted_nsec = 52,
                         .waits_for = 2,
                         .in_sync = 5,
                         .supervised = true,
                         .seats = 5,
                         .members = 1u << 0 | 1u << 1 | 1u << 2 | 1u << 4,
                         .voters = 1u << 0 | 1u << 1 | 1u << 2,
                         .missing = 1u << 1,
                         .part = parts,
                         .parts = 2};
}

static void teardown(void)
{
    qn_buf_free(&out);
}

#define CASE(name) Test(info, name, .init = setup, .fini = teardown)

/* Ask for up to three sections; the text, NUL-terminated. */
static const char *text_of(const char *a, const char *b, const char *c)
{
    const char *const names[] = {a, b, c};
    struct qn_slice slices[3];
    uint32_t n = 0;
    for (; n < 3 && names[n] != NULL; n++) {
        slices[n] =
            (struct qn_slice){(const uint8_t *)names[n], strlen(names[n])};
    }
    out.len = 0;
    qn_info_text(&out, &info, slices, n);
    qn_buf_append(&out, "", 1);
    return (const char *)out.data;
}

static void expect(const char *section, const char *text)
{
    const char *got = text_of(section, NULL, NULL);
    cr_expect(strcmp(got, text) == 0, "%s: got\n%s", section, got);
}

CASE(server_says_who_it_is)
{
    expect("server",
           "# Server\r\nredis_version:7.0.15\r\nredis_git_sha1:abc\r\n"
           "redis_git_dirty:0\r\nredis_mode:standalone\r\n"
           "server_name:quoind\r\nquoind_version:0.1.0\r\n"
           "os:Linux 6.1 x86_64\r\narch_bits:64\r\nprocess_id:100\r\n"
           "process_supervised:no\r\n"
           "run_id:18df46619d4298688ce5eb45f394eb66b699a461\r\n"
           "tcp_port:7379\r\nserver_time_usec:1700000000000001\r\n"
           "uptime_in_seconds:172801\r\nuptime_in_days:2\r\n"
           "executable:/usr/bin/quoind\r\nconfig_file:\r\n");
}

CASE(counts_are_sums_over_the_replicas)
{
    expect("clients", "# Clients\r\nconnected_clients:6\r\n"
                      "cluster_connections:0\r\nmaxclients:10000\r\n"
                      "client_recent_max_input_buffer:80\r\n"
                      "client_recent_max_output_buffer:71\r\n"
                      "blocked_clients:2\r\ntracking_clients:0\r\n"
                      "clients_in_timeout_table:0\r\n");
    expect("stats",
           "# Stats\r\ntotal_connections_received:20\r\n"
           "total_commands_processed:200\r\ninstantaneous_ops_per_sec:14\r\n"
           "total_net_input_bytes:2000\r\ntotal_net_output_bytes:4000\r\n"
           "instantaneous_input_kbps:1.00\r\n"
           "instantaneous_output_kbps:0.00\r\nrejected_connections:2\r\n"
           "sync_full:0\r\nsync_partial_ok:0\r\nsync_partial_err:0\r\n"
           "expired_keys:0\r\nevicted_keys:0\r\nkeyspace_hits:10\r\n"
           "keyspace_misses:4\r\npubsub_channels:0\r\npubsub_patterns:0\r\n"
           "latest_fork_usec:0\r\ntotal_error_replies:0\r\n"
           "client_query_buffer_limit_disconnections:6\r\n"
           "client_output_buffer_limit_disconnections:4\r\n");
    expect("cpu", "# CPU\r\nused_cpu_sys:3.000000\r\n"
                  "used_cpu_user:1.999998\r\n"
                  "used_cpu_sys_children:0.000000\r\n"
                  "used_cpu_user_children:0.000000\r\n");
}

CASE(bytes_are_written_for_machines_and_people)
{
    expect("memory",
           "# Memory\r\nused_memory:1000\r\nused_memory_human:1000B\r\n"
           "used_memory_rss:3000\r\nused_memory_rss_human:2.93K\r\n"
           "used_memory_peak:1500\r\nused_memory_peak_human:1.46K\r\n"
           "used_memory_all_replicas:2000\r\n"
           "used_memory_all_replicas_human:1.95K\r\n"
           "used_memory_rss_all_replicas:6000\r\n"
           "used_memory_rss_all_replicas_human:5.86K\r\n"
           "used_memory_logical:5000\r\nused_memory_logical_human:4.88K\r\n"
           "total_system_memory:25276514304\r\n"
           "total_system_memory_human:23.54G\r\nmaxmemory:0\r\n"
           "maxmemory_human:0B\r\nmaxmemory_policy:noeviction\r\n"
           "mem_fragmentation_ratio:3.00\r\nmem_allocator:libc\r\n");
    info.maxmemory = 1023;
    cr_expect(strstr(text_of("memory", NULL, NULL), "maxmemory_human:1023B\r"));
    info.maxmemory = UINT64_MAX;
    cr_expect(
        strstr(text_of("memory", NULL, NULL), "maxmemory_human:16384.00P\r"));
    info.parts = 0;
    cr_expect(strstr(text_of("memory", NULL, NULL),
                     "mem_fragmentation_ratio:0.00\r"));
}

CASE(what_tools_wait_for_is_there)
{
    cr_expect(strstr(text_of("persistence", NULL, NULL), "\nloading:0\r\n"));
    info.loading = true;
    const char *text = text_of("persistence", NULL, NULL);
    cr_expect(strstr(text, "\nloading:1\r\n"));
    cr_expect(strstr(text, "\nrdb_bgsave_in_progress:0\r\n"));
    cr_expect(strstr(text, "\naof_rewrite_in_progress:0\r\n"));
    text = text_of("replication", NULL, NULL);
    cr_expect(strstr(text, "\nrole:master\r\nconnected_slaves:0\r\n"));
    cr_expect(strstr(text, "\nmaster_repl_offset:50\r\n"));
    expect("cluster", "# Cluster\r\ncluster_enabled:0\r\n");
}

CASE(keyspace_leaves_empty_databases_out)
{
    expect("keyspace", "# Keyspace\r\ndb0:keys=12,expires=3,avg_ttl=1500\r\n"
                       "db2:keys=1,expires=0,avg_ttl=0\r\n");
    info.dbs = 0;
    expect("keyspace", "# Keyspace\r\n");
}

CASE(commands_appear_once_they_were_called)
{
    const struct qn_slice get = {(const uint8_t *)"get", 3};
    const struct qn_slice debug = {(const uint8_t *)"debug", 5};
    uint32_t row = qn_cmd_index(qn_cmd_find(get));
    expect("commandstats", "# Commandstats\r\n");
    one.cmd[row] = (struct qn_info_cmd){.calls = 2, .usec = 5, .failed = 1};
    two.cmd[row] = (struct qn_info_cmd){.calls = 1, .usec = 2, .rejected = 4};
    two.cmd[qn_cmd_index(qn_cmd_find(debug))].rejected = 1;
    expect("commandstats",
           "# Commandstats\r\n"
           "cmdstat_get:calls=3,usec=7,usec_per_call=2.33,rejected_calls=4,"
           "failed_calls=1\r\n"
           "cmdstat_debug:calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,"
           "failed_calls=0\r\n");
}

static void count_error(struct qn_info_part *p, const char *reply)
{
    qn_info_count_error(p, (const uint8_t *)reply, strlen(reply));
}

CASE(errors_are_counted_by_code)
{
    count_error(&one, "-ERR syntax error\r\n");
    count_error(&one, "-NOPROTO x\r\n");
    count_error(&one, "-ERR\r\n");
    count_error(&one, "+OK\r\n");
    count_error(&one, "-\r\n");
    count_error(&one, "-");
    count_error(&one, "");
    count_error(&two, "-LOADING y\r\n");
    count_error(&two, "-ERR");
    expect("errorstats", "# Errorstats\r\nerrorstat_ERR:count=3\r\n"
                         "errorstat_NOPROTO:count=1\r\n"
                         "errorstat_LOADING:count=1\r\n");
    cr_expect(
        strstr(text_of("stats", NULL, NULL), "total_error_replies:5\r\n"));
}

CASE(errors_of_too_many_codes_are_dropped)
{
    char reply[] = "-ERRx";
    for (char c = 'A'; c <= 'Z'; c++) {
        reply[4] = c;
        count_error(&one, reply);
    }
    count_error(&one, "-ERRA again");
    count_error(&one, "-AVERYLONGCODETHATDOESNOTFITATALL");
    const char *text = text_of("errorstats", NULL, NULL);
    cr_expect(strstr(text, "errorstat_ERRA:count=2\r\n"));
    cr_expect(strstr(text, "errorstat_ERRP:count=1\r\n"));
    cr_expect(strstr(text, "errorstat_ERRQ") == NULL);
}

CASE(quoin_shows_each_replica)
{
    expect("quoin",
           "# Quoin\r\nconsistency:linearizable\r\nepoch:4\r\nleader:2\r\n"
           "acceptor:0\r\nacceptor_kind:memory\r\nshared_state:yes\r\n"
           "group:serving\r\ngroup_reason:none\r\n"
           "group_waits_for:1\r\nin_sync:0,2\r\n"
           "failovers:3\r\nlast_failover:replica 1 had ended\r\n"
           "suspicion_timeout_usec:0\r\nflow_control_delay_usec:0\r\nflow_"
           "control_for:\r\n"
           "lag_timeout_msec:0\r\nmin_replicas_to_write:0\r\n"
           "topology:auto\r\ntopology_now:ring:k=2\r\n"
           "topology_reason:all are in "
           "step\r\ntopology_changes:5\r\ntopology_ring_order:map\r\n"
           "tree:2>0,0>1\r\ntree_predicted_"
           "cycles:130\r\n"
           "tree_predicted_nsec:52\r\ntree_measured_nsec:900\r\n"
           "supervisor:up\r\nreplicas:4\r\nvoters:0,1,2\r\nnon_voting:4\r\n"
           "seats:5\r\nvacant_seats:3\r\nreplicas_missing:1\r\n"
           "commit:50\r\n"
           "writes_unknown_timeout:2\r\nwrites_unknown_snapshot:10\r\n"
           "writes_covered_ok:20\r\n"
           "replica0:state=online,pid=101,commit=50,applied=50,learned=51,"
           "lag=0,"
           "clients=3,used_memory=1000,batch_size=2.25,commit_usec_p50=10,"
           "commit_usec_p99=20,commit_usec_p999=30\r\n"
           "replica2:state=online,pid=103,commit=48,applied=45,learned=46,"
           "lag=5,"
           "clients=3,used_memory=1000,batch_size=0.00,commit_usec_p50=10,"
           "commit_usec_p99=20,commit_usec_p999=30\r\n"
           "turns0:turn_usec_p99=1,turn_usec_p999=2,turn_usec_p9999=3,"
           "turn_usec_max=24,turn_max_sockets_usec=7,turn_max_apply_usec=8,"
           "turn_max_answers_usec=9,turn_growth_usec_max=20,"
           "turn_wall_usec_max=99\r\n"
           "turns2:turn_usec_p99=1,turn_usec_p999=2,turn_usec_p9999=3,"
           "turn_usec_max=24,turn_max_sockets_usec=7,turn_max_apply_usec=8,"
           "turn_max_answers_usec=9,turn_growth_usec_max=20,"
           "turn_wall_usec_max=99\r\n"
           "snapshots0:joined=1,given=2,asked=3,cut_bytes=4,cut_bytes_max=5,"
           "cut_bytes_most=6,cuts_anew=7\r\n"
           "transport0:name=ump,cells_sent=21,cells_received=22,words_sent=0,"
           "words_received=0\r\n"
           "queues0:log_bytes=1,log_bytes_most=2,log_bytes_max=3,"
           "request_bytes=4,request_bytes_most=5,request_bytes_max=6,"
           "arena_bytes=15,arena_bytes_most=16,arena_bytes_max=17,"
           "ring_bytes=7,ring_bytes_max=9,learn_bytes=10,learn_bytes_most=11,"
           "learn_bytes_max=12,learns_dropped=13,lane_bytes=14,"
           "lane_bytes_most=15\r\n"
           "snapshots2:joined=1,given=2,asked=3,cut_bytes=4,cut_bytes_max=5,"
           "cut_bytes_most=6,cuts_anew=7\r\n"
           "transport2:name=ump,cells_sent=21,cells_received=22,words_sent=0,"
           "words_received=0\r\n"
           "queues2:log_bytes=1,log_bytes_most=2,log_bytes_max=3,"
           "request_bytes=4,request_bytes_most=5,request_bytes_max=6,"
           "arena_bytes=15,arena_bytes_most=16,arena_bytes_max=17,"
           "ring_bytes=7,ring_bytes_max=9,learn_bytes=10,learn_bytes_most=11,"
           "learn_bytes_max=12,learns_dropped=13,lane_bytes=14,"
           "lane_bytes_most=15\r\n");
    two.pause_usec = 2500;
    two.slow = 3;
    two.suspicion_timeout_usec = 70000;
    cr_expect(
        strstr(text_of("quoin", NULL, NULL),
               "\r\nsuspicion_timeout_usec:70000\r\nflow_control_delay_usec:"
               "2500\r\nflow_control_for:0,1\r\n"));
    info.missing = 0;
    cr_expect(strstr(text_of("quoin", NULL, NULL), "replicas_missing:\r\n"));
    info.missing = UINT64_MAX;
    cr_expect(strstr(text_of("quoin", NULL, NULL), "replicas_missing:0,1,2,"));
    cr_expect(strstr(text_of("quoin", NULL, NULL), ",62,63\r\n"));
}

/* ---- sections ------------------------------------------------------------ */

/* The titles in the text, each followed by a bar. */
static void expect_titles(const char *a, const char *b, const char *c,
                          const char *titles)
{
    static char got[256];
    got[0] = '\0';
    const char *at = text_of(a, b, c);
    for (; (at = strstr(at, "# ")) != NULL; at += 2) {
        strncat(got, at + 2, strcspn(at + 2, "\r"));
        strcat(got, "|");
    }
    cr_expect_str_eq(got, titles, "%s", a == NULL ? "" : a);
}

CASE(sections_are_selected_by_name)
{
#define FIRST "Server|Clients|Memory|Persistence|Stats|Replication|CPU|"
#define LAST  "Errorstats|Cluster|Keyspace|Quoin|"
    expect_titles(NULL, NULL, NULL, FIRST "Modules|" LAST);
    expect_titles("default", NULL, NULL, FIRST "Modules|" LAST);
    expect_titles("ALL", NULL, NULL, FIRST "Commandstats|" LAST);
    expect_titles("Everything", NULL, NULL, FIRST "Modules|Commandstats|" LAST);
    expect_titles("nope", NULL, NULL, "");
    expect_titles("", NULL, NULL, "");
    expect_titles("KEYSPACE", "nope", "cpu", "CPU|Keyspace|");
    expect_titles("cpu", "cpu", "cpu", "CPU|");
    expect_titles("commandstats", "default", NULL,
                  FIRST "Modules|Commandstats|" LAST);
}

CASE(sections_are_set_apart_by_an_empty_line)
{
    cr_expect_str_eq(text_of("cluster", "modules", NULL),
                     "# Modules\r\n\r\n# Cluster\r\ncluster_enabled:0\r\n");
}

CASE(reply_is_text)
{
    const struct qn_slice name = {(const uint8_t *)"cluster", 7};
    qn_info_reply(&out, 2, &info, &name, 1);
    cr_assert_eq(out.len, 37);
    cr_assert_arr_eq(out.data, "$30\r\n# Cluster\r\ncluster_enabled:0\r\n\r\n",
                     40 - 3);
    out.len = 0;
    qn_info_reply(&out, 3, &info, &name, 1);
    cr_assert_arr_eq(out.data, "=34\r\ntxt:# Cluster\r\n", 20);
    out.len = 0;
    const struct qn_slice nope = {(const uint8_t *)"nope", 4};
    qn_info_reply(&out, 3, &info, &nope, 1);
    cr_assert_eq(out.len, 10);
    cr_assert_arr_eq(out.data, "=4\r\ntxt:\r\n", 10);
    qn_info_reply(NULL, 3, &info, &name, 1);
}

CASE(long_lines_are_whole)
{
    static char path[5000];
    memset(path, 'p', sizeof path - 1);
    info.config_file = path;
    const char *text = text_of("server", NULL, NULL);
    const char *at = strstr(text, "config_file:");
    cr_assert_not_null(at);
    cr_assert_eq(strlen(at), 12 + 4999 + 2);
}

CASE(parts_travel_as_bytes)
{
    struct qn_info_part got = {0};
    qn_info_pack(&one, &out);
    cr_assert_eq(out.len, sizeof one);
    const struct qn_slice bytes = {out.data, out.len};
    cr_assert_eq(qn_info_unpack(bytes, &got), QN_OK);
    cr_assert_eq(got.commands_processed, 100);
    cr_assert_str_eq(got.state, "online");
    struct qn_slice less = {out.data, out.len - 1};
    cr_assert_eq(qn_info_unpack(less, &got), QN_ECORRUPT);
    cr_assert_eq(qn_info_unpack((struct qn_slice){0}, &got), QN_ECORRUPT);
    out.data[0] ^= 1; /* of another size, says the part itself */
    cr_assert_eq(qn_info_unpack(bytes, &got), QN_ECORRUPT);
    out.data[0] ^= 1;
    memset(out.data + offsetof(struct qn_info_part, state), 'x', 16);
    cr_assert_eq(qn_info_unpack(bytes, &got), QN_OK);
    cr_assert_eq(strlen(got.state), 15);
    memset(out.data + offsetof(struct qn_info_part, transport), 'x', 32);
    cr_assert_eq(qn_info_unpack(bytes, &got), QN_OK);
    cr_assert_eq(strlen(got.transport), 15);
    cr_assert_eq(strlen(got.traffic[0].unit), 15);
}
