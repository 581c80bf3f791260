/* See role_log.h. */
#include "kvs/server/machine/role_log.h"

#include "core/base/assert.h"

void qn_role_log_step(struct qn_role_log *l, uint64_t epoch,
                      const struct qn_role_view *v, struct qn_role_actions *out)
{
    *out = (struct qn_role_actions){0};
    QN_ASSERT(qn_role_log_due(l, epoch));
    QN_ASSERT(v->leads || !v->active);
    if (v->leads && !v->active) {
        return; /* it may not become the leader after all */
    }
    l->epoch = epoch;
    out->log_leads = v->leads;
    out->deposed = v->suspected;
}

static uint64_t bit(qn_node_t i)
{
    return (uint64_t)1 << i;
}

static qn_node_t first_of(uint64_t mask)
{
    QN_ASSERT(mask != 0);
    return (qn_node_t)__builtin_ctzll(mask);
}

/* The first replica in the mask that the kernel does not say is stopped. */
static uint64_t first_running(uint64_t mask, const struct qn_peer_facts *facts)
{
    for (uint64_t m = mask; m != 0; m &= m - 1) {
        if (!facts->stopped(facts->ctx, first_of(m))) {
            return bit(first_of(m));
        }
    }
    return 0;
}

/* Memory acceptor. Stopped: the replica with the longest log. Else the first
 * that is not waited for; and if all are, the first that is not stopped. */
static bool speaks_for_memory(const struct qn_role_log_view *v,
                              const struct qn_peer_facts *facts)
{
    if (v->stopped) {
        return v->self == v->longest;
    }
    uint64_t able = v->alive & ~v->awaited;
    if (able == 0) {
        able = first_running(v->alive, facts);
    }
    return able != 0 && v->self == first_of(able);
}

/* The leader has overwritten it, so it may log nothing any more. */
static bool speaks_of_register(const struct qn_role_log_view *v,
                               const struct qn_peer_facts *facts)
{
    uint64_t able = first_running(v->alive & ~bit(v->leader), facts);
    return v->self == (able != 0 ? first_of(able) : v->leader);
}

static enum qn_halt_line overwritten(struct qn_role_log *l,
                                     const struct qn_role_log_view *v,
                                     const struct qn_peer_facts *facts)
{
    QN_ASSERT(v->stopped);
    QN_ASSERT(v->memory);
    if (l->said_overwritten || !speaks_of_register(v, facts)) {
        return QN_HALT_LINE_NONE;
    }
    l->said_overwritten = true;
    return QN_HALT_LINE_OVERWRITTEN;
}

enum qn_halt_line qn_role_log_halt(struct qn_role_log *l,
                                   const struct qn_role_log_view *v,
                                   const struct qn_peer_facts *facts)
{
    QN_ASSERT(v->stopped || v->awaited != 0);
    uint64_t *logged = v->stopped ? &l->halted_epoch : &l->waits_epoch;
    QN_ASSERT(*logged <= v->epoch + 1);
    if (v->overwritten) {
        return overwritten(l, v, facts);
    }
    if (*logged == v->epoch + 1 || !v->some_complete) {
        return QN_HALT_LINE_NONE;
    }
    if (v->memory ? !speaks_for_memory(v, facts) : v->leader != v->self) {
        return QN_HALT_LINE_NONE;
    }
    *logged = v->epoch + 1;
    if (!v->stopped) {
        return QN_HALT_LINE_WAITS;
    }
    return v->memory ? QN_HALT_LINE_VERDICT : QN_HALT_LINE_LOST_TOGETHER;
}

qn_node_t qn_halt_culprit(uint64_t mask, qn_node_t self,
                          const struct qn_peer_facts *facts)
{
    for (uint64_t m = mask; m != 0; m &= m - 1) {
        if (facts->stopped(facts->ctx, first_of(m))) {
            return first_of(m);
        }
    }
    mask &= ~bit(self);
    return mask != 0 ? first_of(mask) : self;
}

qn_node_t qn_halt_longest(const qn_slot_t *learned, uint32_t nodes,
                          qn_node_t self)
{
    QN_ASSERT(self < nodes);
    qn_node_t longest = self;
    for (qn_node_t i = 0; i < nodes; i++) {
        if (learned[i] > learned[longest]) {
            longest = i;
        }
    }
    return longest;
}
