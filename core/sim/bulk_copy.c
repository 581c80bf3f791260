/*
 * Stands for core/coll/large/bulk_copy.c on the simulated machine: the
 * scheduler prices a copy, or it goes by lines, as other copies do.
 */
#include "core/coll/large/bulk_copy.h"

#include "core/base/mark.h"
#include "core/sim/machine.h"

static bool is_priced(void *to, const void *from, size_t n, bool moves)
{
    return qn_sim.self != QN_SIM_NO_NODE && qn_sim.scheduler->bulk != NULL &&
           n > 0 && qn_sim.scheduler->bulk(to, from, n, moves);
}

void qn_bulk_copy(void *to, const void *from, size_t n)
{
    if (!is_priced(to, from, n, true)) {
        qn_copy_in(to, from, n);
        qn_touch_out(to, n);
    }
}

void qn_bulk_touch(const void *to, const void *from, size_t n)
{
    if (!is_priced((void *)(uintptr_t)to, from, n, false)) {
        qn_touch_in(from, n);
        qn_touch_out(to, n);
    }
}
