/* Events of flight recorders: parsing, order, duplicates, the three output
 * formats. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/cli/events.h"
#include "paxos/driver/event.h"
#include "tests/support/test.h"

#define AT "2026-11-21T18:02:35."

static struct qn_events_table table;
static char *texts[8];
static uint32_t text_count;

static int add(const char *text, uint64_t *line)
{
    char *copy = strdup(text);
    texts[text_count++] = copy;
    return qn_events_add(&table, copy, line);
}

static void add_ok(const char *text)
{
    uint64_t line;
    cr_assert_eq(add(text, &line), QN_OK, "line %u", (unsigned)line);
}

static void clear(void)
{
    qn_events_free(&table);
    while (text_count > 0) {
        free(texts[--text_count]);
    }
}

/* The output of one printer for the table. */
static void check(bool (*print)(const struct qn_events_table *, FILE *),
                  const char *want)
{
    char *got = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&got, &len);
    cr_assert(print(&table, f));
    fclose(f);
    cr_assert_str_eq(got, want, "got:\n%s", got);
    free(got);
}

Test(events, of_several_replicas_are_put_in_order_of_time)
{
    add_ok(AT "000000100Z 5.000000100 1.4#7 down node=0 epoch=3 applied=9\n" AT
              "000300000Z 5.000300000 1.4#8 role role=leader\n");
    add_ok(AT "000200000Z 5.000200000 0.3#9 draining\n");
    qn_events_sort(&table);
    check(qn_events_print,
          "2026-11-21 18:02:35.000000      +0.000000  1.4      down"
          "               node=0 epoch=3 applied=9\n"
          "2026-11-21 18:02:35.000200      +0.000200  0.3      draining"
          "           \n"
          "2026-11-21 18:02:35.000300      +0.000100  1.4      role"
          "               role=leader\n");
    clear();
}

Test(events, at_one_time_keep_their_number)
{
    add_ok(AT "000000100Z 5.000000100 1.4#10 b\n" AT
              "000000100Z 5.000000100 1.4#9 a\n" AT
              "000000100Z 5.000000100 0.4#90 z\n");
    qn_events_sort(&table);
    cr_assert_eq(table.count, 3);
    cr_assert_str_eq(table.row[0].kind, "z");
    cr_assert_str_eq(table.row[1].kind, "a");
    cr_assert_str_eq(table.row[2].kind, "b");
    clear();
}

/* Two replicas are queried and each returns all events; their wall clocks
 * differ by the time between the two readings. */
Test(events, duplicates_count_once)
{
    add_ok(AT "000000100Z 5.000000100 1.4#9 a\n" AT
              "000000200Z 5.000000200 1.4#10 b\n");
    add_ok(AT "000000177Z 5.000000100 1.4#9 a\n" AT
              "000000200Z 5.000000200 1.5#10 another life\n");
    qn_events_sort(&table);
    cr_assert_eq(table.count, 3);
    clear();
}

/* The monotonic clock started again; the wall clock was adjusted slightly
 * meanwhile. */
Test(events, of_two_boots_are_ordered_by_the_wall_clock)
{
    add_ok("2026-11-21T18:00:00.000000000Z 5000.000000000 1.4#9 before\n"
           "2026-11-21T18:10:00.000000000Z 20.000000000 1.1#0 after\n"
           "2026-11-21T18:00:05.500000000Z 5005.000000000 1.4#10 set\n");
    qn_events_sort(&table);
    cr_assert_str_eq(table.row[0].kind, "before");
    cr_assert_str_eq(table.row[1].kind, "set");
    cr_assert_str_eq(table.row[2].kind, "after");
    clear();
}

Test(events, comments_empty_lines_and_a_missing_newline_are_valid)
{
    add_ok("# a file\n\n" AT "000000100Z 5.000000100 1.4#9 a\r\n#\n" AT
           "000000200Z 5.000000200 1.4#10 b x=1");
    add_ok("");
    cr_assert_eq(table.count, 2);
    cr_assert_str_eq(table.row[0].what, "");
    cr_assert_str_eq(table.row[1].what, "x=1");
    clear();
}

Test(events, an_invalid_event_is_reported_with_its_line)
{
    static const char *const wrong[] = {
        "hello",
        AT "000000100Z",
        AT "000000100Z 5.0001 1.4#9 a", /* no unit ns */
        AT "000000100Z 5.000000100 1.4#9 ",
        AT "000000100Z 5.000000100 1.4#9",
        AT "000000100Z 5.000000100 1.4 a",
        AT "000000100Z 5.000000100 -1.4#9 a",
        AT "000000100Z 5.000000100 1.99999999999999999999#9 a",
        AT "000000100Z 99999999999.000000100 1.4#9 a",
        "2026-11-21 18:02:35.000000100Z 5.000000100 1.4#9 a",
        "2026-11-21T18:02:35.000100000. 5.000000100 1.4#9 a",
    };
    for (size_t i = 0; i < QN_ARRAY_COUNT(wrong); i++) {
        char text[256];
        uint64_t line = 0;
        snprintf(text, sizeof text,
                 "#\n" AT "000000100Z 5.000000100 1.4#9 a\n%s\n", wrong[i]);
        cr_assert_eq(add(text, &line), QN_EINVAL, "%s", wrong[i]);
        cr_assert_eq(line, 3, "%s: line %u", wrong[i], (unsigned)line);
        clear();
    }
}

Test(events, json_has_numbers_and_words)
{
    add_ok(AT "000000100Z 5.000000100 1.4#9 epoch leader=2 to=all "
              "big=18446744073709551615\n");
    check(qn_events_print_json,
          "{\"time\":\"" AT "000000100Z\",\"monotonic_ns\":5000000100,"
          "\"replica\":1,\"incarnation\":4,\"index\":9,\"event\":\"epoch\","
          "\"what\":{\"leader\":2,\"to\":\"all\","
          "\"big\":\"18446744073709551615\"}}\n");
    clear();
}

/* Every event that a replica prints is parsed, and --raw prints it
 * unchanged. */
Test(events, every_line_of_a_recorder_is_read_and_raw_is_the_same)
{
    char text[256 * QN_EVENT_LINE_MAX];
    size_t len = 0;
    const struct qn_event_source s = {.node = 63,
                                      .incarnation = UINT64_MAX,
                                      .wall = INT64_C(1700000000000000000)};
    for (uint32_t kind = 0; kind < 256; kind++) {
        const struct qn_flight_event e = {.index = kind,
                                          .time = 1000 + kind,
                                          .kind = (uint8_t)kind,
                                          .node = (uint8_t)kind,
                                          .b = UINT16_MAX,
                                          .a = UINT64_MAX};
        len += qn_event_print(text + len, &s, &e);
    }
    add_ok(text);
    cr_assert_eq(table.count, 256);
    qn_events_sort(&table);
    cr_assert_eq(table.count, 256);
    check(qn_events_print_raw, text);
    clear();
}
