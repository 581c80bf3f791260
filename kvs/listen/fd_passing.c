/*
 * Passing connections on (fd_passing.h).
 *
 * A datagram socket keeps message borders, so a connection is one message of
 * one byte with a descriptor. The queue is short (net.unix.max_dgram_qlen, 10
 * and more): if it is full, the receiver lags, and the sender keeps the
 * connection.
 *
 * The client's core is in /proc/PID/stat, field 39. The name of the program,
 * field 2, may contain any byte, so fields are counted from the last `)`.
 */
#include "kvs/listen/fd_passing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/rendezvous/fd_message.h"

enum { CPU_FIELD = 39, NAME_FIELD = 2 };

int qn_fd_passing_open(int *from, int *to)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                   pair) != 0) {
        return QN_EMFILE;
    }
    *from = pair[0];
    *to = pair[1];
    return QN_OK;
}

int qn_fd_passing_send(int to, int fd)
{
    const uint8_t byte = 0;
    return qn_fd_message_send(to, (struct qn_slice){&byte, 1}, &fd, 1);
}

int qn_fd_passing_recv(int from)
{
    uint8_t byte;
    struct qn_fd_message m = {.bytes = &byte, .cap = 1};
    return qn_fd_message_recv(from, &m, 1, false) == QN_OK && m.count == 1
               ? m.fds[0]
               : QN_EAGAIN;
}

/* Field 39 of a line of /proc/PID/stat; -1. */
static int cpu_in(const char *line)
{
    const char *at = strrchr(line, ')');
    for (int field = NAME_FIELD; at != NULL && field < CPU_FIELD; field++) {
        at = strchr(at + 1, ' ');
    }
    return at != NULL ? (int)strtol(at, NULL, 10) : -1;
}

int qn_fd_passing_cpu(int connection)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    char text[1024];
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 ||
        peer.pid <= 0) {
        return -1;
    }
    snprintf(text, sizeof text, "/proc/%d/stat", (int)peer.pid);
    int fd = open(text, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return cpu_in(text);
}
