/* What locks have in common: names, memory, clients. */
#include "core/sync/lock/lock.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/err.h"
#include "core/sync/lock/lock_internal.h"

_Static_assert(sizeof(struct qn_lock_memory) == 2 * QN_CACHELINE,
               "constants and the word do not share a line");
_Static_assert(sizeof(struct qn_lock_node) == QN_CACHELINE, "one line each");

const struct qn_lock_type *const qn_lock_types[] = {
    &qn_lock_tas, &qn_lock_ttas,    &qn_lock_mcs,
    &qn_lock_clh, &qn_lock_hyblock, NULL};

static uint32_t number_of(const char *name)
{
    uint32_t i = 0;
    while (qn_lock_types[i] != NULL &&
           strcmp(qn_lock_types[i]->name, name) != 0) {
        i++;
    }
    return i;
}

const struct qn_lock_type *qn_lock_find(const char *name)
{
    return qn_lock_types[number_of(name)];
}

/* Where the nodes begin, in bytes. */
static size_t nodes_at(uint32_t clients)
{
    return sizeof(struct qn_lock_memory) +
           qn_align_up(clients * sizeof(struct qn_sync_place), QN_CACHELINE);
}

/* Behind format. */
static struct qn_lock_node *nodes_of(struct qn_lock_memory *m)
{
    /* relaxed: constant since before the caller got the memory. */
    const uint32_t clients = qn_load(&m->clients, QN_RELAXED);
    return (struct qn_lock_node *)((char *)m + nodes_at(clients));
}

size_t qn_lock_bytes(const struct qn_lock_type *type,
                     const struct qn_lock_opts *opts)
{
    if (opts->clients < 1 || opts->clients > QN_SYNC_CLIENTS_MAX) {
        return 0;
    }
    return nodes_at(opts->clients) +
           (opts->clients + type->spare) * sizeof(struct qn_lock_node);
}

int qn_lock_format(const struct qn_lock_type *type, void *memory,
                   const struct qn_lock_opts *opts)
{
    struct qn_lock_memory *m = memory;
    if (qn_lock_bytes(type, opts) == 0) {
        return QN_EINVAL;
    }
    QN_ASSERT((uintptr_t)memory % QN_CACHELINE == 0);
    /* relaxed, all: no other thread has the lock yet. */
    qn_store(&m->type, qn_sync_says(number_of(type->name)), QN_RELAXED);
    qn_store(&m->clients, opts->clients, QN_RELAXED);
    qn_store(&m->own_cores, opts->own_cores, QN_RELAXED);
    qn_sync_places_format(m->place, opts->clients);
    if (type->format != NULL) {
        type->format(m, nodes_of(m), opts->clients);
    }
    return QN_OK;
}

int qn_lock_join(const struct qn_lock_type *type, void *memory,
                 struct qn_sync_port *port, struct qn_lock_client *c)
{
    struct qn_lock_memory *m = memory;
    /* relaxed, all: constant since before the caller got the memory. */
    const uint32_t clients = qn_load(&m->clients, QN_RELAXED);
    if (qn_load(&m->type, QN_RELAXED) != qn_sync_says(number_of(type->name))) {
        return QN_EINVAL;
    }
    struct qn_lock_client new = {.type = type,
                                 .memory = m,
                                 .nodes = nodes_of(m),
                                 .port = port,
                                 .own_cores =
                                     qn_load(&m->own_cores, QN_RELAXED) != 0};
    int err = qn_sync_join(m->place, clients, &new.place, &new.node);
    if (err == QN_OK && type->join != NULL) {
        err = type->join(&new);
        if (err != QN_OK) {
            qn_sync_leave(m->place, new.place, new.node);
        }
    }
    if (err == QN_OK) {
        *c = new;
    }
    return err;
}

void qn_lock_leave(struct qn_lock_client *c)
{
    if (c->type->leave != NULL) {
        c->type->leave(c);
    }
    qn_sync_leave(c->memory->place, c->place, c->node);
}

int qn_lock_untimed(struct qn_lock_client *c, qn_time_t deadline)
{
    (void)c;
    (void)deadline;
    return QN_ENOSYS;
}
