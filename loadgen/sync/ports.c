/* One attachment, one doorbell and one port for each core of a device. */
#include "loadgen/sync/ports.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"
#include "core/base/err.h"
#include "core/sync/port.h"
#include "core/wait/doorbell.h"
#include "core/words/words.h"

#define CORES QN_WORDS_CORES_MAX

struct qn_ports {
    const struct qn_device_type *type;
    uint32_t count;
    uint8_t *memory; /* owned; of the device */
    uint64_t incarnation[CORES];
    struct qn_doorbell_line line[CORES];
    struct qn_doorbell doorbell[CORES];
    struct qn_doorbell_handle ringer[CORES][CORES]; /* [i][k]: i rings k */
    struct qn_device *device[CORES];                /* owned */
    struct qn_sync_port port[CORES];
    qn_a32 taken[CORES];
};

static void make_doorbells(struct qn_ports *p)
{
    for (uint32_t k = 0; k < p->count; k++) {
        p->incarnation[k] = 1;
        qn_doorbell_init(&p->doorbell[k], &p->line[k], -1);
        for (uint32_t i = 0; i < p->count; i++) {
            qn_doorbell_handle_init(&p->ringer[i][k], &p->line[k], -1);
        }
    }
}

static int attach(struct qn_ports *p, const struct qn_device_opts *opts,
                  uint32_t i, bool looks_on)
{
    const struct qn_device_attach_opts o = {
        .memory = p->memory,
        .opts = opts,
        .self = i,
        .incarnation = p->incarnation,
        .doorbell = looks_on ? NULL : &p->doorbell[i],
        .ringer = looks_on ? NULL : p->ringer[i]};
    const int rc = p->type->attach(&p->device[i], &o);
    return rc == QN_OK ? qn_sync_port_open(&p->port[i], p->device[i]) : rc;
}

static void *zeroed(size_t bytes)
{
    const size_t whole =
        (bytes + QN_CACHELINE - 1) / QN_CACHELINE * QN_CACHELINE;
    void *memory = aligned_alloc(QN_CACHELINE, whole);
    if (memory != NULL) {
        memset(memory, 0, whole);
    }
    return memory;
}

int qn_ports_create(struct qn_ports **out, const struct qn_ports_opts *o)
{
    const uint32_t count = o->count;
    const struct qn_device_opts opts = {.nodes = count, .lanes = 1};
    if (count < 1 || count > CORES) {
        return QN_EINVAL;
    }
    struct qn_ports *p = zeroed(sizeof *p);
    if (p == NULL) {
        return QN_ENOMEM;
    }
    p->type = o->split ? &qn_words_split : &qn_words_shared;
    p->count = count;
    p->memory = zeroed(p->type->bytes(&opts));
    int rc = p->memory != NULL ? QN_OK : QN_ENOMEM;
    if (rc == QN_OK) {
        p->type->format(p->memory, &opts);
        make_doorbells(p);
    }
    for (uint32_t i = 0; i < count && rc == QN_OK; i++) {
        rc = attach(p, &opts, i, o->looks_on);
    }
    if (rc == QN_OK) {
        *out = p;
    } else {
        qn_ports_destroy(p);
    }
    return rc;
}

void qn_ports_destroy(struct qn_ports *p)
{
    if (p == NULL) {
        return;
    }
    for (uint32_t i = 0; i < p->count && p->device[i] != NULL; i++) {
        /* relaxed: it runs alone. */
        QN_ASSERT(qn_load(&p->taken[i], QN_RELAXED) == 0);
        if (p->port[i].device != NULL) {
            qn_sync_port_close(&p->port[i]);
        }
        qn_device_detach(p->device[i]);
    }
    free(p->memory);
    free(p);
}

struct qn_sync_port *qn_ports_take(struct qn_ports *p, uint32_t core)
{
    const bool any = core == QN_PORTS_ANY;
    for (uint32_t i = any ? 0 : core; i < (any ? p->count : core + 1); i++) {
        uint32_t is = 0;
        /* relaxed: the compare-and-swap decides; acquire -> give. */
        if (qn_load(&p->taken[i], QN_RELAXED) == 0 &&
            qn_cas(&p->taken[i], &is, 1, QN_ACQUIRE)) {
            return &p->port[i];
        }
    }
    return NULL;
}

void qn_ports_give(struct qn_ports *p, struct qn_sync_port *port)
{
    /* release -> take. */
    qn_store(&p->taken[port - p->port], 0, QN_RELEASE);
}
