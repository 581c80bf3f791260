/* Events: what is recorded, what is damped, and their lines. */
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "paxos/driver/event.h"
#include "paxos/machine/onepaxos.h"
#include "paxos/wire/msg.h"
#include "tests/support/test.h"

static const struct qn_event_source source = {
    .node = 2, .incarnation = 7, .wall = INT64_C(1700000000000000000)};

static struct qn_flight_event *recorded(const void *mem, uint32_t *n)
{
    struct qn_flight_event *out = calloc(QN_FLIGHT_ENTRIES, sizeof *out);
    *n = qn_flight_recorder_read(mem, QN_FLIGHT_ENTRIES, out);
    return out;
}

static void *memory(void)
{
    size_t bytes = QN_FLIGHT_BYTES(QN_FLIGHT_ENTRIES);
    void *mem = aligned_alloc(QN_CACHELINE, bytes);
    memset(mem, 0, bytes);
    return mem;
}

static void check_line(const struct qn_flight_event *e, const char *want)
{
    char line[QN_EVENT_LINE_MAX];
    size_t n = qn_event_print(line, &source, e);
    cr_assert_eq(n, strlen(line));
    cr_assert_str_eq(line, want, "got  %s", line);
}

Test(event, a_line_says_when_who_and_what)
{
    const struct qn_flight_event e = {.index = 41,
                                      .time = 5123000456789,
                                      .kind = QN_EVENT_DOWN,
                                      .node = 1,
                                      .epoch = 4,
                                      .slot = 1034,
                                      .a = 3};
    check_line(&e, "2023-11-14T23:38:43.000456789Z 5123.000456789 2.7#41 down "
                   "node=1 incarnation=3 epoch=4 applied=1034\n");
}

Test(event, roles_messages_and_all_are_words)
{
    const struct qn_flight_event role = {
        .kind = QN_EVENT_ROLE, .b = QN_ACTIVE, .epoch = 5, .slot = 9};
    check_line(&role, "2023-11-14T22:13:20.000000000Z 0.000000000 2.7#0 role "
                      "role=leader epoch=5 applied=9\n");
    const struct qn_flight_event sent = {.kind = QN_EVENT_SENT,
                                         .b = QN_MSG_U_PREPARE,
                                         .node = QN_EVENT_ALL,
                                         .a = 12};
    check_line(&sent, "2023-11-14T22:13:20.000000000Z 0.000000000 2.7#0 sent "
                      "to=all message=U_PREPARE left_out=12 epoch=0 slot=0\n");
}

/* Whatever a wild writer leaves is a line of its own, and no more. */
Test(event, any_bytes_are_one_line)
{
    char line[QN_EVENT_LINE_MAX];
    for (uint32_t kind = 0; kind < 256; kind++) {
        const struct qn_flight_event e = {.index = UINT64_MAX,
                                          .time = UINT64_MAX,
                                          .kind = (uint8_t)kind,
                                          .node = UINT8_MAX - 1,
                                          .b = UINT16_MAX,
                                          .epoch = UINT32_MAX,
                                          .slot = UINT64_MAX,
                                          .a = UINT64_MAX};
        const struct qn_event_source s = {63, UINT64_MAX, INT64_MAX};
        size_t n = qn_event_print(line, &s, &e);
        cr_assert_lt(n, QN_EVENT_LINE_MAX - 1, "kind %u was cut", kind);
        cr_assert_eq(strchr(line, '\n'), line + n - 1);
    }
    const struct qn_flight_event e = {.kind = 200, .b = 1, .slot = 5};
    check_line(&e, "2023-11-14T22:13:20.000000000Z 0.000000000 2.7#0 kind-200 "
                   "node=0 b=1 a=0 epoch=0 slot=5\n");
}

Test(event, every_message_that_is_recorded_has_a_name)
{
    char line[QN_EVENT_LINE_MAX];
    for (uint16_t m = 1; m < QN_MSG_KINDS; m++) {
        const struct qn_flight_event e = {.kind = QN_EVENT_GOT, .b = m};
        qn_event_print(line, &source, &e);
        const char *name = strstr(line, "message=") + strlen("message=");
        cr_assert(*name >= 'A' && *name <= 'Z', "message %u: %s", m, line);
    }
}

Test(event, without_memory_nothing_happens)
{
    struct qn_events v;
    const struct qn_flight_event e = {.kind = QN_EVENT_DOWN};
    qn_events_init(&v, NULL, NULL, 1);
    qn_events_note(&v, &e);
}

static qn_time_t noon(void)
{
    return 12 * 3600 * QN_S;
}

Test(event, the_clock_wins_over_the_given_time)
{
    struct qn_events v;
    void *mem = memory();
    const struct qn_flight_event e = {.kind = QN_EVENT_DOWN, .time = 5};
    uint32_t n;
    qn_events_init(&v, mem, noon, 1);
    qn_events_note(&v, &e);
    qn_events_init(&v, mem, NULL, 1);
    struct qn_flight_event *out = recorded(mem, &n);
    cr_assert_eq(n, 1);
    cr_assert_eq(out[0].time, noon());
    free(out);
    free(mem);
}

/* So many of one sort in a second; each peer has its own count; what comes
 * first in the next second says how many are missing. What is rare is never
 * left out. */
Test(event, floods_are_damped_by_sort_and_counted)
{
    struct qn_events v;
    void *mem = memory();
    uint32_t n;
    qn_events_init(&v, mem, NULL, 1);
    struct qn_flight_event e = {
        .kind = QN_EVENT_SENT, .b = QN_MSG_FETCH, .node = 1, .a = 99};
    for (e.time = 0; e.time < 100; e.time++) {
        qn_events_note(&v, &e);
    }
    e.node = 2;
    qn_events_note(&v, &e);
    e.node = 1;
    e.time = QN_S;
    qn_events_note(&v, &e);
    struct qn_flight_event *out = recorded(mem, &n);
    cr_assert_eq(n, QN_EVENTS_PER_S + 2);
    cr_assert_eq(out[0].a, 0);
    cr_assert_eq(out[QN_EVENTS_PER_S].node, 2);
    cr_assert_eq(out[QN_EVENTS_PER_S + 1].a, 100 - QN_EVENTS_PER_S);
    free(out);
    e.kind = QN_EVENT_DOWN;
    for (uint32_t i = 0; i < 100; i++) {
        qn_events_note(&v, &e);
    }
    out = recorded(mem, &n);
    cr_assert_eq(n, QN_EVENTS_PER_S + 102);
    cr_assert_eq(out[n - 1].a, 99);
    free(out);
    free(mem);
}
