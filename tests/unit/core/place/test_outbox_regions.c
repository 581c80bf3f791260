/* Ring and arena: address space from the beginning, memory as they grow. */

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/place/outbox.h"
#include "outbox_world.h"
#include "tests/support/test.h"

#define RING ((size_t)1 << 30)

static struct qn_outbox *make_ring(bool shared)
{
    struct qn_outbox *o = NULL;
    struct qn_outbox_opts w = outbox_opts(shared);
    w.ring_bytes = RING;
    cr_assert_eq(qn_outbox_create(&o, &w), QN_OK);
    return o;
}

Test(outbox, without_a_ring_there_is_none)
{
    for (int shared = 0; shared < 2; shared++) {
        struct qn_outbox *o = outbox_make(shared);
        cr_assert_eq(qn_outbox_region(o, QN_REGION_RING), NULL);
        cr_assert_eq(qn_outbox_grow(o, QN_REGION_RING, 0), QN_OK);
        cr_assert_eq(qn_outbox_grow(o, QN_REGION_RING, 1), QN_ENOMEM);
        qn_outbox_destroy(o);
    }
}

Test(outbox, a_ring_takes_address_space_and_no_memory)
{
    struct qn_outbox *o = make_ring(true);
    struct qn_outbox_opts w = outbox_opts(true);
    size_t fixed = qn_outbox_bytes_fixed(&w);
    uint8_t *ring = qn_outbox_region(o, QN_REGION_RING);
    cr_assert_eq(qn_outbox_bytes(o), fixed + RING);
    cr_assert_eq(outbox_allocated(o), fixed);
    cr_assert_eq((uintptr_t)ring % 4096, 0);
    cr_assert_geq(ring, (uint8_t *)qn_outbox_lane(o, 2, QN_LANE_TREE) + LANE);
    cr_assert_eq(ring, (uint8_t *)qn_outbox_doorbell(o) - 64 + fixed);
    qn_outbox_destroy(o);
}

Test(outbox, a_ring_grows_in_place)
{
    static const size_t step[] = {1, 4096, 4097, 100000, (size_t)1 << 21};
    for (int shared = 0; shared < 2; shared++) {
        struct qn_outbox *o = make_ring(shared);
        uint8_t *ring = qn_outbox_region(o, QN_REGION_RING);
        size_t fixed = shared ? outbox_allocated(o) : 0;
        size_t had = 0;
        for (size_t i = 0; i < 5; i++) {
            cr_assert_eq(qn_outbox_grow(o, QN_REGION_RING, step[i]), QN_OK);
            size_t have = qn_load(&qn_outbox_state(o)->ring, QN_ACQUIRE);
            cr_assert(have >= step[i] && have < step[i] + 4096);
            cr_assert(!shared || outbox_allocated(o) == fixed + have);
            for (size_t at = 0; at < have; at++) {
                cr_assert_eq(ring[at], at < had ? 7 : 0, "byte %zu", at);
            }
            memset(ring, 7, have);
            cr_assert_eq(qn_outbox_grow(o, QN_REGION_RING, step[i] / 2), QN_OK);
            cr_assert_eq(qn_load(&qn_outbox_state(o)->ring, QN_ACQUIRE), have,
                         "it does not shrink");
            had = have;
        }
        cr_assert_eq(qn_outbox_region(o, QN_REGION_RING), ring);
        qn_outbox_destroy(o);
    }
}

Test(outbox, a_reader_that_mapped_it_before_sees_what_has_grown)
{
    struct qn_outbox *own = make_ring(true);
    struct qn_outbox *seen;
    struct qn_outbox_opts w = outbox_opts(true);
    w.ring_bytes = RING;
    cr_assert_eq(qn_outbox_map(&seen, qn_outbox_fd(own), &w), QN_OK);
    cr_assert_eq(qn_load(&qn_outbox_state(seen)->ring, QN_ACQUIRE), 0);
    cr_assert_eq(qn_outbox_grow(own, QN_REGION_RING, 100000), QN_OK);
    memset(qn_outbox_region(own, QN_REGION_RING), 3, 100000);
    cr_assert_geq(qn_load(&qn_outbox_state(seen)->ring, QN_ACQUIRE), 100000);
    const uint8_t *ring = qn_outbox_region(seen, QN_REGION_RING);
    cr_assert(ring[0] == 3 && ring[99999] == 3);
    qn_outbox_destroy(seen);
    qn_outbox_destroy(own);
}

Test(outbox, a_ring_that_gets_no_memory_stays_as_it_was)
{
    static const int reasons[] = {ENOSPC, ENOMEM, EFBIG};
    struct qn_outbox *o = make_ring(true);
    cr_assert_eq(qn_outbox_grow(o, QN_REGION_RING, 8192), QN_OK);
    memset(qn_outbox_region(o, QN_REGION_RING), 7, 8192);
    size_t had = outbox_allocated(o);
    for (size_t i = 0; i < 3; i++) {
        outbox_refuse = reasons[i];
        cr_assert_eq(qn_outbox_grow(o, QN_REGION_RING, 16384), QN_ENOMEM);
        cr_assert_eq(qn_outbox_grow(o, QN_REGION_RING, 8192), QN_OK,
                     "needs nothing");
    }
    outbox_refuse = 0;
    cr_assert_eq(qn_outbox_grow(o, QN_REGION_RING, RING + 1), QN_ENOMEM);
    cr_assert_eq(qn_load(&qn_outbox_state(o)->ring, QN_ACQUIRE), 8192);
    cr_assert_eq(outbox_allocated(o), had);
    cr_assert_eq(((uint8_t *)qn_outbox_region(o, QN_REGION_RING))[8191], 7);
    outbox_refuse = EINTR;
    cr_assert_eq(qn_outbox_grow(o, QN_REGION_RING, 16384), QN_OK,
                 "later there is some");
    memset(qn_outbox_region(o, QN_REGION_RING), 7, 16384);
    qn_outbox_destroy(o);
}

Test(outbox, an_arena_grows_behind_the_ring)
{
    struct qn_outbox_opts w = outbox_opts(true);
    struct qn_outbox *o;
    w.ring_bytes = RING - 1; /* in whole pages all the same */
    w.arena_bytes = RING;
    cr_assert_eq(qn_outbox_create(&o, &w), QN_OK);
    uint8_t *ring = qn_outbox_region(o, QN_REGION_RING);
    uint8_t *arena = qn_outbox_region(o, QN_REGION_ARENA);
    cr_assert_eq(arena, ring + RING);
    size_t fixed = outbox_allocated(o);
    cr_assert_eq(qn_outbox_grow(o, QN_REGION_ARENA, 8000), QN_OK);
    memset(arena, 5, 8000);
    cr_assert_eq(outbox_allocated(o), fixed + 8192);
    cr_assert_eq(qn_load(&qn_outbox_state(o)->ring, QN_ACQUIRE), 0);
    cr_assert_eq(qn_outbox_grow(o, QN_REGION_ARENA, RING + 1), QN_ENOMEM);
    w.arena_bytes = RING / 2;
    struct qn_outbox *seen = NULL;
    cr_assert_eq(qn_outbox_map(&seen, qn_outbox_fd(o), &w), QN_ECORRUPT);
    w.arena_bytes = RING;
    cr_assert_eq(qn_outbox_map(&seen, qn_outbox_fd(o), &w), QN_OK);
    cr_assert_eq(((uint8_t *)qn_outbox_region(seen, QN_REGION_ARENA))[7999], 5);
    qn_outbox_destroy(seen);
    qn_outbox_destroy(o);
    w.arena_bytes = QN_RING_BYTES_MAX + 1;
    cr_assert_eq(qn_outbox_create(&o, &w), QN_EINVAL);
}

Test(outbox, a_private_ring_gets_no_more_than_was_asked_for, .signal = SIGSEGV)
{
    struct qn_outbox *o = make_ring(false);
    uint8_t *ring = qn_outbox_region(o, QN_REGION_RING);
    cr_assert_eq(qn_outbox_grow(o, QN_REGION_RING, RING + 1), QN_ENOMEM);
    cr_assert_eq(qn_outbox_grow(o, QN_REGION_RING, 8192), QN_OK);
    memset(ring, 7, 8192);
    signal(SIGSEGV, SIG_DFL);
    ring[8192] = 7;
}

Test(outbox, a_peer_process_has_no_way_to_write_a_ring)
{
    struct qn_outbox *own = make_ring(true);
    cr_assert_eq(qn_outbox_grow(own, QN_REGION_RING, 8192), QN_OK);
    memset(qn_outbox_region(own, QN_REGION_RING), 7, 8192);
    int fd = qn_outbox_fd(own);
    size_t bytes = qn_outbox_bytes(own);
    pid_t pid = fork();
    if (pid == 0) {
        _exit(outbox_ways_to_write(fd, bytes));
    }
    int status;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFEXITED(status));
    cr_assert_eq(WEXITSTATUS(status), 0, "ways %d", WEXITSTATUS(status));
    cr_assert_eq(((uint8_t *)qn_outbox_region(own, QN_REGION_RING))[8191], 7);
    qn_outbox_destroy(own);
}
