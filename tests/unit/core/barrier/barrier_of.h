#ifndef QN_TESTS_BARRIER_OF_H
#define QN_TESTS_BARRIER_OF_H

/** A barrier in memory of its own, for tests. */

#include <stdlib.h>
#include <string.h>

#include "core/barrier/barrier.h"
#include "core/base/err.h"
#include "tests/support/test.h"

#define EACH_FORM(form)                                                        \
    for (const struct qn_barrier_form *const *at_ = qn_barrier_forms, *form;   \
         (form = *at_) != NULL; at_++)

/** @return a new barrier; free() it. */
static inline void *barrier_of(const struct qn_barrier_opts *o)
{
    const size_t bytes = qn_barrier_bytes(o);
    void *memory = aligned_alloc(QN_CACHELINE, bytes);
    cr_assert_not_null(memory);
    memset(memory, 0xa5, bytes);
    cr_assert_eq(qn_barrier_format(memory, bytes, o), QN_OK);
    return memory;
}

#endif
