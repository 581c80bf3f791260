/*
 * The supervisor: later incarnations of replicas (tests/support/small_server.h,
 * whose replicas exit if messages about others are not in the order of
 * incarnations).
 */
#include "tests/support/small_server.h"

#include <errno.h>
#include <string.h>

#include "tests/support/test.h"

static void start_restarting(struct server *s)
{
    struct qn_config c = small_config(3);
    c.restart = true;
    start(s, &c);
}

static struct reply present(const struct server *s, qn_node_t node)
{
    struct reply r;
    cr_assert(ask(s->own[node], &r));
    cr_assert_eq(r.node, node);
    return r;
}

/* @return its next incarnation, requested at its own port. */
static struct reply after_kill(const struct server *s, qn_node_t node)
{
    struct reply old = present(s, node);
    struct reply r;
    kill(old.pid, SIGKILL);
    do { /* the dying one may still accept a connection and drop it */
    } while (!ask(s->own[node], &r) || r.pid == old.pid);
    return r;
}

/* The next line contains `text`. */
static void expect_line(const struct server *s, const char *text)
{
    char line[256];
    read_line(s->log, line, sizeof line);
    cr_assert(strstr(line, text) != NULL, "'%s' is not in: %s", text, line);
}

Test(supervisor_restart, a_dead_replica_is_started_again_at_once, .timeout = 20)
{
    struct server s;
    char want[128];
    start_restarting(&s);
    struct reply old = present(&s, 1);
    struct reply r = after_kill(&s, 1);
    cr_assert_eq(r.node, 1);
    cr_assert_gt(r.life, old.life);
    snprintf(want, sizeof want,
             "replica 1 (process %d) was ended by signal 9 (Killed); 2 of 3 go "
             "on; starting it again\n",
             old.pid);
    expect_line(&s, want);
    end(&s);
}

Test(supervisor_restart, the_others_hear_of_each_life_in_order, .timeout = 20)
{
    struct server s;
    struct reply r;
    start_restarting(&s);
    for (int i = 0; i < 3; i++) {
        struct reply next = after_kill(&s, 1);
        for (qn_node_t k = 0; k < 3; k += 2) {
            do {
                cr_assert(ask(s.own[k], &r), "a survivor continues");
            } while (r.known[1] != next.life);
            cr_assert_eq(r.gone, 0);
            cr_assert_eq(next.known[k], r.life);
        }
        cr_assert_eq(next.gone, 0);
    }
    end(&s);
}

Test(supervisor_restart,
     its_share_of_connections_is_the_others_until_it_is_back, .timeout = 20)
{
    struct server s;
    struct reply r;
    mood.slow = 1;
    start_restarting(&s);
    struct reply next = after_kill(&s, 1); /* present, not complete */
    for (int i = 0; i < 100; i++) {
        cr_assert(ask(s.port, &r));
        cr_assert_neq(r.pid, next.pid);
    }
    end(&s);
    mood.slow = -1;
    start_restarting(&s);
    next = after_kill(&s, 1);
    do { /* one or the other accepts it */
        cr_assert(ask(s.port, &r));
    } while (r.pid != next.pid);
    end(&s);
}

Test(supervisor_restart, one_that_cannot_live_is_tried_again_ever_later,
     .timeout = 20)
{
    struct server s;
    struct reply r;
    mood.weak = 2;
    start_restarting(&s);
    r = present(&s, 2);
    kill(r.pid, SIGKILL);
    expect_line(&s, "(Killed); 2 of 3 go on; starting it again\n");
    expect_line(&s, "status 3; 2 of 3 go on; starting it again in 30 ms\n");
    expect_line(&s, "status 3; 2 of 3 go on; starting it again in 60 ms\n");
    /* A replica that starts now is informed that it is gone. */
    r = after_kill(&s, 1);
    cr_assert_eq(r.gone, 1u << 2);
    end(&s);
}

/* Without a majority no replica can take over from a dead leader. */
Test(supervisor_restart, one_needed_for_a_majority_is_restarted_soon,
     .timeout = 20)
{
    struct server s;
    char line[256] = "";
    mood.weak = SMALL_ALL;
    start_restarting(&s);
    kill(present(&s, 2).pid, SIGKILL);
    while (strstr(line, "in 240 ms") == NULL) { /* two live */
        read_line(s.log, line, sizeof line);
    }
    kill(present(&s, 1).pid, SIGKILL);
    /* Not while another one is starting, which may be slow. */
    while (strstr(line, "replica 1 ") == NULL ||
           strstr(line, "in 50 ms") == NULL) {
        read_line(s.log, line, sizeof line);
    }
    end(&s);
}

/* A stopped one cannot vote either; when it continues, the pauses do, too. */
Test(supervisor_restart, one_needed_beside_a_stopped_one_is_restarted_at_once,
     .timeout = 20)
{
    struct server s;
    char line[256] = "";
    mood.weak = 2;
    start_restarting(&s);
    int stopped = present(&s, 1).pid;
    kill(present(&s, 2).pid, SIGKILL);
    while (strstr(line, "in 240 ms") == NULL) {
        read_line(s.log, line, sizeof line);
    }
    kill(stopped, SIGSTOP);
    while (strstr(line, "in 50 ms") == NULL) {
        cr_assert(strstr(line, "in 3840 ms") == NULL, "%s", line);
        read_line(s.log, line, sizeof line);
    }
    kill(stopped, SIGCONT);
    while (strstr(line, "in 50 ms") != NULL) {
        read_line(s.log, line, sizeof line);
    }
    end(&s);
}

/* Its socket is soon full. It need not receive incarnations that started and
 * ended meanwhile; it does receive the ends of those it knows, and the living
 * ones. */
Test(supervisor_restart, a_stopped_one_is_informed_when_it_continues,
     .timeout = 60)
{
    struct server s;
    struct reply one;
    struct reply r;
    mood.narrow = 1;
    start_restarting(&s);
    struct reply still = present(&s, 2);
    kill(still.pid, SIGSTOP);
    for (int i = 0; i < 30; i++) {
        one = after_kill(&s, 1);
    }
    struct reply zero = after_kill(&s, 0);
    kill(still.pid, SIGCONT);
    do {
        cr_assert(ask(s.own[2], &r));
        cr_assert_eq(r.pid, still.pid, "it was replaced");
    } while (r.known[0] != zero.life || r.known[1] != one.life);
    cr_assert_eq(r.gone, 0);
    cr_assert_lt(r.peers, 20, "it was told of lives that were over");
    end(&s);
}

Test(supervisor_restart, one_that_cannot_start_reports_why, .timeout = 20)
{
    struct server s;
    mood.poor = 0;
    start_restarting(&s);
    struct reply r = present(&s, 0);
    kill(r.pid, SIGKILL);
    expect_line(&s, "(Killed); 2 of 3 go on; starting it again\n");
    expect_line(&s, "cannot start: not enough memory; 2 of 3 go on; starting "
                    "it again in 30 ms\n");
    end(&s);
}

/* New incarnations that were never complete have nothing to serve. */
Test(supervisor_restart, ends_when_no_complete_replica_is_left, .timeout = 20)
{
    struct server s;
    mood.slow = SMALL_ALL;
    start_restarting(&s);
    struct reply slow = after_kill(&s, 1);
    kill(present(&s, 0).pid, SIGKILL);
    kill(present(&s, 2).pid, SIGKILL);
    cr_assert_eq(status_of(&s), 1);
    cr_assert(kill(slow.pid, 0) != 0 && errno == ESRCH);
}

Test(supervisor_restart, drains_though_one_is_on_its_way, .timeout = 20)
{
    struct server s;
    mood.slow = 1;
    start_restarting(&s);
    after_kill(&s, 1);
    end(&s);
    mood = (struct small_mood)SMALL_MOOD;
    mood.weak = 2;
    start_restarting(&s); /* even if one is between two attempts */
    kill(present(&s, 2).pid, SIGKILL);
    expect_line(&s, "starting it again\n");
    expect_line(&s, "in 30 ms\n");
    end(&s);
}

Test(supervisor_restart, one_that_was_asked_to_leave_is_not_restarted,
     .timeout = 20)
{
    struct server s;
    start_restarting(&s);
    kill(present(&s, 0).pid, SIGTERM);
    expect_line(&s, "has ended with status 0; 2 of 3 go on\n");
    end(&s);
}

/* The memory with the last decided slots outlives its owner: every new replica
 * is introduced to that incarnation, its own successor too. */
Test(supervisor_restart, the_owner_of_the_accept_word_is_kept, .timeout = 20)
{
    struct server s;
    mood.owner = 0;
    start_restarting(&s);
    struct reply old = present(&s, 0);
    struct reply next = after_kill(&s, 0);
    cr_assert_eq(next.known[0], old.life);
    cr_assert_eq(next.peers, 3);
    struct reply other = after_kill(&s, 1);
    cr_assert_eq(other.known[0], next.life);
    cr_assert_eq(other.peers, 3, "both lives of 0, and 2");
    end(&s);
}

Test(supervisor_restart, an_owner_that_has_an_heir_is_not_kept, .timeout = 20)
{
    struct server s;
    struct reply r;
    mood.owner = 0;
    mood.successor = 2;
    start_restarting(&s);
    struct reply next = after_kill(&s, 0);
    do { /* it knows the new incarnation, hence the death before */
        cr_assert(ask(s.own[2], &r));
    } while (r.known[0] != next.life);
    r = after_kill(&s, 1);
    cr_assert_eq(r.known[0], next.life);
    cr_assert_eq(r.peers, 2);
    end(&s);
}
