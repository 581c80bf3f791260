#include "kvs/listen/listen.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/err.h"
#include "tests/support/test.h"

static char why[QN_CONFIG_WHY_MAX];

static struct qn_config config(void)
{
    struct qn_config c;
    qn_config_init(&c);
    c.replicas = 3;
    c.port = 0;
    return c;
}

static int try_open(struct qn_listen *l, const struct qn_config *c)
{
    why[0] = '\0';
    qn_listen_init(l, c);
    return qn_listen_open(l, why, sizeof why);
}

static int dial(uint32_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool has_connection(int listener)
{
    struct pollfd p = {.fd = listener, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

/* A directory that is removed with its sockets. */
struct dir {
    char path[64];
    char at[96];
};

static void dir_make(struct dir *d, struct qn_config *c)
{
    snprintf(d->path, sizeof d->path, "/tmp/qn-listen-XXXXXX");
    cr_assert_not_null(mkdtemp(d->path));
    snprintf(d->at, sizeof d->at, "%s/sock", d->path);
    *c = config();
    snprintf(c->unixsocket, sizeof c->unixsocket, "%s", d->at);
}

static bool is_there(const char *path, const char *suffix)
{
    char full[128];
    struct stat st;
    snprintf(full, sizeof full, "%s%s", path, suffix);
    return lstat(full, &st) == 0;
}

Test(listen, each_replica_shares_the_port_and_has_its_own)
{
    struct qn_config c = config();
    struct qn_listen l;
    cr_assert_eq(try_open(&l, &c), QN_OK, "%s", why);
    cr_assert_neq(l.port, 0);
    for (qn_node_t i = 0; i < 3; i++) {
        cr_assert_geq(qn_listen_shared(&l, i), 0);
        cr_assert_neq(l.own_port[i], 0);
        cr_assert_neq(l.own_port[i], l.port);
        int fd = dial(l.own_port[i]);
        cr_assert_geq(fd, 0);
        cr_assert(has_connection(l.own[i]));
        close(fd);
    }
    qn_listen_close(&l);
    cr_assert_eq(dial(l.port), -1);
}

/* With --port 0 many are tried; the line about one of them is no reason for
 * what fails later. */
Test(listen, who_listens_leaves_no_reason)
{
    struct qn_config c = config();
    struct qn_listen l;
    snprintf(why, sizeof why, "of a try before");
    qn_listen_init(&l, &c);
    cr_assert_eq(qn_listen_open(&l, why, sizeof why), QN_OK);
    cr_assert_str_eq(why, "");
    qn_listen_close(&l);
}

Test(listen, the_kernel_spreads_connections_over_the_replicas)
{
    struct qn_config c = config();
    struct qn_listen l;
    int fd[200];
    cr_assert_eq(try_open(&l, &c), QN_OK, "%s", why);
    for (int i = 0; i < 200; i++) {
        fd[i] = dial(l.port);
        cr_assert_geq(fd[i], 0);
    }
    for (qn_node_t i = 0; i < 3; i++) {
        cr_expect(has_connection(qn_listen_shared(&l, i)), "replica %u", i);
    }
    for (int i = 0; i < 200; i++) {
        close(fd[i]);
    }
    qn_listen_close(&l);
}

/* Replicas hold them from their beginning, whichever come later. */
Test(listen, each_vacant_seat_has_a_socket_and_no_port_of_its_own)
{
    struct qn_config c = config();
    struct qn_listen l;
    c.replicas = 1;
    c.replicas_max = 4;
    cr_assert_eq(try_open(&l, &c), QN_OK, "%s", why);
    for (qn_node_t i = 0; i < 4; i++) {
        cr_expect_geq(qn_listen_shared(&l, i), 0, "seat %u", i);
        cr_expect_eq(l.own_port[i] != 0, i == 0, "seat %u", i);
    }
    cr_expect_eq(qn_listen_shared(&l, 4), -1);
    cr_assert_eq(qn_listen_own(&l, 3, why, sizeof why), QN_OK, "%s", why);
    cr_expect_neq(l.own_port[3], 0); /* its replica comes */
    qn_listen_keep_only(&l, 0);
    cr_expect_eq(l.own[3], -1);
    cr_expect_geq(qn_listen_shared(&l, 3), 0);
    qn_listen_close(&l);
}

/* Its own port is gone; what comes for it to the shared one waits there. */
Test(listen, what_is_shared_outlives_an_ended_replica)
{
    struct qn_config c = config();
    struct qn_listen l;
    int fd[100];
    cr_assert_eq(try_open(&l, &c), QN_OK, "%s", why);
    qn_listen_close_node(&l, 1);
    for (int i = 0; i < 100; i++) {
        fd[i] = dial(l.port);
        cr_assert_geq(fd[i], 0);
    }
    cr_assert(has_connection(qn_listen_shared(&l, 1)));
    cr_assert_eq(dial(l.own_port[1]), -1);
    qn_listen_close_node(&l, 1);
    qn_listen_close(&l);
    qn_listen_close(&l);
    for (int i = 0; i < 100; i++) {
        close(fd[i]);
    }
}

Test(listen, a_second_server_on_the_address_is_refused)
{
    struct qn_config c = config();
    struct qn_listen first;
    struct qn_listen second;
    cr_assert_eq(try_open(&first, &c), QN_OK, "%s", why);
    struct qn_config same = c;
    same.port = first.port;
    same.replica_ports = QN_REPLICA_PORTS_NONE;
    cr_assert_eq(try_open(&second, &same), QN_EADDRINUSE);
    cr_assert(strstr(why, "a quoind serves") != NULL, "%s", why);
    struct qn_config wider = same;
    snprintf(wider.bind, sizeof wider.bind, "0.0.0.0");
    cr_assert_eq(try_open(&second, &wider), QN_EADDRINUSE);
    qn_listen_close(&first);
    cr_assert_eq(try_open(&second, &same), QN_OK, "%s", why);
    qn_listen_close(&second);
}

/* Between its two binds a server has no socket; the lock stands in. */
Test(listen, the_lock_alone_refuses_a_second_server)
{
    struct qn_config c = config();
    struct qn_listen first;
    struct qn_listen second;
    cr_assert_eq(try_open(&first, &c), QN_OK, "%s", why);
    c.port = first.port;
    c.replica_ports = QN_REPLICA_PORTS_NONE;
    qn_listen_close(&first);
    cr_assert_eq(try_open(&first, &c), QN_OK, "%s", why);
    for (qn_node_t i = 0; i < 3; i++) {
        close(first.shared[i]);
        first.shared[i] = -1;
    }
    cr_assert_eq(try_open(&second, &c), QN_EADDRINUSE);
    char want[64];
    snprintf(want, sizeof want, "a quoind serves 127.0.0.1:%u already;",
             first.port);
    cr_assert(strstr(why, want) != NULL, "%s", why);
    qn_listen_close(&first);
    cr_assert_eq(try_open(&second, &c), QN_OK, "%s", why);
    qn_listen_close(&second);
}

Test(listen, a_strangers_port_is_refused_and_named)
{
    struct qn_config c = config();
    struct qn_listen l;
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    int stranger = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(bind(stranger, (struct sockaddr *)&at, sizeof at), 0);
    cr_assert_eq(listen(stranger, 1), 0);
    getsockname(stranger, (struct sockaddr *)&at, &bytes);
    c.port = ntohs(at.sin_port);
    c.replica_ports = QN_REPLICA_PORTS_NONE;
    cr_assert_eq(try_open(&l, &c), QN_EADDRINUSE);
    char port[16];
    snprintf(port, sizeof port, "port %u", c.port);
    cr_assert(strstr(why, port) != NULL, "%s", why);
    close(stranger);
    cr_assert_eq(try_open(&l, &c), QN_OK, "the lock was given back: %s", why);
    qn_listen_close(&l);
}

Test(listen, an_address_that_is_not_ours_is_refused)
{
    struct qn_config c = config();
    struct qn_listen l;
    snprintf(c.bind, sizeof c.bind, "203.0.113.1");
    cr_assert_eq(try_open(&l, &c), QN_EIO);
    cr_assert(strstr(why, "--bind") != NULL, "%s", why);
}

Test(listen, without_replica_ports_there_are_none)
{
    struct qn_config c = config();
    struct qn_listen l;
    c.replica_ports = QN_REPLICA_PORTS_NONE;
    cr_assert_eq(try_open(&l, &c), QN_OK, "%s", why);
    for (qn_node_t i = 0; i < 3; i++) {
        cr_assert(l.own[i] == -1 && l.own_port[i] == 0);
    }
    qn_listen_close(&l);
}

Test(listen, accepted_connections_inherit_no_delay_and_keep_alive)
{
    struct qn_config c = config();
    struct qn_listen l;
    int on = 0;
    socklen_t bytes = sizeof on;
    cr_assert_eq(try_open(&l, &c), QN_OK, "%s", why);
    int client = dial(l.own_port[0]);
    int served = accept(l.own[0], NULL, NULL);
    cr_assert_geq(served, 0);
    getsockopt(served, IPPROTO_TCP, TCP_NODELAY, &on, &bytes);
    cr_expect_neq(on, 0);
    getsockopt(served, SOL_SOCKET, SO_KEEPALIVE, &on, &bytes);
    cr_expect_neq(on, 0);
    getsockopt(served, IPPROTO_TCP, TCP_KEEPIDLE, &on, &bytes);
    cr_expect_eq(on, 300);
    close(client);
    close(served);
    qn_listen_close(&l);
}

Test(listen, a_replica_keeps_its_own_and_what_is_shared)
{
    struct qn_config c = config();
    struct qn_listen l;
    cr_assert_eq(try_open(&l, &c), QN_OK, "%s", why);
    qn_listen_keep_only(&l, 2);
    cr_assert(l.own[0] == -1 && l.own[1] == -1 && l.own[2] >= 0);
    for (qn_node_t i = 0; i < 3; i++) {
        cr_assert_geq(l.shared[i], 0);
    }
    qn_listen_close(&l);
}

Test(listen, unix_sockets_are_made_and_removed)
{
    struct qn_config c;
    struct qn_listen l;
    struct dir d;
    dir_make(&d, &c);
    cr_assert_eq(try_open(&l, &c), QN_OK, "%s", why);
    cr_assert(is_there(d.at, "") && is_there(d.at, ".0") &&
              is_there(d.at, ".2"));
    cr_assert_not(is_there(d.at, ".3"));
    cr_assert_eq(qn_listen_shared(&l, 2), qn_listen_shared(&l, 0));
    cr_assert_eq(l.port, 0);
    qn_listen_keep_only(&l, 1);
    cr_assert(is_there(d.at, "") && is_there(d.at, ".0"),
              "a replica removes nothing");
    qn_listen_close(&l);
    cr_assert_not(is_there(d.at, ""));
    cr_assert_not(is_there(d.at, ".1"));
    unlink(strcat(strcpy(c.unixsocket, d.at), ".0"));
    unlink(strcat(strcpy(c.unixsocket, d.at), ".2"));
    cr_assert_eq(rmdir(d.path), 0);
}

Test(listen, a_second_server_on_the_path_is_refused)
{
    struct qn_config c;
    struct qn_listen first;
    struct qn_listen second;
    struct dir d;
    dir_make(&d, &c);
    cr_assert_eq(try_open(&first, &c), QN_OK, "%s", why);
    cr_assert_eq(try_open(&second, &c), QN_EADDRINUSE);
    struct qn_config other = c; /* another spelling of the same path */
    snprintf(other.unixsocket, sizeof other.unixsocket, "%s/./sock", d.path);
    cr_assert_eq(try_open(&second, &other), QN_EADDRINUSE);
    cr_assert(is_there(d.at, ""), "the first one's socket stays");
    qn_listen_close(&first);
    cr_assert_eq(rmdir(d.path), 0);
}

Test(listen, what_a_killed_server_left_is_replaced)
{
    struct qn_config c;
    struct qn_listen l;
    struct dir d;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    dir_make(&d, &c);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", d.at);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    close(fd);
    cr_assert(is_there(d.at, ""));
    cr_assert_eq(try_open(&l, &c), QN_OK, "%s", why);
    qn_listen_close(&l);
    cr_assert_eq(rmdir(d.path), 0);
}

Test(listen, a_strangers_socket_or_file_is_left_alone)
{
    struct qn_config c;
    struct qn_listen l;
    struct dir d;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    dir_make(&d, &c);
    snprintf(at.sun_path, sizeof at.sun_path, "%s.1", d.at);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    cr_assert_eq(listen(fd, 1), 0);
    cr_assert_eq(try_open(&l, &c), QN_EADDRINUSE);
    cr_assert(is_there(d.at, ".1") && !is_there(d.at, ""), "%s", why);
    close(fd);
    unlink(at.sun_path);
    close(open(at.sun_path, O_CREAT | O_WRONLY, 0600));
    cr_assert_eq(try_open(&l, &c), QN_EADDRINUSE);
    cr_assert(strstr(why, "is no socket") != NULL, "%s", why);
    cr_assert(is_there(d.at, ".1") && !is_there(d.at, "") &&
              !is_there(d.at, ".0"));
    unlink(at.sun_path);
    cr_assert_eq(rmdir(d.path), 0);
}

Test(listen, a_path_that_leads_nowhere_is_refused)
{
    struct qn_config c = config();
    struct qn_listen l;
    snprintf(c.unixsocket, sizeof c.unixsocket, "/nowhere/at/all");
    cr_assert_eq(try_open(&l, &c), QN_EIO);
    cr_assert(strstr(why, "/nowhere/at/all") != NULL, "%s", why);
}

Test(listen, an_address_is_shown_as_people_write_it)
{
    char text[QN_LISTEN_SHOWN_MAX];
    struct qn_config c = config();
    cr_assert_str_eq(qn_listen_shown(&c, 7379, text), "127.0.0.1:7379");
    snprintf(c.bind, sizeof c.bind, "::1");
    cr_assert_str_eq(qn_listen_shown(&c, 1, text), "[::1]:1");
    snprintf(c.unixsocket, sizeof c.unixsocket, "/tmp/at");
    cr_assert_str_eq(qn_listen_shown(&c, 1, text), "/tmp/at");
}
