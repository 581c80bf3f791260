/*
 * The supervisor: the end of a server (tests/support/small_server.h).
 */
#include "tests/support/small_server.h"

#include <errno.h>
#include <string.h>

#include "tests/support/test.h"

Test(supervisor, ends_with_status_1_when_no_replica_is_left, .timeout = 20)
{
    struct server s;
    struct qn_config c = small_config(3);
    struct reply r;
    start(&s, &c);
    for (qn_node_t i = 0; i < 3; i++) {
        cr_assert(ask(s.own[i], &r));
        kill(r.pid, SIGKILL);
    }
    cr_assert_eq(status_of(&s), 1);
    const char *log = rest_of_log(&s);
    cr_assert_eq(lines_in(log), 4, "%s", log);
    cr_assert(strstr(log, "all data is lost: replica ") != NULL, "%s", log);
}

Test(supervisor, a_replica_told_to_leave_leaves_alone, .timeout = 20)
{
    struct server s;
    struct qn_config c = small_config(3);
    struct reply r;
    char line[256];
    start(&s, &c);
    cr_assert(ask(s.own[0], &r));
    kill(r.pid, SIGTERM);
    read_line(s.log, line, sizeof line);
    cr_assert(strstr(line, "has ended with status 0; 2 of 3 go on") != NULL,
              "%s", line);
    cr_assert(ask(s.own[1], &r));
    end(&s);
}

Test(supervisor, drains_on_each_signal_that_asks_for_it, .timeout = 20)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    signal(SIGHUP, SIG_DFL); /* not ignored, as under nohup */
    for (size_t i = 0; i < 3; i++) {
        struct server s;
        struct qn_config c = small_config(3);
        start(&s, &c);
        kill(s.pid, signals[i]);
        cr_expect_eq(status_of(&s), 0, "signal %d", signals[i]);
        cr_expect_eq(lines_in(rest_of_log(&s)), 1, "one line: draining");
    }
}

/* Like a service manager: every process gets the signal. */
Test(supervisor, drains_when_the_replicas_get_the_signal_too, .timeout = 20)
{
    struct server s;
    struct qn_config c = small_config(3);
    struct reply r[3];
    start(&s, &c);
    for (qn_node_t i = 0; i < 3; i++) {
        cr_assert(ask(s.own[i], &r[i]));
    }
    kill(s.pid, SIGTERM);
    for (qn_node_t i = 0; i < 3; i++) {
        kill(r[i].pid, SIGTERM);
    }
    cr_assert_eq(status_of(&s), 0);
}

Test(supervisor, a_second_signal_ends_at_once, .timeout = 20)
{
    struct server s;
    struct qn_config c = small_config(3);
    struct reply r;
    char line[256];
    mood.stubborn = 2;
    start(&s, &c);
    cr_assert(ask(s.own[2], &r));
    kill(s.pid, SIGTERM);
    read_line(s.log, line, sizeof line);
    cr_assert(strstr(line, "draining") != NULL, "%s", line);
    kill(s.pid, SIGINT);
    cr_assert_eq(status_of(&s), 128 + SIGINT);
    cr_assert(kill(r.pid, 0) != 0 && errno == ESRCH);
}

Test(supervisor, no_replica_stops_before_all_have_drained, .timeout = 20)
{
    struct server s;
    struct qn_config c = small_config(3);
    struct reply r;
    char line[256];
    mood.stubborn = 2;
    start(&s, &c);
    cr_assert(ask(s.own[2], &r));
    int stubborn = r.pid;
    cr_assert(ask(s.own[0], &r));
    kill(s.pid, SIGTERM);
    read_line(s.log, line, sizeof line);
    kill(stubborn, SIGKILL);
    read_line(s.log, line, sizeof line);
    cr_assert(strstr(line, "replica 2") != NULL &&
                  strstr(line, "2 of 3 go on") != NULL,
              "the drained ones had waited: %s", line);
    cr_assert_eq(status_of(&s), 1, "one has not drained");
}

/* The replica reports its outstanding replies; the supervisor adds only the
 * line and the status. */
Test(supervisor, replies_not_given_are_counted_in_one_line, .timeout = 20)
{
    struct server s;
    struct qn_config c = small_config(3);
    mood.owing = 1;
    start(&s, &c);
    kill(s.pid, SIGTERM);
    cr_assert_eq(status_of(&s), 1);
    const char *log = rest_of_log(&s);
    cr_assert_eq(lines_in(log), 2, "%s", log);
    cr_assert(strstr(log, "shutdown-timeout is over; replies not given: 7\n") !=
                  NULL,
              "%s", log);
}

Test(supervisor, a_silent_replica_is_killed_when_its_time_is_over,
     .timeout = 30)
{
    struct server s;
    struct qn_config c = small_config(3);
    struct reply r;
    mood.stubborn = 2;
    c.shutdown_timeout = 0;
    start(&s, &c);
    cr_assert(ask(s.own[2], &r));
    kill(s.pid, SIGTERM);
    cr_assert_eq(status_of(&s), 1);
    const char *log = rest_of_log(&s);
    cr_assert_eq(lines_in(log), 2, "%s", log);
    cr_assert(strstr(log, "not given: 0; killed, since silent: replicas 2\n") !=
                  NULL,
              "%s", log);
    cr_assert(kill(r.pid, 0) != 0 && errno == ESRCH);
}
