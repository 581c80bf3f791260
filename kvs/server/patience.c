/* See patience.h. */
#include "kvs/server/patience.h"

#include "core/base/bits.h"

void qn_patience_init(struct qn_patience *p, qn_time_t least)
{
    *p = (struct qn_patience){.least = least, .ns = least};
}

qn_time_t qn_patience_at(struct qn_patience *p, qn_time_t now)
{
    while (p->ns > p->least && now - p->since >= QN_PATIENCE_CALM) {
        p->ns = QN_MAX(p->ns / 2, p->least);
        p->since += QN_PATIENCE_CALM;
    }
    return p->ns;
}

static qn_time_t most(const struct qn_patience *p)
{
    return QN_PATIENCE_MOST * p->least;
}

void qn_patience_late(struct qn_patience *p, qn_time_t delay, qn_time_t now)
{
    qn_time_t ns = QN_MIN(2 * delay, most(p));
    if (delay <= most(p) && ns > qn_patience_at(p, now)) {
        p->ns = ns;
        p->since = now;
    }
}

qn_time_t qn_patience_wrong(struct qn_patience *p, qn_time_t now)
{
    p->ns = QN_MIN(2 * qn_patience_at(p, now), most(p));
    p->since = now;
    return p->ns;
}
