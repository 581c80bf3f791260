/*
 * Members without a server: three threads of one process, each with a loop of
 * its own (member_world.h). What they propose is applied by all, in one order,
 * while members die, come back and stall.
 */
#include "paxos/member/member.h"

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/place/liveness.h"
#include "paxos/member/member_internal.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/member/member_world.h"
#include "tests/unit/paxos/member/one_member.h"
#include "transports/registry.h"

static struct world w;

/* ---- a group ------------------------------------------------------------- */

static bool has_applied_1001(const struct world_life *l)
{
    return l->state.applied == 1001;
}

static bool has_cut(const struct world_life *l)
{
    return l->cuts != 0;
}

static void expect_equal(void)
{
    uint64_t digest = world_facts(&w, 0).state.digest;
    cr_expect_eq(world_facts(&w, 1).state.digest, digest);
    cr_expect_eq(world_facts(&w, 2).state.digest, digest);
}

static bool knows_of_death_of_2(const struct world_life *l)
{
    return (l->deaths >> 2 & 1) != 0;
}

/* A member dies, the others go on, it comes back and has all again. */
static void kill_and_return(qn_node_t victim)
{
    qn_node_t other = (victim + 1) % WORLD_NODES;
    uint64_t before = world_facts(&w, other).state.applied;
    world_submit(&w, other, 20);
    world_submit(&w, victim, 20);
    world_applied(&w, before + 40);
    world_kill(&w, victim);
    world_submit(&w, other, 20);
    world_applied(&w, before + 60);
    world_return(&w, victim);
    world_submit(&w, victim, 20);
    world_submit(&w, other, 20);
    world_applied(&w, before + 100);
    expect_equal();
}

static void run_with(const char *transport, bool memory_acceptor)
{
    world_begin(&w, transport, memory_acceptor);
    for (qn_node_t i = 0; i < WORLD_NODES; i++) {
        world_submit(&w, i, 100);
    }
    world_applied(&w, 300);
    expect_equal();
    world_end(&w);
}

Test(member, what_any_member_proposes_is_applied_by_all, .timeout = 60)
{
    run_with("ump", true);
    run_with("ump", false);
}

Test(member, the_transport_is_an_argument_and_may_be_a_device, .timeout = 60)
{
    run_with("mpb", true);
}

Test(member, a_follower_dies_and_comes_back, .timeout = 60)
{
    static const bool memory_acceptor[] = {true, false};
    for (size_t i = 0; i < 2; i++) {
        world_begin(&w, "ump", memory_acceptor[i]);
        kill_and_return(2);
        world_end(&w);
    }
}

Test(member, each_leader_dies_and_comes_back, .timeout = 60)
{
    world_begin(&w, "ump", true);
    for (int i = 0; i < 4; i++) {
        kill_and_return(world_facts(&w, 2).leader);
    }
    world_end(&w);
}

Test(member, each_death_is_told_once_with_its_flight_recorder, .timeout = 60)
{
    world_begin(&w, "ump", true);
    world_submit(&w, 0, 1);
    world_applied(&w, 1);
    world_kill(&w, 2);
    world_submit(&w, 0, 1); /* something waits: deaths are looked for */
    world_submit(&w, 1, 1);
    world_wait(&w, 0, knows_of_death_of_2);
    world_wait(&w, 1, knows_of_death_of_2);
    world_return(&w, 2);
    world_submit(&w, 2, 1);
    world_applied(&w, 4);
    cr_assert_eq(world_facts(&w, 0).recorded, 1);
    cr_assert_eq(world_facts(&w, 1).recorded, 1);
    cr_assert_eq(world_facts(&w, 2).recorded, 1, "its own former one");
    cr_assert_eq(world_facts(&w, 2).deaths, 0);
    world_end(&w);
}

static bool has_installed(const struct world_life *l)
{
    return l->installed == 1;
}

static bool has_message(const struct world_life *l)
{
    return l->messages != 0;
}

static void count_line(void *lines, enum qn_log_level level, const char *line)
{
    (void)level;
    (void)line;
    ++*(int *)lines;
}

/* What the old leader had is not in the new one's ring, so its next incarnation
 * gets a snapshot. It travels beside messages of the service. */
Test(member, messages_of_a_state_transfer_do_not_reach_the_service,
     .timeout = 60)
{
    int lines = 0;
    qn_log_set(count_line, &lines, QN_LOG_DEBUG);
    world_begin(&w, "ump", true);
    world_submit(&w, 0, 100);
    world_applied(&w, 100);
    world_kill(&w, 0);
    world_submit(&w, 1, 1);
    world_applied(&w, 101);
    world_return(&w, 0);
    world_speak(&w, 0, 1);
    world_speak(&w, 1, 0);
    world_wait(&w, 0, has_installed);
    world_wait(&w, 0, has_message);
    world_wait(&w, 1, has_message);
    world_submit(&w, 0, 1);
    world_applied(&w, 102);
    expect_equal();
    cr_assert_eq(world_facts(&w, 0).messages, 1);
    cr_assert_eq(world_facts(&w, 0).lags, 0, "it has asked by itself");
    cr_assert_eq(world_facts(&w, 0).snapshot_lines, 1);
    world_end(&w);
    qn_log_set(NULL, NULL, QN_LOG_DEBUG);
    cr_assert_eq(lines, 0, "they have a log of their own");
}

/* More than the others keep is decided while member 2 makes no turns. */
Test(member, a_member_that_lags_too_far_gets_a_snapshot, .timeout = 60)
{
    w.command_bytes = 16 << 10;
    w.lag_timeout = 20 * QN_MS;
    world_begin(&w, "ump", true);
    world_submit(&w, 2, 1);
    world_applied(&w, 1);
    world_sleep(&w, 2, true);
    world_submit(&w, 0, 1000);
    world_wait(&w, 0, has_applied_1001);
    world_wait(&w, 1, has_applied_1001);
    world_sleep(&w, 2, false);
    world_submit(&w, 2, 1);
    world_applied(&w, 1002);
    expect_equal();
    cr_assert_geq(world_facts(&w, 2).installed, 1);
    cr_assert_geq(world_facts(&w, 2).lags, 1);
    world_end(&w);
}

/* member_world.c asserts that nothing is applied meanwhile. */
Test(member, a_state_without_a_cut_is_given_by_a_follower, .timeout = 60)
{
    w.no_cut = true;
    world_begin(&w, "ump", true);
    world_submit(&w, 0, 100);
    world_applied(&w, 100);
    world_kill(&w, 2);
    world_submit(&w, 0, 1);
    world_applied(&w, 101);
    world_submit(&w, 0, 1000);
    world_return(&w, 2);
    world_applied(&w, 1101);
    expect_equal();
    world_wait(&w, 1, has_cut);
    cr_assert_eq(world_facts(&w, 0).cuts, 0, "it leads");
    world_end(&w);
}

Test(member, a_state_without_a_cut_is_given_by_the_last_member, .timeout = 60)
{
    w.no_cut = true;
    world_begin(&w, "ump", true);
    world_submit(&w, 0, 100);
    world_applied(&w, 100);
    world_kill(&w, 1);
    world_kill(&w, 2);
    world_submit(&w, 0, 100);
    world_applied(&w, 200);
    world_return(&w, 2);
    world_wait(&w, 0, has_cut);
    world_submit(&w, 2, 1);
    world_applied(&w, 201);
    cr_assert_eq(world_facts(&w, 2).state.digest,
                 world_facts(&w, 0).state.digest);
    world_end(&w);
}

static bool sees_another_leader(const struct world_life *l)
{
    return l->failovers > 0 && l->leader != 0;
}

/* Member 0 leads, and makes no turns while another one waits for it. */
Test(member, a_stalled_leader_is_deposed_and_its_return_is_noticed,
     .timeout = 60)
{
    world_begin(&w, "ump", true);
    world_submit(&w, 1, 1);
    world_applied(&w, 1);
    world_sleep(&w, 0, true);
    world_submit(&w, 1, 1);
    world_wait(&w, 1, sees_another_leader);
    world_sleep(&w, 0, false);
    for (uint64_t n = 3; (world_facts(&w, 1).resumed & 1) == 0; n++) {
        world_submit(&w, 0, 1); /* it makes turns, and they are looked at */
        world_applied(&w, n);
    }
    expect_equal();
    world_end(&w);
}

/* ---- one member ---------------------------------------------------------- */

#define CASE(name, ...)                                                        \
    Test(one_member, name, .init = one_begin, .fini = one_end, __VA_ARGS__)

CASE(options_out_of_range_make_no_member, .timeout = 10)
{
    int before = open_descriptors();
    for (int i = 0; i < 7; i++) {
        struct qn_member_opts o = one.o;
        struct qn_member *m = NULL;
        switch (i) {
        case 0:
            o.nodes = 0;
            break;
        case 1:
            o.nodes = QN_NODES_MAX + 1;
            break;
        case 2:
            o.self = WORLD_NODES;
            break;
        case 3:
            o.incarnation = 0;
            break;
        case 4:
            o.shares = false; /* with the memory acceptor */
            break;
        case 5:
            o.backlog_bytes = QN_MEMBER_BACKLOG_LEAST - 1;
            break;
        default:
            o.nodes = 1;
            o.shares = o.memory_acceptor = false;
        }
        cr_expect_eq(qn_member_create(&m, &o), QN_EINVAL, "row %d", i);
        cr_expect_null(m);
    }
    cr_assert_eq(open_descriptors(), before);
}

CASE(the_commons_of_another_group_are_refused, .timeout = 10)
{
    struct qn_member *m = NULL;
    int before = open_descriptors();
    one.o.nodes = WORLD_NODES - 1;
    cr_assert_eq(qn_member_create(&m, &one.o), QN_ECORRUPT);
    cr_assert_null(m);
    cr_assert_eq(open_descriptors(), before);
}

CASE(a_thread_is_one_member_at_a_time, .timeout = 10)
{
    struct qn_member *m = NULL;
    struct qn_member *second = NULL;
    struct qn_member_opts o = world_opts(&one.world, 1, 2);
    cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
    cr_assert_eq(qn_member_create(&second, &o), QN_EBUSY);
    qn_member_destroy(m);
    cr_assert_eq(qn_member_create(&second, &o), QN_OK);
    qn_member_destroy(second);
}

/* Another process finds that none is node 0. */
static bool is_free(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        pid_t who;
        _exit(qn_hold_look(one.world.commons_fd, 0, &who) ? 1 : 0);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFEXITED(status));
    return WEXITSTATUS(status) == 0;
}

static void *begin_and_end(void *m)
{
    struct qn_member_opts o = world_opts(&one.world, 0, 1);
    cr_assert_eq(qn_member_create(m, &o), QN_OK);
    return NULL;
}

/* The member of a thread that has ended does not take it from its successor. */
CASE(the_last_member_of_a_node_gives_it_back, .timeout = 10)
{
    struct qn_member *former = NULL;
    struct qn_member *m = NULL;
    pthread_t t;
    cr_assert_eq(pthread_create(&t, NULL, begin_and_end, &former), 0);
    cr_assert_eq(pthread_join(t, NULL), 0);
    one.o.incarnation = 2;
    cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
    qn_member_destroy(former);
    cr_assert_not(is_free());
    qn_member_destroy(m);
    cr_assert(is_free());
}

CASE(a_member_that_cannot_be_made_holds_nothing, .timeout = 10)
{
    struct qn_member *m = NULL;
    struct qn_member *second = NULL;
    struct qn_member_opts o = world_opts(&one.world, 1, 2);
    one.o.nodes = WORLD_NODES - 1;
    cr_assert_eq(qn_member_create(&m, &one.o), QN_ECORRUPT);
    cr_assert(is_free());
    cr_assert_eq(qn_member_create(&m, &o), QN_OK);
    one.o.nodes = WORLD_NODES;
    cr_assert_eq(qn_member_create(&second, &one.o), QN_EBUSY);
    cr_assert(is_free());
    qn_member_destroy(m);
}

static void *same_again(void *err)
{
    struct qn_member *m = NULL;
    *(int *)err = qn_member_create(&m, &one.o);
    QN_ASSERT(m == NULL);
    return NULL;
}

static enum qn_liveness check(uint64_t incarnation)
{
    return qn_liveness_check(one.commons, 0, incarnation);
}

/* In a thread of its own, or it would be refused as a second member. */
CASE(a_second_one_of_an_incarnation_leaves_the_first_alive, .timeout = 10)
{
    struct qn_member *m = NULL;
    pthread_t t;
    int err = QN_OK;
    one.o.incarnation = 2;
    cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
    for (; one.o.incarnation > 0; one.o.incarnation--) {
        cr_assert_eq(pthread_create(&t, NULL, same_again, &err), 0);
        cr_assert_eq(pthread_join(t, NULL), 0);
        cr_assert_eq(err, QN_EBUSY);
        cr_assert_eq(check(2), QN_LIVENESS_ALIVE);
        cr_assert_not(is_free());
    }
    qn_member_destroy(m);
    cr_assert_eq(check(2), QN_LIVENESS_DEAD);
}

CASE(a_child_that_destroys_what_it_has_inherited_ends_none, .timeout = 10)
{
    struct qn_member *m = NULL;
    int status;
    cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
    pid_t pid = fork();
    if (pid == 0) {
        qn_member_destroy(m);
        _exit(0);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_assert_eq(check(1), QN_LIVENESS_ALIVE);
    cr_assert_not(is_free());
    qn_member_destroy(m);
}

CASE(the_end_of_a_member_says_whether_it_was_intended, .timeout = 10)
{
    for (uint64_t i = 1; i <= 2; i++) {
        struct qn_member *m = NULL;
        one.o.incarnation = i;
        cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
        cr_assert_eq(check(i), QN_LIVENESS_ALIVE);
        if (i == 2) {
            qn_member_leave(m);
        }
        qn_member_destroy(m);
        cr_assert_eq(check(i), QN_LIVENESS_DEAD);
        cr_assert_eq(qn_liveness_left(one.commons, 0, i), i == 2);
    }
}

CASE(a_peer_is_met_by_its_own_outbox_only_and_once, .timeout = 10)
{
    struct qn_member *m = NULL;
    struct qn_member_peer p;
    cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
    struct qn_outbox *o = one_outbox(m, 1, 5);
    int before = open_descriptors();
    cr_expect_eq(one_meet(m, o, 2, 5), QN_ECORRUPT, "another node's");
    cr_expect_eq(one_meet(m, o, 1, 6), QN_ESTALE, "another incarnation's");
    cr_expect_eq(one_meet(m, o, 0, 1), QN_ECORRUPT, "the receiver itself");
    cr_assert_eq(open_descriptors(), before);
    cr_assert_eq(qn_member_peers(m), 0);
    cr_assert_eq(one_meet(m, o, 1, 5), QN_OK);
    cr_assert_eq(one_meet(m, o, 1, 5), QN_ECORRUPT, "met already");
    cr_assert_eq(qn_member_peers(m), 1u << 1);
    cr_assert(qn_member_peer(m, 1, &p));
    cr_assert_eq(p.incarnation, 5);
    qn_member_meet_ended(m, 1, 4); /* says nothing new */
    cr_assert(qn_member_peer(m, 1, &p));
    qn_outbox_destroy(o);
    qn_member_destroy(m);
}

static void count(void *ctx, const struct qn_member_peer *p)
{
    (void)p;
    ++*(int *)ctx;
}

CASE(a_peer_that_ends_before_the_start_is_retained, .timeout = 10)
{
    struct qn_member *m = NULL;
    struct qn_member_peer p;
    int retained = 0;
    one.o.callbacks.recorded = one_ignores_recorder;
    cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
    struct qn_outbox *o = one_outbox(m, 1, 5);
    cr_assert_eq(one_meet(m, o, 1, 5), QN_OK);
    qn_member_meet_ended(m, 1, 5);
    cr_assert_not(qn_member_peer(m, 1, &p));
    cr_assert_eq(p.incarnation, 5, "the last one known");
    qn_member_each_retained(m, count, &retained);
    cr_assert_eq(retained, 1);
    qn_outbox_destroy(o);
    qn_member_destroy(m);
}

CASE(the_last_end_before_the_start_is_the_latest, .timeout = 10)
{
    struct qn_member *m = NULL;
    struct qn_member_peer p;
    one.o.callbacks.recorded = one_ignores_recorder;
    cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
    qn_member_meet_ended(m, 1, 5);
    qn_member_meet_ended(m, 1, 3);
    cr_assert_not(qn_member_peer(m, 1, &p));
    cr_assert_eq(p.incarnation, 5);
    struct qn_outbox *o = one_outbox(m, 2, 7);
    cr_assert_eq(one_meet(m, o, 2, 7), QN_OK);
    qn_member_meet_ended(m, 2, 6);
    cr_assert(qn_member_peer(m, 2, &p));
    qn_member_meet_ended(m, 2, 8); /* of the one behind it */
    cr_assert_not(qn_member_peer(m, 2, &p));
    cr_assert_eq(p.incarnation, 8);
    qn_outbox_destroy(o);
    qn_member_destroy(m);
}

static void count_end(void *ctx, qn_node_t node, uint64_t incarnation,
                      qn_time_t now)
{
    (void)node;
    (void)incarnation;
    (void)now;
    ++*(int *)ctx;
}

/* News of peers may come twice, and late. */
CASE(a_peer_that_is_present_goes_on_whatever_is_said_again, .timeout = 10)
{
    int ends = 0;
    struct world_life life = {.world = &one.world};
    struct qn_member_state state = world_state_of(&life);
    const struct qn_service service = {.ctx = &life};
    struct qn_member *m = NULL;
    struct qn_member_peer p;
    one.o.callbacks.recorded = one_ignores_recorder;
    one.o.callbacks.ended = count_end;
    one.o.callbacks.ctx = &ends;
    cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
    struct qn_outbox *o[10] = {[2] = one_outbox(m, 2, 3)};
    for (uint64_t inc = 6; inc < 10; inc++) {
        o[inc] = one_outbox(m, 1, inc);
    }
    cr_assert_eq(one_meet(m, o[7], 1, 7), QN_OK);
    cr_assert_eq(one_meet(m, o[2], 2, 3), QN_OK);
    cr_assert_eq(qn_member_start(m, &service, &state), QN_OK);
    cr_assert_eq(one_peer_up(m, o[7], 1, 7), QN_ESTALE);
    cr_assert_eq(one_peer_up(m, o[6], 1, 6), QN_ESTALE);
    qn_member_peer_down(m, 1, 6);
    cr_assert_eq(ends, 0);
    cr_assert(qn_member_peer(m, 1, &p) && p.incarnation == 7);
    cr_assert_eq(one_peer_up(m, o[9], 1, 8), QN_ESTALE, "not its outbox");
    cr_assert_eq(ends, 1, "but 7 has ended");
    cr_assert_not(qn_member_peer(m, 1, &p));
    cr_assert_eq(one_peer_up(m, o[8], 1, 8), QN_OK, "it may be tried again");
    qn_member_peer_down(m, 1, 9);
    cr_assert_eq(ends, 2, "so has 8");
    cr_assert_eq(one_peer_up(m, o[8], 1, 8), QN_ESTALE);
    cr_assert_not(qn_member_peer(m, 1, &p));
    for (uint64_t i = 0; i < 10; i++) {
        qn_outbox_destroy(o[i]);
    }
    qn_member_stop(m);
    qn_member_destroy(m);
}

/* The service may be gone: nothing reaches it, nor the state transfer. */
CASE(a_stopped_member_hears_no_more_of_peers, .timeout = 10)
{
    int ends = 0;
    struct world_life life = {.world = &one.world};
    struct qn_member_state state = world_state_of(&life);
    const struct qn_service service = {.ctx = &life};
    struct qn_member *m = NULL;
    one.o.callbacks.recorded = one_ignores_recorder;
    one.o.callbacks.ended = count_end;
    one.o.callbacks.ctx = &ends;
    cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
    struct qn_outbox *o = one_outbox(m, 1, 7);
    struct qn_outbox *next = one_outbox(m, 1, 8);
    struct qn_outbox *other = one_outbox(m, 2, 3);
    cr_assert_eq(one_meet(m, o, 1, 7), QN_OK);
    cr_assert_eq(one_meet(m, other, 2, 3), QN_OK);
    cr_assert_eq(qn_member_start(m, &service, &state), QN_OK);
    qn_member_stop(m);
    qn_member_peer_down(m, 1, 7);
    cr_assert_eq(one_peer_up(m, next, 1, 8), QN_EINVAL);
    cr_assert_eq(ends, 0);
    qn_outbox_destroy(o);
    qn_outbox_destroy(next);
    qn_outbox_destroy(other);
    qn_member_destroy(m);
}

static void keep_line(void *kept, enum qn_log_level level, const char *line)
{
    (void)level;
    snprintf(kept, 128, "%s", line);
}

/* Of a later incarnation, without a record: its driver says so. */
CASE(what_a_driver_tells_goes_to_the_log_of_its_member, .timeout = 10)
{
    struct world_life life = {.world = &one.world};
    const struct qn_service service = {.ctx = &life};
    for (int own = 0; own < 2; own++) {
        char process[128] = "", member[128] = "";
        struct qn_member *m = NULL;
        one.o.first = false;
        one.o.incarnation++;
        one.o.log.fn = own ? keep_line : NULL;
        one.o.log.ctx = member;
        qn_log_set(keep_line, process, QN_LOG_DEBUG);
        cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
        qn_member_meet_ended(m, 1, 1);
        qn_member_meet_ended(m, 2, 1);
        cr_assert_eq(qn_member_start(m, &service, NULL), QN_OK);
        qn_log_set(NULL, NULL, QN_LOG_DEBUG);
        cr_assert_eq(strncmp(own ? member : process, "member 0: ", 10), 0);
        cr_assert_str_eq(own ? process : member, "");
        qn_member_destroy(m);
    }
}

/* Its marks of flow control are some bytes: none is divided by 0. */
CASE(the_least_backlog_makes_a_member, .timeout = 10)
{
    struct world_life life = {.world = &one.world};
    const struct qn_service service = {.ctx = &life};
    struct qn_member *m = NULL;
    one.o.backlog_bytes = QN_MEMBER_BACKLOG_LEAST;
    cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
    struct qn_outbox *o[] = {one_outbox(m, 1, 2), one_outbox(m, 2, 3)};
    cr_assert_eq(one_meet(m, o[0], 1, 2), QN_OK);
    cr_assert_eq(one_meet(m, o[1], 2, 3), QN_OK);
    cr_assert_eq(qn_member_start(m, &service, NULL), QN_OK);
    qn_outbox_destroy(o[0]);
    qn_outbox_destroy(o[1]);
    qn_member_destroy(m);
}

static void *later_incarnation(void *arg)
{
    struct qn_member_opts o = world_opts(&one.world, 0, 2);
    struct qn_member *m = NULL;
    (void)arg;
    cr_assert_eq(qn_member_create(&m, &o), QN_OK);
    return NULL; /* the process ends, with all that it has */
}

/* A thread of the same process gets the lock, which belongs to the process. */
CASE(a_superseded_member_does_not_go_on, .timeout = 10, .exit_code = 7)
{
    struct qn_member *m = NULL;
    pthread_t t;
    cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
    (void)qn_member_turn_begin(m, qn_clock_now());
    cr_assert_eq(pthread_create(&t, NULL, later_incarnation, NULL), 0);
    cr_assert_eq(pthread_join(t, NULL), 0);
    (void)qn_member_turn_begin(m, qn_clock_now());
}

/* It was taken for dead, as if it had closed a descriptor of the commons. */
CASE(a_held_member_that_was_marked_does_not_go_on, .timeout = 10,
     .exit_code = 7)
{
    struct qn_member *m = NULL;
    one.o.held = true;
    cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
    (void)qn_member_turn_begin(m, qn_clock_now());
    cr_assert_eq(
        qn_liveness_look(one.commons, one.o.commons_fd, 0, one.o.incarnation),
        QN_LIVENESS_ALIVE);
    close(dup(one.o.commons_fd)); /* that costs the lock */
    pid_t pid = fork();
    if (pid == 0) {
        _exit(qn_liveness_look(one.commons, one.o.commons_fd, 0,
                               one.o.incarnation) == QN_LIVENESS_DEAD
                  ? 0
                  : 1);
    }
    int status;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0);
    (void)qn_member_turn_begin(m, qn_clock_now());
}

CASE(what_a_member_says_of_itself, .timeout = 10)
{
    struct qn_member *m = NULL;
    cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
    cr_assert_eq(qn_member_phase(m, 0), 0);
    qn_member_phase_set(m, 2);
    qn_member_counter_set(m, QN_MEMBER_COUNTERS - 1, 11);
    (void)qn_member_turn_begin(m, qn_clock_now());
    cr_assert_eq(qn_member_phase(m, 0), 2);
    cr_assert_eq(qn_member_counter(m, 0, QN_MEMBER_COUNTERS - 1), 11);
    cr_assert_eq(qn_member_counter(m, 0, 0), 0);
    cr_assert_eq(qn_member_turns(m, 0), 1);
    qn_member_destroy(m);
}

CASE(there_are_no_more_counters, .timeout = 10, .signal = SIGABRT)
{
    struct qn_member *m = NULL;
    cr_assert_eq(qn_member_create(&m, &one.o), QN_OK);
    qn_member_counter_set(m, QN_MEMBER_COUNTERS, 1);
}
