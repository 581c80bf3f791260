/*
 * What members say of themselves: in their outboxes, or in their last message
 * where no member reads another's (PROTOCOL.md 3.7).
 */
#include <assert.h>
#include <stddef.h>

#include "core/base/assert.h"
#include "paxos/member/member_internal.h"

static_assert(offsetof(struct qn_outbox_state, counters) / sizeof(qn_a64) % 8 ==
                      7 &&
                  QN_CACHELINE == 8 * sizeof(qn_a64),
              "QN_MEMBER_COUNTER_LINE");
static_assert(QN_MEMBER_COUNTERS ==
                  sizeof(((struct qn_outbox_state *)0)->counters) /
                      sizeof(qn_a64),
              "all counters of an outbox");

static const struct qn_outbox_state *state_of(const struct qn_member *m,
                                              qn_node_t i)
{
    const struct qn_mapped_peer *p = m->peers.present[i];
    if (i == m->o.self) {
        return qn_outbox_state(m->outbox);
    }
    QN_ASSERT(p != NULL);
    return m->o.shares ? qn_outbox_state(p->outbox)
                       : qn_driver_said(m->driver, i);
}

/* relaxed, here and below: figures, each whole in itself. */
uint64_t qn_member_phase(const struct qn_member *m, qn_node_t node)
{
    return qn_load(&state_of(m, node)->phase, QN_RELAXED);
}

void qn_member_phase_set(struct qn_member *m, uint64_t phase)
{
    qn_store(&qn_outbox_state(m->outbox)->phase, phase, QN_RELAXED);
}

uint64_t qn_member_counter(const struct qn_member *m, qn_node_t node,
                           uint32_t k)
{
    QN_ASSERT(k < QN_MEMBER_COUNTERS);
    return qn_load(&state_of(m, node)->counters[k], QN_RELAXED);
}

void qn_member_counter_set(struct qn_member *m, uint32_t k, uint64_t value)
{
    QN_ASSERT(k < QN_MEMBER_COUNTERS);
    qn_store(&qn_outbox_state(m->outbox)->counters[k], value, QN_RELAXED);
}

static const struct qn_outbox *outbox_of(const struct qn_member *m,
                                         qn_node_t node)
{
    const struct qn_mapped_peer *p = m->peers.present[node];
    return node == m->o.self ? m->outbox : p != NULL ? p->outbox : NULL;
}

uint64_t qn_member_turns(const struct qn_member *m, qn_node_t node)
{
    const struct qn_outbox *o = outbox_of(m, node);
    QN_ASSERT(o != NULL);
    return qn_load(&qn_outbox_state(o)->turns, QN_RELAXED);
}

const void *qn_member_flight(const struct qn_member *m, qn_node_t node,
                             uint64_t *incarnation)
{
    const struct qn_outbox *o = outbox_of(m, node);
    if (o == NULL) {
        return NULL;
    }
    *incarnation = qn_outbox_incarnation(o);
    return qn_outbox_flight(o);
}

uint64_t qn_member_epoch(const struct qn_member *m)
{
    return qn_load(&qn_outbox_state(m->outbox)->epoch, QN_RELAXED);
}
