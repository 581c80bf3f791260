/*
 * Natively a copy is memcpy.
 */
#include "core/coll/large/bulk_copy.h"

#include "core/base/atomic.h"

void qn_bulk_copy(void *to, const void *from, size_t n)
{
    qn_copy_in(to, from, n);
}

void qn_bulk_touch(const void *to, const void *from, size_t n)
{
    (void)to;
    (void)from;
    (void)n;
}
