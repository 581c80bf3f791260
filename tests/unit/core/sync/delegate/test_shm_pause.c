/* How long clients of shm_server keep away: what the server's scans say. */
#include "core/base/bits.h"
#include "core/sync/delegate/shm_pause_internal.h"
#include "tests/support/test.h"

/* `scans` of a load follow each other; behind every `idle_every` of them the
 * server has found nothing once, 0: never. */
static uint32_t load(struct qn_server_scans *s, qn_time_t *now, uint32_t scans,
                     qn_time_t scan_ns, uint32_t idle_every)
{
    uint32_t told = 0;
    for (uint32_t i = 1; i <= scans; i++) {
        *now += scan_ns;
        told += qn_shm_scan_ended(s, *now);
        if (idle_every > 0 && i % idle_every == 0) {
            told += qn_shm_scan_ended(s, 0);
            *now += 100;
        }
    }
    return told;
}

Test(shm_pause, follows_the_scans)
{
    static const struct {
        qn_time_t scan_ns;
        uint32_t idle_every;
        int32_t least, most; /* that clients are told behind 100 scans */
    } row[] = {
        {400, 1, 0, 0},     /* one client: the server waits for it */
        {800, 2, 200, 500}, /* every other scan follows an idle time */
        {1400, 0, 1200, 1420}, {8000, 0, 7000, 8020},
        {8000, 8, 6000, 8000}, {1000000, 0, 57000, QN_SHM_SCAN_MOST_NS},
    };
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(row); i++) {
        struct qn_server_scans s = {0};
        qn_time_t now = 1000;
        (void)load(&s, &now, 100, row[i].scan_ns, row[i].idle_every);
        cr_assert_geq(s.told_ns, row[i].least, "row %u: %d", i, s.told_ns);
        cr_assert_leq(s.told_ns, row[i].most, "row %u: %d", i, s.told_ns);
    }
}

Test(shm_pause, a_client_that_is_left_alone_soon_has_none)
{
    struct qn_server_scans s = {0};
    qn_time_t now = 1000;
    (void)load(&s, &now, 200, 2 * QN_SHM_SCAN_MOST_NS, 0);
    cr_assert_gt(s.told_ns, (int32_t)QN_SHM_SCAN_MOST_NS / 2);
    /* Each operation is one scan and one idle time. */
    (void)load(&s, &now, 75, 400, 1);
    cr_assert_lt(s.told_ns, (int32_t)QN_SHM_SCAN_LEAST_NS);
}

Test(shm_pause, a_stall_moves_it_by_a_bounded_time)
{
    struct qn_server_scans s = {0};
    qn_time_t now = 1000;
    (void)load(&s, &now, 200, 2000, 0);
    (void)load(&s, &now, 1, 100 * QN_MS, 0);
    cr_assert_leq(s.mean_ns, 2000 + (int32_t)QN_SHM_SCAN_MOST_NS / 16);
}

Test(shm_pause, steady_scans_are_told_seldom)
{
    struct qn_server_scans s = {0};
    qn_time_t now = 1000;
    (void)load(&s, &now, 200, 2000, 0);
    uint32_t told = 0;
    for (uint32_t i = 0; i < 100; i++) {
        told += load(&s, &now, 1, i % 2 == 0 ? 1800 : 2200, 0);
    }
    cr_assert_leq(told, 1);
}

Test(shm_pause, a_client_keeps_away_for_one_scan)
{
    static const struct {
        qn_time_t found;
        uint32_t scan_ns;
        qn_time_t until;
    } row[] = {
        {5000, 0, 0},
        {5000, QN_SHM_SCAN_LEAST_NS - 1, 0},
        {5000, QN_SHM_SCAN_LEAST_NS, 5000 + QN_SHM_SCAN_LEAST_NS},
        {0, 3000, 3000}, /* never: that is past */
    };
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(row); i++) {
        cr_assert_eq(qn_shm_keep_away(row[i].found, row[i].scan_ns),
                     row[i].until, "row %u", i);
    }
}
