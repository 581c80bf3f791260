#ifndef QN_TESTS_DELEGATE_WORLD_H
#define QN_TESTS_DELEGATE_WORLD_H

/**
 * An object over any backend that has executors among its clients, for tests.
 */

#include "core/sync/delegate/delegate.h"

enum {
    ADD, /* to the counter; returns what it was */
    TOP, /* returns all bits set */
    NEST /* adds 1 to `inner` with the client `nested`; returns its result, or
            the error, plain */
};

struct world {
    void *memory;
    size_t bytes;
    struct qn_delegate d;
    uint64_t counter;    /* plain: the backend excludes */
    struct world *inner; /* NULL: the object itself */
    struct qn_delegate_client *nested;
};

/** A new object. */
void world_make(struct world *w, const struct qn_delegate_opts *o);

void world_free(struct world *w);

#endif
