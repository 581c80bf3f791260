#include "core/place/flight_recorder.h"
#include "core/place/outbox.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/err.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"

#define LANE 5000u /* bytes: not a multiple of a page */

static struct qn_outbox_opts opts(bool shared)
{
    return (struct qn_outbox_opts){.node = 1,
                                   .nodes = 3,
                                   .incarnation = 7,
                                   .lane_bytes = LANE,
                                   .numa_node = -1,
                                   .shared = shared};
}

static struct qn_outbox *make(bool shared)
{
    struct qn_outbox *o = NULL;
    struct qn_outbox_opts w = opts(shared);
    cr_assert_eq(qn_outbox_create(&o, &w), QN_OK);
    return o;
}

/* Our own posix_fallocate stands before the library's, to run out of memory on
 * demand. */
static int refuse; /* errno to give, or 0 */

int posix_fallocate(int fd, off_t offset, off_t len)
{
    if (refuse != 0) {
        int err = refuse;
        refuse = err == EINTR ? 0 : err;
        return err;
    }
    return fallocate(fd, 0, offset, len) == 0 ? 0 : errno;
}

Test(outbox, is_zero_and_writable_for_its_owner)
{
    for (int shared = 0; shared < 2; shared++) {
        struct qn_outbox *o = make(shared);
        cr_assert_eq(qn_outbox_incarnation(o), 7);
        cr_assert_eq(qn_outbox_fd(o) >= 0, shared);
        for (qn_node_t peer = 0; peer < 3; peer += 2) {
            for (enum qn_lane lane = 0; lane < QN_LANES; lane++) {
                uint8_t *at = qn_outbox_lane(o, peer, lane);
                cr_assert_eq((uintptr_t)at % 4096, 0);
                for (size_t i = 0; i < LANE; i++) {
                    cr_assert_eq(at[i], 0);
                }
                memset(at, 0xff, LANE);
            }
        }
        cr_assert_eq(qn_load(&qn_outbox_doorbell(o)->epoch, QN_RELAXED), 0);
        cr_assert_eq(qn_load(&qn_outbox_state(o)->applied, QN_RELAXED), 0);
        cr_assert_eq(qn_load(&qn_outbox_state(o)->voted, QN_RELAXED),
                     UINT64_MAX, "before anybody knows");
        qn_outbox_destroy(o);
    }
}

Test(outbox, lanes_do_not_overlap)
{
    struct qn_outbox *o = make(true);
    uint8_t *lane[4] = {qn_outbox_lane(o, 0, QN_LANE_DIRECT),
                        qn_outbox_lane(o, 0, QN_LANE_TREE),
                        qn_outbox_lane(o, 2, QN_LANE_DIRECT),
                        qn_outbox_lane(o, 2, QN_LANE_TREE)};
    uint8_t *front = (uint8_t *)qn_outbox_state(o);
    cr_assert_geq(lane[0], front + sizeof(struct qn_outbox_state));
    for (int i = 0; i < 3; i++) {
        cr_assert_geq(lane[i + 1], lane[i] + LANE, "lane %d", i + 1);
    }
    cr_assert_leq(lane[3] + LANE,
                  (uint8_t *)qn_outbox_doorbell(o) - 64 + qn_outbox_bytes(o));
    uint8_t *flight = qn_outbox_flight(o);
    cr_assert_geq(flight, front + sizeof(struct qn_outbox_state));
    cr_assert_leq(flight + QN_FLIGHT_BYTES(QN_FLIGHT_ENTRIES), lane[0]);
    cr_assert_eq((uintptr_t)flight % QN_CACHELINE, 0);
    qn_outbox_destroy(o);
}

/* The first two lie where they lie without the others, to the first peer. */
Test(outbox, a_pair_has_up_to_eight_lanes)
{
    struct qn_outbox *o, *seen, *two = make(true);
    struct qn_outbox_opts w = opts(true);
    for (w.lanes = QN_LANES; w.lanes <= QN_LANES_MAX; w.lanes++) {
        cr_assert_eq(qn_outbox_create(&o, &w), QN_OK);
        for (uint32_t i = 0; i < 2 * w.lanes; i++) {
            memset(qn_outbox_lane(o, i < w.lanes ? 0 : 2,
                                  (enum qn_lane)(i % w.lanes)),
                   (int)i + 1, LANE);
        }
        cr_assert_eq(qn_outbox_map(&seen, qn_outbox_fd(o), &w), QN_OK);
        for (uint32_t i = 0; i < 2 * w.lanes; i++) {
            const uint8_t *at = qn_outbox_lane(seen, i < w.lanes ? 0 : 2,
                                               (enum qn_lane)(i % w.lanes));
            cr_assert(at[0] == i + 1 && at[LANE - 1] == i + 1, "lane %u", i);
        }
        cr_assert_eq(qn_outbox_bytes(seen), qn_outbox_bytes_fixed(&w));
        qn_outbox_destroy(seen);
        w.lanes++; /* it has fewer than that */
        cr_assert_neq(qn_outbox_map(&seen, qn_outbox_fd(o), &w), QN_OK);
        w.lanes--;
        qn_outbox_destroy(o);
    }
    w.lanes = QN_LANES_MAX + 1;
    cr_assert_eq(qn_outbox_create(&o, &w), QN_EINVAL);
    w.lanes = 1;
    cr_assert_eq(qn_outbox_create(&o, &w), QN_EINVAL);
    w.lanes = QN_LANES;
    cr_assert_eq(qn_outbox_map(&seen, qn_outbox_fd(two), &w), QN_OK,
                 "two are what there is without the option");
    qn_outbox_destroy(seen);
    qn_outbox_destroy(two);
}

Test(outbox, a_group_of_one_and_of_the_maximum)
{
    struct qn_outbox *o;
    struct qn_outbox_opts w = opts(true);
    w.node = 0;
    w.nodes = 1;
    cr_assert_eq(qn_outbox_create(&o, &w), QN_OK);
    cr_assert_eq(qn_outbox_bytes(o), qn_outbox_bytes_fixed(&w));
    memset(qn_outbox_flight(o), 1, QN_FLIGHT_BYTES(QN_FLIGHT_ENTRIES));
    qn_outbox_destroy(o);
    w.node = QN_NODES_MAX - 1;
    w.nodes = QN_NODES_MAX;
    cr_assert_eq(qn_outbox_create(&o, &w), QN_OK);
    memset(qn_outbox_lane(o, QN_NODES_MAX - 2, QN_LANE_TREE), 1, LANE);
    qn_outbox_destroy(o);
}

Test(outbox, without_lanes_the_rest_is_as_ever)
{
    struct qn_outbox *o, *seen;
    struct qn_outbox_opts w = opts(true);
    w.lane_bytes = 0;
    w.ring_bytes = 4096;
    cr_assert_eq(qn_outbox_create(&o, &w), QN_OK);
    cr_assert_null(qn_outbox_lane(o, w.node == 0 ? 1 : 0, QN_LANE_TREE));
    cr_assert_eq(qn_outbox_grow(o, QN_REGION_RING, 4096), QN_OK);
    memset(qn_outbox_region(o, QN_REGION_RING), 7, 4096);
    cr_assert_eq(qn_outbox_map(&seen, qn_outbox_fd(o), &w), QN_OK);
    cr_assert_eq(((uint8_t *)qn_outbox_region(seen, QN_REGION_RING))[4095], 7);
    qn_outbox_destroy(seen);
    qn_outbox_destroy(o);
}

Test(outbox, refuses_options_out_of_range)
{
    for (int i = 0; i < 7; i++) {
        struct qn_outbox_opts w = opts(true);
        struct qn_outbox *o = NULL;
        switch (i) {
        case 0:
            w.node = 3;
            break;
        case 1:
            w.nodes = 0;
            break;
        case 2:
            w.nodes = QN_NODES_MAX + 1;
            break;
        case 3:
            w.incarnation = 0;
            break;
        case 4:
            w.arena_bytes = QN_RING_BYTES_MAX + 1;
            break;
        case 5:
            w.lane_bytes = QN_LANE_BYTES_MAX + 1;
            break;
        default:
            w.ring_bytes = QN_RING_BYTES_MAX + 1;
        }
        cr_expect_eq(qn_outbox_create(&o, &w), QN_EINVAL, "case %d", i);
        cr_expect_eq(o, NULL, "case %d", i);
    }
}

Test(outbox, what_the_owner_writes_its_peer_reads)
{
    struct qn_outbox *own = make(true);
    struct qn_outbox *seen;
    struct qn_outbox_opts w = opts(true);
    cr_assert_eq(qn_outbox_map(&seen, qn_outbox_fd(own), &w), QN_OK);
    memcpy(qn_outbox_lane(own, 2, QN_LANE_TREE), "hello", 6);
    qn_store(&qn_outbox_state(own)->applied, 42, QN_RELEASE);
    cr_assert_str_eq((char *)qn_outbox_lane(seen, 2, QN_LANE_TREE), "hello");
    cr_assert_eq(qn_load(&qn_outbox_state(seen)->applied, QN_ACQUIRE), 42);
    cr_assert_eq(qn_outbox_incarnation(seen), 7);
    cr_assert_eq(qn_outbox_fd(seen), -1);
    qn_outbox_destroy(own);
    cr_assert_eq(qn_load(&qn_outbox_state(seen)->applied, QN_ACQUIRE), 42,
                 "outlives its owner while mapped");
    qn_outbox_destroy(seen);
}

Test(outbox, a_mapped_one_cannot_be_stored_to, .signal = SIGSEGV)
{
    struct qn_outbox *own = make(true);
    struct qn_outbox *seen;
    struct qn_outbox_opts w = opts(true);
    cr_assert_eq(qn_outbox_map(&seen, qn_outbox_fd(own), &w), QN_OK);
    /* The sanitizers' own handlers would turn the signal into an exit. */
    signal(SIGSEGV, SIG_DFL);
    *(uint8_t *)qn_outbox_lane(seen, 2, QN_LANE_TREE) = 1;
}

/* All ways for a process that has the descriptor; a bit for each that works. */
static int ways_to_write(int fd, size_t bytes)
{
    int ways = 0;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, O_RDWR);
    for (int i = 0; i < 2; i++) {
        int with = i == 0 ? fd : again;
        ways |= mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, with,
                     0) != MAP_FAILED;
        void *at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, with, 0);
        ways |= 2 * (mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0);
        ways |= 4 * (pwrite(with, "x", 1, 0) >= 0);
        ways |= 8 * (ftruncate(with, 0) == 0);
        ways |= 16 * (ftruncate(with, (off_t)bytes * 2) == 0);
        ways |=
            32 * (fallocate(with, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                            4096) == 0);
        ways |= 64 * (madvise(at, bytes, MADV_REMOVE) == 0);
    }
    return ways;
}

Test(outbox, a_peer_process_has_no_way_to_write)
{
    struct qn_outbox *own = make(true);
    int fd = qn_outbox_fd(own);
    size_t bytes = qn_outbox_bytes(own);
    pid_t pid = fork();
    if (pid == 0) {
        _exit(ways_to_write(fd, bytes));
    }
    int status;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFEXITED(status));
    cr_assert_eq(WEXITSTATUS(status), 0, "ways %d", WEXITSTATUS(status));
    memset(qn_outbox_lane(own, 0, QN_LANE_DIRECT), 1, LANE);
    qn_outbox_destroy(own);
}

Test(outbox, is_allocated_in_full)
{
    struct qn_outbox *o = make(true);
    struct stat st;
    cr_assert_eq(fstat(qn_outbox_fd(o), &st), 0);
    cr_assert_geq((size_t)st.st_blocks * 512, qn_outbox_bytes(o));
    struct qn_outbox_opts w = opts(true);
    cr_assert_eq(qn_outbox_bytes_fixed(&w), qn_outbox_bytes(o));
    qn_outbox_destroy(o);
}

Test(outbox, lack_of_memory_is_an_error_at_start_and_leaves_nothing)
{
    static const int reasons[] = {ENOSPC, ENOMEM, EFBIG};
    int before = open_descriptors();
    for (size_t i = 0; i < 3; i++) {
        struct qn_outbox *o = NULL;
        struct qn_outbox_opts w = opts(true);
        refuse = reasons[i];
        cr_assert_eq(qn_outbox_create(&o, &w), QN_ENOMEM);
        cr_assert_eq(o, NULL);
    }
    cr_assert_eq(open_descriptors(), before);
}

Test(outbox, a_signal_during_allocation_is_no_error)
{
    refuse = EINTR;
    qn_outbox_destroy(make(true));
    cr_assert_eq(refuse, 0);
}

Test(outbox, homing_is_a_wish)
{
    static const int reader[3] = {0, -1, 999};
    struct qn_outbox *o;
    struct qn_outbox_opts w = opts(true);
    w.reader_numa_node = reader;
    for (int numa = -1; numa < 5000; numa += 1667) {
        w.numa_node = numa;
        for (int shared = 0; shared < 2; shared++) {
            w.shared = shared;
            cr_assert_eq(qn_outbox_create(&o, &w), QN_OK);
            memset(qn_outbox_lane(o, 2, QN_LANE_DIRECT), 1, LANE);
            qn_outbox_destroy(o);
        }
    }
}

Test(outbox, of_another_life_is_stale)
{
    struct qn_outbox *own = make(true);
    struct qn_outbox *seen = NULL;
    struct qn_outbox_opts w = opts(true);
    w.incarnation = 8;
    cr_assert_eq(qn_outbox_map(&seen, qn_outbox_fd(own), &w), QN_ESTALE);
    w.incarnation = 0;
    cr_assert_eq(qn_outbox_map(&seen, qn_outbox_fd(own), &w), QN_OK, "any");
    qn_outbox_destroy(seen);
    qn_outbox_destroy(own);
}

Test(outbox, of_another_shape_is_corrupt)
{
    struct qn_outbox *own = make(true);
    for (int i = 0; i < 4; i++) {
        struct qn_outbox *seen = NULL;
        struct qn_outbox_opts w = opts(true);
        w.ring_bytes = i == 3 ? 1 : 0;
        w.node = i == 0 ? 2 : w.node;
        w.nodes = i == 1 ? 4 : w.nodes;
        w.lane_bytes = i == 2 ? LANE + 1 : LANE; /* of equal size, in pages */
        cr_expect_eq(qn_outbox_map(&seen, qn_outbox_fd(own), &w), QN_ECORRUPT,
                     "case %d", i);
        cr_expect_eq(seen, NULL);
    }
    qn_outbox_destroy(own);
}

/* A copy of a good outbox with the byte at `damage` changed, and `seals`. */
static int forge(size_t damage, int seals)
{
    struct qn_outbox *good = make(true);
    size_t bytes = qn_outbox_bytes(good);
    int fd = memfd_create("forged", MFD_ALLOW_SEALING);
    const uint8_t *from = (const uint8_t *)qn_outbox_doorbell(good) - 64;
    cr_assert_eq(write(fd, from, bytes), (ssize_t)bytes);
    if (damage < bytes) {
        uint8_t changed = from[damage] ^ 0x55;
        cr_assert_eq(pwrite(fd, &changed, 1, (off_t)damage), 1);
    }
    cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
    qn_outbox_destroy(good);
    return fd;
}

#define SEALS_BUT_LAST (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)

static int map_forged(size_t damage, int seals)
{
    struct qn_outbox *seen = NULL;
    struct qn_outbox_opts w = opts(true);
    int fd = forge(damage, seals);
    int err = qn_outbox_map(&seen, fd, &w);
    qn_outbox_destroy(seen);
    close(fd);
    return err;
}

Test(outbox, each_damaged_byte_of_the_header_is_found)
{
    const int seals = SEALS_BUT_LAST | F_SEAL_SEAL;
    cr_assert_eq(map_forged(SIZE_MAX, seals), QN_OK, "undamaged");
    /* magic, version, node, nodes, page: 0..23; incarnation: 24..31;
     * lane_bytes, ring_bytes, arena_bytes, bytes: 32..63. */
    for (size_t at = 0; at < 64; at++) {
        int want = at >= 24 && at < 32 ? QN_ESTALE : QN_ECORRUPT;
        cr_expect_eq(map_forged(at, seals), want, "byte %zu", at);
    }
    cr_assert_eq(map_forged(64, seals), QN_OK, "behind the header");
}

Test(outbox, each_missing_seal_is_found)
{
    static const int seal[] = {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_FUTURE_WRITE,
                               F_SEAL_SEAL};
    for (size_t i = 0; i < 4; i++) {
        int seals = (SEALS_BUT_LAST | F_SEAL_SEAL) & ~seal[i];
        cr_expect_eq(map_forged(SIZE_MAX, seals), QN_EPERM, "seal %zu", i);
    }
}

Test(outbox, what_is_no_memfd_is_refused)
{
    struct qn_outbox *seen = NULL;
    struct qn_outbox_opts w = opts(true);
    int fd = open("/dev/zero", O_RDONLY);
    cr_assert_eq(qn_outbox_map(&seen, fd, &w), QN_EPERM);
    close(fd);
    cr_assert_eq(qn_outbox_map(&seen, -1, &w), QN_EPERM);
}

Test(outbox, a_wrong_size_is_found)
{
    struct qn_outbox *seen = NULL;
    struct qn_outbox_opts w = opts(true);
    int fd = memfd_create("short", MFD_ALLOW_SEALING);
    cr_assert_eq(ftruncate(fd, 4096), 0);
    fcntl(fd, F_ADD_SEALS, SEALS_BUT_LAST | F_SEAL_SEAL);
    cr_assert_eq(qn_outbox_map(&seen, fd, &w), QN_ECORRUPT);
    close(fd);
}

/* -------------------------------------------------------------- the ring -- */

#define RING ((size_t)1 << 30)

static struct qn_outbox *make_ring(bool shared)
{
    struct qn_outbox *o = NULL;
    struct qn_outbox_opts w = opts(shared);
    w.ring_bytes = RING;
    cr_assert_eq(qn_outbox_create(&o, &w), QN_OK);
    return o;
}

static size_t allocated(const struct qn_outbox *o)
{
    struct stat st;
    cr_assert_eq(fstat(qn_outbox_fd(o), &st), 0);
    return (size_t)st.st_blocks * 512;
}

Test(outbox, without_a_ring_there_is_none)
{
    for (int shared = 0; shared < 2; shared++) {
        struct qn_outbox *o = make(shared);
        cr_assert_eq(qn_outbox_region(o, QN_REGION_RING), NULL);
        cr_assert_eq(qn_outbox_grow(o, QN_REGION_RING, 0), QN_OK);
        cr_assert_eq(qn_outbox_grow(o, QN_REGION_RING, 1), QN_ENOMEM);
        qn_outbox_destroy(o);
    }
}

Test(outbox, a_ring_takes_address_space_and_no_memory)
{
    struct qn_outbox *o = make_ring(true);
    struct qn_outbox_opts w = opts(true);
    size_t fixed = qn_outbox_bytes_fixed(&w);
    uint8_t *ring = qn_outbox_region(o, QN_REGION_RING);
    cr_assert_eq(qn_outbox_bytes(o), fixed + RING);
    cr_assert_eq(allocated(o), fixed);
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
        size_t fixed = shared ? allocated(o) : 0;
        size_t had = 0;
        for (size_t i = 0; i < 5; i++) {
            cr_assert_eq(qn_outbox_grow(o, QN_REGION_RING, step[i]), QN_OK);
            size_t have = qn_load(&qn_outbox_state(o)->ring, QN_ACQUIRE);
            cr_assert(have >= step[i] && have < step[i] + 4096);
            cr_assert(!shared || allocated(o) == fixed + have);
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

Test(outbox, who_mapped_it_before_sees_what_has_grown)
{
    struct qn_outbox *own = make_ring(true);
    struct qn_outbox *seen;
    struct qn_outbox_opts w = opts(true);
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
    size_t had = allocated(o);
    for (size_t i = 0; i < 3; i++) {
        refuse = reasons[i];
        cr_assert_eq(qn_outbox_grow(o, QN_REGION_RING, 16384), QN_ENOMEM);
        cr_assert_eq(qn_outbox_grow(o, QN_REGION_RING, 8192), QN_OK,
                     "needs nothing");
    }
    refuse = 0;
    cr_assert_eq(qn_outbox_grow(o, QN_REGION_RING, RING + 1), QN_ENOMEM);
    cr_assert_eq(qn_load(&qn_outbox_state(o)->ring, QN_ACQUIRE), 8192);
    cr_assert_eq(allocated(o), had);
    cr_assert_eq(((uint8_t *)qn_outbox_region(o, QN_REGION_RING))[8191], 7);
    refuse = EINTR;
    cr_assert_eq(qn_outbox_grow(o, QN_REGION_RING, 16384), QN_OK,
                 "later there is some");
    memset(qn_outbox_region(o, QN_REGION_RING), 7, 16384);
    qn_outbox_destroy(o);
}

Test(outbox, an_arena_grows_behind_the_ring)
{
    struct qn_outbox_opts w = opts(true);
    struct qn_outbox *o;
    w.ring_bytes = RING - 1; /* in whole pages all the same */
    w.arena_bytes = RING;
    cr_assert_eq(qn_outbox_create(&o, &w), QN_OK);
    uint8_t *ring = qn_outbox_region(o, QN_REGION_RING);
    uint8_t *arena = qn_outbox_region(o, QN_REGION_ARENA);
    cr_assert_eq(arena, ring + RING);
    size_t fixed = allocated(o);
    cr_assert_eq(qn_outbox_grow(o, QN_REGION_ARENA, 8000), QN_OK);
    memset(arena, 5, 8000);
    cr_assert_eq(allocated(o), fixed + 8192);
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
        _exit(ways_to_write(fd, bytes));
    }
    int status;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFEXITED(status));
    cr_assert_eq(WEXITSTATUS(status), 0, "ways %d", WEXITSTATUS(status));
    cr_assert_eq(((uint8_t *)qn_outbox_region(own, QN_REGION_RING))[8191], 7);
    qn_outbox_destroy(own);
}

static void *use_alias(void *arg)
{
    struct qn_outbox *view = arg;
    qn_store(&qn_outbox_state(view)->turns, 5, QN_RELEASE);
    qn_outbox_destroy(view);
    return NULL;
}

Test(outbox, an_alias_shares_the_memory_in_either_order, .timeout = 10)
{
    for (int own_first = 0; own_first < 2; own_first++) {
        struct qn_outbox *own = make(false);
        struct qn_outbox *keep;
        struct qn_outbox *view;
        pthread_t thread;
        cr_assert_eq(qn_outbox_alias(&keep, own), QN_OK);
        cr_assert_eq(qn_outbox_alias(&view, own), QN_OK);
        if (own_first) {
            qn_outbox_destroy(own);
        }
        pthread_create(&thread, NULL, use_alias, view);
        pthread_join(thread, NULL);
        cr_assert_eq(qn_load(&qn_outbox_state(keep)->turns, QN_ACQUIRE), 5);
        qn_outbox_destroy(keep);
        if (!own_first) {
            qn_outbox_destroy(own);
        }
    }
}

Test(outbox, destroying_nothing_is_fine)
{
    qn_outbox_destroy(NULL);
}

/* ---- seats --------------------------------------------------------------- */

#define LANES_TO_A_SEAT (2 * (size_t)8192) /* two of LANE, in whole pages */

static struct qn_outbox *make_seats(bool shared, uint64_t seats)
{
    struct qn_outbox *o = NULL;
    struct qn_outbox_opts w = opts(shared);
    w.nodes = QN_NODES_MAX;
    w.seats = seats;
    cr_assert_eq(qn_outbox_create(&o, &w), QN_OK);
    cr_assert(!shared || allocated(o) == qn_outbox_bytes_fixed(&w));
    return o;
}

Test(outbox, a_vacant_seat_takes_address_space_and_no_memory)
{
    struct qn_outbox *all = make_seats(true, 0);
    struct qn_outbox *three = make_seats(true, 7);
    cr_assert_eq(qn_outbox_bytes(all), qn_outbox_bytes(three));
    cr_assert_eq(allocated(all) - allocated(three),
                 (QN_NODES_MAX - 3) * LANES_TO_A_SEAT);
    struct qn_outbox *alone = make_seats(true, 1u << 1); /* its own */
    cr_assert_eq(allocated(three) - allocated(alone), 2 * LANES_TO_A_SEAT);
    qn_outbox_destroy(alone);
    qn_outbox_destroy(three);
    qn_outbox_destroy(all);
}

/* Each in turn, last one first; the others stay as they were. */
Test(outbox, a_seat_is_taken_in_place)
{
    for (int shared = 0; shared < 2; shared++) {
        struct qn_outbox *o = make_seats(shared, 5);
        struct qn_outbox_opts w = opts(shared);
        struct qn_outbox *seen = NULL;
        size_t had = shared ? allocated(o) : 0;
        w.nodes = QN_NODES_MAX; /* a reader need not know the seats */
        cr_assert_eq(shared ? qn_outbox_map(&seen, qn_outbox_fd(o), &w)
                            : qn_outbox_alias(&seen, o),
                     QN_OK);
        for (qn_node_t i = QN_NODES_MAX - 1; i > 1; i--) {
            size_t more = i == 2 ? 0 : LANES_TO_A_SEAT; /* it has one */
            cr_assert_eq(qn_outbox_seated(seen, i), i == 2);
            cr_assert_eq(qn_outbox_seat(o, i), QN_OK);
            cr_assert_eq(qn_outbox_seat(o, i), QN_OK);
            cr_assert(qn_outbox_seated(seen, i));
            cr_assert(!shared || allocated(o) == had + more);
            had += more;
            memset(qn_outbox_lane(o, i, QN_LANE_DIRECT), (int)i, LANE);
            memset(qn_outbox_lane(o, i, QN_LANE_TREE), (int)i + 100, LANE);
        }
        for (qn_node_t i = 2; i < QN_NODES_MAX; i++) {
            const uint8_t *direct = qn_outbox_lane(seen, i, QN_LANE_DIRECT);
            const uint8_t *tree = qn_outbox_lane(seen, i, QN_LANE_TREE);
            cr_assert(direct[0] == i && direct[LANE - 1] == i, "%u", i);
            cr_assert(tree[0] == i + 100 && tree[LANE - 1] == i + 100);
        }
        qn_outbox_destroy(seen);
        qn_outbox_destroy(o);
    }
}

Test(outbox, a_seat_without_memory_stays_vacant)
{
    struct qn_outbox *o = make_seats(true, 3);
    size_t had = allocated(o);
    refuse = ENOSPC;
    cr_assert_eq(qn_outbox_seat(o, 9), QN_ENOMEM);
    refuse = 0;
    cr_assert_eq(allocated(o), had);
    cr_assert_not(qn_outbox_seated(o, 9));
    cr_assert_eq(qn_outbox_seat(o, 9), QN_OK);
    cr_assert_eq(allocated(o), had + LANES_TO_A_SEAT);
    qn_outbox_destroy(o);
    struct qn_outbox_opts w = opts(true);
    w.seats = 1u << 3; /* there are three nodes */
    cr_assert_eq(qn_outbox_create(&o, &w), QN_EINVAL);
}

/* A group of three that may grow to 64. */
Test(outbox, a_capacity_of_64_costs_three_members_no_lanes)
{
    size_t fixed[2];
    for (int i = 0; i < 2; i++) {
        struct qn_outbox_opts w = opts(true);
        w.nodes = i == 0 ? 3 : QN_NODES_MAX;
        w.seats = 7;
        fixed[i] = 3 * qn_outbox_bytes_fixed(&w);
    }
    cr_assert_eq(fixed[0], fixed[1]);
}

/* ---- queuepairs ---------------------------------------------------------- */

/* A transport that notes what it is opened on, and fails at the n-th. */
static struct qn_qp_opts opened_on[QN_LANES_MAX];
static struct qn_qp ends[QN_LANES_MAX];
static uint32_t opens, closes, fails_at;

static void fake_close(struct qn_qp *qp)
{
    cr_assert(qp >= ends && qp < ends + QN_LANES_MAX);
    closes++;
}

static int fake_open(struct qn_qp **out, const struct qn_qp_opts *o)
{
    static const struct qn_qp_ops ops = {.close = fake_close};
    if (opens == fails_at) {
        return QN_ENOMEM;
    }
    opened_on[opens] = *o;
    ends[opens].ops = &ops;
    *out = &ends[opens++];
    return QN_OK;
}

static int connect_three(struct qn_qp **qp, struct qn_outbox *own,
                         struct qn_outbox *peer)
{
    static const struct qn_transport fake = {.open = fake_open};
    const struct qn_outbox_connect_opts o = {
        .transport = &fake,
        .own = own,
        .peer = peer,
        .lanes = 3,
        .each = {.cells = 64, .self = 1, .peer = 2}};
    opens = closes = 0;
    return qn_outbox_connect(qp, &o);
}

Test(outbox, queuepairs_lie_in_the_lanes_of_both)
{
    struct qn_outbox_opts w = opts(false);
    struct qn_outbox *own, *peer;
    struct qn_qp *qp[3] = {&ends[3], &ends[3], &ends[3]};
    w.lanes = 3;
    cr_assert_eq(qn_outbox_create(&own, &w), QN_OK);
    w.node = 2;
    w.incarnation = 9;
    cr_assert_eq(qn_outbox_create(&peer, &w), QN_OK);
    fails_at = 3;
    cr_assert_eq(connect_three(qp, own, peer), QN_OK);
    for (uint32_t l = 0; l < 3; l++) {
        const struct qn_qp_opts *o = &opened_on[l];
        cr_assert(qp[l] == &ends[l] && o->lane == (enum qn_lane)l);
        cr_assert(o->tx == qn_outbox_lane(own, 2, (enum qn_lane)l));
        cr_assert(o->rx == qn_outbox_lane(peer, 1, (enum qn_lane)l));
        cr_assert(o->self_inc == 7 && o->peer_inc == 9);
        cr_assert(o->self == 1 && o->peer == 2 && o->cells == 64);
    }
    fails_at = 2;
    cr_assert_eq(connect_three(qp, own, peer), QN_ENOMEM);
    cr_assert_eq(closes, 2, "those that were open");
    cr_assert(qp[0] == NULL && qp[1] == NULL && qp[2] == NULL);
    qn_outbox_destroy(own);
    qn_outbox_destroy(peer);
}
