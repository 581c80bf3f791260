/* What waits for a replica that stands still, over a small socket. */
#include "kvs/control/news.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/err.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"

enum { ME = 0, PEER = 1, THIRD = 2 };

static int control[2]; /* the supervisor's end, the replica's */
static struct qn_news news;
static int outbox;

static void open_pair(void)
{
    int least = 1; /* the kernel has a least size, of some messages */
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control),
                 0);
    cr_assert_eq(
        setsockopt(control[0], SOL_SOCKET, SO_SNDBUF, &least, sizeof least), 0);
    outbox = open("/dev/null", O_RDONLY | O_CLOEXEC);
    news = (struct qn_news){0};
}

static void close_pair(void)
{
    qn_news_free(&news);
    close(outbox);
    close(control[0]);
    close(control[1]);
}

static void say(enum qn_boot_kind kind, qn_node_t node, uint64_t inc)
{
    const struct qn_boot_event e = {
        .kind = kind, .node = node, .incarnation = inc};
    cr_assert_eq(
        qn_news_send(&news, control[0], &e, kind == QN_BOOT_PEER ? outbox : -1),
        QN_OK);
}

/* A life of `node` as the supervisor tells it. */
static void live(qn_node_t node, uint64_t inc, uint64_t needed)
{
    qn_news_skip(&news, node, needed);
    say(QN_BOOT_PEER, node, inc);
}

/* Messages of the first kind until one has to wait: how many were sent. */
static uint64_t fill(void)
{
    uint64_t sent = 0;
    while (!qn_news_wait(&news)) {
        say(QN_BOOT_ROLES, ME, sent++);
    }
    return sent - 1;
}

static void expect(enum qn_boot_kind kind, qn_node_t node, uint64_t inc)
{
    struct qn_boot_event e;
    int fd = -1;
    cr_assert_eq(qn_news_flush(&news, control[0]), QN_OK);
    cr_assert_eq(qn_boot_recv(control[1], &e, &fd, false), QN_OK);
    cr_assert_eq(e.kind, kind);
    cr_assert_eq(e.node, node);
    cr_assert_eq(e.incarnation, inc);
    cr_assert_eq(fd >= 0, kind == QN_BOOT_PEER);
    if (fd >= 0) {
        close(fd);
    }
}

static void expect_fill(uint64_t sent)
{
    for (uint64_t i = 0; i <= sent; i++) { /* the last one had waited */
        expect(QN_BOOT_ROLES, ME, i);
    }
}

static void expect_nothing_more(void)
{
    struct qn_boot_event e;
    int fd;
    cr_assert(!qn_news_wait(&news));
    cr_assert_eq(qn_boot_recv(control[1], &e, &fd, false), QN_EAGAIN);
}

Test(news, what_finds_no_room_comes_later_in_order, .init = open_pair,
     .fini = close_pair)
{
    uint64_t sent = fill();
    for (uint64_t i = 1; i <= 100; i++) {
        say(i % 2 == 0 ? QN_BOOT_PEER_DOWN : QN_BOOT_PEER, PEER, i);
    }
    expect_fill(sent);
    for (uint64_t i = 1; i <= 100; i++) {
        expect(i % 2 == 0 ? QN_BOOT_PEER_DOWN : QN_BOOT_PEER, PEER, i);
    }
    expect_nothing_more();
}

/* The end of a life that was told is told, and so is the newest life. */
Test(news, lives_that_came_and_ended_untold_are_skipped, .init = open_pair,
     .fini = close_pair)
{
    uint64_t sent = fill();
    say(QN_BOOT_PEER_DOWN, PEER, 7);
    for (uint64_t i = 10; i < 1000; i++) {
        live(PEER, i, 0);
        say(QN_BOOT_PEER_DOWN, PEER, i);
        cr_assert_leq(news.count, 5);
    }
    live(PEER, 1000, 0);
    say(QN_BOOT_PEER_DOWN, THIRD, 8);
    expect_fill(sent);
    expect(QN_BOOT_PEER_DOWN, PEER, 7);
    expect(QN_BOOT_PEER, PEER, 1000);
    expect(QN_BOOT_PEER_DOWN, THIRD, 8);
    expect_nothing_more();
}

/* Nobody follows it, and its end may be what elects the next leader. */
Test(news, the_last_life_is_told_with_its_end, .init = open_pair,
     .fini = close_pair)
{
    uint64_t sent = fill();
    live(PEER, 10, 0);
    say(QN_BOOT_PEER_DOWN, PEER, 10);
    live(THIRD, 11, 0);
    expect_fill(sent);
    expect(QN_BOOT_PEER, PEER, 10);
    expect(QN_BOOT_PEER_DOWN, PEER, 10);
    expect(QN_BOOT_PEER, THIRD, 11);
    expect_nothing_more();
}

/* The accept word names it: the last decided slots lie in its outbox. */
Test(news, a_life_that_is_needed_is_told_as_long_as_it_is, .init = open_pair,
     .fini = close_pair)
{
    uint64_t sent = fill();
    live(PEER, 10, 0);
    say(QN_BOOT_PEER_DOWN, PEER, 10);
    live(PEER, 11, 10);
    say(QN_BOOT_PEER_DOWN, PEER, 11);
    live(PEER, 12, 10);
    expect_fill(sent);
    expect(QN_BOOT_PEER, PEER, 10);
    expect(QN_BOOT_PEER_DOWN, PEER, 10);
    expect(QN_BOOT_PEER, PEER, 12);
    expect_nothing_more();
    sent = fill();
    live(PEER, 13, 0);
    say(QN_BOOT_PEER_DOWN, PEER, 13);
    live(PEER, 14, 13);
    say(QN_BOOT_PEER_DOWN, PEER, 14);
    live(PEER, 15, 0);
    cr_assert_eq(news.count, 2, "one of the filling, and 15");
}

Test(news, nothing_is_left_open)
{
    int before = open_descriptors();
    open_pair();
    fill();
    for (uint64_t i = 10; i < 20; i++) {
        live(PEER, i, 0);
        say(QN_BOOT_PEER_DOWN, PEER, i);
    }
    say(QN_BOOT_PEER, PEER, 20);
    close_pair();
    cr_assert_eq(open_descriptors(), before);
}

Test(news, the_end_of_the_replica_is_said, .init = open_pair,
     .fini = close_pair)
{
    const struct qn_boot_event e = {.kind = QN_BOOT_GO};
    fill();
    close(control[1]);
    control[1] = -1;
    cr_assert_eq(qn_news_send(&news, control[0], &e, -1), QN_EPEERDEAD);
    cr_assert_eq(qn_news_flush(&news, control[0]), QN_EPEERDEAD);
}
