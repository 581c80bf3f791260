/*
 * Threads of one process as members of one group, each with a loop of its own;
 * alone, and with other processes. Nothing waits for a time: a test looks until
 * what must come has come.
 */
#include "paxos/group/group.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/err.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"
#include "transports/registry.h"

#define LONG ((uint64_t)60 * 1000000000)

enum { THREADS = 3, CHILDREN = 2 };

static char folder[] = "/tmp/quoin-group-XXXXXX";
static char name[64];
static struct qn_group_opts opts;

/* ---- a member in a thread ------------------------------------------------ */

enum how { STAYS, LEAVES, RETURNS, EXITS, IS_CANCELLED };

struct member {
    pthread_t thread;
    struct qn_group *group; /* of the thread, as long as it is there */
    int bell;
    uint64_t sum, cut, built; /* of the thread: the state */
    bool given;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    struct qn_group_status status;
    uint64_t to_propose, to_read; /* asked of it */
    uint64_t done, otherwise;     /* ends of proposals */
    uint64_t reads, seen;         /* barriers; the state behind the last */
    enum how how;
    int said; /* by the last turn */
};

static struct member member[THREADS];

static int on_apply(void *ctx, const struct qn_group_command *c,
                    uint64_t *result)
{
    struct member *m = ctx;
    uint8_t byte;
    memcpy(&byte, c->bytes, 1);
    m->sum += byte;
    *result = m->sum;
    return QN_OK;
}

static int on_begin(void *ctx)
{
    struct member *m = ctx;
    m->cut = m->sum;
    m->given = false;
    return QN_OK;
}

static int on_next(void *ctx, void *bytes, size_t cap, size_t *len)
{
    struct member *m = ctx;
    if (m->given) {
        return QN_ENOENT;
    }
    *len = sizeof m->cut;
    cr_assert_geq(cap, *len);
    memcpy(bytes, &m->cut, sizeof m->cut);
    m->given = true;
    return QN_OK;
}

static int on_read(void *ctx, const void *bytes, size_t len)
{
    struct member *m = ctx;
    cr_assert_eq(len, sizeof m->built);
    memcpy(&m->built, bytes, sizeof m->built);
    return QN_OK;
}

static int on_finish(void *ctx)
{
    (void)ctx;
    return QN_OK;
}

static void on_install(void *ctx)
{
    struct member *m = ctx;
    m->sum = m->built;
}

static void on_nothing(void *ctx)
{
    (void)ctx;
}

static void on_done(void *ctx, int err, uint64_t result)
{
    struct member *m = ctx;
    (void)result;
    pthread_mutex_lock(&m->lock);
    m->done += err == QN_OK;
    m->otherwise += err != QN_OK;
    pthread_mutex_unlock(&m->lock);
}

static void on_barrier(void *ctx, int err, uint64_t result)
{
    struct member *m = ctx;
    (void)result;
    pthread_mutex_lock(&m->lock);
    m->reads += err == QN_OK;
    m->seen = m->sum;
    pthread_mutex_unlock(&m->lock);
}

static void join(struct member *m)
{
    struct qn_group_opts o = opts;
    o.service = (struct qn_group_service){.apply = on_apply,
                                          .begin = on_begin,
                                          .next = on_next,
                                          .end = on_nothing,
                                          .keeps_cut = true,
                                          .read = on_read,
                                          .finish = on_finish,
                                          .install = on_install,
                                          .abandon = on_nothing,
                                          .ctx = m};
    m->sum = 0;
    cr_assert_eq(qn_group_join(&m->group, &o), QN_OK);
}

/* What was asked is proposed; what is not taken now is, after a turn. */
static void ask(struct member *m, uint64_t *propose, uint64_t *barriers)
{
    static const uint8_t one = 1;
    while (*propose > 0 &&
           qn_group_propose(m->group, &one, 1, LONG, on_done, m) == QN_OK) {
        --*propose;
    }
    while (*barriers > 0 &&
           qn_group_barrier(m->group, LONG, on_barrier, m) == QN_OK) {
        --*barriers;
    }
}

/* It is cancelled behind poll: TSan knows nothing of the locks of a thread that
 * has ended in it. */
static void sleep_until_due(const struct member *m)
{
    uint64_t rings;
    int cancel;
    struct pollfd p[2] = {{.fd = qn_group_fd(m->group), .events = POLLIN},
                          {.fd = m->bell, .events = POLLIN}};
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    (void)poll(p, 2, -1);
    (void)!read(m->bell, &rings, sizeof rings);
    (void)pthread_setcancelstate(cancel, &cancel);
    pthread_testcancel();
}

static void *run(void *arg)
{
    struct member *m = arg;
    uint64_t propose = 0, barriers = 0;
    enum how how = STAYS;
    int said = 0;
    while (said >= 0 && how == STAYS) {
        said = qn_group_turn(m->group);
        pthread_mutex_lock(&m->lock);
        propose += m->to_propose;
        barriers += m->to_read;
        m->to_propose = m->to_read = 0;
        how = m->how == IS_CANCELLED ? STAYS : m->how;
        m->said = said;
        qn_group_status(m->group, &m->status);
        pthread_cond_broadcast(&m->changed);
        pthread_mutex_unlock(&m->lock);
        ask(m, &propose, &barriers);
        if (said == QN_GROUP_ARMED && how == STAYS) {
            sleep_until_due(m);
        }
    }
    if (how == LEAVES) {
        qn_group_leave(m->group);
        m->group = NULL;
    } else if (how == EXITS) {
        pthread_exit(NULL);
    }
    return NULL;
}

static void start(struct member *m)
{
    *m = (struct member){.bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    cr_assert_geq(m->bell, 0);
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, NULL);
    join(m);
    cr_assert_eq(pthread_create(&m->thread, NULL, run, m), 0);
}

/* As it is told; another thread leaves for it. */
static void finish(struct member *m, enum how how)
{
    const uint64_t one = 1;
    void *out;
    pthread_mutex_lock(&m->lock);
    m->how = how;
    pthread_mutex_unlock(&m->lock);
    if (how == IS_CANCELLED) {
        cr_assert_eq(pthread_cancel(m->thread), 0);
    }
    cr_assert_eq(write(m->bell, &one, sizeof one), 8);
    cr_assert_eq(pthread_join(m->thread, &out), 0);
    cr_expect_eq(out == PTHREAD_CANCELED, how == IS_CANCELLED);
    if (m->group != NULL) {
        cr_expect_eq(qn_group_turn(m->group), QN_EABORTED);
        qn_group_leave(m->group);
    }
    close(m->bell);
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->changed);
}

static void wait_until(struct member *m,
                       bool (*is)(const struct member *m, uint64_t n),
                       uint64_t n)
{
    pthread_mutex_lock(&m->lock);
    while (!is(m, n)) {
        cr_assert_geq(m->said, 0, "%s", qn_strerror(m->said));
        pthread_cond_wait(&m->changed, &m->lock);
    }
    pthread_mutex_unlock(&m->lock);
}

/* It serves, with that number of members. */
static bool serves_with(const struct member *m, uint64_t n)
{
    return m->status.phase == QN_GROUP_SERVING &&
           (uint64_t)__builtin_popcountll(m->status.members) == n;
}

static bool has_done(const struct member *m, uint64_t n)
{
    return m->done == n;
}

static bool has_read(const struct member *m, uint64_t n)
{
    return m->reads == n;
}

static void ask_of(struct member *m, uint64_t proposals, uint64_t reads)
{
    const uint64_t one = 1;
    pthread_mutex_lock(&m->lock);
    m->to_propose += proposals;
    m->to_read += reads;
    const uint64_t done = m->done + proposals, read = m->reads + reads;
    pthread_mutex_unlock(&m->lock);
    cr_assert_eq(write(m->bell, &one, sizeof one), 8);
    wait_until(m, has_done, done);
    wait_until(m, has_read, read);
}

static void propose(struct member *m, uint64_t n)
{
    ask_of(m, n, 0);
    cr_expect_eq(m->otherwise, 0);
}

static void expect_state(struct member *m, uint64_t sum)
{
    ask_of(m, 0, 1);
    cr_expect_eq(m->seen, sum, "%llu", (unsigned long long)m->seen);
}

/* ---- other processes ----------------------------------------------------- */

struct child {
    pid_t pid;
    int go, said;
};

static struct child child[CHILDREN];

/* For each time that its first member serves with another number of members, it
 * says that number. */
static void child_run(int go, int said)
{
    uint8_t n[2], last = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (read(go, n, 2) != 2) {
        _exit(0);
    }
    opts.members = n[1];
    for (uint8_t i = 0; i < n[0]; i++) {
        start(&member[i]);
    }
    pthread_mutex_lock(&member[0].lock);
    for (;;) {
        const struct qn_group_status *st = &member[0].status;
        const uint8_t now = (uint8_t)__builtin_popcountll(st->members);
        if (st->phase == QN_GROUP_SERVING && now != last) {
            last = now;
            (void)!write(said, &now, 1);
        }
        pthread_cond_wait(&member[0].changed, &member[0].lock);
    }
}

/* Before this process has threads. */
static void child_make(struct child *c)
{
    int go[2], said[2];
    cr_assert_eq(pipe(go), 0);
    cr_assert_eq(pipe(said), 0);
    c->pid = fork();
    if (c->pid == 0) {
        close(go[1]);
        close(said[0]);
        child_run(go[0], said[1]);
    }
    close(go[0]);
    close(said[1]);
    c->go = go[1];
    c->said = said[0];
}

static void child_start(const struct child *c, uint8_t members)
{
    const uint8_t n[2] = {members, (uint8_t)opts.members};
    cr_assert_eq(write(c->go, n, 2), 2);
}

static void child_wait(const struct child *c, uint8_t members)
{
    uint8_t now = 0;
    while (now != members) {
        cr_assert_eq(read(c->said, &now, 1), 1);
    }
}

static void child_end(struct child *c)
{
    int status;
    if (c->pid != 0) {
        kill(c->pid, SIGKILL);
        cr_assert_eq(waitpid(c->pid, &status, 0), c->pid);
        close(c->go);
        close(c->said);
    }
    c->pid = 0;
}

/* ---- the tests ----------------------------------------------------------- */

static void init(void)
{
    cr_assert_not_null(mkdtemp(folder));
    snprintf(name, sizeof name, "%s/group", folder);
    opts = (struct qn_group_opts){.name = name,
                                  .application = "test",
                                  .version = 1,
                                  .transport = qn_transport_find("ump"),
                                  .members = THREADS,
                                  .cells = 256,
                                  .log_bytes = 1 << 20};
    for (int i = 0; i < CHILDREN; i++) {
        child_make(&child[i]);
    }
}

static void fini(void)
{
    for (int i = 0; i < CHILDREN; i++) {
        child_end(&child[i]);
    }
    unlink(name);
    rmdir(folder);
}

#define CASE(name)                                                             \
    Test(group_members_of_a_process, name, .init = init, .fini = fini,         \
         .timeout = 100)

/* Each ends in its turn, the leader among them; the others go on, and see it at
 * once; it comes back, with the state. */
static void each_ends(enum how how, uint64_t *sum)
{
    for (uint32_t i = 0; i < THREADS; i++) {
        struct member *next = &member[(i + 1) % THREADS];
        struct member *last = &member[(i + 2) % THREADS];
        finish(&member[i], how);
        wait_until(next, serves_with, 2);
        wait_until(last, serves_with, 2);
        propose(next, 3);
        *sum += 3;
        expect_state(last, *sum);
        start(&member[i]);
        wait_until(&member[i], serves_with, THREADS);
        expect_state(&member[i], *sum);
        propose(&member[i], 1);
        ++*sum;
        wait_until(next, serves_with, THREADS);
        wait_until(last, serves_with, THREADS);
    }
}

static void threads_alone(enum how first, enum how last)
{
    const int before = open_descriptors();
    uint64_t sum = 0;
    for (uint32_t i = 0; i < THREADS; i++) {
        start(&member[i]);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        wait_until(&member[i], serves_with, THREADS);
        propose(&member[i], 5);
        sum += 5;
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        expect_state(&member[i], sum);
    }
    for (enum how how = first; how <= last; how++) {
        each_ends(how, &sum);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        finish(&member[i], LEAVES);
    }
    cr_expect_eq(open_descriptors(), before);
    start(&member[0]); /* the group has ended with its last member */
    start(&member[1]);
    start(&member[2]);
    wait_until(&member[0], serves_with, THREADS);
    expect_state(&member[0], 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        finish(&member[i], LEAVES);
    }
}

CASE(threads_found_a_group_and_each_may_end_and_come_back)
{
    threads_alone(LEAVES, IS_CANCELLED);
}

CASE(threads_that_give_their_lists_of_robust_mutexes)
{
    opts.robust_list = true;
    threads_alone(RETURNS, RETURNS);
}

/* The process ends and another one comes; then a thread does. */
CASE(two_threads_and_another_process_are_a_group)
{
    uint64_t sum = 0;
    child_start(&child[0], 1);
    for (uint32_t i = 0; i < 2; i++) {
        start(&member[i]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        wait_until(&member[i], serves_with, 3);
    }
    child_wait(&child[0], 3);
    propose(&member[0], 4);
    child_end(&child[0]);
    for (uint32_t i = 0; i < 2; i++) {
        wait_until(&member[i], serves_with, 2);
        propose(&member[i], 2);
    }
    sum += 8;
    child_start(&child[1], 1);
    for (uint32_t i = 0; i < 2; i++) {
        wait_until(&member[i], serves_with, 3);
    }
    child_wait(&child[1], 3);
    finish(&member[0], RETURNS);
    child_wait(&child[1], 2);
    wait_until(&member[1], serves_with, 2);
    expect_state(&member[1], sum);
    start(&member[0]);
    child_wait(&child[1], 3);
    wait_until(&member[0], serves_with, 3);
    expect_state(&member[0], sum);
    for (uint32_t i = 0; i < 2; i++) {
        finish(&member[i], LEAVES);
    }
    child_wait(&child[1], 1);
}

/* All members of a process die with it, and the seats of both can be taken. */
CASE(the_members_of_a_process_die_with_it)
{
    opts.members = 5;
    child_start(&child[0], 2);
    for (uint32_t i = 0; i < 3; i++) {
        start(&member[i]);
    }
    child_wait(&child[0], 5);
    for (uint32_t i = 0; i < 3; i++) {
        wait_until(&member[i], serves_with, 5);
    }
    child_end(&child[0]);
    for (uint32_t i = 0; i < 3; i++) {
        wait_until(&member[i], serves_with, 3);
    }
    propose(&member[0], 2);
    child_start(&child[1], 2);
    child_wait(&child[1], 5);
    for (uint32_t i = 0; i < 3; i++) {
        wait_until(&member[i], serves_with, 5);
        expect_state(&member[i], 2);
    }
    for (uint32_t i = 0; i < 3; i++) {
        finish(&member[i], LEAVES);
    }
}
