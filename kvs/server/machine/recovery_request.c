/* See recovery_request.h. */
#include "kvs/server/machine/recovery_request.h"

#include "core/base/assert.h"

enum qn_recovery_error qn_recovery_possible(const struct qn_recovery_view *v,
                                            const struct qn_recovery_goal *goal)
{
    if (!v->recoverable || v->epoch != goal->epoch) {
        return QN_RECOVERY_ERROR_CHANGED;
    }
    if (!v->ready || v->snapshot_comes) {
        return QN_RECOVERY_ERROR_COMES;
    }
    return v->learned >= goal->position ? QN_RECOVERY_ERROR_NONE
                                        : QN_RECOVERY_ERROR_LESS;
}

enum qn_recovery_error qn_recovery_check(const struct qn_recovery_request *r,
                                         const struct qn_recovery_view *v,
                                         const struct qn_recovery_goal *goal)
{
    QN_ASSERT(v->self < v->nodes);
    QN_ASSERT(goal->node < v->nodes);
    QN_ASSERT(r->client != 0 || !v->client_waits);
    if (v->nodes == 1) {
        return QN_RECOVERY_ERROR_SINGLE;
    }
    if (!v->stopped) {
        return QN_RECOVERY_ERROR_RUNS;
    }
    if (v->epoch != goal->epoch) {
        return QN_RECOVERY_ERROR_CHANGED;
    }
    if (v->alone) {
        return QN_RECOVERY_ERROR_ALONE;
    }
    if (v->client_waits) {
        return QN_RECOVERY_ERROR_TWICE;
    }
    return goal->node == v->self ? qn_recovery_possible(v, goal)
                                 : QN_RECOVERY_ERROR_NONE;
}

void qn_recovery_hold(struct qn_recovery_request *r, uint64_t client,
                      qn_node_t node)
{
    QN_ASSERT(client != 0);
    QN_ASSERT(node < QN_NODES_MAX);
    *r = (struct qn_recovery_request){.client = client, .node = node};
}

bool qn_recovery_end(struct qn_recovery_request *r, int64_t why,
                     struct qn_recovery_answer *out)
{
    if (r->client == 0) {
        return false;
    }
    *out = (struct qn_recovery_answer){
        .client = r->client, .node = r->node, .why = why};
    r->client = 0;
    return true;
}

bool qn_recovery_refused(struct qn_recovery_request *r, uint64_t client,
                         int64_t why, struct qn_recovery_answer *out)
{
    return r->client == client && qn_recovery_end(r, why, out);
}
