/*
 * Every barrier under threads and processes. Before episode e each member
 * writes e to its cell of side e % 2, in memory without any order of its own,
 * which ThreadSanitizer watches; behind it, it finds e in the cells of all. A
 * cell is written again in episode e + 2, which none enters before all have
 * left e.
 *
 * On a busy machine each yield of a wait takes 3 ms, and a wait has four and
 * more: so episodes are few.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/barrier/barrier_internal.h"
#include "tests/unit/core/barrier/barrier_of.h"

#define MEMBERS_MOST 64u
#define STALL_NS     100000 /* of a handler */

/* Shared, by processes, too. */
struct cells {
    uint32_t cell[2][MEMBERS_MOST];
};

struct world {
    void *memory;
    struct cells *cells;
    uint32_t members;
    uint32_t episodes;
    uint32_t passed; /* episodes, before these */
    bool one_core;
    bool slow;    /* member 0 yields in front of each episode */
    bool stalled; /* each member signals the next one when it enters */
    const struct worker *signalled; /* then: [members] */
    pthread_barrier_t begin;        /* then: all threads have started */
};

struct worker {
    struct world *w;
    uint32_t member;
    pthread_t thread;
    uint32_t wrong; /* cells found with another episode */
};

static _Thread_local volatile sig_atomic_t inside; /* a barrier */
static qn_a32 stalls; /* handlers that ran inside */

/* Every second one sleeps, the others yield, wherever the member is. */
static void stall(int number)
{
    const struct timespec pause = {.tv_nsec = STALL_NS};
    const int was = errno;
    (void)number;
    /* relaxed: the word alone. */
    if (qn_fetch_add(&stalls, inside != 0, QN_RELAXED) % 2 == 0) {
        (void)nanosleep(&pause, NULL);
    } else {
        (void)sched_yield();
    }
    errno = was;
}

static void stay_on_one_core(void)
{
    cpu_set_t set;
    int core = sched_getcpu();
    CPU_ZERO(&set);
    CPU_SET(core < 0 ? 0 : (unsigned)core, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

static uint32_t pass(const struct world *w, struct qn_barrier_member *me,
                     uint32_t e)
{
    uint32_t wrong = 0;
    w->cells->cell[e % 2][me->member] = e;
    inside = 1;
    if (w->signalled != NULL) {
        const uint32_t next = (me->member + 1) % w->members;
        (void)pthread_kill(w->signalled[next].thread, SIGUSR1);
    }
    qn_barrier_wait(me);
    inside = 0;
    for (uint32_t i = 0; i < w->members; i++) {
        wrong += w->cells->cell[e % 2][i] != e;
    }
    return wrong;
}

/* In the middle the thread gives up its seat and takes it again. */
static uint32_t pass_all(const struct world *w, uint32_t member)
{
    struct qn_barrier_member me;
    uint32_t wrong = qn_barrier_join(w->memory, member, &me) != QN_OK;
    for (uint32_t e = 1; e <= w->episodes && wrong == 0; e++) {
        if (w->slow && member == 0) {
            sched_yield();
        }
        wrong += pass(w, &me, e);
        if (e == w->episodes / 2) {
            qn_barrier_leave(&me);
            wrong += qn_barrier_join(w->memory, member, &me) != QN_OK;
        }
    }
    qn_barrier_leave(&me);
    return wrong;
}

static void *work(void *arg)
{
    struct worker *me = arg;
    if (me->w->signalled != NULL) {
        (void)pthread_barrier_wait(&me->w->begin);
    }
    me->wrong = pass_all(me->w, me->member);
    return NULL;
}

static void with_threads(struct world *w)
{
    static struct cells cells;
    struct worker worker[MEMBERS_MOST];
    w->cells = &cells;
    memset(&cells, 0, sizeof cells);
    if (w->one_core) {
        stay_on_one_core(); /* and the threads that it starts */
    }
    if (w->stalled) {
        w->signalled = worker;
        (void)pthread_barrier_init(&w->begin, NULL, w->members);
    }
    for (uint32_t i = 0; i < w->members; i++) {
        worker[i] = (struct worker){.w = w, .member = i};
        cr_assert_eq(pthread_create(&worker[i].thread, NULL, work, &worker[i]),
                     0);
    }
    for (uint32_t i = 0; i < w->members; i++) {
        pthread_join(worker[i].thread, NULL);
        cr_expect_eq(worker[i].wrong, 0, "member %u: %u cells", i,
                     worker[i].wrong);
    }
    if (w->stalled) {
        (void)pthread_barrier_destroy(&w->begin);
    }
}

/* As if the members had passed that number of episodes. */
static void pass_before(struct qn_barrier_memory *m, const struct world *w)
{
    const uint32_t value = w->passed * QN_BARRIER_STEP;
    const uint32_t flags = qn_barrier_flags(w->members);
    qn_store(&m->arrived, value * w->members, QN_SEQ_CST);
    for (uint32_t i = 0; i < w->members; i++) {
        qn_store(&m->seat[i].episode, w->passed, QN_SEQ_CST);
        const struct qn_barrier_member any = {
            .memory = m, .members = w->members, .flags = flags};
        for (uint32_t k = 0; k < flags; k++) {
            qn_store(qn_barrier_flag(&any, i, k), value, QN_SEQ_CST);
        }
    }
}

static void with_each_form(struct world w, bool own_cores)
{
    EACH_FORM(form)
    {
        const struct qn_barrier_opts o = {
            .form = form->name, .members = w.members, .own_cores = own_cores};
        w.memory = barrier_of(&o);
        pass_before(w.memory, &w);
        with_threads(&w);
        free(w.memory);
    }
}

Test(barrier_threads, none_leaves_before_all_have_entered, .timeout = 60)
{
    with_each_form((struct world){.members = 2, .episodes = 80}, false);
    with_each_form((struct world){.members = 4, .episodes = 40}, false);
    with_each_form((struct world){.members = 16, .episodes = 10}, false);
}

/* Two episodes: a member that shares its core yields four times and more in
 * front of each flag. */
Test(barrier_threads, of_many_neither, .timeout = 60)
{
    with_each_form(
        (struct world){.members = MEMBERS_MOST, .episodes = 2, .slow = true},
        false);
}

/* A flag wraps after 2^31 episodes, the counter of two members after 2^30. */
Test(barrier_threads, numbers_of_episodes_wrap, .timeout = 60)
{
    for (uint32_t before = 1u << 29; before != 0; before *= 2) {
        with_each_form(
            (struct world){.members = 2, .episodes = 10, .passed = before - 5},
            false);
    }
    with_each_form(
        (struct world){.members = 3, .episodes = 10, .passed = UINT32_MAX - 5},
        false);
}

Test(barrier_threads, of_members_that_look_on_neither, .timeout = 60)
{
    with_each_form((struct world){.members = 2, .episodes = 80}, true);
    with_each_form((struct world){.members = 4, .episodes = 30}, true);
}

Test(barrier_threads, a_slow_member_holds_up_all, .timeout = 60)
{
    with_each_form((struct world){.members = 4, .episodes = 30, .slow = true},
                   false);
}

Test(barrier_threads, on_one_core_they_pass_too, .timeout = 60)
{
    with_each_form(
        (struct world){.members = 4, .episodes = 20, .one_core = true}, false);
    with_each_form(
        (struct world){.members = 3, .episodes = 20, .one_core = true}, true);
}

/* The member that enters last sends its signal to one that is inside, and stays
 * there: so each episode has a stall. */
static void stall_in_each_form(struct world w, bool own_cores)
{
    const struct sigaction act = {.sa_handler = stall};
    uint32_t forms = 0;
    EACH_FORM(form)
    {
        forms++;
    }
    w.stalled = true;
    (void)sigaction(SIGUSR1, &act, NULL); /* calls are not restarted */
    qn_store(&stalls, 0, QN_SEQ_CST);
    with_each_form(w, own_cores);
    cr_expect_geq(qn_load(&stalls, QN_SEQ_CST), forms * w.episodes);
}

Test(barrier_threads, a_signal_handler_may_sleep_or_yield_in_a_barrier,
     .timeout = 60)
{
    stall_in_each_form((struct world){.members = 8, .episodes = 12}, false);
    stall_in_each_form((struct world){.members = 3, .episodes = 12}, true);
}

static void *mapped(int fd, size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert_neq(at, MAP_FAILED);
    return at;
}

/* The cells lie in the first page, the barrier in the next ones. */
#define CELLS_BYTES 4096u

static void with_processes(const struct qn_barrier_opts *o)
{
    const size_t bytes = qn_barrier_bytes(o);
    const int fd = memfd_create("barrier", 0);
    pid_t child[MEMBERS_MOST];
    cr_assert_eq(ftruncate(fd, (off_t)(CELLS_BYTES + bytes)), 0);
    char *at = mapped(fd, CELLS_BYTES + bytes);
    cr_assert_eq(qn_barrier_format(at + CELLS_BYTES, bytes, o), QN_OK);
    for (uint32_t i = 0; i < o->members; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            char *mine = mapped(fd, CELLS_BYTES + bytes);
            const struct world w = {.memory = mine + CELLS_BYTES,
                                    .cells = (struct cells *)(void *)mine,
                                    .members = o->members,
                                    .episodes = 60};
            _exit(pass_all(&w, i) == 0 && mine != at ? 0 : 1);
        }
    }
    for (uint32_t i = 0; i < o->members; i++) {
        int status = -1;
        cr_expect_eq(waitpid(child[i], &status, 0), child[i]);
        cr_expect_eq(status, 0, "member %u: %d", i, status);
    }
    munmap(at, CELLS_BYTES + bytes);
    close(fd);
}

Test(barrier_threads, processes_map_it_at_different_addresses, .timeout = 60)
{
    EACH_FORM(form)
    {
        const struct qn_barrier_opts o = {.form = form->name, .members = 4};
        with_processes(&o);
    }
}
