/*
 * How long it takes from the end of a node to QN_EPEERDEAD at all others, which
 * are in a barrier: real processes, killed by SIGKILL, and real threads that
 * leave by pthread_exit. A supervisor notices the end (of a process by its
 * pidfd, of a thread by a destructor that the C library runs) and tells the
 * neighbours in the tree only; others hear it from these. Nothing on this way
 * waits for a time: all sleep without a deadline, so the bound is that of the
 * scheduler, and a lost wake-up is a hang.
 *
 * No verdict on time by default. QN_DEATHS=n: n deaths of either sort; prints
 * the distribution, and 99 of 100 must be known within 100 ms.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/bits.h"
#include "core/base/clock.h"
#include "core/coll/coll.h"
#include "tests/conformance/mesh_of.h"
#include "tests/support/seeds.h"

#define MEMBERS    4u
#define SUPERVISOR MEMBERS /* a node beside them */
#define DEATHS     6u
#define BOUND_NS   100000000u
#define TURNS      200u /* after at most 200 turns one of them ends */

struct state {
    qn_a32 pid; /* of the victim; 0: it has not come so far */
    qn_a32 has_ended;
    qn_a64 ended_at;       /* ns, of the clock; before the end */
    qn_a64 known[MEMBERS]; /* ns after that; written by each */
};

struct plan {
    struct state *state;
    qn_node_t victim;
    uint32_t turns; /* of the victim, before it ends */
    bool processes;
};

struct node {
    const struct plan *plan;
    struct qn_mesh_end *end;
    struct qn_qp *qp[QN_NODES_MAX];
    struct qn_coll *c;
    uint32_t turns;
    bool told;
    struct qn_mesh_end left_behind; /* by a thread, as by a process */
    struct node *next;
};

static void ring_all(struct qn_mesh_end *end)
{
    for (qn_node_t v = 0; v <= SUPERVISOR; v++) {
        if (v != end->self) {
            qn_doorbell_ring(&end->ringer[v]);
        }
    }
}

static void sleep_unless(struct qn_mesh_end *end, const qn_a32 *word)
{
    qn_doorbell_arm(&end->doorbell);
    if (qn_load(word, QN_ACQUIRE) == 0) {
        (void)qn_doorbell_wait(&end->doorbell, QN_TIME_NEVER);
    }
    qn_doorbell_disarm(&end->doorbell);
}

/* ---- ends ---- */

/* Kills a process that has come so far, and tells that it has ended when the
 * kernel says so. */
static int supervise(struct qn_mesh_end *end, const struct plan *plan)
{
    struct state *s = plan->state;
    while (qn_load(&s->pid, QN_ACQUIRE) == 0) {
        sleep_unless(end, &s->pid);
    }
    const pid_t pid = (pid_t)qn_load(&s->pid, QN_RELAXED);
    struct pollfd ended = {.fd = (int)syscall(SYS_pidfd_open, pid, 0),
                           .events = POLLIN};
    QN_ASSERT(ended.fd >= 0);
    qn_store(&s->ended_at, qn_clock_now(), QN_RELEASE);
    (void)kill(pid, SIGKILL);
    while (poll(&ended, 1, -1) != 1) {
    }
    (void)close(ended.fd);
    qn_store(&s->has_ended, 1, QN_RELEASE);
    ring_all(end);
    return 0;
}

static pthread_key_t end_of_thread;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct node *abandoned;

/* Runs in a thread that has called pthread_exit. */
static void on_end(void *arg)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct node *n = arg;
    pthread_mutex_lock(&lock);
    n->next = abandoned;
    abandoned = n;
    pthread_mutex_unlock(&lock);
    qn_store(&n->plan->state->has_ended, 1, QN_RELEASE);
    ring_all(&n->left_behind);
}

static void make_key(void)
{
    (void)pthread_key_create(&end_of_thread, on_end);
}

/* A thread ends here; a process says that it may be killed, and goes on. */
static void may_end(struct node *n)
{
    struct state *s = n->plan->state;
    if (n->plan->victim != n->end->self || ++n->turns != n->plan->turns) {
        return;
    }
    if (n->plan->processes) {
        qn_store(&s->pid, (uint32_t)getpid(), QN_RELEASE);
        qn_doorbell_ring(&n->end->ringer[SUPERVISOR]);
        return;
    }
    (void)pthread_once(&once, make_key);
    n->left_behind = *n->end;
    (void)pthread_setspecific(end_of_thread, n);
    qn_store(&s->ended_at, qn_clock_now(), QN_RELEASE);
    pthread_exit(NULL);
}

/* ---- members ---- */

static bool is_beside(qn_node_t a, qn_node_t b)
{
    return a + 1 == b || b + 1 == a;
}

/* @return whether something has changed. */
static bool hear(struct node *n)
{
    const qn_node_t victim = n->plan->victim;
    if (n->told || !is_beside(n->end->self, victim) ||
        qn_load(&n->plan->state->has_ended, QN_ACQUIRE) == 0) {
        return false;
    }
    n->told = true;
    qn_coll_down(n->c, victim);
    qn_mesh_down(n->end, victim);
    return true;
}

static int finish_barrier(struct node *n, uint32_t number)
{
    int rc;
    while ((rc = qn_coll_test(n->c, number)) == QN_EAGAIN) {
        const bool moved = qn_coll_moved(n->c);
        may_end(n);
        qn_doorbell_arm(&n->end->doorbell);
        (void)qn_coll_flush(n->c);
        if (!hear(n) && !moved && !qn_coll_pending(n->c)) {
            (void)qn_doorbell_wait(&n->end->doorbell, QN_TIME_NEVER);
        }
        qn_doorbell_disarm(&n->end->doorbell);
    }
    return rc;
}

/* Barriers until one fails. */
static int run_member(struct node *n)
{
    struct state *s = n->plan->state;
    uint32_t number = 0;
    int rc = QN_OK;
    while (rc == QN_OK) {
        rc = qn_coll_barrier(n->c, &number);
        rc = rc == QN_OK ? finish_barrier(n, number) : rc;
        may_end(n);
    }
    const uint64_t ended_at = qn_load(&s->ended_at, QN_ACQUIRE);
    qn_store(&s->known[n->end->self], qn_clock_now() - ended_at, QN_RELEASE);
    while (qn_coll_flush(n->c)) { /* the neighbours are told */
        (void)sched_yield();
    }
    return rc == QN_EPEERDEAD && ended_at != 0 ? 0 : 1;
}

static int create(struct node *n)
{
    static const qn_node_t order[MEMBERS] = {0, 1, 2, 3};
    struct qn_tree t;
    const struct qn_coll_opts o = {.self = n->end->self,
                                   .down = &t,
                                   .qp = n->qp,
                                   .doorbell = &n->end->doorbell};
    int rc = qn_tree_build(&t, "tree:k=1", order, MEMBERS);
    return rc == QN_OK ? qn_coll_create(&n->c, &o) : rc;
}

static int node(struct qn_mesh_end *end, void *arg)
{
    const struct plan *plan = arg;
    if (end->self == SUPERVISOR) {
        return plan->processes ? supervise(end, plan) : 0;
    }
    struct node *n = calloc(1, sizeof *n);
    if (n == NULL) {
        return 1;
    }
    *n = (struct node){.plan = plan, .end = end};
    for (qn_node_t v = 0; v < end->nodes; v++) {
        n->qp[v] = end->qp[v][QN_LANE_TREE];
    }
    const int failed = create(n) == QN_OK ? run_member(n) : 1;
    qn_coll_destroy(n->c);
    free(n);
    return failed;
}

/* ---- many deaths ---- */

static int by_time(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void die_once(const struct qn_transport *t, struct plan *plan,
                     uint64_t *known)
{
    struct qn_mesh m;
    if (!make_mesh(&m, t, MEMBERS + 1, 64, plan->processes)) {
        return;
    }
    plan->state = mmap(NULL, sizeof *plan->state, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(plan->state != MAP_FAILED);
    cr_assert_eq(qn_mesh_run(&m, node, plan), plan->processes, "%s", t->name);
    for (qn_node_t v = 0; v < MEMBERS; v++) {
        if (v != plan->victim) {
            *known++ = qn_load(&plan->state->known[v], QN_ACQUIRE);
        }
    }
    qn_mesh_destroy(&m);
    munmap(plan->state, sizeof *plan->state);
}

static void run(bool processes)
{
    const uint64_t asked = seeds_number("QN_DEATHS", 0);
    const uint64_t deaths = asked != 0 ? asked : DEATHS;
    const size_t count = deaths * (MEMBERS - 1);
    uint64_t *known = calloc(count, sizeof *known);
    cr_assert_not_null(known);
    for (uint64_t i = 0; i < deaths; i++) {
        struct plan plan = {.victim = (qn_node_t)(i % MEMBERS),
                            .turns = 1 + (uint32_t)(i * 7919 % TURNS),
                            .processes = processes};
        die_once(qn_transport_find("ump"), &plan, known + i * (MEMBERS - 1));
    }
    qsort(known, count, sizeof *known, by_time);
    cr_assert_gt(known[0], 0, "a member has not heard");
    fprintf(stderr,
            "%s: %" PRIu64 " deaths, known after: p50 %" PRIu64
            " us, p99 %" PRIu64 " us, most %" PRIu64 " us\n",
            processes ? "processes" : "threads", deaths,
            known[count / 2] / 1000, known[count * 99 / 100] / 1000,
            known[count - 1] / 1000);
    cr_assert(asked == 0 || known[count * 99 / 100] < BOUND_NS);
    free(known);
}

Test(death_time, all_hear_of_a_process_that_is_killed, .timeout = 600)
{
    run(true);
}

Test(death_time, all_hear_of_a_thread_that_ends, .timeout = 600)
{
    run(false);
}
