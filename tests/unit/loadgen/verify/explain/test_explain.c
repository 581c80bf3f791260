#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/verify/explain/explain.h"
#include "loadgen/verify/explain/subhistory_internal.h"
#include "loadgen/verify/explain/timeline.h"
#include "loadgen/verify/history/text.h"
#include "tests/support/test.h"
#include "tests/unit/loadgen/verify/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE_MAX_TRIED = 40 };

static enum qn_linear_verdict verdict(const struct qn_record *r, size_t n)
{
    struct qn_linear_result out;
    cr_assert_eq(qn_linear_check(r, n, NULL, &out), QN_OK);
    return out.verdict;
}

/* The claims of a witness, as records. */
static size_t claimed(const struct qn_witness *w, struct qn_record *out)
{
    for (size_t i = 0; i < w->count; i++) {
        struct qn_record r = w->op[i].record;
        if (w->op[i].loose) {
            r = qn_subhistory_loosen(&r);
        }
        if (r.outcome != QN_RECORD_UNKNOWN && w->base != 0) {
            *(r.kind == QN_RECORD_GET ? &r.value : &r.other) -= w->base;
        }
        out[i] = r;
    }
    return w->count;
}

/* The claims of the rules: no subset of a correct history that they allow is a
 * violation. */
Test(support, no_part_of_a_good_history_is_a_violation, .timeout = 60)
{
    for (size_t world = 0; world < WORLD_COUNT; world++) {
        uint64_t seed = 77 + world;
        for (uint32_t round = 0; round < 4000; round++) {
            struct qn_record all[SIZE_MAX_TRIED];
            struct qn_record part[SIZE_MAX_TRIED];
            bool kept[SIZE_MAX_TRIED];
            uint32_t list[SIZE_MAX_TRIED];
            uint32_t n = 2 + (uint32_t)qn_random_below(&seed, 12);
            uint64_t share = 1 + qn_random_below(&seed, 9);
            struct world_opts o = world_opts(world, n);
            size_t count = 0;
            world_good(&seed, &o, all);
            for (uint32_t i = 0; i < n; i++) {
                kept[i] = qn_random_below(&seed, 10) < share;
                if (kept[i]) {
                    list[count++] = i;
                }
            }
            struct qn_subhistory s;
            cr_assert_eq(qn_subhistory_init(&s, all, n), QN_OK);
            size_t left = 0;
            bool wrong = false;
            for (size_t k = 0; k < count; k++) {
                enum qn_subhistory_kind kind =
                    qn_subhistory_of(&s, list[k], kept, list, count);
                wrong |= kind == QN_SUBHISTORY_WRONG;
                if (kind == QN_SUBHISTORY_WHOLE) {
                    part[left++] = all[list[k]];
                } else if (kind == QN_SUBHISTORY_LOOSE) {
                    part[left++] = qn_subhistory_loosen(&all[list[k]]);
                }
            }
            qn_subhistory_fini(&s);
            if (!wrong && verdict(part, left) != QN_LINEARIZABLE) {
                world_show(all, n);
                fprintf(stderr, "part:\n");
                world_show(part, (uint32_t)left);
                cr_assert_fail("world %zu, round %u", world, round);
            }
        }
    }
}

/* Corrupted histories of every model: the witness alone is a violation,
 * which the reference checker confirms for small ones, and no record can be
 * left out. */
Test(explain, a_witness_is_a_violation_by_itself, .timeout = 100)
{
    uint32_t checked = 0;
    for (size_t world = 0; world < WORLD_COUNT; world++) {
        uint64_t seed = 5 + world;
        uint32_t found = 0;
        for (uint32_t round = 0; round < 600; round++) {
            struct qn_record r[SIZE_MAX_TRIED];
            struct qn_record part[SIZE_MAX_TRIED];
            struct qn_linear_result result;
            struct qn_witness w;
            uint32_t n = 4 + (uint32_t)qn_random_below(&seed, 36);
            struct world_opts o = world_opts(world, n);
            world_good(&seed, &o, r);
            world_spoil(&seed, r, n);
            cr_assert_eq(qn_linear_check(r, n, NULL, &result), QN_OK);
            if (result.verdict != QN_NOT_LINEARIZABLE) {
                continue;
            }
            cr_assert_eq(qn_explain(r, n, &result, NULL, &w), QN_OK);
            size_t count = claimed(&w, part);
            if (count == 0 || verdict(part, count) != QN_NOT_LINEARIZABLE) {
                world_show(r, n);
                fprintf(stderr, "witness:\n");
                world_show(part, (uint32_t)count);
                cr_assert_fail("world %zu, round %u", world, round);
            }
            cr_assert(w.minimal || strstr(w.why, "refused") != NULL);
            cr_assert_leq(count, n);
            if (count <= 7) {
                cr_assert(!world_linearizable(part, (uint32_t)count));
                checked++;
            }
            found++;
            qn_witness_fini(&w);
        }
        cr_assert(found > 60, "world %zu: %u violations", world, found);
    }
    cr_assert(checked > 1000, "%u checked", checked);
}

/* A counter's witness has every increment of its window: without one of them
 * any later result would be wrong. */
Test(explain, a_counter_keeps_the_increments_of_its_window)
{
    uint64_t seed = 9;
    uint32_t found = 0;
    for (uint32_t round = 0; round < 500; round++) {
        struct qn_record r[SIZE_MAX_TRIED];
        struct qn_linear_result result;
        struct qn_witness w;
        struct world_opts o = world_opts(4, SIZE_MAX_TRIED);
        world_good(&seed, &o, r);
        world_spoil(&seed, r, SIZE_MAX_TRIED);
        cr_assert_eq(qn_linear_check(r, SIZE_MAX_TRIED, NULL, &result), QN_OK);
        if (result.verdict != QN_NOT_LINEARIZABLE) {
            continue;
        }
        cr_assert_eq(qn_explain(r, SIZE_MAX_TRIED, &result, NULL, &w), QN_OK);
        int64_t top = 0;
        uint32_t shown = 0;
        uint32_t expected = 0;
        for (size_t i = 0; i < w.count; i++) {
            const struct qn_record *s = &w.op[i].record;
            int64_t seen = s->kind == QN_RECORD_GET ? s->value : s->other;
            top = s->outcome == QN_RECORD_OK ? QN_MAX(top, seen) : top;
            shown += s->kind == QN_RECORD_INCR;
        }
        for (size_t i = 0; i < SIZE_MAX_TRIED; i++) {
            bool inside = r[i].outcome == QN_RECORD_UNKNOWN ||
                          (r[i].other > w.base && r[i].other <= top);
            expected += r[i].kind == QN_RECORD_INCR && inside;
        }
        cr_assert_eq(shown, expected, "%u of %u", shown, expected);
        found++;
        qn_witness_fini(&w);
    }
    cr_assert(found > 100, "%u", found);
}

/* A duplicate among 4000 increments: the two, and those between them. */
Test(explain, a_long_counter_has_a_short_witness)
{
    enum { N = 4000 };
    static struct qn_record r[N];
    struct qn_linear_result result;
    struct qn_witness w;
    for (uint32_t i = 0; i < N; i++) {
        r[i] = (struct qn_record){.invoked = 10 * i,
                                  .responded = 10 * i + 15,
                                  .value = 1,
                                  .other = i < 2000 ? i + 1 : i,
                                  .key = QN_RECORD_COUNTER,
                                  .kind = QN_RECORD_INCR,
                                  .outcome = QN_RECORD_OK};
    }
    cr_assert_eq(qn_linear_check(r, N, NULL, &result), QN_OK);
    cr_assert_eq(result.verdict, QN_NOT_LINEARIZABLE);
    cr_assert_eq(qn_explain(r, N, &result, NULL, &w), QN_OK);
    cr_assert_eq(w.count, 2, "%zu operations", w.count);
    cr_assert_eq(w.op[0].record.other, 2000);
    cr_assert_eq(w.op[1].record.other, 2000);
    cr_assert_eq(w.base, 1999);
    qn_witness_fini(&w);
}

/* One stale read among 20000 operations of 30 clients. */
Test(explain, finds_the_few_relevant_records_in_a_long_history, .timeout = 60)
{
    enum { N = 20000 };
    uint64_t seed = 3;
    struct world_opts o = world_opts(0, N);
    struct qn_record *r = malloc(N * sizeof *r);
    struct qn_linear_result result;
    struct qn_witness w;
    o.clients = 30;
    o.unknown = 0;
    world_good(&seed, &o, r);
    uint32_t late = N - 1;
    while (r[late].kind != QN_RECORD_GET) {
        late--;
    }
    for (uint32_t i = 0; i < N; i++) {
        if (r[i].kind == QN_RECORD_SET) {
            r[late].value = r[i].value;
            break;
        }
    }
    cr_assert_eq(qn_linear_check(r, N, NULL, &result), QN_OK);
    cr_assert_eq(result.verdict, QN_NOT_LINEARIZABLE);
    cr_assert_eq(qn_explain(r, N, &result, NULL, &w), QN_OK);
    cr_assert(w.minimal);
    cr_assert_leq(w.count, 4, "%zu operations", w.count);
    qn_witness_fini(&w);
    free(r);
}

/* ---- timelines ---- */

static void stale_read(struct qn_witness *w)
{
    static const char *const lines[] = {
        "1 1000 1100 set k1 1 -> ok",
        "1 1200 21200 set k1 2 -> ok",
        "2 30000 31000 get k1 -> 1",
        "3 40000 - set k1 3 -> ?",
    };
    struct qn_record r[4];
    struct qn_linear_result result;
    char error[160];
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(qn_record_parse(lines[i], &r[i], error, sizeof error), 1);
    }
    cr_assert_eq(qn_linear_check(r, 4, NULL, &result), QN_OK);
    cr_assert_eq(result.verdict, QN_NOT_LINEARIZABLE);
    cr_assert_eq(qn_explain(r, 4, &result, NULL, w), QN_OK);
}

static char *drawn(int (*draw)(FILE *, const struct qn_witness *))
{
    struct qn_witness w;
    char *text;
    size_t len;
    stale_read(&w);
    FILE *f = open_memstream(&text, &len);
    cr_assert_eq(draw(f, &w), QN_OK);
    fclose(f);
    qn_witness_fini(&w);
    return text;
}

Test(timeline, text_shows_the_order)
{
    char *text = drawn(qn_timeline_text);
    cr_expect_str_eq(
        text,
        "k1: values were seen in an order that the times forbid\n"
        "  3 of 4 operations on this key show it; each of them is needed:\n\n"
        "  client 1               0 ns         100 ns  set k1 1 -> ok         "
        "            |--|\n"
        "  client 1             200 ns      20.200 us  set k1 2 -> ok         "
        "                |--|\n"
        "  client 2          29.000 us      30.000 us  get k1 -> 1            "
        "                    |--|\n\n",
        "%s", text);
    free(text);
}

static size_t count_of(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, part)) != NULL; p++) {
        n++;
    }
    return n;
}

Test(timeline, svg_has_a_bar_per_operation_and_two_colour_schemes)
{
    char *svg = drawn(qn_timeline_svg);
    cr_expect_eq(strncmp(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\"", 39),
                 0);
    cr_expect_eq(count_of(svg, "<rect "), 3);
    cr_expect_eq(count_of(svg, "set k1 2 -&gt; ok"), 1);
    cr_expect_eq(count_of(svg, "prefers-color-scheme:dark"), 1);
    cr_expect_eq(count_of(svg, "@media print"), 1);
    cr_expect_eq(count_of(svg, "<text"), count_of(svg, "</text>"));
    cr_expect(strstr(svg, "</svg>\n") != NULL);
    free(svg);
}
