#include "tests/unit/core/sync/object/collection_kinds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "tests/support/test.h"

const struct collection_kind collection_kinds[COLLECTION_KINDS] = {
    {.name = "lcrq", .capacity = 1, .ring = 2},
    {.name = "lcrq", .capacity = 40, .ring = 4},
    {.name = "lcrq", .capacity = 100},
    {.name = "lcrq32", .capacity = 1, .ring = 2},
    {.name = "lcrq32", .capacity = 40, .ring = 8},
    {.name = "lcrq_numa", .capacity = 40, .ring = 4},
    {.name = "ms1", .backend = "lock", .lock = "mcs", .capacity = 1},
    {.name = "ms1", .backend = "cc_synch", .capacity = 40},
    {.name = "ms2", .backend = "lock", .lock = "clh", .capacity = 40},
    {.name = "ms2", .backend = "cc_synch", .capacity = 1},
    {.name = "ms2", .backend = "h_synch", .capacity = 40},
    {.name = "list", .backend = "lock", .lock = "tas", .capacity = 1},
    {.name = "list", .backend = "cc_synch", .capacity = 40},
    {.name = "treiber", .capacity = 1, .batch = 1},
    {.name = "treiber", .capacity = 40},
};

static struct qn_collection_opts opts_of(const struct collection_kind *kind,
                                         uint32_t clients)
{
    return (struct qn_collection_opts){
        .type = qn_collection_find(kind->name),
        .clients = clients,
        .capacity = kind->capacity,
        .ring = kind->ring,
        .batch = kind->batch,
        .pause_ns = 20 * QN_US,
    };
}

void collection_make(struct collection *t, const struct collection_kind *kind,
                     uint32_t clients)
{
    struct qn_delegate_opts d = {0};
    struct qn_collection_opts o = opts_of(kind, clients);
    if (kind->backend != NULL) {
        d.type = qn_delegate_find(kind->backend);
        d.domains = strcmp(kind->backend, "h_synch") == 0 ? 2 : 0;
        d.lock = kind->lock == NULL ? NULL : qn_lock_find(kind->lock);
        o.delegate = &d;
    }
    size_t bytes = qn_collection_bytes(&o);
    cr_assert_neq(bytes, 0, "%s", collection_text(kind));
    t->kind = *kind;
    t->memory = aligned_alloc(QN_CACHELINE, bytes);
    cr_assert_neq(t->memory, NULL);
    memset(t->memory, 0, bytes);
    cr_assert_eq(qn_collection_format(t->memory, &o), QN_OK);
    cr_assert_eq(qn_collection_open(&t->q, t->memory), QN_OK);
}

void collection_free(struct collection *t)
{
    free(t->memory);
}

const char *collection_text(const struct collection_kind *kind)
{
    static char text[100];
    snprintf(text, sizeof text, "%s of %u, cells %u, batch %u, %s %s",
             kind->name, kind->capacity, kind->ring, kind->batch,
             kind->backend == NULL ? "" : kind->backend,
             kind->lock == NULL ? "" : kind->lock);
    return text;
}
