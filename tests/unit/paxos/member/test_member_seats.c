/*
 * Seats of a group: its capacity, of which some are vacant. Lanes to a vacant
 * one are address space; they become memory when a member takes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "core/base/err.h"
#include "paxos/driver/vote_record.h"
#include "paxos/member/member_internal.h"
#include "paxos/member/member_needs.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/member/one_member.h"

enum { SEATS = 5 }; /* of most groups here */

/* Our own posix_fallocate stands before the library's, to run out of memory
 * after this number of calls; negative: never. */
static _Thread_local int refuse_after = -1;

int posix_fallocate(int fd, off_t offset, off_t len)
{
    if (refuse_after == 0) {
        return ENOSPC;
    }
    refuse_after -= refuse_after > 0;
    return fallocate(fd, 0, offset, len) == 0 ? 0 : errno;
}

/* Bytes of memory behind a memfd. */
static uint64_t bytes_of(int fd)
{
    struct stat st;
    cr_assert_eq(fstat(fd, &st), 0);
    return (uint64_t)st.st_blocks * 512;
}

/* ---- a group ------------------------------------------------------------- */

static struct world w;

static uint64_t outbox_bytes(qn_node_t node)
{
    return bytes_of(qn_member_outbox_fd(w.present[node]->member));
}

static uint64_t lanes_to_a_seat(void)
{
    const struct qn_member_opts o = world_opts(&w, 0, 1);
    const struct qn_member_size s = {
        .nodes = w.seats,
        .channels = qn_transport_needs(w.transport, o.cells, &o.device)};
    return qn_member_needs(&s).seat;
}

/* Of five seats three are taken at first, by the voters. */
Test(member_seats, a_newcomer_takes_a_vacant_seat_while_others_go_on,
     .timeout = 60)
{
    uint64_t before[WORLD_NODES];
    w.seats = SEATS;
    world_begin(&w, "ump", true);
    world_submit(&w, 1, 100);
    world_applied(&w, 100);
    for (qn_node_t i = 0; i < WORLD_NODES; i++) {
        before[i] = outbox_bytes(i);
    }
    world_return(&w, 4);
    world_submit(&w, 4, 20);
    world_submit(&w, 0, 20);
    world_applied(&w, 140);
    for (qn_node_t i = 0; i < WORLD_NODES; i++) {
        cr_expect_eq(outbox_bytes(i), before[i] + lanes_to_a_seat());
        cr_expect_eq(world_facts(&w, i).state.digest,
                     world_facts(&w, 4).state.digest);
    }
    world_kill(&w, 1);
    world_submit(&w, 4, 20);
    world_applied(&w, 160);
    world_return(&w, 1);
    world_return(&w, 3);
    world_submit(&w, 3, 20);
    world_submit(&w, 1, 20);
    world_applied(&w, 200);
    cr_expect_eq(world_facts(&w, 1).state.digest,
                 world_facts(&w, 3).state.digest);
    cr_expect_eq(outbox_bytes(0), before[0] + 2 * lanes_to_a_seat());
    world_end(&w);
}

/* ---- one member ---------------------------------------------------------- */

static void begin_five(void)
{
    one.world.seats = SEATS;
    one_begin();
    one.o.seats = 7;
    one.o.callbacks.recorded = one_ignores_recorder;
}

#define CASE(name, ...)                                                        \
    Test(one_members_seats, name, .init = begin_five, .fini = one_end,         \
         __VA_ARGS__)

CASE(a_seat_that_is_not_there_makes_no_member, .timeout = 10)
{
    struct qn_member *m = NULL;
    one.o.seats |= UINT64_C(1) << SEATS;
    cr_assert_eq(qn_member_create(&m, &one.o), QN_EINVAL);
}

/* Started, with 1 and 2 as peers. */
static struct qn_member *start(struct qn_outbox *peer[2])
{
    static const struct qn_service service;
    struct qn_member *m = NULL;
    cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
    for (qn_node_t i = 1; i <= 2; i++) {
        peer[i - 1] = one_outbox(m, i, i + 1);
        cr_assert_eq(one_meet(m, peer[i - 1], i, i + 1), QN_OK);
    }
    cr_assert_eq(qn_member_start(m, &service, NULL), QN_OK);
    return m;
}

static void end(struct qn_member *m, struct qn_outbox *peer[2])
{
    qn_member_destroy(m);
    qn_outbox_destroy(peer[0]);
    qn_outbox_destroy(peer[1]);
}

/* Memory that a group of three takes, if each member takes as much as this one:
 * what it shares, and what is its own. */
static uint64_t taken_by_three(uint32_t seats)
{
    struct qn_outbox *peer[2];
    struct qn_alloc_limit own;
    qn_alloc_limit_init(&own, &qn_alloc_malloc, SIZE_MAX);
    one_end();
    one.world.seats = seats;
    one_begin();
    one.o.seats = 7;
    one.o.alloc = &own.alloc;
    struct qn_member *m = start(peer);
    uint64_t bytes = bytes_of(one.world.commons_fd) +
                     3 * (bytes_of(qn_member_outbox_fd(m)) + own.used);
    cr_assert_gt(own.used, 1u << 20);
    end(m, peer);
    return bytes;
}

CASE(a_capacity_of_64_costs_three_members_8_mib_at_most, .timeout = 10)
{
    uint64_t few = taken_by_three(3);
    uint64_t more = taken_by_three(QN_NODES_MAX) - few;
    cr_assert_geq(more,
                  qn_commons_bytes(QN_NODES_MAX, 0) - qn_commons_bytes(3, 0));
    cr_assert_leq(more, 8u << 20);
}

CASE(a_newcomer_without_memory_for_its_lanes_is_told, .timeout = 10)
{
    struct qn_outbox *peer[2];
    struct qn_member *m = start(peer);
    struct qn_outbox *o = one_outbox(m, 3, 4);
    struct qn_member_peer p;
    uint64_t bytes = bytes_of(qn_member_outbox_fd(m));
    int before = open_descriptors();
    refuse_after = 0;
    cr_assert_eq(one_peer_up(m, o, 3, 4), QN_ENOMEM);
    refuse_after = -1;
    cr_assert_eq(open_descriptors(), before);
    cr_assert_eq(bytes_of(qn_member_outbox_fd(m)), bytes);
    cr_assert_eq(qn_member_peers(m), 6);
    cr_assert_not(qn_member_peer(m, 3, &p));
    cr_assert_eq(p.incarnation, 0, "it was never there");
    cr_assert_eq(one_peer_up(m, o, 3, 4), QN_OK);
    cr_assert_gt(bytes_of(qn_member_outbox_fd(m)), bytes);
    cr_assert_eq(qn_member_peers(m), 14);
    qn_outbox_destroy(o);
    end(m, peer);
}

CASE(a_peer_without_memory_for_its_lanes_is_not_met, .timeout = 10)
{
    struct qn_member *m = NULL;
    cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
    struct qn_outbox *o = one_outbox(m, 4, 4);
    int before = open_descriptors();
    refuse_after = 0;
    cr_assert_eq(one_meet(m, o, 4, 4), QN_ENOMEM);
    refuse_after = -1;
    cr_assert_eq(open_descriptors(), before);
    cr_assert_eq(qn_member_peers(m), 0);
    cr_assert_eq(one_meet(m, o, 4, 4), QN_OK);
    qn_outbox_destroy(o);
    qn_member_destroy(m);
}

/* Each allocation of its shared memory. */
CASE(a_member_without_shared_memory_is_not_made, .timeout = 10)
{
    int before = open_descriptors();
    int err = QN_ENOMEM;
    int calls = 0;
    for (; err == QN_ENOMEM; calls++) {
        struct qn_member *m = NULL;
        refuse_after = calls;
        err = qn_member_create(&m, &one.o);
        cr_assert(err == QN_OK || m == NULL);
        qn_member_destroy(m);
        cr_assert_eq(open_descriptors(), before);
    }
    refuse_after = -1;
    cr_assert_eq(err, QN_OK);
    cr_assert_geq(calls, 6, "its front, two seats, ring and arena");
}

/* What the other one does not say is memory must not be read. */
CASE(a_peer_is_present_when_it_has_lanes_for_this_member, .timeout = 10)
{
    struct qn_outbox *peer[2];
    struct qn_member *m = start(peer);
    struct qn_outbox *o = one_outbox_seats(m, 3, 4, 1u << 3);
    struct qn_member_peer p;
    cr_assert_eq(one_peer_up(m, o, 3, 4), QN_EAGAIN);
    cr_assert_eq(qn_member_peers(m), 6);
    cr_assert_not(qn_member_peer(m, 3, &p));
    cr_assert_eq(p.incarnation, 0);
    cr_assert_eq(qn_outbox_seat(o, 0), QN_OK);
    cr_assert_eq(one_peer_up(m, o, 3, 4), QN_OK);
    qn_outbox_destroy(o);
    end(m, peer);
}

CASE(a_member_starts_when_its_peers_have_lanes_for_it, .timeout = 10)
{
    static const struct qn_service service;
    struct qn_member *m = NULL;
    one.o.voters = 3;
    for (int seated = 0; seated < 2; seated++) {
        cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
        struct qn_outbox *o = one_outbox_seats(m, 1, 2, seated ? 3 : 1u << 1);
        cr_assert_eq(one_meet(m, o, 1, 2), QN_OK);
        cr_assert_eq(qn_member_start(m, &service, NULL),
                     seated ? QN_OK : QN_EAGAIN);
        qn_member_destroy(m);
        qn_outbox_destroy(o);
        one.o.incarnation++;
    }
}

/* It is told later, and comes up then. */
CASE(a_met_peer_without_lanes_for_this_member_is_not_there, .timeout = 10)
{
    static const struct qn_service service;
    struct qn_member *m = NULL;
    struct qn_member_peer p;
    cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
    struct qn_outbox *seated = one_outbox(m, 1, 2);
    struct qn_outbox *o = one_outbox_seats(m, 2, 3, 1u << 2);
    qn_member_meet_ended(m, 2, 1); /* of a former process of that seat */
    cr_assert_eq(one_meet(m, seated, 1, 2), QN_OK);
    cr_assert_eq(one_meet(m, o, 2, 3), QN_OK);
    qn_member_meet_unless_seated(m, 1);
    qn_member_meet_unless_seated(m, 2);
    cr_assert_not(qn_member_peer(m, 2, &p));
    cr_assert_eq(p.incarnation, 1);
    qn_member_set_voters(m, 3);
    cr_assert_eq(qn_member_start(m, &service, NULL), QN_OK);
    cr_assert_eq(qn_member_peers(m), 2);
    cr_assert_eq(one_peer_up(m, o, 2, 3), QN_EAGAIN);
    cr_assert_eq(qn_outbox_seat(o, 0), QN_OK);
    cr_assert_eq(one_peer_up(m, o, 2, 3), QN_OK);
    cr_assert_eq(qn_member_peers(m), 6);
    qn_outbox_destroy(seated);
    qn_outbox_destroy(o);
    qn_member_destroy(m);
}

CASE(lanes_are_allocated_before_a_peer_is_told, .timeout = 10)
{
    struct qn_member *m = NULL;
    one.o.seats = 1;
    cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
    const uint64_t bytes = bytes_of(qn_member_outbox_fd(m));
    refuse_after = 0;
    cr_assert_eq(qn_member_seat(m, 3), QN_ENOMEM);
    refuse_after = -1;
    cr_assert_eq(bytes_of(qn_member_outbox_fd(m)), bytes);
    cr_assert_eq(qn_member_seat(m, 3), QN_OK);
    const uint64_t more = bytes_of(qn_member_outbox_fd(m));
    cr_assert_gt(more, bytes);
    cr_assert_eq(qn_member_seat(m, 3), QN_OK, "they are there");
    cr_assert_eq(bytes_of(qn_member_outbox_fd(m)), more);
    qn_member_destroy(m);
}

static int record_of(const struct qn_member *m, qn_node_t node,
                     struct qn_vote *vote)
{
    static struct qn_ul_entry log[QN_UL_KEPT];
    uint32_t count = 0;
    int err = qn_vote_record_read(qn_commons_record(m->commons, node),
                                  QN_COMMONS_RECORD_BYTES, vote, log,
                                  QN_UL_KEPT, &count);
    cr_assert(err != QN_OK || count == 1, "the first entry");
    return err;
}

CASE(the_first_member_writes_the_records_of_the_first_voters, .timeout = 10)
{
    struct qn_outbox *peer[2];
    struct qn_vote vote;
    one.o.voters = 7;
    one.o.first = true;
    struct qn_member *m = start(peer);
    cr_assert_eq(record_of(m, 1, &vote), QN_ECORRUPT);
    cr_assert_eq(qn_member_begin_records(m, 6), QN_OK);
    for (qn_node_t i = 0; i < 3; i++) {
        cr_assert_eq(record_of(m, i, &vote), QN_OK);
        cr_assert_eq(vote.index, 1);
        cr_assert_eq(vote.vbal.round, 0);
        cr_assert_eq(vote.since, 0);
    }
    cr_assert_eq(record_of(m, 3, &vote), QN_ECORRUPT, "no voter");
    end(m, peer);
}
