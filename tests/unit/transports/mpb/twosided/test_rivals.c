/*
 * Binomial and scatter-allgather: their moves, checked for all numbers of
 * nodes; and traffic on strict chips of 100 seeds. Threads are in
 * tests/conformance/test_mpb_broadcasts.c.
 */
#include "tests/support/test.h"
#include "tests/unit/transports/mpb/mpb_world.h"
#include "tests/unit/transports/mpb/twosided/rival_world.h"
#include "transports/mpb/twosided/rivals.h"

#define SEEDS 100u

/* Run the moves of all ranks, each send with its receive, until none is left.
 * Returns the slices that were moved by rank 0. */
static uint32_t run_moves(enum qn_rival_kind kind, uint32_t n)
{
    uint64_t has[QN_MPB_CORES] = {0};
    uint32_t next[QN_MPB_CORES] = {0};
    uint64_t all = UINT64_MAX >> (64 - n);
    uint32_t moved = 0;
    has[0] = all;
    for (bool again = true; again;) {
        again = false;
        for (uint32_t rank = 0; rank < n; rank++) {
            struct qn_rival_move m;
            struct qn_rival_move of;
            if (!qn_rival_move(kind, n, rank, next[rank], &m) || !m.send ||
                !qn_rival_move(kind, n, m.rank, next[m.rank], &of) || of.send ||
                of.rank != rank) {
                continue;
            }
            cr_assert_eq(of.from, m.from);
            cr_assert_eq(of.until, m.until);
            uint64_t slices =
                (UINT64_MAX >> (64 - m.until)) & (UINT64_MAX << m.from);
            cr_assert_eq(has[rank] & slices, slices, "%u sends what it has",
                         rank);
            has[m.rank] |= slices;
            moved += rank == 0 ? m.until - m.from : 0;
            next[rank]++;
            next[m.rank]++;
            again = true;
        }
    }
    for (uint32_t rank = 0; rank < n; rank++) {
        struct qn_rival_move m;
        cr_assert(!qn_rival_move(kind, n, rank, next[rank], &m),
                  "%u nodes: rank %u waits", n, rank);
        cr_assert_eq(has[rank], all, "%u nodes: rank %u", n, rank);
    }
    return moved;
}

Test(rivals, all_ranks_get_all_slices_and_none_waits_for_ever)
{
    for (uint32_t n = 2; n <= QN_MPB_CORES; n++) {
        (void)run_moves(QN_RIVAL_BINOMIAL, n);
        (void)run_moves(QN_RIVAL_SCATTER_ALLGATHER, n);
    }
}

/* The published costs: six messages of a binomial root; 24, 12, 6, 3, 1 and 1
 * slices of a scattering one, and 47 in the ring. */
Test(rivals, a_root_of_48_moves_what_the_closed_model_says)
{
    cr_assert_eq(run_moves(QN_RIVAL_BINOMIAL, 48), 6 * 48);
    cr_assert_eq(run_moves(QN_RIVAL_SCATTER_ALLGATHER, 48), 47 + 47);
}

Test(rivals, all_nodes_get_all_of_it, .timeout = 60)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const char *wrong = rival_traffic(seed);
        cr_assert_null(wrong, "seed %u: %s", (uint32_t)seed, wrong);
    }
}

Test(rivals, say_what_they_cannot_do)
{
    static struct mpb_world w;
    struct qn_rival r;
    uint8_t byte = 0;
    mpb_open_world(&w, 5, false, 1);
    struct qn_two_opts o = {
        .chip = mpb_core(&w, 0), .first = 200, .lines = 3, .session = 1};
    cr_assert_eq(qn_rival_init(&r, QN_RIVAL_BINOMIAL, &o), QN_OK);
    cr_assert_eq(qn_rival_begin(&r, 5, &byte, 1), QN_EINVAL);
    cr_assert_eq(qn_rival_begin(&r, 1, &byte, 1), QN_OK);
    cr_assert_eq(qn_rival_begin(&r, 1, &byte, 1), QN_EAGAIN);
    cr_assert_eq(qn_rival_step(&r), QN_EAGAIN);
    qn_rival_down(&r);
    cr_assert_eq(qn_rival_step(&r), QN_EPEERDEAD);
    cr_assert_eq(qn_rival_begin(&r, 1, &byte, 1), QN_EPEERDEAD);
    o.lines = 2;
    cr_assert_eq(qn_rival_init(&r, QN_RIVAL_BINOMIAL, &o), QN_EINVAL);
    o.lines = 57;
    cr_assert_eq(qn_rival_init(&r, QN_RIVAL_BINOMIAL, &o), QN_EINVAL,
                 "behind the buffer");
    mpb_close_world(&w);
}

/* RCCE has chunks of 251 lines; here flags of 48 peers take 12 lines. */
Test(rivals, chunks_have_what_flags_leave_and_at_most_251_lines)
{
    cr_assert_eq(qn_two_chunk_lines(48, QN_MPB_LINES), 244);
    cr_assert_eq(qn_two_chunk_lines(4, QN_MPB_LINES), QN_TWO_CHUNK_MAX);
    cr_assert_eq(qn_two_chunk_lines(5, 2), 0);
}
