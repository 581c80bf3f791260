/* A place has one owner at a time, by the compare-and-swap of `join`. */
#include "core/sync/clients.h"

#include "core/base/assert.h"
#include "core/base/err.h"

enum { FREE = 0, TAKEN = 1 };

void qn_sync_places_format(struct qn_sync_place *p, uint32_t capacity)
{
    for (uint32_t i = 0; i < capacity; i++) {
        /* relaxed: no other thread has the places yet. */
        qn_store(&p[i].node, i, QN_RELAXED);
    }
}

static bool take(struct qn_sync_place *p)
{
    uint32_t state = FREE;
    /* relaxed: the compare-and-swap decides.
     * acquire -> the release of qn_sync_leave: the node's number, and what its
     * last owner has done with it. */
    return qn_load(&p->state, QN_RELAXED) == FREE &&
           qn_cas(&p->state, &state, TAKEN, QN_ACQUIRE);
}

int qn_sync_join(struct qn_sync_place *p, uint32_t capacity, uint32_t *place,
                 uint32_t *node)
{
    QN_ASSERT(capacity >= 1 && capacity <= QN_SYNC_CLIENTS_MAX);
    for (uint32_t i = 0; i < capacity; i++) {
        if (take(&p[i])) {
            *place = i;
            /* relaxed: the place is this client's own now. */
            *node = qn_load(&p[i].node, QN_RELAXED);
            return QN_OK;
        }
    }
    return QN_EAGAIN;
}

void qn_sync_leave(struct qn_sync_place *p, uint32_t place, uint32_t node_now)
{
    /* relaxed twice: only the owner of a place writes it. */
    QN_ASSERT(qn_load(&p[place].state, QN_RELAXED) == TAKEN);
    qn_store(&p[place].node, node_now, QN_RELAXED);
    /* release -> the acquire of qn_sync_join. */
    qn_store(&p[place].state, FREE, QN_RELEASE);
}
