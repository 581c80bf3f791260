/*
 * A group in the process of the test: what calls return, and in which order
 * callbacks come.
 */
#include "paxos/group/group.h"

#include <poll.h>

#include "core/base/err.h"
#include "paxos/group/group_internal.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/group/group_world.h"

static struct group_world w;

static void init(void)
{
    group_world_begin(&w, 3);
}

static void fini(void)
{
    group_world_end(&w);
}

#define CASE(name)                                                             \
    Test(group_calls, name, .init = init, .fini = fini, .timeout = 100)

#define LONG ((uint64_t)60 * 1000000000)

static int add(void *ctx, const struct qn_group_command *c, uint64_t *result)
{
    *result = *(uint64_t *)ctx += c->len;
    return QN_OK;
}

static int never(void *ctx)
{
    (void)ctx;
    return QN_ENOSYS;
}

static int never_next(void *ctx, void *bytes, size_t cap, size_t *len)
{
    (void)ctx;
    (void)bytes;
    (void)cap;
    (void)len;
    return QN_ENOSYS;
}

static int taken(void *ctx, const void *bytes, size_t len)
{
    (void)ctx;
    (void)bytes;
    (void)len;
    return QN_OK;
}

static int finished(void *ctx)
{
    (void)ctx;
    return QN_OK;
}

static void nothing(void *ctx)
{
    (void)ctx;
}

/* It takes any state, and gives none. */
static struct qn_group_service adds_to(uint64_t *sum)
{
    return (struct qn_group_service){.apply = add,
                                     .begin = never,
                                     .next = never_next,
                                     .end = nothing,
                                     .read = taken,
                                     .finish = finished,
                                     .install = nothing,
                                     .abandon = nothing,
                                     .ctx = sum};
}

static struct qn_group_status turn_until_serving(struct qn_group *g)
{
    struct qn_group_status st = {.phase = QN_GROUP_MEETING};
    while (st.phase != QN_GROUP_SERVING) {
        cr_assert_geq(qn_group_turn(g), 0, "%s", qn_group_why(g));
        qn_group_status(g, &st);
    }
    return st;
}

/* A process gives its lock back before its descriptor is readable: so its seat
 * may be taken again, and the next one be known here, before the news of the
 * end are read. */
CASE(news_of_the_former_process_of_a_seat_do_not_end_the_present_one)
{
    uint64_t sum = 0;
    struct qn_group *g;
    struct qn_group_status st;
    w.opts.members = 2;
    group_world_start(&w, 0);
    struct qn_group_opts o = w.opts;
    o.service = adds_to(&sum);
    cr_assert_eq(qn_group_join(&g, &o), QN_OK);
    st = turn_until_serving(g);
    cr_assert_eq(st.members, 3);
    qn_group_ends_hear(g, 1 - st.seat);
    qn_group_status(g, &st);
    cr_expect_eq(st.members, 3);
    qn_group_leave(g);
}

static void done_once(void *ctx, int err, uint64_t result)
{
    int *told = ctx;
    (void)result;
    told[0]++;
    told[1] = err;
}

CASE(leaving_ends_what_waits_and_gives_all_back)
{
    const int before = open_descriptors();
    uint64_t sum = 0;
    int told[2] = {0, 0};
    struct qn_group *g;
    w.opts.members = w.opts.capacity = 1;
    w.opts.service = (struct qn_group_service){.apply = add, .ctx = &sum};
    cr_assert_eq(qn_group_join(&g, &w.opts), QN_OK);
    (void)turn_until_serving(g);
    struct qn_group_needs needs;
    cr_assert_eq(qn_group_needs(&w.opts, &needs), QN_OK);
    cr_expect_eq(open_descriptors(), before + (int)needs.descriptors);
    const struct qn_group_change c = {.seat = 0, .votes = true};
    cr_expect_eq(qn_group_change(g, &c, LONG, done_once, told), QN_ENOSYS);
    cr_assert_eq(qn_group_propose(g, "abc", 3, 1000, done_once, told), QN_OK);
    cr_expect_eq(told[0], 0);
    qn_group_leave(g);
    cr_expect_eq(told[0], 1);
    cr_expect_eq(told[1], QN_EUNKNOWN);
    cr_expect_eq(open_descriptors(), before);
    qn_group_leave(NULL);
}

struct proposer {
    struct qn_group *group;
    int err[2]; /* of a proposal and of a barrier inside of apply */
};

static int propose_inside(void *ctx, const struct qn_group_command *c,
                          uint64_t *result)
{
    struct proposer *p = ctx;
    (void)c;
    p->err[0] = qn_group_propose(p->group, "x", 1, LONG, done_once, NULL);
    p->err[1] = qn_group_barrier(p->group, LONG, done_once, NULL);
    *result = 0;
    return QN_OK;
}

/* Alone, it decides and applies where the driver sends. */
CASE(apply_may_propose_nothing)
{
    struct proposer p = {.err = {QN_OK, QN_OK}};
    int told[2] = {0, 0};
    w.opts.members = w.opts.capacity = 1;
    w.opts.service =
        (struct qn_group_service){.apply = propose_inside, .ctx = &p};
    cr_assert_eq(qn_group_join(&p.group, &w.opts), QN_OK);
    int err = QN_EAGAIN;
    while (err == QN_EAGAIN) {
        cr_assert_geq(qn_group_turn(p.group), 0);
        err = qn_group_propose(p.group, "abc", 3, LONG, done_once, told);
    }
    while (told[0] == 0) {
        cr_assert_geq(qn_group_turn(p.group), 0);
    }
    cr_expect_eq(told[1], QN_OK);
    cr_expect_eq(p.err[0], QN_EBUSY);
    cr_expect_eq(p.err[1], QN_EBUSY);
    qn_group_leave(p.group);
}

CASE(options_out_of_range_are_refused)
{
    struct qn_group *g = NULL;
    struct qn_group_needs needs;
    const struct qn_group_service service = {.apply = add};
    struct qn_group_opts o = w.opts;
    o.service = service;
    cr_expect_eq(qn_group_join(&g, &o), QN_EINVAL, "no snapshots");
    o.members = 65;
    cr_expect_eq(qn_group_needs(&o, &needs), QN_EINVAL);
    o.members = 1;
    o.capacity = 65;
    cr_expect_eq(qn_group_join(&g, &o), QN_EINVAL);
    o.members = 3;
    o.capacity = 2;
    cr_expect_eq(qn_group_join(&g, &o), QN_EINVAL);
    o.members = o.capacity = 1;
    o.cells = 100;
    cr_expect_eq(qn_group_join(&g, &o), QN_EINVAL);
    o.cells = 0;
    o.application = "not\nprintable";
    cr_expect_eq(qn_group_join(&g, &o), QN_EINVAL);
    o.application = "test";
    o.command_max = QN_GROUP_COMMAND_MAX + 1;
    cr_expect_eq(qn_group_join(&g, &o), QN_EINVAL);
    o.command_max = 0;
    o.name = "@no/word";
    cr_expect_eq(qn_group_join(&g, &o), QN_EINVAL);
    o.name = NULL;
    cr_expect_eq(qn_group_join(&g, &o), QN_EINVAL, "no place");
    o.socket_fd = -1;
    cr_expect_eq(qn_group_join(&g, &o), QN_EINVAL, "no socket");
    o.socket_fd = 1;
    o.name = "@word";
    cr_expect_eq(qn_group_join(&g, &o), QN_EINVAL, "two places");
    cr_expect_null(g);
    o.members = o.capacity = 3;
    cr_expect_eq(qn_group_needs(&o, &needs), QN_OK);
    cr_expect(needs.shared > needs.commons && needs.mapped > needs.shared);
}

/* ---- a seat -------------------------------------------------------------- */

static bool has_voters(const struct group_world_report *r, uint64_t mask)
{
    return r->status.voters == mask;
}

static bool was_removed(const struct group_world_report *r, uint64_t arg)
{
    (void)arg;
    return r->turn == QN_EREMOVED;
}

/* Four voters, of which the last one has ended. */
static void three_of_four(void)
{
    w.opts.members = 0;
    for (uint32_t i = 0; i < 4; i++) {
        group_world_start(&w, i);
        group_world_wait(&w, i, has_voters, (UINT64_C(2) << i) - 1);
    }
    group_world_kill(&w, 3);
}

/* A member has been asked, and its answer lies there, unread. */
static void turn_until_answered(struct qn_group *g)
{
    struct pollfd p = {.events = POLLIN};
    while (g->step != QN_STEP_ASK) {
        cr_assert_geq(qn_group_turn(g), 0, "%s", qn_group_why(g));
    }
    for (uint32_t i = 0; i < QN_GROUP_LINKS_MAX; i++) {
        p.fd = g->link[i].fd >= 0 && g->link[i].ours ? g->link[i].fd : p.fd;
    }
    cr_assert_eq(poll(&p, 1, -1), 1);
}

/* What it was told first says that both vote. */
CASE(a_guest_leaves_the_seat_of_one_just_removed_for_that_of_a_dead_voter)
{
    const struct qn_group_change remove = {.seat = 2, .votes = false};
    uint64_t sum = 0;
    struct qn_group *g;
    three_of_four();
    struct qn_group_opts o = w.opts;
    o.service = adds_to(&sum);
    cr_assert_eq(qn_group_join(&g, &o), QN_OK);
    turn_until_answered(g);
    cr_assert_eq(group_world_change(&w, 0, &remove, LONG), QN_OK);
    group_world_wait(&w, 2, was_removed, 0);
    group_world_kill(&w, 2);
    const struct qn_group_status st = turn_until_serving(g);
    cr_expect_eq(st.seat, 3);
    cr_expect_eq(st.voters, 0xb);
    qn_group_leave(g);
}
