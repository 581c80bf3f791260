/*
 * How many clients each replica serves, as it says: `maxclients` bounds the sum
 * (kvs/frontend/admit.h). By message a count is 2 ms old.
 */
#include "core/base/assert.h"
#include "core/place/liveness.h"
#include "kvs/config/settings.h"
#include "kvs/server/server.h"

/* Of the other replicas that live. The kernel marks an incarnation as ended
 * before its connections break. One that ran wild may have overwritten that
 * mark and its count: more than there may be is nothing. */
uint64_t qn_server_clients_elsewhere(void *ctx, uint64_t most)
{
    const struct qn_server *s = ctx;
    uint64_t sum = 0;
    for (qn_node_t i = 0; i < s->boot->nodes; i++) {
        const struct qn_mapped_peer *p = s->peers.present[i];
        if (p != NULL && qn_liveness_check(s->commons, i, p->incarnation) !=
                             QN_LIVENESS_DEAD) {
            /* relaxed: a figure; nothing is read through it. */
            uint64_t n =
                qn_load(&qn_server_state_of(s, i)->counters[QN_COUNTER_CLIENTS],
                        QN_RELAXED);
            sum += n <= most ? n : 0;
        }
    }
    QN_ASSERT(sum / QN_NODES_MAX <= most);
    return sum;
}

void qn_server_clients_publish(void *ctx, uint64_t clients)
{
    const struct qn_server *s = ctx;
    struct qn_outbox_state *st = qn_outbox_state(s->outbox);
    /* relaxed: a figure, stored by this thread only. */
    qn_store(&st->counters[QN_COUNTER_CLIENTS], clients, QN_RELAXED);
}
