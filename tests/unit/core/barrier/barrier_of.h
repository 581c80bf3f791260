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

typedef int barrier_format_fn(void *memory, size_t bytes,
                              const struct qn_barrier_opts *o);

/** @return what `format` makes of new memory; free() it. */
static inline void *formatted(barrier_format_fn *format, size_t bytes,
                              const struct qn_barrier_opts *o)
{
    void *memory = aligned_alloc(QN_CACHELINE, bytes);
    cr_assert_not_null(memory);
    memset(memory, 0xa5, bytes);
    cr_assert_eq(format(memory, bytes, o), QN_OK);
    return memory;
}

/** @return a new barrier; free() it. */
static inline void *barrier_of(const struct qn_barrier_opts *o)
{
    return formatted(qn_barrier_format, qn_barrier_bytes(o), o);
}

#endif
