/* See voter_order.h. */
#include "kvs/server/machine/voter_order.h"

#include "core/base/assert.h"
#include "core/base/err.h"

bool qn_voter_order_begin(struct qn_voter_order *o, uint32_t number, int err,
                          struct qn_ctl_voter_changed *out)
{
    if (err == QN_OK) {
        *o = (struct qn_voter_order){.pending = true, .number = number};
        return false;
    }
    *out = (struct qn_ctl_voter_changed){
        .outcome = QN_VOTER_REFUSED, .number = number, .error = err};
    return true;
}

void qn_voter_order_end(struct qn_voter_order *o, enum qn_voter_outcome outcome,
                        int error, struct qn_ctl_voter_changed *out)
{
    QN_ASSERT(o->pending);
    *out = (struct qn_ctl_voter_changed){
        .outcome = outcome,
        .number = o->number,
        .error = outcome == QN_VOTER_OK ? QN_OK : error};
    o->pending = false;
}
