/* What waits for a stalled replica, over a small socket. */
#include "kvs/control/control_backlog.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/err.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"

enum { PEER = 1, THIRD = 2 };

static int control[2]; /* the supervisor's end, the replica's */
static struct qn_control_backlog backlog;
static int outbox;

static void open_pair(void)
{
    int least = 1; /* the kernel has a least size, of some messages */
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control),
                 0);
    cr_assert_eq(
        setsockopt(control[0], SOL_SOCKET, SO_SNDBUF, &least, sizeof least), 0);
    outbox = open("/dev/null", O_RDONLY | O_CLOEXEC);
    backlog = (struct qn_control_backlog){0};
}

static void close_pair(void)
{
    qn_control_backlog_free(&backlog);
    close(outbox);
    close(control[0]);
    close(control[1]);
}

static void say(const struct qn_control_msg *m)
{
    int fd = m->kind == QN_CTL_PEER_UP ? outbox : -1;
    cr_assert_eq(qn_control_backlog_send(&backlog, control[0], m, fd), QN_OK);
}

static void say_down(qn_node_t node, uint64_t inc)
{
    const struct qn_control_msg m = {
        .kind = QN_CTL_PEER_DOWN,
        .u.peer_down = {.node = node, .incarnation = inc}};
    say(&m);
}

static void say_up(qn_node_t node, uint64_t inc)
{
    const struct qn_control_msg m = {
        .kind = QN_CTL_PEER_UP,
        .u.peer_up = {.node = node, .incarnation = inc}};
    say(&m);
}

/* An incarnation of `node` as the supervisor announces it. */
static void live(qn_node_t node, uint64_t inc, uint64_t needed)
{
    qn_control_backlog_skip(&backlog, node, needed);
    say_up(node, inc);
}

/* Messages of another kind until one has to wait: the token of the last one. */
static uint32_t fill(void)
{
    struct qn_control_msg m = {.kind = QN_CTL_ROLES_QUERY};
    while (!qn_control_backlog_wait(&backlog)) {
        say(&m);
        m.u.roles_query.token++;
    }
    return m.u.roles_query.token - 1;
}

static struct qn_control_msg next(enum qn_control_kind kind)
{
    const struct qn_control_link link = {.direction = QN_CTL_TO_REPLICA,
                                         .nodes = 3};
    struct qn_control_msg m;
    int fd = -1;
    cr_assert_eq(qn_control_backlog_flush(&backlog, control[0]), QN_OK);
    cr_assert_eq(qn_control_recv(control[1], &link, &m, &fd, false), QN_OK);
    cr_assert_eq(m.kind, kind);
    if (fd >= 0) {
        close(fd);
    }
    return m;
}

static void expect_up(qn_node_t node, uint64_t inc)
{
    struct qn_control_msg m = next(QN_CTL_PEER_UP);
    cr_assert_eq(m.u.peer_up.node, node);
    cr_assert_eq(m.u.peer_up.incarnation, inc);
}

static void expect_down(qn_node_t node, uint64_t inc)
{
    struct qn_control_msg m = next(QN_CTL_PEER_DOWN);
    cr_assert_eq(m.u.peer_down.node, node);
    cr_assert_eq(m.u.peer_down.incarnation, inc);
}

static void expect_fill(uint32_t last)
{
    for (uint32_t i = 0; i <= last; i++) {
        struct qn_control_msg m = next(QN_CTL_ROLES_QUERY);
        cr_assert_eq(m.u.roles_query.token, i);
    }
}

static void expect_nothing_more(void)
{
    const struct qn_control_link link = {.direction = QN_CTL_TO_REPLICA,
                                         .nodes = 3};
    struct qn_control_msg m;
    int fd;
    cr_assert(!qn_control_backlog_wait(&backlog));
    cr_assert_eq(qn_control_recv(control[1], &link, &m, &fd, false), QN_EAGAIN);
}

Test(control_backlog, what_finds_no_room_comes_later_in_order,
     .init = open_pair, .fini = close_pair)
{
    uint32_t last = fill();
    for (uint64_t i = 1; i <= 100; i++) {
        (i % 2 == 0 ? say_down : say_up)(PEER, i);
    }
    expect_fill(last);
    for (uint64_t i = 1; i <= 100; i++) {
        (i % 2 == 0 ? expect_down : expect_up)(PEER, i);
    }
    expect_nothing_more();
}

/* The end of the incarnation that was announced is sent, and so is the newest
 * incarnation. */
Test(control_backlog, incarnations_that_began_and_ended_unannounced_are_skipped,
     .init = open_pair, .fini = close_pair)
{
    uint32_t last = fill();
    say_down(PEER, 7);
    for (uint64_t i = 10; i < 1000; i++) {
        live(PEER, i, 0);
        say_down(PEER, i);
        cr_assert_leq(backlog.count, 5);
    }
    live(PEER, 1000, 0);
    say_down(THIRD, 8);
    expect_fill(last);
    expect_down(PEER, 7);
    expect_up(PEER, 1000);
    expect_down(THIRD, 8);
    expect_nothing_more();
}

/* No incarnation follows, and this end may be what elects the next leader. */
Test(control_backlog, the_last_incarnation_is_announced_with_its_end,
     .init = open_pair, .fini = close_pair)
{
    uint32_t last = fill();
    live(PEER, 10, 0);
    say_down(PEER, 10);
    live(THIRD, 11, 0);
    expect_fill(last);
    expect_up(PEER, 10);
    expect_down(PEER, 10);
    expect_up(THIRD, 11);
    expect_nothing_more();
}

/* The accept register names it: the last decided slots lie in its outbox. */
Test(control_backlog, an_incarnation_is_announced_as_long_as_it_is_needed,
     .init = open_pair, .fini = close_pair)
{
    uint32_t last = fill();
    live(PEER, 10, 0);
    say_down(PEER, 10);
    live(PEER, 11, 10);
    say_down(PEER, 11);
    live(PEER, 12, 10);
    expect_fill(last);
    expect_up(PEER, 10);
    expect_down(PEER, 10);
    expect_up(PEER, 12);
    expect_nothing_more();
    last = fill();
    live(PEER, 13, 0);
    say_down(PEER, 13);
    live(PEER, 14, 13);
    say_down(PEER, 14);
    live(PEER, 15, 0);
    cr_assert_eq(backlog.count, 2, "one of the filling, and 15");
}

Test(control_backlog, nothing_is_left_open)
{
    int before = open_descriptors();
    open_pair();
    fill();
    for (uint64_t i = 10; i < 20; i++) {
        live(PEER, i, 0);
        say_down(PEER, i);
    }
    say_up(PEER, 20);
    close_pair();
    cr_assert_eq(open_descriptors(), before);
}

Test(control_backlog, the_end_of_the_replica_is_reported, .init = open_pair,
     .fini = close_pair)
{
    const struct qn_control_msg m = {.kind = QN_CTL_START};
    fill();
    close(control[1]);
    control[1] = -1;
    cr_assert_eq(qn_control_backlog_send(&backlog, control[0], &m, -1),
                 QN_EPEERDEAD);
    cr_assert_eq(qn_control_backlog_flush(&backlog, control[0]), QN_EPEERDEAD);
}
