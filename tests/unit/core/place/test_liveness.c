/*
 * Incarnations, with real processes that are killed. Nothing waits for a time:
 * a parent waits for the end of its child, or looks until what must come has
 * come.
 */
#include "core/place/liveness.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/err.h"
#include "core/place/hold.h"
#include "tests/support/test.h"

enum { NODES = 3, NODE = 1 };

static struct qn_commons *make(bool shared, int *fd)
{
    struct qn_commons *c = NULL;
    cr_assert_eq(qn_commons_create(&c, NODES, 0, shared, fd), QN_OK);
    return c;
}

static void drop(struct qn_commons *c, int fd)
{
    qn_commons_destroy(c);
    if (fd >= 0) {
        close(fd);
    }
}

/* In a child: live as NODE. */
static struct qn_commons *live(int fd, uint64_t inc)
{
    struct qn_commons *c;
    if (qn_commons_map(&c, fd, NODES, 0) != QN_OK ||
        qn_commons_own(c, NODE) != QN_OK ||
        qn_liveness_begin(c, NODE, inc) != QN_OK) {
        _exit(1);
    }
    return c;
}

/* A child that lives as NODE and then does `then`; its pid once it lives. */
static pid_t child(const struct qn_commons *c, int fd, uint64_t inc,
                   void (*then)(struct qn_commons *, int fd))
{
    pid_t pid = fork();
    if (pid == 0) {
        struct qn_commons *mine = live(fd, inc);
        then(mine, fd);
        _exit(0);
    }
    cr_assert_gt(pid, 0);
    while (qn_liveness_check(c, NODE, inc) == QN_LIVENESS_NONE &&
           waitpid(pid, NULL, WNOHANG) == 0) {
        sched_yield();
    }
    return pid;
}

static void stay(struct qn_commons *c, int fd)
{
    (void)c;
    (void)fd;
    for (;;) {
        pause();
    }
}

static void leave(struct qn_commons *c, int fd)
{
    (void)c;
    (void)fd;
}

static void kill_and_wait(pid_t pid)
{
    cr_assert_eq(kill(pid, SIGKILL), 0);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

Test(liveness, one_that_never_began_is_none)
{
    for (int shared = 0; shared < 2; shared++) {
        int fd;
        struct qn_commons *c = make(shared, &fd);
        cr_assert_eq(qn_liveness_check(c, 0, 1), QN_LIVENESS_NONE);
        cr_assert_eq(qn_liveness_check(c, NODES - 1, UINT64_MAX),
                     QN_LIVENESS_NONE);
        drop(c, fd);
    }
}

Test(liveness, refuses_what_is_no_life)
{
    int fd;
    struct qn_commons *c = make(false, &fd);
    cr_assert_eq(qn_liveness_begin(c, NODES, 1), QN_EINVAL);
    cr_assert_eq(qn_liveness_begin(c, 0, 0), QN_EINVAL);
    cr_assert_eq(qn_liveness_begin(c, 0, QN_COMMONS_LIVES_MAX), QN_EINVAL);
    cr_assert_eq(qn_liveness_check(c, 0, 1), QN_LIVENESS_NONE);
    cr_assert_eq(qn_liveness_begin(c, 0, QN_COMMONS_LIVES_MAX - 1), QN_OK);
    cr_assert_eq(qn_liveness_check(c, 0, QN_COMMONS_LIVES_MAX - 1),
                 QN_LIVENESS_ALIVE);
    drop(c, fd);
}

Test(liveness, lasts_until_the_process_is_killed)
{
    int fd;
    struct qn_commons *c = make(true, &fd);
    pid_t pid = child(c, fd, 5, stay);
    cr_assert_eq(qn_liveness_check(c, NODE, 5), QN_LIVENESS_ALIVE);
    cr_assert_eq(qn_liveness_check(c, NODE, 4), QN_LIVENESS_DEAD,
                 "an earlier one");
    cr_assert_eq(qn_liveness_check(c, NODE, 6), QN_LIVENESS_NONE,
                 "a later one");
    cr_assert_eq(qn_liveness_check(c, 0, 5), QN_LIVENESS_NONE, "another node");
    cr_assert_eq(kill(pid, SIGSTOP), 0);
    cr_assert_eq(waitpid(pid, NULL, WUNTRACED), pid);
    cr_assert_eq(qn_liveness_check(c, NODE, 5), QN_LIVENESS_ALIVE,
                 "only stopped");
    kill_and_wait(pid);
    cr_assert_eq(qn_liveness_check(c, NODE, 5), QN_LIVENESS_DEAD);
    cr_assert_eq(qn_liveness_check(c, NODE, 6), QN_LIVENESS_NONE,
                 "not begun by that");
    drop(c, fd);
}

/* The mark alone, without any news of the process by another way. */
Test(liveness, its_end_is_seen_without_waiting_for_the_process, .timeout = 60)
{
    int fd;
    struct qn_commons *c = make(true, &fd);
    pid_t pid = child(c, fd, 5, stay);
    cr_assert_eq(kill(pid, SIGKILL), 0);
    while (qn_liveness_check(c, NODE, 5) != QN_LIVENESS_DEAD) {
        sched_yield();
    }
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
    drop(c, fd);
}

static void crash(struct qn_commons *c, int fd)
{
    (void)c;
    (void)fd;
    (void)signal(SIGABRT, SIG_DFL);
    abort();
}

static void become_another(struct qn_commons *c, int fd)
{
    (void)c;
    (void)fd;
    execl("/bin/sleep", "sleep", "1000", (char *)NULL);
}

Test(liveness, every_end_is_one)
{
    void (*const ends[])(struct qn_commons *, int) = {leave, crash};
    for (uint64_t i = 0; i < 2; i++) {
        int fd;
        struct qn_commons *c = make(true, &fd);
        pid_t pid = child(c, fd, i + 1, ends[i]);
        waitpid(pid, NULL, 0);
        cr_assert_eq(qn_liveness_check(c, NODE, i + 1), QN_LIVENESS_DEAD,
                     "end %d", (int)i);
        drop(c, fd);
    }
}

static void leave_third(struct qn_commons *c, int fd)
{
    (void)fd;
    qn_liveness_leave(c, NODE, 3);
}

Test(liveness, that_it_left_is_seen_until_the_next_begins)
{
    int fd;
    struct qn_commons *c = make(true, &fd);
    waitpid(child(c, fd, 1, leave), NULL, 0);
    cr_assert_not(qn_liveness_left(c, NODE, 1), "it has only ended");
    pid_t pid = child(c, fd, 2, stay);
    cr_assert_not(qn_liveness_left(c, NODE, 2));
    kill_and_wait(pid);
    cr_assert_not(qn_liveness_left(c, NODE, 2), "the kernel's mark is another");
    waitpid(child(c, fd, 3, leave_third), NULL, 0);
    cr_assert(qn_liveness_left(c, NODE, 3));
    cr_assert_eq(qn_liveness_check(c, NODE, 3), QN_LIVENESS_DEAD);
    cr_assert_not(qn_liveness_left(c, NODE, 2), "another liveness");
    kill_and_wait(child(c, fd, 4, stay));
    cr_assert_not(qn_liveness_left(c, NODE, 3), "a later one has begun");
    drop(c, fd);
}

Test(liveness, the_present_one_is_known_without_its_number)
{
    int fd;
    uint64_t inc = 1;
    pid_t tid = -1;
    struct qn_commons *c = make(true, &fd);
    cr_assert_eq(qn_liveness_incarnation(c, NODE, &inc, &tid),
                 QN_LIVENESS_NONE);
    cr_assert_eq(inc, 0);
    cr_assert_eq(tid, 0);
    pid_t pid = child(c, fd, 7, stay);
    cr_assert_eq(qn_liveness_incarnation(c, NODE, &inc, &tid),
                 QN_LIVENESS_ALIVE);
    cr_assert_eq(inc, 7);
    cr_assert_eq(tid, pid);
    kill_and_wait(pid);
    cr_assert_eq(qn_liveness_incarnation(c, NODE, &inc, &tid),
                 QN_LIVENESS_DEAD);
    cr_assert_eq(inc, 7);
    cr_assert_eq(tid, 0);
    drop(c, fd);
}

Test(liveness, a_process_that_becomes_another_program_has_ended, .timeout = 60)
{
    int fd;
    struct qn_commons *c = make(true, &fd);
    pid_t pid = child(c, fd, 1, become_another);
    while (qn_liveness_check(c, NODE, 1) != QN_LIVENESS_DEAD) {
        sched_yield();
    }
    cr_assert_eq(waitpid(pid, NULL, WNOHANG), 0, "it runs on");
    kill_and_wait(pid);
    drop(c, fd);
}

Test(liveness, a_later_one_ends_all_earlier_ones)
{
    int fd;
    struct qn_commons *c = make(true, &fd);
    kill_and_wait(child(c, fd, 5, stay));
    pid_t pid = child(c, fd, 9, stay);
    for (uint64_t inc = 1; inc < 9; inc++) {
        cr_assert_eq(qn_liveness_check(c, NODE, inc), QN_LIVENESS_DEAD);
    }
    cr_assert_eq(qn_liveness_check(c, NODE, 9), QN_LIVENESS_ALIVE);
    kill_and_wait(pid);
    drop(c, fd);
}

/* Whatever a wild predecessor left in its pages. */
Test(liveness, begins_over_anything)
{
    const uint64_t left[] = {0, UINT64_MAX, 0x5555555555555555u};
    int fd;
    struct qn_commons *c = make(true, &fd);
    cr_assert_eq(qn_commons_own(c, NODE), QN_OK);
    uint64_t *pages = (uint64_t *)qn_commons_record(c, NODE) - 8;
    for (size_t i = 0; i < 3; i++) {
        for (size_t w = 0; w < 8; w++) {
            pages[w] = left[i];
        }
        pid_t pid = fork();
        if (pid == 0) {
            live(fd, 5);
            _exit(qn_liveness_check(c, NODE, 5) == QN_LIVENESS_ALIVE ? 0 : 1);
        }
        int status;
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_assert_eq(status, 0);
        cr_assert_eq(qn_liveness_check(c, NODE, 5), QN_LIVENESS_DEAD);
    }
    drop(c, fd);
}

/* -------------------------------------------- fork, threads, the C library */

static void fork_and_stay(struct qn_commons *c, int fd)
{
    pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    if (waitpid(pid, NULL, 0) != pid) {
        _exit(1);
    }
    qn_store(qn_commons_read_index(c), 1, QN_SEQ_CST);
    stay(c, fd);
}

Test(liveness, the_end_of_a_child_of_the_process_is_not_its_own, .timeout = 60)
{
    int fd;
    struct qn_commons *c = make(true, &fd);
    pid_t pid = child(c, fd, 5, fork_and_stay);
    while (qn_load(qn_commons_read_index(c), QN_SEQ_CST) == 0) {
        sched_yield();
    }
    cr_assert_eq(qn_liveness_check(c, NODE, 5), QN_LIVENESS_ALIVE);
    kill_and_wait(pid);
    cr_assert_eq(qn_liveness_check(c, NODE, 5), QN_LIVENESS_DEAD);
    drop(c, fd);
}

/* As a supervisor that holds a liveness itself would start its children. */
static void fork_successor(struct qn_commons *c, int fd)
{
    (void)fd;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(qn_liveness_begin(c, NODE, 6) == QN_OK ? 0 : 1);
    }
    int status;
    _exit(waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 2);
}

Test(liveness, a_child_of_the_process_can_begin_one)
{
    int fd;
    int status;
    struct qn_commons *c = make(true, &fd);
    pid_t pid = fork();
    if (pid == 0) {
        fork_successor(live(fd, 5), fd);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0);
    cr_assert_eq(qn_liveness_check(c, NODE, 6), QN_LIVENESS_DEAD);
    drop(c, fd);
}

static void *nothing(void *arg)
{
    return arg;
}

static void thread_and_stay(struct qn_commons *c, int fd)
{
    pthread_t t;
    if (pthread_create(&t, NULL, nothing, NULL) != 0 ||
        pthread_join(t, NULL) != 0) {
        _exit(1);
    }
    qn_store(qn_commons_read_index(c), 1, QN_SEQ_CST);
    stay(c, fd);
}

Test(liveness, the_end_of_another_thread_is_not_its_own, .timeout = 60)
{
    int fd;
    struct qn_commons *c = make(true, &fd);
    pid_t pid = child(c, fd, 5, thread_and_stay);
    while (qn_load(qn_commons_read_index(c), QN_SEQ_CST) == 0) {
        sched_yield();
    }
    cr_assert_eq(qn_liveness_check(c, NODE, 5), QN_LIVENESS_ALIVE);
    kill_and_wait(pid);
    drop(c, fd);
}

/* A robust mutex of another thread works as ever; this is what the thread that
 * lives gives up. */
static pthread_mutex_t robust;

static void *lock_and_end(void *arg)
{
    (void)pthread_mutex_lock(&robust);
    return arg;
}

static void use_robust(struct qn_commons *c, int fd)
{
    pthread_mutexattr_t attr;
    pthread_t t;
    (void)c;
    (void)fd;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &attr);
    if (pthread_create(&t, NULL, lock_and_end, NULL) != 0 ||
        pthread_join(t, NULL) != 0) {
        _exit(1);
    }
    _exit(pthread_mutex_lock(&robust) == EOWNERDEAD ? 0 : 2);
}

Test(liveness, robust_mutexes_of_other_threads_work)
{
    int fd;
    int status;
    struct qn_commons *c = make(true, &fd);
    pid_t pid = fork();
    if (pid == 0) {
        use_robust(live(fd, 5), fd);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0);
    drop(c, fd);
}

/* ------------------------------------------------------------- by its own */

static void begin_twice(struct qn_commons *c, int fd)
{
    (void)fd;
    int first = qn_liveness_begin(c, NODE, 6);
    bool untouched = qn_liveness_check(c, NODE, 5) == QN_LIVENESS_ALIVE;
    qn_liveness_end(c, NODE, 5);
    bool dead = qn_liveness_check(c, NODE, 5) == QN_LIVENESS_DEAD;
    int second = qn_liveness_begin(c, NODE, 6);
    qn_liveness_end(c, NODE, 5); /* not the present one */
    bool alive = qn_liveness_check(c, NODE, 6) == QN_LIVENESS_ALIVE;
    _exit(first == QN_EBUSY && untouched && dead && second == QN_OK && alive
              ? 0
              : 1);
}

Test(liveness, a_thread_has_one_at_a_time)
{
    int fd;
    int status;
    struct qn_commons *c = make(true, &fd);
    pid_t pid = fork();
    if (pid == 0) {
        begin_twice(live(fd, 5), fd);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0);
    cr_assert_eq(qn_liveness_check(c, NODE, 6), QN_LIVENESS_DEAD,
                 "the second is registered, too");
    drop(c, fd);
}

#define OTHER (NODE + 1)

static void *live_as_the_other(void *arg)
{
    int fd = *(int *)arg;
    static struct qn_commons *c;
    if (qn_commons_map(&c, fd, NODES, 0) != QN_OK ||
        qn_commons_own(c, OTHER) != QN_OK ||
        qn_liveness_begin(c, OTHER, 7) != QN_OK) {
        _exit(1);
    }
    return c;
}

/* Of a thread that has ended, as a program may that joins it. */
static void end_the_life_of_a_thread(struct qn_commons *c, int fd)
{
    pthread_t t;
    void *its;
    if (pthread_create(&t, NULL, live_as_the_other, &fd) != 0 ||
        pthread_join(t, &its) != 0) {
        _exit(1);
    }
    qn_liveness_end(its, OTHER, 7);
    qn_commons_destroy(its);
    qn_store(qn_commons_read_index(c), 1, QN_SEQ_CST);
    stay(c, fd);
}

Test(liveness, a_thread_that_ends_the_life_of_a_dead_one_goes_on, .timeout = 60)
{
    int fd;
    struct qn_commons *c = make(true, &fd);
    pid_t pid = child(c, fd, 5, end_the_life_of_a_thread);
    while (qn_load(qn_commons_read_index(c), QN_SEQ_CST) == 0) {
        sched_yield();
    }
    cr_assert_eq(qn_liveness_check(c, NODE, 5), QN_LIVENESS_ALIVE);
    kill_and_wait(pid);
    cr_assert_eq(qn_liveness_check(c, NODE, 5), QN_LIVENESS_DEAD,
                 "the kernel marks it as ever");
    drop(c, fd);
}

static void *live_as_this_one(void *arg)
{
    return live(*(int *)arg, 9);
}

/* By another thread, over a mapping of its own. */
static void end_what_was_superseded(struct qn_commons *c, int fd)
{
    pthread_t t;
    if (pthread_create(&t, NULL, live_as_this_one, &fd) != 0 ||
        pthread_join(t, NULL) != 0) {
        _exit(1);
    }
    qn_liveness_end(c, NODE, 5);
    _exit(qn_liveness_begin(c, NODE, 10) == QN_OK ? 0 : 1);
}

Test(liveness, a_thread_may_live_again_after_it_was_superseded, .timeout = 60)
{
    int fd;
    int status;
    struct qn_commons *c = make(true, &fd);
    pid_t pid = child(c, fd, 5, end_what_was_superseded);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0);
    drop(c, fd);
}

Test(liveness, in_private_memory_one_thread_lives_as_all)
{
    int fd;
    struct qn_commons *c = make(false, &fd);
    for (qn_node_t i = 0; i < NODES; i++) {
        cr_assert_eq(qn_liveness_begin(c, i, 5 + i), QN_OK);
    }
    qn_liveness_end(c, 1, 5); /* an earlier one */
    for (qn_node_t i = 0; i < NODES; i++) {
        cr_assert_eq(qn_liveness_check(c, i, 5 + i), QN_LIVENESS_ALIVE);
    }
    qn_liveness_end(c, 1, 6);
    cr_assert_eq(qn_liveness_check(c, 0, 5), QN_LIVENESS_ALIVE);
    cr_assert_eq(qn_liveness_check(c, 1, 6), QN_LIVENESS_DEAD);
    cr_assert_eq(qn_liveness_begin(c, 1, 7), QN_OK);
    cr_assert_eq(qn_liveness_check(c, 1, 6), QN_LIVENESS_DEAD);
    cr_assert_eq(qn_liveness_check(c, 1, 7), QN_LIVENESS_ALIVE);
    drop(c, fd);
}

/* ---- without the list of the thread -------------------------------------- */

static struct qn_node_hold hold;

/* In a child: live as NODE with its process, having held it before. */
static struct qn_commons *live_held(int fd, uint64_t inc)
{
    struct qn_commons *c;
    if (qn_hold_take(&hold, fd, NODE, inc) != QN_OK ||
        qn_commons_map(&c, fd, NODES, 0) != QN_OK ||
        qn_commons_own(c, NODE) != QN_OK ||
        qn_liveness_begin_held(c, NODE, inc) != QN_OK) {
        _exit(1);
    }
    return c;
}

static pid_t held_child(const struct qn_commons *c, int fd, uint64_t inc)
{
    pid_t pid = fork();
    if (pid == 0) {
        stay(live_held(fd, inc), fd);
    }
    cr_assert_gt(pid, 0);
    while (qn_liveness_check(c, NODE, inc) == QN_LIVENESS_NONE &&
           waitpid(pid, NULL, WNOHANG) == 0) {
        sched_yield();
    }
    return pid;
}

/* The first that looks marks it for all, also for those that only load. */
Test(liveness, one_that_is_held_ends_with_the_lock_of_its_node, .timeout = 60)
{
    int fd;
    struct qn_commons *c = make(true, &fd);
    struct qn_commons *other;
    uint64_t inc;
    pid_t tid;
    cr_assert_eq(qn_commons_map(&other, fd, NODES, 0), QN_OK);
    cr_assert_eq(qn_liveness_look(c, fd, NODE, 5), QN_LIVENESS_NONE);
    pid_t pid = held_child(c, fd, 5);
    cr_assert(qn_liveness_is_held(c, NODE, 5));
    cr_assert_not(qn_liveness_is_held(c, NODE, 4), "another one");
    cr_assert_eq(qn_liveness_look(c, fd, NODE, 5), QN_LIVENESS_ALIVE);
    cr_assert_eq(qn_liveness_look(c, fd, NODE, 4), QN_LIVENESS_DEAD);
    cr_assert_eq(qn_liveness_look(c, fd, NODE, 6), QN_LIVENESS_NONE);
    cr_assert_eq(qn_liveness_incarnation(c, NODE, &inc, &tid),
                 QN_LIVENESS_ALIVE);
    cr_assert_eq(tid, pid);
    kill_and_wait(pid);
    cr_assert_eq(qn_liveness_check(other, NODE, 5), QN_LIVENESS_ALIVE,
                 "no list says it");
    cr_assert_eq(qn_liveness_look(c, fd, NODE, 5), QN_LIVENESS_DEAD);
    cr_assert_eq(qn_liveness_check(other, NODE, 5), QN_LIVENESS_DEAD);
    cr_assert_not(qn_liveness_is_held(c, NODE, 5));
    cr_assert_not(qn_liveness_left(c, NODE, 5), "that was no leave");
    pid = held_child(c, fd, 6);
    cr_assert_eq(qn_liveness_look(c, fd, NODE, 5), QN_LIVENESS_DEAD);
    cr_assert_eq(qn_liveness_check(c, NODE, 6), QN_LIVENESS_ALIVE);
    kill_and_wait(pid);
    qn_commons_destroy(other);
    drop(c, fd);
}

/* What it marks is no longer writable here afterwards. */
Test(liveness, to_look_leaves_the_pages_of_others_read_only, .signal = SIGSEGV)
{
    int fd;
    struct qn_commons *c = make(true, &fd);
    kill_and_wait(held_child(c, fd, 5));
    cr_assert_eq(qn_liveness_look(c, fd, NODE, 5), QN_LIVENESS_DEAD);
    signal(SIGSEGV, SIG_DFL);
    ((uint64_t *)qn_commons_record(c, NODE))[-8] = 1;
}

static bool has_list(const struct robust_list_head *list)
{
    struct robust_list_head *now;
    size_t bytes;
    return syscall(SYS_get_robust_list, 0, &now, &bytes) == 0 && now == list;
}

static struct robust_list_head *list_of_thread(void)
{
    struct robust_list_head *now = NULL;
    size_t bytes;
    cr_assert_eq(syscall(SYS_get_robust_list, 0, &now, &bytes), 0);
    return now;
}

/* Several in one thread, whose list stays; it ends each by itself. */
Test(liveness, one_that_is_held_takes_no_list)
{
    int fd[2];
    struct qn_node_hold mine[2] = {{0}};
    struct qn_commons *c[2];
    struct robust_list_head *list = list_of_thread();
    for (int i = 0; i < 2; i++) {
        c[i] = make(true, &fd[i]);
        cr_assert_eq(qn_hold_take(&mine[i], fd[i], NODE, 5), QN_OK);
        cr_assert_eq(qn_commons_own(c[i], NODE), QN_OK);
        cr_assert_eq(qn_liveness_begin_held(c[i], NODES, 5), QN_EINVAL);
        cr_assert_eq(qn_liveness_begin_held(c[i], NODE, 0), QN_EINVAL);
        cr_assert_eq(qn_liveness_begin_held(c[i], NODE, 5), QN_OK);
        cr_assert(has_list(list));
        cr_assert_eq(qn_liveness_look(c[i], fd[i], NODE, 5), QN_LIVENESS_ALIVE,
                     "this process holds it");
    }
    for (int i = 0; i < 2; i++) {
        qn_liveness_end(c[i], NODE, 5);
        cr_assert_eq(qn_liveness_check(c[i], NODE, 5), QN_LIVENESS_DEAD);
        cr_assert(has_list(list));
        qn_hold_release(&mine[i]);
        drop(c[i], fd[i]);
    }
}

/* The list of the C library is there again afterwards, and is not taken while
 * there is something in it. */
Test(liveness, a_list_is_borrowed)
{
    int fd;
    struct qn_commons *c = make(true, &fd);
    struct robust_list_head *list = list_of_thread();
    pthread_mutexattr_t attr;
    pthread_mutex_t mutex;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &attr);
    cr_assert_eq(qn_commons_own(c, NODE), QN_OK);
    pthread_mutex_lock(&mutex);
    cr_assert_eq(qn_liveness_begin(c, NODE, 5), QN_EBUSY);
    cr_assert_eq(qn_liveness_check(c, NODE, 5), QN_LIVENESS_NONE);
    cr_assert(has_list(list));
    pthread_mutex_unlock(&mutex);
    cr_assert_eq(qn_liveness_begin(c, NODE, 5), QN_OK);
    cr_assert_not(has_list(list));
    qn_liveness_end(c, NODE, 5);
    cr_assert(has_list(list));
    pthread_mutex_destroy(&mutex);
    pthread_mutexattr_destroy(&attr);
    drop(c, fd);
}
