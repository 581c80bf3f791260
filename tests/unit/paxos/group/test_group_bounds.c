/*
 * What a group takes at most: bytes of a command, proposals, barriers,
 * connections, incarnations that a guest hears of (docs/limits.md).
 */
#include "paxos/group/group.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/place/liveness.h"
#include "core/rendezvous/fd_message.h"
#include "paxos/group/group_internal.h"
#include "tests/support/fds.h"
#include "tests/unit/paxos/group/group_case.h"

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
