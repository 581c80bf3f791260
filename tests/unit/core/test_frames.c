/*
 * Messages in pieces: whatever is cut follows the grammar, and nothing else
 * does.
 */
#include "core/frames.h"

#include <string.h>

#include "core/base/bits.h"
#include "tests/support/test.h"

static const struct qn_frame_limits limits = {
    .first = 52, .any = 56, .msg = 1000};

Test(frames, what_is_cut_adds_up_and_fits)
{
    uint8_t msg[1000];
    uint8_t got[1000];
    for (uint32_t i = 0; i < sizeof msg; i++) {
        msg[i] = (uint8_t)(i * 7);
    }
    for (uint32_t len = 0; len <= sizeof msg; len++) {
        struct qn_course c = {0};
        uint32_t at = 0;
        do {
            struct qn_frame f = qn_frame_cut(msg, len, at, &limits);
            cr_assert(qn_course_fits(&c, &f, &limits), "%u of %u", at, len);
            memcpy(got + at, f.data, f.len);
            qn_course_advance(&c, &f);
            at += f.len;
            cr_assert_eq(c.done, at);
            cr_assert_eq(c.inside, at < len);
        } while (at < len);
        cr_assert_eq(c.total, len);
        cr_assert_eq(memcmp(got, msg, len), 0);
    }
}

/* Against the grammar written out: what may come between two messages, and
 * behind a FIRST of 52 of 100 bytes. */
Test(frames, nothing_else_fits)
{
    const struct qn_frame first = {
        .kind = QN_FRAME_FIRST, .len = 52, .total = 100};
    for (uint32_t inside = 0; inside < 2; inside++) {
        struct qn_course c = {0};
        if (inside) {
            qn_course_advance(&c, &first);
        }
        for (uint32_t kind = 0; kind < 256; kind++) {
            for (uint32_t len = 0; len < 60; len++) {
                const struct qn_frame f = {
                    .kind = (enum qn_frame_kind)kind, .len = len, .total = 300};
                const bool want[] = {
                    [QN_FRAME_ONLY] = !inside && len <= 56,
                    [QN_FRAME_FIRST] = !inside && len <= 52,
                    [QN_FRAME_MORE] = inside && len <= 48,
                    [QN_FRAME_LAST] = inside && len == 48,
                    [QN_FRAME_ABORT] = inside && len == 0,
                };
                cr_assert_eq(qn_course_fits(&c, &f, &limits),
                             kind < QN_ARRAY_COUNT(want) && want[kind],
                             "kind %u length %u inside %u", kind, len, inside);
            }
        }
    }
}

Test(frames, a_total_is_neither_above_the_limit_nor_below_its_first_part)
{
    static const struct {
        uint32_t total;
        bool fits;
    } row[] = {{0, false},   {51, false},   {52, true},
               {1000, true}, {1001, false}, {UINT32_MAX, false}};
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(row); i++) {
        const struct qn_course c = {0};
        const struct qn_frame f = {
            .kind = QN_FRAME_FIRST, .len = 52, .total = row[i].total};
        cr_assert_eq(qn_course_fits(&c, &f, &limits), row[i].fits, "%u",
                     row[i].total);
    }
}

Test(frames, an_abort_leaves_nothing_behind)
{
    struct qn_course c = {0};
    const struct qn_frame f[] = {
        {.kind = QN_FRAME_FIRST, .len = 9, .total = 99},
        {.kind = QN_FRAME_ABORT},
        {.kind = QN_FRAME_ONLY, .len = 3, .total = 3}};
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert(qn_course_fits(&c, &f[i], &limits));
        qn_course_advance(&c, &f[i]);
    }
    cr_assert(!c.inside && c.total == 3 && c.done == 3);
}
