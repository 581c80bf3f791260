#ifndef QN_TESTS_UNIT_COLLECTION_KINDS_H
#define QN_TESTS_UNIT_COLLECTION_KINDS_H

/** The collections that tests use: each type, in its smallest forms. */

#include "core/sync/object/collection.h"

struct collection_kind {
    const char *name;    /* of the type */
    const char *backend; /* of its delegates, or NULL */
    const char *lock;    /* of that, or NULL */
    uint32_t capacity;
    uint32_t ring;  /* cells */
    uint32_t batch; /* nodes */
};

#define COLLECTION_KINDS 15u

extern const struct collection_kind collection_kinds[COLLECTION_KINDS];

struct collection {
    struct collection_kind kind;
    void *memory; /* allocated */
    struct qn_collection q;
};

/** @param clients  How many may join. */
void collection_make(struct collection *t, const struct collection_kind *kind,
                     uint32_t clients);
void collection_free(struct collection *t);

/** "lcrq, 2 cells": a constant until the next call. */
const char *collection_text(const struct collection_kind *kind);

#endif
