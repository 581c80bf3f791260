/*
 * The table of `quoin bench channel --transport all`, from results as the
 * command prints them: two transports, of which one joins threads only.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/bench/channel_table.h"
#include "tests/support/test.h"

static json_t *run(const char *transport, int bytes)
{
    return json_pack("{s:s,s:i,s:[],s:[]}", "transport", transport,
                     "bytes_of_two_nodes", bytes, "two_nodes", "blocking");
}

/* `ratio` 0: no turn counted. */
static void add_form(json_t *run, const char *kind, const char *name, double ns,
                     double ratio)
{
    json_t *f = json_pack("{s:s,s:s,s:{s:f}}", "form", name, "kind", kind, "ns",
                          "median", ns);
    if (ratio > 0) {
        json_object_set_new(f, "ratio", json_pack("{s:f}", "median", ratio));
    }
    json_array_append_new(json_object_get(run, "two_nodes"), f);
}

static void add_pairs(json_t *run, const char *kind, int nodes, double cpu)
{
    json_array_append_new(json_object_get(run, "blocking"),
                          json_pack("{s:i,s:s,s:f}", "endpoints", nodes, "kind",
                                    kind, "cpu_ns_per_message", cpu));
}

static char *table_of(const json_t *runs)
{
    char *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);
    cr_assert_not_null(to);
    qn_channel_table(runs, to);
    fclose(to);
    return text;
}

Test(channel_table, shows_each_transport_beside_the_best_raw_results)
{
    json_t *runs = json_array();
    json_t *a = run("ump", 262656);
    json_t *b = run("other", 1024);
    add_form(a, "threads", "raw_round_trip", 120, 0);
    add_form(a, "threads", "round_trip", 150, 1.25);
    add_form(a, "threads", "raw_stream", 10, 0);
    add_form(a, "threads", "stream_cell", 8, 1.5);
    add_form(a, "threads", "stream_4k", 512, 2);
    add_form(a, "processes", "raw_round_trip", 110, 0);
    add_form(a, "processes", "round_trip", 300, 0);
    add_pairs(a, "threads", 2, 2000);
    add_pairs(a, "threads", 4, 1);
    add_form(b, "threads", "raw_round_trip", 100, 0);
    add_form(b, "threads", "raw_stream", 20, 0);
    add_pairs(b, "threads", 2, 3000);
    json_array_append_new(runs, a);
    json_array_append_new(runs, b);
    char *got = table_of(runs);
    const char *want =
        "raw          threads        100        -    100.0        -        -"
        "        -        -        -\n"
        "ump          threads        150     1.25    125.0     1.50     8.00"
        "     2.00     2000      256\n"
        "other        threads          -        -        -        -        -"
        "        -     3000        1\n"
        "raw          processes      110        -        -        -        -"
        "        -        -        -\n"
        "ump          processes      300        -        -        -        -"
        "        -        -      256\n";
    cr_assert(strstr(got, want) != NULL, "%s", got);
    free(got);
    json_decref(runs);
}

/* On one core nothing spins, and only those that sleep are there. */
Test(channel_table, leaves_out_what_was_not_measured)
{
    json_t *runs = json_array();
    json_t *a = run("ump", 2048);
    add_pairs(a, "processes", 2, 500);
    json_array_append_new(runs, a);
    char *got = table_of(runs);
    cr_assert(strstr(got, "ump          threads") == NULL, "%s", got);
    cr_assert(strstr(got,
                     "ump          processes        -        -        -"
                     "        -        -        -      500        2\n") != NULL,
              "%s", got);
    free(got);
    json_decref(runs);
}
