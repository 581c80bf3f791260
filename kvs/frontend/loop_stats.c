#include "kvs/frontend/loop_stats.h"

#include <string.h>

#include "core/base/bits.h"

/*
 * The CPU clock is only ever read together with the monotonic one, so
 * `cpu_since` says how old a reading is. What a turn took from the core lies
 * between two bounds, its wall time and the CPU time since the last reading
 * before it; the lower of the two is what is recorded.
 */

void qn_loop_stats_init(struct qn_loop_stats *m, qn_time_t (*cpu)(void))
{
    m->cpu = cpu != NULL ? cpu : qn_clock_cpu;
}

static void cpu_read(struct qn_loop_stats *m, qn_time_t now)
{
    m->cpu_at = m->cpu();
    m->cpu_since = now;
}

void qn_loop_stats_begin(struct qn_loop_stats *m, qn_time_t now)
{
    if (qn_loop_stats_runs(m)) {
        return;
    }
    m->began = m->border = now;
    memset(m->part, 0, sizeof m->part);
    if (m->cpu_since == 0 || now - m->cpu_since > QN_LOOP_STATS_STALE) {
        cpu_read(m, now);
    }
}

void qn_loop_stats_part(struct qn_loop_stats *m, enum qn_loop_stats_part part,
                        qn_time_t now)
{
    m->part[part] += now - m->border;
    m->border = now;
}

void qn_loop_stats_end(struct qn_loop_stats *m, qn_time_t now, bool grew)
{
    if (!qn_loop_stats_runs(m)) {
        return;
    }
    qn_loop_stats_part(m, QN_LOOP_STATS_ANSWERS, now);
    qn_time_t wall = now - m->began;
    qn_time_t work = wall;
    if (wall > QN_LOOP_STATS_LONG) {
        qn_time_t before = m->cpu_at;
        cpu_read(m, now);
        work = QN_MIN(wall, m->cpu_at - before);
    }
    if (work >= m->work.max) {
        memcpy(m->parts, m->part, sizeof m->parts);
    }
    if (grew) {
        m->growth_max = QN_MAX(m->growth_max, work);
    }
    m->wall_max = QN_MAX(m->wall_max, wall);
    qn_histogram_record(&m->work, work);
    m->began = 0;
}

void qn_loop_stats_reset(struct qn_loop_stats *m)
{
    qn_histogram_clear(&m->work);
    memset(m->parts, 0, sizeof m->parts);
    m->growth_max = m->wall_max = 0;
}
