/*
 * A group is a guest in its process and in its thread: what the host has set
 * stays, and what ends with a thread ends the member.
 */
#include "paxos/group/group.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/rendezvous/rendezvous.h"
#include "paxos/group/group_internal.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"
#include "tests/unit/paxos/group/group_world.h"

#define LONG ((uint64_t)60 * 1000000000)

static struct group_world w;

static void init(void)
{
    group_world_begin(&w, 1);
}

static void fini(void)
{
    group_world_end(&w);
}

#define CASE(name, ...)                                                        \
    Test(group_guest, name, .init = init, .fini = fini, .timeout = 100,        \
         ##__VA_ARGS__)

/* ---- a host with one group or two ---------------------------------------- */

struct host {
    struct qn_group *group;
    uint64_t applied;
    int lines;
    void (*inside)(struct host *); /* of apply */
    void (*when_told)(struct host *);
    int told, err;
};

static int on_apply(void *ctx, const struct qn_group_command *c,
                    uint64_t *result)
{
    struct host *h = ctx;
    (void)c;
    h->applied++;
    if (h->inside != NULL) {
        h->inside(h);
    }
    *result = h->applied;
    return QN_OK;
}

static int on_begin(void *ctx)
{
    (void)ctx;
    return QN_OK;
}

static int on_next(void *ctx, void *bytes, size_t cap, size_t *len)
{
    (void)ctx;
    (void)bytes;
    (void)cap;
    (void)len;
    return QN_ENOENT;
}

static void on_end(void *ctx)
{
    (void)ctx;
}

static int on_read(void *ctx, const void *bytes, size_t len)
{
    (void)ctx;
    (void)bytes;
    (void)len;
    return QN_OK;
}

static void on_done(void *ctx, int err, uint64_t result)
{
    struct host *h = ctx;
    (void)result;
    h->told++;
    h->err = err;
    if (h->when_told != NULL) {
        h->when_told(h);
    }
}

static void count_line(void *ctx, enum qn_log_level level, const char *line)
{
    struct host *h = ctx;
    (void)level;
    (void)line;
    h->lines++;
}

static int host_join(struct host *h, const char *name)
{
    struct qn_group_opts o = w.opts;
    o.name = name;
    o.log = (struct qn_log_sink){count_line, h};
    o.service = (struct qn_group_service){.apply = on_apply,
                                          .begin = on_begin,
                                          .next = on_next,
                                          .end = on_end,
                                          .read = on_read,
                                          .finish = on_begin,
                                          .install = on_end,
                                          .abandon = on_end,
                                          .ctx = h};
    return qn_group_join(&h->group, &o);
}

/* @return QN_OK when it serves; else what a turn has said. */
static int host_serve(struct host *h)
{
    struct qn_group_status st = {.phase = QN_GROUP_MEETING};
    int said = 0;
    while (st.phase != QN_GROUP_SERVING && said >= 0) {
        said = qn_group_turn(h->group);
        qn_group_status(h->group, &st);
    }
    return said >= 0 ? QN_OK : said;
}

static void host_propose(struct host *h)
{
    const int before = h->told;
    cr_assert_eq(qn_group_propose(h->group, "abc", 3, LONG, on_done, h), QN_OK);
    while (h->told == before) {
        cr_assert_geq(qn_group_turn(h->group), 0);
    }
    cr_expect_eq(h->err, QN_OK);
}

/* ---- the process --------------------------------------------------------- */

/* What the process does with each signal, in words. */
struct signals {
    uintptr_t handler[NSIG];
    uint64_t flags[NSIG];
    uint64_t masked[NSIG]; /* during the handler; [0]: by this thread */
};

static uint64_t mask_of(const sigset_t *set)
{
    uint64_t mask = 0;
    for (int i = 1; i < NSIG; i++) {
        mask |= (uint64_t)(sigismember(set, i) == 1) << (i - 1);
    }
    return mask;
}

static void look_at_signals(struct signals *s)
{
    sigset_t blocked;
    memset(s, 0, sizeof *s);
    for (int i = 1; i < NSIG; i++) {
        struct sigaction a;
        if (sigaction(i, NULL, &a) == 0) {
            s->handler[i] = (uintptr_t)a.sa_handler;
            s->flags[i] = (uint64_t)a.sa_flags;
            s->masked[i] = mask_of(&a.sa_mask);
        }
    }
    cr_assert_eq(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
    s->masked[0] = mask_of(&blocked);
}

static void on_signal(int number)
{
    (void)number;
}

CASE(no_signal_is_handled_and_none_is_blocked)
{
    static struct signals before, after;
    const struct sigaction own = {.sa_handler = on_signal,
                                  .sa_flags = SA_RESTART};
    struct host h = {0};
    cr_assert_eq(sigaction(SIGCHLD, &own, NULL), 0);
    cr_assert_eq(sigaction(SIGALRM, &own, NULL), 0);
    look_at_signals(&before);
    cr_assert_eq(host_join(&h, w.opts.name), QN_OK);
    cr_assert_eq(host_serve(&h), QN_OK);
    host_propose(&h);
    look_at_signals(&after);
    cr_expect_eq(memcmp(&before, &after, sizeof before), 0, "while it serves");
    qn_group_leave(h.group);
    look_at_signals(&after);
    cr_expect_eq(memcmp(&before, &after, sizeof before), 0, "afterwards");
}

static void say_and_exit(void *ctx, const char *line)
{
    const struct host *h = ctx;
    _exit(h->applied == 1 && strstr(line, "assertion failed: ") != NULL ? 7
                                                                        : 8);
}

static void turn_inside(struct host *h)
{
    (void)qn_group_turn(h->group);
}

CASE(a_failed_assertion_is_told_to_the_hook_of_its_group, .exit_code = 7)
{
    char other[256];
    struct host h[2] = {{.inside = turn_inside}, {0}};
    snprintf(other, sizeof other, "%s-2", w.opts.name);
    cr_assert_eq(host_join(&h[1], other), QN_OK);
    cr_assert_eq(host_serve(&h[1]), QN_OK);
    unlink(other);
    w.opts.failed = (struct qn_assert_hook){say_and_exit, &h[0]};
    cr_assert_eq(host_join(&h[0], w.opts.name), QN_OK);
    cr_assert_eq(host_serve(&h[0]), QN_OK);
    const struct qn_assert_hook none = qn_assert_hook_set(w.opts.failed);
    cr_assert_null(none.fn, "only inside of its calls");
    (void)qn_assert_hook_set(none);
    host_propose(&h[1]); /* not the one whose hook it is */
    host_propose(&h[0]);
}

/* Of one of two groups: its memory is asked for inside of its calls only. */
struct looker {
    struct qn_alloc alloc;
    const struct host *own; /* whose hook is to be set; NULL: it looks not */
    int looks, wrong;
};

static void *look_and_resize(void *ctx, void *p, size_t bytes)
{
    struct looker *l = ctx;
    if (l->own != NULL) {
        const struct qn_assert_hook none = {0};
        const struct qn_assert_hook set = qn_assert_hook_set(none);
        (void)qn_assert_hook_set(set);
        l->looks++;
        l->wrong += set.ctx != l->own;
    }
    return qn_alloc_malloc.resize(NULL, p, bytes);
}

static const uint8_t many[1500]; /* of a command: no pool keeps its block */
static struct host outer, inner;

static void propose_many(struct host *h, qn_group_done *done)
{
    cr_assert_eq(qn_group_propose(h->group, many, sizeof many, LONG, done, h),
                 QN_OK);
}

/* Inside of both. */
static void inner_done(void *ctx, int err, uint64_t result)
{
    on_done(ctx, err, result);
    propose_many(&outer, on_done);
}

static void outer_done(void *ctx, int err, uint64_t result)
{
    on_done(ctx, err, result);
    propose_many(&outer, on_done);
    propose_many(&inner, inner_done);
    while (inner.told == 0) {
        cr_assert_geq(qn_group_turn(inner.group), 0);
    }
}

CASE(each_of_two_groups_has_its_hook_inside_of_the_other_one)
{
    char other[256];
    struct host *h[2] = {&outer, &inner};
    struct looker l[2];
    snprintf(other, sizeof other, "%s-2", w.opts.name);
    for (int i = 0; i < 2; i++) {
        *h[i] = (struct host){0};
        l[i] = (struct looker){.alloc = {look_and_resize, &l[i]}};
        w.opts.alloc = &l[i].alloc;
        w.opts.failed = (struct qn_assert_hook){say_and_exit, h[i]};
        cr_assert_eq(host_join(h[i], i == 0 ? w.opts.name : other), QN_OK);
        cr_assert_eq(host_serve(h[i]), QN_OK);
        l[i].own = h[i];
    }
    unlink(other);
    propose_many(&outer, outer_done);
    while (outer.told < 3) {
        cr_assert_geq(qn_group_turn(outer.group), 0);
    }
    for (int i = 0; i < 2; i++) {
        cr_expect_geq(l[i].looks, i == 0 ? 3 : 1);
        cr_expect_eq(l[i].wrong, 0);
        qn_group_leave(h[i]->group);
    }
}

CASE(one_thread_is_a_member_of_two_groups)
{
    char other[256];
    struct host h[2] = {{0}, {0}};
    const int before = open_descriptors();
    snprintf(other, sizeof other, "%s-2", w.opts.name);
    cr_assert_eq(host_join(&h[0], w.opts.name), QN_OK);
    cr_assert_eq(host_join(&h[1], other), QN_OK);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(host_serve(&h[i]), QN_OK);
    }
    for (int k = 0; k < 10; k++) {
        host_propose(&h[0]);
        host_propose(&h[1]);
    }
    cr_expect_eq(h[0].applied, 10);
    cr_expect_eq(h[1].applied, 10);
    qn_group_leave(h[0].group);
    host_propose(&h[1]);
    qn_group_leave(h[1].group);
    cr_expect_eq(open_descriptors(), before);
    unlink(other);
}

CASE(by_the_list_of_robust_mutexes_it_is_a_member_of_one)
{
    char other[256];
    struct host h[2] = {{0}, {0}};
    snprintf(other, sizeof other, "%s-2", w.opts.name);
    w.opts.robust_list = true;
    cr_assert_eq(host_join(&h[0], w.opts.name), QN_OK);
    cr_assert_eq(host_serve(&h[0]), QN_OK);
    cr_assert_eq(host_join(&h[1], other), QN_OK);
    cr_expect_eq(host_serve(&h[1]), QN_EBUSY);
    qn_group_leave(h[1].group);
    qn_group_leave(h[0].group);
    cr_assert_eq(host_join(&h[1], other), QN_OK);
    cr_expect_eq(host_serve(&h[1]), QN_OK, "the list was given back");
    qn_group_leave(h[1].group);
    unlink(other);
}

/* ---- the core ------------------------------------------------------------ */

/* Whatever it does, and whatever it was asked, ends the rest of its time. */
CASE(a_member_with_its_core_rests_only_when_its_time_is_over)
{
    struct host h = {0};
    for (int i = 0; i < 2; i++) {
        const bool long_time = i == 0;
        w.opts.spin_ns = long_time ? LONG * 1000 : 1;
        cr_assert_eq(host_join(&h, w.opts.name), QN_OK);
        cr_assert_eq(host_serve(&h), QN_OK);
        host_propose(&h);
        int turns = 0, said = QN_GROUP_AGAIN;
        while (said == QN_GROUP_AGAIN && turns < 10000) {
            said = qn_group_turn(h.group);
            turns++;
        }
        cr_expect_eq(said, long_time ? QN_GROUP_AGAIN : QN_GROUP_ARMED);
        qn_group_leave(h.group);
    }
}

CASE(a_member_that_shares_its_core_yields_it_before_it_rests)
{
    enum { YIELDS = 100 };
    struct host h = {0};
    for (uint32_t yields = 0; yields <= YIELDS; yields += YIELDS) {
        w.opts.yields = yields;
        cr_assert_eq(host_join(&h, w.opts.name), QN_OK);
        cr_assert_eq(host_serve(&h), QN_OK);
        host_propose(&h);
        uint32_t again = 0;
        while (qn_group_turn(h.group) == QN_GROUP_AGAIN) {
            again++;
        }
        cr_expect_eq(again >= YIELDS, yields == YIELDS, "%u", again);
        qn_group_leave(h.group);
    }
}

/* ---- memory -------------------------------------------------------------- */

CASE(private_memory_is_the_callers_and_is_given_back)
{
    struct qn_alloc_limit all;
    struct host h = {0};
    qn_alloc_limit_init(&all, &qn_alloc_malloc, SIZE_MAX);
    w.opts.alloc = &all.alloc;
    cr_assert_eq(host_join(&h, w.opts.name), QN_OK);
    const uint64_t joined = all.blocks;
    cr_expect_gt(joined, 0);
    cr_assert_eq(host_serve(&h), QN_OK);
    host_propose(&h);
    cr_expect_gt(all.blocks, joined, "the member's, too");
    qn_group_leave(h.group);
    cr_expect_eq(all.blocks, 0);
    cr_expect_eq(all.used, 0);
}

/* As much as it has needed is enough; a byte less is not, and is said. */
CASE(a_limit_is_kept)
{
    struct qn_alloc_limit all;
    struct host h = {0};
    qn_alloc_limit_init(&all, &qn_alloc_malloc, SIZE_MAX);
    w.opts.alloc = &all.alloc;
    cr_assert_eq(host_join(&h, w.opts.name), QN_OK);
    cr_assert_eq(host_serve(&h), QN_OK);
    const size_t heads = QN_ALLOC_LIMIT_HEAD * all.blocks;
    const size_t most = all.most + heads;
    qn_group_leave(h.group);
    for (size_t limit = most; limit > 0; limit = limit / 2) {
        qn_alloc_limit_init(&all, &qn_alloc_malloc, SIZE_MAX);
        w.opts.alloc_limit = limit;
        int err = host_join(&h, w.opts.name);
        if (err == QN_OK) {
            err = host_serve(&h);
            cr_expect(err == QN_OK || qn_group_why(h.group)[0] != '\0');
            qn_group_leave(h.group);
        }
        cr_expect_eq(err, limit == most ? QN_OK : QN_ENOMEM, "%zu bytes",
                     limit);
        cr_expect_leq(all.most, limit + heads, "those of this allocator");
        cr_expect_eq(all.blocks, 0);
    }
}

/* ---- the thread ---------------------------------------------------------- */

enum how { RETURNS, EXITS, IS_CANCELLED, JUMPS, JUMPS_WHEN_TOLD, HOWS };

static struct host in_thread;

static void cancel_inside(struct host *h)
{
    pthread_cancel(pthread_self());
    pthread_testcancel();
    h->inside = NULL; /* it goes on */
}

static void jump_out(struct host *h)
{
    (void)h;
    pthread_exit(NULL);
}

/* It never leaves. */
static void *be_member(void *arg)
{
    const enum how how = *(const enum how *)arg;
    struct host *h = &in_thread;
    *h = (struct host){0};
    cr_assert_eq(host_join(h, w.opts.name), QN_OK);
    cr_assert_eq(host_serve(h), QN_OK);
    h->inside = how == IS_CANCELLED ? cancel_inside
                : how == JUMPS      ? jump_out
                                    : NULL;
    h->when_told = how == JUMPS_WHEN_TOLD ? jump_out : NULL;
    host_propose(h);
    pthread_testcancel();
    if (how == EXITS) {
        pthread_exit(NULL);
    }
    return NULL;
}

static bool serves(const struct group_world_report *r, uint64_t arg)
{
    (void)arg;
    return r->status.phase == QN_GROUP_SERVING;
}

static bool has_count(const struct group_world_report *r, uint64_t n)
{
    return (uint64_t)__builtin_popcountll(r->status.members) == n;
}

/* Two other members are idle, and see at once that the thread has ended. */
static void thread_ends(enum how how)
{
    pthread_t t;
    void *out;
    const int before = open_descriptors();
    w.opts.members = 3;
    for (uint32_t i = 0; i < 2; i++) {
        if (w.process[i].pid == 0) {
            group_world_start(&w, i);
        }
    }
    cr_assert_eq(pthread_create(&t, NULL, be_member, &how), 0);
    cr_assert_eq(pthread_join(t, &out), 0);
    cr_expect_eq(out == PTHREAD_CANCELED, how == IS_CANCELLED);
    for (uint32_t i = 0; i < 2; i++) {
        group_world_wait(&w, i, serves, 0);
        group_world_wait(&w, i, has_count, 2);
    }
    cr_expect_eq(qn_group_turn(in_thread.group), QN_EABORTED);
    cr_expect_eq(
        qn_group_propose(in_thread.group, "x", 1, LONG, on_done, &in_thread),
        QN_EABORTED);
    qn_group_leave(in_thread.group);
    if (how < JUMPS) {
        cr_expect_eq(in_thread.told, 1);
        cr_expect_eq(in_thread.err, QN_OK);
        cr_expect_leq(open_descriptors(), before + 2, "those of the world");
    }
}

CASE(a_thread_that_ends_without_leaving_has_ended_as_a_member)
{
    thread_ends(RETURNS);
    do {
        thread_ends(EXITS);
    } while (in_thread.lines == 0); /* until a snapshot is told of */
    thread_ends(IS_CANCELLED);      /* not inside of apply */
}

CASE(a_thread_that_ends_in_a_callback_has_ended_as_a_member)
{
    thread_ends(JUMPS);
}

/* Where it might have proposed. */
CASE(a_thread_that_ends_when_it_is_told_has_ended_as_a_member)
{
    thread_ends(JUMPS_WHEN_TOLD);
}

CASE(a_thread_that_ends_has_ended_also_by_the_list)
{
    w.opts.robust_list = true;
    thread_ends(RETURNS);
    thread_ends(EXITS);
}

enum { KEYS = 1 << 11 }; /* more than there are */

static int free_keys(void)
{
    static pthread_key_t made[KEYS];
    int n = 0;
    while (n < KEYS && pthread_key_create(&made[n], NULL) == 0) {
        n++;
    }
    for (int i = 0; i < n; i++) {
        cr_assert_eq(pthread_key_delete(made[i]), 0);
    }
    return n;
}

CASE(the_key_of_threads_is_given_back_with_the_last_group)
{
    char other[256];
    struct host h[2] = {{0}, {0}};
    const int before = free_keys();
    snprintf(other, sizeof other, "%s-2", w.opts.name);
    cr_assert_eq(host_join(&h[0], w.opts.name), QN_OK);
    cr_assert_eq(host_join(&h[1], other), QN_OK);
    cr_expect_eq(free_keys(), before - 1, "one for both");
    cr_assert_eq(host_serve(&h[0]), QN_OK);
    qn_group_leave(h[0].group);
    cr_expect_eq(free_keys(), before - 1);
    qn_group_leave(h[1].group);
    cr_expect_eq(free_keys(), before);
    unlink(other);
}

/* It is no member of its parent's group, whatever its thread does. */
static void *fork_and_end(void *arg)
{
    pid_t *pid = arg;
    *pid = fork();
    if (*pid == 0) {
#ifdef __SANITIZE_THREAD__
        _exit(0); /* it has a thread of its own, which would go on */
#endif
        pthread_exit(NULL); /* the last thread: the process ends with 0 */
    }
    return NULL;
}

CASE(the_end_of_a_childs_thread_is_not_the_members)
{
    struct host h = {0};
    pid_t pid = -1;
    int status;
    cr_assert_eq(host_join(&h, w.opts.name), QN_OK);
    cr_assert_eq(host_serve(&h), QN_OK);
    (void)fork_and_end(&pid);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect_eq(status, 0);
    host_propose(&h);
    qn_group_leave(h.group);
}

/* ---- its children -------------------------------------------------------- */

/* The founder waits for one more. A guest that says nonsense is turned away,
 * and would not see that if the child kept the connection open. */
CASE(a_connection_ends_though_a_child_has_it)
{
    struct qn_rendezvous *r;
    qn_node_t seat = 0;
    int fd = -1;
    char byte = 'x';
    w.opts.members = 2;
    group_world_found(&w, 0);
    const int before = group_world_descriptors(&w, 0);
    cr_assert_eq(qn_rendezvous_open(&r, w.opts.name), QN_OK);
    while (qn_rendezvous_enter(r, 0, &seat, &fd) == QN_EAGAIN) {
        sched_yield(); /* it has no seat yet */
    }
    cr_assert_geq(fd, 0);
    while (group_world_descriptors(&w, 0) == before) {
        sched_yield(); /* it has not been accepted */
    }
    cr_assert_eq(group_world_fork(&w, 0), 0);
    cr_assert_eq(send(fd, &byte, 1, MSG_NOSIGNAL), 1);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    cr_assert_eq(poll(&p, 1, -1), 1);
    cr_expect_leq(recv(fd, &byte, 1, 0), 0, "its end");
    close(fd);
    qn_rendezvous_close(r);
}
