/* Connections passed on between two ends in one process. */
#include "kvs/listen/fd_passing.h"

#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/err.h"
#include "tests/support/test.h"

static int from, to, client, served;

static void begin(void)
{
    int pair[2];
    cr_assert_eq(qn_fd_passing_open(&from, &to), QN_OK);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    client = pair[0];
    served = pair[1];
}

static void end(void)
{
    close(from);
    close(to);
    close(client);
}

Test(fd_passing, a_connection_arrives_whole_and_open)
{
    char got[3] = "";
    begin();
    cr_assert_eq(qn_fd_passing_recv(from), QN_EAGAIN);
    cr_assert_eq(qn_fd_passing_send(to, served), QN_OK);
    close(served); /* the one under way holds it */
    cr_assert_eq(write(client, "hi", 2), 2);
    int fd = qn_fd_passing_recv(from);
    cr_assert_geq(fd, 0);
    cr_assert_eq(read(fd, got, 2), 2);
    cr_assert_str_eq(got, "hi");
    cr_assert_eq(qn_fd_passing_recv(from), QN_EAGAIN);
    close(fd);
    end();
}

Test(fd_passing, where_there_is_no_room_it_is_kept)
{
    int sent = 0;
    begin();
    while (sent < 100000 && qn_fd_passing_send(to, served) == QN_OK) {
        sent++;
    }
    cr_assert(sent > 0 && sent < 100000, "%d", sent);
    cr_assert_eq(qn_fd_passing_send(to, served), QN_EAGAIN);
    for (int fd; (fd = qn_fd_passing_recv(from)) >= 0; sent--) {
        close(fd);
    }
    cr_assert_eq(sent, 0, "in order, none lost");
    cr_assert_eq(qn_fd_passing_send(to, served), QN_OK);
    close(served);
    end();
}

Test(fd_passing, nobody_there_is_no_room)
{
    begin();
    close(from);
    cr_assert_eq(qn_fd_passing_send(to, served), QN_EIO);
    close(served);
    end();
}

Test(fd_passing, the_core_of_the_client_is_known)
{
    begin();
    cpu_set_t one;
    for (int cpu = 0; cpu < 2; cpu++) {
        CPU_ZERO(&one);
        CPU_SET((size_t)cpu, &one);
        if (sched_setaffinity(0, sizeof one, &one) == 0) {
            cr_expect_eq(qn_fd_passing_cpu(served), cpu);
        }
    }
    cr_expect_eq(qn_fd_passing_cpu(from), qn_fd_passing_cpu(served),
                 "any Unix socket");
    int file = dup(0);
    close(0);
    cr_expect_eq(qn_fd_passing_cpu(0), -1, "not a socket at all");
    dup2(file, 0);
    close(file);
    close(served);
    end();
}
