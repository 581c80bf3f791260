/*
 * A barrier that measures when its members join: times in, form out. The clock
 * is made up, so a price is what the test says; it is so slow that each pair
 * ends behind its first batch.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/barrier/measured/measured_barrier.h"
#include "core/barrier/selection/selection.h"
#include "core/base/atomic.h"
#include "core/base/bits.h"
#include "core/discover/round_robin.h"
#include "tests/support/uniform_machine.h"
#include "tests/unit/core/barrier/barrier_of.h"

#define MEMBERS_MOST 5u

static void *measured_of(const struct qn_barrier_opts *o)
{
    return formatted(qn_measured_barrier_format, qn_measured_barrier_bytes(o),
                     o);
}

/* ---- refused ------------------------------------------------------------- */

Test(barrier_measured, a_form_a_tree_and_wrong_numbers_are_refused)
{
    static struct qn_shape tree;
    const struct qn_barrier_opts wrong[] = {
        {.members = 0},
        {.members = QN_BARRIER_MEMBERS_MAX + 1},
        {.members = 2, .form = "central"},
        {.members = 2, .tree = &tree}};
    alignas(QN_CACHELINE) char memory[QN_CACHELINE];
    for (uint32_t i = 0; i < QN_ARRAY_COUNT(wrong); i++) {
        cr_expect_eq(qn_measured_barrier_bytes(&wrong[i]), 0);
        cr_expect_eq(
            qn_measured_barrier_format(memory, sizeof memory, &wrong[i]),
            QN_EINVAL);
    }
}

Test(barrier_measured, a_byte_too_few_is_refused)
{
    const struct qn_barrier_opts o = {.members = 3, .cores = 3};
    const size_t bytes = qn_measured_barrier_bytes(&o);
    void *memory = measured_of(&o);
    cr_expect_eq(bytes % QN_CACHELINE, 0);
    cr_expect_eq(qn_measured_barrier_format(memory, bytes - 1, &o),
                 QN_EMSGSIZE);
    free(memory);
}

Test(barrier_measured, wrong_members_and_another_barrier_are_refused)
{
    const struct qn_barrier_opts o = {.members = 2, .cores = 1};
    struct qn_barrier_member me, again;
    void *measured = measured_of(&o), *other = barrier_of(&o);
    cr_expect_eq(qn_measured_barrier_join(other, 0, NULL, &me), QN_EINVAL);
    cr_expect_eq(qn_barrier_join(measured, 0, &me), QN_EINVAL);
    cr_expect_eq(qn_measured_barrier_join(measured, 2, NULL, &me), QN_EINVAL);
    cr_expect_eq(qn_measured_barrier_join(measured, 1, NULL, &me), QN_OK);
    cr_expect_eq(qn_measured_barrier_join(measured, 1, NULL, &again), QN_EBUSY);
    free(measured);
    free(other);
}

/* ---- no measurement ------------------------------------------------------ */

static qn_time_t never(void *ctx)
{
    (void)ctx;
    cr_assert(false, "the clock was read");
    return 0;
}

/* One thread joins as each of them, so none waits for another. */
static void join_all_at_once(const struct qn_barrier_opts *o, const char *form)
{
    const struct qn_measured_clock clock = {.now = never};
    struct qn_barrier_member me;
    void *memory = measured_of(o);
    for (uint32_t i = 0; i < o->members; i++) {
        cr_assert_eq(qn_measured_barrier_join(memory, i, &clock, &me), QN_OK);
        cr_expect_str_eq(qn_barrier_form_name(&me), form);
    }
    free(memory);
}

Test(barrier_measured, members_that_share_cores_measure_nothing)
{
    join_all_at_once(&(struct qn_barrier_opts){.members = 9, .cores = 8},
                     "central");
    join_all_at_once(&(struct qn_barrier_opts){.members = 1}, "central");
}

Test(barrier_measured, nor_do_more_than_the_most)
{
    join_all_at_once(
        &(struct qn_barrier_opts){.members = QN_MEASURED_MEMBERS_MAX + 1,
                                  .cores = QN_MEASURED_MEMBERS_MAX + 1},
        "dissemination");
}

/* ---- prices in, form out ------------------------------------------------- */

struct world {
    void *memory;
    const struct qn_machine *prices;
    bool worse; /* what is selected takes longer than the usual barrier */
    struct qn_barrier_member me[MEMBERS_MOST];
};

struct worker {
    struct world *w;
    uint32_t member;
    pthread_t thread;
    bool real; /* the clock */
    qn_time_t time;
    uint32_t round, reads; /* of the clock, in that round */
    uint32_t cell;         /* episodes */
    bool wrong;
};

/* Begin and end of a batch of the usual barrier and of the one that is
 * selected, in turn. */
static qn_time_t of_trial(struct worker *w)
{
    const bool selected = w->reads % 4 == 3;
    w->time += w->reads % 2 == 0 ? 0 : selected == w->w->worse ? 200 : 100;
    w->reads++;
    return w->time;
}

/* Where the caller is the lower member of a pair: begin, end of the batch, and
 * once more. A batch of 10 transfers takes as many ms as the price is in us. */
static qn_time_t made_up(void *ctx)
{
    struct worker *w = ctx;
    const struct qn_machine *m = w->w->prices;
    uint32_t other = 0;
    while (w->round < qn_round_robin_rounds(m->n) &&
           (other = qn_round_robin_partner(m->n, w->round, w->member)) <=
               w->member) {
        w->round++;
    }
    if (w->round == qn_round_robin_rounds(m->n)) {
        return of_trial(w);
    }
    w->reads++;
    if (w->reads == 2) {
        const double cycles = qn_send_cost(m, w->member, other) +
                              qn_receive_cost(m, w->member, other);
        w->time += (qn_time_t)cycles * 10 * QN_US;
    } else if (w->reads == 3) {
        w->reads = 0;
        w->round++;
    }
    return w->time;
}

static void *join_and_pass(void *arg)
{
    struct worker *w = arg;
    struct qn_barrier_member *me = &w->w->me[w->member];
    const struct qn_measured_clock clock = {.now = made_up, .ctx = w};
    w->wrong = qn_measured_barrier_join(w->w->memory, w->member,
                                        w->real ? NULL : &clock, me) != QN_OK;
    for (uint32_t e = 1; e <= 6 && !w->wrong; e++) {
        const struct worker *all = w - w->member;
        w->cell = e;
        qn_barrier_wait(me);
        for (uint32_t i = 0; i < me->members; i++) {
            w->wrong = w->wrong || all[i].cell != e;
        }
        qn_barrier_wait(me);
    }
    return NULL;
}

/* @return the form, which all have. */
static const char *form_of(const struct qn_machine *prices, uint32_t members,
                           bool worse)
{
    const struct qn_barrier_opts o = {.members = members, .cores = members};
    struct world w = {
        .memory = measured_of(&o), .prices = prices, .worse = worse};
    struct worker worker[MEMBERS_MOST];
    for (uint32_t i = 0; i < members; i++) {
        worker[i] =
            (struct worker){.w = &w, .member = i, .real = prices == NULL};
        cr_assert_eq(
            pthread_create(&worker[i].thread, NULL, join_and_pass, &worker[i]),
            0);
    }
    for (uint32_t i = 0; i < members; i++) {
        pthread_join(worker[i].thread, NULL);
        cr_expect(!worker[i].wrong, "member %u of %u", i, members);
        cr_expect_str_eq(qn_barrier_form_name(&w.me[i]),
                         qn_barrier_form_name(&w.me[0]));
    }
    /* A member that follows one that has left does not measure. */
    qn_barrier_leave(&w.me[1]);
    cr_expect_eq(qn_measured_barrier_join(w.memory, 1, NULL, &w.me[1]), QN_OK);
    free(w.memory);
    return qn_barrier_form_name(&w.me[0]);
}

static void expect_as_selected(const struct qn_machine *prices,
                               const char *form, const char *usual)
{
    struct qn_barrier_selection s;
    cr_assert_eq(qn_barrier_select(&s, prices, prices->n), QN_OK);
    cr_expect_str_eq(s.form, form);
    cr_expect_str_eq(form_of(prices, prices->n, false), form);
    cr_expect_str_eq(form_of(prices, prices->n, true), usual);
}

/* Where all are as far, dissemination; in two groups far from each other, a
 * tree. If that is slower in the trial, what they have without prices. */
Test(barrier_measured, its_form_is_that_of_the_prices_if_it_is_faster,
     .timeout = 60)
{
    struct qn_machine *four = uniform_machine(4), *five = uniform_machine(5);
    for (uint32_t u = 0; u < 5; u++) {
        for (uint32_t v = 0; v < 5; v++) {
            if ((u < 2) != (v < 2)) {
                five->send[u * 5 + v] = five->receive[u * 5 + v] = 5000;
            }
        }
    }
    expect_as_selected(four, "dissemination", "central");
    expect_as_selected(five, "tree", "dissemination");
    qn_machine_destroy(four);
    qn_machine_destroy(five);
}

Test(barrier_measured, by_the_clock_of_the_machine_all_have_one_form,
     .timeout = 60)
{
    (void)form_of(NULL, 2, false);
}

Test(barrier_measured, processes_map_it_at_different_addresses, .timeout = 60)
{
    const struct qn_barrier_opts o = {.members = 2, .cores = 2};
    const size_t bytes = qn_measured_barrier_bytes(&o);
    const int fd = memfd_create("measured", 0);
    pid_t child[2];
    cr_assert_eq(ftruncate(fd, (off_t)bytes), 0);
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert_eq(qn_measured_barrier_format(at, bytes, &o), QN_OK);
    for (uint32_t i = 0; i < 2; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            struct qn_barrier_member me;
            void *mine =
                mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
            const int rc = qn_measured_barrier_join(mine, i, NULL, &me);
            for (uint32_t e = 0; e < 5 && rc == QN_OK; e++) {
                qn_barrier_wait(&me);
            }
            _exit(rc == QN_OK && mine != at ? 0 : 1);
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        int status = -1;
        cr_expect_eq(waitpid(child[i], &status, 0), child[i]);
        cr_expect_eq(status, 0, "member %u: %d", i, status);
    }
    munmap(at, bytes);
    close(fd);
}
