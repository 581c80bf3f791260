/*
 * A group in a thread of its own, asked by several threads. Nothing waits for a
 * time: a test looks until what must come has come.
 */
#include "paxos/group/group_thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/atomic.h"
#include "core/base/err.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/group/group_world.h"

#define LONG ((uint64_t)60 * 1000000000)

enum { ASKERS = 3, EACH = 300 };

static struct group_world w;

/* What the thread and the test share. */
static struct host {
    struct qn_group_thread *thread;
    qn_a64 applied;
    qn_a64 ended[2]; /* [0] well, [1] otherwise */
    qn_a64 wrong;    /* callbacks in a thread that takes signals */
    int last;        /* error, if one ended otherwise */
    uint64_t again;  /* requests that a callback makes */
} host;

static void init(void)
{
    group_world_begin(&w, 1);
}

static void fini(void)
{
    group_world_end(&w);
}

#define CASE(name)                                                             \
    Test(group_thread, name, .init = init, .fini = fini, .timeout = 100)

static void count(qn_a64 *n)
{
    (void)qn_fetch_add(n, 1, QN_SEQ_CST);
}

static void look_at_mask(void)
{
    sigset_t blocked;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    for (int i = 1; i <= SIGSYS; i++) {
        if (i != SIGKILL && i != SIGSTOP && sigismember(&blocked, i) == 0) {
            count(&host.wrong);
        }
    }
}

static int on_apply(void *ctx, const struct qn_group_command *c,
                    uint64_t *result)
{
    (void)ctx;
    (void)c;
    look_at_mask();
    count(&host.applied);
    *result = 1;
    return QN_OK;
}

static void on_done(void *ctx, int err, uint64_t result)
{
    struct host *h = ctx;
    (void)result;
    look_at_mask();
    if (err == QN_OK && h->again > 0) {
        h->again--;
        cr_assert_eq(
            qn_group_thread_propose(h->thread, "again", 5, LONG, on_done, h),
            QN_OK);
    }
    if (err != QN_OK) {
        h->last = err;
    }
    count(&h->ended[err != QN_OK]);
}

static uint64_t ended(int how)
{
    return qn_load(&host.ended[how], QN_SEQ_CST);
}

static int nothing(void *ctx)
{
    (void)ctx;
    return QN_OK;
}

static int next(void *ctx, void *bytes, size_t cap, size_t *len)
{
    (void)ctx;
    (void)bytes;
    (void)cap;
    (void)len;
    return QN_ENOENT;
}

static int part(void *ctx, const void *bytes, size_t len)
{
    (void)ctx;
    (void)bytes;
    (void)len;
    return QN_EINVAL;
}

static void none(void *ctx)
{
    (void)ctx;
}

static void begin(const struct qn_group_thread_opts *like)
{
    struct qn_group_opts o = w.opts;
    struct qn_group_thread_opts t = *like;
    o.service = (struct qn_group_service){.apply = on_apply,
                                          .begin = nothing,
                                          .next = next,
                                          .end = none,
                                          .read = part,
                                          .finish = nothing,
                                          .install = none,
                                          .abandon = none,
                                          .ctx = &host};
    t.group = &o;
    cr_assert_eq(qn_group_thread_start(&host.thread, &t), QN_OK);
}

static void *asker(void *arg)
{
    for (int i = 0; i < EACH; i++) {
        const bool barrier = i % 10 == 0;
        int err;
        do {
            err = barrier ? qn_group_thread_barrier(host.thread, LONG, on_done,
                                                    &host)
                          : qn_group_thread_propose(host.thread, "abc", 3, LONG,
                                                    on_done, &host);
            if (err == QN_EAGAIN) {
                sched_yield();
            }
        } while (err == QN_EAGAIN);
        cr_assert_eq(err, QN_OK);
    }
    return arg;
}

/* Each is taken and ends once; the thread sleeps between some of them. */
CASE(threads_propose_and_all_is_applied_in_one)
{
    pthread_t t[ASKERS];
    sigset_t before, after;
    const int descriptors = open_descriptors();
    cr_assert_eq(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
    begin(&(struct qn_group_thread_opts){.requests = 16});
    for (int i = 0; i < ASKERS; i++) {
        cr_assert_eq(pthread_create(&t[i], NULL, asker, NULL), 0);
    }
    for (int i = 0; i < ASKERS; i++) {
        cr_assert_eq(pthread_join(t[i], NULL), 0);
    }
    while (ended(0) < ASKERS * EACH) {
        sched_yield();
    }
    for (uint64_t i = 1; i <= 20; i++) { /* one by one */
        cr_assert_eq(qn_group_thread_propose(host.thread, "one", 3, LONG,
                                             on_done, &host),
                     QN_OK);
        while (ended(0) < ASKERS * EACH + i) {
            sched_yield();
        }
    }
    struct qn_group_status st = {.phase = QN_GROUP_MEETING};
    while (st.commands < ASKERS * EACH * 9 / 10 + 20) {
        cr_assert_eq(qn_group_thread_status(host.thread, &st, NULL), QN_OK);
    }
    cr_expect_eq(st.phase, QN_GROUP_SERVING);
    qn_group_thread_stop(host.thread);
    cr_expect_eq(qn_load(&host.applied, QN_SEQ_CST),
                 ASKERS * EACH * 9 / 10 + 20);
    cr_expect_eq(ended(1), 0);
    cr_expect_eq(qn_load(&host.wrong, QN_SEQ_CST), 0);
    cr_assert_eq(pthread_sigmask(SIG_BLOCK, NULL, &after), 0);
    for (int i = 1; i <= SIGSYS; i++) {
        cr_expect_eq(sigismember(&before, i), sigismember(&after, i));
    }
    cr_expect_eq(open_descriptors(), descriptors);
}

CASE(a_callback_may_propose)
{
    host.again = 500;
    begin(&(struct qn_group_thread_opts){0});
    cr_assert_eq(
        qn_group_thread_propose(host.thread, "abc", 3, LONG, on_done, &host),
        QN_OK);
    while (ended(0) < 501) {
        sched_yield();
    }
    qn_group_thread_stop(host.thread);
    cr_expect_eq(ended(1), 0);
}

static void change(uint32_t seat, bool votes, int outcome)
{
    const struct qn_group_change c = {.seat = seat, .votes = votes};
    const uint64_t before = ended(0) + ended(1);
    host.last = QN_OK;
    cr_assert_eq(qn_group_thread_change(host.thread, &c, LONG, on_done, &host),
                 QN_OK);
    while (ended(0) + ended(1) == before) {
        sched_yield();
    }
    cr_expect_eq(host.last, outcome, "%s", qn_strerror(host.last));
}

static uint64_t voters_of(struct qn_group_thread *t, enum qn_group_phase phase)
{
    struct qn_group_status st = {.phase = QN_GROUP_MEETING};
    while (st.phase != phase) {
        cr_assert_eq(qn_group_thread_status(t, &st, NULL), QN_OK);
        sched_yield();
    }
    return st.voters;
}

/* Both are threads of this process. */
CASE(the_voters_are_changed)
{
    struct qn_group_thread *first;
    begin(&(struct qn_group_thread_opts){0});
    first = host.thread;
    cr_expect_eq(voters_of(first, QN_GROUP_SERVING), 1);
    change(5, true, QN_EINVAL); /* no member had it */
    w.opts.observer = true;
    begin(&(struct qn_group_thread_opts){0});
    cr_expect_eq(voters_of(host.thread, QN_GROUP_SERVING), 1);
    change(1, true, QN_OK);
    while (voters_of(first, QN_GROUP_SERVING) != 3) {
        sched_yield();
    }
    change(1, false, QN_OK); /* its own end is what it has asked for */
    (void)voters_of(host.thread, QN_GROUP_ENDED);
    while (voters_of(first, QN_GROUP_SERVING) != 1) {
        sched_yield();
    }
    change(0, true, QN_EREMOVED);
    qn_group_thread_stop(host.thread);
    qn_group_thread_stop(first);
}

/* Two of three have not come: nothing is taken from the queue. */
static void begin_alone(const struct qn_group_thread_opts *o)
{
    w.opts.members = 3;
    begin(o);
}

static int ask(size_t len, uint64_t timeout)
{
    static const char bytes[2000];
    return qn_group_thread_propose(host.thread, bytes, len, timeout, on_done,
                                   &host);
}

CASE(what_waits_for_the_group_is_bounded)
{
    begin_alone(
        &(struct qn_group_thread_opts){.requests = 4, .request_bytes = 1000});
    cr_expect_eq(ask(0, LONG), QN_EINVAL);
    cr_expect_eq(qn_group_thread_propose(host.thread, "",
                                         QN_GROUP_COMMAND_MAX + 1, LONG,
                                         on_done, &host),
                 QN_EMSGSIZE);
    cr_expect_eq(ask(2000, 1), QN_OK, "one may be longer");
    while (ended(1) < 1) { /* its time has come */
        sched_yield();
    }
    cr_expect_eq(host.last, QN_ETIMEDOUT);
    cr_expect_eq(ask(1000, LONG), QN_OK);
    cr_expect_eq(ask(1, LONG), QN_EAGAIN, "of the bytes");
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(qn_group_thread_barrier(host.thread, LONG, on_done, &host),
                     QN_OK);
    }
    cr_expect_eq(qn_group_thread_barrier(host.thread, LONG, on_done, &host),
                 QN_EAGAIN, "of the number");
    qn_group_thread_stop(host.thread);
    cr_expect_eq(ended(1), 5);
    cr_expect_eq(host.last, QN_EABORTED);
    cr_expect_eq(ended(0), 0);
}

/* One behind a head that waits for ever ends when its time has come. */
CASE(each_waits_for_its_own_time)
{
    begin_alone(&(struct qn_group_thread_opts){0});
    cr_expect_eq(ask(1, QN_GROUP_FOREVER), QN_OK);
    cr_expect_eq(ask(1, 1), QN_OK);
    cr_expect_eq(ask(1, 20000000), QN_OK);
    cr_expect_eq(qn_group_thread_change(
                     host.thread, &(struct qn_group_change){.votes = true},
                     20000000, on_done, &host),
                 QN_OK);
    while (ended(1) < 3) {
        sched_yield();
    }
    cr_expect_eq(host.last, QN_ETIMEDOUT);
    qn_group_thread_stop(host.thread);
    cr_expect_eq(ended(1), 4);
}

CASE(a_group_that_has_ended_says_why)
{
    char why[QN_GROUP_WHY_MAX];
    struct qn_group_status st = {.phase = QN_GROUP_MEETING};
    group_world_start(&w, 0);
    struct group_world_report r = group_world_report(&w, 0);
    while (r.status.phase != QN_GROUP_SERVING) {
        r = group_world_report(&w, 0);
    }
    w.opts.version = 2;
    begin(&(struct qn_group_thread_opts){0});
    while (st.phase != QN_GROUP_ENDED) {
        cr_assert_eq(qn_group_thread_status(host.thread, &st, why), QN_OK);
    }
    cr_expect_eq(st.err, QN_EINVAL);
    cr_expect_neq(why[0], '\0');
    cr_expect_eq(ask(1, LONG), QN_OK);
    while (ended(1) < 1) {
        sched_yield();
    }
    cr_expect_eq(host.last, QN_EINVAL);
    qn_group_thread_stop(host.thread);
}

CASE(a_child_of_fork_has_no_thread)
{
    int status;
    begin(&(struct qn_group_thread_opts){0});
    pid_t pid = fork();
    if (pid == 0) {
        struct qn_group_status st;
        int wrong = ask(1, LONG) != QN_EPERM;
        wrong += qn_group_thread_barrier(host.thread, LONG, on_done, &host) !=
                 QN_EPERM;
        wrong +=
            qn_group_thread_change(host.thread, &(struct qn_group_change){0},
                                   LONG, on_done, &host) != QN_EPERM;
        wrong += qn_group_thread_status(host.thread, &st, NULL) != QN_EPERM;
        qn_group_thread_stop(host.thread);
        _exit(wrong);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect_eq(status, 0);
    qn_group_thread_stop(host.thread);
}

CASE(what_cannot_be_joined_has_no_thread)
{
    struct qn_group_opts o = w.opts;
    const struct qn_group_thread_opts t = {.group = &o};
    struct qn_group_thread *none_made = NULL;
    const int descriptors = open_descriptors();
    o.members = 0;
    cr_expect_eq(qn_group_thread_start(&none_made, &t), QN_EINVAL);
    cr_expect_null(none_made);
    cr_expect_eq(open_descriptors(), descriptors);
    qn_group_thread_stop(NULL);
}
