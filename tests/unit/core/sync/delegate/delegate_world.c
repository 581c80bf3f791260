#include "tests/unit/core/sync/delegate/delegate_world.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

static uint64_t nest(struct world *w)
{
    const struct qn_delegate *d = w->inner != NULL ? &w->inner->d : &w->d;
    uint64_t result;
    const int rc = qn_delegate(d, w->nested, ADD, 1, &result);
    return rc == QN_OK ? result : (uint64_t)-rc;
}

static uint64_t run(void *ctx, uint32_t op, uint64_t arg)
{
    struct world *w = ctx;
    uint64_t was = w->counter;
    switch (op) {
    case ADD:
        w->counter += arg;
        return was;
    case TOP:
        return UINT64_MAX;
    default:
        return nest(w);
    }
}

void world_make(struct world *w, const struct qn_delegate_opts *o)
{
    *w = (struct world){.bytes = qn_delegate_bytes(o)};
    cr_assert_gt(w->bytes, 0);
    w->memory = aligned_alloc(QN_CACHELINE, w->bytes);
    cr_assert_not_null(w->memory);
    memset(w->memory, 0, w->bytes);
    cr_assert_eq(qn_delegate_format(w->memory, o), QN_OK);
    cr_assert_eq(qn_delegate_open(&w->d, w->memory, run, w), QN_OK);
}

void world_free(struct world *w)
{
    free(w->memory);
}
