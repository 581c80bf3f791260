/*
 * The table of vacancy.h.
 *
 * Either sign of life is enough to wait. A word that says ALIVE counts only as
 * long as its process runs: one that was overwritten is never marked by the
 * kernel (core/place/liveness.h), and would be waited for without end.
 */
#include "kvs/supervision/vacancy.h"

static bool is_vacant(const struct qn_vacancy *v)
{
    return !v->held && !(v->word == QN_LIVENESS_ALIVE && v->runs);
}

enum qn_vacancy_do qn_vacancy_step(enum qn_reach reach,
                                   const struct qn_vacancy *v)
{
    if (reach == QN_REACH_MET) {
        return QN_VACANCY_HEAR;
    }
    bool start = v->known ? is_vacant(v) : reach == QN_REACH_ABSENT;
    return start ? QN_VACANCY_START : QN_VACANCY_WAIT;
}
