/*
 * How many clients each replica serves, as it says: `maxclients` bounds the sum
 * (kvs/frontend/admit.h). By message a count is 2 ms old.
 */
#include "core/base/assert.h"
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
        if (qn_member_lives(s->member, i)) {
            uint64_t n = qn_member_counter(s->member, i, QN_COUNTER_CLIENTS);
            sum += n <= most ? n : 0;
        }
    }
    QN_ASSERT(sum / QN_NODES_MAX <= most);
    return sum;
}

void qn_server_clients_publish(void *ctx, uint64_t clients)
{
    const struct qn_server *s = ctx;
    qn_member_counter_set(s->member, QN_COUNTER_CLIENTS, clients);
}
