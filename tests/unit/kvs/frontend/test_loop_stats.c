#include "kvs/frontend/loop_stats.h"

#include "tests/support/test.h"

static struct qn_loop_stats m;
static qn_time_t cpu_clock;
static unsigned cpu_reads;

static qn_time_t cpu(void)
{
    cpu_reads++;
    return cpu_clock;
}

static void setup(void)
{
    m = (struct qn_loop_stats){0};
    cpu_clock = 5 * QN_S;
    cpu_reads = 0;
    qn_loop_stats_init(&m, cpu);
}

#define CASE(name) Test(loop_stats, name, .init = setup)

/* A turn from `began` that took `wall`, `work` of it on the core. */
static void turn(qn_time_t began, qn_time_t wall, qn_time_t work, bool grew)
{
    qn_loop_stats_begin(&m, began);
    cpu_clock += work;
    qn_loop_stats_end(&m, began + wall, grew);
}

CASE(an_end_without_a_beginning_counts_nothing)
{
    qn_loop_stats_end(&m, QN_S, true);
    cr_expect(m.work.count == 0);
    cr_expect(m.growth_max == 0 && m.wall_max == 0);
}

CASE(only_the_first_beginning_of_a_turn_counts)
{
    qn_loop_stats_begin(&m, QN_S);
    qn_loop_stats_begin(&m, QN_S + 50 * QN_US);
    qn_loop_stats_end(&m, QN_S + 100 * QN_US, false);
    cr_expect(m.work.count == 1);
    cr_expect(m.work.max == 100 * QN_US);
    cr_expect(!qn_loop_stats_runs(&m));
}

CASE(the_parts_of_the_longest_turn_are_kept)
{
    qn_time_t at = QN_S;
    qn_loop_stats_begin(&m, at);
    qn_loop_stats_part(&m, QN_LOOP_STATS_SOCKETS, at + 10);
    qn_loop_stats_part(&m, QN_LOOP_STATS_APPLY, at + 30);
    qn_loop_stats_end(&m, at + 60, false);
    turn(2 * QN_S, 59, 59, false);
    cr_expect(m.parts[QN_LOOP_STATS_SOCKETS] == 10);
    cr_expect(m.parts[QN_LOOP_STATS_APPLY] == 20);
    cr_expect(m.parts[QN_LOOP_STATS_ANSWERS] == 30);
}

CASE(a_core_that_was_taken_away_is_no_work)
{
    turn(QN_S, 4 * QN_MS, 300 * QN_US, false);
    cr_expect(m.work.max == 300 * QN_US);
    cr_expect(m.wall_max == 4 * QN_MS);
}

CASE(a_long_turn_that_worked_throughout_counts_in_full)
{
    turn(QN_S, 4 * QN_MS, 4 * QN_MS, false);
    cr_expect(m.work.max == 4 * QN_MS);
}

/* Work before the turn may be counted with it, as far as the last reading. */
CASE(never_too_little)
{
    turn(QN_S, 10 * QN_US, 10 * QN_US, false);
    turn(QN_S + 20 * QN_US, 3 * QN_MS, QN_MS, false);
    cr_expect(m.work.max == QN_MS + 10 * QN_US);
}

CASE(too_much_by_a_stale_reading_at_most)
{
    qn_time_t at = QN_S;
    for (int i = 0; i < 1000; i++, at += 100 * QN_US) {
        turn(at, 100 * QN_US, 100 * QN_US, false);
    }
    turn(at, 9 * QN_MS, 500 * QN_US, false);
    cr_expect(m.work.max >= 500 * QN_US);
    cr_expect(m.work.max <= 500 * QN_US + QN_LOOP_STATS_STALE + 100 * QN_US);
}

CASE(short_turns_read_the_cpu_clock_rarely)
{
    qn_time_t at = QN_S;
    for (int i = 0; i < 1000; i++, at += 10 * QN_US) {
        turn(at, 5 * QN_US, 5 * QN_US, false);
    }
    cr_expect(cpu_reads <= 1000 * 10 * QN_US / QN_LOOP_STATS_STALE + 1);
}

CASE(growth_is_kept_apart)
{
    turn(QN_S, 90, 90, false);
    turn(2 * QN_S, 70, 70, true);
    turn(3 * QN_S, 50, 50, true);
    cr_expect(m.growth_max == 70);
    cr_expect(m.work.max == 90);
}

CASE(a_reset_keeps_the_running_turn)
{
    turn(QN_S, 90, 90, true);
    qn_loop_stats_begin(&m, 2 * QN_S);
    qn_loop_stats_reset(&m);
    cr_expect(m.work.count == 0 && m.work.max == 0);
    cr_expect(m.growth_max == 0 && m.wall_max == 0);
    cr_expect(m.parts[QN_LOOP_STATS_ANSWERS] == 0);
    qn_loop_stats_end(&m, 2 * QN_S + 40, false);
    cr_expect(m.work.count == 1 && m.work.max == 40);
}

CASE(by_default_the_threads_clock_is_read)
{
    m = (struct qn_loop_stats){0};
    qn_loop_stats_init(&m, NULL);
    cr_assert(m.cpu != NULL);
    qn_time_t before = m.cpu();
    unsigned x = 1;
    for (unsigned i = 0; i < 1000000; i++) {
        x = x * 1664525u + i;
    }
    cr_expect(x != 0 || before == 0);
    cr_expect(m.cpu() > before);
}
