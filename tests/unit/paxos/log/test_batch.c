#include "core/base/little_endian.h"
#include "paxos/log/batch.h"
#include "tests/support/test.h"

#include <string.h>

static struct qn_slice slice(const char *s)
{
    return (struct qn_slice){(const uint8_t *)s, strlen(s)};
}

static struct qn_slice all(const struct qn_refbuf *b)
{
    return (struct qn_slice){b->bytes, b->len};
}

static struct qn_refbuf *commands(const char *const *text, uint32_t n)
{
    struct qn_refbuf *b = qn_refbuf_create(&qn_alloc_malloc, 0);
    for (uint32_t i = 0; i < n; i++) {
        struct qn_slice part = slice(text[i]);
        cr_assert_eq(qn_commands_add(&b, &part, 1), QN_OK);
    }
    return b;
}

/* Two runs: node 3 (incarnation 9) with a, bb from sequence 100; node 0
 * with one empty command. */
static struct qn_refbuf *batch_of_two_runs(void)
{
    struct qn_refbuf *one = commands((const char *[]){"a", "bb"}, 2);
    struct qn_refbuf *two = commands((const char *[]){""}, 1);
    struct qn_refbuf *b = qn_batch_create(&qn_alloc_malloc, 0);
    struct qn_command_run g = {3, 9, 100, 2, all(one)};
    cr_assert_eq(qn_batch_add(&b, &g), QN_OK);
    g = (struct qn_command_run){0, UINT64_MAX, 1, 1, all(two)};
    cr_assert_eq(qn_batch_add(&b, &g), QN_OK);
    qn_batch_set_stamp(b, 0x0123456789abcdef);
    qn_refbuf_unref(one);
    qn_refbuf_unref(two);
    return b;
}

Test(batch, commands_come_back_in_order)
{
    struct qn_refbuf *b = commands((const char *[]){"one", "", "three"}, 3);
    struct qn_slice list = all(b), c;
    cr_assert_eq(qn_commands_check(list), 3);
    cr_assert(qn_commands_next(&list, &c) && c.len == 3);
    cr_assert_arr_eq(c.data, "one", 3);
    cr_assert(qn_commands_next(&list, &c) && c.len == 0);
    cr_assert(qn_commands_next(&list, &c) && c.len == 5);
    cr_assert_arr_eq(c.data, "three", 5);
    cr_assert(!qn_commands_next(&list, &c));
    qn_refbuf_unref(b);
}

Test(batch, parts_become_one_command)
{
    struct qn_refbuf *b = qn_refbuf_create(&qn_alloc_malloc, 0);
    struct qn_slice parts[] = {slice("ab"), {NULL, 0}, slice("c")}, c;
    cr_assert_eq(qn_commands_add(&b, parts, 3), QN_OK);
    struct qn_slice list = all(b);
    cr_assert(qn_commands_next(&list, &c) && c.len == 3);
    cr_assert_arr_eq(c.data, "abc", 3);
    qn_refbuf_unref(b);
}

Test(batch, a_small_set_costs_one_byte_beside_itself)
{
    struct qn_refbuf *b =
        commands((const char *[]){"0123456789012345678901234567890"}, 1);
    cr_assert_eq(b->len, 32u);
    qn_refbuf_unref(b);
}

Test(batch, a_command_above_the_limit_is_refused)
{
    static const uint8_t byte;
    struct qn_refbuf *b = qn_refbuf_create(&qn_alloc_malloc, 0);
    struct qn_slice parts[] = {{&byte, QN_COMMAND_MAX}, {&byte, 1}};
    cr_assert_eq(qn_commands_add(&b, parts, 2), QN_EMSGSIZE);
    cr_assert_eq(b->len, 0u);
    qn_refbuf_unref(b);
}

Test(batch, runs_come_back_as_they_were_added)
{
    struct qn_refbuf *b = batch_of_two_runs();
    cr_assert_eq(qn_batch_check(all(b)), QN_OK);
    cr_assert_eq(qn_batch_stamp(all(b)), 0x0123456789abcdefu);
    cr_assert_eq(qn_batch_count(all(b)), 3u);
    uint32_t at = 0;
    struct qn_command_run g;
    cr_assert(qn_batch_next(all(b), &at, &g));
    cr_assert(g.origin == 3 && g.inc == 9 && g.first == 100 && g.count == 2);
    cr_assert_eq(qn_commands_check(g.commands), 2);
    cr_assert(qn_batch_next(all(b), &at, &g));
    cr_assert(g.origin == 0 && g.inc == UINT64_MAX && g.first == 1);
    cr_assert(!qn_batch_next(all(b), &at, &g));
    qn_refbuf_unref(b);
}

Test(batch, a_batch_of_no_commands_is_a_batch)
{
    struct qn_refbuf *b = qn_batch_create(&qn_alloc_malloc, 0);
    uint32_t at = 0;
    struct qn_command_run g;
    cr_assert_eq(qn_batch_check(all(b)), QN_OK);
    cr_assert_eq(qn_batch_count(all(b)), 0u);
    cr_assert(!qn_batch_next(all(b), &at, &g));
    qn_refbuf_unref(b);
}

/* A cut between two runs leaves well-formed runs; the count tells. */
Test(batch, every_truncation_is_malformed)
{
    struct qn_refbuf *b = batch_of_two_runs();
    for (uint32_t len = 0; len < b->len; len++) {
        cr_expect_eq(qn_batch_check((struct qn_slice){b->bytes, len}),
                     QN_ECORRUPT, "%u bytes", len);
    }
    qn_refbuf_unref(b);
}

/* Whatever one byte is changed to: either refused, or read without leaving
 * the bytes (the sanitizers watch). */
Test(batch, every_changed_byte_is_refused_or_readable)
{
    struct qn_refbuf *b = batch_of_two_runs();
    for (uint32_t i = 0; i < b->len; i++) {
        uint8_t was = b->bytes[i];
        for (unsigned v = 0; v < 256; v++) {
            b->bytes[i] = (uint8_t)v;
            if (qn_batch_check(all(b)) != QN_OK) {
                continue;
            }
            uint32_t at = 0, count = 0;
            struct qn_command_run g;
            while (qn_batch_next(all(b), &at, &g)) {
                struct qn_slice c;
                cr_assert(g.origin < QN_NODES_MAX);
                while (qn_commands_next(&g.commands, &c)) {
                    count++;
                }
            }
            cr_assert_eq(count, qn_batch_count(all(b)));
        }
        b->bytes[i] = was;
    }
    qn_refbuf_unref(b);
}

static int64_t check_bytes(const char *bytes, size_t len)
{
    return qn_commands_check((struct qn_slice){(const uint8_t *)bytes, len});
}

Test(batch, varints_must_be_short_and_fit)
{
    cr_assert_eq(check_bytes("\x00", 1), 1); /* empty command */
    cr_assert_eq(check_bytes("\x80\x00", 2),
                 QN_ECORRUPT);                         /* longer than need */
    cr_assert_eq(check_bytes("\x80", 1), QN_ECORRUPT); /* cut */
    cr_assert_eq(check_bytes("\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10),
                 QN_ECORRUPT); /* 65 bits */
    cr_assert_eq(check_bytes("\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10),
                 QN_ECORRUPT); /* 64 bits, longer than any command */
}

Test(batch, a_reference_is_reserved)
{
    cr_assert_eq(check_bytes("\x03X", 2), QN_ECORRUPT);
    cr_assert_eq(check_bytes("\x02X", 2), 1);
}

Test(batch, little_endian_of_every_width)
{
    uint8_t b[8];
    for (unsigned n = 1; n <= 8; n++) {
        uint64_t v =
            UINT64_C(0x8877665544332211) & (~UINT64_C(0) >> (64 - 8 * n));
        qn_put_le(b, v, n);
        cr_assert_eq(b[0], 0x11);
        cr_assert_eq(qn_get_le(b, n), v);
    }
}
