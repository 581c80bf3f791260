#ifndef QN_TESTS_LOCK_OF_H
#define QN_TESTS_LOCK_OF_H

/** A lock in memory of its own, for tests. */

#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/sync/lock/lock.h"
#include "tests/support/test.h"

/** Locks that need no port: calls with each. */
static inline bool lock_without_words(const struct qn_lock_type *type)
{
    return !type->words;
}

/** @return a new lock; free() it. */
static inline void *lock_of(const struct qn_lock_type *type, uint32_t clients)
{
    const struct qn_lock_opts o = {.clients = clients};
    const size_t bytes = qn_lock_bytes(type, &o);
    void *memory = aligned_alloc(QN_CACHELINE, bytes);
    cr_assert_not_null(memory);
    memset(memory, 0, bytes);
    cr_assert_eq(qn_lock_format(type, memory, &o), QN_OK);
    return memory;
}

#endif
