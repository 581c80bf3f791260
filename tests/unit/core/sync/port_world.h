#ifndef QN_TESTS_UNIT_SYNC_PORT_WORLD_H
#define QN_TESTS_UNIT_SYNC_PORT_WORLD_H

/** A device of words in private memory, an attachment for each node, and a port
 *  on each. */

#include <stdlib.h>
#include <string.h>

#include "core/sync/port.h"
#include "tests/support/test.h"

#define PORTS_MAX 42u

struct port_world {
    const struct qn_device_type *type;
    uint32_t nodes;
    uint8_t *memory;
    uint64_t inc[PORTS_MAX];
    struct qn_doorbell_line line[PORTS_MAX];
    struct qn_doorbell doorbell[PORTS_MAX];
    struct qn_doorbell_handle ringer[PORTS_MAX][PORTS_MAX]; /* [i][j]: i rings j
                                                             */
    struct qn_device *device[PORTS_MAX];
    struct qn_sync_port port[PORTS_MAX];
};

/** @param asleep  With doorbells. */
static inline void port_world_make(struct port_world *w,
                                   const struct qn_device_type *type,
                                   uint32_t nodes, bool asleep)
{
    const struct qn_device_opts opts = {.nodes = nodes, .lanes = 1};
    const size_t bytes = type->bytes(&opts);
    memset(w, 0, sizeof *w);
    w->type = type;
    w->nodes = nodes;
    w->memory = aligned_alloc(QN_CACHELINE, bytes);
    cr_assert_not_null(w->memory);
    memset(w->memory, 0, bytes);
    type->format(w->memory, &opts);
    for (uint32_t i = 0; i < nodes; i++) {
        w->inc[i] = 1 + i;
        qn_doorbell_init(&w->doorbell[i], &w->line[i], -1);
        for (uint32_t k = 0; k < nodes; k++) {
            qn_doorbell_handle_init(&w->ringer[k][i], &w->line[i], -1);
        }
    }
    for (uint32_t i = 0; i < nodes; i++) {
        const struct qn_device_attach_opts o = {
            .memory = w->memory,
            .opts = &opts,
            .self = i,
            .incarnation = w->inc,
            .doorbell = asleep ? &w->doorbell[i] : NULL,
            .ringer = asleep ? w->ringer[i] : NULL};
        cr_assert_eq(type->attach(&w->device[i], &o), QN_OK);
        cr_assert_eq(qn_sync_port_open(&w->port[i], w->device[i]), QN_OK);
    }
}

static inline void port_world_free(struct port_world *w)
{
    for (uint32_t i = 0; i < w->nodes; i++) {
        qn_sync_port_close(&w->port[i]);
        qn_device_detach(w->device[i]);
    }
    free(w->memory);
}

/** Zeroed lines. */
static inline void *lines_of(size_t bytes)
{
    void *memory = aligned_alloc(QN_CACHELINE, bytes);
    cr_assert_not_null(memory);
    memset(memory, 0, bytes);
    return memory;
}

#endif
