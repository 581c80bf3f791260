/*
 * The rows of `quoin sim replay scc`: what holds goes on holding, and what does
 * not says why.
 */
#include <string.h>

#include "core/base/bits.h"
#include "core/base/err.h"
#include "loadgen/simulate/scc/scc_replay.h"
#include "tests/support/test.h"

/* Beginnings of the rows that stand with their reason. */
static const char *const missed[] = {
    "k = 7, in turn, 1 lines",
    "k = 47: 26",
    "48 cores put into one buffer",
};

struct seen {
    uint32_t rows, missed;
    uint32_t of[7]; /* rows of C1 to C6 */
};

static bool stands(const struct qn_replay_row *r)
{
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(missed); i++) {
        if (strncmp(r->what, missed[i], strlen(missed[i])) == 0) {
            return r->why != NULL;
        }
    }
    return false;
}

static void check(void *ctx, const struct qn_replay_row *r)
{
    struct seen *s = ctx;
    bool holds = qn_replay_row_holds(r);
    cr_assert(holds || stands(r), "%s %s: %f, limit %f", r->id, r->what, r->got,
              r->limit);
    s->rows++;
    s->missed += !holds;
    cr_assert(r->id[0] == 'C' && r->id[1] >= '1' && r->id[1] <= '6');
    s->of[r->id[1] - '0']++;
}

Test(scc_replay, rows_hold_or_say_why_not, .timeout = 200)
{
    struct seen s = {0};
    struct qn_parse_error e = {{0}};
    int rc = qn_scc_replay(QN_MACHINES "/scc.json", check, &s, &e);
    cr_assert_eq(rc, QN_OK, "%s%s", qn_strerror(rc), e.text);
    cr_assert_eq(s.missed, QN_ARRAY_COUNT(missed), "roadmap, transports.md");
    for (uint32_t i = 1; i <= 6; i++) {
        cr_assert_geq(s.of[i], 4, "C%u", i);
    }
}

Test(scc_replay, another_kind_of_machine_is_refused)
{
    struct seen s = {0};
    struct qn_parse_error e = {{0}};
    cr_assert_eq(qn_scc_replay(QN_MACHINES "/tilegx_8036.json", check, &s, &e),
                 QN_EINVAL);
    cr_assert_eq(s.rows, 0);
}
