/*
 * Each run has the same rows in the same order, so a row of one is compared
 * with the row of that number in the first.
 */
#include "loadgen/simulate/locks/locks_check.h"

#include "core/base/assert.h"
#include "core/base/err.h"

#define ROWS_MAX 256u

struct check {
    struct qn_locks_check *c;
    struct qn_locks_replay_opts o; /* of this run */
    uint32_t row;
    bool holds[ROWS_MAX]; /* in the first run */
};

static void compare(void *ctx, const struct qn_replay_row *row)
{
    struct check *k = ctx;
    struct qn_locks_check *c = k->c;
    const bool holds = qn_replay_row_holds(row);
    QN_ASSERT(k->row < ROWS_MAX);
    if (c->runs == 0) {
        k->holds[k->row] = holds;
        c->rows++;
        c->missed += !holds;
        c->each(c->ctx, row);
    } else if (holds != k->holds[k->row]) {
        c->differs(c->ctx, row, k->o.seed, k->o.jitter);
    }
    k->row++;
}

int qn_locks_check(struct qn_locks_check *c,
                   const struct qn_locks_replay_opts *o,
                   struct qn_parse_error *parse_error)
{
    struct check k = {.c = c, .o = *o};
    int rc = QN_OK;
    c->runs = c->rows = c->missed = 0;
    for (uint32_t i = 0; i < 2 * QN_LOCKS_CHECK_SEEDS && rc == QN_OK; i++) {
        k.o.seed = o->seed + i / 2;
        k.o.jitter = i % 2 == 0 ? 0 : QN_LOCKS_CHECK_JITTER;
        k.row = 0;
        rc = qn_locks_replay(&k.o, compare, &k, parse_error);
        c->runs++;
    }
    return rc;
}
