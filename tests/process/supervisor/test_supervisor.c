/*
 * The supervisor: starting replicas, and their ends
 * (tests/support/small_server.h).
 */
#include "tests/support/small_server.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

Test(supervisor, starts_three_replicas_that_answer_everywhere, .timeout = 20)
{
    struct server s;
    struct qn_config c = small_config(3);
    struct reply r;
    start(&s, &c);
    for (qn_node_t i = 0; i < 3; i++) {
        cr_assert(ask(s.own[i], &r));
        cr_assert_eq(r.node, i);
        cr_assert_neq(r.pid, s.pid);
    }
    cr_assert(ask(s.port, &r));
    end(&s);
    cr_assert_not(ask(s.port, &r));
}

Test(supervisor, replicas_are_named_and_pinned, .timeout = 20)
{
    struct server s;
    struct qn_config c = small_config(3);
    struct reply r;
    start(&s, &c);
    for (qn_node_t i = 0; i < 3; i++) {
        char path[64];
        char name[32] = "";
        char want[32];
        cpu_set_t mask;
        cr_assert(ask(s.own[i], &r));
        snprintf(path, sizeof path, "/proc/%d/comm", r.pid);
        int fd = open(path, O_RDONLY);
        read_line(fd, name, sizeof name);
        close(fd);
        snprintf(want, sizeof want, "quoind-%u\n", i);
        cr_expect_str_eq(name, want);
        sched_getaffinity(r.pid, sizeof mask, &mask);
        cr_expect_eq(CPU_COUNT(&mask), 1);
        snprintf(want, sizeof want, "replica %u on port", i);
        cr_expect(strstr(s.ready, want) != NULL, "%s", s.ready);
        snprintf(want, sizeof want, "at core %d", r.cpu);
        cr_expect(strstr(s.ready, want) != NULL, "%s", s.ready);
    }
    end(&s);
}

Test(supervisor, the_default_is_at_least_three, .timeout = 20)
{
    struct server s;
    struct qn_config c = small_config(QN_REPLICAS_AUTO);
    start(&s, &c);
    cr_assert(strstr(s.ready, "replica 2 on port") != NULL, "%s", s.ready);
    cr_assert(strstr(s.ready, "Try: redis-cli -p ") != NULL, "%s", s.ready);
    end(&s);
}

Test(supervisor, one_replica_says_that_nothing_is_replicated, .timeout = 20)
{
    struct server s;
    struct qn_config c = small_config(1);
    start(&s, &c);
    kill(s.pid, SIGTERM);
    cr_assert_eq(status_of(&s), 0);
    cr_assert(strstr(rest_of_log(&s), "one replica: nothing is replicated") !=
              NULL);
}

Test(supervisor, sixty_four_replicas_start_and_drain, .timeout = 60)
{
    struct server s;
    struct qn_config c = small_config(64);
    struct reply r;
    start(&s, &c);
    cr_assert(ask(s.own[63], &r));
    cr_assert_eq(r.node, 63);
    end(&s);
}

Test(supervisor, a_death_is_one_line_and_the_others_are_told, .timeout = 20)
{
    struct server s;
    struct qn_config c = small_config(3);
    struct reply r;
    char line[256];
    char want[128];
    start(&s, &c);
    cr_assert(ask(s.own[1], &r));
    kill(r.pid, SIGKILL);
    read_line(s.log, line, sizeof line);
    snprintf(want, sizeof want,
             "replica 1 (process %d) was ended by signal 9 (Killed); 2 of 3 go "
             "on\n",
             r.pid);
    cr_assert_str_eq(line, want);
    /* The message is in flight before the line: it arrives within a few
     * requests. */
    do {
        cr_assert(ask(s.own[2], &r));
    } while (r.gone == 0);
    cr_assert_eq(r.gone, 1u << 1);
    for (int i = 0; i < 50; i++) {
        cr_assert(ask(s.port, &r), "no connection goes to the dead");
        cr_assert_neq(r.node, 1);
    }
    end(&s);
}

Test(supervisor, goes_on_serving_when_the_supervisor_is_killed, .timeout = 20)
{
    /* These replicas get the signal when it dies: the test only checks that
     * they see it. The real ones are tested with the real server. */
    struct server s;
    struct server second;
    struct qn_config c = small_config(3);
    start(&s, &c);
    kill(s.pid, SIGKILL);
    int status;
    waitpid(s.pid, &status, 0);
    rest_of_log(&s); /* until the last replica has ended */
    c.port = s.port;
    c.replica_ports = QN_REPLICA_PORTS_NONE;
    start(&second, &c);
    end(&second);
}
