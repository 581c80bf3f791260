/* See patience.h. */
#include "kvs/patience.h"

#include "core/base/bits.h"

void qn_patience_init(struct qn_patience *p, qn_time_t least)
{
    *p = (struct qn_patience){.least = least, .ns = least};
}

qn_time_t qn_patience_at(struct qn_patience *p, qn_time_t now)
{
    while (p->ns > p->least && now - p->since >= QN_PATIENCE_CALM) {
        p->ns /= 2;
        p->since += QN_PATIENCE_CALM;
    }
    return p->ns;
}

qn_time_t qn_patience_wrong(struct qn_patience *p, qn_time_t now)
{
    qn_time_t most = QN_PATIENCE_MOST * p->least;
    p->ns = QN_MIN(2 * qn_patience_at(p, now), most);
    p->since = now;
    return p->ns;
}
