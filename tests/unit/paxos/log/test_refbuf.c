#include "paxos/log/refbuf.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

/* Counts what is outstanding; fails when `left` calls have been made. */
struct counting {
    int left, live;
};

static void *counting_resize(void *ctx, void *p, size_t bytes)
{
    struct counting *c = ctx;
    if (bytes == 0) {
        c->live -= p != NULL;
        free(p);
        return NULL;
    }
    if (c->left-- <= 0) {
        return NULL;
    }
    c->live += p == NULL;
    return realloc(p, bytes);
}

Test(refbuf, copy_holds_the_bytes_and_one_reference)
{
    struct qn_refbuf *b = qn_refbuf_copy(&qn_alloc_malloc, "abc", 3);
    cr_assert_not_null(b);
    cr_assert_eq(b->refs, 1u);
    cr_assert_eq(b->len, 3u);
    cr_assert_arr_eq(b->bytes, "abc", 3);
    qn_refbuf_unref(b);
}

Test(refbuf, empty_is_a_refbuf)
{
    struct qn_refbuf *b = qn_refbuf_copy(&qn_alloc_malloc, NULL, 0);
    cr_assert_not_null(b);
    cr_assert_eq(b->len, 0u);
    qn_refbuf_unref(b);
    qn_refbuf_unref(NULL);
}

Test(refbuf, the_last_reference_frees)
{
    struct counting c = {.left = 1};
    struct qn_alloc a = {counting_resize, &c};
    struct qn_refbuf *b = qn_refbuf_copy(&a, "x", 1);
    qn_refbuf_ref(b);
    qn_refbuf_unref(b);
    cr_assert_eq(c.live, 1);
    qn_refbuf_unref(b);
    cr_assert_eq(c.live, 0);
}

Test(refbuf, reserve_grows_at_least_twofold_and_keeps_the_bytes)
{
    struct qn_refbuf *b = qn_refbuf_copy(&qn_alloc_malloc, "abcd", 4);
    cr_assert_eq(qn_refbuf_reserve(&b, 1), QN_OK);
    cr_assert_eq(b->cap, 8u);
    cr_assert_eq(qn_refbuf_reserve(&b, 1000), QN_OK);
    cr_assert_eq(b->cap, 1004u);
    cr_assert_arr_eq(b->bytes, "abcd", 4);
    qn_refbuf_unref(b);
}

Test(refbuf, without_memory_nothing_changes)
{
    struct counting c = {.left = 1};
    struct qn_alloc a = {counting_resize, &c};
    struct qn_refbuf *b = qn_refbuf_copy(&a, "abcd", 4);
    struct qn_refbuf *same = b;
    cr_assert_eq(qn_refbuf_reserve(&b, 1), QN_ENOMEM);
    cr_assert(b == same);
    cr_assert_eq(b->len, 4u);
    cr_assert_null(qn_refbuf_copy(&a, "x", 1));
    qn_refbuf_unref(b);
    cr_assert_eq(c.live, 0);
}

Test(refbuf, refuses_what_is_too_long)
{
    cr_assert_null(
        qn_refbuf_create(&qn_alloc_malloc, (size_t)QN_REFBUF_MAX + 1));
    struct qn_refbuf *b = qn_refbuf_copy(&qn_alloc_malloc, "abcd", 4);
    cr_assert_eq(qn_refbuf_reserve(&b, QN_REFBUF_MAX), QN_ENOMEM);
    qn_refbuf_unref(b);
}

Test(refbuf, a_shared_refbuf_never_grows, .signal = SIGABRT)
{
    struct qn_refbuf *b = qn_refbuf_copy(&qn_alloc_malloc, "abcd", 4);
    qn_refbuf_ref(b);
    qn_refbuf_reserve(&b, 100);
}
