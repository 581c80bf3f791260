/*
 * What the leader's flow control does, told: to the other members by the word
 * `held` of the own outbox, to the operator by one line per change.
 *
 * A member that is given up is not behind for ever: it takes a snapshot, or
 * reads what the ring still keeps, and is awaited again.
 */
#include <inttypes.h>

#include "core/base/log.h"
#include "paxos/driver_internal.h"

#define MIB (UINT64_C(1) << 20)

static void change_tell(const struct qn_driver *d, qn_node_t n, bool awaited)
{
    const struct qn_flow *f = qn_onepaxos_flow(d->machine);
    const struct qn_flow_member *m = &f->member[n];
    if (awaited) {
        qn_log(QN_LOG_INFO,
               "replica %u: waits for replica %u again, which lacks %" PRIu64
               " MiB",
               d->o.self, n, m->at.bytes / MIB);
    } else if (qn_driver_lives(d, n)) {
        qn_log(
            QN_LOG_WARN,
            "replica %u: waits no longer for replica %u, which lacks %" PRIu64
            " MiB (%" PRIu64 " slots) and has applied %" PRIu64
            " KiB in the last %" PRIu64
            " ms: it takes a snapshot when it goes on, unless the log still "
            "reaches back to it",
            d->o.self, n, m->at.bytes / MIB, m->slots, m->bytes / 1024,
            (uint64_t)((d->now - m->since) / QN_MS));
    }
}

static void held_tell(struct qn_driver *d, bool held)
{
    if (held == d->held) {
        return;
    }
    d->held = held;
    /* relaxed: it is a hint (qn_driver_held). */
    qn_store(&d->o.state->held, held, QN_RELAXED);
    if (held) {
        qn_log(QN_LOG_WARN,
               "replica %u: writes wait: a replica does not go on, and "
               "min-replicas-to-write forbids to go on without it; continue or "
               "end it",
               d->o.self);
    } else {
        qn_log(QN_LOG_INFO, "replica %u: writes go on", d->o.self);
    }
}

bool qn_driver_flow_look(struct qn_driver *d)
{
    const struct qn_flow *f = qn_onepaxos_flow(d->machine);
    bool leads = qn_onepaxos_role(d->machine) == QN_ACTIVE;
    uint64_t awaited = leads ? qn_flow_awaited(f) : 0;
    uint64_t changed = leads && d->leads ? awaited ^ d->awaited : 0;
    for (; changed != 0; changed &= changed - 1) {
        qn_node_t n = (qn_node_t)__builtin_ctzll(changed);
        change_tell(d, n, (awaited & qn_driver_bit(n)) != 0);
    }
    d->leads = leads;
    d->awaited = awaited;
    held_tell(d, leads && f->held);
    return leads && f->shut_at != 0;
}

bool qn_driver_flow(const struct qn_driver *d, struct qn_driver_flow *out)
{
    const struct qn_flow *f = qn_onepaxos_flow(d->machine);
    *out = (struct qn_driver_flow){
        .awaited = qn_flow_awaited(f),
        .held = f->held,
        .shut = qn_flow_shut(f, d->now),
        .given_up = f->given,
        .holds_given_up = f->holds,
    };
    for (qn_node_t n = 0; n < d->o.nodes; n++) {
        out->shut_by[n] = qn_flow_shut_by(f, n, d->now);
        out->lag_bytes[n] = f->member[n].at.bytes;
        out->lag_slots[n] = f->member[n].slots;
    }
    return qn_onepaxos_role(d->machine) == QN_ACTIVE;
}
