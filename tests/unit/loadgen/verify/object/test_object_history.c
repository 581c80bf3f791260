/*
 * The checks of object histories: histories by hand, and the verdicts on random
 * small ones beside those of a checker that tries all orders.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/base/random.h"
#include "loadgen/verify/object/object_history.h"
#include "tests/support/test.h"

enum { SMALL_MAX = 8, RANDOM_HISTORIES = 60000 };

enum object { COUNTER, QUEUE, STACK, OBJECT_COUNT };

#define COUNT(r) (sizeof(r) / sizeof(r)[0])
/* clang-format off */
#define ADD(from, to, v)  {from, to, v, QN_OBJECT_ADD}
#define PUT(from, to, v)  {from, to, v, QN_OBJECT_PUT}
#define TAKE(from, to, v) {from, to, v, QN_OBJECT_TAKE}
#define NONE(from, to)    {from, to, 0, QN_OBJECT_NOTHING}
/* clang-format on */

static enum qn_object_fault check(enum object o,
                                  const struct qn_object_record *r, size_t n)
{
    struct qn_object_verdict v;
    int rc = o == COUNTER ? qn_counter_history_check(r, n, 0, &v)
             : o == QUEUE ? qn_queue_history_check(r, n, &v)
                          : qn_stack_history_check(r, n, &v);
    cr_assert_eq(rc, QN_OK, "%s", qn_strerror(rc));
    if (v.fault != QN_OBJECT_NO_FAULT) {
        cr_assert_lt(v.record[0], n);
        cr_assert_lt(v.record[1], n);
    }
    return v.fault;
}

#define FAULT(o, want, ...)                                                    \
    do {                                                                       \
        const struct qn_object_record r[] = {__VA_ARGS__};                     \
        enum qn_object_fault got = check(o, r, COUNT(r));                      \
        cr_expect_eq(got, want, "got: %s", qn_object_fault_text(got));         \
    } while (0)

Test(object_history, results_of_a_counter_are_distinct_and_in_order)
{
    FAULT(COUNTER, QN_OBJECT_NO_FAULT, ADD(0, 9, 1), ADD(1, 2, 0));
    FAULT(COUNTER, QN_OBJECT_NO_FAULT, ADD(0, 5, 1), ADD(5, 9, 0));
    FAULT(COUNTER, QN_OBJECT_REVERSED, ADD(0, 4, 1), ADD(5, 9, 0));
    FAULT(COUNTER, QN_OBJECT_REVERSED, ADD(6, 9, 0), ADD(0, 9, 1),
          ADD(0, 5, 2));
    FAULT(COUNTER, QN_OBJECT_TWICE, ADD(0, 9, 0), ADD(0, 9, 1), ADD(0, 9, 1));
    FAULT(COUNTER, QN_OBJECT_PHANTOM, ADD(0, 9, 0), ADD(0, 9, 2));
}

Test(object_history, a_queue_has_four_bad_patterns)
{
    FAULT(QUEUE, QN_OBJECT_NO_FAULT, PUT(0, 1, 7), PUT(2, 3, 8), TAKE(4, 6, 8),
          TAKE(5, 7, 7), NONE(8, 9));
    FAULT(QUEUE, QN_OBJECT_PHANTOM, PUT(0, 1, 7), TAKE(2, 3, 8));
    FAULT(QUEUE, QN_OBJECT_TWICE, PUT(0, 1, 7), TAKE(2, 3, 7), TAKE(2, 3, 7));
    FAULT(QUEUE, QN_OBJECT_FUTURE, PUT(2, 3, 7), TAKE(0, 1, 7));
    FAULT(QUEUE, QN_OBJECT_REVERSED, PUT(0, 1, 7), PUT(2, 3, 8), TAKE(4, 5, 8),
          TAKE(6, 7, 7));
    FAULT(QUEUE, QN_OBJECT_REVERSED, PUT(0, 1, 7), PUT(2, 3, 8),
          TAKE(4, 5, 8)); /* 7 is never taken */
}

/* No single value is in all the time, but always one of the two. */
Test(object_history, nothing_is_found_only_where_no_value_is_certainly_in)
{
    for (enum object o = QUEUE; o <= STACK; o++) {
        FAULT(o, QN_OBJECT_NOT_EMPTY, PUT(0, 1, 7), PUT(2, 4, 8), NONE(3, 8),
              TAKE(5, 6, 7), TAKE(9, 10, 8));
        FAULT(o, QN_OBJECT_NO_FAULT, PUT(0, 1, 7), PUT(2, 5, 8), NONE(3, 8),
              TAKE(5, 6, 7), TAKE(9, 10, 8));
        FAULT(o, QN_OBJECT_NOT_EMPTY, PUT(0, 1, 7), NONE(2, 3));
        FAULT(o, QN_OBJECT_NO_FAULT, PUT(0, 2, 7), NONE(2, 3));
    }
}

Test(object_history, a_stack_has_a_value_below_the_others)
{
    FAULT(STACK, QN_OBJECT_NO_FAULT, PUT(0, 1, 7), PUT(2, 3, 8), TAKE(4, 5, 8),
          TAKE(6, 7, 7), NONE(8, 9));
    FAULT(STACK, QN_OBJECT_NESTING, PUT(0, 1, 7), PUT(2, 3, 8), TAKE(4, 5, 7),
          TAKE(6, 7, 8));
    FAULT(STACK, QN_OBJECT_NESTING, PUT(0, 1, 7), PUT(2, 3, 8),
          TAKE(4, 5, 7)); /* 8 lies on it for ever */
    /* Two values may be the lowest; the third one is between them. */
    FAULT(STACK, QN_OBJECT_NO_FAULT, PUT(0, 3, 7), PUT(0, 3, 8), PUT(4, 5, 9),
          TAKE(6, 9, 9), TAKE(6, 9, 8), TAKE(6, 9, 7));
    FAULT(STACK, QN_OBJECT_PHANTOM, TAKE(0, 1, 7));
    FAULT(STACK, QN_OBJECT_TWICE, PUT(0, 1, 7), TAKE(2, 3, 7), TAKE(4, 5, 7));
    FAULT(STACK, QN_OBJECT_FUTURE, PUT(2, 3, 7), TAKE(0, 1, 7));
}

Test(object_history, other_kinds_and_values_that_are_put_twice_are_refused)
{
    const struct qn_object_record twice[] = {PUT(0, 1, 7), PUT(2, 3, 7)};
    const struct qn_object_record add[] = {ADD(0, 1, 0), PUT(0, 1, 1)};
    struct qn_object_verdict v;
    cr_expect_eq(qn_queue_history_check(twice, 2, &v), QN_EINVAL);
    cr_expect_eq(qn_stack_history_check(twice, 2, &v), QN_EINVAL);
    cr_expect_eq(qn_queue_history_check(add, 2, &v), QN_EINVAL);
    cr_expect_eq(qn_counter_history_check(add, 2, 0, &v), QN_EINVAL);
    cr_expect_eq(
        qn_counter_history_check(add, QN_OBJECT_RECORDS_MAX + 1, 0, &v),
        QN_EINVAL);
}

/* ---- all orders ---------------------------------------------------------- */

/* The object, after some operations in sequence. */
struct state {
    uint64_t value[SMALL_MAX]; /* counter: none */
    size_t from, end, added;
};

/* Does `r` have its answer in this state? Then the state changes. */
static bool take_effect(enum object o, struct state *s,
                        const struct qn_object_record *r)
{
    switch ((enum qn_object_kind)r->kind) {
    case QN_OBJECT_ADD:
        return r->value == s->added++;
    case QN_OBJECT_PUT:
        s->value[s->end++] = r->value;
        return true;
    case QN_OBJECT_NOTHING:
        return s->from == s->end;
    case QN_OBJECT_TAKE:
        return s->from < s->end &&
               r->value == s->value[o == QUEUE ? s->from++ : --s->end];
    }
    return false;
}

/* Is there an order of those that are not in `done`? */
static bool orderable(enum object o, const struct qn_object_record *r, size_t n,
                      uint32_t done, const struct state *s)
{
    if (done == (UINT32_C(1) << n) - 1) {
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        bool first = (done >> i & 1) == 0;
        for (size_t k = 0; k < n; k++) {
            first = first &&
                    ((done >> k & 1) != 0 || r[k].responded >= r[i].invoked);
        }
        struct state after = *s;
        if (first && take_effect(o, &after, &r[i]) &&
            orderable(o, r, n, done | UINT32_C(1) << i, &after)) {
            return true;
        }
    }
    return false;
}

/* ---- random histories ---------------------------------------------------- */

/* A valid sequence, in which operations overlap. There are as many puts as
 * takes, so a large share of the takes find nothing. */
static void make(uint64_t *seed, enum object o, struct qn_object_record *r,
                 size_t n)
{
    struct state s = {.from = 0};
    const uint64_t overlap = 1 + qn_random_below(seed, 8);
    for (size_t i = 0; i < n; i++) {
        const qn_time_t at = 10 + 2 * i;
        r[i] = (struct qn_object_record){at - qn_random_below(seed, overlap),
                                         at + qn_random_below(seed, overlap), i,
                                         QN_OBJECT_PUT};
        if (o == COUNTER) {
            r[i].kind = QN_OBJECT_ADD;
        } else if (qn_random_below(seed, 2) == 0) {
            const bool none = s.from == s.end;
            r[i].kind = none ? QN_OBJECT_NOTHING : QN_OBJECT_TAKE;
            r[i].value = none         ? 0
                         : o == QUEUE ? s.value[s.from]
                                      : s.value[s.end - 1];
        }
        (void)take_effect(o, &s, &r[i]);
    }
}

/* Two operations change their times, or one is any other one of its kind. */
static void spoil(uint64_t *seed, struct qn_object_record *r, size_t n)
{
    struct qn_object_record *a = &r[qn_random_below(seed, n)];
    struct qn_object_record *b = &r[qn_random_below(seed, n)];
    if (qn_random_below(seed, 4) != 0) {
        const struct qn_object_record was = *a;
        a->invoked = b->invoked;
        a->responded = b->responded;
        b->invoked = was.invoked;
        b->responded = was.responded;
    } else if (a->kind == QN_OBJECT_ADD || a->kind == QN_OBJECT_TAKE) {
        a->value = qn_random_below(seed, n);
    }
}

static void show(const struct qn_object_record *r, size_t n)
{
    static const char *const kind[] = {"add", "put", "take", "nothing"};
    for (size_t i = 0; i < n; i++) {
        fprintf(stderr, "%3llu .. %3llu  %s %llu\n",
                (unsigned long long)r[i].invoked,
                (unsigned long long)r[i].responded, kind[r[i].kind],
                (unsigned long long)r[i].value);
    }
}

static void agrees(enum object o)
{
    uint64_t seed = 1 + o;
    uint32_t good = 0;
    for (uint32_t i = 0; i < RANDOM_HISTORIES; i++) {
        struct qn_object_record r[SMALL_MAX];
        const struct state s = {.from = 0};
        const size_t n = 1 + qn_random_below(&seed, SMALL_MAX);
        make(&seed, o, r, n);
        for (uint32_t k = i % 4; k > 0; k--) {
            spoil(&seed, r, n);
        }
        const bool want = orderable(o, r, n, 0, &s);
        const bool got = check(o, r, n) == QN_OBJECT_NO_FAULT;
        if (want != got) {
            show(r, n);
        }
        cr_assert_eq(want, got, "object %d: want %d, got %d", o, want, got);
        good += want;
    }
    cr_expect_gt(good, RANDOM_HISTORIES / 5);
    cr_expect_lt(good, RANDOM_HISTORIES * 4 / 5);
}

Test(object_history, counter_agrees_with_all_orders, .timeout = 60)
{
    agrees(COUNTER);
}

Test(object_history, queue_agrees_with_all_orders, .timeout = 60)
{
    agrees(QUEUE);
}

Test(object_history, stack_agrees_with_all_orders, .timeout = 60)
{
    agrees(STACK);
}

/* ---- long histories ------------------------------------------------------ */

/* A stack of many levels: 16 clients overlap, 2^17 operations. Two pops of
 * values that were pushed far apart are exchanged. */
Test(object_history, a_long_history_of_a_stack_is_decided, .timeout = 60)
{
    enum { LEVELS = 1000, PAIRS = 65536, OVERLAP = 16 };
    struct qn_object_record *r = calloc(2 * PAIRS, sizeof *r);
    uint64_t stack[LEVELS], seed = 7;
    size_t depth = 0, puts = 0, n = 0;
    cr_assert_not_null(r);
    while (n < 2 * PAIRS) {
        const bool put = depth == 0 || (depth < LEVELS && puts < PAIRS &&
                                        qn_random_below(&seed, 16) < 9);
        const uint64_t value = put ? puts++ : stack[--depth];
        r[n] = (struct qn_object_record){
            10 * n + OVERLAP * 10 - 10 * qn_random_below(&seed, OVERLAP),
            10 * n + OVERLAP * 10 + 10 * qn_random_below(&seed, OVERLAP), value,
            put ? QN_OBJECT_PUT : QN_OBJECT_TAKE};
        n++;
        if (put) {
            stack[depth++] = value;
        }
    }
    cr_expect_eq(check(STACK, r, n), QN_OBJECT_NO_FAULT);
    const uint64_t last = r[n - 1].value;
    size_t other = n - 10 * OVERLAP;
    while (r[other].kind != QN_OBJECT_TAKE) {
        other--;
    }
    r[n - 1].value = r[other].value;
    r[other].value = last;
    cr_expect_eq(check(STACK, r, n), QN_OBJECT_NESTING);
    free(r);
}
