#include "core/rendezvous/fd_message.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/err.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"

static int end[2];

static void init(void)
{
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, end), 0);
}

static void fini(void)
{
    close(end[0]);
    close(end[1]);
}

#define CASE(name)                                                             \
    Test(fd_message, name, .init = init, .fini = fini, .timeout = 60)

static int send_text(const char *text, const int *fds, uint32_t count)
{
    return qn_fd_message_send(
        end[0], (struct qn_slice){(const uint8_t *)text, strlen(text)}, fds,
        count);
}

static uint8_t room[8];

static struct qn_fd_message empty(void)
{
    return (struct qn_fd_message){.bytes = room, .cap = sizeof room};
}

CASE(brings_bytes_and_descriptors_in_order)
{
    int fds[QN_FD_MESSAGE_MAX];
    for (uint32_t i = 0; i < QN_FD_MESSAGE_MAX; i++) {
        fds[i] = i % 2 == 0 ? STDIN_FILENO : end[1];
    }
    for (uint32_t n = 0; n <= QN_FD_MESSAGE_MAX;
         n += n < 4 ? 1 : QN_FD_MESSAGE_MAX - 4) {
        int before = open_descriptors();
        struct qn_fd_message m = empty();
        struct stat st;
        cr_assert_eq(send_text("hello", fds, n), QN_OK);
        cr_assert_eq(qn_fd_message_recv(end[1], &m, QN_FD_MESSAGE_MAX, false),
                     QN_OK);
        cr_assert(m.len == 5 && memcmp(room, "hello", 5) == 0);
        cr_assert_eq(m.count, n);
        for (uint32_t i = 0; i < n; i++) {
            cr_assert_eq(fstat(m.fds[i], &st), 0);
            cr_assert_eq(S_ISSOCK(st.st_mode), i % 2 != 0, "%u of %u", i, n);
            cr_assert_eq(fcntl(m.fds[i], F_GETFD), FD_CLOEXEC);
        }
        qn_fd_message_close(&m);
        cr_assert_eq(open_descriptors(), before);
    }
}

CASE(with_too_many_descriptors_is_refused_and_leaves_none)
{
    const int fds[4] = {end[0], end[0], end[0], end[0]};
    int before = open_descriptors();
    for (uint32_t most = 0; most < 4; most++) {
        struct qn_fd_message m = empty();
        cr_assert_eq(send_text("x", fds, most + 1), QN_OK);
        cr_assert_eq(qn_fd_message_recv(end[1], &m, most, false), QN_ECORRUPT,
                     "%u more than %u", most + 1, most);
        cr_assert_eq(m.count, 0);
        cr_assert_eq(open_descriptors(), before);
    }
}

CASE(for_whose_descriptors_there_is_no_room_is_lost)
{
    struct rlimit few, many;
    const int fds[2] = {end[0], end[0]};
    struct qn_fd_message m = empty();
    int before = open_descriptors();
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &many), 0);
    few =
        (struct rlimit){.rlim_cur = (rlim_t)dup(0), .rlim_max = many.rlim_max};
    close((int)few.rlim_cur); /* the lowest that is free: none is below it */
    cr_assert_eq(send_text("lost", fds, 2), QN_OK);
    cr_assert_eq(send_text("next", NULL, 0), QN_OK);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    cr_assert_eq(qn_fd_message_recv(end[1], &m, 2, false), QN_EMFILE);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &many), 0);
    cr_assert_eq(m.count, 0);
    cr_assert_eq(qn_fd_message_recv(end[1], &m, 2, false), QN_OK);
    cr_assert(m.len == 4 && memcmp(room, "next", 4) == 0);
    cr_assert_eq(open_descriptors(), before);
}

CASE(that_is_longer_than_its_room_says_so)
{
    struct qn_fd_message m = empty();
    cr_assert_eq(send_text("0123456789", NULL, 0), QN_OK);
    cr_assert_eq(send_text("next", NULL, 0), QN_OK);
    cr_assert_eq(qn_fd_message_recv(end[1], &m, 0, false), QN_OK);
    cr_assert(m.len == 10 && memcmp(room, "01234567", 8) == 0);
    cr_assert_eq(qn_fd_message_recv(end[1], &m, 0, false), QN_OK);
    cr_assert_eq(m.len, 4);
}

CASE(waits_for_room_and_for_messages)
{
    struct qn_fd_message m = empty();
    uint32_t sent = 0;
    int err;
    cr_assert_eq(qn_fd_message_recv(end[1], &m, 1, false), QN_EAGAIN);
    while ((err = send_text("x", NULL, 0)) == QN_OK) {
        sent++;
    }
    cr_assert_eq(err, QN_EAGAIN);
    for (uint32_t i = 0; i < sent; i++) {
        cr_assert_eq(qn_fd_message_recv(end[1], &m, 1, true), QN_OK);
    }
    cr_assert_eq(qn_fd_message_recv(end[1], &m, 1, false), QN_EAGAIN);
}

/* The kernel says first that the other end has ended with messages unread. */
CASE(what_was_sent_before_the_end_is_received)
{
    struct qn_fd_message m = empty();
    cr_assert_eq(
        qn_fd_message_send(end[1], (struct qn_slice){room, 1}, NULL, 0), QN_OK);
    cr_assert_eq(send_text("last", &end[0], 1), QN_OK);
    close(end[0]);
    cr_assert_eq(qn_fd_message_recv(end[1], &m, 1, true), QN_OK);
    cr_assert(m.len == 4 && m.count == 1);
    qn_fd_message_close(&m);
    cr_assert_eq(qn_fd_message_recv(end[1], &m, 1, true), QN_EPEERDEAD);
    cr_assert_eq(
        qn_fd_message_send(end[1], (struct qn_slice){room, 1}, NULL, 0),
        QN_EPEERDEAD);
    end[0] = dup(end[1]); /* for fini */
}
