/*
 * Processes that meet at a name and keep one state (group_world.h).
 */
#include "paxos/group/group.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/bits.h"
#include "core/place/liveness.h"
#include "core/rendezvous/fd_message.h"
#include "paxos/group/group_internal.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/group/group_world.h"
#include "transports/registry.h"

static struct group_world w;

static void init(void)
{
    group_world_begin(&w, 3);
}

static void fini(void)
{
    group_world_end(&w);
}

#define CASE(name) Test(group, name, .init = init, .fini = fini, .timeout = 100)

#define LONG ((uint64_t)60 * 1000000000)

/* ---- what is waited for -------------------------------------------------- */

static bool serves(const struct group_world_report *r, uint64_t arg)
{
    (void)arg;
    return r->status.phase == QN_GROUP_SERVING;
}

static bool has_commands(const struct group_world_report *r, uint64_t n)
{
    return r->state.commands == n;
}

static bool has_ended(const struct group_world_report *r, uint64_t n)
{
    return r->applied + r->unknown == n;
}

static bool has_members(const struct group_world_report *r, uint64_t mask)
{
    return r->status.members == mask;
}

static bool has_failed(const struct group_world_report *r, uint64_t arg)
{
    (void)arg;
    return r->status.phase == QN_GROUP_ENDED;
}

static bool has_unknown(const struct group_world_report *r, uint64_t n)
{
    return r->unknown == n;
}

static bool has_barriers(const struct group_world_report *r, uint64_t n)
{
    return r->barriers == n;
}

static bool has_guests(const struct group_world_report *r, uint64_t n)
{
    return r->guests == n;
}

static bool has_copies(const struct group_world_report *r, uint64_t n)
{
    return (uint64_t)__builtin_popcountll(r->status.in_sync) == n;
}

static bool has_donor(const struct group_world_report *r, uint64_t arg)
{
    (void)arg;
    return r->status.donor != r->status.capacity;
}

static bool has_given(const struct group_world_report *r, uint64_t n)
{
    return r->status.snapshots_given == n &&
           r->status.joiner == r->status.capacity;
}

static void start_all(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (w.process[i].pid == 0) {
            group_world_start(&w, i);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        group_world_wait(&w, i, serves, 0);
    }
}

/* Which process has that seat. */
static uint32_t at_seat(uint32_t seat)
{
    for (uint32_t i = 0; i < GROUP_WORLD_MAX; i++) {
        if (w.process[i].pid != 0 &&
            group_world_report(&w, i).status.seat == seat) {
            return i;
        }
    }
    return GROUP_WORLD_MAX;
}

/* All have the same state. @return its commands. */
static uint64_t expect_alike(uint32_t n)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct group_world_report r = group_world_report(&w, i);
        most = QN_MAX(most, r.state.commands);
    }
    for (uint32_t i = 0; i < n; i++) {
        group_world_wait(&w, i, has_commands, most);
        const struct group_world_report r = group_world_report(&w, i),
                                        first = group_world_report(&w, 0);
        cr_expect_eq(r.state.digest, first.state.digest);
        cr_expect_eq(r.wrong, 0);
    }
    return most;
}

/* ---- a group ------------------------------------------------------------- */

CASE(one_process_is_a_group)
{
    w.opts.members = 1;
    start_all(1);
    group_world_propose(&w, 0, 100, LONG);
    group_world_wait(&w, 0, has_ended, 100);
    group_world_barrier(&w, 0, 3);
    group_world_wait(&w, 0, has_barriers, 3);
    const struct group_world_report r = group_world_report(&w, 0);
    cr_expect_eq(r.applied, 100);
    cr_expect_eq(r.wrong, 0);
    cr_expect_eq(r.status.members, 1);
    cr_expect_eq(r.status.deaths, 0);
}

static void propose_everywhere(uint32_t n, uint64_t each)
{
    for (uint32_t i = 0; i < n; i++) {
        group_world_propose(&w, i, each, LONG);
    }
    for (uint32_t i = 0; i < n; i++) {
        group_world_wait(&w, i, has_ended, each);
    }
}

CASE(three_processes_apply_the_same)
{
    start_all(3);
    propose_everywhere(3, 500);
    cr_expect_eq(expect_alike(3), 1500);
    group_world_wait(&w, 0, has_copies, 3);
    const struct group_world_report r = group_world_report(&w, 1);
    cr_expect_eq(r.applied, 500);
    cr_expect_eq(r.status.members, 7);
    cr_expect_eq(r.status.deaths, 1);
    cr_expect_eq(r.state.of_seat[r.status.seat], 500);
}

CASE(a_host_that_waits_for_edges_misses_none)
{
    w.loop = LOOP_EPOLL_EDGE;
    start_all(3);
    for (uint32_t round = 1; round <= 20; round++) {
        for (uint32_t i = 0; i < 3; i++) {
            group_world_propose(&w, i, 7, LONG);
            group_world_wait(&w, i, has_ended, UINT64_C(7) * round);
        }
    }
    cr_expect_eq(expect_alike(3), 420);
}

/* A barrier's state has all that any member had shown before. */
CASE(a_barrier_shows_what_others_have_applied)
{
    start_all(3);
    for (uint64_t round = 1; round <= 30; round++) {
        group_world_propose(&w, 0, 5, LONG);
        group_world_wait(&w, 0, has_ended, 5 * round);
        group_world_barrier(&w, 2, 1);
        group_world_wait(&w, 2, has_barriers, round);
        cr_expect_geq(group_world_report(&w, 2).state.commands, 5 * round);
    }
}

/* ---- meeting ------------------------------------------------------------- */

CASE(ten_at_once_are_one_group_and_the_name_is_free_after_them)
{
    w.opts.members = 10;
    for (uint32_t round = 0; round < 3; round++) {
        start_all(10);
        propose_everywhere(10, 10);
        cr_expect_eq(expect_alike(10), 100, "round %u", round);
        for (uint32_t i = 0; i < 10; i++) {
            group_world_kill(&w, i);
        }
    }
}

/* A socket of their parent is the place, though it has no name and though the
 * child of a dead member has it, too. */
CASE(processes_meet_at_a_socket_of_their_parent)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert_eq(listen(fd, 1), -1, "it has no name");
    w.opts.name = NULL;
    w.opts.socket_fd = fd;
    start_all(3);
    propose_everywhere(3, 10);
    cr_expect_eq(expect_alike(3), 30);
    const uint64_t mask = group_world_report(&w, 1).status.members;
    const uint32_t seat = group_world_report(&w, 0).status.seat;
    cr_expect_eq(group_world_fork(&w, 0), 0);
    group_world_kill(&w, 0);
    group_world_wait(&w, 1, has_members, mask & ~(UINT64_C(1) << seat));
    start_all(3);
    cr_expect_eq(expect_alike(3), 30, "it has come back");
    for (uint32_t i = 0; i < 3; i++) {
        group_world_kill(&w, i);
    }
    start_all(3);
    cr_expect_eq(expect_alike(3), 0, "the place was free");
    close(fd);
}

static void expect_refused(const char *why, int err)
{
    group_world_start(&w, 5);
    group_world_wait(&w, 5, has_failed, 0);
    const struct group_world_report r = group_world_report(&w, 5);
    cr_expect_eq(r.turn, err);
    cr_expect_eq(r.status.err, err);
    cr_expect_str_eq(r.why, why);
    group_world_kill(&w, 5);
}

CASE(another_program_is_refused_in_one_line)
{
    const struct qn_transport *ump = w.opts.transport;
    w.opts.members = w.opts.capacity = 1;
    start_all(1);
    w.opts.application = "other";
    expect_refused("the group is of test, not of other", QN_EINVAL);
    w.opts.application = "test";
    w.opts.version = 2;
    expect_refused("the group has version 1 of test, not 2", QN_EINVAL);
    w.opts.version = 1;
    w.opts.transport = qn_transport_find("ffq");
    expect_refused("the group has transport ump, not ffq", QN_EINVAL);
    w.opts.transport = ump;
    expect_refused("all seats of the group are taken", QN_EBUSY);
}

CASE(a_group_whose_founder_ends_before_it_begins_is_founded_again)
{
    group_world_start(&w, 0);
    group_world_start(&w, 1);
    for (uint32_t i = 0; i < 2; i++) {
        cr_expect_eq(group_world_report(&w, i).status.phase, QN_GROUP_MEETING);
    }
    group_world_kill(&w, 0);
    group_world_start(&w, 0);
    group_world_start(&w, 2);
    for (uint32_t i = 0; i < 3; i++) {
        group_world_wait(&w, i, serves, 0);
    }
    propose_everywhere(3, 10);
    cr_expect_eq(expect_alike(3), 30);
}

/* Its child keeps the guests' connections open, and the listening socket. */
CASE(a_child_keeps_no_founder_alive_that_has_ended)
{
    group_world_found(&w, 0);
    group_world_start(&w, 1);
    group_world_wait(&w, 0, has_guests, 1);
    (void)group_world_fork(&w, 0);
    const pid_t child = w.process[0].child;
    group_world_kill(&w, 0);
    group_world_start(&w, 0);
    group_world_start(&w, 2);
    for (uint32_t i = 0; i < 3; i++) {
        group_world_wait(&w, i, serves, 0);
    }
    cr_expect_eq(kill(child, 0), 0, "it lives");
}

CASE(a_guest_that_ends_before_the_group_begins_is_replaced)
{
    group_world_start(&w, 0);
    group_world_start(&w, 1);
    (void)group_world_report(&w, 1);
    group_world_kill(&w, 1);
    group_world_start(&w, 1);
    group_world_start(&w, 2);
    for (uint32_t i = 0; i < 3; i++) {
        group_world_wait(&w, i, serves, 0);
    }
    propose_everywhere(3, 10);
    cr_expect_eq(expect_alike(3), 30);
}

/* ---- deaths -------------------------------------------------------------- */

static bool has_beyond(const struct group_world_report *r, uint64_t n)
{
    return r->state.commands > n;
}

/* Under load a member is killed, and another process takes its seat. Of the
 * killed one's proposals those that it knew as applied are in the state; of the
 * others all. */
static void kill_and_return(uint32_t victim)
{
    const struct group_world_report was = group_world_report(&w, victim);
    uint64_t asked[3];
    for (uint32_t i = 0; i < 3; i++) {
        asked[i] = group_world_report(&w, i).applied + 300;
        group_world_propose(&w, i, 300, LONG);
    }
    group_world_wait(&w, victim, has_beyond, was.state.commands + 50);
    const struct group_world_report last = group_world_report(&w, victim);
    group_world_kill(&w, victim);
    for (uint32_t i = 0; i < 3; i++) {
        if (i != victim) {
            group_world_wait(&w, i, has_ended, asked[i]);
            cr_expect_eq(group_world_report(&w, i).unknown, 0);
        }
    }
    group_world_start(&w, victim);
    group_world_wait(&w, victim, serves, 0);
    (void)expect_alike(3);
    const struct group_world_report r = group_world_report(&w, victim);
    cr_expect_eq(r.status.seat, was.status.seat);
    cr_expect_gt(r.status.incarnation, was.status.incarnation);
    cr_expect_geq(r.state.of_seat[was.status.seat],
                  was.state.of_seat[was.status.seat] + last.applied -
                      was.applied);
    for (uint32_t i = 0; i < 3; i++) {
        group_world_wait(&w, i, has_members, 7);
    }
}

CASE(each_member_may_die_under_load_and_return)
{
    start_all(3);
    for (uint32_t round = 0; round < 6; round++) {
        const uint32_t leader =
            at_seat(group_world_report(&w, 0).status.leader);
        kill_and_return((leader + round) % 3);
    }
}

/* Most of their turns are the driver's only. */
CASE(members_that_spin_find_that_one_dies_and_returns)
{
    w.opts.spin_ns = QN_MS;
    start_all(3);
    kill_and_return(at_seat(group_world_report(&w, 0).status.leader));
}

/* While it is away more is decided than the log keeps: so its successor needs a
 * snapshot. */
CASE(a_member_that_leaves_is_replaced)
{
    start_all(3);
    propose_everywhere(3, 20);
    group_world_leave(&w, 1);
    for (uint64_t i = 1; i <= 30; i++) {
        group_world_propose_once(&w, 0, 300000, LONG);
        group_world_wait(&w, 0, has_ended, 20 + i);
    }
    group_world_start(&w, 1);
    group_world_wait(&w, 1, serves, 0);
    cr_expect_eq(expect_alike(3), 90);
    const struct group_world_report r = group_world_report(&w, 1);
    cr_expect_geq(r.status.snapshots_installed, 1);
    cr_expect_lt(r.status.commands, 90);
}

CASE(the_ends_of_a_snapshot_are_named)
{
    w.opts.members = 2;
    start_all(2);
    cr_expect_eq(group_world_report(&w, 0).status.joiner,
                 group_world_report(&w, 0).status.capacity);
    for (uint32_t i = 0; i < 2; i++) {
        group_world_hold(&w, i, true);
    }
    group_world_start(&w, 2);
    group_world_wait(&w, 2, has_donor, 0);
    const struct qn_group_status s = group_world_report(&w, 2).status;
    const uint32_t donor = at_seat(s.donor);
    cr_assert_lt(donor, 2);
    cr_expect_eq(group_world_report(&w, donor).status.joiner, s.seat);
    cr_expect_eq(group_world_report(&w, donor).status.donor, s.capacity);
    cr_expect_eq(s.joiner, s.capacity);
    for (uint32_t i = 0; i < 2; i++) {
        group_world_hold(&w, i, false);
    }
    group_world_wait(&w, 2, serves, 0);
    group_world_wait(&w, donor, has_given, 1);
    cr_expect_not(has_donor(
        &(struct group_world_report){.status =
                                         group_world_report(&w, 2).status},
        0));
}

/* A member that is stopped does not answer; the guest hears of it by the member
 * that it has asked, and goes on. When the stopped one continues, it maps the
 * guest. */
CASE(a_stopped_member_holds_up_no_guest)
{
    start_all(3);
    const uint32_t leader = at_seat(group_world_report(&w, 0).status.leader);
    const uint32_t stopped = (leader + 1) % 3, guest = (leader + 2) % 3;
    group_world_kill(&w, guest);
    group_world_stop(&w, stopped, true);
    group_world_start(&w, guest);
    group_world_wait(&w, guest, serves, 0);
    group_world_propose(&w, guest, 10, LONG);
    group_world_wait(&w, guest, has_ended, 10);
    group_world_stop(&w, stopped, false);
    group_world_wait(&w, stopped, has_members, 7);
    group_world_propose(&w, stopped, 10, LONG);
    group_world_wait(&w, stopped, has_ended, 10);
    cr_expect_eq(expect_alike(3), 20);
}

/* Kill two of three, the leader with them. @return the one that is left, which
 * does not lead: one that had been suspected meanwhile may have lost its role
 * to it, and then both come back. */
static uint32_t leave_a_follower(void)
{
    for (;;) {
        const uint32_t leader =
            at_seat(group_world_report(&w, 0).status.leader);
        const uint32_t last = (leader + 1) % 3, other = (leader + 2) % 3;
        group_world_kill(&w, other);
        group_world_kill(&w, leader);
        const struct group_world_report r = group_world_report(&w, last);
        if (r.status.leader != r.status.seat) {
            return last;
        }
        start_all(3);
    }
}

/* A follower alone cannot lead: what it proposes has no outcome, and then it
 * takes nothing more, until another member is back. */
CASE(without_a_majority_proposals_end_as_unknown_and_then_are_refused)
{
    start_all(3);
    const uint32_t last = leave_a_follower();
    group_world_propose_once(&w, last, 8, 1);
    group_world_wait(&w, last, has_unknown, 1);
    group_world_propose_once(&w, last, 8, 1);
    cr_expect_eq(group_world_report(&w, last).last, QN_ENOQUORUM);
    group_world_start(&w, (last + 1) % 3);
    group_world_wait(&w, last, has_commands, 1);
    group_world_propose(&w, last, 10, LONG);
    group_world_wait(&w, last, has_ended, 11);
    cr_expect_eq(group_world_report(&w, last).applied, 10);
}

static bool is_held(uint32_t i)
{
    const struct group_world_report r = group_world_report(&w, i);
    return r.last == QN_EAGAIN && r.reason == QN_GROUP_HELD;
}

/* A callback is told the same as the program between two turns. */
static void expect_held_inside(uint32_t i)
{
    const uint64_t taken = group_world_report(&w, i).asked;
    group_world_propose_at_barrier(&w, i, 8);
    group_world_wait(&w, i, has_barriers, 1);
    cr_expect(is_held(i));
    cr_expect_eq(group_world_report(&w, i).asked, taken);
}

/* With three of five voters stalled the leader may give up two of them, and
 * waits for the third. A follower that is told so, and asks again when its
 * descriptor is readable, goes on when that one resumes. */
CASE(a_follower_goes_on_when_the_leader_is_held_no_more)
{
    w.opts.members = 5;
    w.opts.log_bytes = 1 << 20;
    start_all(5);
    const uint32_t leader = at_seat(group_world_report(&w, 0).status.leader);
    const uint32_t asks = (leader + 1) % 5;
    for (uint32_t k = 2; k < 5; k++) {
        group_world_stop(&w, (leader + k) % 5, true);
    }
    do {
        group_world_propose_once(&w, leader, 16 << 10, LONG);
    } while (!is_held(leader));
    group_world_propose(&w, asks, 10, LONG);
    cr_expect(is_held(asks));
    expect_held_inside(leader);
    group_world_stop(&w, (leader + 2) % 5, false);
    group_world_wait(&w, asks, has_ended, 10);
    cr_expect_eq(group_world_report(&w, asks).applied, 10);
}

/* ---- bounds -------------------------------------------------------------- */

static void expect_last(int err, enum qn_group_reason reason)
{
    const struct group_world_report r = group_world_report(&w, 0);
    cr_expect_eq(r.last, err);
    cr_expect(err != QN_EAGAIN || r.reason == reason);
}

CASE(a_command_has_so_many_bytes_and_no_more)
{
    w.opts.members = 2;
    w.opts.proposal_bytes = 1000;
    w.opts.command_max = 2000;
    group_world_start(&w, 0);
    group_world_propose_once(&w, 0, 8, LONG);
    expect_last(QN_EAGAIN, QN_GROUP_JOINS);
    group_world_start(&w, 1);
    group_world_wait(&w, 0, serves, 0);
    group_world_propose_once(&w, 0, 2001, LONG);
    expect_last(QN_EMSGSIZE, QN_GROUP_TAKEN);
    group_world_propose_once(&w, 0, 0, LONG);
    expect_last(QN_EINVAL, QN_GROUP_TAKEN);
    group_world_propose_once(&w, 0, 2000, LONG); /* nothing else waits */
    expect_last(QN_OK, QN_GROUP_TAKEN);
    group_world_wait(&w, 0, has_ended, 1);
    cr_expect_eq(group_world_report(&w, 0).applied, 1);
}

CASE(a_burst_of_proposals_is_taken_up_to_the_bound)
{
    w.opts.proposals = 2;
    start_all(3);
    group_world_propose(&w, 0, 100, LONG);
    group_world_wait(&w, 0, has_ended, 100);
    const struct group_world_report r = group_world_report(&w, 0);
    cr_expect_eq(r.applied, 100);
    cr_expect_gt(r.refused, 0);
}

CASE(a_burst_of_barriers_is_taken_up_to_the_bound)
{
    w.opts.barriers = 2;
    start_all(3);
    group_world_barrier(&w, 0, 5);
    expect_last(QN_EAGAIN, QN_GROUP_FULL);
    group_world_wait(&w, 0, has_barriers, 2);
    group_world_barrier(&w, 0, 1);
    expect_last(QN_OK, QN_GROUP_TAKEN);
    group_world_wait(&w, 0, has_barriers, 3);
}

/* By its other end; this waits for it. */
static void expect_closed(int fd)
{
    char c;
    poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
    cr_expect_leq(recv(fd, &c, 1, MSG_DONTWAIT), 0);
}

/* 128 connections that say nothing are all that a member keeps. They are closed
 * after two seconds, and the guest gets in. */
CASE(connections_that_say_nothing_keep_no_guest_out_for_long)
{
    struct qn_rendezvous *r;
    qn_node_t seat;
    int fd[QN_GROUP_LINKS_MAX + 1];
    start_all(3);
    group_world_kill(&w, 1);
    group_world_kill(&w, 2);
    const int before = group_world_descriptors(&w, 0);
    cr_assert_eq(qn_rendezvous_open(&r, w.opts.name), QN_OK);
    for (uint32_t i = 0; i <= QN_GROUP_LINKS_MAX;) {
        i += qn_rendezvous_enter(r, 0, &seat, &fd[i]) == QN_OK;
        (void)group_world_report(&w, 0); /* it takes a turn and accepts */
    }
    expect_closed(fd[QN_GROUP_LINKS_MAX]);
    cr_expect_leq(group_world_descriptors(&w, 0),
                  before + (int)QN_GROUP_LINKS_MAX);
    group_world_start(&w, 1);
    group_world_wait(&w, 1, serves, 0);
    expect_closed(fd[0]);
    for (uint32_t i = 0; i <= QN_GROUP_LINKS_MAX; i++) {
        close(fd[i]);
    }
    qn_rendezvous_close(r);
}

static void expect_damaged(int fd)
{
    uint8_t bytes[QN_DIALOGUE_BYTES];
    struct qn_fd_message in = {.bytes = bytes, .cap = sizeof bytes};
    struct qn_dialogue_msg m;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    cr_assert_eq(poll(&p, 1, -1), 1);
    cr_assert_eq(qn_fd_message_recv(fd, &in, 0, false), QN_OK);
    cr_assert_eq(qn_dialogue_decode((struct qn_slice){bytes, in.len}, 0, &m),
                 QN_OK);
    cr_expect_eq(m.kind, QN_DIALOGUE_REFUSE);
    cr_expect_eq(m.refuse.err, QN_ECORRUPT);
}

/* A damaged process introduces itself as the successor of a member that lives.
 */
CASE(an_incarnation_that_never_began_ends_no_member)
{
    struct qn_rendezvous *r;
    qn_node_t seat;
    int fd;
    uint8_t bytes[QN_DIALOGUE_BYTES];
    start_all(3);
    cr_assert_eq(qn_rendezvous_open(&r, w.opts.name), QN_OK);
    while (qn_rendezvous_enter(r, 0, &seat, &fd) != QN_OK) {
        (void)group_world_report(&w, 0); /* it takes a turn and accepts */
    }
    const struct qn_dialogue_msg m = {
        .kind = QN_DIALOGUE_PEER,
        .peer = {.node = (seat + 1) % 3, .incarnation = 1000}};
    qn_dialogue_encode(&m, bytes);
    cr_assert_eq(
        qn_fd_message_send(fd, (struct qn_slice){bytes, sizeof bytes}, &fd, 1),
        QN_OK);
    expect_damaged(fd);
    cr_expect_eq(group_world_report(&w, at_seat(seat)).status.members, 7);
    close(fd);
    qn_rendezvous_close(r);
}

static int any_descriptor(void)
{
    return fcntl(0, F_DUPFD_CLOEXEC, 0);
}

CASE(a_guest_hears_of_256_incarnations_at_most)
{
    const int before = open_descriptors();
    struct qn_group *g = calloc(1, sizeof *g);
    g->layout.nodes = 64;
    g->incarnation = 1000;
    for (uint32_t i = 0; i < QN_GROUP_KNOWN_MAX; i++) {
        const struct qn_member_peer p = {.node = 1 + i % 63,
                                         .incarnation = 1 + i * 7 % 256,
                                         .fd = any_descriptor()};
        const struct qn_group_known k = {.peer = p, .ended = i % 2 == 0};
        cr_assert_eq(qn_group_acquaint(g, &k), QN_OK);
    }
    for (uint32_t i = 0; i < QN_GROUP_KNOWN_MAX; i++) {
        cr_expect_eq(g->known[i].peer.incarnation, i + 1, "in their order");
    }
    struct qn_group_known k = {
        .peer = {.node = 2, .incarnation = 999, .fd = any_descriptor()}};
    cr_expect_eq(qn_group_acquaint(g, &k), QN_EDQUOT);
    k = (struct qn_group_known){.peer = g->known[9].peer, .ended = true};
    k.peer.fd = any_descriptor();
    cr_expect_eq(qn_group_acquaint(g, &k), QN_OK, "heard twice");
    cr_expect(g->known[9].ended);
    k = (struct qn_group_known){
        .peer = {.node = 0, .incarnation = 1000, .fd = any_descriptor()}};
    cr_expect_eq(qn_group_acquaint(g, &k), QN_ECORRUPT, "itself");
    cr_expect_eq(open_descriptors(), before + (int)QN_GROUP_KNOWN_MAX);
    qn_group_forget_known(g);
    cr_expect_eq(open_descriptors(), before);
    free(g);
}

CASE(a_group_that_has_not_begun_forgets_guests_that_have_ended)
{
    int fd;
    struct qn_group *g = calloc(1, sizeof *g);
    cr_assert_eq(qn_rendezvous_open(&g->rendezvous, w.opts.name), QN_OK);
    const int before = open_descriptors();
    g->layout.nodes = 3;
    g->incarnation = 1;
    g->step = QN_STEP_ASSEMBLE;
    cr_assert_eq(qn_commons_create(&g->commons, 3, 0, false, &fd), QN_OK);
    cr_assert_eq(qn_commons_own(g->commons, 2), QN_OK);
    for (uint32_t i = 2; i < 3 * QN_GROUP_KNOWN_MAX; i++) {
        const struct qn_group_known k = {
            .peer = {.node = 2, .incarnation = i, .fd = any_descriptor()}};
        cr_assert_eq(qn_liveness_begin(g->commons, 2, i), QN_OK);
        cr_assert_eq(qn_group_acquaint(g, &k), QN_OK);
        cr_assert_leq(g->known_count, QN_GROUP_KNOWN_MAX);
        cr_assert_eq(g->known[g->known_count - 1].peer.incarnation, i);
    }
    cr_expect_leq(open_descriptors(), before + (int)QN_GROUP_KNOWN_MAX);
    qn_group_forget_known(g);
    qn_commons_destroy(g->commons);
    cr_expect_eq(open_descriptors(), before);
    qn_rendezvous_close(g->rendezvous);
    free(g);
}

/* ---- a guest in its process ---------------------------------------------- */

/* The child of a member has all of its descriptors: neither does it speak for
 * the member, nor keep it alive. */
CASE(a_forked_child_is_no_member)
{
    start_all(3);
    for (uint32_t i = 0; i < 3; i++) {
        cr_expect_eq(group_world_report(&w, i).kept_by_exec, 0);
    }
    cr_expect_eq(group_world_fork(&w, 1), 0);
    const pid_t child = w.process[1].child;
    const uint64_t seat = group_world_report(&w, 1).status.seat;
    group_world_propose(&w, 1, 10, LONG);
    group_world_wait(&w, 1, has_ended, 10);
    group_world_kill(&w, 1);
    group_world_start(&w, 1);
    group_world_wait(&w, 1, serves, 0);
    cr_expect_eq(group_world_report(&w, 1).status.seat, seat);
    cr_expect_eq(kill(child, 0), 0, "it lives");
}

/* As those of a database would be: recovered by the next that locks them, not
 * lost with the process that had them. */
CASE(robust_mutexes_of_the_host_are_recovered)
{
    group_world_robust(&w);
    start_all(3);
    propose_everywhere(3, 10);
    for (uint32_t i = 0; i < 3; i++) {
        cr_expect_eq(pthread_mutex_trylock(&w.robust[i]), EBUSY);
        group_world_kill(&w, i);
        cr_expect_eq(pthread_mutex_lock(&w.robust[i]), EOWNERDEAD);
        cr_expect_eq(pthread_mutex_consistent(&w.robust[i]), 0);
        pthread_mutex_unlock(&w.robust[i]);
        group_world_start(&w, i);
        group_world_wait(&w, i, serves, 0);
    }
}

CASE(a_locked_robust_mutex_keeps_its_list)
{
    group_world_robust(&w);
    w.opts.robust_list = true;
    group_world_start(&w, 0);
    group_world_wait(&w, 0, has_failed, 0);
    const struct group_world_report r = group_world_report(&w, 0);
    cr_expect_eq(r.status.err, QN_EBUSY);
    cr_expect_str_eq(r.why, "this thread has locked a robust mutex, or is a "
                            "member of another group");
}
