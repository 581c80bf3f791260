/* The flight_recorder recorder: order, wrap, what a killed or wild writer
 * leaves. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/bits.h"
#include "core/place/flight_recorder.h"
#include "tests/support/test.h"

#define ENTRIES 8u

/* The first line, as flight_recorder.h draws it. */
struct first_line {
    qn_a64 begun, done, born;
};

static alignas(QN_CACHELINE) uint8_t memory[QN_FLIGHT_BYTES(ENTRIES)];

static struct qn_flight_event event(uint64_t i)
{
    return (struct qn_flight_event){.index = i,
                                    .time = i * 1000,
                                    .kind = (uint8_t)(1 + i % 255),
                                    .node = (uint8_t)(i * 3),
                                    .b = (uint16_t)(i * 5),
                                    .epoch = (uint32_t)(i * 7),
                                    .slot = i * 11,
                                    .a = ~i};
}

static bool same(const struct qn_flight_event *x,
                 const struct qn_flight_event *y)
{
    return x->index == y->index && x->time == y->time && x->kind == y->kind &&
           x->node == y->node && x->b == y->b && x->epoch == y->epoch &&
           x->slot == y->slot && x->a == y->a;
}

static void note(struct qn_flight_recorder *f, uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i++) {
        struct qn_flight_event e = event(i);
        e.index = 77; /* is not looked at */
        qn_flight_recorder_note(f, &e);
    }
}

/* What is read are the events [first, end). */
static void check(uint64_t first, uint64_t end)
{
    struct qn_flight_event out[ENTRIES];
    uint32_t n = qn_flight_recorder_read(memory, ENTRIES, out);
    cr_assert_eq(n, end - first, "%u of %u", n, (unsigned)(end - first));
    for (uint32_t i = 0; i < n; i++) {
        struct qn_flight_event want = event(first + i);
        cr_assert(same(&out[i], &want), "event %u has index %u", i,
                  (unsigned)out[i].index);
    }
}

static struct qn_flight_recorder fresh(void)
{
    struct qn_flight_recorder f;
    memset(memory, 0, sizeof memory);
    qn_flight_recorder_init(&f, memory, ENTRIES, 1234567890123);
    return f;
}

Test(flight_recorder, is_empty_at_first)
{
    struct qn_flight_event out[ENTRIES];
    memset(memory, 0, sizeof memory);
    cr_assert_eq(qn_flight_recorder_started_ms(memory), 0);
    cr_assert_eq(qn_flight_recorder_read(memory, ENTRIES, out),
                 0); /* not even begun */
    fresh();
    cr_assert_eq(qn_flight_recorder_read(memory, ENTRIES, out), 0);
    cr_assert_eq(qn_flight_recorder_started_ms(memory), 1234567890123);
}

Test(flight_recorder, gives_every_field_back_oldest_first)
{
    struct qn_flight_recorder f = fresh();
    for (uint64_t n = 0; n < ENTRIES; n++) {
        note(&f, n, n + 1);
        check(0, n + 1);
    }
}

Test(flight_recorder, keeps_the_newest_over_many_laps)
{
    struct qn_flight_recorder f = fresh();
    for (uint64_t n = 0; n < 5 * ENTRIES; n++) {
        note(&f, n, n + 1);
        check(n + 1 > ENTRIES ? n + 1 - ENTRIES : 0, n + 1);
    }
}

Test(flight_recorder, fields_at_their_limits)
{
    struct qn_flight_recorder f = fresh();
    struct qn_flight_event out[ENTRIES];
    const struct qn_flight_event most = {.time = UINT64_MAX,
                                         .kind = UINT8_MAX,
                                         .node = UINT8_MAX,
                                         .b = UINT16_MAX,
                                         .epoch = UINT32_MAX,
                                         .slot = UINT64_MAX,
                                         .a = UINT64_MAX};
    qn_flight_recorder_note(&f, &most);
    cr_assert_eq(qn_flight_recorder_read(memory, ENTRIES, out), 1);
    cr_assert(same(&out[0], &most));
}

/* A writer killed in the middle of a note has begun one more than it has done:
 * the entry whose place it was writing is not given, the others are. */
Test(flight_recorder, what_a_killed_writer_had_begun_is_left_out)
{
    struct first_line *line = (struct first_line *)(void *)memory;
    struct qn_flight_recorder f = fresh();
    note(&f, 0, 3);
    qn_store(&line->begun, 4, QN_RELAXED); /* a free place */
    check(0, 3);
    f = fresh();
    note(&f, 0, 20);
    qn_store(&line->begun, 21, QN_RELAXED); /* that of event 12 */
    memset(memory + QN_CACHELINE + 12 % ENTRIES * QN_FLIGHT_ENTRY, 0xee, 9);
    check(13, 20);
}

/* Whatever stands there, nothing outside is touched and an end is found. */
Test(flight_recorder, garbage_is_read_in_bounds)
{
    const uint64_t counts[] = {0,  1,          ENTRIES,        ENTRIES + 1,
                               77, UINT64_MAX, UINT64_MAX - 1, 1ull << 63};
    struct first_line *line = (struct first_line *)(void *)memory;
    struct qn_flight_event out[ENTRIES + 1];
    memset(memory, 0xa5, sizeof memory);
    memset(out, 0x33, sizeof out);
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(counts); i++) {
        for (uint32_t k = 0; k < QN_ARRAY_COUNT(counts); k++) {
            qn_store(&line->begun, counts[i], QN_RELAXED);
            qn_store(&line->done, counts[k], QN_RELAXED);
            cr_assert_leq(qn_flight_recorder_read(memory, ENTRIES, out),
                          ENTRIES);
        }
    }
    cr_assert_eq(out[ENTRIES].time, 0x3333333333333333);
}

/* ---- a reader beside the writer, for real -------------------------------- */

static qn_a32 over;

static void *reader(void *arg)
{
    uint64_t *looks = arg;
    struct qn_flight_event out[ENTRIES];
    do {
        uint32_t n = qn_flight_recorder_read(memory, ENTRIES, out);
        for (uint32_t i = 0; i < n; i++) {
            struct qn_flight_event want = event(out[0].index + i);
            if (!same(&out[i], &want)) {
                return "torn";
            }
        }
        (*looks)++;
    } while (qn_load(&over, QN_ACQUIRE) == 0);
    return NULL;
}

Test(flight_recorder, a_reader_beside_the_writer_never_sees_a_torn_entry,
     .timeout = 120)
{
    struct qn_flight_recorder f = fresh();
    pthread_t thread;
    uint64_t looks = 0;
    void *wrong = NULL;
    cr_assert_eq(pthread_create(&thread, NULL, reader, &looks), 0);
    note(&f, 0, 300000);
    qn_store(&over, 1, QN_RELEASE);
    pthread_join(thread, &wrong);
    cr_assert_null(wrong);
    cr_assert_gt(looks, 0);
    check(300000 - ENTRIES, 300000);
}
