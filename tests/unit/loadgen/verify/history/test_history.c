#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/verify/history/history.h"
#include "loadgen/verify/history/text.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- recording ---- */

Test(recorder, a_new_record_has_no_outcome)
{
    struct qn_recorder rec;
    qn_recorder_init(&rec, 10);
    const struct qn_record *r = qn_recorder_add(&rec, 7, 3, QN_RECORD_CAS);
    cr_assert_not_null(r);
    cr_assert_eq(r->outcome, QN_RECORD_UNKNOWN);
    cr_assert_eq(r->responded, QN_TIME_NEVER);
    cr_assert_eq(r->client, 7);
    cr_assert_eq(r->key, 3);
    cr_assert_eq(r->kind, QN_RECORD_CAS);
    qn_recorder_fini(&rec);
}

Test(recorder, pointers_stay_good_while_it_grows)
{
    struct qn_recorder rec;
    qn_recorder_init(&rec, 3 * QN_RECORDER_CHUNK);
    struct qn_record *first = qn_recorder_add(&rec, 1, 5, QN_RECORD_SET);
    for (int i = 1; i < 3 * QN_RECORDER_CHUNK; i++) {
        cr_assert_not_null(qn_recorder_add(&rec, 2, 6, QN_RECORD_GET));
    }
    cr_assert_eq(first->key, 5);
    cr_assert_eq(first, &rec.first->record[0]);
    qn_recorder_fini(&rec);
}

Test(recorder, reports_that_it_is_full)
{
    struct qn_recorder rec;
    struct qn_history h;
    qn_recorder_init(&rec, 2);
    qn_history_init(&h);
    cr_assert_not_null(qn_recorder_add(&rec, 1, 1, QN_RECORD_GET));
    cr_assert_not_null(qn_recorder_add(&rec, 1, 1, QN_RECORD_GET));
    cr_assert(!rec.full);
    cr_assert_null(qn_recorder_add(&rec, 1, 1, QN_RECORD_GET));
    cr_assert(rec.full);
    cr_assert_eq(qn_history_take(&h, &rec), QN_EINVAL);
    cr_assert_eq(h.count, 0);
    qn_recorder_fini(&rec);
}

Test(recorder, a_refused_operation_is_omitted)
{
    struct qn_recorder rec;
    qn_recorder_init(&rec, 2);
    struct qn_record *r = qn_recorder_add(&rec, 1, 1, QN_RECORD_SET);
    qn_record_refused(r);
    cr_assert_eq(r->kind, QN_RECORD_GET);
    cr_assert_eq(r->outcome, QN_RECORD_UNKNOWN);
    qn_recorder_fini(&rec);
}

/* ---- histories ---- */

Test(history, empty_has_no_keys)
{
    struct qn_recorder rec;
    struct qn_history h;
    qn_recorder_init(&rec, 2);
    qn_history_init(&h);
    cr_assert_eq(qn_history_take(&h, &rec), QN_OK);
    cr_assert_eq(qn_history_group(&h), QN_OK);
    cr_assert_eq(h.key_count, 0);
    qn_history_fini(&h);
}

/* Three recorders, the middle one longer than a chunk, about 5000 keys: every
 * record is returned under its key, in order of time. */
Test(history, groups_by_key_and_orders_by_time)
{
    static const uint32_t sizes[] = {10, 2 * QN_RECORDER_CHUNK + 1, 5000};
    struct qn_history h;
    qn_history_init(&h);
    uint64_t total = 0;
    for (uint16_t t = 0; t < 3; t++) {
        struct qn_recorder rec;
        qn_recorder_init(&rec, UINT64_MAX);
        for (uint32_t i = 0; i < sizes[t]; i++) {
            struct qn_record *r = qn_recorder_add(
                &rec, t, (i * 7919) % 5003 | (i & 1 ? QN_RECORD_COUNTER : 0),
                QN_RECORD_GET);
            r->invoked = (i * UINT64_C(2654435761)) % 100000;
            r->responded = r->invoked + 1;
            total++;
        }
        cr_assert_eq(qn_history_take(&h, &rec), QN_OK);
        cr_assert_eq(rec.count, 0);
    }
    cr_assert_eq(qn_history_group(&h), QN_OK);
    cr_assert_eq(h.count, total);
    uint64_t seen = 0;
    for (uint64_t k = 0; k < h.key_count; k++) {
        struct qn_record *r = malloc(h.key[k].count * sizeof *r);
        cr_assert(k == 0 || h.key[k - 1].key < h.key[k].key);
        qn_history_records(&h, k, r);
        for (uint64_t i = 0; i < h.key[k].count; i++, seen++) {
            cr_assert_eq(r[i].key, h.key[k].key);
            cr_assert(i == 0 || r[i - 1].invoked <= r[i].invoked);
        }
        free(r);
    }
    cr_assert_eq(seen, total);
    qn_history_fini(&h);
}

/* ---- text ---- */

static const char *const lines[] = {
    "1 100 200 set k7 41 -> ok",
    "2 150 260 get k7 -> -41",
    "2 150 260 get k7 -> nil",
    "3 300 410 cas k7 41 42 -> ok",
    "3 300 410 cas k7 41 42 -> failed",
    "3 420 430 add k7 43 -> failed",
    "3 420 420 add k7 43 -> ok",
    "1 500 580 del k7 -> 1",
    "1 500 580 del k7 -> 0",
    "2 600 640 incr c1 1 -> 5",
    "2 700 - set k7 44 -> ?",
    "65535 0 - get k2147483647 -> ?",
    "0 700 - cas c0 9223372036854775807 -9223372036854775808 -> ?",
};

Test(record_text, a_written_history_reads_back_unchanged)
{
    for (size_t i = 0; i < QN_ARRAY_COUNT(lines); i++) {
        struct qn_record r;
        char error[160] = "";
        char text[QN_RECORD_TEXT_MAX];
        cr_assert_eq(qn_record_parse(lines[i], &r, error, sizeof error), 1,
                     "%s: %s", lines[i], error);
        qn_record_text(&r, text);
        cr_assert_str_eq(text, lines[i]);
    }
}

Test(record_text, reads_every_field)
{
    struct qn_record r;
    char error[160];
    cr_assert_eq(qn_record_parse("3 300 410 cas k7 41 42 -> ok # why\r\n", &r,
                                 error, sizeof error),
                 1);
    cr_assert_eq(r.client, 3);
    cr_assert_eq(r.invoked, 300);
    cr_assert_eq(r.responded, 410);
    cr_assert_eq(r.kind, QN_RECORD_CAS);
    cr_assert_eq(r.key, 7);
    cr_assert_eq(r.other, 41);
    cr_assert_eq(r.value, 42);
    cr_assert_eq(r.outcome, QN_RECORD_OK);
    cr_assert_eq(qn_record_parse("3 1 2 incr c7 2 -> 9", &r, error, 160), 1);
    cr_assert_eq(r.key, QN_RECORD_COUNTER | 7);
    cr_assert_eq(r.value, 2);
    cr_assert_eq(r.other, 9);
}

static const struct {
    const char *line;
    const char *error; /* a part of the message */
} bad[] = {
    {"x", "expected: client"},
    {"x 1 2 get k1 -> 3", "'x' is not a client"},
    {"65536 1 2 get k1 -> 3", "not a client"},
    {"1 -1 2 get k1 -> 3", "'-1' is not a time"},
    {"1 1 2s get k1 -> 3", "'2s' is not a time"},
    {"1 5 4 get k1 -> 3", "before it was invoked"},
    {"1 1 2 got k1 -> 3", "unknown operation 'got'"},
    {"1 1 2 get 1 -> 3", "'1' is not a key"},
    {"1 1 2 get k2147483648 -> 3", "not a key"},
    {"1 1 2 get k1 7 -> 3", "get needs a key, 0 numbers"},
    {"1 1 2 cas k1 7 -> ok", "cas needs a key, 2 numbers"},
    {"1 1 2 set k1 7x -> ok", "'7x' is not a value"},
    {"1 1 2 set k1 9223372036854775808 -> ok", "not a value"},
    {"1 1 2 set k1 7 = ok", "'=' instead of ->"},
    {"1 1 2 set k1 7 -> failed", "'failed' is not an answer of set"},
    {"1 1 2 del k1 -> 2", "'2' is not an answer of del"},
    {"1 1 2 get k1 -> ?", "needs an answer of ?"},
    {"1 1 - get k1 -> 7", "needs an answer of ?"},
    {"1 2 3 4 5 6 7 8 9 10", "too many words"},
};

Test(record_text, reports_the_error_of_a_line)
{
    for (size_t i = 0; i < QN_ARRAY_COUNT(bad); i++) {
        struct qn_record r;
        char error[160] = "";
        cr_assert_eq(qn_record_parse(bad[i].line, &r, error, sizeof error),
                     QN_EINVAL, "%s", bad[i].line);
        cr_assert_not_null(strstr(error, bad[i].error), "%s: %s", bad[i].line,
                           error);
    }
}

static int read_text(const char *text, struct qn_recorder *rec, uint64_t *line,
                     char *error)
{
    FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    int err = qn_history_read(f, rec, line, error, 160);
    fclose(f);
    return err;
}

Test(history_text, reads_records_between_comments)
{
    struct qn_recorder rec;
    uint64_t line;
    char error[160];
    qn_recorder_init(&rec, UINT64_MAX);
    cr_assert_eq(read_text("# a\n\n1 1 2 get k1 -> nil\n  \n1 3 - del k1 -> ?",
                           &rec, &line, error),
                 QN_OK);
    cr_assert_eq(rec.count, 2);
    qn_recorder_fini(&rec);
}

Test(history_text, names_the_invalid_line)
{
    struct qn_recorder rec;
    uint64_t line;
    char error[160];
    qn_recorder_init(&rec, UINT64_MAX);
    cr_assert_eq(
        read_text("# a\n1 1 2 get k1 -> nil\nnonsense\n", &rec, &line, error),
        QN_EINVAL);
    cr_assert_eq(line, 3);
    qn_recorder_fini(&rec);
}

Test(history_text, writes_the_records_it_read)
{
    static const char text[] = "1 1 2 set k1 5 -> ok\n"
                               "1 7 8 set k1 6 -> ok\n"
                               "2 3 - del k2 -> ?\n";
    struct qn_recorder rec;
    struct qn_history h;
    uint64_t line;
    char error[160];
    char *out;
    size_t len;
    qn_recorder_init(&rec, UINT64_MAX);
    qn_history_init(&h);
    cr_assert_eq(read_text(text, &rec, &line, error), QN_OK);
    cr_assert_eq(qn_history_take(&h, &rec), QN_OK);
    cr_assert_eq(qn_history_group(&h), QN_OK);
    FILE *f = open_memstream(&out, &len);
    cr_assert_eq(qn_history_write(f, &h), QN_OK);
    fclose(f);
    cr_assert_str_eq(out, text);
    free(out);
    qn_history_fini(&h);
}
