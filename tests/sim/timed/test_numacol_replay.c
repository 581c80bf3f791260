/* The rows of `quoin sim replay numacol` that take little time: what holds goes
 * on holding. */
#include <stdint.h>

#include "core/base/err.h"
#include "loadgen/simulate/large/numacol_replay.h"
#include "tests/support/test.h"

static void check(void *ctx, const struct qn_replay_row *r)
{
    uint32_t *rows = ctx;
    const bool holds = qn_replay_row_holds(r);
    cr_expect(holds, "%s: %f, limit %f", r->what, r->got, r->limit);
    ++*rows;
}

Test(numacol_replay, rows_hold)
{
    uint32_t rows = 0;
    cr_assert_eq(qn_numacol_replay(true, check, &rows), QN_OK);
    cr_assert_eq(rows, 7, "docs/replayed.md");
}
