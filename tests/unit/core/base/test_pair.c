/* Two words that change as one: nothing half is ever seen, and a move from any
 * other value fails. */
#include <pthread.h>

#include "core/base/atomic.h"
#include "tests/support/test.h"

#define MOVES 200000u

static struct qn_pair pair;

Test(pair, moves_only_from_the_very_value)
{
    struct qn_pair p = {.first = 3, .second = 7};
    uint64_t a = 0, b = 0;
    cr_assert(!qn_cas_pair(&p, 2, 7, 9, 9), "the first word differs");
    cr_assert(!qn_cas_pair(&p, 3, 6, 9, 9), "the second word differs");
    cr_assert(!qn_cas_pair(&p, 7, 3, 9, 9));
    qn_load_pair(&p, &a, &b);
    cr_assert(a == 3 && b == 7);
    cr_assert(qn_cas_pair(&p, 3, 7, UINT64_MAX, 0));
    qn_load_pair(&p, &a, &b);
    cr_assert(a == UINT64_MAX && b == 0);
}

/* Each value is (n, 3n): a reader that mixed two of them would see it. */
static void *mover(void *arg)
{
    (void)arg;
    for (uint64_t done = 0; done < MOVES;) {
        uint64_t n, m;
        qn_load_pair(&pair, &n, &m);
        cr_assert_eq(m, 3 * n, "half of a move was seen");
        done += qn_cas_pair(&pair, n, m, n + 1, 3 * (n + 1));
    }
    return NULL;
}

Test(pair, threads_see_whole_moves_only, .timeout = 60)
{
    pthread_t t[3];
    uint64_t n, m;
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(pthread_create(&t[i], NULL, mover, NULL), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(t[i], NULL);
    }
    qn_load_pair(&pair, &n, &m);
    cr_assert(n == 3 * MOVES && m == 3 * n, "a move was lost");
}
