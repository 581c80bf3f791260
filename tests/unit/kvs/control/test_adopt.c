/* Sockets and options of an adoption. */
#include "kvs/control/adopt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/err.h"
#include "tests/support/test.h"

static char why[QN_CONFIG_WHY_MAX];

static struct qn_config config(void)
{
    struct qn_config c;
    qn_config_init(&c);
    c.replicas = 3;
    return c;
}

/* An address that no other process has. */
static struct qn_config somewhere(void)
{
    struct qn_config c = config();
    snprintf(c.bind, sizeof c.bind, "127.0.0.%d", 1 + (int)getpid() % 250);
    c.port = 1 + (uint32_t)getpid() % 60000;
    return c;
}

Test(adopt, options_come_out_as_they_went_in)
{
    struct qn_config c = config();
    struct qn_config got;
    c.memory_acceptor = false;
    c.max_args = 77;
    c.replicas = 5;
    c.min_replicas_to_write = 1;
    snprintf(c.unixsocket, sizeof c.unixsocket, "/tmp/a b");
    int fd = qn_adopt_config_write(&c);
    cr_assert_geq(fd, 0);
    cr_assert_eq(qn_adopt_config_read(&got, fd, why, sizeof why), QN_OK, "%s",
                 why);
    cr_assert_eq(memcmp(&got, &c, sizeof c), 0);
    close(fd);
}

/* The group has other voters by then than it began with. */
Test(adopt, what_follows_the_voters_goes_on_following)
{
    struct qn_config c = config();
    struct qn_config got;
    c.replicas = 5;
    qn_config_min_resolve(&c);
    cr_assert(c.min_replicas_auto);
    cr_assert_eq(c.min_replicas_to_write, 2);
    c.min_replicas_to_write = 1; /* of three voters */
    int fd = qn_adopt_config_write(&c);
    cr_assert_geq(fd, 0);
    cr_assert_eq(qn_adopt_config_read(&got, fd, why, sizeof why), QN_OK, "%s",
                 why);
    cr_expect(got.min_replicas_auto);
    cr_expect_eq(got.min_replicas_to_write, 2, "until it knows the voters");
    close(fd);
}

Test(adopt, damaged_or_unknown_options_are_refused)
{
    static const char *const texts[] = {"", "replicas 3", "replicas\n",
                                        "colour red\n", "replicas 65\n"};
    for (size_t i = 0; i < QN_ARRAY_COUNT(texts); i++) {
        struct qn_config c = config();
        char path[] = "/tmp/qn-adopt-XXXXXX";
        int fd = mkstemp(path);
        ssize_t n = write(fd, texts[i], strlen(texts[i]));
        cr_assert_eq(n, (ssize_t)strlen(texts[i]));
        cr_expect_eq(qn_adopt_config_read(&c, fd, why, sizeof why), QN_ECORRUPT,
                     "%s", texts[i]);
        unlink(path);
        close(fd);
    }
}

Test(adopt, what_contradicts_is_named)
{
    struct qn_config group = config();
    struct qn_config own = config();
    own.memory_acceptor = false;
    cr_assert_eq(qn_adopt_config_merge(&group, &own, why, sizeof why),
                 QN_EINVAL);
    cr_assert_not_null(strstr(why, "--acceptor process contradicts"));
}

Test(adopt, automatic_and_run_time_options_agree_with_everything)
{
    struct qn_config group = config();
    struct qn_config own = config();
    own.replicas = QN_REPLICAS_AUTO;
    own.shutdown_timeout = 99;
    own.restart = false;
    cr_assert_eq(qn_adopt_config_merge(&group, &own, why, sizeof why), QN_OK);
    cr_assert_eq(group.replicas, 3);
    cr_assert_eq(group.shutdown_timeout, 10, "the group's");
    cr_assert(!group.restart, "the adopter's");
}

Test(adopt, one_supervisor_per_address)
{
    struct qn_config c = somewhere();
    int lock = -1;
    int again = -1;
    pid_t pid;
    int first = qn_adopt_lock(&c, &lock);
    cr_assert_geq(first, 0);
    cr_assert_eq(qn_adopt_lock(&c, &again), QN_EADDRINUSE);
    int heir = qn_adopt_succeed(&c, &pid);
    cr_assert_geq(heir, 0, "its socket is as it was");
    close(heir);
    close(first);
    cr_assert_eq(qn_adopt_succeed(&c, &pid), QN_EADDRINUSE);
    close(lock);
    cr_assert_eq(qn_adopt_succeed(&c, &pid), QN_ENOENT);
    int second = qn_adopt_lock(&c, &lock);
    cr_assert_geq(second, 0, "over what the first has left");
    close(second);
    close(lock);
    qn_adopt_forget(&c);
    c.port = 0;
    cr_assert_eq(qn_adopt_lock(&c, &lock), QN_ENOENT, "it has no name");
}

Test(adopt, an_adopter_finds_whom_it_asks_for)
{
    struct qn_config c = somewhere();
    pid_t pid = 0;
    int at = qn_adopt_listen(&c, 2);
    cr_assert_geq(at, 0);
    cr_assert_eq(qn_adopt_accept(at, &pid), QN_EAGAIN);
    cr_assert_eq(qn_adopt_connect(&c, 1, &pid), QN_ENOENT);
    int adopter = qn_adopt_connect(&c, 2, &pid);
    cr_assert_geq(adopter, 0);
    cr_assert_eq(pid, getpid());
    pid = 0;
    int replica = qn_adopt_accept(at, &pid);
    cr_assert_geq(replica, 0);
    cr_assert_eq(pid, getpid());
    close(replica);
    close(adopter);
    close(at);
}

/* The id is that of a living process, but the one that listened has ended. */
Test(adopt, an_id_counts_only_while_its_connection_lasts)
{
    struct qn_config c = somewhere();
    pid_t pid = 0;
    int at = qn_adopt_listen(&c, 2);
    int adopter = qn_adopt_connect(&c, 2, &pid);
    cr_assert_geq(adopter, 0);
    int pidfd = qn_adopt_pidfd(adopter, pid);
    cr_assert_geq(pidfd, 0);
    close(pidfd);
    close(at);
    cr_assert_eq(qn_adopt_pidfd(adopter, pid), QN_ENOENT);
    close(adopter);
}

Test(adopt, a_full_queue_is_not_an_absent_replica)
{
    struct qn_config c = somewhere();
    int held[64];
    int n = 0;
    pid_t pid;
    int at = qn_adopt_listen(&c, 2);
    do {
        held[n] = qn_adopt_connect(&c, 2, &pid);
    } while (held[n] >= 0 && ++n < 64);
    cr_assert_lt(n, 64);
    cr_assert_eq(held[n], QN_EBUSY);
    close(at);
    cr_assert_eq(qn_adopt_connect(&c, 2, &pid), QN_ENOENT, "no replica now");
    while (n > 0) {
        close(held[--n]);
    }
}
