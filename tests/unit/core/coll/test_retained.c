#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/coll/retained.h"
#include "tests/support/test.h"

#define LEN_MAX 100u
#define FIRST   (UINT32_MAX - 5000u) /* numbers wrap on the way */

static void add(struct qn_retained *r, uint32_t number, uint32_t len)
{
    uint8_t msg[LEN_MAX];
    memset(msg, (int)number, sizeof msg);
    const struct qn_tag t = {.source = 1, .incarnation = 2, .number = number};
    qn_retained_add(r, &t, msg, len);
    cr_assert_eq(r->last, number);
}

static void check(const struct qn_retained *r, uint32_t number, uint32_t len)
{
    const struct qn_retained_message *m = qn_retained_at(r, number);
    cr_assert_eq(m->len, len);
    cr_assert_eq(m->tag.number, number);
    for (uint32_t i = 0; i < len; i++) {
        cr_assert_eq(m->msg[i], (uint8_t)number, "%u of message %u", i, number);
    }
    memset(m->msg - QN_RETAINED_ROOM, 255, QN_RETAINED_ROOM); /* it is ours */
}

Test(retained, messages_are_bounded)
{
    struct qn_retained r;
    cr_assert_eq(qn_retained_init(&r, 4, 4 * qn_retained_cost(8), 8, 0), QN_OK);
    for (uint32_t k = 1; k <= 4; k++) {
        cr_assert(qn_retained_fits(&r, 8));
        add(&r, k, 0);
    }
    cr_assert(!qn_retained_fits(&r, 0), "a fifth one");
    qn_retained_release(&r, 1);
    cr_assert(qn_retained_fits(&r, 0));
    qn_retained_fini(&r);
}

Test(retained, bytes_are_bounded)
{
    struct qn_retained r;
    cr_assert_eq(
        qn_retained_init(&r, 64, qn_retained_cost(LEN_MAX) - 1, LEN_MAX, 0),
        QN_EINVAL);
    qn_retained_fini(&r);
    const size_t bound = 2 * qn_retained_cost(LEN_MAX);
    cr_assert_eq(qn_retained_init(&r, 64, bound, LEN_MAX, 0), QN_OK);
    add(&r, 1, LEN_MAX);
    cr_assert(qn_retained_fits(&r, LEN_MAX));
    add(&r, 2, LEN_MAX - 7);
    cr_assert(!qn_retained_fits(&r, 0), "cost is rounded up");
    qn_retained_release(&r, 1);
    cr_assert(qn_retained_fits(&r, LEN_MAX));
    qn_retained_fini(&r);
}

/* What fits by the bound has a place, wherever the ring stands. */
Test(retained, what_is_kept_stays_as_it_was_while_the_ring_goes_round)
{
    uint32_t len[64] = {0}, number = FIRST, oldest = FIRST + 1;
    uint64_t random = 7;
    struct qn_retained r;
    cr_assert_eq(qn_retained_init(&r, 64, 3 * qn_retained_cost(LEN_MAX) + 5,
                                  LEN_MAX, FIRST),
                 QN_OK);
    for (uint32_t i = 0; i < 20000; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695;
        const uint32_t draw = (uint32_t)(random >> 33);
        const uint32_t bytes = draw % 5 == 0 ? LEN_MAX : draw / 8 % 30;
        if (qn_retained_fits(&r, bytes)) {
            len[++number % 64] = bytes;
            add(&r, number, bytes);
        } else {
            const uint32_t kept = number - oldest + 1;
            oldest += 1 + (kept > 1 ? draw % kept : 0);
            qn_retained_release(&r, oldest - 1);
            qn_retained_release(&r, oldest - 2); /* older: nothing */
        }
        for (uint32_t k = oldest; k != number + 1; k++) {
            check(&r, k, len[k % 64]);
        }
    }
    cr_assert_lt(number, FIRST, "it has wrapped");
    qn_retained_fini(&r);
}
