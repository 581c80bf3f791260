/*
 * The supervisor: servers that cannot start (tests/support/small_server.h).
 */
#include "tests/support/small_server.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/support/test.h"

Test(supervisor, refuses_what_cannot_work_in_one_line, .timeout = 20)
{
    struct qn_config c = small_config(2);
    expect_refusal(&c, "the loss of either stops both");
    c = small_config(3);
    c.cells = 17;
    expect_refusal(&c, "power of two");
    c = small_config(64);
    c.cells = 65536; /* 63 x 64 x 2 lanes of 4 MiB */
    struct qn_config small = small_config(3);
    expect_refusal(&c, "use fewer --replicas or --cells");
    snprintf(small.bind, sizeof small.bind, "203.0.113.1");
    expect_refusal(&small, "203.0.113.1");
}

Test(supervisor, refuses_a_second_server_on_its_address, .timeout = 20)
{
    struct server s;
    struct qn_config c = small_config(3);
    struct reply r;
    start(&s, &c);
    c.port = s.port;
    c.replica_ports = QN_REPLICA_PORTS_NONE;
    expect_refusal(&c, "choose another address");
    for (int i = 0; i < 20; i++) {
        cr_assert(ask(s.port, &r), "the first one is unharmed");
    }
    end(&s);
}

Test(supervisor, a_replica_that_cannot_start_ends_all_in_one_line,
     .timeout = 20)
{
    struct qn_config c = small_config(3);
    mood.fail_node = 1;
    expect_refusal(&c, "replica 1 of 3 cannot start: not enough memory; use "
                       "fewer --replicas");
}

Test(supervisor, a_replica_that_crashes_at_start_ends_all, .timeout = 20)
{
    struct qn_config c = small_config(3);
    mood.crash_node = 2;
    expect_refusal(&c, "replica 2 of 3 cannot start: the peer has ended");
}

Test(supervisor, leaves_no_socket_behind, .timeout = 20)
{
    char dir[] = "/tmp/qn-sup-XXXXXX";
    struct qn_config c = small_config(3);
    struct server s;
    cr_assert_not_null(mkdtemp(dir));
    snprintf(c.unixsocket, sizeof c.unixsocket, "%s/s", dir);
    start(&s, &c);
    cr_assert(strstr(s.ready, "/s.2 at ") != NULL, "%s", s.ready);
    end(&s);
    mood.fail_node = 0;
    expect_refusal(&c, "replica 0 of 3");
    mood.fail_node = -1;
    mood.stubborn = 0;
    start(&s, &c);
    kill(s.pid, SIGTERM);
    read_line(s.log, s.ready, sizeof s.ready);
    kill(s.pid, SIGTERM);
    cr_assert_eq(status_of(&s), 128 + SIGTERM);
    cr_assert_eq(rmdir(dir), 0);
}
