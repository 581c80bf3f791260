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
#include "outbox_world.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"

Test(outbox, is_zero_and_writable_for_its_owner)
{
    for (int shared = 0; shared < 2; shared++) {
        struct qn_outbox *o = outbox_make(shared);
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
                     UINT64_MAX, "before a vote");
        qn_outbox_destroy(o);
    }
}

Test(outbox, lanes_do_not_overlap)
{
    struct qn_outbox *o = outbox_make(true);
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
    struct qn_outbox *o, *seen, *two = outbox_make(true);
    struct qn_outbox_opts w = outbox_opts(true);
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
    struct qn_outbox_opts w = outbox_opts(true);
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
    struct qn_outbox_opts w = outbox_opts(true);
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
        struct qn_outbox_opts w = outbox_opts(true);
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
    struct qn_outbox *own = outbox_make(true);
    struct qn_outbox *seen;
    struct qn_outbox_opts w = outbox_opts(true);
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
    struct qn_outbox *own = outbox_make(true);
    struct qn_outbox *seen;
    struct qn_outbox_opts w = outbox_opts(true);
    cr_assert_eq(qn_outbox_map(&seen, qn_outbox_fd(own), &w), QN_OK);
    /* The sanitizers' own handlers would turn the signal into an exit. */
    signal(SIGSEGV, SIG_DFL);
    *(uint8_t *)qn_outbox_lane(seen, 2, QN_LANE_TREE) = 1;
}

Test(outbox, a_peer_process_has_no_way_to_write)
{
    struct qn_outbox *own = outbox_make(true);
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
    memset(qn_outbox_lane(own, 0, QN_LANE_DIRECT), 1, LANE);
    qn_outbox_destroy(own);
}

Test(outbox, is_allocated_in_full)
{
    struct qn_outbox *o = outbox_make(true);
    struct stat st;
    cr_assert_eq(fstat(qn_outbox_fd(o), &st), 0);
    cr_assert_geq((size_t)st.st_blocks * 512, qn_outbox_bytes(o));
    struct qn_outbox_opts w = outbox_opts(true);
    cr_assert_eq(qn_outbox_bytes_fixed(&w), qn_outbox_bytes(o));
    qn_outbox_destroy(o);
}

Test(outbox, lack_of_memory_is_an_error_at_start_and_leaves_nothing)
{
    static const int reasons[] = {ENOSPC, ENOMEM, EFBIG};
    int before = open_descriptors();
    for (size_t i = 0; i < 3; i++) {
        struct qn_outbox *o = NULL;
        struct qn_outbox_opts w = outbox_opts(true);
        outbox_refuse = reasons[i];
        cr_assert_eq(qn_outbox_create(&o, &w), QN_ENOMEM);
        cr_assert_eq(o, NULL);
    }
    cr_assert_eq(open_descriptors(), before);
}

Test(outbox, a_signal_during_allocation_is_no_error)
{
    outbox_refuse = EINTR;
    qn_outbox_destroy(outbox_make(true));
    cr_assert_eq(outbox_refuse, 0);
}

Test(outbox, homing_is_a_wish)
{
    static const int reader[3] = {0, -1, 999};
    struct qn_outbox *o;
    struct qn_outbox_opts w = outbox_opts(true);
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
    struct qn_outbox *own = outbox_make(true);
    struct qn_outbox *seen = NULL;
    struct qn_outbox_opts w = outbox_opts(true);
    w.incarnation = 8;
    cr_assert_eq(qn_outbox_map(&seen, qn_outbox_fd(own), &w), QN_ESTALE);
    w.incarnation = 0;
    cr_assert_eq(qn_outbox_map(&seen, qn_outbox_fd(own), &w), QN_OK, "any");
    qn_outbox_destroy(seen);
    qn_outbox_destroy(own);
}

Test(outbox, of_another_shape_is_corrupt)
{
    struct qn_outbox *own = outbox_make(true);
    for (int i = 0; i < 4; i++) {
        struct qn_outbox *seen = NULL;
        struct qn_outbox_opts w = outbox_opts(true);
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
    struct qn_outbox *good = outbox_make(true);
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
    struct qn_outbox_opts w = outbox_opts(true);
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
    struct qn_outbox_opts w = outbox_opts(true);
    int fd = open("/dev/zero", O_RDONLY);
    cr_assert_eq(qn_outbox_map(&seen, fd, &w), QN_EPERM);
    close(fd);
    cr_assert_eq(qn_outbox_map(&seen, -1, &w), QN_EPERM);
}

Test(outbox, a_wrong_size_is_found)
{
    struct qn_outbox *seen = NULL;
    struct qn_outbox_opts w = outbox_opts(true);
    int fd = memfd_create("short", MFD_ALLOW_SEALING);
    cr_assert_eq(ftruncate(fd, 4096), 0);
    fcntl(fd, F_ADD_SEALS, SEALS_BUT_LAST | F_SEAL_SEAL);
    cr_assert_eq(qn_outbox_map(&seen, fd, &w), QN_ECORRUPT);
    close(fd);
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
        struct qn_outbox *own = outbox_make(false);
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
