#include "kvs/resources/trim.h"

void qn_trim_init(struct qn_trim *t, qn_node_t self)
{
    *t = (struct qn_trim){.at = QN_TIME_NEVER,
                          .idle = QN_TRIM_IDLE + self * (QN_TRIM_IDLE / 2)};
}

qn_time_t qn_trim_turn(struct qn_trim *t, uint64_t work, qn_time_t now)
{
    if (work / QN_TRIM_FEW != t->work) {
        t->work = work / QN_TRIM_FEW;
        t->at = now + t->idle;
    }
    return t->at;
}

static uint64_t beyond(uint64_t resident, uint64_t used)
{
    uint64_t usual = used + used / 4;
    return resident > usual ? resident - usual : 0;
}

bool qn_trim_look(struct qn_trim *t, uint64_t resident, uint64_t used)
{
    t->at = QN_TIME_NEVER;
    return beyond(resident, used) > t->left + QN_TRIM_LEAST;
}

void qn_trim_done(struct qn_trim *t, uint64_t resident, uint64_t used)
{
    t->left = beyond(resident, used);
}
